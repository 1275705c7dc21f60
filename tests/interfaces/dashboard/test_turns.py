"""The page of turns: who was given which note, and where its trace is."""

import re
import time
from pathlib import Path

from supervisor_memory import Scope, Settings, SupervisorMemory
from supervisor_memory.interfaces.http.access import Tokens
from supervisor_memory.interfaces.http.app import create_app
from tests.interfaces.dashboard.conftest import LATE, TOKENS, Visitor


def test_a_turn_shows_who_was_given_what(visitor: Visitor, ids: dict[str, str]) -> None:
    assert "run-2" in visitor.text("/dashboard/turns")
    page = visitor.get("/dashboard/turn", run="run-2").text
    assert page.count('<a class="edge') == 2
    assert "Given to supervisor" in page
    other = visitor.get("/dashboard/turn", run="run-2", edge=1).text
    assert "Given to sql" in other
    assert LATE in other
    assert "<svg viewBox" in other


def test_a_turn_links_to_its_trace_where_the_address_can_be_filled(tmp_path: Path) -> None:
    address = "https://traces.example/{session}?run={run}"
    settings = Settings(backend="sqlite", path=tmp_path, embedding_model="none", trace_url=address)
    with SupervisorMemory(settings) as memory:
        visitor = Visitor(create_app(memory, tokens=Tokens.read(f"rita:{TOKENS['operator']}:*")), "operator")
        memory.write(LATE, user_id="ada")
        asked = "What does delayed mean?"
        memory.remember([("user", asked)], Scope("ada", session_id="mon/day", run_id="run-1"))
        memory.recall(asked, Scope("ada", None, "mon/day", "run-1"))
        memory.recall(asked, Scope("ada", None, None, "run-2"))
        [of_run, other] = [visitor.get("/dashboard/turn", run=run).text for run in ("run-1", "run-2")]
    assert 'href="https://traces.example/mon%2Fday?run=run-1"' in of_run
    assert "traces.example" not in other


def test_an_excerpt_is_shown_as_one_with_who_said_it_and_when(
    visitor: Visitor, memory: SupervisorMemory
) -> None:
    chatter = f"We {'walked along the coast and saw birds, then ' * 40}went home."
    said, asked = "The report slipped by a week because Lena was ill.", "Why did the report slip?"
    memory.remember([("user", f"{chatter} {said}")], Scope("ada", session_id="monday"), turn_id="first")
    note = memory.recall(asked, Scope("ada", run_id="run-said"))
    [message] = memory.upkeep.records(note.ids)
    day = time.strftime("%Y-%m-%d", time.gmtime(message.created_at))
    preview = visitor.get("/dashboard/preview", user="ada", question=asked).text
    [quoted] = [card for card in preview.split('<li class="card')[1:] if said in card]
    assert "walked" not in quoted
    for page in (visitor.get("/dashboard/turn", run="run-said").text, quoted):
        assert "excerpt of what was said" in page
        assert f"user · {day}" in re.sub(r"<time[^>]*>", "", page)


def test_what_was_erased_is_no_more_in_a_turn(
    visitor: Visitor, memory: SupervisorMemory, ids: dict[str, str]
) -> None:
    memory.erase(user_id="ada", confirm=True)
    assert LATE not in visitor.get("/dashboard/turns").text
    answer = visitor.get("/dashboard/turn", run="run-2")
    assert answer.status_code == 404
    assert "Nothing is kept of this turn." in answer.text
