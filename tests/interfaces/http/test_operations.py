"""What the operations answer: the service's own words, with the keys that the command line has."""

import asyncio
import io
import json
import threading
from dataclasses import asdict
from typing import Any, BinaryIO
from urllib.parse import quote

import httpx
import pytest

from supervisor_memory import Scope, SupervisorMemory
from supervisor_memory.errors import BackendError
from supervisor_memory.interfaces.http.users import exported
from supervisor_memory.interfaces.present import audit_rows, hits_told, notes_told
from tests.cases import every_case
from tests.interfaces.http.conftest import ADDRESS, TOKENS, Client

Ids = dict[str, dict[str, str]]


def test_a_text_is_remembered_found_changed_taken_back_and_deleted(client: Client) -> None:
    added = client.post("/v1/memories", {"text": "Ada 喜欢绿茶。", "metadata": {"mood": "calm"}}, "ada")
    (done,) = added["results"]
    assert (done["event"], done["status"], done["memory"]) == ("ADD", "added", "Ada 喜欢绿茶。")
    record = f"/v1/memories/{done['id']}"
    (hit,) = client.post("/v1/search", {"query": "绿茶"}, "ada")["results"]
    assert (hit["id"], hit["memory"], hit["record"]["metadata"]) == (
        done["id"],
        "Ada 喜欢绿茶。",
        {"mood": "calm"},
    )
    changed = client("PATCH", record, "ada", json={"content": "Ada 喜欢红茶。", "metadata": {"n": 1}}).json()
    assert (changed["status"], changed["version"]) == ("updated", 2)
    assert client.get(record, "ada")["metadata"] == {"mood": "calm", "n": 1}
    versions = client.get(f"{record}/history", "ada")["versions"]
    assert [(each["content"], each["actor"]) for each in versions] == [
        ("Ada 喜欢绿茶。", "supervisor"),
        ("Ada 喜欢红茶。", "ada"),
    ]
    assert client.post(f"{record}/revert", {"version": 1}, "ada")["reason"] == "reverted"
    assert client.get(record, "ada")["content"] == "Ada 喜欢绿茶。"
    assert client("DELETE", f"{record}?keep_said=true", "ada").json() == {"id": done["id"], "deleted": 1}
    assert client.get(record, "ada")["metadata"]["said_kept"] == client.get(record, "ada")["version"]
    assert client.get("/v1/memories", "ada")["records"] == []
    assert client.post("/v1/review/undo", {"id": done["id"]}, "ada")["reason"] == "restored"
    assert [each["id"] for each in client.get("/v1/memories", "ada")["records"]] == [done["id"]]


def test_of_messages_what_is_worth_it_is_remembered_and_without_infer_each_as_it_is(client: Client) -> None:
    said = [
        {"role": "user", "content": "Hello! From now on answer with tables."},
        {"role": "assistant", "content": "Noted."},
    ]
    inferred = client.post("/v1/memories", {"messages": said, "user_id": "ada"})["results"]
    assert [each["memory"] for each in inferred] == ["From now on answer with tables."]
    assert client.post("/v1/memories", {"messages": "What time is it?", "user_id": "ada"})["results"] == []
    kept = client.post("/v1/memories", {"messages": said, "user_id": "bo", "infer": False})["results"]
    assert [each["memory"] for each in kept] == [each["content"] for each in said]
    (alone,) = client.post("/v1/memories", {"text": "Noted.", "user_id": "bo", "infer": False})["results"]
    assert alone["id"] not in {each["id"] for each in kept}


def test_what_is_said_twice_is_one_memory(client: Client) -> None:
    body = {"text": "A flight is delayed when it is 15 minutes late.", "created_at": "2026-01-31T18:00+08:00"}
    first, second = (client.post("/v1/memories", body, "ada")["results"][0] for _ in range(2))
    assert (first["event"], second["event"], second["id"]) == ("ADD", "NONE", first["id"])
    assert client.get(f"/v1/memories/{first['id']}", "ada")["created_at"] == 1769853600


