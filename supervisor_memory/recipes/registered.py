"""The operators that a recipe file may name: their stages, their parameters, and what must stand before them.

A file names operators and never loads code; one that is not here has to be put into a recipe in Python.
"""

import inspect
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from types import MappingProxyType
from typing import Any, Final, Literal, TypeAlias, get_args

from supervisor_memory.recipes import a_mem as notes
from supervisor_memory.recipes import generative_agents as park
from supervisor_memory.recipes import hipporag, hipporag2, mem0g, memgpt, memgpt_agent, memoryos
from supervisor_memory.recipes import tim as thoughts
from supervisor_memory.recipes.baseline import newest
from supervisor_memory.recipes.locomo import dated
from supervisor_memory.recipes.operators.digests import daily
from supervisor_memory.recipes.operators.links import expand
from supervisor_memory.recipes.operators.lsh import keep_groups, search_groups
from supervisor_memory.recipes.operators.notes import beside
from supervisor_memory.recipes.operators.order import by_meaning, first, weigh
from supervisor_memory.recipes.operators.phrases import as_graph, search_around
from supervisor_memory.recipes.operators.retention import by_curve, fade
from supervisor_memory.recipes.operators.signals import search_by
from supervisor_memory.recipes.operators.tiers import Tier, keep_in, tiered
from supervisor_memory.recipes.operators.topics import draw_portrait, gather_topics
from supervisor_memory.recipes.scm import ask_whether_needed, in_order_of_time, summarise_long, three_ways
from supervisor_memory.stages.insert.place import place
from supervisor_memory.stages.post_retrieval.excerpts import add_said
from supervisor_memory.stages.post_retrieval.format import format_note
from supervisor_memory.stages.post_retrieval.neighbours import add_joined
from supervisor_memory.stages.post_retrieval.rank import drop_already_said, gate, rank
from supervisor_memory.stages.post_retrieval.rerank import ask_model, mmr
from supervisor_memory.stages.post_retrieval.unanswered import keep_few
from supervisor_memory.stages.pre_insert.gather import gather
from supervisor_memory.stages.pre_insert.session_messages import keep_messages
from supervisor_memory.stages.pre_insert.sharpen import sharpen
from supervisor_memory.stages.pre_retrieval.route import route_turn, write_query
from supervisor_memory.stages.retrieval.guidelines import add_guidelines
from supervisor_memory.stages.retrieval.search import add_standing, search_store
from supervisor_memory.stages.retrieval.shared import add_shared

Stage: TypeAlias = Literal[
    "pre_retrieval", "retrieval", "post_retrieval", "pre_insert", "insert", "post_insert", "sharpen", "upkeep"
]
STAGES: Final[tuple[Stage, ...]] = get_args(Stage)
Parameter: TypeAlias = str | int | float | bool


@dataclass(frozen=True, slots=True)
class Registered:
    """An operator, or a function that makes one of keyword parameters.

    Args:
        after: Operators of its stage that must stand before it, for it reads what they leave.
    """

    stage: Stage
    operator: Callable[..., Any]
    is_made: bool = False
    after: tuple[str, ...] = ()

    @property
    def parameters(self) -> Mapping[str, Any]:
        """Name → default of each parameter; `inspect.Parameter.empty` where it has to be given."""
        found = inspect.signature(self.operator).parameters if self.is_made else {}
        return {name: each.default for name, each in found.items()}

    def make(self, **parameters: Parameter) -> Callable[..., Any]:
        """The operator.

        Raises:
            ValueError: a parameter is unknown, missing, of another type or out of its range.
        """
        known = self.parameters
        for name, value in parameters.items():
            if name not in known:
                raise ValueError(f"it has no parameter {name!r}, but {', '.join(known) or 'none'}")
            usual = known[name]
            kinds = (int, float) if isinstance(usual, float) else (type(usual),)
            if usual is not inspect.Parameter.empty and type(value) not in kinds:
                raise ValueError(f"{name} is {type(value).__name__} {value!r}; it is {usual!r} by default")
        if missing := [n for n, d in known.items() if d is inspect.Parameter.empty and n not in parameters]:
            raise ValueError(f"it needs {', '.join(missing)}")
        made: Callable[..., Any] = self.operator(**parameters) if self.is_made else self.operator
        return made


def _check_least(value: float, least: float, what: str) -> None:
    if not value >= least:
        raise ValueError(f"{what} is {value}; use {least} or more")


