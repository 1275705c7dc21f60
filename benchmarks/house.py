"""Measure how a Python package is built: files, lines, functions, imports, docstrings.

Run: python benchmarks/house.py [FOLDER] [--rooms] [--riddles] [--json FILE]
     python benchmarks/house.py --check    fails while too many docstrings are riddles, and lists the worst

room          A folder directly under the package, with all below it. The top floor is a room too.
lines         Each has one kind: docstring (blank lines inside too), import, table, comment, blank, else code.
table         The value of a module's own name, a literal or a call, over two lines or past column 60.
docstring     A bare string: of a module, a class, a function, or below an attribute.
function      `def` and `async def`, methods and nested ones too, from `def` to its end without the docstring.
swallowed     `except:`, `except Exception` or `except BaseException` without a `raise` in it. Counted by
              1,000 lines of code, tables and imports.
async twins   Lines an async function shares, letter for letter, with the sync one of its name in the same
              scope: `run` beside `arun`, `_arun`, `run_async`. Neither docstrings nor comments count.
boolean       A parameter that can be passed by position and defaults to True or False.
annotated     Functions all of whose parameters (not `self` and `cls`) and results have a type.
public        Functions and classes without a leading underscore, of modules and of public classes.
edge          From a module to another of the package that it imports, wherever it does.
cycle         Modules that import each other, in a circle. At import time: without imports that stand in
              functions or under TYPE_CHECKING.
riddle        A docstring whose first line has four or more of what, that, which, of, one, it, those, who.
p95           95 of 100 are smaller.
"""

import argparse
import ast
import json
import re
import statistics
import sys
from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from difflib import SequenceMatcher
from importlib.util import resolve_name
from itertools import groupby
from pathlib import Path
from typing import NamedTuple

TOP = "(top floor)"
KINDS = ("code", "table", "docstring", "import", "blank", "comment")
RIDDLE_WORDS = frozenset({"what", "that", "which", "of", "one", "it", "those", "who"})
RIDDLE = 4
MOST_RIDDLES = 0.03
WORST = 20

Function = ast.FunctionDef | ast.AsyncFunctionDef


@dataclass(frozen=True, slots=True)
class Module:
    """A file of the package; `path` begins with the name of the package."""

    name: str
    path: Path
    room: str
    lines: list[str]
    tree: ast.Module


class Docstring(NamedTuple):
    """The first line of a docstring, its place, and how many of the riddle words it has."""

    room: str
    path: str
    line: int
    text: str
    words: int

    def __str__(self) -> str:
        return f"{self.path}:{self.line}: {self.text}"


class Figure(NamedTuple):
    """A measured number and, where one number says too little, what to add."""

    value: float
    note: str = ""


def read_package(folder: Path) -> list[Module]:
    """Every module of a package."""
    root = folder.resolve()
    modules = []
    for file in sorted(root.rglob("*.py")):
        path = file.relative_to(root.parent)
        parts = path.with_suffix("").parts
        name = ".".join(parts[:-1] if parts[-1] == "__init__" else parts)
        text = file.read_text(encoding="utf-8")
        room = TOP if len(path.parts) == 2 else path.parts[1]
        modules.append(Module(name, path, room, text.splitlines(), ast.parse(text)))
    return modules


def bare_string(node: ast.AST) -> str | None:
    """The text of a statement that is nothing but a text."""
    value = node.value if isinstance(node, ast.Expr) else None
    return value.value if isinstance(value, ast.Constant) and isinstance(value.value, str) else None


def docstrings(modules: Iterable[Module]) -> list[Docstring]:
    """The first line of every docstring."""
    found = []
    for module in modules:
        for node in ast.walk(module.tree):
            if isinstance(node, ast.Expr) and (text := bare_string(node)) is not None:
                first = text.strip().partition("\n")[0]
                words = sum(word in RIDDLE_WORDS for word in re.findall(r"[a-z]+", first.lower()))
                found.append(Docstring(module.room, str(module.path), node.lineno, first, words))
    return found


def riddles(modules: Iterable[Module]) -> list[Docstring]:
    """The docstrings that are riddles, by room, file and line."""
    return sorted(each for each in docstrings(modules) if each.words >= RIDDLE)


def is_table(node: ast.stmt, lines: Sequence[str]) -> bool:
    literals = (ast.Constant, ast.Tuple, ast.List, ast.Set, ast.Dict, ast.JoinedStr, ast.Call)
    return (
        isinstance(node, ast.Assign | ast.AnnAssign)
        and isinstance(node.value, literals)
        and (node.end_lineno != node.lineno or len(lines[node.lineno - 1]) > 60)
    )


def line_kinds(module: Module) -> Counter[str]:
    """How many lines of each kind a module has."""
    bare = [line.strip() for line in module.lines]
    kinds = ["blank" if not line else "comment" if line.startswith("#") else "code" for line in bare]

    def mark(node: ast.stmt, kind: str) -> None:
        for at in range(node.lineno - 1, node.end_lineno or node.lineno):
            kinds[at] = kind if kinds[at] != "blank" or kind == "docstring" else "blank"

    for node in module.tree.body:
        if is_table(node, module.lines):
            mark(node, "table")
    for inner in ast.walk(module.tree):
        if isinstance(inner, ast.Expr) and bare_string(inner) is not None:
            mark(inner, "docstring")
        elif isinstance(inner, ast.Import | ast.ImportFrom):
            mark(inner, "import")
    return Counter(kinds)


