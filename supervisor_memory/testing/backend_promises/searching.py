"""Promises of a backend: searching by words and by vectors."""

from dataclasses import replace

import numpy as np
import pytest

from supervisor_memory.errors import BadVector
from supervisor_memory.language.terms import terms
from supervisor_memory.model.records import Filter, Query, Record, Source
from supervisor_memory.stores.protocol import Change, MemoryBackend
from supervisor_memory.testing.records import (
    DIMENSION,
    EMBEDDER,
    NOW,
    ODD_TEXTS,
    changed,
    contents,
    direction,
    embedded,
    everything,
    query,
    tea,
    ways,
    with_vector,
    written,
)


class Searching:
    """Tests of the hits of a search, their order and their scores."""

    # Searching

    def test_only_active_records_are_found_and_only_until_they_expire(self, backend: MemoryBackend) -> None:
        statuses = ("active", "pending", "stale", "compressed", "quarantined", "deleted")
        backend.write([embedded(f"tea {s}", status=s) for s in statuses])
        backend.write([embedded("tea soon gone", expires_at=NOW + 10)])
        for now, expected in (
            (NOW, ["tea active", "tea soon gone"]),
            (NOW + 10, ["tea active"]),
            (NOW + 1e9, ["tea active"]),
        ):
            found = backend.search(query(now=now, vector=direction(0), statuses=None), limit=50)
            assert contents(found) == expected

    def test_expired_records_do_not_crowd_out_others(self, backend: MemoryBackend) -> None:
        gone = [embedded(f"tea tea {n}", expires_at=NOW - 1) for n in range(200)]
        backend.write([*gone, with_vector(tea("some tea at last"), direction(0) + direction(1))])
        assert contents(backend.search(query(vector=direction(0)), limit=1)) == ["some tea at last"]

    def test_words_of_when_to_use_it_find_a_record_beside_its_own(self, backend: MemoryBackend) -> None:
        steps = tea("close the books first", metadata={"use_when": "the quarterly report is asked for"})
        backend.write([steps, tea()])
        for asked in ("books", "quarterly"):
            assert contents(backend.search(query(asked), limit=5)) == ["close the books first"]
        backend.update([Change(replace(steps, metadata={"use_when": "someone travels"}), expects=1)])
        assert contents(backend.search(query("travels"), limit=5)) == ["close the books first"]
        assert not backend.search(query("quarterly"), limit=5)

    def test_hits_carry_the_parts_that_are_known(self, backend: MemoryBackend) -> None:
        backend.write(
            [
                embedded("both tea"),
                tea("words tea"),
                with_vector(tea("meaning"), direction(0) + direction(1)),
                with_vector(tea("opposite"), -direction(0)),
            ]
        )
        hits = backend.search(query(vector=direction(0)), limit=9)
        parts = {hit.record.content: hit.parts for hit in hits}
        assert ways(hits) == {
            "both tea": {"cosine", "bm25"},
            "words tea": {"bm25"},
            "meaning": {"cosine"},
            "opposite": {"cosine"},
        }
        cosines = {name: values["cosine"] for name, values in parts.items() if "cosine" in values}
        assert cosines == pytest.approx({"both tea": 1.0, "meaning": 2**-0.5, "opposite": -1.0}, abs=1e-6)
        assert all(values["bm25"] > 0 for values in parts.values() if "bm25" in values)
        matches = {name: values["match"] for name, values in parts.items()}
        assert min(matches.values()) >= 0
        assert max(matches, key=lambda name: matches[name]) == "both tea"

    def test_a_hit_found_one_way_carries_the_other_part_too(self, backend: MemoryBackend) -> None:
        near = [embedded(f"near {n}") for n in range(5)]
        far = [embedded(f"far tea tea {n}", axis=1) for n in range(5)]
        middle = embedded("middle " + "word " * 50 + "tea")
        backend.write([*near, *far, middle])
        for hit in backend.search(query(vector=direction(0)), limit=6):
            assert "cosine" in hit.parts
            assert ("bm25" in hit.parts) == ("tea" in hit.record.content)

    def test_the_limit_is_kept_but_for_the_very_best_by_meaning_and_by_words(
        self, backend: MemoryBackend
    ) -> None:
        backend.write([embedded(f"number {n}") for n in range(30)])
        backend.write([tea(f"tea {n}") for n in range(30)])
        for limit in (1, 7, 100):
            found = backend.search(query(vector=direction(0)), limit=limit)
            assert min(limit, 60) <= len(found) <= min(limit + 2 * max(1, limit // 4), 60)
            assert {"cosine", "bm25"} == {way for known in ways(found).values() for way in known}
            assert len({hit.record.id for hit in found}) == len(found)
        for limit in (0, -1):
            assert not backend.search(query(vector=direction(0)), limit=limit)

    def test_what_agrees_in_meaning_and_in_words_is_found_before_what_has_one_of_them(
        self, backend: MemoryBackend
    ) -> None:
        backend.write([with_vector(tea(f"number {n}"), direction(0) + direction(1)) for n in range(9)])
        backend.write([tea(f"tea {n} and many other words beside it") for n in range(9)])
        backend.write([with_vector(tea("both, of tea"), direction(0) + direction(2))])
        hits = backend.search(query(vector=direction(0)), limit=4)
        assert max(hits, key=lambda hit: hit.parts["match"]).record.content == "both, of tea"

    def test_of_two_alike_the_users_words_match_better_than_an_assistants(
        self, backend: MemoryBackend
    ) -> None:
        def said(text: str, seconds: float, source: Source) -> Record:
            return tea(
                text, layer="history", source=source, created_at=NOW + seconds, updated_at=NOW + seconds
            )

        agent = Source("agent", session_id="s1")
        spoken = [said("tea from Lisbon", 60, agent), said("tea of Lisbon", 9_000, Source(session_id="s1"))]
        backend.write(
            [*spoken, said("some tea in Lisbon", 20_000, Source(session_id="s2", speaker="assistant"))]
        )
        found = {hit.record.content: hit.parts["match"] for hit in backend.search(query("Lisbon"), limit=9)}
        assert max(found, key=found.__getitem__) == "tea of Lisbon"
        assert found["tea of Lisbon"] - found["tea from Lisbon"] == pytest.approx(0.25, abs=0.01)

    def test_an_answer_is_found_by_the_question_before_it(self, backend: MemoryBackend) -> None:
        def said(text: str, seconds: float, session: str = "s1", speaker: str = "Ann") -> Record:
            when = NOW - 1e6 + seconds
            where = Source(session_id=session, speaker=speaker)
            vector = direction(0) if "Lisbon" in text else direction(3)
            return with_vector(
                tea(text, layer="history", source=where, created_at=when, updated_at=when), vector
            )

        backend.write(
            [
                said("Where in Lisbon did you stay?", 0),
                said("At a little inn by the river.", 60, speaker="Bob"),
                said("An aunt has room for us.", 30, session="s2"),
                said("Nothing much, to be honest.", 7_200),
            ]
        )
        hits = backend.search(query("Lisbon", vector=direction(0)), limit=9)
        parts = {hit.record.content: hit.parts for hit in hits}
        assert [text for text, known in parts.items() if "answer" in known] == [
            "At a little inn by the river."
        ]
        assert not {"neighbour", "context"} & {*parts.get("An aunt has room for us.", ())}

    def test_rarer_words_count_for_more(self, backend: MemoryBackend) -> None:
        backend.write([tea(f"drink number {n}") for n in range(20)])
        backend.write([tea("drink tea"), tea("drink tea tea tea"), tea("drink mango juice")])
        scores = {h.record.content: h.parts["bm25"] for h in backend.search(query("drink tea"), limit=50)}
        assert scores["drink tea"] > scores["drink mango juice"]
        assert scores["drink tea tea tea"] >= scores["drink tea"]
        assert contents(backend.search(query("drink mango"), limit=1)) == ["drink mango juice"]

    def test_a_short_record_is_not_buried_under_long_ones(self, backend: MemoryBackend) -> None:
        backend.write([tea("tea"), tea("tea " + " ".join(f"other{n}" for n in range(200)))])
        scores = [
            hit.parts["bm25"]
            for hit in sorted(backend.search(query(), limit=5), key=lambda h: len(h.record.content))
        ]
        assert scores[0] > scores[1]

    def test_other_users_do_not_change_a_score(self, backend: MemoryBackend) -> None:
        backend.write([tea("green tea"), tea("black coffee")])
        before = backend.search(query(), limit=5)[0].parts["bm25"]
        backend.write([tea(f"tea {n}", user=f"user {n % 200}") for n in range(400)])
        assert backend.search(query(), limit=5)[0].parts["bm25"] == pytest.approx(before)

    def test_chinese_is_found_by_pairs_of_characters(self, backend: MemoryBackend) -> None:
        backend.write([tea("用户喜欢喝绿茶"), tea("用户住在上海"), tea("海上有风")])
        assert contents(backend.search(query("上海"), limit=5)) == ["用户住在上海"]
        assert contents(backend.search(query("他爱喝绿茶吗"), limit=5)) == ["用户喜欢喝绿茶"]

    def test_names_with_underscores_are_found(self, backend: MemoryBackend) -> None:
        backend.write([tea("use arr_delay for lateness"), tea("use dep_time")])
        assert contents(backend.search(query("arr_delay"), limit=5)) == ["use arr_delay for lateness"]

    def test_a_search_for_nothing_finds_nothing(self, backend: MemoryBackend) -> None:
        backend.write([embedded()])
        for text in ("", " ", "!?", "the of and", "nothing alike"):
            assert not backend.search(query(text), limit=5)

    def test_odd_queries_do_not_fail(self, backend: MemoryBackend) -> None:
        backend.write([tea("tea " + text[:100]) for text in ODD_TEXTS])
        for text in (
            *('"', "'", "tea\x00", "a OR b", "NEAR("),
            *("body:tea", "*", "^tea", "\ud800", "tea " * 5000),
        ):
            odd = (text, text * 2, "tea", "\x00", "")
            where = Filter(user_id="alice")
            assert len(backend.search(Query(text, where, odd), limit=50)) == len(ODD_TEXTS)
            assert backend.search(Query(text, where, terms(text)), limit=50) is not None
        many = tuple(f"word{number}" for number in range(5000))
        assert not backend.search(Query("many", Filter(user_id="alice"), many), limit=5)

    # Vectors

    def test_vectors_of_two_embedders_are_never_compared(self, backend: MemoryBackend) -> None:
        backend.write([with_vector(tea("old tea"), direction(0), "old@1/8"), embedded("new tea")])
        found = backend.search(query(vector=direction(0)), limit=5)
        assert ways(found) == {"new tea": {"cosine", "bm25"}, "old tea": {"bm25"}}
        found = backend.search(query("nothing", vector=direction(0), embedder="other@1/8"), limit=5)
        assert not found

    def test_vectors_of_two_lengths_are_never_compared(self, backend: MemoryBackend) -> None:
        backend.write([with_vector(tea("long"), direction(0, dimension=16)), embedded("short")])
        for dimension, expected in ((8, ["short"]), (16, ["long"]), (4, [])):
            vector = direction(0, dimension=dimension)
            assert contents(backend.search(query("nothing", vector=vector), limit=5)) == expected

    def test_bad_vectors_are_refused(self, backend: MemoryBackend) -> None:
        bad = (
            np.zeros(DIMENSION, dtype=np.float32),
            np.full(DIMENSION, np.inf, dtype=np.float32),
            np.eye(DIMENSION, dtype=np.float32),
            np.zeros(0, dtype=np.float32),
        )
        for vector in bad:
            with pytest.raises(BadVector):
                backend.write([with_vector(tea(), vector)])
        with pytest.raises(BadVector):
            backend.write([replace(tea(), vector=direction(0))])  # of no embedder
        assert not everything(backend)

    def test_an_update_without_a_vector_keeps_the_stored_one(self, backend: MemoryBackend) -> None:
        record = written(backend, embedded())
        backend.update([changed(backend.get([record.id])[0], importance=0.9)])
        assert backend.search(query("nothing", vector=direction(0)), limit=5)[0].parts[
            "cosine"
        ] == pytest.approx(1)

    def test_an_update_can_bring_a_vector_or_drop_it(self, backend: MemoryBackend) -> None:
        record = written(backend, tea())
        search = query("nothing", vector=direction(1))
        for vector, embedder, expected in (
            (direction(1), EMBEDDER, [1.0]),
            (direction(2), EMBEDDER, [0.0]),
            (None, None, []),
            (direction(1), EMBEDDER, [1.0]),
            (direction(1), "other@1/8", []),
            (None, EMBEDDER, []),  # the stored one is of another embedder: nothing to keep
        ):
            current = backend.get([record.id])[0]
            backend.update([changed(current, vector=vector, embedder=embedder)])
            assert [hit.parts["cosine"] for hit in backend.search(search, limit=5)] == expected
        assert backend.get([record.id])[0].embedder is None

    def test_another_vector_alone_is_no_new_version(self, backend: MemoryBackend) -> None:
        record = written(backend, embedded(metadata={"n": 1}))
        for embedder in (EMBEDDER, "other@1/8", EMBEDDER):
            vector = direction(1)
            (result,) = backend.update([changed(record, vector=vector, embedder=embedder)])
            assert result.version == 1
            assert backend.get([record.id]) == (replace(record, embedder=embedder),)
            assert len(backend.versions(record.id)) == 1
            (event,) = (row.event for row in backend.audit.tail(1, op="memory.update"))
            assert (event["version_before"], event["version_after"]) == (1, 1)
            found = backend.search(query("nothing", vector=vector, embedder=embedder), limit=5)
            assert [hit.parts["cosine"] for hit in found] == [pytest.approx(1.0)]
        backend.update([changed(record, vector=direction(2), importance=0.9)])
        assert [(v.version, v.importance) for v in backend.versions(record.id)] == [(1, 0.5), (2, 0.9)]
