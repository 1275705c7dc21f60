"""No door lets personal data in: into no file, no prompt, no vector, no log, no row of the audit."""

import io
import itertools
import json
import logging
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from langchain_core.messages import AIMessage
from qdrant_client import QdrantClient

from supervisor_memory import Outcome, Scope, Settings, SupervisorMemory
from supervisor_memory.embedding.protocol import Matrix, Vector
from supervisor_memory.errors import ContentTooLarge, RedactionError, SupervisorMemoryError
from supervisor_memory.flow import Remembering
from supervisor_memory.model.records import SESSION_FAMILY, Filter, Record, WriteResult
from supervisor_memory.ports import Deciding
from supervisor_memory.recipes.default import DEFAULT
from supervisor_memory.redact.redactor import open_redactor
from supervisor_memory.stores.memory.in_memory import InMemoryBackend
from supervisor_memory.stores.memory.json_file import JsonBackend
from supervisor_memory.stores.protocol import Change, Commit, MemoryBackend
from supervisor_memory.stores.qdrant.store import QdrantBackend
from supervisor_memory.stores.sqlite.store import SqliteBackend
from supervisor_memory.testing.clock import FixedClock
from supervisor_memory.testing.ports import record
from supervisor_memory.testing.records import assert_chain
from supervisor_memory.testing.scripted import ScriptedModel, call_of
from tests.breadth import examples
from tests.canaries import Dense, whole
from tests.host.graphs import asking, config, model, team
from tests.redact.samples import TYPES, Canary, canaries

ADA = Scope("ada", session_id="s1")
MAIL, PHONE = "ada@example.com", "13800138000"


class Listening(Dense):
    """Keeps every text it is to embed."""

    def __init__(self) -> None:
        self.heard: list[str] = []

    def embed_query(self, text: str) -> Vector:
        self.heard.append(text)
        return super().embed_query(text)

    def embed_documents(self, texts: Sequence[str]) -> Matrix:
        self.heard += texts
        return super().embed_documents(texts)


class Everything(logging.Handler):
    """Keeps all that a log line carries, also what a formatter would leave out."""

    def __init__(self) -> None:
        super().__init__(logging.DEBUG)
        self.lines: list[str] = []

    def emit(self, line: logging.LogRecord) -> None:
        self.lines.append(f"{line.getMessage()} {line.__dict__!r} {line.exc_info and self.format(line)}")


class Door:
    """A memory, and all that leaves it."""

    def __init__(self, backend: MemoryBackend, directory: Path, **settings: Any) -> None:
        self.backend, self.directory, self.embedder = backend, directory, Listening()
        self.model = ScriptedModel(script=[])
        told = {"redact": "all", **settings}
        self.memory = SupervisorMemory(
            Settings(**told), backend=backend, embedder=self.embedder, llm=self.model, clock=FixedClock()
        )

    def leaked(self, texts: Sequence[str], log: Sequence[str] = ()) -> dict[str, set[str]]:
        """Where each of the texts can be found."""
        told = {
            "records": [each.to_json() for each in kept(self.backend)],
            "prompts": self.model.prompts,
            "embedder": self.embedder.heard,
            "log": log,
            "audit": [row.payload.decode() for row in self.backend.audit.tail(10**6)],
            "index": [repr(self.memory.services.vectors.keys())],
        }
        seen = self.directory.parent / "seen"
        for where, lines in told.items():
            (seen / where).mkdir(parents=True)
            (seen / where / "text").write_text("\n".join(lines), encoding="utf-8", errors="backslashreplace")
        found = {"files": whole(self.directory, texts)}
        if whole(seen, texts):
            found |= {where: whole(seen / where, texts) for where in told}
        return {where: texts for where, texts in found.items() if texts}


def kept(backend: MemoryBackend) -> list[Record]:
    """Every version of every record."""
    wheres = (Filter(statuses=None), Filter(statuses=None, families=(SESSION_FAMILY,)))
    ids = [each.id for where in wheres for each in backend.list(where, limit=10**6)]
    return [version for id_ in ids for version in backend.versions(id_)]


@pytest.fixture
def log() -> Iterator[list[str]]:
    handler, logger = Everything(), logging.getLogger()
    logger.addHandler(handler)
    level = logger.level
    logger.setLevel(logging.DEBUG)
    yield handler.lines
    logger.removeHandler(handler)
    logger.setLevel(level)