def by_room(modules: Iterable[Module]) -> dict[str, Counter[str]]:
    """Files, lines and lines of each kind of every room, the largest room first."""
    rooms: dict[str, Counter[str]] = defaultdict(Counter)
    for module in modules:
        rooms[module.room] += Counter(files=1, lines=len(module.lines)) + line_kinds(module)
    return dict(sorted(rooms.items(), key=lambda room: -room[1]["lines"]))


def length(function: Function) -> int:
    """Lines of a function without its docstring."""
    first, end = function.body[0], function.end_lineno or function.lineno
    doc = (first.end_lineno or first.lineno) - first.lineno + 1 if bare_string(first) is not None else 0
    return end - function.lineno + 1 - doc


def is_broad(caught: ast.expr | None) -> bool:
    if isinstance(caught, ast.Tuple):
        return any(map(is_broad, caught.elts))
    return caught is None or (isinstance(caught, ast.Name) and caught.id in ("Exception", "BaseException"))


def swallowed(module: Module) -> int:
    broad = [
        node for node in ast.walk(module.tree) if isinstance(node, ast.ExceptHandler) and is_broad(node.type)
    ]
    return sum(not any(isinstance(inner, ast.Raise) for inner in ast.walk(node)) for node in broad)


def is_annotated(function: Function) -> bool:
    given = function.args
    named = [*given.posonlyargs, *given.args, *given.kwonlyargs, given.vararg, given.kwarg]
    typed = [each.annotation is not None for each in named if each and each.arg not in ("self", "cls")]
    return all(typed) and function.returns is not None


def public(body: Iterable[ast.stmt]) -> Iterator[Function | ast.ClassDef]:
    """The public functions and classes of a module or class, with those inside public classes."""
    for node in body:
        if isinstance(node, Function | ast.ClassDef) and not node.name.startswith("_"):
            yield node
            if isinstance(node, ast.ClassDef):
                yield from public(node.body)


def statement_lines(function: Function) -> list[str]:
    body = function.body[1:] if bare_string(function.body[0]) is not None else function.body
    return [line.strip() for statement in body for line in ast.unparse(statement).splitlines()]


def twin_lines(module: Module) -> int:
    """Lines that async functions share with the sync functions beside them."""
    same = 0
    for scope in ast.walk(module.tree):
        body = scope.body if isinstance(scope, ast.Module | ast.ClassDef | Function) else []
        plain = {node.name.strip("_"): node for node in body if isinstance(node, ast.FunctionDef)}
        for node in body:
            if isinstance(node, ast.AsyncFunctionDef):
                name = node.name.strip("_").removesuffix("_async")
                if twin := plain.get(name) or plain.get(name.removeprefix("a")):
                    pair = (statement_lines(twin), statement_lines(node))
                    blocks = SequenceMatcher(None, *pair, autojunk=False).get_matching_blocks()
                    same += sum(block.size for block in blocks)
    return same


def imports(node: ast.AST, *, is_late: bool = False) -> Iterator[tuple[ast.Import | ast.ImportFrom, bool]]:
    """Every import, and whether importing the module leaves it out."""
    for child in ast.iter_child_nodes(node):
        if isinstance(child, ast.Import | ast.ImportFrom):
            yield child, is_late
        is_type = isinstance(child, ast.If) and "TYPE_CHECKING" in ast.unparse(child.test)
        yield from imports(child, is_late=is_late or is_type or isinstance(child, Function))


def edges(modules: Sequence[Module], *, with_late: bool) -> dict[str, set[str]]:
    """The modules of the package that each module imports."""
    names = {module.name for module in modules}
    found: dict[str, set[str]] = {name: set() for name in names}
    for module in modules:
        package = module.name if module.path.stem == "__init__" else module.name.rpartition(".")[0]
        for node, is_late in imports(module.tree):
            if is_late and not with_late:
                continue
            if isinstance(node, ast.Import):
                targets = {alias.name for alias in node.names}
            else:
                base = resolve_name("." * node.level + (node.module or ""), package)
                whole = {f"{base}.{alias.name}" for alias in node.names}
                targets = {name if name in names else base for name in whole}
            found[module.name] |= (targets & names) - {module.name}
    return found


def cycles(graph: Mapping[str, set[str]]) -> list[int]:
    """The sizes of the circles, the largest first; of modules that reach each other."""
    reached: dict[str, set[str]] = {}
    for start in graph:
        seen: set[str] = set()
        waiting = [start]
        while waiting:
            new = graph[waiting.pop()] - seen
            seen |= new
            waiting += new
        reached[start] = seen
    circles = {frozenset(b for b in reached[a] if a in reached[b]) for a in graph}
    return sorted((len(circle) for circle in circles if len(circle) > 1), reverse=True)


