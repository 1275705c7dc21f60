"""The attack on a bare store, and the same on a guarded one: what the two examples print."""

import ast
from pathlib import Path

from tests import programs
from tests.cases import every_case

EXAMPLES = Path(__file__).parent.parent.parent / "examples"
BARE, GUARDED = "04_bare_store_is_poisoned.py", "04_guarded_store_denies.py"


def printed(name: str) -> list[str]:
    """The lines of an example that runs by itself, without settings."""
    done = programs.run(
        EXAMPLES / name, env=programs.environment(), cwd=EXAMPLES.parent, timeout=120, check=True
    )
    return done.stdout.splitlines()


def test_on_a_bare_store_the_workers_tool_reads_overwrites_and_deletes_both_ways() -> None:
    attack = "the worker's tool has read: ada earns 90k"
    assert printed(BARE) == [
        attack,
        "memory after create_supervisor: {'payee': 'always pay to X'}",
        attack,
        "memory after create_agent: {'payee': 'always pay to X'}",
    ]


def test_on_a_guarded_store_the_same_is_denied_changes_nothing_and_is_audited_by_name() -> None:
    denied = [
        f"MemoryAccessDenied: worker may not {verb} ('memories', 'ada')" for verb in ("get", "put", "delete")
    ]
    rows = [f"  ('worker', '{verb}-without-the-right')" for verb in ("get", "put", "delete")]
    assert printed(GUARDED) == [
        *denied,
        "memory after create_supervisor: {'payee': 'pay to A'}",
        *denied,
        "memory after create_agent: {'payee': 'pay to A'}",
        "audit:",
        *rows,
        *rows,
    ]


@every_case("name", [BARE, GUARDED])
def test_an_attack_takes_at_most_25_lines_of_code(name: str) -> None:
    source = (EXAMPLES / name).read_text(encoding="utf-8")
    told: set[int] = set()
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, (ast.Module, ast.FunctionDef)) and ast.get_docstring(node):
            told.update(range(node.body[0].lineno, (node.body[0].end_lineno or 0) + 1))
    lines = [line.strip() for number, line in enumerate(source.splitlines(), 1) if number not in told]
    assert len([line for line in lines if line and not line.startswith("#")]) <= 25
