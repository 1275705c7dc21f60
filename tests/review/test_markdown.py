"""Memory as Markdown files in git: out, a plan as a diff, in; conflicts by version; nothing is lost."""

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner

from supervisor_memory import Scope, Settings, SettingsError, SupervisorMemory
from supervisor_memory.errors import InvalidName
from supervisor_memory.interfaces.cli.main import app
from supervisor_memory.model.records import Record, Source
from supervisor_memory.review.markdown import Plan, parsed, rendered
from supervisor_memory.testing.clock import FixedClock
from tests.cases import every_case

RITA = "rita@example.com"
DEFINITION = "delayed means more than 15 minutes late at the gate"


@pytest.fixture
def memory(clock: FixedClock) -> Iterator[SupervisorMemory]:
    with SupervisorMemory(Settings(embedding_model="none"), clock=clock) as opened:
        opened.write(DEFINITION, user_id="ada")
        opened.write("The user prefers tables.", user_id="ada", kind="user-profile")
        opened.write("bob's own text", user_id="bob", kind="domain-facts")
        yield opened


def exported(memory: SupervisorMemory, folder: Path) -> dict[str, Path]:
    """The files by the first word of their text."""
    memory.review.export_markdown(folder, user_id="ada")
    return {each.read_text("utf-8").split("---\n")[-1].split()[0]: each for each in folder.rglob("*.md")}


def imported(memory: SupervisorMemory, folder: Path, *, done: bool = True) -> Plan:
    return memory.review.import_markdown(folder, user_id="ada", reviewer=RITA, dry_run=not done)


def edit(file: Path, old: str, new: str) -> None:
    text = file.read_text("utf-8")
    assert old in text
    file.write_text(text.replace(old, new), "utf-8")


def texts(memory: SupervisorMemory, user: str = "ada") -> set[str]:
    return {each.content for each in memory.get_all(user_id=user)}


def test_what_goes_out_and_comes_back_unchanged_changes_nothing(
    memory: SupervisorMemory, tmp_path: Path
) -> None:
    memory.remember([("user", "Use bars by default, please.")], Scope("ada", session_id="s", run_id="r"))
    memory.experience.heard("q", {"sql": "a"}, Scope("ada", "x", "s", "r"), error="unknown a")
    memory.experience.heard("q", {"sql": "b"}, Scope("ada", "x", "s", "r"))
    before = {each.id: each.version for each in memory.get_all(user_id="ada")}
    files = exported(memory, tmp_path)
    assert len(files) == 3, "neither messages nor guidelines nor what is another user's"
    assert "bob's" not in "".join(each.read_text("utf-8") for each in files.values())
    again = memory.review.export_markdown(tmp_path, user_id="ada")
    assert (again.written, again.same, again.removed, again.kept) == (0, 3, 0, ())
    assert imported(memory, tmp_path).counts == {"same": 3}
    assert {each.id: each.version for each in memory.get_all(user_id="ada")} == before


def test_an_edit_is_told_as_a_diff_first_and_then_done_audited_and_undone(
    memory: SupervisorMemory, tmp_path: Path
) -> None:
    files = exported(memory, tmp_path)
    edit(files["delayed"], "15 minutes", "30 minutes")
    (tmp_path / "new.md").write_text("on time means less than 5 minutes late\n", "utf-8")
    edit(files["The"], "kind:", "delete: true\nkind:")
    plan = imported(memory, tmp_path, done=False)
    assert plan.counts == {"change": 1, "delete": 1, "add": 1}
    assert f"-{DEFINITION}" in str(plan)
    assert "+delayed means more than 30 minutes late at the gate" in str(plan)
    assert texts(memory) == {DEFINITION, "The user prefers tables."}, "nothing was changed"

    plan = imported(memory, tmp_path)
    assert plan.is_done
    assert plan.is_whole
    assert texts(memory) == {
        "delayed means more than 30 minutes late at the gate",
        "on time means less than 5 minutes late",
    }
    assert not files["The"].exists()
    [changed] = [each for each in plan.files if each.what == "change"]
    assert [row.event["actor"] for row in memory.backend.audit.tail(9, record_id=changed.record_id)][
        -1
    ] == RITA
    assert memory.history(changed.record_id)[0].content == DEFINITION
    assert imported(memory, tmp_path).counts == {"same": 2}, "the files know their new ids and versions"
    memory.review.revert(changed.record_id, version=1, reviewer=RITA)
    assert DEFINITION in texts(memory)


def test_what_changed_on_both_sides_is_a_conflict_and_neither_is_lost(
    memory: SupervisorMemory, tmp_path: Path, clock: FixedClock
) -> None:
    files = exported(memory, tmp_path)
    [record] = [each for each in memory.get_all(user_id="ada") if each.content == DEFINITION]
    clock.forward(days=1)
    memory.update(record.id, content="delayed means more than 20 minutes late at the gate", user_id="ada")
    assert imported(memory, tmp_path).counts == {"older": 1, "same": 1}
    edit(files["delayed"], "15 minutes", "30 minutes")
    plan = imported(memory, tmp_path)
    assert plan.counts == {"conflict": 1, "same": 1}
    assert "edited from version 1; the record is at 2" in str(plan)
    assert "delayed means more than 20 minutes late at the gate" in texts(memory)
    assert "30 minutes" in files["delayed"].read_text("utf-8")
    kept = memory.review.export_markdown(tmp_path, user_id="ada").kept
    assert kept == (files["delayed"].relative_to(tmp_path).as_posix(),), "an edit is not written over"
    files["delayed"].unlink()
    assert memory.review.export_markdown(tmp_path, user_id="ada").written == 1


