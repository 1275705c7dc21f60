"""Look inside a node's runnable for agents and tools, and copy it with some of them replaced.

Agents sit in nodes in many ways: as a compiled graph, in a sequence, in the closure of a function, as an
attribute of the object whose method is the node, as a global of the node's module.
"""

import contextlib
import copy
import dis
import functools
import inspect
from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator
from types import CellType, CodeType, FunctionType, MethodType
from typing import Any, Generic, TypeAlias, TypeVar

from langchain_core.language_models import BaseLanguageModel
from langchain_core.runnables import Runnable, RunnableLambda, RunnableSequence
from langchain_core.runnables.base import RunnableBindingBase
from langchain_core.tools import BaseTool, StructuredTool
from langgraph._internal._runnable import RunnableCallable
from langgraph.graph.state import CompiledStateGraph
from langgraph.prebuilt import ToolNode
from langgraph.pregel import Pregel

from supervisor_memory.host.ways_in.rebuild import rebuilt

T = TypeVar("T")
Change: TypeAlias = Callable[[Any], Any]
"""(a part) → its replacement; returning the same object means: look inside the part."""

_MOST_ITEMS = 100
_DEEPEST = 8
_MOST_KNOWN = 256


class Known(Generic[T]):
    """The findings about the latest tools, each looked into once. Tools cannot be hashed."""

    def __init__(self) -> None:
        self._held: dict[int, tuple[BaseTool, T]] = {}

    def of(self, tool: BaseTool, look: Callable[[], T]) -> T:
        held = self._held.get(id(tool))
        if held is None or held[0] is not tool:
            held = self._held[id(tool)] = tool, look()
            for oldest in list(self._held)[:-_MOST_KNOWN]:
                self._held.pop(oldest, None)
        return held[1]


_RUNS_AN_AGENT: Known[bool] = Known()


def graphs_in(thing: Any) -> Iterator[Any]:
    """The graphs that a tool or another object can run: the nearest first, none inside another graph."""
    return found_in(thing, lambda part: isinstance(part, CompiledStateGraph), deepest=_DEEPEST)


def found_in(thing: Any, is_meant: Callable[[Any], bool], *, deepest: int) -> Iterator[Any]:
    """Find parts of an object by a test, the nearest first, none inside another found part."""
    seen: dict[int, Any] = {id(thing): thing}  # kept alive, so that no other object gets its id
    level: list[Any] = [thing]
    for _ in range(deepest):
        below: list[Any] = []
        for each in level:
            if is_meant(each):
                yield each
                continue
            new = [part for part in parts_of(each) if id(part) not in seen]
            seen.update((id(part), part) for part in new)
            below += new
        level = below


def runs_an_agent(tool: BaseTool) -> bool:
    """Whether a tool hands work to an agent, as far as can be seen from outside."""
    return _RUNS_AN_AGENT.of(tool, lambda: next(graphs_in(tool), None) is not None)


def parts_of(thing: Any) -> Iterator[Any]:
    """The direct parts of an object that could be, or contain, an agent or a tool."""
    yield from (part for part in _direct_parts(thing) if _can_hold(part))


def rewritten(thing: Any, change: Change, *, owners: bool = False) -> Any:
    """Copy an object with its parts changed, at any depth; returns the object itself if no part was.

    The original is never changed, so parts that are reached through a module's globals stay.

    Args:
        owners: Whether to copy the object of a bound method too; whatever the method then sets on `self` is
            set on the copy.
    """
    made, moved, held = _to_be_made(thing, change, owners=owners)

    def is_moved(part: Any) -> bool:
        is_new = id(part) not in held and not isinstance(part, FunctionType)  # such as a method, bound anew
        return id(part) in made or id(part) in moved or is_new

    def again(part: Any) -> Any:
        if id(part) in made:
            return made[id(part)]
        if not is_moved(part):
            return part
        held[id(part)] = part  # so that no other thing gets its id
        made[id(part)] = part  # an object that contains itself stays
        if isinstance(part, FunctionType):  # except functions, which often refer to each other
            made[id(part)], fill = _reclosed(part, again, is_moved)
            fill()
        else:
            made[id(part)] = _rewritten(part, again, owners=owners)
        return made[id(part)]

    return again(thing)


