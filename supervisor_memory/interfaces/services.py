"""The memory services of the SAGE documents, as named views of one memory: a recipe and a filter each.

    service = open_service("hierarchical_memory", memory, user_id="ada", short=5)
    id = service.insert("The depot is in Kiel.", metadata={"topic": "depots"})
    service.retrieve("Where is the depot?", top_k=3)

There is no second engine and no second copy: what belongs to a service, and in which of its indexes it can be
found, are fields of the record, and moving it between indexes or tiers changes a field.
"""

from collections import defaultdict
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, Final, Literal

from supervisor_memory.core import Memory
from supervisor_memory.errors import InvalidContent, RecordNotFound
from supervisor_memory.flow import Recalling, Recipe, Remembering
from supervisor_memory.model.records import TIER, Hit, Record
from supervisor_memory.ports import NoStore, ReadStore
from supervisor_memory.recipes.bare import BY_MEANING, BY_WORDS
from supervisor_memory.recipes.open import open_recipe, published

if TYPE_CHECKING:
    from supervisor_memory.model.records import Vector

SERVICE: Final = "service"
"""The metadata key for the name of the service that a record belongs to."""
_RRF: Final = 60
SERVICES: Final[dict[str, Recipe | str]] = {
    "short_term_memory": "baseline",
    "key_value_memory": BY_WORDS,
    "graph_memory": "hipporag2",
    "hierarchical_memory": "memoryos",
    "hybrid_memory": "mem0_now",
    "vector_hash_memory": "tim",
    "neuromem_vdb": BY_MEANING,
}
"""The recipe of each service."""
TRIGGERS: Final = {
    "reflection": ("reflect", "draw_portrait"),
    "forgetting": ("fade",),
    "summarize": ("daily_digest", "sum_up"),
    "migrate": ("migrate", "gather_topics"),
}
"""The chores of each trigger of `optimize`; links evolve when something is written."""


def open_service(
    name: str, memory: Memory, *, user_id: str, recipe: Recipe | str | None = None, **constants: Any
) -> "Service":
    """A service by its name, over a user's records.

    Args:
        recipe: Another than the service's own, such as "a_mem" for a graph of links.
        constants: Of the recipe, such as `most=50` of a short-term memory; see docs/recipes.md.

    Raises:
        InvalidContent: there is no such service, or its recipe has no constants.
        SettingsError: there is no such recipe or constant.
    """
    if name not in SERVICES:
        raise InvalidContent(f"there is no service {name!r}; there are {', '.join(SERVICES)}", name=name)
    chosen = SERVICES[name] if recipe is None else recipe
    about = published(chosen) if isinstance(chosen, str) and constants else None
    if constants and about is None:
        raise InvalidContent(f"service {name!r} has no constants, and {', '.join(constants)} was given")
    built = about.recipe(**constants) if about else open_recipe(chosen, memory.backend)
    return Service(name, memory.with_recipe(built), user_id)


