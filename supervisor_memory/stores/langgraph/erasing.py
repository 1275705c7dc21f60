"""Erases a user from a LangGraph store item by item, and proves it by reading again."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import suppress
from typing import Final

from langgraph.store.base import GetOp, Item, PutOp

from supervisor_memory.audit.log import AuditLog
from supervisor_memory.errors import CorruptStore
from supervisor_memory.model.records import Record
from supervisor_memory.stores.langgraph.calls import StoreCalls
from supervisor_memory.stores.langgraph.items import Found, Layout, label, part_of, put
from supervisor_memory.stores.remote_erasing import Answers, Held, RemoteErasing, Tombstone, is_doomed

_OUT_OF_REACH: Final = (
    "the database behind the LangGraph store: its free pages or dead rows until it is vacuumed, its log and "
    "its replicas",
)
_REMOVED_TOGETHER: Final = 500
_SAID: Final = "said-"


class StoreErasing(RemoteErasing):
    """Erases users from the items below a prefix."""

    def __init__(
        self, calls: StoreCalls, layout: Layout, audit: AuditLog, clock: Callable[[], float]
    ) -> None:
        super().__init__(audit, clock)
        self._calls, self._layout = calls, layout
        if not calls.is_volatile:
            self.out_of_reach = _OUT_OF_REACH

    def gets(self, ops: Sequence[GetOp], new: Sequence[Record]) -> Sequence[Item | None]:
        """Read items and, in the same call, the tombstones needed to refuse the new records.

        Raises:
            WasErased: a new record was said before its user was erased.
        """
        read: list[Item | None] = []

        def asking(names: Sequence[str]) -> Answers:
            items = self._calls.gets([*ops, *self._tombstone_reads(names)])
            read[:] = items[: len(ops)]
            return self._answers(names, items[len(ops) :])

        if not new:
            return self._calls.gets(ops)
        self.refuse_erased(new, asking)
        return read

    def mark(self, record_id: str) -> str:
        return _SAID + super().mark(record_id)

    def _all_held(self, user_id: str) -> Held:
        with self._calls.alone():
            items = list(self._items(user_id))
        records: dict[str, Found] = {}
        versions = 0
        for item in items:
            with suppress(CorruptStore):  # it goes all the same
                if self._part(item) == "versions":
                    versions += 1
                elif self._part(item) != "owners" and (found := self._layout.found(item)) is not None:
                    records[found.record.id] = found
        return Held(
            [each.record for each in records.values()],
            versions,
            sum(each.vector is not None for each in records.values()),
            {self._key(item): _said_at(item) for item in items},
        )

    def _make_secret(self, secret: str) -> None:
        with self._calls.alone():
            if self._read([])[0] is None:
                self._calls.puts([put(self._layout.secret, {"secret": secret})])

    def _read(self, names: Sequence[str]) -> Answers:
        with self._calls.alone():
            return self._answers(names, self._calls.gets(self._tombstone_reads(names)))

    def _tombstones(self) -> Mapping[str, Tombstone]:
        with self._calls.alone():
            items = self._calls.items(self._layout.tombstones)
        return {item.key: _tombstone(item) for item in items if item.key != self._layout.secret.key}

    def _put(self, name: str, tombstone: Tombstone) -> None:
        values = {"erased_at": tombstone.at, "erasure": tombstone.erasure, **tombstone.to_dict()}
        with self._calls.alone():
            self._calls.puts([put(self._tombstone_read(name), values)])

    def _close(self, name: str, tombstone: Tombstone) -> None:
        with self._calls.alone():
            now = self._read([name])[1].get(name)
            if now is not None and now.erasure == tombstone.erasure:
                self._put(name, tombstone)

    def _sweep(self, user_id: str, tombstone: Tombstone) -> Sequence[str]:
        with self._calls.alone():
            doomed = self._doomed(user_id, tombstone)
            said = [each for each in doomed if each.value.get("layer") == "history"]
            marks = [self.mark(str(each.value.get("id"))) for each in said if self._part(each) != "versions"]
            self._write([put(self._tombstone_read(name), {}) for name in marks])
            self._write([PutOp(item.namespace, item.key, None) for item in doomed])
            gone = self._calls.gets([GetOp(item.namespace, item.key, refresh_ttl=False) for item in doomed])
            still = [*gone, *self._doomed(user_id, tombstone)]
        left = {self._key(item) for item in still if item is not None}
        return [f"{len(left)} items of the user are still in {self._calls.name}"] if left else ()

    def _doomed(self, user_id: str, tombstone: Tombstone) -> Sequence[Item]:
        return [
            item for item in self._items(user_id) if is_doomed(self._key(item), _said_at(item), tombstone)
        ]

    def _items(self, user_id: str) -> Iterator[Item]:
        """All items of a user; versions and owners last, for an erasure cut off finds the rest by them."""
        for namespace in self._layout.of_user(user_id):
            yield from self._calls.items(namespace)
        for item in self._calls.items(self._layout.owners, where={"user": user_id}):
            if item.value.get("user") == user_id:
                yield item

    def _write(self, ops: Sequence[PutOp]) -> None:
        for start in range(0, len(ops), _REMOVED_TOGETHER):
            self._calls.puts(ops[start : start + _REMOVED_TOGETHER])

    def _tombstone_reads(self, names: Sequence[str]) -> Sequence[GetOp]:
        return [self._layout.secret, *(self._tombstone_read(name) for name in names)]

    def _tombstone_read(self, name: str) -> GetOp:
        return self._layout.mark(name) if name.startswith(_SAID) else self._layout.tombstone(name)

    def _answers(self, names: Sequence[str], items: Sequence[Item | None]) -> Answers:
        secret, *stones = items
        found = {name: _tombstone(item) for name, item in zip(names, stones, strict=True) if item is not None}
        return None if secret is None else str(secret.value.get("secret")), found

    def _keys(self, record: Record) -> Iterator[str]:
        for part in (part_of(record), "owners"):
            yield f"{part}/{label(record.id)}"
        for each in self._layout.earlier(record):
            yield f"versions/{each.key}"

    def _part(self, item: Item) -> str:
        return item.namespace[len(self._layout.prefix)]

    def _key(self, item: Item) -> str:
        return f"{self._part(item)}/{item.key}"


def _said_at(item: Item) -> float:
    return float(item.value.get("created_at") or 0.0)


def _tombstone(item: Item) -> Tombstone:
    return Tombstone.from_dict(item.value.get("erased_at"), item.value.get("erasure"), item.value)
