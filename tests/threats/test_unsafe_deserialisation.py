"""What is read back from a file or a server is JSON and numbers: nothing in it can run."""

import ast
import re
from collections.abc import Iterator
from pathlib import Path

import supervisor_memory
from supervisor_memory.audit.rows import GENESIS, row_hash

PACKAGE = Path(supervisor_memory.__file__).parent
BANNED_MODULES = {
    *("pickle", "cPickle", "_pickle", "dill", "cloudpickle", "joblib", "marshal", "shelve", "msgpack"),
    *("ormsgpack", "yaml", "jsonpickle", "dbm", "imp", "codeop"),
}
BANNED_CALLS = {"eval", "exec", "compile", "__import__", "os.system", "os.popen", "numpy.load", "np.load"}
ALLOWED = {
    *(("embedding/e5.py", "np.load"), ("understand/sense.py", "np.load")),  # never with allow_pickle
    ("recipes/file.py", "yaml"),  # and of it nothing but what makes plain values
}
_WORDS = {*BANNED_MODULES, *(call.rpartition(".")[2] for call in BANNED_CALLS), "allow_pickle", "shell"}
NAMED = re.compile(rf"\b(?:{'|'.join(sorted(_WORDS))})\b")
"""Without one of these words a module does nothing of the kind."""
PLAIN_YAML = {"yaml.safe_load", "yaml.compose", "yaml.SafeLoader", "yaml.YAMLError", "yaml.Node"}


def named(node: ast.expr) -> str:
    if isinstance(node, ast.Attribute):
        return f"{named(node.value)}.{node.attr}"
    return node.id if isinstance(node, ast.Name) else ""


def is_true(value: ast.expr) -> bool:
    return not (isinstance(value, ast.Constant) and value.value is False)


def dangers(tree: ast.AST) -> Iterator[str]:
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            yield from {alias.name.partition(".")[0] for alias in node.names} & BANNED_MODULES
        elif isinstance(node, ast.ImportFrom) and node.module:
            yield from {node.module.partition(".")[0]} & BANNED_MODULES
        elif isinstance(node, ast.Call):
            yield from {named(node.func)} & BANNED_CALLS
            if any(word.arg in ("allow_pickle", "shell") and is_true(word.value) for word in node.keywords):
                yield ast.unparse(node)


def test_the_search_for_dangers_finds_them() -> None:
    harmless = "f(shell=False)\nre.compile('a')"
    text = f"import pickle\nfrom yaml import load\neval('1')\nnp.load(f)\nf(allow_pickle=True)\n{harmless}"
    assert sorted(dangers(ast.parse(text))) == ["eval", "f(allow_pickle=True)", "np.load", "pickle", "yaml"]


def test_no_module_reads_anything_that_could_run() -> None:
    paths = sorted(PACKAGE.rglob("*.py"))
    assert len(paths) > 100
    named_in = ((path.relative_to(PACKAGE).as_posix(), path.read_text("utf-8")) for path in paths)
    suspect = [(name, text) for name, text in named_in if NAMED.search(text)]
    found = {(name, each) for name, text in suspect for each in dangers(ast.parse(text))}
    assert found >= ALLOWED
    assert found - ALLOWED == set()


def test_of_yaml_nothing_is_used_that_could_make_an_object() -> None:
    tree = ast.parse((PACKAGE / "recipes/file.py").read_text("utf-8"))
    used = {named(node) for node in ast.walk(tree) if isinstance(node, ast.Attribute)}
    found = {each for each in used if each.startswith("yaml.")}
    assert "yaml.safe_load" in found
    assert {
        each for each in found if not any(each == ok or each.startswith(f"{ok}.") for ok in PLAIN_YAML)
    } == set()
    loaders = [word for node in ast.walk(tree) if isinstance(node, ast.Call) for word in node.keywords]
    assert {ast.unparse(word.value) for word in loaders if word.arg == "Loader"} <= {"yaml.SafeLoader"}


def test_a_row_of_the_audit_log_is_hashed_over_its_bytes_without_reading_them() -> None:
    assert row_hash("log", GENESIS, b"\x80\x04not json") != row_hash("log", GENESIS, b"\x80\x04not JSON")
