"""A line of an export may be anybody's: it is taken as it is or refused, and nothing else ever happens."""

import base64
import io
import json
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from supervisor_memory import Settings, SupervisorMemory
from supervisor_memory.errors import InvalidContent, SupervisorMemoryError
from supervisor_memory.moving import lines
from supervisor_memory.moving.lines import End, Header, end_line, header_line, read, record_line
from supervisor_memory.stores.protocol import Stored
from supervisor_memory.testing.moving_contract import all_of, assert_same, full_store
from supervisor_memory.testing.records import tea
from tests.breadth import examples
from tests.cases import every_case

STORED = all_of(full_store())
LINES = [record_line(each) for each in STORED]
VECTOR = next(number for number, each in enumerate(STORED) if each.vector is not None)
HEADER = header_line(written_at=1.0, user_id=None)

json_values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=5),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=5), inner, max_size=3),
    max_leaves=8,
)


def file_of(*some: bytes, count: int | None = None) -> io.BytesIO:
    return io.BytesIO(b"".join([HEADER, *some, end_line(len(some) if count is None else count)]))


def new_memory() -> SupervisorMemory:
    return SupervisorMemory(Settings(embedding_model="none"))


def changed(line: bytes, path: tuple[str | int, ...], value: Any) -> bytes:
    told = json.loads(line)
    inner = told
    for key in path[:-1]:
        inner = inner[key]
    inner[path[-1]] = value
    return json.dumps(told).encode() + b"\n"


def test_a_line_says_again_what_was_written() -> None:
    assert_same([each for each in map(read, LINES) if isinstance(each, Stored)], STORED)
    assert all(line.count(b"\n") == 1 for line in LINES)
    assert read(HEADER) == Header(1.0, "supervisor-memory 0.1.0", None)
    assert read(end_line(3)) == End(3)


@settings(max_examples=examples(300), deadline=None)
@given(number=st.integers(0, len(LINES) - 1), data=st.data())
def test_a_line_with_damaged_bytes_is_refused_or_is_a_sound_record(number: int, data: st.DataObject) -> None:
    line = bytearray(LINES[number])
    for _ in range(data.draw(st.integers(1, 3))):
        at = data.draw(st.integers(0, len(line) - 2))
        match data.draw(st.sampled_from(("change", "remove", "insert", "cut"))):
            case "change":
                line[at] = data.draw(st.integers(0, 255))
            case "remove":
                del line[at]
            case "insert":
                line.insert(at, data.draw(st.integers(0, 255)))
            case "cut":
                del line[at:-1]
        if len(line) < 2:
            break
    memory = new_memory()
    moved = memory.import_from(file_of(bytes(line).replace(b"\n", b"") + b"\n"))
    stored = all_of(memory.backend)
    assert len(stored) == moved.counts.get("added", 0)
    assert moved.counts.get("added", 0) + len(moved.refused) >= (1 if bytes(line).strip() else 0)
    json.dumps([each.record.to_dict() for each in stored], allow_nan=False).encode()


@settings(max_examples=examples(300), deadline=None)
@given(
    where=st.sampled_from(
        [("record",), ("versions",), ("vector",), ("other",)]
        + [("record", key) for key in json.loads(LINES[0])["record"]]
        + [("record", "source", key) for key in json.loads(LINES[0])["record"]["source"]]
        + [("record", "namespace", 1), ("vector", "float32"), ("vector", "embedder")]
    ),
    value=json_values,
)
def test_a_value_of_another_kind_is_refused_or_harmless(where: tuple[str | int, ...], value: object) -> None:
    line = changed(LINES[VECTOR], where, value)
    memory = new_memory()
    moved = memory.import_from(file_of(line))
    stored = all_of(memory.backend)
    assert (moved.counts.get("added"), moved.counts.get("refused")) in ((1, None), (None, 1))
    if moved.refused:
        assert moved.refused[0].line == 2
        assert stored == []
    else:
        assert json.loads(record_line(stored[0]))["record"].keys() == json.loads(line)["record"].keys()
        memory.search("tea", user_id=stored[0].record.user_id)


