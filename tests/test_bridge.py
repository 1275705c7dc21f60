"""Deadlines, event loops and threads."""

import asyncio
import contextvars
import os
import subprocess
import sys
import threading
import time

import pytest

from supervisor_memory import bridge as bridge_module
from supervisor_memory.bridge import Bridge
from supervisor_memory.errors import DeadlineExceeded

VALUE: contextvars.ContextVar[str] = contextvars.ContextVar("value", default="none")


def test_a_call_that_hangs_is_left_after_its_deadline() -> None:
    began = time.monotonic()
    with pytest.raises(DeadlineExceeded, match="took longer than 50 ms"):
        Bridge().within(0.05, time.sleep, 5)
    assert time.monotonic() - began < 2


def test_a_calls_own_timeout_is_its_own_error() -> None:
    def fail() -> None:
        raise TimeoutError("mine")

    with pytest.raises(TimeoutError, match="mine"):
        Bridge().within(1, fail)


def test_the_callers_context_comes_along() -> None:
    VALUE.set("here")
    assert Bridge().within(1, VALUE.get) == "here"


def test_hanging_calls_cannot_take_all_threads_of_the_process() -> None:
    bridge, stop = Bridge(), threading.Event()
    before = threading.active_count()
    for _ in range(40):
        with pytest.raises(DeadlineExceeded):
            bridge.within(0.001, stop.wait)
    assert threading.active_count() - before <= 16
    with pytest.raises(DeadlineExceeded, match="all 16 memory threads hang"):
        bridge.within(1, time.time)
    stop.set()


async def test_the_event_loop_keeps_ticking_while_memory_works() -> None:
    ticks = 0

    async def tick() -> None:
        nonlocal ticks
        while True:
            ticks += 1
            await asyncio.sleep(0.01)

    ticking = asyncio.create_task(tick())
    await Bridge().run(time.sleep, 0.3)
    ticking.cancel()
    assert ticks >= 10


async def test_a_cancelled_caller_leaves_what_was_begun_to_finish() -> None:
    done = threading.Event()

    def work() -> None:
        time.sleep(0.1)
        done.set()

    with pytest.raises(TimeoutError):
        await asyncio.wait_for(Bridge().run(work), 0.01)
    assert await asyncio.to_thread(done.wait, 2)


def test_a_hanging_call_does_not_keep_the_process_from_ending() -> None:
    code = (
        "import time\nfrom supervisor_memory.bridge import Bridge\n"
        "b = Bridge(); b.background(lambda: time.sleep(600))\n"
        "try: b.within(0.01, time.sleep, 600)\nexcept TimeoutError: print('left')\n"
    )
    done = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, timeout=120, check=True
    )
    assert done.stdout.strip() == "left"


def test_background_work_is_waited_for_by_drain() -> None:
    bridge, done = Bridge(), threading.Event()

    def work() -> None:
        time.sleep(0.05)
        done.set()

    bridge.background(work)
    assert bridge.drain(seconds=5)
    assert done.is_set()
    bridge.background(lambda: time.sleep(5))
    assert not bridge.drain(seconds=0.01)


def test_an_error_of_background_work_is_logged(caplog: pytest.LogCaptureFixture) -> None:
    bridge = Bridge()
    bridge.background(lambda: 1 / 0)
    assert bridge.drain(seconds=5)
    assert [(each.message, each.exc_info is not None) for each in caplog.records] == [
        ("work in the background failed", True)
    ]


@pytest.mark.skipif(not hasattr(os, "fork"), reason="the platform cannot fork")
def test_a_forked_child_gets_threads_of_its_own_where_those_of_its_parent_hang() -> None:
    code = (
        "import os\nfrom supervisor_memory.bridge import Bridge\n"
        "import time\nfrom supervisor_memory.errors import DeadlineExceeded\nb = Bridge()\n"
        "while not b._inner.all_hang():\n"
        "    try:\n        b.within(0.01, time.sleep, 600)\n    except DeadlineExceeded:\n        pass\n"
        "pid = os.fork()\n"
        "if pid == 0:\n    os._exit(0 if b.within(60, lambda: 7) == 7 else 1)\n"
        "print(os.waitpid(pid, 0)[1])\n"
    )
    done = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, timeout=120, check=True
    )
    assert done.stdout.strip() == "0"


def test_a_call_inside_another_needs_no_thread_of_its_own_unless_it_may_be_late_sooner() -> None:
    bridge = Bridge()

    def outer() -> tuple[int, int, int]:
        return (
            threading.get_ident(),
            bridge.within(5, threading.get_ident),
            bridge.within(0.5, threading.get_ident),
        )

    here, same, other = bridge.within(5, outer)
    assert here == same != threading.get_ident()
    assert other not in (here, threading.get_ident())


def test_many_calls_with_steps_of_their_own_do_not_wait_for_each_others_threads() -> None:
    bridge = Bridge()
    together = threading.Barrier(16)

    def outer() -> bool:
        together.wait(5)  # all of them hold a thread now
        return bridge.within(2, lambda: True)

    callers = [threading.Thread(target=lambda: done.append(bridge.within(5, outer))) for _ in range(16)]
    done: list[bool] = []
    for caller in callers:
        caller.start()
    for caller in callers:
        caller.join(10)
    assert done == [True] * 16


def test_a_step_that_hangs_inside_a_call_leaves_the_call_its_time() -> None:
    bridge = Bridge()

    def outer() -> str:
        with pytest.raises(DeadlineExceeded):
            bridge.within(0.05, time.sleep, 1)
        return "went on"

    assert bridge.within(5, outer) == "went on"


def test_threads_that_have_nothing_to_do_end_and_others_begin_when_there_is(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(bridge_module, "_IDLE_SECONDS", 0.02)
    bridge = Bridge()
    for _ in range(3):
        thread = bridge.within(5, threading.current_thread)
        assert thread is not threading.current_thread()
        thread.join(timeout=10)
        assert not thread.is_alive()


def test_a_late_call_is_not_made_once_it_is_left_unless_a_thread_has_begun_it() -> None:
    workers, made = bridge_module._Workers("test", size=1), list[str]()
    waiting = bridge_module._HandedCall(lambda: made.append("waiting"))
    assert workers.abandon(waiting)
    waiting()  # a thread comes to it after all
    assert (made, workers.late) == ([], set())
    begun = bridge_module._HandedCall(lambda: made.append("begun"))
    done = begun()
    assert workers.abandon(begun)
    assert (made, workers.late) == (["begun"], {begun})  # its thread has yet to tell that it is done
    begun_and_told = bridge_module._HandedCall(lambda: made.append("told"))
    begun_and_told()()
    assert not workers.abandon(begun_and_told)
    assert workers.late == {begun}
    done()
