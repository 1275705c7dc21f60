"""TiM: groups by the paper's hash, and a search in one of them."""

import numpy as np
import pytest

from supervisor_memory import Settings, SettingsError, SupervisorMemory
from supervisor_memory.recipes.operators.lsh import group_of
from supervisor_memory.recipes.tim import PUBLISHED
from tests.cases import every_case
from tests.recipes.vectors import Given

SETTINGS = Settings(embedding_model="none", queue_worker=False)
AXES = {
    word: [1.0 if at == n else 0.1 for at in range(16)]
    for n, word in enumerate(("pump", "tea", "kiel", "rent"))
}
FOUR = {
    "pump": "A pump came to the yard.",
    "tea": "There is tea at five.",
    "kiel": "Sailing to kiel takes a day.",
    "rent": "What is owed is rent.",
}


@every_case("groups", [2, 8])
def test_the_group_is_the_largest_of_the_products_and_of_their_opposites(groups: int) -> None:
    vectors = np.random.default_rng(1).standard_normal((300, 16))
    found = [group_of(each, "e/0", groups=groups) for each in vectors]
    assert {*found} == {*range(groups)}
    assert [group_of(7.0 * each, "e/0", groups=groups) for each in vectors] == found
    # −x has the largest product where x has the largest opposite: half of the groups further on
    opposite = [group_of(-each, "e/0", groups=groups) for each in vectors]
    assert opposite == [(each + groups // 2) % groups for each in found]
    near = [group_of(v + 0.2 * w, "e/0", groups=groups) for v, w in zip(vectors, vectors[::-1], strict=True)]
    shared = sum(a == b for a, b in zip(found, near, strict=True))
    assert shared > 0.7 * len(found)
    assert found != [group_of(each, "e/1", groups=groups) for each in vectors]


def grouped(memory: SupervisorMemory, key: str = "lsh_0") -> dict[str, str]:
    return {r.content: r.metadata[key] for r in memory.get_all(user_id="ada")}


@every_case("tables", [1, 4])
def test_only_what_shares_a_group_with_the_question_is_found(tables: int) -> None:
    with SupervisorMemory(SETTINGS, recipe=PUBLISHED.recipe(tables=tables), embedder=Given(AXES)) as memory:
        memory.add_many([*FOUR.values()], user_id="ada", infer=False)
        memory.add_many([*FOUR.values()], user_id="bob", infer=False)
        keys = [f"lsh_{n}" for n in range(tables)]
        of = {text: {key: grouped(memory, key)[text] for key in keys} for text in FOUR.values()}
        assert len({str(each) for each in of.values()}) > 1
        for word, text in FOUR.items():
            found = memory.search(f"any {word}", user_id="ada", threshold=0.0, limit=10)
            mine = {t for t, groups in of.items() if groups.items() & of[text].items()}
            assert {hit.record.content for hit in found} == mine
            assert found[0].record.content == text
            assert {hit.record.user_id for hit in found} == {"ada"}


def test_without_vectors_all_is_searched_and_the_search_says_so() -> None:
    with SupervisorMemory(SETTINGS, recipe="tim") as memory:
        memory.add_many([*FOUR.values()], user_id="ada", infer=False)
        found = memory.search("the pump", user_id="ada", threshold=0.0)
        assert found[0].record.content == FOUR["pump"]
        assert "without vectors there are no groups, so that all was searched" in found.notes


def test_a_new_thought_replaces_another_in_tim_and_not_in_tim_basic() -> None:
    said = ("Always answer in tables.", "From now on, always answer in lists.")
    for name, status in (("tim", "updated"), ("tim_basic", "added")):
        with SupervisorMemory(SETTINGS, recipe=name, embedder=Given(AXES)) as memory:
            results = [memory.write(text, user_id="ada", kind="user-profile") for text in said]
            assert [result.status for result in results] == ["added", status]


def test_an_odd_number_of_groups_is_refused() -> None:
    with pytest.raises(SettingsError, match="tim has 3 groups; use an even number"):
        PUBLISHED.recipe(groups=3)