def _signals(*, meaning: float = 0.0, words: float = 0.0, words_before: float = 0.0) -> Any:
    return search_by(
        **{n: v for n, v in {"meaning": meaning, "words": words, "words_before": words_before}.items() if v}
    )


def _first(*, most: int = 5) -> Any:
    _check_least(most, 1, "most")
    return first(most)


def _expand(*, most: int = 5) -> Any:
    _check_least(most, 0, "most")
    return expand(most)


def _link_and_evolve(*, neighbours: int = 5, likeness: float = 0.7) -> Any:
    return notes.link_and_evolve(notes.PUBLISHED.checked({"neighbours": neighbours, "likeness": likeness}))


def _search_groups(*, tables: int = 1, groups: int = 4) -> Any:
    return search_groups(*_of_groups(tables, groups))


def _keep_groups(*, tables: int = 1, groups: int = 4) -> Any:
    return keep_groups(*_of_groups(tables, groups))


def _of_groups(tables: int, groups: int) -> tuple[int, int]:
    c = thoughts.PUBLISHED.checked({"tables": tables, "groups": groups})
    return c.tables, c.groups


def _search_around(*, nearest: int = 50, joined: int = 50) -> Any:
    _check_least(nearest, 1, "nearest")
    _check_least(joined, 0, "joined")
    return search_around(nearest, joined)


def _by_names(*, damping: float = 0.5, recognition_threshold: float = 0.9) -> Any:
    told = {"damping": damping, "recognition_threshold": recognition_threshold}
    return hipporag.by_names(hipporag.PUBLISHED.checked(told))


def _by_pagerank(*, damping: float = 0.5, passage_node_weight: float = 0.05) -> Any:
    told = {"damping": damping, "passage_node_weight": passage_node_weight}
    return hipporag2.by_pagerank(hipporag2.PUBLISHED.checked(told))


def _add_relations(*, told: int = 5) -> Any:
    return mem0g.add_relations(mem0g.PUBLISHED.checked({"told": told}))


def _newest(*, most: int = 5) -> Any:
    _check_least(most, 1, "most")
    return newest(most)


def _three_ways(*, tokens: int = 2_500) -> Any:
    _check_least(tokens, 1, "tokens")
    return three_ways(tokens)


def _summarise_long(*, over: int = 300) -> Any:
    _check_least(over, 1, "over")
    return summarise_long(over)


def _by_memory_stream(*, recency: float = 0.5, importance: float = 2.0, relevance: float = 3.0) -> Any:
    c = park.PUBLISHED.checked({"recency": recency, "importance": importance, "relevance": relevance})
    return weigh("generative_agents", park.by_memory_stream(c), most=recency + importance + relevance)


def _reflect(*, threshold: float = 150.0) -> Any:
    _check_least(threshold, 0, "threshold")
    return park.reflect(threshold)


def _fade(*, days: float = 5.0, floor: float = 0.1) -> Any:
    _check_least(days, 0.001, "days")
    if not 0 <= floor <= 1:
        raise ValueError(f"floor is {floor}; use a number in [0, 1]")
    return fade(by_curve(days), below=floor)


def _daily_digest(*, tokens: int = 200) -> Any:
    _check_least(tokens, 1, "tokens")
    return daily(most_tokens=tokens)


def _migrate(*, tier: str = "short", most: int = 10, into: str = "mid") -> Any:
    _check_least(most, 1, "most")
    return tiered(Tier(tier, most, into=into or None))


def _keep_in(*, tier: str = "short") -> Any:
    return keep_in(tier)


def _search_tiers(*, segments: int = 5, pages: int = 7) -> Any:
    return memoryos.search_tiers(memoryos.PUBLISHED.checked({"segments": segments, "pages": pages}))


def _gather_topics(*, joins_from: float = 0.6) -> Any:
    return gather_topics(memoryos.MID, memoryos.joining, joins_from=joins_from)


def _draw_portrait(*, hot_from: float = 5.0) -> Any:
    return draw_portrait(memoryos.LONG, memoryos.heat, hot_from=hot_from)


def _sum_up(*, window: int = 8_192) -> Any:
    return memgpt.sum_up(memgpt.PUBLISHED.checked({"window": window}))


def _within_core(*, characters: int = 2_000) -> Any:
    _check_least(characters, 0, "characters")
    return memgpt.within_core(characters)


def _page_in(*, steps: int = 3) -> Any:
    return memgpt_agent.page_in(memgpt_agent.PUBLISHED.checked({"steps": steps}))


