"""Backends by their names."""

from pathlib import Path

import pytest

from supervisor_memory.errors import SettingsError
from supervisor_memory.stores.open import BACKENDS, open_backend
from tests.cases import every_case


@pytest.mark.parametrize("name", BACKENDS)
def test_each_name_opens_its_backend(tmp_path: Path, name: str) -> None:
    backend = open_backend(name, tmp_path / name)
    assert backend.name == backend.health().name == name
    assert backend.health().persistent == (name != "in_memory")
    backend.close()


def test_memory_needs_no_place() -> None:
    assert open_backend("in_memory", None).health().ok


@every_case("name", ["json", "sqlite"])
def test_files_need_a_place(name: str) -> None:
    with pytest.raises(SettingsError, match="MEMORY_PATH"):
        open_backend(name, None)


def test_a_server_without_an_address_says_what_to_set(tmp_path: Path) -> None:
    with pytest.raises(SettingsError, match="set QDRANT_URL"):
        open_backend("qdrant", tmp_path)


@every_case(
    ("name", "near"),
    [("sqllite", "'sqlite'"), ("SQLite", "'sqlite'"), ("memory", "'in_memory'"), ("jsonl", "'json'")],
)
def test_an_unknown_name_gets_the_choices_and_the_nearest(name: str, near: str) -> None:
    with pytest.raises(SettingsError, match="choose one of in_memory, json, sqlite") as raised:
        open_backend(name, None)
    assert f"did you mean {near}" in str(raised.value)


def test_a_name_like_none_of_them_gets_the_choices() -> None:
    with pytest.raises(SettingsError, match="choose one of") as raised:
        open_backend("zzz", None)
    assert "did you mean" not in str(raised.value)
