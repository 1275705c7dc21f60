"""Specialists are sections of the one call: who is asked, what each may propose, and files of one's own."""

import json
from pathlib import Path
from typing import Any

import pytest

from supervisor_memory import Outcome, Scope, Settings, SettingsError, SupervisorMemory
from supervisor_memory.errors import InvalidContent
from supervisor_memory.model.records import Source
from supervisor_memory.stages.pre_insert.operations import Heard
from supervisor_memory.stages.pre_insert.specialists import delegate, open_specialists, read_specialist
from supervisor_memory.testing.scripted import ScriptedModel

ALL = ("personal", "procedural", "tool", "identity")
FAILED = [
    ("user", "Export the orders, please."),
    {"role": "assistant", "content": "The export failed first, because the limit was missing."},
    {"role": "tool", "content": "Error: limit is required, at most 500 rows", "name": "export_rows"},
]


def operation(content: str, quote: str, kind: str, by: str | None = None, **more: Any) -> dict[str, Any]:
    named = {"subject": None, "attribute": None, "scope": None, "id": None, **more}
    return {"do": "add", "content": content, "kind": kind, "quote": quote, "by": by, **named}


def reply(*operations: dict[str, Any], **more: Any) -> str:
    return json.dumps({**more, "operations": list(operations)})


def opened(model: ScriptedModel | None = None, **settings: Any) -> SupervisorMemory:
    return SupervisorMemory(Settings(embedding_model="none", **settings), llm=model)


def heard(text: str, by: Any = "user") -> Heard:
    return Heard(text, Source(by), by, 0.0)


@pytest.mark.parametrize(
    ("texts", "needed"),
    [
        ([heard("Use tables.")], ["personal"]),
        ([heard("You are our release assistant.")], ["personal", "identity"]),
        ([heard("limit is required", "tool")], ["personal", "tool"]),
        ([heard("It failed, then worked.", "agent")], ["personal", "procedural"]),
        ([heard("第一次失败，改用分页后成功。", "agent")], ["personal", "procedural"]),
        ([heard("Thanks!")], []),
    ],
)
def test_an_exchange_is_given_to_those_alone_that_it_concerns(texts: list[Heard], needed: list[str]) -> None:
    assert [each.name for each in delegate(texts, open_specialists(ALL))] == needed


def test_all_specialists_share_one_call_and_each_proposes_its_own_kinds() -> None:
    model = ScriptedModel(
        script=[
            reply(
                operation(
                    "Set limit to at most 500 rows in export_rows.",
                    "limit is required, at most 500 rows",
                    "experience",
                    "tool@1",
                    subject="export_rows",
                    attribute="limit",
                ),
                operation("The export needs a limit.", "the limit was missing", "identity", "procedural@1"),
                operation("An export.", "The export failed first", "experience"),
            )
        ]
    )
    with opened(model, specialists=ALL) as memory:
        done = memory.reflect(FAILED, user_id="ada", agent_id="clerk", run_id="r1")
        assert len(model.calls) == done.steps == 1
        assert done.specialists == ("personal@1", "procedural@1", "tool@1")
        assert done.refused == ("not-its-kind", "not-its-kind")
        (result,) = done.results
        record = memory.get(result.id)
        assert (record.kind, record.family) == ("experience", "clerk_memories")
        assert (record.source.source_class, record.metadata["specialist"]) == ("tool", "tool@1")
    prompt = model.prompts[0]
    assert 'by "tool@1", kind experience:' in prompt
    assert "identity@1" not in prompt


def test_the_default_asks_as_ever() -> None:
    plain, special = ScriptedModel(script=[reply()]), ScriptedModel(script=[reply()])
    said = [("user", "Use tables by default.")]
    with opened(plain) as memory:
        memory.add(said, user_id="ada")
    with opened(special, specialists=ALL) as memory:
        memory.add(said, user_id="ada")
    assert plain.prompts == special.prompts


def test_small_talk_asks_nobody_and_says_so() -> None:
    model = ScriptedModel()
    with opened(model, specialists=ALL) as memory:
        done = memory.reflect([("user", "Hi!"), ("assistant", "Hello!")], user_id="ada")
    assert (model.calls, done.steps, str(done)) == ([], 0, "<NO_MEMORY_NEEDED>")


def test_who_an_agent_is_waits_for_a_person() -> None:
    named = "From now on your name is Max."
    model = ScriptedModel(
        script=[reply(operation("The assistant's name is Max.", named, "identity", "identity@1"))]
    )
    with opened(model, specialists=("identity",)) as memory:
        (result,) = memory.reflect([("user", named)], user_id="ada").results
        assert result.status == "pending"
        (waiting,) = memory.review.pending(user_id="ada")
        assert waiting.record.kind == "identity"


def test_a_model_may_think_first_and_nothing_of_it_is_kept() -> None:
    said = "Use tables by default."
    model = ScriptedModel(
        script=[reply(operation("Use tables by default.", said, "user-profile"), thinking="Hm, a wish.")]
    )
    with opened(model) as memory:
        done = memory.reflect([("user", said)], user_id="ada", thinking=True)
        assert done.thoughts == ("Hm, a wish.",)
        assert "Hm" not in repr(memory.get_all(user_id="ada"))