def test_a_search_tells_the_score_its_parts_and_every_candidate(
    client: Client, memory: SupervisorMemory, ids: Ids
) -> None:
    found = client.post("/v1/search", {"query": "black tea", "user_id": "ada", "explain": True})
    hits = memory.search("black tea", user_id="ada", agent_id="operator", explain=True)
    told = hits_told(hits, explain=True)
    keys = {"id", "memory"}
    assert set(found) == {"query", "user_id", "degraded", "notes", "results", "considered"}
    for name, there in (("results", "hits"), ("considered", "considered")):
        assert [{k: v for k, v in each.items() if k not in keys} for each in found[name]] == told[there]
    assert found["results"][0]["parts"]["relevance"] > 0.3
    assert client.post("/v1/search", {"query": "black tea", "user_id": "ada"})["considered"] is None
    only = {"query": "tea", "user_id": "ada", "where": {"tags": ["ada3"]}, "threshold": 0}
    assert [each["id"] for each in client.post("/v1/search", only)["results"]] == [ids["ada"]["kept"]]
    memory.add("Oolong is a tea.", user_id="ada", session_id="said", infer=True)
    layered = {"query": "oolong", "user_id": "ada", "layers": ["history"]}
    assert [each["memory"] for each in client.post("/v1/search", layered)["results"]] == ["Oolong is a tea."]
    of_session = client.get("/v1/memories", "ada", session="said", agent="nobody")
    assert of_session["records"] == []
    (said,) = client.get("/v1/memories", "ada", session="said")["records"]
    assert said["layer"] == "history"
    seen = memory.backend.audit.accesses(10, record_id=ids["ada"]["kept"])
    assert ("search", "operator") in {(each.op, each.agent_id) for each in seen}


def test_what_is_read_is_logged_under_the_name_of_the_token(
    client: Client, memory: SupervisorMemory, ids: Ids
) -> None:
    kept = ids["ada"]["kept"]
    before = len(memory.backend.audit.accesses(1_000, record_id=kept))
    client.post("/v1/search", {"query": "black tea"}, "reader")
    client.get("/v1/memories", "reader")
    client.get(f"/v1/memories/{kept}", "reader")
    client.get(f"/v1/memories/{kept}/history", "reader")
    seen = memory.backend.audit.accesses(1_000, record_id=kept)[before:]
    assert [(row.op, row.agent_id) for row in seen] == [
        (op, "reader") for op in ("search", "list", "get", "history")
    ]
    client("GET", f"/v1/memories/{kept}", "bo")
    (denied,) = memory.backend.audit.tail(1)
    assert (denied.op, denied.outcome, denied.event["agent_id"]) == ("access", "denied", "bo")


def test_pages_of_a_list_hold_each_record_once(client: Client, memory: SupervisorMemory) -> None:
    memory.add_many([f"Line {number}." for number in range(7)], user_id="ada")
    seen: list[str] = []
    page, pages = client.get("/v1/memories", "ada", limit=3), 1
    seen += [each["id"] for each in page["records"]]
    while page["next"] is not None:
        page, pages = client.get("/v1/memories", "ada", limit=3, after=page["next"]), pages + 1
        seen += [each["id"] for each in page["records"]]
    assert (len(seen), len(set(seen)), pages) == (7, 7, 3)
    assert seen == [record.id for record in memory.get_all(user_id="ada")]


def test_a_list_can_be_of_some_records_and_of_the_past(client: Client, ids: Ids) -> None:
    def listed(**params: object) -> set[str]:
        return {each["id"] for each in client.get("/v1/memories", "ada", **params)["records"]}

    assert listed(tag="ada3") == {ids["ada"]["kept"]}
    assert listed(kind="user-profile") == listed() - {ids["ada"]["kept"]}
    assert listed(until="2020-01-01") == listed(as_of="2020-01-01") == listed(as_of="1577836800.5") == set()
    assert client("GET", "/v1/memories", "ada", params={"since": "soon"}).status_code == 422
    assert client("GET", "/v1/memories", "ada", params={"kind": "gossip"}).status_code == 422


