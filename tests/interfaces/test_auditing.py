"""The commands of the audit, over a store that a graph could have left behind."""

import hashlib
import json
import re
from contextlib import closing
from pathlib import Path

import apsw
import pytest

from supervisor_memory import Scope, SupervisorMemory
from tests.interfaces.conftest import Run

FILES = {"sqlite": "memory.db", "json": "audit.db"}


def tamper(backend: str, *statements: str) -> None:
    with closing(apsw.Connection(f".supervisor_memory/{FILES[backend]}")) as connection:
        for trigger in ("audit_is_never_changed", "audit_is_never_removed"):
            connection.execute(f"DROP TRIGGER {trigger}")
        for statement in statements:
            connection.execute(statement)


def test_a_page_of_rows_goes_on_where_the_one_before_ended(run: Run, ids: dict[str, str]) -> None:
    first = run("audit", "list", "-n", "3", "--json").json["rows"]
    then = run("audit", "list", "--after", "3", "-n", "2", "--json").json["rows"]
    assert [row["seq"] for row in (*first, *then)] == [1, 2, 3, 4, 5]
    assert run("audit", "list", "--after", "9999").stdout == "no rows\n"


def test_a_page_may_be_of_one_user(run: Run, ids: dict[str, str]) -> None:
    every = run("audit", "list", "--json").json["rows"]
    of_bo = run("audit", "list", "-u", "bo", "--json").json["rows"]
    assert of_bo == [row for row in every if row["subject"] == of_bo[0]["subject"]]
    assert 0 < len(of_bo) < len(every)
    assert run("audit", "list", "-u", "bo", "--after", str(of_bo[-1]["seq"])).stdout == "no rows\n"
    assert run("audit", "list", "-u", "nobody").stdout == "no rows\n"


def test_tail_narrows_to_a_record_and_to_an_operation(run: Run, ids: dict[str, str]) -> None:
    of_bo = run("audit", "tail", "--record", ids["bo"], "--json").json["rows"]
    assert {row["record_id"] for row in of_bo} == {ids["bo"]}
    [update] = run("audit", "tail", "--record", ids["bo"], "--op", of_bo[-1]["op"], "--json").json["rows"]
    assert update["version_after"] == 2


def test_one_row_is_shown_whole(run: Run, ids: dict[str, str]) -> None:
    number = run("audit", "tail", "--record", ids["table"], "--json").json["rows"][0]["seq"]
    row = run("audit", "show", str(number), "--json").json
    assert (row["seq"], row["record"]["content"]) == (number, "Use tables by default.")
    assert row["hash"] in run("audit", "show", str(number)).stdout
    missing = run("audit", "show", "9999")
    assert missing.code == 1
    assert "has no row 9999" in missing.stderr


def test_an_export_can_be_proved_by_who_has_nothing_else(
    run: Run, ids: dict[str, str], tmp_path: Path
) -> None:
    count = run("audit", "export", "log.jsonl", "--json").json["rows"]
    rows = [json.loads(line) for line in (tmp_path / "log.jsonl").read_text().splitlines()]
    assert len(rows) == count > 5
    before = bytes(32).hex()
    for row in rows:
        payload = row["payload"].encode()
        told = b"sm-audit/v1\x00" + row["log_id"].encode() + bytes.fromhex(before) + payload
        assert (row["prev"], row["hash"]) == (before, hashlib.sha256(told).hexdigest())
        before = row["hash"]
    assert "tables" not in (tmp_path / "log.jsonl").read_text()
    assert run("audit", "export", "log.jsonl").code == 1


