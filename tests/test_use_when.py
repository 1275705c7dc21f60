"""`metadata["use_when"]`: what a record is found by, while its content is what is handed out."""

import asyncio
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from supervisor_memory import Settings, SupervisorMemory
from supervisor_memory.embedding.hashing import HashingEmbedder
from supervisor_memory.embedding.protocol import Vector
from supervisor_memory.errors import ContentTooLarge, InvalidContent
from supervisor_memory.stores.memory.in_memory import InMemoryBackend
from supervisor_memory.stores.protocol import MemoryBackend, Moves
from supervisor_memory.testing.clock import FixedClock
from supervisor_memory.testing.ports import record
from tests.opened import EACH, opened

WHEN = "The quarterly report for finance is asked for"
STEPS = "Close the books first, then export sheet seven."
EMBEDDER = HashingEmbedder()


def remembering(backend: MemoryBackend, *, embedder: Any = EMBEDDER, **settings: Any) -> SupervisorMemory:
    told = Settings(embedding_model="none", **settings)
    return SupervisorMemory(told, backend=backend, embedder=embedder, clock=FixedClock())


@pytest.fixture(params=EACH)
def backend(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[MemoryBackend]:
    with opened(request.param, tmp_path) as backend:
        yield backend


@pytest.fixture
def memory() -> Iterator[SupervisorMemory]:
    with remembering(InMemoryBackend()) as memory:
        yield memory


def write(memory: SupervisorMemory, content: str = STEPS, use_when: str | None = WHEN) -> str:
    metadata = {} if use_when is None else {"use_when": use_when}
    return memory.write(content, user_id="alice", kind="experience", metadata=metadata).id


def vector(memory: SupervisorMemory, record_id: str) -> Vector | None:
    assert isinstance(memory.backend, Moves)
    return next(s.vector for s in memory.backend.stored(limit=99) if s.record.id == record_id)


def is_of(memory: SupervisorMemory, record_id: str, text: str) -> bool:
    stored = vector(memory, record_id)
    return stored is not None and bool(np.allclose(stored, EMBEDDER.embed_query(text), atol=1e-5))


def test_a_record_is_embedded_by_when_to_use_it_and_searched_by_both() -> None:
    told = record(STEPS, metadata={"use_when": WHEN})
    assert (told.embedded_text, told.searched_text) == (WHEN, f"{STEPS}\n{WHEN}")
    for other in ({}, {"use_when": " "}, {"use_when": 3}):
        bare = record(STEPS, metadata=other)
        assert (bare.use_when, bare.embedded_text, bare.searched_text) == (None, STEPS, STEPS)


def test_it_is_found_by_meaning_through_when_to_use_it(backend: MemoryBackend) -> None:
    memory = remembering(backend)
    wanted = write(memory)
    write(memory, "Water the plants on Monday.", None)
    [best, *_] = memory.search("the quarterly report for finance", user_id="alice")
    assert (best.record.id, best.record.content) == (wanted, STEPS)
    assert best.parts["cosine"] > 0.5
    memory.close()


def test_it_is_found_by_words_of_either(backend: MemoryBackend) -> None:
    memory = remembering(backend, embedder=None)
    wanted = write(memory)
    for question in ("quarterly finance", "books sheet"):
        assert [hit.record.id for hit in memory.search(question, user_id="alice")] == [wanted]
    chinese = write(memory, "先关账，再导出第七页。", "用户要季度财务报告")
    assert [h.record.id for h in memory.search("季度财务报告", user_id="alice")] == [chinese]
    memory.close()


def test_words_of_a_use_when_that_was_changed_find_it_no_more(backend: MemoryBackend) -> None:
    memory = remembering(backend, embedder=None)
    wanted = write(memory)
    memory.update(wanted, metadata={"use_when": "Someone travels to Lisbon"}, user_id="alice")
    assert not memory.search("quarterly finance", user_id="alice")
    assert [hit.record.id for hit in memory.search("Lisbon", user_id="alice")] == [wanted]
    memory.update(wanted, metadata={"use_when": None}, user_id="alice")
    assert not memory.search("Lisbon", user_id="alice")
    memory.close()


def test_changing_it_embeds_anew_and_changing_the_text_does_not(memory: SupervisorMemory) -> None:
    wanted = write(memory)
    assert is_of(memory, wanted, WHEN)
    memory.update(wanted, content="Export sheet nine.", user_id="alice")
    assert is_of(memory, wanted, WHEN)
    memory.update(wanted, metadata={"use_when": "Lisbon"}, user_id="alice")
    assert is_of(memory, wanted, "Lisbon")
    memory.update(wanted, metadata={"use_when": None}, user_id="alice")
    assert is_of(memory, wanted, "Export sheet nine.")


def test_reembedding_reads_what_writing_read() -> None:
    backend = InMemoryBackend()
    wanted = write(remembering(backend, embedder=None))
    memory = remembering(backend)
    assert vector(memory, wanted) is None
    memory.reembed()
    assert is_of(memory, wanted, WHEN)


def test_a_verbatim_import_is_embedded_by_it(memory: SupervisorMemory) -> None:
    (done,) = memory.add_many([{"content": STEPS, "metadata": {"use_when": WHEN}}], user_id="alice")
    assert is_of(memory, done.id, WHEN)


def test_an_export_brings_it_with_its_vector(memory: SupervisorMemory) -> None:
    wanted = write(memory)
    with remembering(InMemoryBackend()) as other:
        memory.copy_to(other)
        assert is_of(other, wanted, WHEN)


def test_a_put_into_the_store_changes_the_text_and_not_what_it_is_found_by(memory: SupervisorMemory) -> None:
    wanted = write(memory)
    address = ("experience", "alice")
    store = memory.store(guarded=False)
    item = next(i for i in store.search(()) if i.key == wanted)
    assert address[0] in "/".join(item.namespace)
    store.put(item.namespace, wanted, {"kind": "Memory", "content": {"content": "Export sheet nine."}})
    assert memory.get(wanted).content == "Export sheet nine."
    assert is_of(memory, wanted, WHEN)


def test_records_of_one_use_are_kept_apart_when_they_say_different_things(memory: SupervisorMemory) -> None:
    ids = {write(memory, text) for text in (STEPS, "Ask Ada for last year's numbers.")}
    assert len(ids) == 2


def test_a_text_that_reads_like_when_to_use_another_is_no_duplicate_of_it(memory: SupervisorMemory) -> None:
    write(memory)
    assert memory.write(WHEN, user_id="alice", kind="experience").status == "added"


def test_the_same_text_is_a_duplicate_whatever_it_is_for(memory: SupervisorMemory) -> None:
    first = write(memory)
    again = memory.write(STEPS, user_id="alice", kind="experience", metadata={"use_when": "Lisbon"})
    assert (again.id, again.status) == (first, "skipped")


def test_what_is_merged_into_it_keeps_it(memory: SupervisorMemory) -> None:
    facts: dict[str, Any] = {"user_id": "alice", "kind": "domain-facts"}
    first = memory.write("delayed means over 15 minutes late", metadata={"use_when": WHEN}, **facts)
    again = memory.write("delayed means over 30 minutes late", **facts)
    assert (again.id, again.status) == (first.id, "updated")
    assert memory.get(first.id).use_when == WHEN
    assert is_of(memory, first.id, WHEN)


@pytest.mark.parametrize("bad", [3, True, ["when"], {"a": 1}, "", "  ", "\x00", "\u200b"])
def test_a_use_when_that_is_no_text_is_refused_by_name(memory: SupervisorMemory, bad: Any) -> None:
    with pytest.raises(InvalidContent, match="use_when"):
        memory.write(STEPS, user_id="alice", metadata={"use_when": bad})
    kept = write(memory)
    with pytest.raises(InvalidContent, match="use_when"):
        memory.update(kept, metadata={"use_when": bad})
    with pytest.raises(InvalidContent, match="use_when"):
        asyncio.run(memory.aadd("Always answer in tables.", user_id="alice", metadata={"use_when": bad}))
    assert memory.get(kept).use_when == WHEN


def test_a_use_when_that_is_too_large_is_refused(memory: SupervisorMemory) -> None:
    with pytest.raises(ContentTooLarge):
        write(memory, use_when="x" * 70_000)


FRAME = {"embedded_as": "8 May, 2023. {content}"}


def test_what_stands_around_the_content_is_embedded_and_neither_told_nor_searched_by_words() -> None:
    told = record(STEPS, metadata=FRAME)
    assert (told.embedded_text, told.searched_text) == (f"8 May, 2023. {STEPS}", STEPS)
    assert told.is_embedded_otherwise
    assert record(STEPS, metadata={**FRAME, "use_when": WHEN}).embedded_text == WHEN
    assert record("{content} twice", metadata=FRAME).embedded_text == "8 May, 2023. {content} twice"
    for other in ({}, {"embedded_as": "8 May"}, {"embedded_as": 3}):
        bare = record(STEPS, metadata=other)
        assert (bare.embedded_text, bare.is_embedded_otherwise) == (STEPS, False)


def test_a_framed_text_is_embedded_anew_when_it_or_its_frame_changes(memory: SupervisorMemory) -> None:
    wanted = memory.write(STEPS, user_id="alice", kind="experience", metadata=FRAME).id
    assert is_of(memory, wanted, f"8 May, 2023. {STEPS}")
    memory.update(wanted, content="Export sheet nine.", user_id="alice")
    assert is_of(memory, wanted, "8 May, 2023. Export sheet nine.")
    memory.update(wanted, metadata={"embedded_as": "On Monday: {content}"}, user_id="alice")
    assert is_of(memory, wanted, "On Monday: Export sheet nine.")
    store = memory.store(guarded=False)
    item = next(i for i in store.search(()) if i.key == wanted)
    store.put(item.namespace, wanted, {"kind": "Memory", "content": {"content": "Export sheet ten."}})
    assert is_of(memory, wanted, "On Monday: Export sheet ten.")
    memory.update(wanted, metadata={"embedded_as": None}, user_id="alice")
    assert is_of(memory, wanted, "Export sheet ten.")


@pytest.mark.parametrize("frame", ["8 May, 2023.", 3, ["{content}"]])
def test_a_frame_without_a_place_for_the_content_is_refused(memory: SupervisorMemory, frame: object) -> None:
    with pytest.raises(InvalidContent, match="embedded_as"):
        memory.write(STEPS, user_id="alice", metadata={"embedded_as": frame})