def test_one_operation_in_each_answer_until_there_is_none_left() -> None:
    said = "Use tables by default. Delayed means arrival over 15 minutes late."
    one = operation("Use tables by default.", "Use tables by default.", "user-profile")
    two = operation(
        "Delayed means arrival over 15 minutes late.",
        "Delayed means arrival over 15 minutes late.",
        "domain-facts",
    )
    model = ScriptedModel(script=[reply(one), reply(two), reply()])
    with opened(model) as memory:
        done = memory.reflect([("user", said)], user_id="ada", multi=False)
        assert (done.steps, done.is_finished) == (3, True)
        assert len(memory.get_all(user_id="ada")) == 2
    assert "- Use tables by default." in model.prompts[1]
    model = ScriptedModel(script=[reply(one), reply(two), reply()])
    with opened(model) as memory:
        done = memory.reflect([("user", said)], user_id="ada", multi=False, max_steps=2)
        assert (done.steps, done.is_finished) == (2, False)
        with pytest.raises(InvalidContent, match="max_steps"):
            memory.reflect([("user", said)], user_id="ada", max_steps=0)


def test_how_it_ended_is_told_and_rates_the_run() -> None:
    model = ScriptedModel(script=[reply()])
    with opened(model, specialists=("procedural",)) as memory:
        scope = Scope("ada", "clerk", "s", "r1")
        memory.experience.heard("export", {"n": 1}, scope, error="limit is required")
        memory.experience.heard("export", {"n": 1, "limit": 5}, scope)
        memory.reflect(
            FAILED, user_id="ada", agent_id="clerk", run_id="r1", outcome=Outcome(score=0.25, error="late")
        )
        assert "outcome: score 0.25 of 1, error: late" in model.prompts[0]
        assert memory.experience.guidelines(user_id="ada") == []


def test_a_model_that_fails_leaves_what_the_rules_found() -> None:
    model = ScriptedModel(script=["no json at all"])
    with opened(model) as memory:
        done = memory.reflect([("user", "Use tables by default.")], user_id="ada")
        assert (done.is_finished, done.refused) == (False, ("the-model-answered-no-json-list",))
        assert [each.content for each in memory.get_all(user_id="ada")] == ["Use tables by default."]


def own(folder: Path, text: str, prompt: str = "Which colours were liked?") -> Path:
    (folder / "mine.md").write_text(prompt, "utf-8")
    path = folder / "colours.toml"
    path.write_text(text, "utf-8")
    return path


GOOD = 'name = "colours"\nversion = "2"\nkinds = ["domain-facts"]\nhears = ["user"]\nprompt = "mine.md"\n'


def test_a_file_of_ones_own_is_a_specialist(tmp_path: Path) -> None:
    path = own(tmp_path, GOOD)
    said = "The banner is teal."
    model = ScriptedModel(script=[reply(operation(said, said, "domain-facts", "colours@2"))])
    with opened(model, specialists=(str(path),)) as memory:
        (result,) = memory.reflect([("user", said)], user_id="ada").results
        assert memory.get(result.id).metadata["specialist"] == "colours@2"
    assert "Which colours were liked?" in model.prompts[0]


@pytest.mark.parametrize(
    ("text", "line", "told"),
    [
        (GOOD + 'promt = "x"\n', 6, "'promt' is no key of a specialist; did you mean 'prompt'?"),
        (GOOD.replace('"domain-facts"', '"domain-fact"'), 3, "did you mean 'domain-facts'?"),
        (GOOD.replace('"user"', '"users"'), 4, "did you mean 'user'?"),
        (GOOD.replace('version = "2"', "version = 2"), 2, "version is int; write str"),
        (GOOD.replace('"colours"', '"Colours!"'), 1, "is no name"),
        (GOOD.replace("mine.md", "none.md"), 5, "cannot be read"),
        (GOOD + 'words = ["("]\n', 6, "words are patterns"),
        (GOOD.replace('prompt = "mine.md"\n', ""), 1, "prompt is missing"),
    ],
)
def test_a_wrong_file_is_told_with_its_line(tmp_path: Path, text: str, line: int, told: str) -> None:
    path = own(tmp_path, text)
    with pytest.raises(SettingsError) as error:
        read_specialist(path)
    assert str(error.value).startswith(f"{path}:{line}: ")
    assert told in str(error.value)


def test_a_prompt_that_is_too_long_and_names_that_are_wrong_are_refused(tmp_path: Path) -> None:
    with pytest.raises(SettingsError, match="200 at most"):
        read_specialist(own(tmp_path, GOOD, "word " * 900))
    with pytest.raises(SettingsError, match="did you mean procedural"):
        open_specialists(("procedurel",))
    with pytest.raises(SettingsError, match="two specialists are called 'tool'"):
        open_specialists(("tool", "tool"))


def test_add_takes_an_operator_and_a_prompt_of_ones_own(tmp_path: Path) -> None:
    from dataclasses import replace

    from supervisor_memory.flow import Remembering
    from supervisor_memory.ports import ReadStore

    def shout(said: Remembering, view: ReadStore) -> Remembering:
        louder = tuple(replace(each, content=each.content.upper()) for each in said.candidates)
        return replace(said, candidates=louder)

    (tmp_path / "remember.md").write_text("Mine. {records} {exchange}", "utf-8")
    model = ScriptedModel(script=[reply(), reply()])
    with opened(model) as memory:
        memory.add("Use tables by default.", user_id="ada", process=shout, prompt=tmp_path)
        assert [each.content for each in memory.get_all(user_id="ada")] == ["USE TABLES BY DEFAULT."]
        memory.add("Use euros by default.", user_id="ada")
        (tmp_path / "other").mkdir()
        (tmp_path / "other/remember.md").write_text("no place", "utf-8")
        with pytest.raises(SettingsError, match="no place for"):
            memory.add("Use tables.", user_id="ada", prompt=tmp_path / "other/remember.md")
    assert model.prompts[0].startswith("Mine. ")
    assert not model.prompts[1].startswith("Mine. ")
