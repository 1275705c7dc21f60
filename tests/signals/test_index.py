"""The index of a namespace: whatever was done to it, it is as if it had been built afresh."""

from collections.abc import Mapping
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from supervisor_memory.model.records import Source
from supervisor_memory.signals import index as index_module
from supervisor_memory.signals.index import GAP_SECONDS, Entry, Index, Postings, entry_of, information
from supervisor_memory.testing.clock import MONDAY
from supervisor_memory.testing.ports import record
from tests.cases import every_case

KEYS = range(12)
TERMS = ("tea", "green", "lisbon", "绿茶", "喝绿")
ENTRIES = st.builds(
    Entry,
    terms=st.frozensets(st.sampled_from(TERMS)),
    said_at=st.sampled_from([0.0, 60.0, GAP_SECONDS, 2 * GAP_SECONDS, 5 * GAP_SECONDS, 1e9]),
    stream=st.sampled_from([None, "", "s1", "s2"]),
    speaker=st.sampled_from([None, "Ann", "Bob"]),
    asks=st.booleans(),
)
STEPS = st.lists(
    st.tuples(
        st.sampled_from(["put", "put", "put", "drop", "compact", "settle"]), st.sampled_from(KEYS), ENTRIES
    ),
    max_size=60,
)


def known(index: Index) -> dict[str, Any]:
    """All that a search can tell of an index, by key."""
    index.settle()
    rows = {key: index.row(key) for key in sorted(index.living_keys())}
    alive = {key: row for key, row in rows.items() if row is not None}
    names = {number: name for name, number in index.names.items()}
    key_of = {row: key for key, row in alive.items()} | {-1: None}
    episodes: dict[int, set[int]] = {}
    for key, row in alive.items():
        episodes.setdefault(int(index.episodes[row]), set()).add(key)
    return {
        "size": (len(index), index.total_terms, index.has_streams),
        "holders": {term: {key_of[int(row)] for row in index.holders(term)} for term in TERMS},
        "lengths": {key: int(index.lengths[row]) for key, row in alive.items()},
        "said_at": {key: float(index.said_at[row]) for key, row in alive.items()},
        "asks": {key: bool(index.asks[row]) for key, row in alive.items()},
        "speakers": {key: names.get(int(index.speakers[row])) for key, row in alive.items()},
        "before": {key: key_of[int(index.before[row])] for key, row in alive.items()},
        "after": {key: key_of[int(index.after[row])] for key, row in alive.items()},
        "facts": episodes.pop(-1, set()),
        "episodes": sorted(map(sorted, episodes.values())),
    }


def afresh(entries: Mapping[int, Entry]) -> Index:
    index = Index()
    for key in sorted(entries):
        index.put(key, entries[key])
    return index


def loaded(entries: Mapping[int, Entry]) -> Index:
    """The same, filled at once."""
    index = Index()
    index.load(sorted(entries.items()))
    return index


@given(STEPS)
def test_after_any_changes_it_is_as_if_it_had_been_built_afresh(steps: list[tuple[str, int, Entry]]) -> None:
    index, entries = Index(), dict[int, Entry]()
    for what, key, entry in steps:
        if what == "put":
            index.put(key, entry)
            entries[key] = entry
        elif what == "drop":
            index.drop(key)
            entries.pop(key, None)
        elif what == "compact":
            index.compact()
        else:
            index.settle()
    assert known(index) == known(afresh(entries))


@given(st.dictionaries(st.integers(0, 60), ENTRIES, max_size=40))
def test_filled_at_once_it_is_as_if_each_had_been_put(entries: dict[int, Entry]) -> None:
    assert known(loaded(entries)) == known(afresh(entries))


@given(st.dictionaries(st.integers(0, 60), ENTRIES, max_size=30), STEPS)
def test_filled_at_once_it_can_be_changed(
    entries: dict[int, Entry], steps: list[tuple[str, int, Entry]]
) -> None:
    index = loaded(entries)
    for what, key, entry in steps:
        if what == "put":
            index.put(key, entry)
            entries[key] = entry
        elif what == "drop":
            index.drop(key)
            entries.pop(key, None)
        elif what == "compact":
            index.compact()
    assert known(index) == known(afresh(entries))


