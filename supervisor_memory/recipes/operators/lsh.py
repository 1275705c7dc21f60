"""Group records by locality-sensitive hashing of their vectors, and search the question's group alone."""

from dataclasses import replace
from hashlib import blake2b
from typing import TYPE_CHECKING

import numpy as np

from supervisor_memory.flow import Gathering, Reading, Recalling, Remembering
from supervisor_memory.model.records import Hit, Record, Wanted
from supervisor_memory.ports import ReadStore
from supervisor_memory.stages.retrieval.search import search_store

if TYPE_CHECKING:
    import numpy.typing as npt

    from supervisor_memory.model.records import Vector

_NEAREST = 60


def group_of(vector: "Vector", seed: str, *, groups: int) -> int:
    """The group of a vector: argmax([xR; −xR]), for a random R of groups / 2 columns.

    Args:
        seed: Of R: the same seed has the same R in every process.
        groups: How many there are; even.

    Source: Andoni et al., "Practical and Optimal LSH for Angular Distance", 2015, as TiM uses it.
    """
    turned = np.asarray(vector, dtype=np.float64) @ planes_of(seed, len(vector), groups)
    return int(np.argmax(np.concatenate([turned, -turned])))


def planes_of(seed: str, dimensions: int, groups: int) -> "npt.NDArray[np.float64]":
    """The random R of a seed: a row for each dimension of a vector, a column for each pair of groups."""
    number = int.from_bytes(blake2b(seed.encode(), digest_size=8).digest(), "big")
    return np.random.default_rng(number).standard_normal((dimensions, groups // 2))


def _groups(vector: "Vector", embedder: str, tables: int, groups: int) -> dict[str, str]:
    """The group in each table by its metadata key. Groups of two embedders are never the same."""
    of = blake2b(embedder.encode(), digest_size=4).hexdigest()
    seeds = ((n, f"{embedder}/{n}/{groups}") for n in range(tables))
    return {f"lsh_{n}": f"{of}/{groups}/{group_of(vector, seed, groups=groups)}" for n, seed in seeds}


def keep_groups(tables: int, groups: int) -> Gathering:
    """An operator that keeps the groups of candidates and given texts."""

    def kept(said: Remembering, view: ReadStore) -> Remembering:
        verbatim = said.verbatim if said.is_given else ()
        texts = [*(each.content for each in said.candidates), *(each.embedded_text for each in verbatim)]
        vectors = view.embed(texts)
        embedder = view.embedder if any(vector is not None for vector in vectors) else None
        if embedder is None:
            return said
        name = embedder.fingerprint
        told = [{} if each is None else _groups(each, name, tables, groups) for each in vectors]
        count = len(said.candidates)
        candidates = tuple(
            replace(each, metadata={**each.metadata, **more})
            for each, more in zip(said.candidates, told[:count], strict=True)
        )
        records = tuple(
            _grouped(each, vector, name, more)
            for each, vector, more in zip(verbatim, vectors[count:], told[count:], strict=True)
        )
        return replace(said, candidates=candidates, verbatim=records if said.is_given else said.verbatim)

    return kept


def _grouped(record: Record, vector: "Vector | None", embedder: str, groups: dict[str, str]) -> Record:
    if vector is None:
        return record
    return replace(record, vector=vector, embedder=embedder, metadata={**record.metadata, **groups})


def search_groups(tables: int, groups: int, most: int = 10) -> Reading:
    """An operator that searches the groups of the question alone, for the `most` nearest in each table.

    Where there is no vector it searches all, and says so.
    """

    def found(plan: Recalling, view: ReadStore) -> Recalling:
        query = plan.query
        if query is None or query.vector is None or query.embedder is None:
            note = "without vectors there are no groups, so that all was searched"
            return search_store(plan, view) if query is None else _with_note(search_store(plan, view), note)
        mine = _groups(query.vector, query.embedder, tables, groups)
        best: dict[str, Hit] = {}
        # In a group, too, the nearest come first: most often enough of them are among the nearest of all.
        near = view.search(replace(query, parts=()), limit=_NEAREST)
        for key, group in mine.items():
            held = [hit for hit in near if hit.record.metadata.get(key) == group]
            if len(held) < most and len(near) >= _NEAREST:
                where = replace(query.where, metadata=(*(query.where.metadata or ()), Wanted.of(key, group)))
                held = [*view.search(replace(query, where=where, parts=()), limit=most)]
            best |= {hit.record.id: hit for hit in held}
        return replace(plan, hits=replace(near, items=tuple(best.values()), notes=plan.hits.notes))

    return found


def _with_note(plan: Recalling, note: str) -> Recalling:
    return replace(plan, hits=replace(plan.hits, notes=(*plan.hits.notes, note)))
