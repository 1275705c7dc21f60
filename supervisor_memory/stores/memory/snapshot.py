"""Turns a state into readable JSON, and back."""

import json
from dataclasses import dataclass
from typing import Final

from supervisor_memory.model.records import Record
from supervisor_memory.stores.changes import as_text, from_text
from supervisor_memory.stores.memory.state import Staged, State

FORMAT: Final = 1


class UnknownFormat(ValueError):
    """The file has a format that this release does not know."""


@dataclass(frozen=True, slots=True)
class Snapshot:
    """A state and the id of the commit that made it; "" before the first."""

    state: State
    commit_id: str = ""


def encoded(state: State, staged: Staged, *, commit_id: str) -> str:
    """The text of the file as it shall be once `staged` is applied."""
    records = state.records | staged.records
    history = {record_id: list(versions) for record_id, versions in state.history.items()}
    for record in staged.previous:
        history.setdefault(record.id, []).append(record)
    vectors = {id_: stored for id_, stored in (state.vectors | staged.vectors).items() if stored is not None}
    content = {
        "format": FORMAT,
        "commit": commit_id,
        "records": [record.to_dict() for record in records.values()],
        "versions": [record.to_dict() for versions in history.values() for record in versions],
        "vectors": {id_: {"embedder": name, "float32": as_text(v)} for id_, (name, v) in vectors.items()},
    }
    return json.dumps(content, ensure_ascii=False, indent=1) + "\n"


def decoded(text: str) -> Snapshot:
    """The state in the text of a file; raises UnknownFormat, or an error of any kind where it is damaged."""
    content = json.loads(text)
    if (found := content["format"]) != FORMAT:
        raise UnknownFormat(f"it has format {found!r} and this release reads format {FORMAT}")
    records = {data["id"]: Record.from_dict(data) for data in content["records"]}
    history: dict[str, list[Record]] = {}
    for data in content["versions"]:
        history.setdefault(data["id"], []).append(Record.from_dict(data))
    vectors = {
        id_: (str(each["embedder"]), from_text(each["float32"])) for id_, each in content["vectors"].items()
    }
    return Snapshot(State(records, history=history, vectors=vectors), str(content["commit"]))