BAD = {
    "a user that is nobody": (("record", "namespace"), ["user_profile", "null"]),
    "a user with a zero-width letter": (("record", "namespace"), ["user_profile", "a\u200bda"]),
    "a user that is not NFC": (("record", "namespace"), ["user_profile", "e\u0301"]),
    "no user": (("record", "namespace"), ["user_profile"]),
    "four segments": (("record", "namespace"), ["user_profile", "ada", "t", "u"]),
    "a family that cannot be": (("record", "namespace"), ["../x", "ada"]),
    "a family of the store that it made up": (("record", "namespace"), ["_store", " store:abc"]),
    "an id with a line break": (("record", "id"), "a\nb"),
    "content that is empty": (("record", "content"), " \n"),
    "content with a control character": (("record", "content"), "a\x00b"),
    "content with a surrogate": (("record", "content"), "a\ud800"),
    "content that is too long": (("record", "content"), "x" * 70_000),
    "a status nobody knows": (("record", "status"), "secret"),
    "a version of 0": (("record", "version"), 0),
    "a version that no history has": (("record", "version"), 10**12),
    "a version whose history is missing": (("record", "version"), 50_000),
    "a version that is true": (("record", "version"), True),
    "a time that is text": (("record", "created_at"), "now"),
    "a time in the far future": (("record", "updated_at"), 1e300),
    "an importance of 2": (("record", "importance"), 2),
    "a key nobody knows": (("record", "admin"), True),
    "metadata that is a list": (("record", "metadata"), []),
    "metadata with a huge number": (("record", "metadata"), {"n": 2**70}),
    "metadata that is deep": (("record", "metadata"), {"n": json.loads("[" * 80 + "]" * 80)}),
    "a session id with a space around": (("record", "source", "session_id"), " s"),
    "a vector of another embedder": (("vector", "embedder"), "another"),
    "a vector that is no base64": (("vector", "float32"), "!!!"),
    "a vector of three bytes": (("vector", "float32"), "AAAA"),
    "a vector of nothing": (("vector", "float32"), ""),
    "a vector that is zero": (("vector", "float32"), base64.b64encode(bytes(32)).decode()),
    "a vector with NaN": (
        ("vector", "float32"),
        base64.b64encode(np.full(8, np.nan, "<f4").tobytes()).decode(),
    ),
    "no vector where there is an embedder": (("vector",), None),
    "an earlier version that is another record": (
        ("versions",),
        [{**json.loads(LINES[VECTOR])["record"], "id": "x", "version": 1}],
    ),
}


@every_case("what", BAD)
def test_bad_input_is_refused_with_its_line_and_the_rest_is_taken(what: str) -> None:
    path, value = BAD[what]
    line = changed(LINES[VECTOR], path, value)
    others = [each for number, each in enumerate(LINES) if number != VECTOR]
    memory = new_memory()
    moved = memory.import_from(file_of(others[0], line, *others[1:]))
    assert [(each.line, each.reason in ("damaged", "invalid")) for each in moved.refused] == [(3, True)]
    assert moved.refused[0].told
    assert moved.counts == {"added": len(others), "refused": 1}
    assert len(moved.refused[0].told) < 500


@every_case(
    "line",
    [
        *(b"[" * 100_000, b'{"a":' * 50_000, b"[" * 2_000 + b"]" * 2_000, b'{"record":NaN}', b"null", b"7"),
        *(b'"text"', b"\xff\xfe", b"{", b'{"record":{}}', b'{"end":{"records":-1}}', b"1" * 5_000),
        *(b'{"record":{"importance":1e999}}', b'{"format":"supervisor-memory","number":1}'),
    ],
)
def test_what_is_no_record_is_refused_as_a_line(line: bytes) -> None:
    with pytest.raises(SupervisorMemoryError):
        read(line)
    memory = new_memory()
    moved = memory.import_from(file_of(LINES[0], line + b"\n", LINES[1]))
    assert (moved.counts["added"], [each.line for each in moved.refused]) == (2, [3])


