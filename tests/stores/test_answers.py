"""Answers that SQLite keeps: as right as a search, whoever commits in between."""

from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest

from supervisor_memory.language.terms import terms
from supervisor_memory.model.records import Filter, Hits, Query, Record, new_id
from supervisor_memory.stores.protocol import Change
from supervisor_memory.stores.sqlite import store as sqlite
from supervisor_memory.stores.sqlite.store import SqliteBackend

NOW = 1_767_571_200.0


@pytest.fixture
def backend(tmp_path: Path) -> Iterator[SqliteBackend]:
    with_answers = SqliteBackend(tmp_path)
    yield with_answers
    with_answers.close()


def record(content: str, **values: object) -> Record:
    made = Record(new_id(), ("domain_facts", "ada"), content, "domain-facts", NOW, NOW)
    return replace(made, **values)  # type: ignore[arg-type]  # whatever a test needs


def asked(backend: SqliteBackend, text: str = "flights", *, now: float = NOW) -> Hits:
    query = Query(text, Filter(user_id="ada", tasks=(None,)), terms=terms(text), now=now)
    return backend.search(query, limit=10)


def contents(hits: Hits) -> list[str]:
    return sorted(hit.record.content for hit in hits)


def test_asking_again_gives_the_same_answer(backend: SqliteBackend) -> None:
    backend.write([record("late flights"), record("flights")])
    assert asked(backend) == asked(backend)
    assert len(asked(backend)) == 2


def test_a_commit_of_anybody_changes_the_answer(backend: SqliteBackend, tmp_path: Path) -> None:
    first = record("late flights")
    backend.write([first])
    assert contents(asked(backend)) == ["late flights"]
    other = SqliteBackend(tmp_path)
    other.write([record("early flights")])
    assert contents(asked(backend)) == ["early flights", "late flights"]
    other.update([Change(replace(first, content="cancelled flights"), expects=1)])
    assert contents(asked(backend)) == ["cancelled flights", "early flights"]
    other.delete([first.id])
    assert contents(asked(backend)) == ["early flights"]
    other.close()


def test_what_is_told_of_a_message_is_listed_as_it_is_whoever_commits(
    backend: SqliteBackend, tmp_path: Path
) -> None:
    message, first, second = new_id(), record("late flights"), record("early flights")
    backend.write([replace(first, ref_id=message)])
    told_of = Filter("ada", statuses=None, ref_ids=(message,))
    assert [each.id for each in backend.list(told_of, limit=1_000)] == [first.id]
    other = SqliteBackend(tmp_path)
    other.write([replace(second, ref_id=message)])
    assert {each.id for each in backend.list(told_of, limit=1_000)} == {first.id, second.id}
    other.delete([first.id])
    statuses = {each.id: each.status for each in backend.list(told_of, limit=1_000)}
    assert statuses == {first.id: "deleted", second.id: "active"}
    other.close()


def test_what_expires_is_not_found_any_more(backend: SqliteBackend) -> None:
    backend.write([record("late flights", expires_at=NOW + 10), record("flights")])
    assert contents(asked(backend, now=NOW)) == ["flights", "late flights"]
    assert contents(asked(backend, now=NOW + 9)) == ["flights", "late flights"]
    assert contents(asked(backend, now=NOW + 10)) == ["flights"]
    assert contents(asked(backend, now=NOW + 9)) == ["flights", "late flights"]


def test_an_answer_from_a_transaction_is_not_kept(backend: SqliteBackend) -> None:
    backend.write([record("late flights")])

    def undone() -> None:
        with backend.database.writing():
            backend.write([record("early flights")])
            assert contents(asked(backend)) == ["early flights", "late flights"]
            raise LookupError

    with pytest.raises(LookupError):
        undone()
    assert contents(asked(backend)) == ["late flights"]


def test_other_questions_users_and_limits_have_their_own_answers(backend: SqliteBackend) -> None:
    backend.write([record(f"late flights {n}") for n in range(5)])
    assert len(asked(backend)) == 5
    assert len(asked(backend, "trains")) == 0
    where = Filter(user_id="bob", tasks=(None,))
    assert not backend.search(Query("flights", where, terms=("flight",), now=NOW), limit=10)
    where = Filter(user_id="ada", tasks=(None,))
    assert len(backend.search(Query("flights", where, terms=("flight",), now=NOW), limit=2)) == 2


def test_an_answer_that_no_longer_holds_is_let_go_with_the_next_one(backend: SqliteBackend) -> None:
    backend.write([record("late flights"), replace(record("flights"), namespace=("domain_facts", "bob"))])
    for user in ("ada", "bob"):
        backend.search(Query("flights", Filter(user_id=user), terms=("flight",), now=NOW), limit=10)
    backend.write([record("early flights")])
    assert len(backend._known.answers._answers) == 2
    asked(backend, "early flights")
    held = [hit.record.content for each in backend._known.answers._answers.values() for hit in each.found]
    assert sorted(held) == ["early flights", "flights", "late flights"]


def test_a_namespace_that_another_handle_made_or_erased_is_noticed_at_once(
    backend: SqliteBackend, tmp_path: Path
) -> None:
    other = SqliteBackend(tmp_path)
    for _ in range(3):
        assert (len(asked(backend)), asked(backend).namespaces) == (0, 0)
        other.write([record("late flights")])
        assert contents(asked(backend)) == ["late flights"]
        other.erase("ada", at=NOW)
    assert asked(backend).namespaces == 0
    other.close()


def test_more_filters_may_be_asked_for_than_are_kept(
    backend: SqliteBackend, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sqlite, "_FILTERS", 2)
    backend.write([record(f"flights {n}", tags=(f"tag-{n}",)) for n in range(5)])
    for n in (*range(5), *range(5)):
        where = Filter(user_id="ada", tags=(f"tag-{n}",))
        found = backend.search(Query("flights", where, terms=("flight",), now=NOW), limit=2)
        assert contents(found) == [f"flights {n}"]


def test_nobody_adds_to_a_record_or_to_what_it_was_found_for(backend: SqliteBackend) -> None:
    backend.write([record("late flights", metadata={"path": ["a"]})])
    with pytest.raises(TypeError, match=r"belongs to a record.*memory\.update"):
        asked(backend)[0].record.metadata["added"] = True  # type: ignore[index]
    with pytest.raises(TypeError):
        asked(backend)[0].record.metadata["path"].append("b")
    with pytest.raises(TypeError):
        asked(backend)[0].parts["added"] = 1.0  # type: ignore[index]
    assert asked(backend)[0].record.metadata == {"path": ["a"]}
