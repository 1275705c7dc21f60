"""The pages on hosts and on migrating run: each block of a page in turn, in one program."""

import re
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path

import pytest

from tests import programs
from tests.cases import every_case

ROOT = Path(__file__).parent.parent
PAGES = [
    page.relative_to(ROOT).as_posix()
    for page in sorted([*ROOT.glob("docs/hosts/*.md"), *ROOT.glob("docs/migrating/*.md")])
]
BLOCK = re.compile(
    r"(?P<aside><!-- not run: [^\n]+ -->\n)?"
    r"^```python\n(?P<code>.*?)^```\n"
    r"(?:\n```text\n(?P<printed>.*?)^```\n)?",
    re.DOTALL | re.MULTILINE,
)
END = "\x1e"
"""What the program prints after each block."""
VARYING = re.compile(r'id="\w+"|\d{4}-\d\d-\d\d')


@dataclass(frozen=True)
class Block:
    """A block of Python, and what the page says that it prints; None where it says nothing."""

    code: str
    printed: str | None


def blocks(page: str) -> list[Block]:
    """The blocks of a page that are run. One that is not says why, in a comment before it."""
    found = BLOCK.finditer((ROOT / page).read_text("utf-8"))
    return [Block(match["code"], match["printed"]) for match in found if not match["aside"]]


PROGRAMS = [page for page in PAGES if blocks(page)]


def run(program: str, directory: Path) -> "subprocess.CompletedProcess[str]":
    """Run a program in a directory of its own, with nothing in its environment that sets memory."""
    environment = programs.environment(PYTHONPATH=str(ROOT))
    environment.pop("PYTHONWARNINGS", None)
    path = directory / "page.py"
    path.write_text(program, "utf-8")
    return programs.run(path, cwd=directory, env=environment, timeout=120)


@pytest.mark.one_in(2)
@pytest.mark.parametrize("page", PROGRAMS)
def test_a_page_runs_from_top_to_bottom_and_prints_what_it_says(page: str, tmp_path: Path) -> None:
    shown = blocks(page)
    done = run("".join(f"{block.code}\nprint({END!r})\n" for block in shown), tmp_path)
    assert done.returncode == 0, done.stderr
    printed = done.stdout.split(f"{END}\n")
    for block, said in zip(shown, printed, strict=False):
        if block.printed is not None:
            assert VARYING.sub("…", said.strip()) == VARYING.sub("…", block.printed.strip())


@every_case("page", PROGRAMS)
def test_a_page_ends_with_something_that_is_checked(page: str) -> None:
    last = blocks(page)[-1]
    assert last.printed is not None or re.search(r"^\s*assert ", last.code, re.MULTILINE)


def test_the_code_of_each_page_is_in_good_order(tmp_path: Path) -> None:
    for page in PROGRAMS:
        code = "\n\n".join(block.code for block in blocks(page))
        (tmp_path / page.replace("/", "-")).with_suffix(".py").write_text(code, "utf-8")
    # Imports stand where a reader needs them, and a later version replaces an earlier one.
    rules = ["--select", "E,F,W,UP,B,SIM", "--ignore", "E402,E303,E305,F811,W391", "--line-length", "110"]
    call = [sys.executable, "-m", "ruff", "check", "--isolated", "--quiet", *rules, "."]
    checked = subprocess.run(call, cwd=tmp_path, capture_output=True, text=True, check=False)
    assert checked.returncode == 0, checked.stdout


def test_every_page_is_in_the_table_of_hosts() -> None:
    table = (ROOT / "docs/hosts/README.md").read_text("utf-8")
    named = set(re.findall(r"\]\((?:\.\./)?((?:migrating/)?\w+\.md)\)", table))
    there = {page.removeprefix("docs/").removeprefix("hosts/") for page in PAGES} - {"README.md"}
    assert named >= there