def test_a_line_that_is_too_long_is_passed_over_and_the_next_is_taken(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr("supervisor_memory.moving.files.MOST_BYTES", 5_000)
    memory = new_memory()
    moved = memory.import_from(file_of(LINES[0], b'{"a":"' + b"x" * 20_000 + b'"}\n', LINES[1]))
    assert (moved.counts["added"], [each.line for each in moved.refused]) == (2, [3])
    assert "20,009 bytes" in moved.refused[0].told


def test_a_record_that_is_too_long_for_a_line_is_told_of_and_the_rest_is_written(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(lines, "MOST_BYTES", 2_000)
    memory = new_memory()
    memory.backend.write(
        [tea("x" * 3_000, id="long"), tea("short"), tea(metadata={"n": float("nan")}, id="n")]
    )
    written = io.BytesIO()
    moved = memory.export(written)
    assert moved.counts == {"exported": 1, "refused": 2}
    assert {each.record_id for each in moved.refused} == {"long", "n"}
    assert new_memory().import_from(io.BytesIO(written.getvalue())).is_whole


def test_what_a_langgraph_store_keeps_can_be_moved() -> None:
    memory, other = new_memory(), new_memory()
    store = memory.store(guarded=False)
    for labels in (("memories", "ada"), ("memories", "ada", "x", "y"), ("no user",), ("a b", "c", "d")):
        store.put(labels, "key", {"text": "likes tea", "n": 1})
    written = io.BytesIO()
    memory.export(written)
    assert other.import_from(io.BytesIO(written.getvalue())).counts == {"added": 4}
    items = other.store(guarded=False).search(("memories",), limit=9)
    assert {item.namespace for item in items} == {("memories", "ada"), ("memories", "ada", "x", "y")}


def test_a_file_of_a_later_format_and_a_file_of_others_are_refused_as_a_whole() -> None:
    later = json.dumps({**json.loads(HEADER), "number": 2}).encode() + b"\n"
    for content in (later, b"", b"\n\n", LINES[0], b"a,b,c\n1,2,3\n", end_line(0), b'{"format":"mem0"}\n'):
        memory = new_memory()
        with pytest.raises(InvalidContent):
            memory.import_from(io.BytesIO(content + LINES[1] if content.strip() else content))
        assert all_of(memory.backend) == []


def test_a_first_line_may_say_more_and_may_begin_with_a_byte_order_mark() -> None:
    more = json.dumps({**json.loads(HEADER), "note": "made by hand"}).encode()
    memory = new_memory()
    moved = memory.import_from(
        io.BytesIO(b"\xef\xbb\xbf" + more + b"\r\n" + LINES[0] + b"\r\n" + end_line(1))
    )
    assert (moved.counts, moved.refused) == ({"added": 1}, ())


def test_what_stands_behind_the_end_and_another_beginning_are_told_of() -> None:
    memory = new_memory()
    both = HEADER + LINES[0] + HEADER + LINES[1] + end_line(2) + LINES[2]
    moved = memory.import_from(io.BytesIO(both))
    assert [each.line for each in moved.refused] == [3, 6]
    assert moved.counts == {"added": 2, "refused": 2}


def test_a_text_file_object_is_named_as_what_it_is() -> None:
    with pytest.raises(InvalidContent, match="rb"):
        new_memory().import_from(io.StringIO("x\n"))  # type: ignore[arg-type]


def test_a_record_that_comes_twice_is_taken_once_and_another_of_its_id_is_refused() -> None:
    memory = new_memory()
    other = changed(LINES[0], ("record", "importance"), 0.75)
    moved = memory.import_from(file_of(LINES[0], LINES[0], other))
    assert moved.counts == {"added": 1, "same": 1, "refused": 1}
    assert [(each.line, each.reason) for each in moved.refused] == [(4, "other-record")]
    assert_same(all_of(memory.backend), STORED[:1])