def spread(what: str, values: Sequence[int]) -> dict[str, Figure]:
    """The median, the 95th percentile and the largest value."""
    ordered = sorted(values) or [0]
    p95 = ordered[min(int(len(ordered) * 0.95), len(ordered) - 1)]
    figures = {"median": statistics.median(ordered), "p95": p95, "max": ordered[-1]}
    return {f"{what}, {name}": Figure(value) for name, value in figures.items()}


def share(count: int, whole: int) -> Figure:
    return Figure(round(100 * count / max(whole, 1), 2), f"{count:,} of {whole:,}")


def measured(modules: Sequence[Module]) -> dict[str, Figure]:
    """All figures of a package, by name."""
    kinds = sum((line_kinds(module) for module in modules), Counter[str]())
    lines = kinds.total()
    functions = [node for module in modules for node in ast.walk(module.tree) if isinstance(node, Function)]
    sizes = [length(function) for function in functions]
    named = [node for module in modules for node in public(module.tree.body)]
    every = edges(modules, with_late=True)
    widest = max(every, key=lambda name: len(every[name]))
    ours = kinds["code"] + kinds["table"] + kinds["import"]
    caught = sum(map(swallowed, modules))
    broad = Figure(round(1000 * caught / max(ours, 1), 2), f"{caught} in all")
    defaults = [each for function in functions for each in function.args.defaults]
    flags = sum(isinstance(each, ast.Constant) and type(each.value) is bool for each in defaults)
    places = {(module.path.stem, module.room) for module in modules if module.path.stem != "__init__"}
    names = sorted(name for name, rooms in Counter(stem for stem, _ in places).items() if rooms > 1)
    figures = {"files": Figure(len(modules)), "lines": Figure(lines)}
    figures |= {f"{kind}, % of lines": share(kinds[kind], lines) for kind in KINDS}
    figures |= spread("file", [len(module.lines) for module in modules])
    figures |= spread("function", sizes)
    at_import, at_all = cycles(edges(modules, with_late=False)), cycles(every)
    return figures | {
        "functions > 30 lines, %": share(sum(size > 30 for size in sizes), len(sizes)),
        "functions > 50 lines, %": share(sum(size > 50 for size in sizes), len(sizes)),
        "broad excepts swallowed per 1,000": broad,
        "identical async twin lines": Figure(sum(map(twin_lines, modules))),
        "boolean positional defaults per 100": share(flags, len(functions)),
        "functions annotated, %": share(sum(map(is_annotated, functions)), len(functions)),
        "public with docstring, %": share(sum(bool(ast.get_docstring(node)) for node in named), len(named)),
        "import edges per module": Figure(round(sum(map(len, every.values())) / len(every), 2)),
        "most imports of one module": Figure(len(every[widest]), widest),
        "cycles at import time": Figure(len(at_import), ", ".join(map(str, at_import))),
        "cycles with lazy and type imports": Figure(len(at_all), ", ".join(map(str, at_all))),
        "base names in several rooms": Figure(len(names), ", ".join(names)),
        "files on the top floor": Figure(sum(module.room == TOP for module in modules)),
        "docstrings that are riddles, %": share(len(riddles(modules)), len(docstrings(modules))),
    }


def check(modules: Sequence[Module]) -> bool:
    """Whether few enough docstrings are riddles; prints the worst where they are too many."""
    found, whole = riddles(modules), len(docstrings(modules))
    if len(found) <= MOST_RIDDLES * whole:
        return True
    print(f"{len(found)} of {whole} docstrings are riddles; at most {MOST_RIDDLES:.0%} may be. The worst:")
    print(*sorted(found, key=lambda each: -each.words)[:WORST], sep="\n")
    return False


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("folder", nargs="?", type=Path, default=Path("supervisor_memory"))
    parser.add_argument("--rooms", action="store_true", help="the lines of each room too")
    parser.add_argument("--riddles", action="store_true", help="list every riddle, by room, and nothing else")
    parser.add_argument("--check", action="store_true", help="fail while too many docstrings are riddles")
    parser.add_argument("--json", type=Path, metavar="FILE", help="write the figures there too")
    options = parser.parse_args()
    modules = read_package(options.folder)
    if not modules:
        parser.error(f"{options.folder} holds no Python file")
    if options.check:
        sys.exit(0 if check(modules) else 1)
    if options.riddles:
        for room, found in groupby(riddles(modules), key=lambda each: each.room):
            print(f"\n{room}", *found, sep="\n")
        return
    figures = measured(modules)
    for name, (value, note) in figures.items():
        print(f"{name:36}{value:>10,g}" + (f"   {note}" if note else ""))
    if options.rooms:
        columns = ("files", "lines", *KINDS)
        print("\n" + f"{'room':14}" + "".join(f"{column:>11}" for column in columns))
        for room, counts in by_room(modules).items():
            print(f"{room:14}" + "".join(f"{counts[column]:>11,}" for column in columns))
    if options.json:
        written = {name: each._asdict() for name, each in figures.items()}
        told = {"figures": written, "rooms": by_room(modules)}
        options.json.write_text(json.dumps(told, indent=1) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
