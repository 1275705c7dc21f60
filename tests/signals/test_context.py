"""What the place of a record in its conversation says about it."""

import numpy as np

from supervisor_memory.signals import measure as context
from supervisor_memory.signals.index import Entry, Index


def spoken(*texts: str, gap: float = 60.0, speakers: str = "AB") -> Index:
    """What two people say by turns, or what is said by the speakers that are given, again and again."""
    index = Index()
    for key, text in enumerate(texts):
        speaker = speakers[key % len(speakers)]
        index.put(key, Entry(text.strip("?").split(), key * gap, "s", speaker, asks=text.endswith("?")))
    index.settle()
    return index


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
    index = spoken("where?", "here", gap=7_200.0)
    ones = np.ones(2, dtype=np.float32)
    assert context.answers(index, ones).tolist() == [0, 0]
    assert context.neighbours(index, ones).tolist() == [0, 0]
    assert len(context.episode_lengths(index)) == 2


def test_a_term_is_held_by_who_said_it_and_by_who_spoke_next() -> None:
    index = spoken("green tea", "yes", "no")
    assert context.with_previous(index, index.holders("tea")).tolist() == [0, 1]
    assert context.with_previous_lengths(index).tolist() == [2, 3, 2]
    assert context.in_episodes(index, index.holders("tea")).tolist() == [0]
    assert context.episode_lengths(index).tolist() == [4]


def test_without_records_there_is_no_context() -> None:
    index = spoken()
    nothing = np.zeros(0, dtype=np.float32)
    for found in (context.neighbours(index, nothing), context.answers(index, nothing)):
        assert len(found) == 0
    assert len(context.episode_lengths(index)) == 0
