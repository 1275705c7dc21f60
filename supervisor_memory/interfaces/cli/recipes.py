"""Commands for recipes: list them, show their parts, compare two."""

from pathlib import Path
from typing import Annotated

import typer
from typer import Argument, Option

from supervisor_memory import Settings, SupervisorMemory
from supervisor_memory.errors import RecipeError
from supervisor_memory.interfaces.cli.options import Json, print_json
from supervisor_memory.interfaces.printable import one_line
from supervisor_memory.recipes.describe import as_toml, described, differences, listed
from supervisor_memory.recipes.open import open_recipe, published
from supervisor_memory.recipes.published import is_file

recipe = typer.Typer(
    no_args_is_help=True, help="Look at recipes: what memory does, in six stages; see docs/recipes.md."
)
Name = Annotated[str, Argument(help="A recipe's name, or a .toml or .yaml file.", metavar="NAME")]


@recipe.command("list")
def list_(*, json: Json = False) -> None:
    """List the recipes that are installed. MEMORY_RECIPE names one of them."""
    rows = listed()
    if json:
        print_json({"recipes": rows})
        return
    for row in rows:
        typer.echo(one_line(f"{row['name']:<18} {row['idea']}"))


@recipe.command()
def show(
    name: Name,
    *,
    toml: Annotated[bool, Option("--toml", help="As a file that makes the same recipe.")] = False,
    json: Json = False,
) -> None:
    """Show what a recipe is made of, where it is from, and its constants with their sources."""
    if toml:
        typer.echo(as_toml(name), nl=False)
        return
    found = described(open_recipe(name))
    about = None if is_file(name) else published(name)
    if json:
        sources = [{"name": n, "value": v, "source": s} for n, v, s in about.sources] if about else []
        print_json({**found, "about": dict(about.said) if about else {}, "constants": sources})
        return
    if about is not None:
        for heading, text in about.said.items():
            typer.echo(one_line(f"{heading}: {text}"))
    for key, value in found.items():
        told = " → ".join(value) if isinstance(value, list) else str(value)
        if value:
            typer.echo(one_line(f"{key}: {told}"))
    for constant, value, source in about.sources if about else ():
        typer.echo(one_line(f"{constant} = {value} ({source})"))


@recipe.command()
def check(
    file: Annotated[Path, Argument(help="A .toml or .yaml file.", metavar="FILE")], *, json: Json = False
) -> None:
    """Read a recipe's file and try it on an empty store in memory. Exit code 1: it is refused, and why."""
    settings = Settings(embedding_model="none", queue_worker=False)
    with SupervisorMemory(settings, recipe=str(file)) as memory:
        memory.write("The depot is in Kiel.", user_id="check")
        found = memory.search("Where is the depot?", user_id="check")
        if found.degraded:
            raise RecipeError(f"{file} is read, but a search with it does not work: {'; '.join(found.notes)}")
        memory.optimize(user_id="check", dry_run=True)
        name = memory.recipe.name
    if json:
        print_json({"ok": True, "name": name, "file": str(file)})
    else:
        typer.echo(one_line(f"{file}: recipe {name} works"))


@recipe.command()
def diff(one: Name, other: Name, *, json: Json = False) -> None:
    """Show in what two recipes differ: operators, constants, settings."""
    rows = differences(one, other)
    if json:
        told = [{"key": key, "one": mine, "other": yours} for key, mine, yours in rows]
        print_json({"differences": told})
        return
    for key, mine, yours in rows:
        typer.echo(one_line(key))
        typer.echo(one_line(f"  - {mine}"))
        typer.echo(one_line(f"  + {yours}"))
