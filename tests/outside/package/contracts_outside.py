"""The store and the recipe, by their entry points, keep the promises of all stores and recipes."""

from importlib.metadata import entry_points
from pathlib import Path
from typing import Any

import pytest

from supervisor_memory.testing.backend_contract import BackendContract
from supervisor_memory.testing.recipe_contract import RecipeContract


def _store(path: Path) -> Any:
    return entry_points(group="supervisor_memory.backends")["outside"].load()(path, None)


class TestStore(BackendContract):
    @pytest.fixture
    def backend(self, tmp_path: Path) -> Any:
        store = _store(tmp_path)
        yield store
        store.close()


class TestRecipe(RecipeContract):
    @pytest.fixture
    def recipe(self) -> str:
        return "outside"

    @pytest.fixture
    def backend(self, tmp_path: Path) -> Any:
        return _store(tmp_path)