def test_records_versions_and_proposals_have_the_keys_of_the_command_line(
    client: Client, memory: SupervisorMemory, ids: Ids
) -> None:
    mine = ids["ada"]
    assert client.get(f"/v1/memories/{mine['kept']}") == memory.get(mine["kept"]).to_dict()
    versions = client.get(f"/v1/memories/{mine['kept']}/history")["versions"]
    assert versions == [each.to_dict() for each in memory.history(mine["kept"])]
    (waiting,) = client.get("/v1/review", "ada")["proposals"]
    assert waiting == memory.review.show(mine["waits"]).to_dict()
    shown = client.get(f"/v1/review/{mine['waits']}", "ada")
    assert shown == {**waiting, "messages": [each.to_dict() for each in memory.messages(mine["waits"])]}


def test_what_waits_is_approved_edited_rejected_and_undone_in_the_name_of_the_token(
    client: Client, memory: SupervisorMemory, ids: Ids
) -> None:
    waits = ids["ada"]["waits"]
    assert {each["id"] for each in client.get("/v1/review")["proposals"]} == {waits, ids["bo"]["waits"]}

    def decide(what: str, body: object = None, **params: object) -> object:
        return client.post(f"/v1/review/{waits}/{what}", body, "ada", **params)["status"]

    assert decide("approve") == "added"
    again = client("POST", f"/v1/review/{waits}/approve", "ada")
    assert (again.status_code, again.json()["error"]["code"]) == (409, "already-reviewed")
    assert client.post("/v1/review/undo", {"id": waits, "version": 1}, "ada")["status"] == "pending"
    assert decide("edit", {"content": "The user wants charts."}) == "added"
    assert client.get(f"/v1/memories/{waits}", "ada")["content"] == "The user wants charts."
    client.post("/v1/review/undo", {"id": waits, "version": 1}, "ada")
    assert client.post(f"/v1/review/{waits}/reject", {"reason": "no"}, "ada")["reason"] == "rejected"
    assert client.post("/v1/review/undo", {"id": waits}, "ada")["reason"] == "restored"
    assert client.post(f"/v1/review/{waits}/reject", None, "two", user_id="ada")["reason"] == "rejected"
    events = [row.event for row in memory.backend.audit.tail(50, record_id=waits)]
    decided = [(each["op"], each["actor"]) for each in events if each["actor"] in ("ada", "two")]
    ops = ["add", "approve", "revert", "add", "edit", "revert", "reject", "restore", "reject"]
    assert decided == [*((op, "ada") for op in ops[:-1]), ("reject", "two")]


def test_the_audit_is_told_in_pages_with_the_records_beside_it(
    client: Client, memory: SupervisorMemory, ids: Ids
) -> None:
    log = memory.backend.audit
    everything = audit_rows(memory, log.tail(1000))
    assert client.get("/v1/audit", limit=1000) == {"rows": everything[::-1], "next": None}
    paged: list[Any] = []
    before = 2**53
    while before is not None:
        page = client.get("/v1/audit", limit=4, before=before)
        paged, before = paged + page["rows"], page["next"]
    assert paged == everything[::-1]
    forward: list[Any] = []
    after = 0
    while after is not None:
        page = client.get("/v1/audit", limit=4, after=after)
        forward, after = forward + page["rows"], page["next"]
    assert forward == everything
    mine = client.get("/v1/audit", "ada", record_id=ids["ada"]["gone"])["rows"]
    assert [(row["op"], row["record"]) for row in mine] == [
        ("delete", {"status": "deleted", "user_id": "ada", "content": None, "changed": None}),
        ("add", {"status": "deleted", "user_id": "ada", "content": None, "changed": None}),
    ]
    assert client.get("/v1/audit", op="delete", user_id="bo")["rows"][0]["record_id"] == ids["bo"]["gone"]


