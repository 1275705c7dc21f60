"""A supervisor that remembers: three sessions in three processes, then a second user, then the audit log.

Run: make demo        (or: .venv/bin/python examples/02_two_sessions.py)
Everything runs offline, on 336,776 real flights. The chat model is rule-based unless CHAT_MODEL names
a real one; the memory is the real one. Another backend: MEMORY_BACKEND=json make demo, or a line in .env.
"""

import argparse
import os
import shutil
import subprocess
import sys
from pathlib import Path

from rich.console import Console
from rich.markup import escape
from rich.panel import Panel
from rich.table import Table

sys.path.insert(0, str(Path(__file__).parents[1]))  # `agents` and `common` are in the clone, in no package

from agents.team import build_team
from common.config import config
from supervisor_memory import Settings, SupervisorMemory, why

console = Console(highlight=False)
console.width = min(console.width, 110) if console.is_terminal else 110

STORE = Path(".demo/two_sessions")
PLACE = {"backend": "MEMORY_BACKEND", "path": "MEMORY_PATH", "qdrant_prefix": "QDRANT_PREFIX"}
FIRST = "Which three airlines had the highest share of delayed flights from JFK in June?"
LATER = "And which three airlines had the highest share of delayed flights from LaGuardia in June?"
IN_PASSING = "FYI, the LaGuardia report slipped by a week because Lena's team was ill."
WHY = "Why did the LaGuardia report slip?"
NEXT = "FYI, Newark is for next time."
GO_ON = "Where were we?"
SESSIONS = {
    "1": (
        "ada",
        ["以后默认用表格", "Delayed means arrival more than 15 minutes late.", f"{IN_PASSING} {FIRST}"],
    ),
    "2": ("ada", [LATER, WHY, NEXT]),
    "3": ("ada", [GO_ON]),
    "4": ("bo", [GO_ON, LATER, WHY]),
}
TITLES = {
    "1": "Session 1 · process {pid} · user ada states a preference and a definition, and asks",
    "2": "Session 2 · process {pid} · user ada comes back, and asks about what she said in passing too",
    "3": "Session 3 · process {pid} · user ada goes on where session 2 ended",
    "4": "Session 4 · process {pid} · user bo asks the same; nothing of ada's may show",
}


