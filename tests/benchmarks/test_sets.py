"""The sets that retrieval is measured on: their shape, which every reader relies on."""

import json
from collections import Counter
from itertools import groupby, pairwise
from pathlib import Path

import benchmarks.quality
from benchmarks.quality.corpus import Corpus, Item, read_corpora
from supervisor_memory.language.terms import language
from supervisor_memory.model.records import KINDS, check_content
from tests.cases import every_case

FOLDER = Path(benchmarks.quality.__file__).parent
DIALOGUES = ("en", "zh")
FACTS = ("facts_en", "facts_zh")
ASSISTANTS = ("assistant_en", "assistant_zh")
SITTING = 1_800
"""Seconds after which another session has begun."""


def read(name: str) -> list[Corpus]:
    return read_corpora(FOLDER / f"{name}.json")


def sessions(corpus: Corpus) -> list[list[Item]]:
    return [list(turns) for _, turns in groupby(corpus.items, key=lambda turn: turn.id.partition(":")[0])]


def when(item: Item) -> float:
    assert item.created_at is not None
    return item.created_at


@every_case("code", ["en", "zh"])
def test_each_language_has_about_three_hundred_items_and_eighty_questions_or_more(code: str) -> None:
    corpora = [*read(code), *read(f"facts_{code}")]
    assert 280 <= sum(len(corpus.items) for corpus in corpora) <= 400
    assert 80 <= sum(len(corpus.questions) for corpus in corpora) <= 160


@every_case("name", [*DIALOGUES, *FACTS, *ASSISTANTS])
def test_questions_are_in_the_language_of_the_file(name: str) -> None:
    spoken = Counter[str](language(question.text) for corpus in read(name) for question in corpus.questions)
    assert spoken[name[-2:]] >= 0.9 * spoken.total()  # some ask for an identifier alone


@every_case("name", [*DIALOGUES, *FACTS, *ASSISTANTS])
def test_every_question_is_asked_once_and_has_one_to_three_pieces_of_evidence(name: str) -> None:
    for corpus in read(name):
        asked = [question.text for question in corpus.questions]
        assert len(set(asked)) == len(asked)
        assert all(1 <= len(set(q.evidence)) == len(q.evidence) <= 3 for q in corpus.questions)


@every_case("name", [*DIALOGUES, *FACTS, *ASSISTANTS])
def test_nothing_is_said_twice(name: str) -> None:
    for corpus in read(name):
        assert len({item.text for item in corpus.items}) == len(corpus.items)
        assert all(check_content(item.text) == item.text for item in corpus.items)


@every_case("name", DIALOGUES)
def test_a_dialogue_is_sessions_of_eight_to_twenty_turns_days_apart(name: str) -> None:
    for corpus in read(name):
        for session in sessions(corpus):
            assert 8 <= len(session) <= 20
            assert all(20 <= when(b) - when(a) <= 60 for a, b in pairwise(session))
        starts = [when(session[0]) for session in sessions(corpus)]
        assert all(later - earlier > 2 * 86_400 for earlier, later in pairwise(starts))


@every_case("name", [*DIALOGUES, *ASSISTANTS])
def test_a_dialogue_has_two_speakers_and_is_asked_about_after_its_end(name: str) -> None:
    for corpus in read(name):
        assert len({item.speaker for item in corpus.items}) == 2
        assert all(item.speaker for item in corpus.items)
        assert corpus.asked is not None
        assert corpus.asked > when(corpus.items[-1])


@every_case("name", DIALOGUES)
def test_a_dialogue_is_asked_all_kinds_of_questions(name: str) -> None:
    kinds = Counter(question.category for corpus in read(name) for question in corpus.questions)
    assert set(kinds) == {"single-hop", "multi-hop", "temporal", "vague", "name"}
    assert min(kinds.values()) >= 10
    several = [q for c in read(name) for q in c.questions if q.category == "multi-hop"]
    assert all(len(question.evidence) > 1 for question in several)


@every_case("name", ASSISTANTS)
def test_a_user_and_an_assistant_take_turns_in_sessions_over_months(name: str) -> None:
    conversations = json.loads((FOLDER / f"{name}.json").read_text(encoding="utf-8"))["conversations"]
    assert len(conversations) == 4
    for conversation in conversations:
        turns = conversation["turns"]
        assert 60 <= len(turns) <= 90
        assert 60 <= (turns[-1]["t"] - turns[0]["t"]) / 86_400 <= 130
        held = [list(session) for _, session in groupby(turns, key=lambda turn: turn["session"])]
        assert 4 <= len(held) <= 6
        for session in held:
            assert [turn["speaker"] for turn in session] == ["user", "assistant"] * (len(session) // 2)
            assert all(0 < b["t"] - a["t"] < SITTING for a, b in pairwise(session))


@every_case("name", ASSISTANTS)
def test_an_assistant_is_asked_for_its_advice_and_for_what_the_user_told(name: str) -> None:
    for corpus in read(name):
        speakers = {item.id: item.speaker for item in corpus.items}
        said = {
            kind: {speakers[id_] for q in corpus.questions if q.category == kind for id_ in q.evidence}
            for kind in {question.category for question in corpus.questions}
        }
        assert said.pop("two-part") <= {"user", "assistant"}
        assert said.pop("advice") == {"assistant"}
        assert said == {kind: {"user"} for kind in ("single", "update", "multi", "when", "preference")}
        several = [q for q in corpus.questions if q.category in {"multi", "two-part"}]
        assert all(len(question.evidence) > 1 for question in several)


@every_case("name", FACTS)
def test_a_fact_stands_by_itself(name: str) -> None:
    (corpus,) = read(name)
    assert all(item.speaker is None and item.created_at is None for item in corpus.items)
    assert all(item.said == item.text for item in corpus.items)
    assert {question.category for question in corpus.questions} >= {"look-alike", "vague", "name"}


@every_case("name", FACTS)
def test_a_fact_has_a_kind_that_records_have(name: str) -> None:
    turns = json.loads((FOLDER / f"{name}.json").read_text(encoding="utf-8"))["conversations"][0]["turns"]
    assert {turn["kind"] for turn in turns} <= set(KINDS)