def test_the_audit_is_proved(client: Client, memory: SupervisorMemory, ids: Ids) -> None:
    rows = memory.backend.audit.count()
    assert client.get("/v1/audit/verify") == {"rows": rows, "records": 0, "problems": []}
    deep = client.get("/v1/audit/verify", deep=True)
    assert (deep["rows"], deep["problems"], deep["records"] >= len(ids)) == (rows, [], True)
    assert client("GET", "/v1/audit/verify?deep").json() == deep
    assert client("GET", "/v1/audit/verify?deep=false").json()["records"] == 0
    assert client("GET", "/v1/audit/verify?deep=odd").status_code == 422


def test_why_takes_the_whole_id_of_a_record_a_note_or_a_run(
    client: Client, ids: dict[str, dict[str, str]]
) -> None:
    id_ = ids["ada"]["kept"]
    found = client.get(f"/v1/why/{id_}", "ada")["notes"]
    assert id_ in [each["record_id"] for each in found[0]["shown"]]
    assert client.get(f"/v1/why/{found[0]['id']}", "ada")["notes"] == found[:1]
    assert client("GET", f"/v1/why/{id_}", "bo").status_code == 404
    for part in ("a", id_[:8], id_[1:], found[0]["id"][:-1]):
        assert client("GET", f"/v1/why/{part}", "ada").status_code == 404


def test_why_tells_what_a_record_rests_on_that_has_changed_since(
    client: Client, memory: SupervisorMemory, ids: Ids
) -> None:
    memory.write("Delayed means arrival more than 15 minutes late.", user_id="ada")
    ground = [("metric", "Delayed")]
    target = memory.write(
        "Our target is 20 percent of delayed flights.", user_id="ada", kind="domain-facts", rests_on=ground
    )
    memory.recall("What is our target for delayed flights?", Scope("ada"))
    before = client.get(f"/v1/why/{target.id}", "ada")["notes"]
    waits = memory.write("Delayed means arrival more than 30 minutes late.", user_id="ada")
    memory.review.approve(waits.id, reviewer="cy")

    after = client.get(f"/v1/why/{target.id}", "ada")["notes"]
    told = [
        {each["record_id"]: each["record"]["changed"] for each in notes[0]["shown"]}
        for notes in (before, after)
    ]
    assert [each[target.id] for each in told] == [None, "metric:delayed"]


def test_turns_tell_what_a_reader_was_given_and_why(
    client: Client, memory: SupervisorMemory, ids: Ids
) -> None:
    memory.recall([("user", "What does ada1 drink?")], Scope("ada", agent_id="sql", run_id="run-ada"))
    (turn,) = client.get("/v1/turns", "ada")["turns"]
    assert (turn["run_id"], [note["agent_id"] for note in turn["notes"]]) == ("run-ada", [None, "sql"])
    notes = memory.backend.audit.notes(10, user_id="ada")
    assert turn["notes"] == json.loads(json.dumps(notes_told(memory, notes)))[::-1]
    shown = turn["notes"][0]["shown"][0]
    assert (shown["rank"], shown["record"]["status"]) == (1, "active")
    first = client.get("/v1/turns", limit=1)
    assert first["next"] == first["turns"][0]["notes"][0]["seq"]
    assert client.get("/v1/turns", limit=50, before=first["next"])["turns"][0]["run_id"] == "run-bo"
    client.post("/v1/users/ada/erase", {"confirm": True})
    assert [each["run_id"] for each in client.get("/v1/turns")["turns"]] == ["run-bo"]


def test_a_user_is_counted_and_erased_only_when_that_is_confirmed(
    client: Client, memory: SupervisorMemory, ids: Ids
) -> None:
    held = client.get("/v1/users/ada/holds", "reader")
    assert held["counts"]["records"] == 5
    dry = client.post("/v1/users/ada/erase", {}, "ada")
    assert (dry["erased_at"], dry["counts"]) == (None, held["counts"])
    assert client.get("/v1/users/ada/holds")["counts"]["records"] == 5
    done = client.post("/v1/users/ada/erase", {"confirm": True}, "ada")
    assert done["counts"]["records"] == 5
    assert done["erased_at"] > 0
    assert set(done) == {"user_id", "erased_at", "counts", "pending", "out_of_reach"}
    assert client.get("/v1/users/ada/holds")["counts"]["records"] == 0


