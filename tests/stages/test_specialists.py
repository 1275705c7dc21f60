"""Specialists are sections of the one call: who is asked, what each may propose, and files of one's own."""

import json
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from langchain_core.messages import AIMessage

from supervisor_memory import Outcome, Scope, Settings, SettingsError, SupervisorMemory, specialist
from supervisor_memory.errors import InvalidContent
from supervisor_memory.model.records import Source
from supervisor_memory.stages.pre_insert.operations import Heard
from supervisor_memory.stages.pre_insert.specialists import (
    _REGISTERED,
    delegate,
    open_specialists,
    read_specialist,
)
from supervisor_memory.testing.scripted import ScriptedModel
from tests.cases import every_case

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


@every_case(
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


@pytest.mark.parametrize("multi", [True, False])
def test_records_are_added_updated_and_deleted_several_in_one_answer_or_one_by_one(*, multi: bool) -> None:
    said = "Use bars by default. Late means over 20 minutes after all. Forget ARPU. Cities are IATA codes."
    known = ["Use tables by default.", "Late means over 15 minutes.", "ARPU means average revenue per user."]

    def numbered(messages: Any) -> list[dict[str, Any]]:
        whole = "\n".join(str(each.text) for each in messages)
        lines = [re.search(rf"(r\d+): \[.*\] {text}", whole) for text in known]
        tables, late, arpu = (line[1] for line in lines if line is not None)
        bars = operation("Use bars by default.", "Use bars by default.", "user-profile", id=tables)
        later = operation(
            "Late means over 20 minutes.", "Late means over 20 minutes", "domain-facts", id=late
        )
        gone = operation("", "Forget ARPU.", "domain-facts", id=arpu)
        new = operation("Cities are IATA codes.", "Cities are IATA codes.", "domain-facts")
        return [{**bars, "do": "update"}, {**later, "do": "update"}, {**gone, "do": "delete"}, new]

    def at(*places: int) -> Any:
        return lambda messages: AIMessage(reply(*(numbered(messages)[n] for n in places)))

    script = [at(0, 1, 2, 3)] if multi else [at(0), at(1), at(2), at(3), reply()]
    model = ScriptedModel(script=script)
    with SupervisorMemory(Settings(embedding_model="none"), llm=model) as memory:
        for text, kind in zip(known, ("user-profile", "domain-facts", "domain-facts"), strict=True):
            memory.write(text, user_id="ada", kind=kind)  # type: ignore[arg-type]
        done = memory.reflect([("user", said)], user_id="ada", multi=multi)
        assert (done.steps, done.refused) == (1 if multi else 5, ())
        texts = {each.content for each in memory.get_all(user_id="ada")}
        assert texts == {"Use bars by default.", "Late means over 20 minutes.", "Cities are IATA codes."}


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
    with pytest.raises(SettingsError, match="two specialists are called 'tool@1'"):
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


@pytest.fixture
def colours() -> Iterator[list[list[str]]]:
    """Two versions of a specialist that is a function, and what the first was given to read."""
    given: list[list[str]] = []

    @specialist("colours@1", kinds=["domain-facts"], hears=["user"], words=[r"\bcolou?r"])
    def first(heard: Any) -> Any:
        given.append([each.text for each in heard])
        for each in heard:
            if found := re.search(r"the colour of (\w+) is (\w+)", each.text):
                yield {"content": f"{found[1]}: {found[2]}", "kind": "domain-facts", "quote": found[0]}
                yield {"content": "The colour of all is gold.", "kind": "domain-facts", "quote": "not there"}
                yield {"content": f"{found[1]} for ever", "kind": "user-profile", "quote": found[0]}

    @specialist("colours@2", kinds=["domain-facts"], hears=["user"], review=True)
    def second(heard: Any) -> Any:
        raise RuntimeError("a stranger's mistake")

    yield given
    for key in ("colours@1", "colours@2"):
        _REGISTERED.pop(key)


SAID = "Well, the colour of delays is red, as we agreed."


def test_a_function_is_a_specialist_with_the_same_guards_and_without_a_model(colours: Any) -> None:
    with opened(specialists=("personal", "colours@1")) as memory:
        done = memory.reflect([("user", SAID), ("assistant", "Noted.")], user_id="ada")
        assert (done.specialists, done.steps) == (("colours@1",), 0)
        assert done.refused == ("no-quote", "not-its-kind")
        (result,) = done.results
        record = memory.get(result.id)
        assert (record.content, record.source.source_class) == ("delays: red", "user")
        assert record.metadata["specialist"] == record.metadata["extracted"]["by"] == "colours@1"
        assert colours == [[SAID]], "it is given what it hears, and nothing else"
        assert memory.add([("user", SAID)], user_id="bob")[0].status == "added"
        memory.remember([("user", SAID), ("assistant", "Noted.")], Scope("eve", session_id="s", run_id="r"))
        assert memory.flush()
        assert [each.content for each in memory.get_all(user_id="eve")] == ["delays: red"]


def test_versions_stand_side_by_side_and_one_that_fails_takes_nothing_along(colours: Any) -> None:
    with opened(specialists=("personal", "colours@1", "colours@2")) as memory:
        done = memory.reflect([("user", SAID)], user_id="ada")
        assert done.specialists == ("colours@1", "colours@2")
        assert done.refused[-1] == "specialist.colours.2:RuntimeError"
        assert [each.content for each in memory.get_all(user_id="ada")] == ["delays: red"]
        memory.remember([("user", SAID)], Scope("eve", session_id="s", run_id="r"))
        assert memory.flush()
        reasons = [row.event["reason"] for row in memory.backend.audit.tail(50) if row.op == "sharpen"]
        assert reasons == ["specialist.colours.2:RuntimeError"]
    for named, told in (
        ("colours", "several specialists 'colours'"),
        ("no.such.module:colours", "cannot be imported"),
        (f"{__name__}:heard", "decorate it with"),
    ):
        with pytest.raises(SettingsError, match=told):
            opened(specialists=(named,))


def test_a_process_that_has_not_imported_a_function_names_its_place(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    lines = [
        "from supervisor_memory import specialist",
        '@specialist("hats@1", kinds=["domain-facts"], hears=["user"])',
        "def hats(heard):",
        "    return [{'content': e.text, 'quote': e.text} for e in heard]",
    ]
    (tmp_path / "of_hats.py").write_text("\n".join(lines), "utf-8")
    monkeypatch.syspath_prepend(tmp_path)
    try:
        with opened(specialists=("of_hats:hats",)) as memory:
            done = memory.reflect([("user", "A fedora is a hat.")], user_id="ada")
            assert [memory.get(each.id).content for each in done.results] == ["A fedora is a hat."]
    finally:
        _REGISTERED.pop("hats@1", None)


def test_with_a_model_it_takes_no_part_of_the_call(colours: Any) -> None:
    model = ScriptedModel(script=[reply()])
    with opened(model, specialists=("personal", "colours@1")) as memory:
        done = memory.reflect([("user", SAID)], user_id="ada")
        assert done.specialists == ("colours@1", "personal@1")
        assert len(done.results) == 1
    assert "colours" not in model.prompts[0]


@every_case(
    ("key", "options", "told"),
    [
        ("colours", {}, "a name and a version"),
        ("tool@9", {}, "one of ours"),
        ("x@1", {"kinds": ["facts"]}, "kinds has 'facts'"),
        ("x@1", {"hears": []}, "hears is empty"),
        ("x@1", {"words": ["("]}, "words are patterns"),
    ],
)
def test_a_wrong_registration_is_told(key: str, options: Any, told: str) -> None:
    with pytest.raises(SettingsError, match=told):
        specialist(key, **{"kinds": ["domain-facts"], "hears": ["user"], **options})(lambda heard: [])


def test_an_operator_that_is_none_writes_nothing() -> None:
    with opened() as memory:
        for process, told in (("no function", "process is str"), (lambda said, view: None, "NoneType")):
            with pytest.raises(InvalidContent, match=told):
                memory.add("Use tables by default.", user_id="ada", process=process)  # type: ignore[arg-type]
        assert memory.get_all(user_id="ada") == []
