"""What the place of a record in its conversation says about it."""

import numpy as np

from supervisor_memory.signals import measure as context
from supervisor_memory.signals.index import Entry, Index, Layout


def spoken(*texts: str, gap: float = 60.0, speakers: str = "AB") -> Layout:
    """What two people say by turns, or what is said by the speakers that are given, again and again."""
    index = Index()
    for key, text in enumerate(texts):
        speaker = speakers[key % len(speakers)]
        index.put(key, Entry(text.strip("?").split(), key * gap, "s", speaker, asks=text.endswith("?")))
    return index.settle()


def test_a_record_gets_the_better_score_of_what_was_said_beside_it() -> None:
    scores = np.array([0.2, 0.0, 0.9, 0.1], dtype=np.float32)
    found = context.neighbours(spoken("a", "b", "c", "d"), scores)
    assert found.tolist() == np.array([0.0, 0.9, 0.1, 0.9], dtype=np.float32).tolist()


def test_only_what_follows_a_question_may_be_its_answer() -> None:
    scores = np.ones(4, dtype=np.float32)
    assert context.answers(spoken("where?", "here", "when?", "now"), scores).tolist() == [0, 1, 0, 1]
    assert context.answers(spoken("where", "here"), np.ones(2, dtype=np.float32)).tolist() == [0, 0]


def test_nobody_answers_their_own_question() -> None:
    assert context.answers(spoken("where?", "here", speakers="A"), np.ones(2, dtype=np.float32)).tolist() == [
        0,
        0,
    ]


def test_after_a_silence_nothing_is_an_answer_any_more() -> None:
    layout = spoken("where?", "here", gap=7_200.0)
    ones = np.ones(2, dtype=np.float32)
    assert context.answers(layout, ones).tolist() == [0, 0]
    assert context.neighbours(layout, ones).tolist() == [0, 0]
    assert len(layout.episode_lengths) == 2


def test_lengths_are_of_a_row_of_it_with_the_row_before_and_of_the_episode() -> None:
    layout = spoken("green tea", "yes", "no")
    assert layout.lengths.tolist() == [2, 1, 1]
    assert layout.with_previous.tolist() == [2, 3, 2]
    assert layout.episodes.tolist() == [0, 0, 0]
    assert layout.episode_lengths.tolist() == [4]


def test_of_two_conversations_side_by_side_each_keeps_its_own_neighbours() -> None:
    one, other = spoken("where?", "here", gap=7_200.0), spoken("a", "b?", "c")
    both = Layout.joined([one, other])
    assert both.before.tolist() == [-1, -1, -1, 2, 3]
    assert both.after.tolist() == [-1, -1, 3, 4, -1]
    assert both.episodes.tolist() == [0, 1, 2, 2, 2]
    assert both.answering.tolist() == [4]


def test_a_fact_is_in_no_episode_beside_any_conversation() -> None:
    facts = Index()
    facts.put(0, Entry(["tea"], 0.0))
    both = Layout.joined([facts.settle(), spoken("a", "b")])
    assert both.episodes.tolist() == [1, 0, 0]
    assert context.neighbours(both, np.ones(3, dtype=np.float32)).tolist() == [0, 1, 1]


def test_without_records_there_is_no_context() -> None:
    layout = spoken()
    nothing = np.zeros(0, dtype=np.float32)
    for found in (context.neighbours(layout, nothing), context.answers(layout, nothing)):
        assert len(found) == 0
    assert len(layout.episode_lengths) == 0
