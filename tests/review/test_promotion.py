"""Shared for a team: a person promotes, all its users read; nothing else gets in, and all of it goes back."""

import json
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from langchain.agents import create_agent
from typer.testing import CliRunner

from supervisor_memory import Filter, InvalidContent, InvalidName, Scope, Settings, SupervisorMemory
from supervisor_memory.errors import Conflict, RecordNotFound
from supervisor_memory.interfaces.cli.main import app
from supervisor_memory.model.records import Message, new_id
from supervisor_memory.stages.insert.again import decide_again
from supervisor_memory.stores.protocol import Change, Commit
from supervisor_memory.testing.clock import FixedClock
from supervisor_memory.testing.scripted import ScriptedModel
from tests.opened import IN_PROCESS, opened

DEFINITION = "delayed means more than 15 minutes late at the gate"
QUESTION = "How many flights were delayed?"
RITA = "rita@example.com"
ANALYST = Scope("ada", "analyst", "s1", "run-1")


@pytest.fixture(params=IN_PROCESS)
def memory(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[SupervisorMemory]:
    with opened(request.param, tmp_path) as backend:
        yield SupervisorMemory(
            Settings(embedding_model="none", team="flights"), backend=backend, clock=FixedClock()
        )


@pytest.fixture
def plain() -> Iterator[SupervisorMemory]:
    with SupervisorMemory(Settings(embedding_model="none", team="flights"), clock=FixedClock()) as memory:
        yield memory


def note(memory: SupervisorMemory, user: str, agent: str | None = None, asked: str = QUESTION) -> str:
    return memory.recall(asked, Scope(user, agent, "s9", f"run-of-{user}")).text


def guideline(memory: SupervisorMemory, scope: Scope = ANALYST, right: str = "arr_delay") -> str:
    memory.experience.heard("run_sql", {"sql": "SELECT delay FROM f"}, scope, error="no such column: delay")
    memory.experience.heard("run_sql", {"sql": f"SELECT {right} FROM f"}, scope)
    return memory.experience.guidelines(user_id=scope.user_id)[0].record.id


def promote(memory: SupervisorMemory, id: str, **options: Any) -> str:
    return memory.review.promote(id, reviewer=RITA, **{"on_erase": "erase", **options}).id


def test_what_is_promoted_is_read_by_all_users_of_the_team_and_nothing_else_is(
    memory: SupervisorMemory,
) -> None:
    mine = memory.write(DEFINITION, user_id="ada")
    memory.write("on time means less than 5 minutes late at the gate", user_id="ada")
    assert note(memory, "bob") == ""
    seen = memory.review.preview_promotion(mine.id)
    assert (seen.text, seen.team, seen.agent_id, seen.personal, seen.names) == (
        DEFINITION,
        "flights",
        None,
        (),
        (),
    )
    shared = promote(memory, mine.id)
    assert DEFINITION in note(memory, "bob")
    assert DEFINITION in note(memory, "eve", "analyst")
    assert "on time" not in note(memory, "bob", asked="What does on time mean for delayed flights?")
    assert note(memory, "ada").count(DEFINITION) == 1, "her own is told, and not twice"
    assert list(memory.search(QUESTION, user_id="bob")) == []
    with pytest.raises(RecordNotFound):
        memory.get(shared, user_id="bob")
    copy = memory.get(shared)
    assert (copy.source.session_id, copy.source.run_id, copy.ref_id, copy.tags) == (None, None, None, ())
    assert [each.id for each in memory.review.shared()] == [shared]
    assert memory.audit.verify(deep=True).problems == []


def test_a_guideline_reaches_the_agent_of_that_name_of_each_user_without_runs(
    memory: SupervisorMemory,
) -> None:
    promote(memory, guideline(memory))
    assert "`arr_delay`, not `delay`" in note(memory, "bob", "analyst")
    assert "arr_delay" not in note(memory, "bob", "clerk") + note(memory, "bob")
    [copy] = memory.review.shared()
    assert copy.metadata["lessons"][0]["runs"] == []
    assert "run-1" not in copy.to_json()


def test_without_a_team_nothing_is_shared_and_another_team_reads_nothing(plain: SupervisorMemory) -> None:
    mine = plain.write(DEFINITION, user_id="ada")
    promote(plain, mine.id)
    for team in ("", "trains"):
        other = SupervisorMemory(Settings(embedding_model="none", team=team), backend=plain.backend)
        assert note(other, "bob") == ""
        if not team:
            with pytest.raises(InvalidContent, match="MEMORY_TEAM is empty"):
                other.review.promote(mine.id, reviewer=RITA, on_erase="erase")


def test_a_promotion_is_audited_and_undone_and_what_it_replaced_is_back(memory: SupervisorMemory) -> None:
    first = memory.write(DEFINITION, user_id="ada")
    old = promote(memory, first.id)
    second = memory.write("delayed means more than 30 minutes late at the gate", user_id="eve")
    seen = memory.review.preview_promotion(second.id)
    assert seen.replaces is not None
    assert seen.replaces.id == old
    new = promote(memory, second.id)
    assert "30 minutes" in note(memory, "bob")
    assert "15 minutes" not in note(memory, "bob")
    rows = [row.event for row in memory.backend.audit.tail(50, record_id=new)]
    assert [(row["op"], row["actor"], row["reason"]) for row in rows] == [("promote", RITA, "erase")]
    memory.review.undo(new, reviewer="boss@example.com")
    assert "15 minutes" in note(memory, "bob")
    assert "30 minutes" not in note(memory, "bob")
    memory.review.delete(old, reviewer=RITA)
    assert note(memory, "bob") == ""
    memory.review.restore(old, reviewer=RITA)
    assert "15 minutes" in note(memory, "bob")
    with pytest.raises(Conflict):
        memory.review.restore(new, reviewer=RITA)


def test_erasing_the_author_takes_it_or_keeps_it_as_nobodys(memory: SupervisorMemory) -> None:
    taken = promote(memory, memory.write(DEFINITION, user_id="ada").id)
    kept = promote(
        memory, memory.write("ARPU means average revenue per user", user_id="ada").id, on_erase="anonymise"
    )
    others = promote(memory, memory.write("a no-show means a seat paid and not taken", user_id="eve").id)
    assert '"ada"' not in memory.get(kept).to_json()
    receipt = memory.erase(user_id="ada", confirm=True)
    assert (receipt.removed["shared"], receipt.is_complete) == (1, True)
    assert note(memory, "bob") == ""
    assert list(memory.upkeep.records([taken])) == []
    assert list(memory.upkeep.versions(taken)) == []
    assert "ARPU" in note(memory, "bob", asked="What is our ARPU?")
    assert {each.id for each in memory.review.shared()} == {kept, others}
    memory.erase(user_id="bob", confirm=True)
    assert {each.id for each in memory.review.shared()} == {kept, others}, "a reader's erasure takes nothing"


@pytest.mark.parametrize(
    ("text", "why"),
    [
        ("the escalation mailbox is the address ops@example.com", "EMAIL"),
        ("the fallback line means calling +1 212 555 0143 at night", "PHONE"),
        ("the export job is what runs with password: hunter2secret", "SECRET"),
        ("a big refund means one that Maria Lopez approves", "Maria Lopez"),
        ("a late shift means one that ada has to take over", "ada"),
        ("a big refund means one that Мария Петрова approves", "Мария Петрова"),
        ("an open claim means one that Αλέξης Νικολάου has not read", "Αλέξης Νικολάου"),
    ],
)
def test_personal_data_and_names_of_people_are_not_promoted(
    plain: SupervisorMemory, text: str, why: str
) -> None:
    mine = plain.write(text, user_id="ada", kind="domain-facts")
    seen = plain.review.preview_promotion(mine.id)
    assert why in (*seen.personal, *seen.names)
    with pytest.raises(InvalidContent, match=r"personal data|names"):
        promote(plain, mine.id)
    assert plain.review.shared() == []


def test_a_name_that_is_no_persons_is_passed_and_what_is_about_a_user_stays_with_the_user(
    plain: SupervisorMemory,
) -> None:
    mine = plain.write(
        "the night feed means the one that Meridian Air sends", user_id="ada", kind="domain-facts"
    )
    assert plain.review.preview_promotion(mine.id).names == ("Meridian Air",)
    assert promote(plain, mine.id, names_ok=["Meridian Air"])
    for kind in ("user-profile", "task-traces", "tool-effects", "identity"):
        about = plain.write(f"a text of the kind {kind}", user_id="ada", kind=kind)
        with pytest.raises(InvalidContent, match="stays its user's"):
            promote(plain, about.id)
    with pytest.raises(InvalidContent, match="on_erase is 'maybe'"):
        promote(plain, plain.write(DEFINITION, user_id="ada").id, on_erase="maybe")
    with pytest.raises(InvalidName, match="login"):
        plain.review.promote(mine.id, reviewer="an agent", on_erase="erase")
    with pytest.raises(RecordNotFound):
        promote(plain, mine.id, user_id="bob")


def test_no_agent_no_tool_and_no_user_gets_anything_in(plain: SupervisorMemory) -> None:
    from supervisor_memory.interfaces.mcp.tools import TOOLS

    offered = [*(each.name for each in plain.tools()), *(each.name for each in TOOLS)]
    assert not [name for name in offered if "promot" in name or "shar" in name]
    for verb in (
        lambda: plain.write(DEFINITION, user_id="team:flights"),
        lambda: plain.add(DEFINITION, user_id="team:flights"),
        lambda: plain.experience.set_identity("Ada", user_id="team:flights", reviewer=RITA),
        lambda: plain.reflect(DEFINITION, user_id="team:flights"),
    ):
        with pytest.raises(InvalidName, match="nobody acts as a team"):
            verb()
    graph = create_agent(ScriptedModel(script=["Noted."]), [], middleware=[plain.middleware()])
    where: Any = {"configurable": {"user_id": "team:flights", "thread_id": "t"}}
    asked: Any = {"messages": [("user", f"Remember: {DEFINITION}.")]}
    graph.invoke(asked, where)
    assert plain.flush()
    assert list(plain.upkeep.listed(Filter(), limit=10)) == []
    shared = promote(plain, plain.write(DEFINITION, user_id="ada").id)
    with pytest.raises(InvalidContent, match="changed by promotion alone"):
        plain.update(shared, content="delayed means never")


def test_ones_own_correction_comes_before_the_teams_and_what_fails_is_withdrawn_for_all(
    plain: SupervisorMemory,
) -> None:
    shared = promote(plain, guideline(plain))
    theirs = Scope("eve", "analyst", "s2", "run-2")
    guideline(plain, theirs, right="delay_minutes")
    told = note(plain, "eve", "analyst")
    assert "`delay_minutes`, not `delay`" in told
    assert "arr_delay" not in told
    bob = Scope("bob", "analyst", "s3", "run-3")
    assert "arr_delay" in plain.recall(QUESTION, bob).text
    plain.experience.heard("run_sql", {"sql": "SELECT arr_delay FROM f"}, bob)
    plain.experience.flush()
    assert plain.get(shared).metadata["lessons"][0]["held"] == 1
    row = plain.backend.audit.tail(10, record_id=shared)[-1].event
    assert row["op"] == "update"
    assert not [key for key in row if key in ("session", "session_id", "run", "run_id") and row[key]], row
    for user, status in (("bob", "active"), ("mia", "stale")):  # one user's failure is that user's alone
        scope = Scope(user, "analyst", "s4", f"run-4-of-{user}")
        assert "arr_delay" in plain.recall(QUESTION, scope).text
        plain.experience.heard(
            "run_sql", {"sql": "SELECT arr_delay FROM f"}, scope, error="no such column: arr_delay"
        )
        plain.experience.flush()
        assert plain.get(shared).status == status
        assert "arr_delay" not in note(plain, user, "analyst")
        [untold] = plain.experience.guidelines(user_id=user, withdrawn=True)
        assert untold.record.content.startswith("run_sql: `sql`: `arr_delay`, not `delay`")
    assert "arr_delay" not in note(plain, "lea", "analyst")


def test_what_failed_for_one_user_of_a_team_stays_told_to_the_others_on_every_store(
    memory: SupervisorMemory,
) -> None:
    shared = promote(memory, guideline(memory))
    told = Scope("bob", "analyst", "s3", "run-3")
    assert "arr_delay" in memory.recall(QUESTION, told).text
    memory.experience.heard(
        "run_sql", {"sql": "SELECT arr_delay FROM f"}, told, error="no such column: arr_delay"
    )
    memory.flush()
    assert "arr_delay" not in note(memory, "bob", "analyst")
    assert "arr_delay" in note(memory, "mia", "analyst")
    assert [each.id for each in memory.review.shared()] == [shared]
    memory.upkeep.erase(user_id="bob", confirm=True)
    assert memory.experience.guidelines(withdrawn=True) == []


def test_a_shared_record_moves_with_its_store(plain: SupervisorMemory, tmp_path: Path) -> None:
    promote(plain, plain.write(DEFINITION, user_id="ada").id)
    plain.export(tmp_path / "all.jsonl")
    with SupervisorMemory(Settings(embedding_model="none", team="flights")) as other:
        assert other.import_from(tmp_path / "all.jsonl").refused == ()
        assert DEFINITION in note(other, "bob")


def test_a_promotion_on_the_command_line_and_by_http(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    from fastapi.testclient import TestClient

    from supervisor_memory.interfaces.http.access import Tokens
    from supervisor_memory.interfaces.http.app import create_app

    for name, value in {"BACKEND": "sqlite", "PATH": str(tmp_path / "m"), "TEAM": "flights"}.items():
        monkeypatch.setenv(f"MEMORY_{name}", value)
    monkeypatch.setenv("EMBEDDING_MODEL", "none")
    monkeypatch.chdir(tmp_path)
    with SupervisorMemory(Settings.from_env(None)) as memory:
        mine = memory.write(DEFINITION, user_id="ada").id
        other = memory.write("ARPU means average revenue per user", user_id="ada").id

    def run(*arguments: str) -> str:
        done = CliRunner().invoke(app, ["review", *arguments])
        assert done.exit_code == 0, done.output
        return done.output

    assert "all agents and the supervisor of every user of the team flights" in run("promote", mine)
    assert json.loads(run("shared", "--json")) == {"records": []}
    done = json.loads(run("promote", mine, "--yes", "--on-erase", "anonymise", "--as", RITA, "--json"))
    assert DEFINITION in run("shared")
    assert "taken back, now deleted" in run("undo", done["id"])
    assert "nothing is shared" in run("shared")

    tokens = Tokens.read("rita:0123456789abcdef0:*:write, bo:fedcba98765432100:ada:write")
    with SupervisorMemory(Settings.from_env(None)) as memory:
        client = TestClient(create_app(memory, tokens=tokens), base_url="http://127.0.0.1")
        rita: Any = {"Authorization": "Bearer 0123456789abcdef0"}
        bo: Any = {"Authorization": "Bearer fedcba98765432100"}
        body = {"on_erase": "erase"}
        assert client.get(f"/v1/review/{other}/promotion", headers=rita).json()["names"] == []
        assert client.post(f"/v1/review/{other}/promote", json=body, headers=bo).status_code == 403
        assert client.get("/v1/review/shared", headers=bo).status_code == 403
        made = client.post(f"/v1/review/{other}/promote", json=body, headers=rita).json()
        assert made["reason"] == "promoted"
        [record] = client.get("/v1/review/shared", headers=rita).json()["records"]
        assert record["id"] == made["id"]
        assert client.delete(f"/v1/memories/{made['id']}", headers=rita).status_code == 200
        assert client.get("/v1/review/shared", headers=rita).json()["records"] == []


def test_a_promotion_that_waited_for_the_store_gives_way_and_can_be_restored(plain: SupervisorMemory) -> None:
    first = plain.get(promote(plain, plain.write(DEFINITION, user_id="ada").id))
    text = "delayed means more than 30 minutes late at the gate"
    late = replace(first, id=new_id(), content=text, content_hash="")
    view = plain.services.ports(60_000, with_model=False).deciding()
    decide_again(Commit((Change(late),)), lambda id_: id_, insert=plain.recipe.insert, view=view)
    assert DEFINITION in note(plain, "bob")
    assert plain.get(late.id).status == "stale"
    plain.review.delete(first.id, reviewer=RITA)
    plain.review.restore(late.id, reviewer=RITA)
    assert text in note(plain, "bob")


def test_a_copy_is_of_the_version_that_was_looked_at_and_ends_when_the_record_does(
    plain: SupervisorMemory,
) -> None:
    mine = plain.write(DEFINITION, user_id="ada", metadata={"ttl": 86_400})
    seen = plain.review.preview_promotion(mine.id).record
    plain.update(mine.id, content="delayed means more than an hour late at the gate", user_id="ada")
    with pytest.raises(Conflict, match="version"):
        promote(plain, mine.id, version=seen.version)
    now = plain.review.preview_promotion(mine.id).record
    promote(plain, mine.id, version=now.version)
    [shared] = plain.review.shared()
    assert shared.expires_at == now.expires_at is not None


def test_hidden_signs_hide_no_name_and_one_text_is_no_list_of_names(plain: SupervisorMemory) -> None:
    plain.write("I prefer tables.", user_id="mgonzales@corp.example")
    mine = plain.write("delayed is what mgon\u200bzales calls late at the gate", user_id="ada")
    assert plain.review.preview_promotion(mine.id).names == ("mgonzales",)
    with pytest.raises(InvalidContent, match="a list of names"):
        promote(plain, mine.id, names_ok="ask mgonzales first")


def test_no_import_brings_back_what_was_erased_with_its_author(
    memory: SupervisorMemory, tmp_path: Path
) -> None:
    mine = memory.write(DEFINITION, user_id="ada")
    promote(memory, mine.id)
    memory.export(tmp_path / "all.jsonl")
    clock = memory.services.clock
    assert isinstance(clock, FixedClock)
    clock.forward(days=1)
    memory.erase(user_id="ada", confirm=True)
    memory.import_from(tmp_path / "all.jsonl")
    assert memory.review.shared() == []
    assert note(memory, "bob") == ""


def test_erasing_the_session_of_a_record_takes_its_copy_or_keeps_it_as_nobodys(
    memory: SupervisorMemory,
) -> None:
    def said(text: str, session: str) -> str:
        memory.remember([Message("user", text)], Scope("ada", session_id=session))
        return next(each.id for each in memory.get_all(user_id="ada") if each.content in text)

    taken = promote(memory, said(f"{DEFINITION}.", "s1"))
    kept = promote(memory, said("ARPU means average revenue per user.", "s1"), on_erase="anonymise")
    others = promote(memory, said("a no-show means a seat paid and not taken.", "s2"))
    receipt = memory.sessions.erase("s1", user_id="ada", confirm=True)
    assert receipt.removed["shared"] == 1
    assert {each.id for each in memory.review.shared()} == {kept, others}
    assert list(memory.upkeep.versions(taken)) == []


def test_to_undo_a_decision_on_ones_own_record_takes_nothing_from_the_team(plain: SupervisorMemory) -> None:
    mine = plain.write(DEFINITION, user_id="ada")
    shared = promote(plain, mine.id)
    with pytest.raises(RecordNotFound, match="no decision"):
        plain.review.undo(mine.id, reviewer=RITA, user_id="ada")
    assert [each.id for each in plain.review.shared()] == [shared]
    plain.review.undo(shared, reviewer=RITA)
    assert plain.review.shared() == []


def test_a_rating_of_a_run_counts_for_the_guideline_that_a_team_shares(plain: SupervisorMemory) -> None:
    shared = promote(plain, guideline(plain))
    assert "arr_delay" in note(plain, "bob", "analyst")
    plain.flush()
    assert plain.rate("run-of-bob", 1.0, user_id="bob").counted == (shared,)
    assert "arr_delay" in note(plain, "mia", "analyst")
    plain.flush()
    for _ in range(12):  # however often one user says so of one run
        assert plain.rate("run-of-mia", 0.0, user_id="mia").withdrawn == ()
    [lesson] = plain.get(shared).metadata["lessons"]
    assert (lesson["helped"], lesson["hurt"]) == (1, 1)
    assert "arr_delay" not in note(plain, "mia", "analyst")
    assert "arr_delay" in note(plain, "eve", "analyst")
    plain.flush()
    assert plain.rate("run-of-eve", 0.0, user_id="eve").withdrawn == (shared,)
    assert "arr_delay" not in note(plain, "lea", "analyst")
    rows = plain.audit.tail(50, record_id=shared)
    assert not {"run-of-bob", "run-of-mia"} & {str(row.event.get("run_id")) for row in rows}


@pytest.mark.parametrize(
    ("change", "why"),
    [
        ({"content": "a big refund means one that Maria Lopez approves"}, "names Maria Lopez"),
        ({"content": "the escalation mailbox is the address ops@example.com"}, "EMAIL"),
        ({"kind": "user-profile"}, "of the kind user-profile"),
        ({"tags": ["format"]}, "tags"),
        ({}, None),
    ],
)
def test_an_import_looks_through_what_a_team_shares_as_a_promotion_does(
    plain: SupervisorMemory, tmp_path: Path, change: dict[str, Any], why: str | None
) -> None:
    promote(plain, plain.write(DEFINITION, user_id="ada").id)
    plain.export(tmp_path / "all.jsonl")
    lines = [json.loads(line) for line in (tmp_path / "all.jsonl").read_text("utf-8").splitlines()]
    [shared] = [each["record"] for each in lines if "team:" in json.dumps(each.get("record", ""))]
    shared |= change
    (tmp_path / "all.jsonl").write_text("".join(f"{json.dumps(each)}\n" for each in lines), "utf-8")
    with SupervisorMemory(Settings(embedding_model="none", team="flights")) as other:
        moved = other.import_from(tmp_path / "all.jsonl")
        assert [each.reason for each in moved.refused] == ([] if why is None else ["not-to-share"])
        assert len(other.get_all(user_id="ada")) == 1
        if why is not None:
            assert why in moved.refused[0].told
            assert other.review.shared() == []
        if why == "names Maria Lopez":
            again = other.import_from(tmp_path / "all.jsonl", names_ok=["Maria Lopez"])
            assert again.is_whole
            assert len(other.review.shared()) == 1
