"""What an installation brings, and that what the README says first works with it alone."""

import re
import subprocess
import sys
import textwrap
import tomllib
from pathlib import Path
from typing import Any

import pytest

ROOT = Path(__file__).parents[1]


def packages_in(directory: Path) -> set[str]:
    return {each.parent.name for each in directory.glob("*/__init__.py")}


def settings() -> dict[str, Any]:
    told: dict[str, Any] = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))
    return told


def test_an_editable_install_shows_the_package_and_nothing_else() -> None:
    build = settings()["tool"]["hatch"]["build"]
    wheel = build["targets"]["wheel"]
    if build.get("dev-mode-exact") or wheel.get("dev-mode-exact"):
        return
    shown = build.get("dev-mode-dirs") or sorted({str(Path(each).parent) for each in wheel["packages"]})
    assert set().union(*(packages_in(ROOT / each) for each in shown)) == {"supervisor_memory"}


def test_the_wheel_holds_the_package_and_nothing_else() -> None:
    wheel = settings()["tool"]["hatch"]["build"]["targets"]["wheel"]
    assert [Path(each).name for each in wheel["packages"]] == ["supervisor_memory"]


def test_the_package_needs_none_of_the_names_beside_it() -> None:
    found = [
        f"{file.relative_to(ROOT)}: {line}"
        for file in (ROOT / "supervisor_memory").rglob("*.py")
        for line in file.read_text("utf-8").splitlines()
        if re.match(r"\s*(?:from|import) (?:agents|common|tests|benchmarks|examples)\b", line)
    ]
    assert found == []


def snippets(page: str) -> list[str]:
    return re.findall(r"^```python\n(.*?)^```", (ROOT / page).read_text("utf-8"), re.M | re.S)


PAGES = pytest.mark.parametrize("page", ["README.md", "README.zh-CN.md"])


@pytest.mark.one_in(2)
@PAGES
def test_the_first_snippet_runs_as_it_stands_where_only_the_package_is_installed(
    tmp_path: Path, page: str
) -> None:
    site, work = tmp_path / "site", tmp_path / "work"
    site.mkdir()
    work.mkdir()
    (site / "supervisor_memory").symlink_to(ROOT / "supervisor_memory")
    (work / "first.py").write_text(snippets(page)[0], "utf-8")
    environment = {"PYTHONPATH": str(site), "PATH": "", "HOME": str(work), "EMBEDDING_MODEL": "none"}
    code = """
        import runpy, sys
        sys.modules.update(dict.fromkeys(("agents", "common", "tests")))  # as if they were not there
        runpy.run_path("first.py", run_name="__main__")
    """
    done = subprocess.run(
        [sys.executable, "-c", textwrap.dedent(code)],
        cwd=work,
        env=environment,
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )
    assert done.returncode == 0, done.stderr[-2_000:]


@PAGES
def test_the_readme_installs_without_an_editable_checkout(page: str) -> None:
    text = (ROOT / page).read_text("utf-8")
    assert re.findall(r"pip install (?!-e|--editable)\S+", text)
    assert not re.findall(r"pip install (?:-e|--editable)", text)


@PAGES
def test_a_snippet_that_needs_langchain_says_where_it_comes_from(page: str) -> None:
    text = (ROOT / page).read_text("utf-8")
    first = text.index("from langchain.")
    assert "pip install langchain" in text[:first] or "langchain" in text[max(0, first - 400) : first]