@pytest.mark.one_in(3)
@pytest.mark.parametrize("path", ["/v1/review/quarantine", "/v1/review/roll-back", "/v1/users/ada/erase"])
@pytest.mark.parametrize("almost", ["yes", "true", 1])
def test_only_true_confirms(
    client: Client, memory: SupervisorMemory, ids: Ids, path: str, almost: object
) -> None:
    body = {"confirm": almost} | ({"source": "user"} if "review" in path else {})
    rows = memory.backend.audit.count()
    assert client("POST", path, "ada", json=body).status_code == 422
    assert memory.backend.audit.count() == rows


def test_who_erased_a_user_is_in_the_audit_log(client: Client, memory: SupervisorMemory, ids: Ids) -> None:
    client.post("/v1/users/ada/erase", {"confirm": True}, "ada")
    memory.erase(user_id="bo", confirm=True)
    begun = [row.event["actor"] for row in memory.backend.audit.tail(2, op="erase.begin")]
    assert begun == ["ada", "operator"]


def test_what_came_from_a_run_is_set_aside_released_and_taken_back_in_the_name_of_the_token(
    client: Client, memory: SupervisorMemory
) -> None:
    bad = memory.write("Refunds are paid twice.", user_id="ada", run_id="bad").id
    memory.write("Refunds are paid once.", user_id="bo", run_id="bad")

    def sweep(verb: str, **body: object) -> dict[str, Any]:
        told: dict[str, Any] = client.post(f"/v1/review/{verb}", {"run_id": "bad", **body}, "ada")
        assert [step["record_id"] for step in told["steps"]] == [bad]
        return told

    dry = sweep("quarantine")
    assert (dry["dry_run"], dry["id"], dry["rule"]) == (True, "", "by-run_id")
    assert memory.get(bad).status == "active"
    done = sweep("quarantine", confirm=True, source="user", since="2000-01-01")
    assert (done["dry_run"], done["left"], done["steps"][0]["action"]) == (False, {}, "quarantined")
    assert memory.get(bad).status == "quarantined"
    assert sweep("release", confirm=True)["steps"][0]["action"] == "released"
    assert sweep("roll-back", confirm=True)["steps"][0]["action"] == "withdrawn"
    rows = memory.backend.audit.tail(3, record_id=bad)
    assert [(row.op, row.event["actor"]) for row in rows] == [
        (op, "ada") for op in ("quarantine", "release", "roll-back")
    ]
    assert [each.content for each in memory.get_all(user_id="bo")] == ["Refunds are paid once."]
    assert client("POST", "/v1/review/quarantine", "ada", json={"confirm": True}).status_code == 422
    odd = {"source": "rumour"}
    assert client("POST", "/v1/review/quarantine", "ada", json=odd).status_code == 422


@pytest.mark.parametrize("user", ["li/四 & co?#", "ada@example.com", "a%2Fb", "users/x/holds"])
def test_whatever_a_user_is_called_the_paths_find_it(
    client: Client, memory: SupervisorMemory, user: str
) -> None:
    memory.write("Tea is green.", user_id=user)
    held = client.get(f"/v1/users/{quote(user, safe='')}/holds")
    assert (held["user_id"], held["counts"]["records"]) == (user, 1)
    assert client.get("/v1/memories", user_id=user)["records"][0]["content"] == "Tea is green."


def test_an_export_is_the_one_of_the_command_line(client: Client, memory: SupervisorMemory, ids: Ids) -> None:
    answer = client("GET", "/v1/users/ada/export", "ada")
    assert (answer.status_code, answer.headers["content-type"]) == (200, "application/x-ndjson")
    file = io.BytesIO()
    memory.export(file, user_id="ada")
    lines, expected = answer.content.splitlines(), file.getvalue().splitlines()
    assert lines[1:] == expected[1:]
    assert json.loads(lines[0]).keys() == json.loads(expected[0]).keys()
    assert len(lines) == 5 + 2