def _by_meaning() -> Any:
    return weigh("meaning", by_meaning)


_RANKED: Final = ("rank",)
OPERATORS: Final[Mapping[str, Registered]] = MappingProxyType(
    {
        "route_turn": Registered("pre_retrieval", route_turn),
        "ask_whether_needed": Registered("pre_retrieval", ask_whether_needed, after=("route_turn",)),
        "write_query": Registered("pre_retrieval", write_query),
        "search_by": Registered("pre_retrieval", _signals, is_made=True, after=("write_query",)),
        "search_store": Registered("retrieval", search_store),
        "search_groups": Registered("retrieval", _search_groups, is_made=True),
        "add_shared": Registered("retrieval", add_shared, after=("search_store",)),
        "search_around": Registered("retrieval", _search_around, is_made=True),
        "add_guidelines": Registered("retrieval", add_guidelines),
        "add_standing": Registered("retrieval", add_standing),
        "newest": Registered("retrieval", _newest, is_made=True),
        "search_tiers": Registered("retrieval", _search_tiers, is_made=True),
        "add_summary": Registered("retrieval", memgpt.add_summary),
        "add_core": Registered("retrieval", memgpt_agent.add_core),
        "rank": Registered("post_retrieval", rank),
        "by_meaning": Registered("post_retrieval", _by_meaning, is_made=True, after=_RANKED),
        "by_memory_stream": Registered("post_retrieval", _by_memory_stream, is_made=True, after=_RANKED),
        "expand": Registered("post_retrieval", _expand, is_made=True, after=_RANKED),
        "by_names": Registered("post_retrieval", _by_names, is_made=True, after=_RANKED),
        "by_pagerank": Registered("post_retrieval", _by_pagerank, is_made=True, after=_RANKED),
        "mmr": Registered("post_retrieval", mmr, is_made=True, after=_RANKED),
        "ask_model": Registered("post_retrieval", ask_model, is_made=True, after=_RANKED),
        "first": Registered("post_retrieval", _first, is_made=True),
        "three_ways": Registered("post_retrieval", _three_ways, is_made=True, after=_RANKED),
        "drop_already_said": Registered("post_retrieval", drop_already_said),
        "within_core": Registered("post_retrieval", _within_core, is_made=True),
        "page_in": Registered("post_retrieval", _page_in, is_made=True, after=_RANKED),
        "add_relations": Registered("post_retrieval", _add_relations, is_made=True, after=_RANKED),
        "gate": Registered("post_retrieval", gate, after=_RANKED),
        "add_joined": Registered("post_retrieval", add_joined, after=("gate",)),
        "add_said": Registered("post_retrieval", add_said, after=("gate",)),
        "keep_few": Registered("post_retrieval", keep_few, after=("gate",)),
        "in_order_of_time": Registered("post_retrieval", in_order_of_time),
        "format_note": Registered("post_retrieval", format_note),
        "gather": Registered("pre_insert", gather),
        "keep_messages": Registered("pre_insert", keep_messages),
        "score_importance": Registered("pre_insert", park.score_importance),
        "keep_graph": Registered("pre_insert", beside(as_graph)),
        "keep_in": Registered("pre_insert", _keep_in, is_made=True),
        "keep_groups": Registered("pre_insert", _keep_groups, is_made=True),
        "note_keywords": Registered("pre_insert", beside(notes.as_note)),
        "date_what_is_embedded": Registered("pre_insert", beside(dated)),
        "summarise_long": Registered("pre_insert", _summarise_long, is_made=True),
        "sharpen": Registered("sharpen", sharpen),
        "place": Registered("insert", place),
        "reflect": Registered("upkeep", _reflect, is_made=True),
        "link_and_evolve": Registered("post_insert", _link_and_evolve, is_made=True),
        "fade": Registered("upkeep", _fade, is_made=True),
        "migrate": Registered("upkeep", _migrate, is_made=True),
        "gather_topics": Registered("upkeep", _gather_topics, is_made=True),
        "draw_portrait": Registered("upkeep", _draw_portrait, is_made=True),
        "sum_up": Registered("upkeep", _sum_up, is_made=True),
        "daily_digest": Registered("upkeep", _daily_digest, is_made=True),
    }
)


def missing_before(name: str, earlier: Sequence[str]) -> str | None:
    """The operator that has to stand before another and does not; None: there is none."""
    return next((each for each in OPERATORS[name].after if each not in earlier), None)
