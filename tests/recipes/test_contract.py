"""Our own recipes keep what every recipe promises."""

import pytest

from supervisor_memory.flow import Recipe
from supervisor_memory.recipes.default import DEFAULT
from supervisor_memory.testing.recipe_contract import RecipeContract


class TestDefault(RecipeContract):
    @pytest.fixture
    def recipe(self) -> Recipe:
        return DEFAULT


class TestGenerativeAgents(RecipeContract):
    @pytest.fixture
    def recipe(self) -> str:
        return "generative_agents"


class TestMem0(RecipeContract):
    @pytest.fixture
    def recipe(self) -> str:
        return "mem0"
