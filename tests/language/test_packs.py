"""Languages that others publish: packs add to what is understood; what breaks the rules is refused."""

import json
import os
import shutil
import subprocess
import sys
import tomllib
from importlib.metadata import EntryPoint
from pathlib import Path
from typing import Any

import pytest

from supervisor_memory.language.lexicon import PACKS, Lexicon, LexiconError
from supervisor_memory.language.packs import extend

ROOT = Path(__file__).parents[2]
GERMAN = ROOT / "examples" / "language_de"
TOLD = {
    "Ich bevorzuge kurze Antworten.": True,
    "Ab jetzt bitte alle Beträge in Euro.": True,
    "Unter aktiven Kunden verstehen wir Kunden mit Bestellung in 90 Tagen.": True,
    "Meine Chefin heißt Dana Vogel.": True,
    "Wir haben uns für Kafka entschieden.": True,
    "Wie hoch war der Umsatz im Mai": False,
    "Wenn ich Tabellen bevorzuge, sage ich es.": False,
    "Mein Chef sagt, ich bevorzuge Tabellen.": False,
    "Diesmal bitte immer in Dollar.": False,
    "Merk dir das nicht: ich wohne in Bonn.": False,
    "I prefer tables.": True,
}
PROGRAM = """
import json, sys
from supervisor_memory import Scope, Settings, SupervisorMemory

def say(user, *texts):
    for text in texts:
        memory.remember([{"role": "user", "content": text}], Scope(user))
    return [record.content for record in memory.get_all(user_id=user)]

told = json.loads(sys.argv[1])
with SupervisorMemory(Settings(backend="in_memory", embedding_model="none")) as memory:
    kept = {text: bool(say(f"user-{n}", text)) for n, text in enumerate(told)}
    left = say("ada", "Ich bevorzuge kurze Antworten.", "Vergiss, dass ich kurze Antworten bevorzuge.")
print(json.dumps([kept, left]))
"""


def installed(pack: Path, site: Path) -> None:
    """Put a pack where an installer puts it, with the entry points of its pyproject.toml."""
    project = tomllib.loads((pack / "pyproject.toml").read_text("utf-8"))["project"]
    for module in project["entry-points"][PACKS].values():
        shutil.copytree(pack / module, site / module)
    told = site / f"{project['name'].replace('-', '_')}-{project['version']}.dist-info"
    told.mkdir()
    (told / "METADATA").write_text(
        f"Metadata-Version: 2.1\nName: {project['name']}\nVersion: {project['version']}\n"
    )
    points = "".join(f"{name} = {module}\n" for name, module in project["entry-points"][PACKS].items())
    (told / "entry_points.txt").write_text(f"[{PACKS}]\n{points}")


def said_with(site: Path) -> Any:
    path = os.pathsep.join((str(ROOT), str(site)))
    command = [sys.executable, "-c", PROGRAM, json.dumps(list(TOLD))]
    done = subprocess.run(command, env=os.environ | {"PYTHONPATH": path}, capture_output=True, check=True)
    return json.loads(done.stdout)


def test_german_is_understood_once_its_pack_is_installed(tmp_path: Path) -> None:
    installed(GERMAN, tmp_path)
    kept, left = said_with(tmp_path)
    assert kept == TOLD
    assert left == []


def pack(folder: Path, monkeypatch: pytest.MonkeyPatch, **files: str) -> EntryPoint:
    name = f"pack_{folder.name}"
    module = folder / name
    module.mkdir()
    (module / "__init__.py").touch()
    for file, toml in files.items():
        (module / f"{file}.toml").write_text(toml, "utf-8")
    monkeypatch.syspath_prepend(str(folder))
    return EntryPoint("xx", name, PACKS)


def words() -> Lexicon:
    return Lexicon(
        "wishes",
        "flags = 'i'\nstart = '^'\ntea = ['green']\nr.a = ['b']\n"
        "named = ['a (?P<what>b)', 'c (?P<what>d) (?P<x>e)']\n[[rule]]\npattern = 'c'\nput = 'd'",
    )