@dataclass(frozen=True, slots=True)
class Service:
    """A named view of a user's memory. Made by `open_service`."""

    name: str
    memory: Memory
    user_id: str

    def insert(
        self,
        entry: str,
        vector: "Vector | None" = None,
        metadata: Mapping[str, Any] | None = None,
        *,
        insert_mode: Literal["active", "passive"] = "passive",
        insert_params: Mapping[str, Any] | None = None,
    ) -> str:
        """Keep a text; its id.

        Args:
            vector: None: the memory's embedder makes one.
            insert_mode: "active": the fields of `insert_params` say where it goes, such as {"tier": "mid"} or
                {"in.deals": True} for an index; "passive": the recipe does.
        """
        if insert_params and insert_mode != "active":
            raise InvalidContent("insert_params are for insert_mode 'active'")
        item = {"content": entry, "metadata": {**(metadata or {}), SERVICE: self.name}}
        memory = self.memory if vector is None else self._with_operator(pre_insert=_keeping(vector))
        (done,) = memory.add_many([item], user_id=self.user_id, infer=False)
        if insert_params:
            self._set_fields(done.id, insert_params)
        return done.id

    def retrieve(
        self,
        query: str | None = None,
        vector: "Vector | None" = None,
        metadata: Mapping[str, Any] | None = None,
        top_k: int = 10,
        *,
        index: str | None = None,
    ) -> list[dict[str, Any]]:
        """The entries that bear on a text or are near a vector, best first; neither: the newest.

        Args:
            metadata: Only entries with these values.
            index: Only entries that are in it.
        """
        asked = query or ("" if vector is None else "…")
        memory = self.memory if vector is None else self._with_operator(pre_retrieval=_searching_near(vector))
        wanted = {**(metadata or {}), SERVICE: self.name, **({} if index is None else {_key(index): True})}
        options: dict[str, Any] = {"limit": top_k, "threshold": 0.0, "where": {"metadata": wanted}}
        return [_entry_of(hit) for hit in memory.search(asked, user_id=self.user_id, **options)]

    def retrieve_multi(self, queries: Iterable[str], top_k: int = 10) -> list[dict[str, Any]]:
        """The entries of several questions, joined by reciprocal rank fusion with k = 60."""
        found: dict[str, dict[str, Any]] = {}
        scores: defaultdict[str, float] = defaultdict(float)
        for query in queries:
            for rank, each in enumerate(self.retrieve(query, top_k=top_k), start=1):
                found[each["id"]] = each
                scores[each["id"]] += 1.0 / (_RRF + rank)
        best = sorted(found, key=lambda id: -scores[id])[:top_k]
        return [{**found[id], "score": scores[id]} for id in best]

    def in_order(
        self, by: str = "created_at", *, since: object = None, until: object = None, most: int = 100
    ) -> list[Record]:
        """List the entries of a time by a field or a metadata key; an entry without it comes last."""
        where = {"metadata": {SERVICE: self.name}, "since": since, "until": until}
        found = self.memory.get_all(user_id=self.user_id, limit=most, where=where)
        values = {each.id: getattr(each, by, None) or each.metadata.get(by) for each in found}
        return sorted(found, key=lambda each: (values[each.id] is None, values[each.id] or 0))

    def delete(self, entry_id: str) -> bool:
        """Delete an entry; False: there is none."""
        try:
            self._own_entry(entry_id)
        except RecordNotFound:
            return False
        return self.memory.delete(entry_id, user_id=self.user_id) > 0

    def insert_to_index(self, entry_id: str, index: str) -> None:
        """Add an entry to an index."""
        self._set_fields(entry_id, {_key(index): True})

    def remove_from_index(self, entry_id: str, index: str) -> None:
        """Remove an entry from an index; it stays unchanged in the others."""
        self._set_fields(entry_id, {_key(index): False})

    def move(self, entry_id: str, tier: str) -> None:
        """Put an entry into another tier."""
        self._set_fields(entry_id, {TIER: tier})

    def optimize(self, trigger: str, *, dry_run: bool = False) -> dict[str, Any]:
        """Run the chores of a trigger that the recipe has; `undo` of the memory takes them back.

        Raises:
            InvalidContent: there is no such trigger, or the recipe has none of its chores.
        """
        known = {chore.name for chore in self.memory.recipe.upkeep}
        names = [name for name in TRIGGERS.get(trigger, ()) if name in known]
        if not names:
            own = ", ".join(sorted(known)) or "none"
            raise InvalidContent(
                f"{trigger!r} starts no chore of this service; it has {own}", choices=TRIGGERS
            )
        return self.memory.optimize(user_id=self.user_id, chores=names, dry_run=dry_run).to_dict()

    def get_status(self) -> dict[str, Any]:
        """The number of due changes, by a dry run, and the number of records in each tier."""
        told = self.memory.status(user_id=self.user_id)
        return {**told, "pending_items": told["due"].get(told["pending_action"], 0)}

    def _own_entry(self, entry_id: str) -> Record:
        found = self.memory.get(entry_id, user_id=self.user_id)
        if found.metadata.get(SERVICE) != self.name or found.status != "active":
            raise RecordNotFound(f"service {self.name!r} has no entry {entry_id!r}", id=entry_id)
        return found

    def _set_fields(self, entry_id: str, fields: Mapping[str, Any]) -> None:
        self._own_entry(entry_id)
        self.memory.update(entry_id, user_id=self.user_id, metadata=fields)

    def _with_operator(self, **operator: Callable[..., Any]) -> Memory:
        """The memory with one more operator at the end of a stage."""
        recipe = self.memory.recipe
        stages: dict[str, Any] = {name: (*getattr(recipe, name), each) for name, each in operator.items()}
        return self.memory.with_recipe(replace(recipe, **stages))


def _key(index: str) -> str:
    return f"in.{index}"


def _keeping(vector: "Vector") -> Callable[[Remembering, ReadStore], Remembering]:
    def kept(said: Remembering, view: ReadStore) -> Remembering:
        own = (replace(each, vector=vector, embedder=f"given/{len(vector)}") for each in said.verbatim)
        return replace(said, verbatim=tuple(own))

    return kept


def _searching_near(vector: "Vector") -> Callable[[Recalling, NoStore], Recalling]:
    def near(plan: Recalling, view: NoStore) -> Recalling:
        if plan.query is None:
            return plan
        return replace(
            plan, query=replace(plan.query, vector=vector, embedder=f"given/{len(vector)}", parts=())
        )

    return near


def _entry_of(hit: Hit) -> dict[str, Any]:
    record = hit.record
    return {"id": record.id, "content": record.content, "score": hit.score, "metadata": dict(record.metadata)}
