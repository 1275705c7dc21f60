"""Writes and reads the lines of an export file; every line read is checked. See docs/moving.md."""

import base64
import binascii
import json
import re
from collections.abc import Mapping
from dataclasses import dataclass
from importlib.metadata import version
from typing import Annotated, Any, Final, NoReturn

import numpy as np
from pydantic import BaseModel, ConfigDict, Field, ValidationError

from supervisor_memory.errors import InvalidContent, SupervisorMemoryError
from supervisor_memory.model.arguments import DEEPEST, FIRST_MOMENT, LAST_MOMENT, check_shape
from supervisor_memory.model.records import (
    MAX_CONTENT_BYTES,
    TEAM,
    Kind,
    Layer,
    Record,
    SourceClass,
    Status,
    check_content,
    check_family,
    check_name,
)
from supervisor_memory.stores.protocol import Stored

FORMAT: Final = "supervisor-memory"
NUMBER: Final = 1
MOST_BYTES: Final = 8 * 1024 * 1024
"""The limit of a line, its end included."""

_MOST_VERSIONS: Final = 100_000
_MOST_MISSING: Final = 1_000
_MOST_DIMENSIONS: Final = 65_536
_AROUND_METADATA: Final = 4  # levels of a line: itself, its versions, one of them, its metadata
_LATEST: Final = 1e13
_ENCODER: Final = json.JSONEncoder(ensure_ascii=False, separators=(",", ":"), allow_nan=False)
# Where a LangGraph store puts items whose labels are no names, see host/store/addresses.py.
_ELSEWHERE: Final = "_store"
_NOBODY: Final = re.compile(r" store:[0-9a-f]{32}\Z")
_PAIR, _TRIPLE = 2, 3


@dataclass(frozen=True, slots=True)
class Header:
    """The first line of a file. `user_id`: all records are this user's; None: they are of all users."""

    written_at: float
    by: str
    user_id: str | None = None


@dataclass(frozen=True, slots=True)
class End:
    """The last line of a file, with the number of its records."""

    records: int


def header_line(*, written_at: float, user_id: str | None) -> bytes:
    """The first line of a file; `written_at` in seconds since 1970."""
    by = f"supervisor-memory {version('supervisor-memory')}"
    return _line({"format": FORMAT, "number": NUMBER, "written_at": written_at, "by": by, "user_id": user_id})


def end_line(records: int) -> bytes:
    return _line({"end": {"records": records}})


def record_line(stored: Stored) -> bytes:
    """A record with its versions and vector as a line; InvalidContent: too long, or no JSON."""
    vector = None
    if stored.vector is not None:
        numbers = base64.b64encode(stored.vector.astype("<f4").tobytes()).decode()
        vector = {"embedder": stored.record.embedder, "float32": numbers}
    told = {
        "record": stored.record.to_dict(),
        "versions": [each.to_dict() for each in stored.earlier],
        "vector": vector,
    }
    try:
        line = _line(told)
    except (TypeError, ValueError, RecursionError) as error:
        raise InvalidContent(
            f"record {stored.record.id} cannot be written as JSON ({error}); change its metadata, or "
            "use `copy`",
            record_id=stored.record.id,
        ) from error
    if len(line) > MOST_BYTES:
        raise InvalidContent(
            f"record {stored.record.id} with its {len(stored.earlier)} earlier versions takes {len(line):,} "
            f"bytes, and a line at most {MOST_BYTES:,}; use `copy`, from store to store",
            record_id=stored.record.id,
        )
    return line


def read(line: bytes) -> Header | Stored | End:
    """Read a line of an export file, which anybody may have written; SupervisorMemoryError: why not."""
    try:
        value = json.loads(line.decode("utf-8"), parse_constant=_refuse_constant)
        check_shape(value, deepest=DEEPEST + _AROUND_METADATA)
    except RecursionError:
        raise _damaged("it is nested too deep") from None
    except ValueError as error:
        raise _damaged(f"it is no JSON in UTF-8 that can be kept ({str(error)[:120]})") from error
    if not isinstance(value, dict):
        raise _damaged("it is no object")
    try:
        if "format" in value:
            return _header(value)
        if "end" in value:
            return End(_EndLine.model_validate(value).end.records)
        return _stored(_RecordLine.model_validate(value))
    except ValidationError as error:
        raise _damaged(_first_fault(error)) from None
    except SupervisorMemoryError:
        raise
    except (ValueError, TypeError, RecursionError) as error:
        raise _damaged(f"{type(error).__name__}: {str(error)[:120]}") from error


class _Strict(BaseModel):
    model_config = ConfigDict(strict=True, extra="forbid", allow_inf_nan=False)


_Text = Annotated[str, Field(max_length=MAX_CONTENT_BYTES)]
_Messages = Annotated[list[_Text], Field(max_length=1_000)]
_Moment = Annotated[float, Field(ge=FIRST_MOMENT, le=LAST_MOMENT)]
_Time = Annotated[float, Field(ge=-_LATEST, le=_LATEST)]


