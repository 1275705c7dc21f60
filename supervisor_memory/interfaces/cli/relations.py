"""The command that shows what is related to what."""

from typing import Annotated, Any

import typer
from typer import Argument, Option

from supervisor_memory.interfaces.cli.options import EnvFile, Json, User, opened, print_json
from supervisor_memory.interfaces.cli.where import AsOf, moment_of
from supervisor_memory.interfaces.present import relations_told
from supervisor_memory.interfaces.printable import one_line

_LINE = 160


def relations(
    about: Annotated[str, Argument(help="A name, as fct_orders, or a record's whole id.", metavar="NAME")],
    *,
    user: User,
    to: Annotated[str | None, Option("--to", help="Also the way to this one.", metavar="NAME")] = None,
    limit: Annotated[int, Option("--limit", "-n", min=1, max=1000, help="Most neighbours.")] = 20,
    offset: Annotated[int, Option("--offset", min=0, help="Go on after so many.", metavar="N")] = 0,
    as_of: AsOf = None,
    json: Json = False,
    env_file: EnvFile = None,
) -> None:
    """Show the neighbours and the lineage of a table, a person, a file or a record."""
    asked = {"to": to, "limit": limit, "offset": offset, "as_of": moment_of(as_of, end=True)}
    with opened(env_file) as memory:
        told = relations_told(memory, about, user_id=user, **asked)
    if json:
        print_json(told)
        return
    _show(told, one_line(about), to)


def _show(told: dict[str, Any], about: str, to: str | None) -> None:
    texts = {each["id"]: one_line(each["content"], most=_LINE) for each in told["records"]}
    if not told["names"]:
        typer.echo(f"no record names {about}")
        return
    names = [each["name"] for each in told["names"] if each["name"] != about]
    also = f" (also {one_line(', '.join(names), most=_LINE)})" if names else ""
    typer.echo(f"{about}{also}")
    for each in told["links"]:
        said = f"{_name_of(each['source'])} {each['relationship']} {_name_of(each['destination'])}"
        typer.echo(f"  {said} [{each['record_id']}]")
    for each in told["neighbours"]:
        if not each["relationships"]:
            ids = each["record_ids"]
            typer.echo(f"  beside {_name_of(each['thing'])}: {texts.get(ids[0], '')} [{ids[0]}]")
    for way, word in (("upstream", "made from"), ("downstream", "in")):
        if found := ", ".join(f"{each['kind']} {_name_of(each)}" for each in told[way]):
            typer.echo(f"  {word}: {found}")
    if to is not None:
        typer.echo(f"  {'the' if told['path'] else 'there is no'} way to {one_line(to)}")
    for each in told["path"]:
        joined = each["relationship"] or "beside"
        line = f"    {_name_of(each['source'])} {joined} {_name_of(each['destination'])}"
        typer.echo(f"{line}: {texts.get(each['record_id'], '')}")
    for note in told["notes"]:
        typer.echo(note)
    if told["next"] is not None:
        typer.echo(f"there are more neighbours: --offset {told['next']}")


def _name_of(thing: dict[str, Any]) -> str:
    return one_line(thing["name"], most=_LINE)
