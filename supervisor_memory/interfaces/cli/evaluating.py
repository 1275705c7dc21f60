"""The command `evaluate`: whether memory helps a graph; docs/evaluating.md tells how to read it."""

import itertools
import json as json_module
import os
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal

import typer
from typer import Argument, Option

from supervisor_memory.errors import InvalidContent, SettingsError
from supervisor_memory.interfaces.cli.moving import bar
from supervisor_memory.interfaces.cli.options import EnvFile, Json, for_file, print_json, say, told_settings
from supervisor_memory.interfaces.printable import one_line

if TYPE_CHECKING:
    from supervisor_memory.evaluation import Arm, ModelJudge, Report, SqlJudge


def _axis(name: str, help: str) -> Any:
    return Option(name, help=f"{help} Again for more; every combination is an arm.", metavar="NAME")


def evaluate(
    factory: Annotated[
        str, Argument(help="What makes the graph, as package.module:factory.", metavar="FACTORY")
    ],
    threads: Annotated[
        Path,
        Argument(
            exists=True,
            dir_okay=False,
            help="JSON lines, LangSmith's export, or a checkpointer's SQLite file.",
            metavar="FILE",
        ),
    ],
    *,
    recipe: Annotated[list[str] | None, _axis("--recipe", "A recipe of memory.")] = None,
    backend: Annotated[list[str] | None, _axis("--backend", "in_memory, json or sqlite.")] = None,
    embedder: Annotated[list[str] | None, _axis("--embedder", "An EMBEDDING_MODEL.")] = None,
    database: Annotated[
        Path | None, for_file("--database", "The SQLite file that `sql` of turns asks.")
    ] = None,
    names: Annotated[
        Path | None, for_file("--names", "JSON: column, value, and how else it is called.")
    ] = None,
    judge: Annotated[
        str | None,
        Option("--judge", help="A chat model to judge `expected`; it reads texts.", metavar="MODEL"),
    ] = None,
    apart: Annotated[bool, Option("--apart", help="Each turn in a session of its own.")] = False,
    supervisor: Annotated[
        str, Option("--supervisor", help="The supervisor's node; empty: nobody leads.", metavar="NODE")
    ] = "supervisor",
    agent: Annotated[
        list[str] | None, Option("--agent", help="A node it leads. None: all others.", metavar="NODE")
    ] = None,
    messages_key: Annotated[str, Option(help="The state key of the messages.", metavar="KEY")] = "messages",
    asynchronous: Annotated[bool, Option("--async", help="Call the graph by ainvoke.")] = False,
    interval: Annotated[
        str, Option(help="Of gain: exact, or bootstrap by threads.", metavar="HOW")
    ] = "exact",
    seed: Annotated[int, Option(min=0, help="Of the bootstrap.")] = 7,
    price_in: Annotated[float, Option(min=0, help="Dollars a million tokens read.")] = 0.0,
    price_out: Annotated[float, Option(min=0, help="Dollars a million tokens written.")] = 0.0,
    worst: Annotated[int, Option(min=0, help="How many of the worst cases to show.")] = 3,
    out: Annotated[
        Path | None,
        Option("--out", help="Write all turns there as JSON; only you may read it.", metavar="PATH"),
    ] = None,
    json: Json = False,
    env_file: EnvFile = None,
) -> None:
    """Replay threads through a graph, bare and with memory, and tell whether memory helps.

    The graph really runs, with its models and tools. No store of yours is opened, and memory sends
    nothing anywhere.
    """
    from supervisor_memory import evaluation
    from supervisor_memory.evaluation.threads import apart as taken_apart

    if interval not in ("exact", "bootstrap"):
        raise typer.BadParameter("use exact or bootstrap", param_hint="--interval")
    if out is not None and out.exists():
        raise SettingsError(f"{out} is there already; name a file that is not")
    settings = told_settings(env_file)
    if settings.backend not in ("in_memory", "json", "sqlite") and not backend:
        say(f"memory is kept in SQLite here, not in {settings.backend}: nothing stays after the end")
        backend = ["sqlite"]
    read = evaluation.read_threads(threads, messages_key=messages_key)
    if not read:
        raise InvalidContent(f"{threads} holds no thread in which a user said something")
    with bar("evaluate") as progress:
        replays = evaluation.evaluate(
            taken_apart(read) if apart else read,
            evaluation.load_factory(factory),
            arms=_arms(recipe, backend, embedder),
            settings=settings,
            judge=_model_judge(judge),
            sql=_sql_judge(database, names),
            supervisor=supervisor or None,
            agents=agent or None,
            messages_key=messages_key,
            asynchronous=asynchronous,
            progress=progress,
        )
    how: Literal["exact", "bootstrap"] = "exact" if interval == "exact" else "bootstrap"
    prices = evaluation.Prices(price_in, price_out)
    found = evaluation.reported(replays, prices=prices, interval=how, seed=seed, worst=worst)
    if out is not None:
        _write(out, found)
    if json:
        print_json(found.to_dict())
        return
    typer.echo(f"{found.turns} turns of {len(read)} threads, each answered {len(replays.arms)} ways\n")
    for line in found.lines():
        indent = len(line) - len(line.lstrip())
        typer.echo(" " * indent + one_line(line))


def _arms(*axes: list[str] | None) -> list["Arm"]:
    from supervisor_memory.evaluation import Arm

    named: list[Sequence[str | None]] = [axis or [None] for axis in axes]
    return [Arm(*chosen) for chosen in itertools.product(*named)]


def _model_judge(name: str | None) -> "ModelJudge | None":
    if name is None:
        return None
    from supervisor_memory.evaluation import ModelJudge

    try:
        from langchain.chat_models import init_chat_model

        model = init_chat_model(name)
    except Exception as error:
        what, _, _ = str(error).partition("\n")
        raise SettingsError(f"--judge {name!r} cannot be opened: {type(error).__name__}: {what}") from error
    return ModelJudge(model)


def _sql_judge(database: Path | None, names: Path | None) -> "SqlJudge | None":
    from supervisor_memory.evaluation import SqlJudge

    if database is None:
        return None
    try:
        known = json_module.loads(names.read_text(encoding="utf-8")) if names is not None else {}
    except ValueError as error:
        raise InvalidContent(f"{names} is no JSON: {error}") from error
    return SqlJudge(database, names=known)


def _write(out: Path, found: "Report") -> None:
    """Every turn, with its texts, into a file that its owner alone may read."""
    told = {**found.to_dict(), "cases": found.cases()}
    with open(os.open(out, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600), "w", encoding="utf-8") as file:
        json_module.dump(told, file, ensure_ascii=False, indent=1)
        file.write("\n")