def opened(name: str, path: Path) -> MemoryBackend:
    kinds: dict[str, Callable[[], MemoryBackend]] = {
        "in_memory": InMemoryBackend,
        "json": lambda: JsonBackend(path),
        "sqlite": lambda: SqliteBackend(path),
        "qdrant": lambda: QdrantBackend(QdrantClient(path=str(path / "points")), audit=path / "audit"),
    }
    return kinds[name]()


def say_everywhere(door: Door, said: Sequence[Canary]) -> None:
    """Each in turn through another door."""
    memory, store = door.memory, door.memory.store(guarded=False)
    first = memory.write("Refunds take 14 days.", user_id="ada")

    def in_metadata(text: str) -> None:
        extra = {"note": text, "deep": {"list": [text]}, "tags": [text], "use_when": f"asked for {text}"}
        memory.write(f"Ask Bob number {len(text)} first about {hash(text)}.", user_id="ada", metadata=extra)

    def by_agent(text: str) -> None:
        brought = Outcome(
            final_answer=f"The contact of the carrier is {text}.",
            conclusion=f"The carrier's contact is {text}.",
            side_effects=({"path": f"/data/{text}.csv", "rows": 3}, f"SELECT * FROM t WHERE x = '{text}'"),
        )
        memory.remember((), replace(ADA, agent_id="analyst"), outcome=brought, turn_id=str(hash(text)))

    boss = model()
    graph = memory.attach(team(boss, {})).compile()

    def by_tool(text: str) -> None:
        boss.script += [call_of("memory_write", content=f"Use {text}."), call_of("memory_search", query=text)]
        graph.invoke(asking(f"From now on use {text} in tables."), config(user_id="ada"))

    def by_queue(text: str) -> None:
        memory.queue.observe("run_sql", {"sql": f"SELECT '{text}' FROM t"}, f"saved {text}", ADA)

    def in_a_question(text: str) -> None:
        memory.search(text, user_id="ada", where={"metadata": {"note": text}})
        memory.recall([("user", f"what of {text}?")], ADA)
        memory.topics(user_id="ada")

    def in_review(text: str) -> None:
        pending = memory.review.pending(user_id="ada")
        if pending:
            memory.review.reject(pending[0].id, reviewer="eve", reason=f"because {text}")

    doors: list[Callable[[str], object]] = [
        lambda text: memory.write(f"The contact is {text}.", user_id="ada"),
        lambda text: memory.write(text, user_id="ada", kind="experience"),
        in_metadata,
        lambda text: memory.add(f"Please always use {text} for reports.", user_id="ada", session_id="s"),
        lambda text: memory.add(text, user_id="ada", infer=False, metadata={"n": text}),
        lambda text: memory.add_many([{"content": f"I {text}", "metadata": {"m": [text]}}], user_id="ada"),
        lambda text: memory.update(first.id, content=f"Refunds: {text}", metadata={"of": text}),
        lambda text: memory.remember([("user", f"I prefer {text} in tables."), ("assistant", text)], ADA),
        by_agent,
        by_tool,
        by_queue,
        lambda text: store.put(("memories", "ada"), f"k{hash(text)}", {"content": text, "deep": {"x": text}}),
        lambda text: store.search(("memories", "ada"), query=text, filter={"x": text}),
        lambda text: memory.summarize([text, "another"], goal=text),
        in_a_question,
        in_review,
    ]  # fmt: skip
    threes = (said[start : start + 3] for start in range(0, len(said), 3))
    for some, enter in zip(threes, itertools.cycle(doors), strict=False):
        enter(" ; ".join(canary.text.strip() for canary in some))
    memory.flush()
    memory.queue.flush()


@pytest.mark.parametrize(("name", "each"), [("sqlite", examples(100)), ("json", 12), ("qdrant", 6)])
def test_no_canary_is_found_anywhere(name: str, each: int, tmp_path: Path, log: list[str]) -> None:
    files = tmp_path / "store"
    backend = opened(name, files)
    door = Door(backend, files)
    said = [canary for type_ in TYPES for canary in canaries(type_, each, seed=7)]
    say_everywhere(door, said)
    texts = [canary.told for canary in said]
    assert door.leaked(texts, log) == {}
    assert len(kept(backend)) > each
    assert door.model.prompts
    assert_chain(backend.audit.rows(limit=10**6), backend.audit.log_id)
    backend.close()
    assert whole(files, texts) == set()


