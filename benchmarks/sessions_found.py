"""Whether the session that answers a question is found: by its best message, by its digest, by both.

Run: python benchmarks/sessions_found.py FILE [--half 0|1] [--embedder none]

FILE has the shape of LoCoMo's conversations as benchmarks/quality.py reads them, each turn with its session.
Every turn is kept as a session message, every session is digested without a model, and for each question
sessions are ranked: by the best of the messages found, by the digests found, by the best of either. hit@5 is
the share of questions of which a session with evidence is among the first five; "lost" and "won" count the
questions at which a ranking differs from that by messages.
"""

import argparse
import json
from collections.abc import Sequence
from itertools import groupby
from pathlib import Path
from typing import Any

from supervisor_memory import Settings, SupervisorMemory
from supervisor_memory.model.records import Layer

FIRST = 5
RANKINGS: dict[str, list[Layer]] = {
    "messages": ["history"],
    "digests": ["summary"],
    "both": ["history", "summary"],
}
MOST = 200


def kept(memory: SupervisorMemory, conversation: dict[str, Any]) -> None:
    for number, turns in groupby(conversation["turns"], key=lambda turn: turn["session"]):
        said = list(turns)
        messages = [{"role": "user", "name": each["speaker"], "content": each["text"]} for each in said]
        at = said[0]["t"]
        memory.add(messages, user_id=conversation["id"], session_id=str(number), created_at=at)
    for session in {str(turn["session"]) for turn in conversation["turns"]}:
        memory.sessions.close(session, user_id=conversation["id"])
    memory.flush()


def ranked(memory: SupervisorMemory, question: str, user_id: str, layers: list[Layer]) -> Sequence[str]:
    hits = memory.search(question, user_id=user_id, layers=layers, limit=MOST, threshold=0)
    sessions = (hit.record.source.session_id or "" for hit in hits)
    return list(dict.fromkeys(sessions))[:FIRST]


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("file", type=Path)
    parser.add_argument("--half", type=int, choices=[0, 1], help="only every second conversation")
    parser.add_argument("--embedder", help="none: words alone")
    asked = parser.parse_args()
    conversations = json.loads(asked.file.read_text("utf-8"))["conversations"]
    if asked.half is not None:
        conversations = conversations[asked.half :: 2]
    given = {"embedding_model": asked.embedder} if asked.embedder else {}
    found: dict[str, list[bool]] = {name: [] for name in RANKINGS}
    digests = sessions = 0
    for conversation in conversations:
        settings = Settings(queue_worker=False, search_timeout_ms=60_000, **given)
        with SupervisorMemory(settings) as memory:
            kept(memory, conversation)
            rows = memory.sessions.list(user_id=conversation["id"], limit=1_000)
            sessions, digests = sessions + len(rows), digests + sum(row.is_digested for row in rows)
            of_turn = {turn["id"]: str(turn["session"]) for turn in conversation["turns"]}
            for question in conversation["questions"]:
                wanted = {of_turn[each] for each in question["evidence"] if each in of_turn}
                if not wanted:
                    continue
                for name, layers in RANKINGS.items():
                    first = ranked(memory, question["q"], conversation["id"], layers)
                    found[name].append(not wanted.isdisjoint(first))
    print(f"{len(found['messages'])} questions, {sessions} sessions, {digests} with a digest")
    for name, hits in found.items():
        pairs = list(zip(hits, found["messages"], strict=True))
        won, lost = pairs.count((True, False)), pairs.count((False, True))
        print(f"{name:<10} hit@{FIRST} {sum(hits) / len(hits):.3f}   won {won}, lost {lost}")


if __name__ == "__main__":
    main()