def test_a_large_export_comes_whole_and_goes_back_into_a_store(
    client: Client, memory: SupervisorMemory
) -> None:
    memory.add_many([f"Line {number} " + "of some length " * 200 for number in range(200)], user_id="ada")
    answer = client("GET", "/v1/users/ada/export")
    assert len(answer.content) > 500_000
    other = SupervisorMemory(memory.settings.model_copy(update={"backend": "in_memory"}))
    assert other.import_from(io.BytesIO(answer.content)).counts == {"added": 200}


def test_an_export_that_nobody_reads_on_ends(memory: SupervisorMemory) -> None:
    memory.add_many([f"Line {number} " + "of some length " * 200 for number in range(200)], user_id="ada")
    lines = exported(memory, "ada")
    assert next(lines)
    (writer,) = [each for each in threading.enumerate() if each.name == "supervisor-memory-export"]
    assert writer.is_alive()
    lines.close()
    writer.join(60)
    assert not writer.is_alive()
    assert memory.get_all(user_id="ada", limit=1)


def test_an_export_that_fails_on_the_way_is_cut_off_and_not_ended(
    client: Client,
    memory: SupervisorMemory,
    monkeypatch: pytest.MonkeyPatch,
    caplog: pytest.LogCaptureFixture,
) -> None:
    def fails(file: BinaryIO, **_: Any) -> None:
        file.write(b"x" * 200_000)
        raise BackendError("the disk of ada is gone")

    monkeypatch.setattr(memory, "export", fails)
    with pytest.raises(RuntimeError, match="in the middle of an answer") as cut:
        client("GET", "/v1/users/ada/export")
    assert "BackendError at " in caplog.text
    assert "disk of ada" not in caplog.text + str(cut.value)


def test_what_takes_long_keeps_nobody_else_waiting(
    client: Client, memory: SupervisorMemory, monkeypatch: pytest.MonkeyPatch
) -> None:
    begun, may_end = threading.Event(), threading.Event()

    def slow(**_: Any) -> list[Any]:
        begun.set()
        assert may_end.wait(60)
        return []

    monkeypatch.setattr(memory, "get_all", slow)
    assert _both(client, begun, may_end) == (200, True, 200)


def _both(client: Client, begun: threading.Event, may_end: threading.Event) -> tuple[int, bool, int]:
    """A slow request and a quick one on one event loop: how both end, and whether the slow one waited."""

    async def ask() -> tuple[int, bool, int]:
        headers = {"Authorization": f"Bearer {TOKENS['ada']}"}
        transport = httpx.ASGITransport(client.app)
        async with httpx.AsyncClient(transport=transport, base_url=ADDRESS, headers=headers) as asking:
            late = asyncio.create_task(asking.get("/v1/memories"))
            await asyncio.to_thread(begun.wait, 60)
            quick = await asking.get("/v1/health")
            waits = not late.done()
            may_end.set()
            return quick.status_code, waits, (await late).status_code

    return asyncio.run(ask())


