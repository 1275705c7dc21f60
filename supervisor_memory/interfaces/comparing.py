"""Ask several recipes the same questions, each over a store in memory of its own; nothing else is written."""

import time
from collections.abc import Sequence
from typing import Any, Final

from supervisor_memory.embedding.protocol import Embedder
from supervisor_memory.errors import BackendError
from supervisor_memory.flow import Recipe
from supervisor_memory.memory import SupervisorMemory
from supervisor_memory.reading.compared import Asked, Held, Measured, copied
from supervisor_memory.settings import Settings

USER: Final = "reader"
_PATIENCE_MS: Final = 60_000  # a loaded machine must change no figure


def measured(
    recipe: Recipe | str,
    sets: Sequence[Held],
    *,
    embedder: Embedder | None = None,
    depth: int,
    source: SupervisorMemory | None = None,
    user_id: str = USER,
    upkeep: bool = False,
) -> Measured:
    """A recipe's findings for the questions of each set, with their cost.

    Args:
        recipe: One, its name, or a file.
        depth: How many hits are asked for.
        source: A memory whose records of `user_id` are asked; None: each set's items are put in.
        upkeep: Whether the recipe's chores run before the questions.

    Raises:
        SettingsError: there is no such recipe.
        BackendError: a search did not work, so that its figures would mean nothing.
    """
    settings = Settings(
        embedding_model="none",
        queue_worker=False,
        search_timeout_ms=_PATIENCE_MS,
        write_timeout_ms=_PATIENCE_MS,
        top_k=depth,
    )
    told = Measured(recipe if isinstance(recipe, str) else recipe.name)
    for each in sets:
        asked = each.asked
        clock = time.time if asked is None else (lambda asked=asked: asked)
        options: dict[str, Any] = {"embedder": embedder, "clock": clock, "recipe": recipe}
        if source is not None:
            options["backend"] = copied(source.backend, user_id)
        with SupervisorMemory(settings, **options) as memory:
            ids = _fill_memory(memory, each, told) if source is None else {}
            if upkeep:
                memory.optimize(user_id=user_id)
            told.records += len(memory.get_all(user_id=user_id))
            for question in each.questions:
                told.asked.append(
                    _ask_question(memory, question.text, ids, depth=depth, user_id=user_id, told=told)
                )
    return told


def _fill_memory(memory: SupervisorMemory, held: Held, told: Measured) -> dict[str, str]:
    """Write the items of a set into a memory, and add the time; returns record id → item id."""
    begun = time.process_time()
    results = memory.add_many([dict(item) for item in held.items.values()], user_id=USER, infer=False)
    told.insert_ms += 1_000 * (time.process_time() - begun)
    return {result.id: id for result, id in zip(results, held.items, strict=True)}


def _ask_question(
    memory: SupervisorMemory, text: str, ids: dict[str, str], *, depth: int, user_id: str, told: Measured
) -> Asked:
    begun = time.process_time()
    hits = memory.search(text, user_id=user_id, limit=depth, threshold=0.0)
    ms = 1_000 * (time.process_time() - begun)
    if hits.degraded:
        raise BackendError(f"recipe {told.recipe}: a search did not work: {'; '.join(hits.notes)}")
    told.notes |= dict.fromkeys(hits.notes)
    found: dict[str, int] = {}
    for hit in hits:  # what was made from records stands for them, one after the other, at its own cost
        size = memory.services.count_tokens(hit.excerpt or hit.record.content)
        parts = (ids.get(id, id) for id in hit.record.made_from or (hit.record.id,))
        new = [id for id in dict.fromkeys(parts) if id not in found]
        ends = [size * n // len(new) for n in range(len(new) + 1)]
        found |= {id: ends[n + 1] - ends[n] for n, id in enumerate(new)}
    return Asked(tuple(found), tuple(found.values()), ms)