def test_how_verify_ends_tells_what_is_wrong(
    run: Run, ids: dict[str, str], backend: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("MEMORY_ANCHOR_KEY", "a long random text")
    assert run("audit", "anchor", "anchors").code == 0
    assert run("audit", "verify", "--deep", "--anchor", "anchors").code == 0
    last = run("audit", "tail", "-n", "1", "--json").json["rows"][0]["seq"]
    tamper(backend, f"DELETE FROM audit WHERE seq = {last}")
    assert run("audit", "verify").code == 0
    cut = run("audit", "verify", "--anchor", "anchors", "--json")
    # A json store notices on opening that its log does not know of the last commit, and says so in a new row.
    expected = (4, "truncated") if backend == "sqlite" else (3, "chain")
    assert (cut.code, cut.json["faults"][0]["kind"]) == expected
    with closing(apsw.Connection(f".supervisor_memory/{FILES[backend]}")) as connection:
        connection.execute("UPDATE audit SET outcome = 'denied' WHERE seq = 2")
    assert run("audit", "verify").code == 3
    assert run("audit", "verify", "--anchor", "anchors").code == 3


def test_a_record_that_is_gone_or_reads_otherwise_is_told_apart(
    run: Run, ids: dict[str, str], backend: str
) -> None:
    if backend != "sqlite":
        pytest.skip("memory.json is checked when it is read")
    with closing(apsw.Connection(".supervisor_memory/memory.db")) as connection:
        for id_, old, new in ((ids["table"], "tables", "charts"),):
            connection.execute("UPDATE records SET data = replace(data, ?, ?) WHERE id = ?", (old, new, id_))
    assert run("audit", "verify", "--state").code == 0
    assert run("audit", "verify", "--deep").code == 6
    with closing(apsw.Connection(".supervisor_memory/memory.db")) as connection:
        connection.execute("DELETE FROM records WHERE id = ?", (ids["bo"],))
    assert run("audit", "verify", "--state").code == 5
    assert run("audit", "verify", "--deep").code == 5


def test_an_anchor_in_the_store_is_refused_and_one_without_a_key_says_so(
    run: Run, ids: dict[str, str]
) -> None:
    refused = run("audit", "anchor", ".supervisor_memory/anchors")
    assert refused.code == 1
    assert "beside the log" in refused.stderr
    assert "not signed" in run("audit", "anchor", "anchors").stderr


def test_why_tells_what_a_run_was_told_and_what_became_of_a_record(run: Run, ids: dict[str, str]) -> None:
    with SupervisorMemory.from_env() as memory:
        asked = [{"role": "user", "content": "What counts as delayed?"}]
        memory.recall(asked, Scope("ada", session_id="s-2", run_id="run-9"))
        memory.recall(asked, Scope("ada", "text2sql", "s-2", "run-9"))
    notes = run("why", "run-9", "--json").json["notes"]
    assert [note["agent_id"] for note in notes] == ["text2sql", None]
    shown = {each["record_id"]: each for each in notes[0]["shown"]}
    assert shown[ids["delayed"]]["record"]["content"].startswith("Delayed means")
    assert shown[ids["delayed"]]["parts"]["relevance"] > 0
    text = run("why", ids["delayed"]).stdout
    assert "text2sql" in text
    assert "Delayed means arrival" in text
    assert "relevance" in text
    assert run("why", notes[0]["id"], "--json").json["notes"] == notes[:1]


def test_why_tells_the_text_of_then_also_after_it_was_changed(run: Run, ids: dict[str, str]) -> None:
    with SupervisorMemory.from_env() as memory:
        memory.recall([{"role": "user", "content": "What does Bo drink?"}], Scope("bo", run_id="run-8"))
        memory.update(ids["bo"], content="Bo drinks tea.", user_id="bo")
        memory.recall([{"role": "user", "content": "What does Bo drink?"}], Scope("bo", run_id="run-9"))
    [then] = run("why", "run-8", "--json").json["notes"][0]["shown"]
    [now] = run("why", "run-9", "--json").json["notes"][0]["shown"]
    assert (then["then"], then["record"]["content"]) == ("Bo drinks black coffee.", "Bo drinks tea.")
    assert (now["then"], now["record"]["content"]) == (None, "Bo drinks tea.")
    assert "Bo drinks black coffee. (now:" in run("why", "run-8").stdout


def test_whose_text_a_reviewer_was_shown_beside_rows_and_notes_is_in_the_access_log(
    run: Run, ids: dict[str, str]
) -> None:
    with SupervisorMemory.from_env() as memory:
        memory.recall([{"role": "user", "content": "What does Bo drink?"}], Scope("bo", run_id="run-8"))
    assert "black coffee" in run("audit", "tail", "--user", "bo").stdout
    assert "black coffee" in run("why", "run-8").stdout
    accesses = run("show", ids["bo"], "--json").json["accesses"]
    assert [each["op"] for each in accesses if each["agent_id"] == "operator"][:2] == ["audit", "why"]


def test_a_preview_is_the_note_that_an_agent_would_get_and_tells_nobody(
    run: Run, ids: dict[str, str]
) -> None:
    told = run("preview", "What counts as delayed?", "-u", "ada", "--agent", "text2sql", "--json").json
    assert "15 minutes" in told["text"]
    assert {each["record"]["id"] for each in told["hits"]} == {ids["delayed"], ids["table"]}
    assert told["tokens"] > 0
    assert run("why", ids["delayed"], "--json").json["notes"] == []
    seen = run("show", ids["delayed"], "--json").json["accesses"]
    assert ("preview", "operator") in {(access["op"], access["agent_id"]) for access in seen}
    assert "no note" in run("preview", "Zebras?", "-u", "bo").stdout


def test_the_exports_of_many_instances_are_proved_together(
    run: Run, ids: dict[str, str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    run("audit", "export", "one.jsonl")
    run("audit", "anchor", "anchors")
    monkeypatch.setenv("MEMORY_PATH", str(tmp_path / "other"))
    with SupervisorMemory.from_env() as memory:
        memory.write("Use charts.", user_id="eve")
    run("audit", "export", "other.jsonl")
    both = ("audit", "verify", "--export", "one.jsonl", "--export", "other.jsonl", "--anchor", "anchors")
    told = run(*both, "--json")
    assert (told.code, len(told.json["logs"]), told.json["problems"]) == (0, 2, [])
    lines = (tmp_path / "one.jsonl").read_text().splitlines(keepends=True)
    for kept, code in ((lines[:-1], 4), (lines[:1] + lines[2:], 3), ([lines[1], lines[0], *lines[2:]], 3)):
        (tmp_path / "one.jsonl").write_text("".join(kept))
        assert run(*both).code == code
    (tmp_path / "one.jsonl").write_text('{"log_id": "x"}\n')
    assert "line 1 of one.jsonl is no row" in run(*both).stderr


def with_rows(rows: int) -> None:
    """Bo changes his mind so often that the log has at least so many rows."""
    with SupervisorMemory.from_env() as memory:
        [bo] = memory.get_all(user_id="bo")
        while memory.backend.audit.count() < rows:
            memory.update(bo.id, content=f"Bo drinks {memory.backend.audit.count()} coffees.", user_id="bo")


def test_the_log_is_archived_and_proved_in_files(run: Run, ids: dict[str, str], tmp_path: Path) -> None:
    with_rows(130)
    run("audit", "anchor", "anchors")
    planned = run("audit", "archive", "one", "--keep", "100", "--dry-run", "--json").json
    assert (planned["dry_run"], planned["sha256"], (tmp_path / "one").exists()) == (True, None, False)
    done = run("audit", "archive", "one", "--keep", "100", "--json").json
    sha256 = hashlib.sha256((tmp_path / "one").read_bytes()).hexdigest()
    assert done == {**planned, "dry_run": False, "sha256": sha256}
    assert done["rows"] == done["through"] >= 30
    assert "nothing to archive" in run("audit", "archive", "two", "--keep", "100").stdout
    assert run("audit", "archive", "one", "--keep", "100").code == 1
    first = run("audit", "list", "-n", "1", "--json").json["rows"][0]["seq"]
    assert first == done["through"] + 1
    assert "it is archived" in run("audit", "show", "1").stderr
    rest = run("audit", "verify", "--anchor", "anchors", "--json")
    assert (rest.code, rest.json["rows"], rest.json["archived"]) == (0, 101, done["through"])
    whole = run("audit", "verify", "--deep", "--archive", "one", "--anchor", "anchors", "--json").json
    assert (whole["rows"], whole["archived"], whole["unseen_anchors"]) == (101 + done["rows"], 0, [])
    assert whole["records"] > rest.json["records"] == 0
    run("audit", "export", "rest")
    assert run("audit", "verify", "--export", "rest", "--export", "one", "--json").json["archived"] == 0
    assert "--export" in run("audit", "verify", "--export", "rest", "--archive", "one").stderr


def test_what_verify_did_not_look_at_is_said(run: Run, ids: dict[str, str], tmp_path: Path) -> None:
    run("audit", "anchor", "anchors")
    with_rows(200)
    run("audit", "anchor", "anchors")
    run("audit", "archive", "one", "--keep", "100")
    found = run("audit", "verify", "--anchor", "anchors")
    assert (found.code, "1 anchors are of rows among them" in found.stderr) == (0, True)
    assert "--archive FILE reads them" in found.stderr
    [unseen] = run("audit", "verify", "--anchor", "anchors", "--json").json["unseen_anchors"]
    (tmp_path / "early").write_text((tmp_path / "anchors").read_text().splitlines(keepends=True)[0])
    early = run("audit", "verify", "--anchor", "early", "--json")
    assert (early.code, early.json["faults"][0]["kind"]) == (4, "truncated")
    assert run("audit", "verify", "--anchor", "early", "--archive", "one").code == 0
    assert unseen < 100
    (tmp_path / "one").write_bytes((tmp_path / "one").read_bytes().replace(b'\\"ok\\"', b'\\"no\\"', 1))
    assert run("audit", "verify", "--archive", "one").code == 3


def test_replay_tells_what_was_known_then(run: Run, ids: dict[str, str]) -> None:
    row = run("audit", "tail", "--record", ids["bo"], "--json").json["rows"][0]["seq"]
    found = run("audit", "replay", "--until", str(row), "--user", "bo", "--json").json
    [bo] = found["records"]
    assert (bo["record_id"], bo["version"], bo["content"]) == (ids["bo"], 1, "Bo drinks coffee.")
    assert (bo["op"], bo["outcome"], bo["status"], bo["row"]) == ("add", "ok", "active", row)
    text = run("audit", "replay").stdout
    assert "Bo drinks black coffee." in text
    assert "1 more were deleted by then" in text
    assert "This was a mistake." not in text
    assert "\x9b" not in text
    assert run("audit", "replay", "--until", "2020-01-31", "--json").json["records"] == []
    assert run("audit", "replay", "--until", "9999-01-01", "--json").json["deleted"] == 1
    assert run("audit", "replay", "--until", "some day").code == 2


def test_replay_says_what_it_did_not_read_and_what_was_erased(run: Run, ids: dict[str, str]) -> None:
    with_rows(130)
    [before] = run("audit", "tail", "-n", "1", "--json").json["rows"]
    run("erase", "--user", "ada", "--yes")
    run("audit", "archive", "one", "--keep", "100")
    alone = run("audit", "replay")
    assert "are archived and were not read" in alone.stderr
    assert ids["table"] not in alone.stdout
    assert "deleted by then" in run("audit", "replay", "--archive", "one").stdout
    whole = run("audit", "replay", "--archive", "one", "--until", str(before["seq"]))
    assert "archived" not in whole.stderr
    [at] = [n for n, line in enumerate(whole.stdout.splitlines()) if ids["table"] in line]
    assert whole.stdout.splitlines()[at + 1] == "    erased"


def test_what_is_archived_and_replayed_has_the_keys_that_the_page_lists(
    run: Run, ids: dict[str, str]
) -> None:
    page = Path(__file__).parents[2].joinpath("docs/cli.md").read_text("utf-8").split("<!-- keys -->")[1]
    replayed = run("audit", "replay", "--json").json
    for command, keys in {
        "archive": run("audit", "archive", "one", "--json").json.keys(),
        "replay": replayed.keys() | replayed["records"][0].keys(),
        "verify": run("audit", "verify", "--json").json.keys(),
    }.items():
        [line] = [line for line in page.splitlines() if line.startswith(f"| `audit {command}` |")]
        assert keys <= set(re.findall(r"`([a-z0-9_]+)`", line)), command
