"""The command that compares recipes on built-in questions or your own."""

from collections.abc import Sequence
from contextlib import ExitStack
from itertools import chain
from pathlib import Path
from typing import Annotated, Any, Final

import typer
from typer import Option

from supervisor_memory import SupervisorMemory
from supervisor_memory.errors import InvalidContent
from supervisor_memory.interfaces.cli.options import EnvFile, Json, opened, print_json, say, told_settings
from supervisor_memory.interfaces.comparing import USER, measured
from supervisor_memory.interfaces.printable import counted, one_line
from supervisor_memory.reading.compared import (
    Measured,
    Question,
    difference,
    mean,
    quantile,
    read_questions,
)

_CUTS: Final = (5, 10)
_LONGEST: Final = 70


def compare(
    *,
    recipes: Annotated[
        str, Option("--recipes", help="Names or files; each is compared with the first.", metavar="A,B")
    ],
    on: Annotated[
        Path, Option("--on", help="Questions: a .json set, or .jsonl or .txt for --user.", metavar="FILE")
    ],
    user: Annotated[
        str | None, Option("--user", "-u", help="Ask a copy of this user's records.", metavar="ID")
    ] = None,
    k: Annotated[int, Option("-k", min=1, max=1000, help="How many hits are looked at.")] = 10,
    tokens: Annotated[str, Option(help="Budgets of tokens, with commas.")] = "600,1200",
    show: Annotated[int, Option(min=0, help="Questions to show where recipes differ.")] = 3,
    upkeep: Annotated[bool, Option("--upkeep", help="Run each recipe's chores on its copy before.")] = False,
    json: Json = False,
    env_file: EnvFile = None,
) -> None:
    """Ask recipes the same questions; print findings, costs and paired intervals.

    Each asks a store in memory of its own; a store that is there is read, and neither changed nor told in the
    access log.
    """
    names = [name.strip() for name in recipes.split(",") if name.strip()]
    budgets = _numbers(tokens)
    sets = read_questions(on)
    if user is None and any(not each.items for each in sets):
        raise InvalidContent(f"{on} holds questions alone; name whose records they are asked of: --user")
    questions = [*chain.from_iterable(each.questions for each in sets)]
    if not names or not questions:
        raise InvalidContent("there is nothing to compare: name recipes, and a file with questions")
    depth = max(k, *(4 * _CUTS[-1],)) if budgets else k
    with ExitStack() as stack:
        source: SupervisorMemory | None = None
        if user is None:
            elsewhere = told_settings(env_file).tried({"backend": "in_memory"})
            embedder = stack.enter_context(SupervisorMemory(elsewhere)).embedder
        else:
            source = stack.enter_context(opened(env_file, embedder=True))
            embedder = source.embedder
        rows = [
            measured(
                name, sets, embedder=embedder, depth=depth, source=source, user_id=user or USER, upkeep=upkeep
            )
            for name in names
        ]
    report = _report(rows, questions, k=k, tokens=budgets)
    differing = _differing(rows, questions, k=k)
    if json:
        print_json({**report, "differing": differing[: show or None]})
        return
    _print_comparison(report, len(questions))
    for each in differing[:show]:
        typer.echo(one_line(f"{each['question'][:_LONGEST]}"))
        for name, ids in each["found"].items():
            typer.echo(one_line(f"  {name}: {', '.join(ids) or 'nothing'}"))
    for row in rows:
        for note in row.notes:
            say(f"{row.recipe}: {note}")


def _numbers(told: str) -> list[int]:
    try:
        return [int(each) for each in told.split(",") if each.strip()]
    except ValueError as error:
        raise InvalidContent(f"--tokens {told!r} are no whole numbers, such as 600,1200") from error


def _report(
    rows: Sequence[Measured], questions: Sequence[Question], *, k: int, tokens: Sequence[int]
) -> dict[str, Any]:
    """Print the figures of each recipe, and its difference from the first recipe."""
    cuts = sorted({*(cut for cut in _CUTS if cut <= k), k})
    every = [row.figures(questions, cuts=cuts, tokens=tokens) for row in rows]
    labelled = sum(bool(question.evidence) for question in questions)
    told = []
    for row, figures in zip(rows, every, strict=True):
        times = [each.ms for each in row.asked]
        overlap = [
            len({*a.ids[:k]} & {*b.ids[:k]}) / max(len({*a.ids[:k]} | {*b.ids[:k]}), 1)
            for a, b in zip(rows[0].asked, row.asked, strict=True)
        ]
        against = {name: difference(every[0][name], values) for name, values in figures.items()}
        told.append(
            {
                "recipe": row.recipe,
                "figures": {name: mean(values) for name, values in figures.items()} if labelled else {},
                "against_first": {
                    name: {"mean": each.mean, "half": each.half, "no_difference": each.is_none}
                    for name, each in (against if labelled else {}).items()
                },
                "overlap": mean(overlap),
                "search_ms_p50": quantile(times, 0.5),
                "search_ms_p95": quantile(times, 0.95),
                "insert_ms": row.insert_ms,
                "records": row.records,
                "tokens": mean([float(sum(each.tokens[:k])) for each in row.asked]),
                "notes": [*row.notes],
            }
        )
    return {"questions": len(questions), "labelled": labelled, "k": k, "recipes": told}


def _differing(rows: Sequence[Measured], questions: Sequence[Question], *, k: int) -> list[dict[str, Any]]:
    """The questions for which a recipe finds other records than the first, among the first k."""
    found = []
    for place, question in enumerate(questions):
        ids = {row.recipe: [*row.asked[place].ids[:k]] for row in rows}
        if any(set(each) != set(ids[rows[0].recipe]) for each in ids.values()):
            found.append({"question": question.text, "evidence": [*question.evidence], "found": ids})
    return found


def _print_comparison(report: dict[str, Any], asked: int) -> None:
    typer.echo(f"{counted(asked, 'question')}, {report['labelled']} of them with an answer that is known")
    for row in report["recipes"]:
        figures = "  ".join(f"{name} {value:.3f}" for name, value in row["figures"].items())
        cost = f"search {row['search_ms_p50']:.1f} ms (p95 {row['search_ms_p95']:.1f})"
        same = "" if report["labelled"] else f"  the same among the first {report['k']}: {row['overlap']:.0%}"
        typer.echo(one_line(f"{row['recipe']}: {figures}{same}  {cost}  {row['tokens']:.0f} tokens"))
        if row is not report["recipes"][0]:
            for name, each in row["against_first"].items():
                chance = ", no difference" if each["no_difference"] else ""
                typer.echo(one_line(f"  {name} {each['mean']:+.3f} ± {each['half']:.3f}{chance}"))