@given(st.dictionaries(st.integers(0, 60), ENTRIES, max_size=40))
def test_how_much_a_record_can_tell_is_a_share(entries: dict[int, Entry]) -> None:
    index = afresh(entries)
    index.settle()
    told = information(index)
    assert len(told) == index.size
    assert ((told >= 0) & (told <= 1)).all()


def said(text: str, seconds: float, *, session: str | None = "s1", speaker: str | None = None) -> Entry:
    source = Source(session_id=session, speaker=speaker)
    return entry_of(record(text, layer="history", now=MONDAY + seconds, source=source))


def test_after_half_an_hour_of_silence_a_new_episode_begins() -> None:
    index = afresh({0: said("a", 0), 1: said("b", 1_800), 2: said("c", 3_601)})
    index.settle()
    assert list(index.episodes[:3]) == [0, 0, 1]
    assert list(index.before[:3]) == [-1, 0, -1]


def test_what_is_stored_late_takes_its_place_in_time() -> None:
    index = afresh({0: said("first", 0), 1: said("third", 120)})
    index.put(2, said("second", 60))
    index.settle()
    assert list(index.before[:3]) == [-1, 2, 0]
    assert list(index.after[:3]) == [2, -1, 1]


def test_sessions_do_not_mix() -> None:
    index = afresh({n: said("a", n, session=f"s{n % 2}") for n in range(6)})
    index.settle()
    assert list(index.before[:6]) == [-1, -1, 0, 1, 2, 3]


@every_case("count", [3, 40])
def test_facts_have_no_neighbours_however_many_they_are(count: int) -> None:
    entries = {n: entry_of(record(f"fact {n}", source=Source(session_id="s"))) for n in range(count)}
    for index in (afresh(entries), loaded(entries)):
        index.settle()
        assert not index.has_streams
        for column in (index.before, index.after, index.episodes):
            assert set(column[:count].tolist()) == {-1}


@every_case("text", ["Where?", "你去哪儿了？", "“Where to?”", "（去吗？）", "Really? \n"])
def test_a_question_is_told_in_both_languages_and_in_quotes(text: str) -> None:
    assert entry_of(record(text)).asks
    assert not entry_of(record(text.replace("?", ".").replace("？", "。"))).asks


def test_roles_are_nobodys_names() -> None:
    assert said("a", 0, speaker="user").speaker is None
    assert said("a", 0, speaker="Ann").speaker == "Ann"
    assert entry_of(record("a", source=Source(speaker="Ann"))).speaker is None


def test_rows_of_removed_records_are_given_up_when_they_are_most() -> None:
    index = afresh({n: said(f"a {n}", n) for n in range(200)})
    for key in range(180):
        index.drop(key)
    assert index.is_sparse
    index.compact()
    assert (index.size, len(index), index.is_sparse) == (20, 20, False)
    assert index.nbytes > 0


def test_a_session_whose_turns_are_all_gone_begins_anew_after_compaction() -> None:
    index = Index()
    for key in range(70):
        index.put(key, Entry(terms=(f"turn{key}",), said_at=float(key), stream="s"))
    for key in range(100, 160):
        index.put(key, Entry(terms=(f"fact{key}",), said_at=0.0))
    index.settle()
    for key in range(70):
        index.drop(key)
    assert index.is_sparse
    index.compact()
    row = index.put(200, Entry(terms=("yes",), said_at=71.0, stream="s"))
    index.settle()
    assert int(index.before[row]) == -1
    assert (index.after[: index.size] == -1).all()


def test_who_said_nothing_that_is_left_is_no_speaker() -> None:
    index = Index()
    index.put(1, Entry(terms=("a",), said_at=1.0, stream="", speaker="Natalie"))
    index.put(2, Entry(terms=("b",), said_at=2.0, stream="", speaker="Natasha"))
    index.drop(2)
    assert set(index.names) == {"Natalie"}


def test_where_many_rows_came_since_they_are_merged_into_the_block(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(index_module, "_FEW", 4)
    postings = Postings()
    for row in range(4):
        postings.add(row, {"tea"})
    postings.fold_some()
    assert "tea" not in postings._number_of
    postings.add(4, {"tea", "green"})
    postings.fold_some()
    assert not postings._later
    assert postings.rows("tea").tolist() == [0, 1, 2, 3, 4]
    assert postings.rows("green").tolist() == [4]
