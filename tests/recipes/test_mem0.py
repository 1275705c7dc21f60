"""Mem0, as its paper has it: the model's operation is done, or the rules decide."""

from supervisor_memory import Settings, SupervisorMemory
from supervisor_memory.testing.scripted import ScriptedModel
from tests.cases import every_case

SETTINGS = Settings(embedding_model="none", queue_worker=False)
OLD, NEW = "Ada likes cheese pizza.", "Ada likes chicken pizza as well."


@every_case(
    ("answer", "status", "texts"),
    [
        ('{"operation": "ADD"}', "added", {OLD, NEW}),
        (
            '{"operation": "UPDATE", "note": 1, "text": "Ada likes cheese and chicken pizza."}',
            "merged",
            {"Ada likes cheese and chicken pizza."},
        ),
        ('{"operation": "DELETE", "note": 1}', "updated", set()),
        ('Sure: {"operation": "NOOP", "note": 1}', "skipped", {OLD}),
    ],
)
def test_what_the_model_says_is_done(answer: str, status: str, texts: set[str]) -> None:
    model = ScriptedModel(script=[answer])
    with SupervisorMemory(SETTINGS, recipe="mem0", llm=model) as memory:
        first = memory.write(OLD, user_id="ada").id
        assert memory.write(NEW, user_id="ada").status == status
        assert {record.content for record in memory.get_all(user_id="ada")} == texts
        assert memory.history(first)[0].content == OLD
    assert f"1. {OLD}" in model.prompts[0]
    assert NEW in model.prompts[0]
    assert len(model.prompts) == 1  # the first fact had nothing to be compared with


@every_case(
    "answer",
    [
        "I do not know",
        '{"operation": "ERASE", "note": 1}',
        '{"operation": "DELETE", "note": 7}',
        '{"operation": "UPDATE", "note": 1, "text": ""}',
        '{"operation": "NOOP", "note": true}',
        "{]}",
    ],
)
def test_an_answer_that_is_none_of_the_four_leaves_it_to_the_rules(answer: str) -> None:
    with SupervisorMemory(SETTINGS, recipe="mem0", llm=ScriptedModel(script=[answer])) as memory:
        memory.write("Tea is at five.", user_id="ada")
        memory.write("Tea at the depot in Kiel is green.", user_id="ada")
        assert len(memory.get_all(user_id="ada")) == 2


def test_without_a_model_rules_replace_and_merge() -> None:
    with SupervisorMemory(SETTINGS, recipe="mem0") as memory:
        said = ("Always answer in tables.", "From now on, always answer in lists.", "always answer in lists")
        results = [memory.write(text, user_id="ada", kind="user-profile") for text in said]
        assert [result.status for result in results] == ["added", "updated", "skipped"]
        (kept,) = memory.get_all(user_id="ada")
        assert kept.content == said[1]


def test_a_search_says_what_it_does_without_a_model() -> None:
    with SupervisorMemory(SETTINGS, recipe="mem0") as memory:
        memory.write("Tea is at five.", user_id="ada")
        told = memory.search("tea", user_id="ada").notes
        assert told == (
            "mem0 without a model: facts are read and compared by the rules of the default recipe.",
        )
    with SupervisorMemory(SETTINGS, recipe="mem0", llm=ScriptedModel()) as memory:
        assert not memory.search("tea", user_id="ada").notes[1:]
