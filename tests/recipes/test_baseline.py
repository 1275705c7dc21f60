"""The baseline: the newest five, whatever is asked."""

from supervisor_memory import Settings, SupervisorMemory
from supervisor_memory.testing.clock import FixedClock


def test_the_five_newest_are_found_whatever_is_asked_and_fewer_where_fewer_are_wanted() -> None:
    clock = FixedClock()
    settings = Settings(embedding_model="none", queue_worker=False, top_k=20)
    with SupervisorMemory(settings, recipe="baseline", clock=clock) as memory:
        for n in range(7):
            clock.now += 60
            memory.write(f"Shelf {n} is full.", user_id="ada")
        found = memory.search("who likes tea?", user_id="ada")
        assert [hit.record.content for hit in found] == [f"Shelf {n} is full." for n in (6, 5, 4, 3, 2)]
        assert len(memory.search("tea", user_id="ada", limit=2)) == 2
        assert memory.write("shelf 6 is full", user_id="ada").status == "skipped"