class _SourceValue(_Strict):
    source_class: SourceClass = "user"
    agent_id: _Text | None = None
    session_id: _Text | None = None
    run_id: _Text | None = None
    message_id: _Text | None = None
    speaker: _Text | None = None


class _RecordValue(_Strict):
    id: str
    namespace: Annotated[list[str], Field(min_length=_PAIR, max_length=_TRIPLE)]
    content: str
    kind: Kind
    created_at: _Moment
    updated_at: _Moment
    layer: Layer = "abstract"
    status: Status = "active"
    metadata: dict[str, Any] = {}
    tags: list[_Text] = []
    importance: Annotated[float, Field(ge=0, le=1)] = 0.5
    source: _SourceValue = _SourceValue()
    ref_id: _Text | None = None
    subject: _Text | None = None
    attribute: _Text | None = None
    content_hash: _Text = ""
    version: Annotated[int, Field(ge=1, le=_MOST_VERSIONS)] = 1
    valid_from: _Time | None = None
    valid_to: _Time | None = None
    expires_at: _Time | None = None
    embedder: _Text | None = None
    joined_ref_ids: _Messages = []
    former_ref_ids: _Messages = []


class _VectorValue(_Strict):
    embedder: _Text
    float32: str


class _RecordLine(_Strict):
    record: _RecordValue
    versions: list[_RecordValue] = []
    vector: _VectorValue | None = None


class _Count(_Strict):
    records: Annotated[int, Field(ge=0)]


class _EndLine(_Strict):
    end: _Count


class _HeaderLine(BaseModel):
    """The first line, read less strictly: a later release may add keys to it."""

    model_config = ConfigDict(strict=True, allow_inf_nan=False)

    format: str
    number: int
    written_at: float
    by: str
    user_id: str | None = None


def _header(value: Mapping[str, Any]) -> Header:
    told = _HeaderLine.model_validate(value)
    if told.format != FORMAT:
        raise InvalidContent(f"its format is {told.format[:40]!r}, not {FORMAT!r}")
    if told.number != NUMBER:
        raise InvalidContent(
            f"it has format {told.number} and this release reads {NUMBER}; import it with that which wrote "
            f"it, {told.by[:60]!r}, or a later one"
        )
    return Header(told.written_at, told.by, told.user_id)


def _stored(line: _RecordLine) -> Stored:
    record = _record(line.record)
    vector = None
    if line.vector is not None:
        if line.vector.embedder != line.record.embedder:
            raise _damaged("its vector is of another embedder than its record says")
        vector = _vector(line.vector.float32)
    if record.version - len(line.versions) > _MOST_MISSING:  # stores ask for each of them
        raise _damaged(f"it is of version {record.version:,} and brings {len(line.versions):,} earlier ones")
    return Stored(record, tuple(map(_record, line.versions)), vector)


def _record(value: _RecordValue) -> Record:
    check_name(value.id, what="record id")
    _check_namespace(value.namespace)
    for what, name in (("session id", value.source.session_id), ("run id", value.source.run_id)):
        if name is not None:
            check_name(name, what=what)
    check_content(value.content)
    check_shape(value.metadata)
    # All as the file says, except for the hash: it is computed from the content.
    return Record.from_dict({**value.model_dump(), "content_hash": ""})


def _check_namespace(namespace: list[str]) -> None:
    family, user_id, *task = namespace
    if family != _ELSEWHERE or not _NOBODY.match(user_id):
        check_family(family)
        check_name(user_id.removeprefix(TEAM), what="user id")
    if task and not _NOBODY.match(task[0]):
        check_name(task[0], what="task")


def _vector(text: str) -> "np.ndarray[Any, np.dtype[np.float32]]":
    try:
        numbers = np.frombuffer(binascii.a2b_base64(text, strict_mode=True), dtype="<f4")
    except ValueError as error:
        raise _damaged(f"its vector is no base64 of float32 ({error})") from error
    if not 0 < len(numbers) <= _MOST_DIMENSIONS:
        raise _damaged(f"its vector has {len(numbers):,} dimensions")
    return numbers.astype(np.float32)


def _line(value: Mapping[str, Any]) -> bytes:
    return _ENCODER.encode(value).encode() + b"\n"


def _refuse_constant(name: str) -> NoReturn:
    raise ValueError(f"{name} is no number of JSON")


def _first_fault(error: ValidationError) -> str:
    fault = error.errors(include_url=False, include_input=False, include_context=False)[0]
    return f"{'.'.join(map(str, fault['loc']))[:80] or 'it'}: {fault['msg'][:120]}"


def _damaged(why: str) -> InvalidContent:
    return InvalidContent(f"the line cannot be read: {why}")