def test_what_a_pack_says_is_added_to_lists_tables_and_blocks(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    toml = r"""
        colour = '(?:grün|weiß)er'
        tea = ["oolong", { pattern = '{start}{colour} tee', yes = ["Grüner Tee"], no = ["Ein grüner Tee"] }]
        r.a = [{ pattern = 'x{1,3}', yes = ["XX"] }]
        [[rule]]
        put = 'd'
        pattern = 'f++'
        yes = ["ff"]
    """
    to = words()
    extend(to, "wishes", pack(tmp_path, monkeypatch, wishes=toml))
    assert all(to["tea"].search(each) for each in ("green", "Oolong", "weißer Tee"))
    assert to.patterns("r")[0][1].search("xx")
    assert [(block["put"], rule.pattern) for block, rule in to.blocks("rule")] == [("d", "c"), ("d", "f++")]


def test_a_pack_may_say_nothing_for_a_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    to = words()
    extend(to, "wishes", pack(tmp_path, monkeypatch))
    assert to.listed("tea") == ("green",)


@pytest.mark.parametrize(
    ("toml", "told"),
    [
        ("tea = ['gr.n']", "'gr.n' is a pattern; give it as a table"),
        ("tea = [{ pattern = 'a' }]", "'a' has no example; add yes"),
        ("tea = [{ pattern = 'a', yes = ['b'] }]", "'a' does not find its example yes = 'b'"),
        ("tea = [{ pattern = 'a', yes = ['a'], no = ['ab'] }]", "'a' finds its example no = 'ab'"),
        ("tea = [{ pattern = 'a.*', yes = ['a'] }]", r"a repetition of 'a\.\*' has no bound"),
        ("tea = [{ pattern = '[a+]\\w+?', yes = ['ab'] }]".replace("\\\\", "\\"), "has no bound"),
        ("tea = [{ pattern = 'a{2,}', yes = ['aa'] }]", "has no bound"),
        ("w = 'a+'\ntea = [{ pattern = '{w}b', yes = ['ab'] }]", "has no bound"),
        ("tea = [{ pattern = '(a', yes = ['a'] }]", "is no pattern"),
        ("tea = [{ pattern = '{leaf}', yes = ['a'] }]", "names {leaf}"),
        ("tea = [{ pattern = '(?:a{0,99}){0,99}b', yes = ['ab'] }]", "has no bound"),
        ("tea = [{ pattern = '(?:a|a){0,50}b', yes = ['ab'] }]", "has no bound"),
        ("tea = [{ pattern = '(?x) a * b', yes = ['ab'] }]", "has no bound"),
        ("tea = [{ pattern = 'a{0,100000}', yes = ['aa'] }]", "has no bound"),
        (
            "tea = [{ pattern = 'a{0,99}a{0,99}a{0,99}', yes = ['aa'] }]",
            "can match in more than 100,000 ways",
        ),
        (
            "tea = [{ pattern = 'a{0,99999999999}', yes = ['aa'] }]",
            "language pack xx, wishes.toml: tea: .*no pattern",
        ),
        ("tea = [{ pattern = 'a', yes = 'a' }]", "yes and no of 'a' are no lists of sentences"),
        ("tea = [{ pattern = 'a', yes = ['a'], put = 'x' }]", "has put, which this list does not read"),
        ("rule = ['a']", "'a' is no table with a pattern"),
        ("rule = [{ pattern = 'a', yes = ['a'] }]", "'a' has no put; it is one of 'd'"),
        ("rule = [{ pattern = 'a', put = 'x', yes = ['a'] }]", "has put = 'x'; it is one of 'd'"),
        ("rule = [{ pattern = 'a', put = 1, yes = ['a'] }]", "has put = 1; it is one of 'd'"),
        (r"rule = [{ pattern = 'a', put = '\g<b>', yes = ['a'] }]", "cannot be put: unknown group name"),
        (
            "rule = [{ pattern = 'a', put = 'd', key = 2, yes = ['a'] }]",
            "has key, which this list does not read",
        ),
        ("named = [{ pattern = 'a', yes = ['a'] }]", r"'a' lacks what the entries .* have: \(\?P<what>"),
        ("tea = [3]", "3 is neither a word nor a table with a pattern"),
        ("milk = ['green']", "milk: a pack adds to lists and blocks, and this is none here"),
        ("start = ['green']", "start: a pack adds to lists and blocks"),
        ("tea = [", "is not TOML"),
    ],
)
def test_a_pack_that_breaks_its_promises_is_refused(
    toml: str, told: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    to = words()
    with pytest.raises(LexiconError, match=told):
        extend(to, "wishes", pack(tmp_path, monkeypatch, wishes=toml))
    assert to.listed("tea") == ("green",)


def test_a_file_that_nothing_reads_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(LexiconError, match=r"language pack xx: nothing reads wish\.toml; there are .*wishes"):
        extend(words(), "wishes", pack(tmp_path, monkeypatch, wish=""))


def test_a_pack_that_is_not_there_is_named() -> None:
    with pytest.raises(
        LexiconError, match="language pack xx cannot be imported: No module named 'gone_away'"
    ):
        extend(words(), "wishes", EntryPoint("xx", "gone_away", PACKS))


def test_sets_of_characters_and_possessive_repetitions_are_bounded_enough(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    to = words()
    extend(
        to, "wishes", pack(tmp_path, monkeypatch, wishes=r"tea = [{ pattern = '[*+]\+a*+', yes = ['++a'] }]")
    )
    assert to["tea"].search("*+aa")