def test_metrics_tell_how_much_there_is(client: Client, memory: SupervisorMemory, ids: Ids) -> None:
    def told() -> dict[str, float]:
        text = client("GET", "/v1/metrics").text
        lines = [line for line in text.splitlines() if not line.startswith("#")]
        return {name: float(value) for name, value in (line.rsplit(" ", 1) for line in lines)}

    before = told()
    assert before['supervisor_memory_records{status="pending"}'] == 2
    assert before['supervisor_memory_records{status="deleted"}'] == 2
    assert before["supervisor_memory_pending"] == 2
    assert before['supervisor_memory_queue_depth{state="dead"}'] == 0
    assert before['supervisor_memory_notes_total{agent=""}'] == 2
    assert 'supervisor_memory_failures_total{agent=""}' not in before
    assert before["supervisor_memory_messages_waiting"] == memory.upkeep.messages_waiting()
    memory._trail.degraded("search", Scope("ada"), "TimeoutError", ports=memory.services.ports(1000))
    after = told()
    assert after['supervisor_memory_failures_total{agent=""}'] == 1
    assert after["supervisor_memory_audit_rows_total"] == before["supervisor_memory_audit_rows_total"] + 1
    assert "period_notes" not in client("GET", "/v1/metrics").text
    day = client("GET", "/v1/metrics?hours=24").text
    assert 'supervisor_memory_period_notes{agent=""} 2' in day
    assert day.count("# TYPE supervisor_memory_pending gauge") == 1
    assert client("GET", "/v1/metrics?hours=0").status_code == 422
    assert client("GET", "/v1/metrics").headers["content-type"].startswith("text/plain; version=0.0.4")


def test_metrics_are_also_where_prometheus_looks_by_itself(client: Client, ids: Ids) -> None:
    alias = client("GET", "/metrics")
    assert alias.headers["content-type"].startswith("text/plain; version=0.0.4")
    assert alias.text == client("GET", "/v1/metrics").text
    assert client("GET", "/metrics", None).status_code == 401
    assert client("GET", "/metrics", "ada").status_code == 403


def test_health_is_told_to_all_and_the_place_of_the_store_to_nobody(
    client: Client, memory: SupervisorMemory
) -> None:
    assert client.get("/healthz", None) == {"status": "ok"}
    told = client.get("/v1/health", "ada")
    assert (told["ok"], told["backend"], told["persistent"]) == (True, "sqlite", True)
    assert str(memory.settings.path) not in str(told)


BAD: list[tuple[str, str, object]] = [
    ("POST", "/v1/memories", {}),
    ("POST", "/v1/memories", {"text": "tea", "messages": "tea"}),
    ("POST", "/v1/memories", {"text": ""}),
    ("POST", "/v1/memories", {"text": "tea\u0000"}),
    ("POST", "/v1/memories", {"text": "tea", "user": "ada"}),
    ("POST", "/v1/memories", {"text": 5}),
    ("POST", "/v1/memories", {"text": "tea", "created_at": 1e18}),
    ("POST", "/v1/memories", {"text": "tea", "metadata": {"ttl": -1}}),
    ("POST", "/v1/memories", {"text": "tea", "kind": "gossip"}),
    ("POST", "/v1/memories", {"text": "tea", "agent_id": "\u202e"}),
    ("POST", "/v1/memories", [1, 2]),
    ("POST", "/v1/search", {"query": "tea", "limit": 0}),
    ("POST", "/v1/search", {"query": "tea", "where": {"colour": "green"}}),
    ("POST", "/v1/search", {"query": "tea", "families": []}),
    ("POST", "/v1/search", {"query": "tea", "as_of": "yesterday-ish"}),
    ("PATCH", "/v1/memories/x", {}),
    ("PATCH", "/v1/memories/x", {"content": "tea", "merge": "perhaps"}),
    ("POST", "/v1/memories/x/revert", {"version": 0}),
    ("POST", "/v1/memories/x/revert", {"version": 10**30}),
    ("POST", "/v1/review/undo", {"id": "x" * 300}),
    ("GET", "/v1/memories?limit=0", None),
    ("GET", "/v1/memories?after=99999999999999999999", None),
    ("GET", "/v1/audit?limit=many", None),
]


@pytest.mark.one_in(2)
@pytest.mark.parametrize(("method", "path", "body"), BAD, ids=str)
def test_what_cannot_be_is_told_and_nothing_is_written(
    client: Client, memory: SupervisorMemory, method: str, path: str, body: object
) -> None:
    answer = client(method, path, "ada", json=body) if body is not None else client(method, path, "ada")
    assert answer.status_code == 422, answer.text
    assert set(answer.json()["error"]) == {"code", "message"}
    assert "Traceback" not in answer.text
    assert memory.get_all(user_id="ada") == []