def main() -> None:
    """Start one process for each session, over one store."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--session", choices=SESSIONS, help="run one session in this process")
    if session := parser.parse_args().session:
        return run_session(session)

    said = Settings.from_env()
    kept = {
        "MEMORY_BACKEND": "sqlite" if said.origin("backend") == "default" else said.backend,
        "MEMORY_PATH": str(STORE),  # not that of .env: the demo begins with nothing remembered
        "QDRANT_PREFIX": "demo",
    }
    environment = {**kept, **os.environ}
    forget(Settings.from_env(**{name: environment[env] for name, env in PLACE.items()}))
    model = config().chat_model or "rule-based (no language model; set CHAT_MODEL for a real one)"
    console.print(f"backend [bold]{environment['MEMORY_BACKEND']}[/] · chat model [bold]{model}[/]")
    if environment["MEMORY_BACKEND"] == "in_memory":
        console.print("[yellow]in_memory forgets at the end of each process: session 2 will know nothing[/]")
    for session in SESSIONS:
        subprocess.run([sys.executable, __file__, "--session", session], check=True, env=environment)
    where = " ".join(f"{name}={environment[name]}" for name in PLACE.values())
    command = Path(sys.executable).with_name("supervisor-memory")
    shown = command.relative_to(Path.cwd()) if command.is_relative_to(Path.cwd()) else command
    alpha, beta, gamma = said.weight_relevance, said.weight_decay, said.weight_source
    console.print(
        f"[dim]score = {alpha} · match + {beta} · recency + {gamma} · source; preferences are recalled "
        f"whatever the question, other records from relevance {said.min_score}; what was said is quoted "
        "where it answers[/]"
    )
    console.print(
        Panel(
            f"export {where}\n"
            f"{shown} list -u ada            what the demo left behind\n"
            f"{shown} search delay -u ada    what is found, with the parts of each score\n"
            f"{shown} audit tail             who changed what, when, why\n"
            f"{shown} doctor                 which backend and embedder are live, and why\n"
            "make chat                                          talk to the team yourself\n"
            ".venv/bin/python examples/01_attach.py             the lines that added memory",
            title="Try next",
            title_align="left",
        )
    )


def forget(settings: Settings) -> None:
    """Begin with nothing remembered."""
    shutil.rmtree(STORE, ignore_errors=True)
    if settings.backend == "qdrant":
        with SupervisorMemory(settings) as memory:
            for user in {user for user, _ in SESSIONS.values()}:
                memory.erase(user_id=user, confirm=True)


def run_session(session: str) -> None:
    user, asks = SESSIONS[session]
    console.rule(TITLES[session].format(pid=os.getpid()), align="left")
    with SupervisorMemory.from_env() as memory:
        notes = max((note.seq for note in memory.audit.notes(1)), default=0)
        graph = memory.attach(build_team(tools=memory.tools())).compile()
        for turn, text in enumerate(asks):
            before = memory.audit.count()
            console.print(f"\n[bold cyan]{user}:[/] {escape(text)}")
            state = graph.invoke(
                {"messages": [("user", text)], "user_id": user},
                {"configurable": {"thread_id": f"session-{session}"}},
            )
            notes = show_notes(memory, notes)
            console.print(f"[bold green]supervisor:[/] {escape(state['final_answer'])}")
            for effect in state.get("side_effects") or ():
                if "path" in effect:
                    console.print(f"[dim]file: {effect['path']}[/]")
            show_audit(memory, before, title=f"audit of turn {turn + 1}")


def show_notes(memory: SupervisorMemory, before: int) -> int:
    """Every note that a model has read since: for whom, what, and why each line is in it.

    Returns:
        The number of the last one.
    """
    told = [note for note in memory.audit.notes(100) if note.seq > before and note.op == "inject"]
    if not told:
        console.print("[yellow]nothing recalled for anybody[/]")
    seen: set[tuple[str | None, tuple[str, ...]]] = set()
    for note in reversed(told):
        ids = tuple(each.record_id for each in note.shown)
        if (note.agent_id, ids) in seen:
            continue
        seen.add((note.agent_id, ids))
        table = Table(box=None, padding=(0, 1), show_header=True, header_style="dim")
        for column in ("remembered", "why", "score"):
            table.add_column(column, overflow="fold", max_width={"remembered": 60}.get(column))
        sources = [id_ for each in note.shown for id_ in each.source_ids]
        texts = {record.id: record.content for record in memory.upkeep.records(sources)}
        for each in note.shown:
            text = clipped(texts.get(each.record_id, ""))
            if each.made_of:  # a digest: the messages that its sentences are from
                text = "\n".join(f"{of}: {clipped(texts.get(id_, ''))}" for id_, of in each.made_of)
            how = "an excerpt of what was said: " if each.reason == "said" else ""
            table.add_row(escape(text), f"{how}{why(each.parts)}", f"{each.score:.2f}")
        title = f"recalled for [bold]{note.agent_id or 'supervisor'}[/], {note.tokens} tokens"
        console.print(Panel(table, title=title, title_align="left", border_style="yellow"))
    return max((note.seq for note in told), default=before)


def clipped(text: str, most: int = 100) -> str:
    text = " ".join(text.split())
    return text if len(text) <= most else text[:most] + "…"


def show_audit(memory: SupervisorMemory, before: int, *, title: str) -> None:
    """The rows a turn added to the audit log. They hold no content; the text shown is the live record."""
    added = memory.audit.count() - before
    if not added:
        return
    table = Table(
        title=title, title_justify="left", title_style="dim", box=None, padding=(0, 1), header_style="dim"
    )
    for column in ("#", "what", "by", "where", "record now", "reason"):
        table.add_column(
            column, overflow="ellipsis", no_wrap=True, max_width=46 if column == "record now" else None
        )
    for row in memory.audit.tail(added):
        event = row.event
        live = memory.upkeep.records([row.record_id]) if row.record_id else []
        if live and live[0].status == "compressed":  # a digest of who said what
            continue
        text = live[0].content.replace("\n", " ") if live else ""
        shown = (
            event.get("agent_id") or event.get("actor"),
            event.get("family"),
            escape(text),
            event.get("reason"),
        )
        table.add_row(str(row.seq), f"{row.op} ({row.outcome})", *(str(value or "") for value in shown))
    console.print(table)


if __name__ == "__main__":
    main()