def test_files_of_records_that_are_gone_go_and_a_missing_file_deletes_nothing(
    memory: SupervisorMemory, tmp_path: Path
) -> None:
    files = exported(memory, tmp_path)
    files["The"].unlink()
    assert imported(memory, tmp_path).counts == {"same": 1}
    assert len(texts(memory)) == 2
    [record] = [each for each in memory.get_all(user_id="ada") if each.content == DEFINITION]
    memory.delete(record.id, user_id="ada")
    assert imported(memory, tmp_path).counts == {"conflict": 1}
    assert memory.review.export_markdown(tmp_path, user_id="ada").removed == 1
    assert not files["delayed"].exists()


@pytest.mark.parametrize(
    ("text", "told"),
    [
        ("---\nid: x\n", "no second line of ---"),
        (
            "---\nversoin: 1\n---\ntext",
            "line 2: 'versoin' is nothing that a file can say; did you mean version?",
        ),
        ("---\nkind: fact\n---\ntext", "there is no kind 'fact'"),
        ("---\nversion: one\n---\ntext", "version is 'one'"),
        ("---\ndelete: maybe\n---\ntext", "delete is 'maybe'"),
        ("---\nid: 7\n---\ntext", "id is 7"),
        ("---\nkind: domain-facts\n---\n\n", "nothing visible"),
        ("---\nid: 01a213f2-ac4e-7553-9e5d-20a93aa4368a\n---\ntext", "there is no record"),
    ],
)
def test_a_wrong_file_is_told_and_the_others_are_taken(
    memory: SupervisorMemory, tmp_path: Path, text: str, told: str
) -> None:
    (tmp_path / "a.md").write_text(text, "utf-8")
    (tmp_path / "b.md").write_text("ARPU means average revenue per user", "utf-8")
    plan = imported(memory, tmp_path)
    assert not plan.is_whole
    assert told in str(plan)
    assert "ARPU means average revenue per user" in texts(memory)
    assert (tmp_path / "a.md").read_text("utf-8") == text


def test_a_file_reaches_no_other_users_record_and_no_other_folder(
    memory: SupervisorMemory, tmp_path: Path
) -> None:
    [theirs] = memory.get_all(user_id="bob")
    (tmp_path / "folder").mkdir()
    (tmp_path / "secret.md").write_text("a text elsewhere", "utf-8")
    (tmp_path / "folder" / "link.md").symlink_to(tmp_path / "secret.md")
    head = f"---\nid: {theirs.id}\nversion: 1\n---\n"
    (tmp_path / "folder" / "theirs.md").write_text(f"{head}changed", "utf-8")
    plan = imported(memory, tmp_path / "folder")
    assert plan.counts == {"wrong": 1, "conflict": 1}
    assert texts(memory, "bob") == {"bob's own text"}
    assert theirs.content not in str(plan)
    with pytest.raises(SettingsError, match="is no folder"):
        imported(memory, tmp_path / "none")
    with pytest.raises(InvalidName):
        memory.review.import_markdown(tmp_path, user_id="ada", reviewer="no login")


@every_case(
    "content",
    ["a: b", "---\nid: other\n---", "# A heading\n\n- one\n- two", "客单价：每位客户的平均订单金额", "true"],
)
def test_any_text_comes_back_as_it_was(content: str) -> None:
    subject = 'with: "colon" \n'.strip()
    record = Record(
        "01a213f2-ac4e-7553-9e5d-20a93aa4368a",
        ("domain_facts", "ada"),
        content,
        "domain-facts",
        0.0,
        0.0,
        subject=subject,
        source=Source("agent", "true"),
        tags=("a", "b: c"),
    )
    page = parsed("x.md", rendered(record))
    assert (page.text, page.record_id, page.version, page.kind) == (content, record.id, 1, "domain-facts")


def test_the_folder_on_the_command_line(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for name, value in {"BACKEND": "sqlite", "PATH": str(tmp_path / "m")}.items():
        monkeypatch.setenv(f"MEMORY_{name}", value)
    monkeypatch.setenv("EMBEDDING_MODEL", "none")
    monkeypatch.chdir(tmp_path)
    with SupervisorMemory(Settings.from_env(None)) as memory:
        memory.write(DEFINITION, user_id="ada")

    def run(*arguments: str, code: int = 0) -> str:
        done = CliRunner().invoke(app, ["markdown", *arguments])
        assert done.exit_code == code, done.output
        return done.output

    assert "1 written" in run("export", "notes", "--user", "ada")
    [file] = (tmp_path / "notes").rglob("*.md")
    edit(file, "15 minutes", "30 minutes")
    assert "+delayed means more than 30 minutes" in run("import", "notes", "--user", "ada")
    told: Any = json.loads(run("import", "notes", "--user", "ada", "--yes", "--as", RITA, "--json"))
    assert [each["what"] for each in told["files"]] == ["change"]
    (tmp_path / "notes" / "wrong.md").write_text("---\nid: 1", "utf-8")
    assert "no second line" in run("import", "notes", "--user", "ada", "--yes", code=1)
    with SupervisorMemory(Settings.from_env(None)) as memory:
        assert texts(memory) == {"delayed means more than 30 minutes late at the gate"}
