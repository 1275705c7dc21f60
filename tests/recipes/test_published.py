"""The constants of a recipe: changed by name, and refused where they cannot be."""

from importlib.util import module_from_spec, spec_from_file_location
from pathlib import Path

import pytest

from supervisor_memory.errors import SettingsError
from supervisor_memory.recipes.memorybank import PUBLISHED
from tests.cases import every_case


def test_a_constant_is_changed_by_name() -> None:
    assert PUBLISHED.checked({"top_k": 9, "days": 2}).top_k == 9
    assert PUBLISHED.recipe(floor=0.2).name == "memorybank"


@every_case(
    ("changed", "told"),
    [
        ({"dayz": 3.0}, "recipe 'memorybank' has no constant 'dayz'; it has days, floor, top_k"),
        (
            {"days": "five"},
            "constant 'days' of recipe 'memorybank' is str 'five'; it is float 5.0 by default",
        ),
        ({"top_k": 2.5}, "constant 'top_k' of recipe 'memorybank' is float 2.5; it is int 6 by default"),
        ({"top_k": True}, "is bool True"),
        ({"floor": 1.5}, "constant 'floor' of recipe 'memorybank' is 1.5; it is from 0 to 1"),
        ({"floor": float("nan")}, "it is from 0 to 1"),
    ],
)
def test_one_that_cannot_be_is_refused(changed: dict[str, object], told: str) -> None:
    with pytest.raises(SettingsError) as refused:
        PUBLISHED.recipe(**changed)
    assert told in str(refused.value)


def test_the_page_says_what_the_recipes_say() -> None:
    place = Path(__file__).parents[2] / "docs" / "recipes.py"
    spec = spec_from_file_location("docs_recipes", place)
    assert spec is not None
    assert spec.loader is not None
    module = module_from_spec(spec)
    spec.loader.exec_module(module)
    assert module.PAGE.read_text("utf-8") == module.page(), "run python docs/recipes.py"
