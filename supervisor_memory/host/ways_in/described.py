"""The guideline of a tool in its description, for one model call. The host's own tools stay untouched."""

from collections.abc import Callable, Iterable, Sequence
from typing import Any

from langchain_core.tools import BaseTool

from supervisor_memory.language.lexicon import lexicon
from supervisor_memory.model.records import Hit
from supervisor_memory.stages.post_retrieval.format import clean
from supervisor_memory.stages.retrieval.guidelines import TOLD
from supervisor_memory.understand.lessons.lesson import lessons_of
from supervisor_memory.understand.lessons.wording import worded


def with_guidelines(
    tools: Sequence[Any], hits: Iterable[Hit], *, count: Callable[[str], int]
) -> list[Any] | None:
    """Tools for a call, with guidelines from the note in their descriptions; None: the note has none.

    How often a guideline held is left out, since a description that changes with each call is cached by no
    provider.

    Args:
        hits: Those of the note, which has the guidelines of this very agent.
        count: Counts the tokens of a text.
    """
    told: dict[str, list[str]] = {}
    for hit in hits:
        record = hit.record
        if hit.found != TOLD or record.kind != "experience" or record.subject is None:
            continue
        tongue = "zh" if record.metadata.get("language") == "zh" else "en"
        found = worded(record.subject, lessons_of(record.metadata), count=count, tongue=tongue)
        if found.text:
            before = lexicon("lessons").table("wording")[tongue]["earlier"]
            told.setdefault(record.subject, []).append(f"{before}{clean(found.text)}")
    if not any(isinstance(each, BaseTool) and each.name in told for each in tools):
        return None
    return [_described(each, told) for each in tools]


def _described(tool: Any, told: dict[str, list[str]]) -> Any:
    if not isinstance(tool, BaseTool) or tool.name not in told:
        return tool
    whole = "\n".join((tool.description, "", *told[tool.name]))
    return tool.model_copy(update={"description": whole})