def _to_be_made(
    thing: Any, change: Change, *, owners: bool
) -> tuple[dict[int, Any], set[int], dict[int, Any]]:
    """Find the parts to change, by id: replacements, the parts that contain a replaced one, and all parts."""
    made: dict[int, Any] = {}
    held: dict[int, Any] = {}
    holders: dict[int, list[int]] = defaultdict(list)
    left = [thing]
    while left:
        part = left.pop()
        if id(part) in held:
            continue
        held[id(part)] = part
        new = change(part)
        if new is not part:
            made[id(part)] = new
            continue

        def look(inner: Any, holder: int = id(part)) -> Any:
            holders[id(inner)].append(holder)
            left.append(inner)
            return inner

        _rewritten(part, look, owners=owners)
    moved: set[int] = set()
    above = list(made)
    while above:
        new_holders = set(holders[above.pop()]) - moved
        moved |= new_holders
        above += new_holders
    return made, moved, held


def _rewritten(thing: Any, again: Change, *, owners: bool) -> Any:
    match thing:
        case CompiledStateGraph():
            return _regraphed(thing, again)
        case ToolNode():
            tools = {name: again(tool) for name, tool in thing.tools_by_name.items()}
            is_same = _are_same(tools.values(), thing.tools_by_name.values())
            return thing if is_same else with_tools(thing, tools)
        case StructuredTool():
            held = {"func": again(thing.func), "coroutine": again(thing.coroutine)}
            is_same = held["func"] is thing.func and held["coroutine"] is thing.coroutine
            return thing if is_same else thing.model_copy(update=held)
        case RunnableCallable() | RunnableLambda():
            held = {name: value for name, value in vars(thing).items() if name in ("func", "afunc")}
            return _with_values(thing, {name: again(value) for name, value in held.items()})
        case RunnableSequence():
            steps = [again(step) for step in thing.steps]
            return thing if _are_same(steps, thing.steps) else RunnableSequence(*steps, name=thing.name)
        case RunnableBindingBase():
            bound = again(thing.bound)
            return thing if bound is thing.bound else thing.model_copy(update={"bound": bound})
        case functools.partial():
            return _repartial(thing, again)
        case MethodType():
            return _rebound(thing, again) if owners else thing
        case FunctionType():
            return _looked_into(thing, again)
        case list() | tuple() if type(thing) in (list, tuple) and len(thing) <= _MOST_ITEMS:
            items = [again(item) for item in thing]
            return thing if _are_same(items, thing) else type(thing)(items)
        case dict() if len(thing) <= _MOST_ITEMS:
            values = {key: again(value) for key, value in thing.items()}
            return thing if _are_same(values.values(), thing.values()) else values
    if owners and isinstance(called := getattr(thing, "__call__", None), MethodType):  # noqa: B004
        return again(called).__self__
    return thing


def with_tools(node: ToolNode, tools: dict[str, Any]) -> ToolNode:
    """A copy of a tool node with other tools under the same names."""
    clone = copy.copy(node)
    clone._tools_by_name = tools
    clone.func, clone.afunc = clone._func, clone._afunc
    return clone


def _direct_parts(thing: Any) -> Iterable[Any]:
    match thing:
        case BaseLanguageModel():
            return ()
        case CompiledStateGraph():
            return [spec.runnable for spec in thing.builder.nodes.values()]
        case ToolNode():
            return list(thing.tools_by_name.values())
        case Pregel():
            return [node.bound for node in thing.nodes.values()]
        case Runnable():
            return list(vars(thing).values())
        case list() | tuple() | set() | frozenset():
            return list(thing)[:_MOST_ITEMS]
        case dict():
            return list(thing.values())[:_MOST_ITEMS]
        case functools.partial():
            return [thing.func, *thing.args, *thing.keywords.values()]
        case MethodType():
            return [*_direct_parts(thing.__func__), *_attributes(thing).values()]
        case FunctionType():
            return [*_cells(thing), *_globals(thing), getattr(thing, "__wrapped__", None)]
    called = getattr(thing, "__call__", None)  # noqa: B004  # an object that is called
    return [called] if isinstance(called, MethodType) else ()


def _can_hold(part: Any) -> bool:
    if isinstance(part, type):
        return False
    return isinstance(part, (Runnable, Pregel, list, tuple, set, frozenset, dict)) or callable(part)


def _cells(function: FunctionType) -> Iterator[Any]:
    for cell in function.__closure__ or ():
        try:
            yield cell.cell_contents
        except ValueError:  # not filled yet
            continue


def _globals(function: FunctionType) -> Iterator[Any]:
    """The globals a function names; of other functions, only those of its own module."""
    held = function.__globals__
    for name in _names(function, "LOAD_GLOBAL"):
        value = held.get(name)
        if not isinstance(value, FunctionType) or value.__globals__ is held:
            yield value


