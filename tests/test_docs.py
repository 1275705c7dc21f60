"""The documents say what is true: their programs run, and what they name exists."""

import os
import re
from pathlib import Path

import pytest
from typer.main import get_group

from supervisor_memory import Scope, Settings, SupervisorMemory
from supervisor_memory.host.run.state import TOOL_NAMES
from supervisor_memory.interfaces.cli.main import app
from tests import programs
from tests.cases import every_case

ROOT = Path(__file__).parent.parent
READMES = ("README.md", "README.zh-CN.md")
DOCS = tuple(page.relative_to(ROOT).as_posix() for page in sorted(ROOT.glob("docs/*.md")))
HOSTS = [page.relative_to(ROOT).as_posix() for page in sorted(ROOT.glob("docs/*/*.md"))]
PAGES = (*READMES, "CHANGELOG.md", "CONTRIBUTING.md", *DOCS, *HOSTS)
REQUIREMENTS = (
    *(f"T-{number}" for number in range(1, 72)),
    *(f"T-A{number}" for number in range(1, 8)),
    *(f"T-{number}" for number in range(90, 93)),
    *(f"R-{number}" for number in range(1, 75)),
    *(f"S-{number}" for number in range(1, 81)),
    *(f"S-P{number}" for number in range(18)),
    *(f"M-{number}" for number in range(1, 51)),
    *(f"K-{number}" for number in range(1, 37)),
)
OF_TESTS = ("QDRANT_TEST_URL", "QDRANT_TEST_KEY")
"""What only the tests read."""

REASONS = ("later: ", "not followed: ", "out of scope")


def text_of(page: str) -> str:
    return (ROOT / page).read_text("utf-8")


def blocks(page: str, language: str) -> list[str]:
    """The fenced blocks of a language on a page."""
    return re.findall(rf"^```{language}\n(.*?)^```", text_of(page), re.DOTALL | re.MULTILINE)


WITH_PROGRAMS = (
    "disclosure",
    "embedders",
    "experience",
    "extracting",
    "journal",
    "long-threads",
    "metrics",
    "queue",
    "ranking",
    "recipes",
    "redaction",
    "searching",
    "specialists",
)
PROGRAMS = [
    pytest.param(page, number, marks=pytest.mark.slow if page == READMES[1] else ())
    for page in (*READMES, *(f"docs/{name}.md" for name in WITH_PROGRAMS))
    for number in range(len(blocks(page, "python")))
]


@pytest.mark.parametrize(("page", "number"), PROGRAMS)
def test_each_program_of_a_page_runs_as_it_stands(page: str, number: int, beside_flights: Path) -> None:
    code = blocks(page, "python")[number]
    environment = programs.environment(PYTHONPATH=str(ROOT), MEMORY_BACKEND="sqlite", CHAT_MODEL="")
    if page not in ("README.md", "docs/embedders.md") and not os.environ.get("SLOW"):
        environment["EMBEDDING_MODEL"] = "hashing"  # opening the default takes as long as all the rest
    done = programs.run("-c", code, cwd=beside_flights, env=environment, timeout=120)
    assert done.returncode == 0, done.stderr
    if "model.prompts[1]" in code:  # the program says that it prints what was recalled
        assert "<memory id=" in done.stdout


@pytest.mark.parametrize("page", READMES)
def test_the_first_program_remembers_from_one_process_to_the_next(page: str, tmp_path: Path) -> None:
    program = tmp_path / "first.py"
    program.write_text(blocks(page, "python")[0], "utf-8")
    first, second = re.findall(r"python first\.py '(.+)'", blocks(page, "console")[0])
    read = [
        programs.run(
            *(program, text),
            cwd=tmp_path,
            env=programs.environment(MEMORY_BACKEND="sqlite"),
            timeout=120,
            check=True,
        ).stdout
        for text in (first, second)
    ]
    assert first not in read[1].splitlines()
    assert f"user] {first}" in read[1]
    assert read[1].rstrip().endswith(second)


def test_the_page_of_settings_is_up_to_date() -> None:
    environment = {**os.environ, "PYTHONPATH": str(ROOT)}
    made = programs.run(ROOT / "docs/settings.py", env=environment, timeout=120, check=True)
    assert made.stdout == text_of("docs/settings.md")


def test_the_note_in_each_readme_is_worded_as_notes_are() -> None:
    said = ("Use tables by default.", "How did sales develop?"), ("以后默认用表格。", "销售额变化如何？")
    undated = re.compile(r'id="\w+"|\d{4}-\d\d-\d\d')
    for page, (stated, asked) in zip(READMES, said, strict=True):
        with SupervisorMemory(Settings(embedding_model="none")) as memory:
            memory.write(stated, user_id="ada")
            note = memory.recall([("user", asked)], Scope("ada")).text
        (shown,) = blocks(page, "text")
        assert undated.sub("…", shown.strip()) == undated.sub("…", note)


def test_links_between_pages_lead_somewhere() -> None:
    for page in PAGES:
        for target in re.findall(r"\]\((?!https?:)([^)#]+)", text_of(page)):
            assert (ROOT / page).parent.joinpath(target).exists(), (page, target)


def test_names_of_settings_in_the_pages_exist() -> None:
    known = {*Settings.env_names().values(), *OF_TESTS}
    for page in PAGES:
        named = re.findall(r"\b(?:MEMORY|EMBEDDING|QDRANT)_[A-Z_]*[A-Z]\b", text_of(page))
        assert set(named) <= known, page


@every_case("page", ["docs/architecture.md", "docs/threats.md", "CONTRIBUTING.md"])
def test_files_that_the_pages_name_exist(page: str) -> None:
    named = re.findall(r"`((?:[a-z_]+/)+[a-z_0-9]*(?:\.py)?)`", text_of(page))
    missing = [
        name
        for name in named
        if not (ROOT / name).exists() and not (ROOT / "supervisor_memory" / name).exists()
    ]
    assert not missing


@every_case("page", READMES)
def test_the_readmes_name_no_command_and_no_tool_that_is_not_there(page: str) -> None:
    text = text_of(page)
    assert set(re.findall(r"supervisor-memory (\w+)", text)) <= set(get_group(app).commands)
    assert set(re.findall(r"\bmemory_[a-z]+\b", text)) - {"memory_task"} == TOOL_NAMES
    targets = set(re.findall(r"^(\w+):", text_of("Makefile"), re.MULTILINE))
    assert set(re.findall(r"make (\w+)", text)) <= targets


def requirement_rows() -> dict[str, str]:
    """Requirement → the rest of its row."""
    rows = re.findall(r"^\| ([TRSMK]-\w+) \|(.*)\|$", text_of("docs/requirements.md"), re.MULTILINE)
    assert len(dict(rows)) == len(rows), "a requirement has two rows"
    return dict(rows)


def test_every_requirement_has_a_row_that_names_a_test_or_a_reason() -> None:
    rows = requirement_rows()
    assert set(rows) == set(REQUIREMENTS)
    for name, row in rows.items():
        _, shown = row.split(" | ", 1)
        assert "::test_" in shown or shown.strip().startswith(REASONS), name


def test_every_test_that_the_requirements_name_exists() -> None:
    named = re.findall(r"`([\w/]+\.py)::(test_\w+)`", text_of("docs/requirements.md"))
    for path, name in named:
        assert re.search(rf"^\s*(async )?def {name}\(", text_of(path), re.MULTILINE), f"{path}::{name}"
