"""Commands for recipes: list them, show their parts, compare two, run their chores."""

from pathlib import Path
from typing import Annotated

import typer
from typer import Argument, Option

from supervisor_memory import Settings, SupervisorMemory
from supervisor_memory.errors import RecipeError
from supervisor_memory.interfaces.cli.options import EnvFile, Json, User, opened, print_json, say
from supervisor_memory.interfaces.printable import counted, one_line
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
    """Show the differences of two recipes: operators, constants, settings."""
    rows = differences(one, other)
    if json:
        told = [{"key": key, "one": mine, "other": yours} for key, mine, yours in rows]
        print_json({"differences": told})
        return
    for key, mine, yours in rows:
        typer.echo(one_line(key))
        typer.echo(one_line(f"  - {mine}"))
        typer.echo(one_line(f"  + {yours}"))


@recipe.command()
def status(*, user: User, json: Json = False, env_file: EnvFile = None) -> None:
    """Tell how much is due by each chore of the recipe, and which comes first."""
    with opened(env_file) as memory:
        told = memory.status(user_id=user)
    if json:
        print_json(told)
        return
    typer.echo(one_line(f"{told['recipe']}: {counted(told['records'], 'record')}"))
    for chore, due in told["due"].items():
        typer.echo(one_line(f"{chore:<18} {counted(due, 'change')} due"))


@recipe.command()
def optimize(
    *,
    user: User,
    chore: Annotated[
        list[str] | None, Option(metavar="NAME", help="This chore alone; can be given again.")
    ] = None,
    yes: Annotated[bool, Option("--yes", help="Do it. Without, only tell each change and why.")] = False,
    json: Json = False,
    env_file: EnvFile = None,
) -> None:
    """Run the recipe's chores: forgetting, reflections, digests. `undo` takes a run back."""
    with opened(env_file, embedder=yes) as memory:
        done = memory.optimize(user_id=user, chores=chore, dry_run=not yes)
    if json:
        print_json(done.to_dict())
        return
    for step in done.steps:
        typer.echo(one_line(f"{step.chore} {step.doing} {step.record_id}: {step.why}"))
    for record_id in done.left:
        say(f"somebody else changed {one_line(record_id)} meanwhile, so it was left")
    if done.run:
        typer.echo(f"run {done.run}")
    elif done.steps:
        say("nothing was changed; --yes does it")
    else:
        typer.echo("nothing is due")


@recipe.command()
def undo(
    run: Annotated[str, Argument(help="As `optimize` told it.", metavar="RUN")],
    *,
    user: User,
    json: Json = False,
    env_file: EnvFile = None,
) -> None:
    """Undo a run of chores: its records get their earlier state back, unless they were changed since."""
    with opened(env_file, embedder=True) as memory:
        done = memory.upkeep.undo(run, user_id=user)
    if json:
        print_json(done.to_dict())
        return
    typer.echo(f"{counted(len(done.steps), 'record')} set back, {len(done.left)} left")


@recipe.command()
def switching(name: Name, *, user: User, json: Json = False, env_file: EnvFile = None) -> None:
    """Tell what another recipe would do with a user's records. Nothing is changed."""
    with opened(env_file) as memory:
        told = memory.upkeep.switching(name, user_id=user)
    if json:
        print_json({"told": [*told]})
        return
    for line in told:
        typer.echo(one_line(line))