def _attributes(method: MethodType) -> dict[str, Any]:
    """The attributes of an object that a method uses, itself or through methods it calls."""
    owner = method.__self__
    if isinstance(owner, type) or not _is_plain(method.__func__):
        return {}
    used: set[str] = set()
    methods: list[Any] = [method.__func__]
    for each in methods:
        new = _names(each, "LOAD_ATTR", "LOAD_METHOD", "LOAD_SUPER_ATTR") - used
        used |= new
        methods += [
            found for kind in type(owner).__mro__ for name in new if _is_plain(found := vars(kind).get(name))
        ]
    held = {name: inspect.getattr_static(owner, name, None) for name in used}
    return {name: value for name, value in held.items() if not _is_plain(value) and _can_hold(value)}


def _is_plain(value: Any) -> bool:
    return isinstance(value, FunctionType)


def _names(function: Any, *operations: str) -> frozenset[str]:
    return _names_in(function.__code__, operations)


@functools.lru_cache(maxsize=1024)
def _names_in(code: CodeType, operations: tuple[str, ...]) -> frozenset[str]:
    codes = [code]
    for each in codes:
        codes.extend(const for const in each.co_consts if isinstance(const, CodeType))
    return frozenset(
        str(step.argval) for each in codes for step in dis.get_instructions(each) if step.opname in operations
    )


def _are_same(new: Iterable[Any], old: Iterable[Any]) -> bool:
    return all(a is b for a, b in zip(new, old, strict=True))


def _with_values(thing: Any, values: dict[str, Any]) -> Any:
    """A shallow copy with other attributes; the object itself if they are the same."""
    if all(vars(thing).get(name) is value for name, value in values.items()):
        return thing
    clone = copy.copy(thing)
    vars(clone).update(values)
    vars(clone).pop("deps", None)  # RunnableLambda's cache of what its function holds
    return clone


def _regraphed(graph: Any, again: Change) -> Any:
    old = {name: spec.runnable for name, spec in graph.builder.nodes.items()}
    new = {name: again(runnable) for name, runnable in old.items()}
    return graph if _are_same(new.values(), old.values()) else rebuilt(graph, lambda name, _inner: new[name])


def _repartial(thing: functools.partial[Any], again: Change) -> Any:
    old = [thing.func, thing.args, thing.keywords, vars(thing)]
    new = [again(part) for part in old]
    if _are_same(new, old):
        return thing
    clone = functools.partial(new[0], *new[1], **new[2])
    vars(clone).update(new[3])
    return clone


def _rebound(method: MethodType, again: Change) -> Any:
    """The method, bound to a copy of its object with changed attributes."""
    owner = method.__self__
    old = _attributes(method)
    new = {name: again(value) for name, value in old.items()}
    if _are_same(new.values(), old.values()):
        return method
    clone = copy.copy(owner)
    vars(clone).update(new)
    return MethodType(method.__func__, clone)


def _reclosed(
    function: FunctionType, again: Change, is_moved: Callable[[Any], bool]
) -> tuple[FunctionType, Callable[[], None]]:
    """Copy a function with new closure cells for changed values; also returns the call that fills them."""
    own = {id(cell): CellType() for cell in _filled_cells(function) if is_moved(cell.cell_contents)}
    cells = tuple(own.get(id(cell), cell) for cell in function.__closure__ or ())
    clone = FunctionType(
        function.__code__, function.__globals__, function.__name__, function.__defaults__, cells
    )
    clone.__kwdefaults__ = function.__kwdefaults__
    clone.__annotations__ = function.__annotations__
    clone.__qualname__ = function.__qualname__
    clone.__doc__ = function.__doc__
    clone.__module__ = function.__module__

    def fill() -> None:
        for cell in _filled_cells(function):
            if id(cell) in own:
                own[id(cell)].cell_contents = again(cell.cell_contents)
        vars(clone).update(again(vars(function)))

    return clone, fill


def _looked_into(function: FunctionType, look: Change) -> FunctionType:
    for cell in _filled_cells(function):
        look(cell.cell_contents)
    look(vars(function))  # such as `__wrapped__`, the function under a decorator
    return function


def _filled_cells(function: FunctionType) -> Iterator[CellType]:
    for cell in function.__closure__ or ():
        with contextlib.suppress(ValueError):  # not filled yet
            cell.cell_contents  # noqa: B018
            yield cell