def test_without_redaction_the_same_canaries_are_found(tmp_path: Path, log: list[str]) -> None:
    files = tmp_path / "store"
    door = Door(opened("sqlite", files), files, redact="off")
    said = [canary for type_ in TYPES for canary in canaries(type_, 16, seed=7)]
    say_everywhere(door, said)
    found = door.leaked([canary.told for canary in said], log)
    assert {"records", "prompts", "embedder", "files", "index"} <= set(found)
    assert "log" not in found  # it holds no text, redacted or not
    assert len(set().union(*found.values())) > len(said) * 0.8
    door.backend.close()


# --- what is stored is of the text as it was redacted


@pytest.fixture
def door(tmp_path: Path) -> Iterator[Door]:
    door = Door(opened("sqlite", tmp_path), tmp_path)
    yield door
    door.backend.close()


def test_a_question_finds_what_was_stored_by_its_placeholder(door: Door) -> None:
    door.memory.write(f"Invoices go to {MAIL}", user_id="ada", metadata={"mail": MAIL})
    (hit,) = door.memory.search(f"Invoices go to {MAIL}", user_id="ada", where={"metadata": {"mail": MAIL}})
    assert hit.record.content == "Invoices go to [EMAIL]"
    assert hit.parts["cosine"] == pytest.approx(1.0)


def test_the_audit_says_how_much_of_each_type_was_taken_out_and_verifies(door: Door) -> None:
    memory = door.memory
    kept = memory.write(f"Write to {MAIL} or bob@example.com, or call {PHONE}", user_id="ada")
    memory.update(kept.id, content=f"Write to {MAIL}, my password is hunter2")
    memory.write("Nothing here.", user_id="ada")
    counts = [
        {name: count for name, count in row.event["detail"].items() if name.startswith("redacted_")}
        for row in door.backend.audit.tail(3)
    ]
    assert counts == [{"redacted_email": 2, "redacted_phone": 1}, {"redacted_secret": 1}, {}]
    from supervisor_memory.audit.verify import verified

    assert verified(door.backend.audit, door.backend.get).problems == []


def test_two_people_are_not_taken_for_one_because_their_numbers_are_gone(door: Door) -> None:
    for text in (f"{PHONE} means the hotline", "13900139000 means the night desk"):
        door.memory.write(text, user_id="ada")
    told = {each.content for each in door.memory.get_all(user_id="ada")}
    assert told == {"[PHONE] means the hotline", "[PHONE] means the night desk"}


@pytest.mark.parametrize("kind", ["user-profile", "domain-facts", "task-traces", None])
def test_another_value_behind_a_placeholder_is_told_and_not_skipped(door: Door, kind: Any) -> None:
    first = door.memory.write("The night desk answers on 13800138000.", user_id="ada", kind=kind)
    again = door.memory.write("The night desk answers on 13900139000.", user_id="ada", kind=kind)
    assert (again.status, again.reason, again.id) == ("updated", "hidden-value", first.id)
    told = door.memory.write("My landlord: bo@example.com, mornings only.", user_id="ada", kind=kind)
    short = door.memory.write("My landlord: di@example.com.", user_id="ada", kind=kind)
    assert short.status != "skipped"
    assert "mornings only" in door.memory.get(told.id).content


def test_where_nothing_is_taken_out_a_bracket_is_a_bracket() -> None:
    memory = SupervisorMemory(Settings(embedding_model="none"))
    memory.write("The template starts with [EMAIL].", user_id="ada")
    assert memory.write("The template starts with [EMAIL].", user_id="ada").status == "skipped"


