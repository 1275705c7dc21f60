"""What a search of a SQLite store has read once is read again only where it changed."""

from dataclasses import replace
from pathlib import Path

from supervisor_memory.model.records import Filter, Query, Record
from supervisor_memory.stores.protocol import Change, Commit
from supervisor_memory.stores.sqlite.namespaces import Kept
from supervisor_memory.stores.sqlite.store import SqliteBackend
from supervisor_memory.testing.ports import record


def found(store: SqliteBackend, user: str = "alice") -> dict[str, str]:
    query = Query("tea", Filter(user), ("tea",))
    return {hit.record.id: hit.record.content for hit in store.search(query, limit=10)}


def test_of_a_namespace_that_grew_each_record_is_as_it_is_now(tmp_path: Path) -> None:
    first, second, third = (record(f"tea {n}") for n in range(3))
    with_both = {each.id: each.content for each in (first, second)}
    store = SqliteBackend(tmp_path)
    store.write([first, second])
    assert found(store) == with_both
    store.write([third])
    changed = replace(second, content="tea with milk", content_hash="", version=2)
    store.batch(Commit((Change(changed, expects=1),), ()))
    assert found(store) == {**with_both, second.id: "tea with milk", third.id: "tea 2"}
    store.delete([first.id])
    assert found(store) == {second.id: "tea with milk", third.id: "tea 2"}
    store.close()


def test_another_process_that_changes_a_record_is_read(tmp_path: Path) -> None:
    kept: list[Record] = [record(f"tea {n}") for n in range(2)]
    store, other = SqliteBackend(tmp_path), SqliteBackend(tmp_path)
    store.write(kept)
    assert len(found(store)) == len(kept)
    changed = replace(kept[0], content="tea with milk", content_hash="", version=2)
    other.batch(Commit((Change(changed, expects=1),), ()))
    other.write([record("tea 3")])
    assert sorted(found(store).values()) == ["tea 1", "tea 3", "tea with milk"]
    store.close()
    other.close()


def test_the_key_of_a_record_is_known_as_long_as_the_record_is_there_as_it_was() -> None:
    kept, first, other = Kept(), record("tea"), record("juice")
    kept.keep({7: (first, "alice", 3)})
    assert kept.keys_of([first.id, other.id], {"alice": 3}) == {first.id: 7}
    assert kept.keys_of([first.id], {"alice": 4}) == {}
    kept.keep({7: (other, "alice", 4)})
    assert kept.keys_of([first.id, other.id], {"alice": 4}) == {other.id: 7}