RAW = [
    b"",
    b"{",
    b'{"text": "\\ud800"}',
    b'{"text": "tea", "metadata": {"n": NaN}}',
    b'{"text": "tea", "metadata": {"n": 1e999}}',
    b'{"text": ' + b"[" * 200_000 + b"]" * 200_000 + b"}",
    b'{"text": "tea", "metadata": ' + b'{"a":' * 5_000 + b"1" + b"}" * 5_000 + b"}",
    b'{"text": "tea", "metadata": {"n": ' + b"9" * 10_000 + b"}}",
    b"\xff\xfe",
    b'"text"',
    b"null",
    b'{"text": "' + "é".encode("latin-1") + b'"}',
]


@every_case("raw", RAW)
def test_bytes_that_are_no_body_are_refused(client: Client, memory: SupervisorMemory, raw: bytes) -> None:
    answer = client("POST", "/v1/memories", "ada", content=raw, headers={"Content-Type": "application/json"})
    assert answer.status_code in (400, 413, 422), answer.text
    assert answer.json()["error"]["code"]
    assert memory.get_all(user_id="ada") == []


def test_a_body_that_does_not_say_it_is_json_is_not_read(client: Client) -> None:
    for kind in ("text/plain", "application/x-www-form-urlencoded", ""):
        answer = client("POST", "/v1/memories", content=b'{"text": "tea"}', headers={"Content-Type": kind})
        assert answer.status_code == 422


def test_what_is_too_large_for_one_record_is_told_as_such(client: Client) -> None:
    answer = client("POST", "/v1/memories", "ada", json={"text": "tea " * 20_000})
    assert (answer.status_code, answer.json()["error"]["code"]) == (413, "content-too-large")


def test_an_active_record_of_that_text_is_a_conflict(client: Client) -> None:
    def said(text: str) -> str:
        added = client.post("/v1/memories", {"text": text, "kind": "experience"}, "ada")
        return str(added["results"][0]["id"])

    first, second = said("Ask finance first."), said("The lift is slow on Mondays.")
    answer = client("PATCH", f"/v1/memories/{second}", "ada", json={"content": "Ask finance first."})
    assert (answer.status_code, answer.json()["error"]["code"]) == (409, "conflict"), first


def test_a_store_that_fails_is_told_as_unavailable(client: Client, memory: SupervisorMemory) -> None:
    memory.backend.close()
    answer = client("GET", "/v1/memories", "ada")
    assert (answer.status_code, set(answer.json())) == (503, {"error"})
    export = client("GET", "/v1/users/ada/export", "ada")
    assert export.status_code == 503


def test_the_document_tells_who_may_ask_and_what_can_go_wrong(client: Client) -> None:
    document = client.get("/openapi.json")
    assert document["components"]["securitySchemes"]["HTTPBearer"]["scheme"] == "bearer"
    for path, methods in document["paths"].items():
        for told in methods.values():
            assert ("security" in told) == path.startswith("/v1/"), path
            if path.startswith("/v1/"):
                assert {"401", "403", "429", "503"} <= set(told["responses"]), path
            assert told.get("description"), path


def test_written_results_are_those_of_the_service(client: Client, memory: SupervisorMemory, ids: Ids) -> None:
    told = client("PATCH", f"/v1/memories/{ids['ada']['kept']}", "ada", json={"metadata": {"note": "ada2"}})
    done = memory.update(ids["ada"]["kept"], metadata={"note": "ada2"}, user_id="ada")
    assert told.json() == asdict(done)
    assert done.reason == "nothing-to-change"


@every_case("levels", [65, 400, 900])
def test_metadata_that_are_nested_too_deep_are_the_callers_fault(client: Client, levels: int) -> None:
    deep = '{"in":' * levels + "1" + "}" * levels
    body = f'{{"text": "I like tea.", "metadata": {deep}}}'
    headers = {"content-type": "application/json"}
    told = client("POST", "/v1/memories", "ada", content=body, headers=headers)
    assert told.status_code == 422