def test_the_name_of_a_task_is_redacted_and_two_tasks_stay_two(tmp_path: Path, log: list[str]) -> None:
    door = Door(opened("sqlite", tmp_path / "store"), tmp_path / "store")
    one, other = (Scope("ada", session_id="s", task=f"case of {who}@example.com") for who in ("bo", "di"))
    for scope, said in ((one, "I prefer maps."), (other, "I prefer graphs.")):
        door.memory.remember(said, scope, turn_id="t")
        door.memory.queue.observe("run_sql", {"sql": "SELECT 1 FROM x"}, "north", scope)
        door.memory.recall("maps or graphs?", scope)
    door.memory.write("GMV excludes refunds.", user_id="ada", task=one.task)
    seen = door.memory.search("maps", user_id="ada", task=one.task, threshold=0)
    assert {hit.record.content for hit in seen} >= {"I prefer maps.", "GMV excludes refunds."}
    assert "I prefer graphs." not in {hit.record.content for hit in seen}
    assert "case of [EMAIL] (" in str(seen[0].record)
    assert door.leaked(["bo@example.com", "di@example.com"], log) == {}


def test_a_turn_that_runs_again_is_known_again(door: Door) -> None:
    for _ in range(2):
        door.memory.remember([("user", f"From now on mail tables to {MAIL}.")], ADA, turn_id="t1")
    (wish,) = door.memory.get_all(user_id="ada")
    said = door.memory.session("s1", user_id="ada")
    assert [each.content for each in said] == ["From now on mail tables to [EMAIL]."]
    assert wish.ref_id == said[0].id


def test_who_said_it_is_redacted_where_a_number_stands_for_a_name(door: Door) -> None:
    door.memory.add_many([{"content": "hello", "speaker": "+86 13800138000"}], user_id="ada")
    (record,) = door.memory.get_all(user_id="ada")
    assert record.source.speaker == "[PHONE]"


def test_ids_stay_as_the_host_gives_them(door: Door) -> None:
    kept = door.memory.write("Use tables", user_id=MAIL, session_id=PHONE)
    stored = door.memory.get(kept.id, user_id=MAIL)
    assert (stored.user_id, stored.source.session_id) == (MAIL, PHONE)


def test_an_item_of_a_store_keeps_its_address_and_nothing_else(door: Door) -> None:
    store = door.memory.store(guarded=False)
    store.put(("memories", "ada"), PHONE, {"content": f"mail {MAIL}", "phone": 13800138000})
    item = store.get(("memories", "ada"), PHONE)
    assert item is not None
    assert item.value == {"content": "mail [EMAIL]", "phone": "[PHONE]"}


# --- the last check


def test_what_an_operator_commits_is_checked_as_well(tmp_path: Path) -> None:
    def insert_raw(said: Remembering, view: Deciding) -> Remembering:
        raw = record(f"raw {MAIL}", user_id="ada", metadata={"x": PHONE, "tags": [MAIL]}, tags=(MAIL,))
        [vector] = view.embed([raw.content])
        view.commit(Commit((Change(replace(raw, vector=vector, embedder=Listening.fingerprint)),)))
        return replace(said, results=(WriteResult(raw.id, "added"),))

    recipe = replace(DEFAULT, insert=(insert_raw,))
    embedder = Listening()
    settings = Settings(redact="pii")
    with SupervisorMemory(
        settings, backend=SqliteBackend(tmp_path), embedder=embedder, recipe=recipe
    ) as memory:
        memory.write("anything", user_id="ada")
        (stored,) = memory.get_all(user_id="ada")
        assert (stored.content, stored.tags) == ("raw [EMAIL]", ("[EMAIL]",))
        assert stored.metadata == {"x": "[PHONE]", "tags": ("[EMAIL]",)} or stored.metadata["x"] == "[PHONE]"
        assert embedder.heard == ["raw [EMAIL]"]
        (hit,) = memory.search(f"raw {MAIL}", user_id="ada")
        assert hit.parts["cosine"] == pytest.approx(1.0)


def test_what_was_kept_before_stays_until_it_is_changed(tmp_path: Path) -> None:
    with SupervisorMemory(Settings(embedding_model="none"), backend=SqliteBackend(tmp_path)) as memory:
        old = memory.write(f"Old {MAIL}", user_id="ada")
    settings = Settings(redact="all")
    with SupervisorMemory(settings, backend=SqliteBackend(tmp_path), embedder=Dense()) as memory:
        memory.reembed()
        assert memory.get(old.id).content == f"Old {MAIL}"
        assert memory.get(old.id).version == 1
        memory.update(old.id, metadata={"seen": True})
        assert memory.get(old.id).content == "Old [EMAIL]"
        memory.delete(old.id)


