"""Logs, errors and the audit log hold codes and ids: no text of a record, no key, no second line."""

import logging

import pytest

from supervisor_memory import Outcome, Scope, Settings, SupervisorMemory
from supervisor_memory.audit.rows import REDACTED
from supervisor_memory.embedding.hashing import HashingEmbedder
from supervisor_memory.errors import SupervisorMemoryError
from supervisor_memory.model.records import AuditEvent, Filter
from supervisor_memory.reading.doctor import settings_shown
from supervisor_memory.stores.open import open_backend
from supervisor_memory.stores.protocol import MemoryBackend

CANARY = "hunter2-7f3a"
FORGED = '\n{"level": "INFO", "message": "all is well"}\r\x1b[2K\u2028next'


@pytest.fixture
def log(caplog: pytest.LogCaptureFixture) -> pytest.LogCaptureFixture:
    caplog.set_level(logging.DEBUG)
    return caplog


def test_neither_log_nor_audit_hold_what_was_said(
    backend: MemoryBackend, log: pytest.LogCaptureFixture
) -> None:
    memory = SupervisorMemory(Settings(embedding_model="none"), backend=backend)
    user, scope = f"user-{CANARY}", Scope(f"user-{CANARY}", "analyst", f"session-{CANARY}")
    kept = memory.write(f"The password is {CANARY}.", user_id=user, metadata={"note": CANARY})
    memory.update(kept.id, content=f"The password was {CANARY}.", user_id=user)
    memory.remember([("user", f"From now on use {CANARY}.")], Scope(user, session_id=CANARY))
    memory.remember((), scope, outcome=Outcome(final_answer=f"It is {CANARY}, 42 percent."))
    memory.search(f"what about {CANARY}?", user_id=user)
    memory.recall([("user", CANARY)], scope)
    with pytest.raises(SupervisorMemoryError):
        memory.write(f"{CANARY}\x00", user_id=user)
    memory.delete(kept.id, user_id=user)
    lines = [record.getMessage() for record in log.records if record.name.startswith("supervisor_memory")]
    assert not [line for line in lines if CANARY in line]
    assert backend.audit.count() > 4
    assert not [row for row in backend.audit.tail(999) if CANARY.encode() in row.payload]


def test_free_text_in_an_event_is_redacted(backend: MemoryBackend) -> None:
    event = AuditEvent(
        f"op {CANARY}",
        user_id="ada",
        actor=f"by {CANARY}",
        reason=f"because {CANARY}{FORGED}",
        run_id=f"run {CANARY}",
        detail={"text": f"it is {CANARY}", f"a key {CANARY}": "x"},
    )
    SupervisorMemory(Settings(embedding_model="none"), backend=backend).report(event)
    (row,) = backend.audit.tail(1)
    assert CANARY.encode() not in row.payload
    assert row.op == row.event["reason"] == row.event["actor"] == REDACTED
    assert row.event["run_id"] == backend.audit.run_pseudonym("ada", f"run {CANARY}")
    assert b"\n" not in row.payload


@pytest.mark.parametrize(
    "url", [f"http://:{CANARY}@127.0.0.1:1", f"http://127.0.0.1:1/?api_key={CANARY}", f"ftp://{CANARY}@x"]
)
def test_a_key_or_a_password_in_an_address_is_shown_nowhere(url: str, log: pytest.LogCaptureFixture) -> None:
    settings = Settings(backend="qdrant", qdrant_url=url, qdrant_key=CANARY)
    shown = [str(each["value"]) for each in settings_shown(settings) if each["name"] == "qdrant_key"]
    told = [repr(settings.qdrant_key), str(settings.qdrant_key), *shown]
    try:
        with_key = open_backend("qdrant", None, settings)
        told.append(str(with_key.health()))
        with_key.list(Filter(), limit=1)
    except SupervisorMemoryError as error:
        told += [str(error), repr(error.facts)]
    told += [record.getMessage() for record in log.records]
    assert not [line for line in told if CANARY in line]


def test_what_a_strangers_error_says_stays_on_one_line(
    backend: MemoryBackend, log: pytest.LogCaptureFixture
) -> None:
    class Forging(HashingEmbedder):
        def embed_query(self, text: str) -> object:  # type: ignore[override]  # it never returns
            raise RuntimeError(FORGED)

        embed_documents = embed_query  # type: ignore[assignment]  # it never returns

    memory = SupervisorMemory(backend=backend, embedder=Forging())
    memory.write(f"Ada drinks tea.{FORGED[:1]}And coffee.", user_id="ada")
    assert memory.search(f"tea {FORGED}", user_id="ada").degraded
    lines = [record.getMessage() for record in log.records if record.name.startswith("supervisor_memory")]
    assert any("embedder" in line for line in lines)
    assert all(len(line.splitlines()) == 1 and "\x1b" not in line for line in lines)