def test_what_is_imported_is_redacted_with_its_versions(tmp_path: Path) -> None:
    file = io.BytesIO()
    with SupervisorMemory(Settings(), backend=InMemoryBackend(), embedder=Dense()) as source:
        kept_ = source.write(f"Old {MAIL}", user_id="ada", metadata={"phone": PHONE})
        source.update(kept_.id, content=f"New {MAIL}")
        source.write("Plain", user_id="ada")
        source.export(file, user_id=None)
        with SupervisorMemory(
            Settings(redact="all"), backend=InMemoryBackend(), embedder=Dense()
        ) as copied_to:
            assert source.copy_to(copied_to).is_whole
            assert MAIL not in "".join(each.to_json() for each in kept(copied_to.backend))
    settings = Settings(redact="all")
    with SupervisorMemory(settings, backend=SqliteBackend(tmp_path), embedder=Dense()) as target:
        for what in ("added", "same"):
            file.seek(0)
            assert target.import_from(file).counts == {what: 2}
        assert [each.content for each in kept(target.backend) if each.id == kept_.id] == [
            "Old [EMAIL]",
            "New [EMAIL]",
        ]
        (row,) = target.backend.audit.tail(1, op="memory.redact")
        assert row.event["detail"] == {"redacted_email": 1}
        assert target.reembed().embedded == 1
    assert whole(tmp_path, [MAIL, PHONE]) == set()


def test_what_is_too_large_is_refused_without_reading_all_of_it(door: Door) -> None:
    large = "13800138000," * 200_000
    (result,) = door.memory.remember([("user", large)], ADA)
    assert (result.saved, result.reason) == (False, "content-too-large")
    assert door.memory.search(large, user_id="ada").notes
    with pytest.raises(ContentTooLarge):
        door.memory.write(large, user_id="ada")
    assert kept(door.backend) == []


# --- a function of one's own


def test_a_function_of_ones_own_comes_after_what_is_asked_for(tmp_path: Path) -> None:
    def names(text: str) -> str:
        return text.replace("Ada", "<PERSON>")

    settings = Settings(redact="email", embedding_model="none")
    with SupervisorMemory(settings, backend=SqliteBackend(tmp_path), redact=names) as memory:
        kept = memory.write(f"Ada has {MAIL}", user_id="u")
        assert memory.get(kept.id).content == "<PERSON> has [EMAIL]"
        detail = memory.backend.audit.tail(1)[0].event["detail"]
        assert (detail["redacted_person"], detail["redacted_email"]) == (1, 1)


@pytest.mark.parametrize("answer", [None, ValueError("Ada has a secret")])
def test_where_it_fails_nothing_is_kept_and_nothing_of_the_text_is_told(
    answer: object, tmp_path: Path, log: list[str]
) -> None:
    def broken(text: str) -> str:
        if isinstance(answer, BaseException):
            raise answer
        return answer  # type: ignore[return-value]  # what a stranger's function may do

    settings = Settings(embedding_model="none")
    with SupervisorMemory(settings, backend=SqliteBackend(tmp_path), redact=broken) as memory:
        with pytest.raises(
            RedactionError, match=r"the redact function (failed with ValueError|answered NoneType)"
        ):
            memory.write("Ada has a secret", user_id="u")
        (result,) = memory.remember([("user", "From now on Ada has a secret.")], Scope("u", session_id="s"))
        assert not result.saved
        assert memory.recall([("user", "Ada has a secret?")], Scope("u")).degraded
        with pytest.raises(SupervisorMemoryError):
            memory.search("Ada has a secret", user_id="u")
        assert kept(memory.backend) == []
    assert not [line for line in log if "has a secret" in line.partition("/test_everywhere.py")[0]]
    assert whole(tmp_path, ["Ada has a secret"]) == set()


def test_the_hook_is_the_same_for_every_text() -> None:
    heard: list[str] = []

    def listen(text: str) -> str:
        heard.append(text)
        return text

    open_redactor("off", "CN", listen).value({"a": ["b", {"c": 1}]})
    assert json.dumps(heard) == json.dumps(["b", "c: 1"])
    assert AIMessage("x").text == "x"
