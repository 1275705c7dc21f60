"""From an overview to the words, in three steps: topics, then records and digests, then what was said.

Run: .venv/bin/python examples/09_from_topics_to_words.py
Each step gives ids for the next, and no model is asked in any. docs/disclosure.md tells more of each.
"""

import asyncio
from typing import Any

from supervisor_memory import Scope, Settings, SupervisorMemory

MONDAY = [
    ("user", "Good morning. From now on show delays in minutes."),
    ("assistant", "Noted."),
    ("user", "Delayed means arrival more than 15 minutes late."),
]
TUESDAY = [
    ("user", "Why did the LaGuardia report slip?"),
    ("assistant", "Lena was ill, so it slipped by a week. The chart of June has not been redrawn yet."),
]


def main() -> None:
    """Remember two conversations, and go from the overview to the words of each."""
    with SupervisorMemory(Settings(embedding_model="none")) as memory:
        asyncio.run(remember(memory))
        an_overview(memory)
        records_and_digests(memory)


async def remember(memory: SupervisorMemory) -> None:
    """Have an agent that knows nothing of memory say its part, with memory around it."""

    @memory.wrap(scope=Scope("ada", session_id="tuesday"))
    async def reports(messages: list[Any]) -> list[Any]:
        return [TUESDAY[1]]

    memory.add(MONDAY, user_id="ada", session_id="monday")
    await reports([TUESDAY[0]])
    memory.sessions.close("tuesday", user_id="ada")
    memory.flush()  # else the digest is made in the background


def an_overview(memory: SupervisorMemory) -> None:
    """Step 1: what there is at all; from a topic to its records, and to the words behind each."""
    print("What is there?")
    for topic in memory.topics(user_id="ada"):
        print(topic)
        record = memory.get(topic.ids[0], user_id="ada")
        print(f"    record  {record.content}")
        for message in memory.messages(record.id, user_id="ada", around=1):
            mark = "*" if message.id == record.ref_id else " "
            print(f"    said  {mark} {message.content}")


def records_and_digests(memory: SupervisorMemory) -> None:
    """Steps 2 and 3: where no record tells of a question a digest does, and leads to the words."""
    question = "What happened to the LaGuardia report?"
    print(f"\n{question}")
    print(f"    records  {[hit.record.content for hit in memory.search(question, user_id='ada')]}")
    hits = memory.search(question, user_id="ada", layers=["abstract", "summary"])
    digest = hits[0].record
    for line in digest.content.splitlines():
        print(f"    digest  {line}")
    for message in memory.messages(digest.ref_id or "", user_id="ada", around=5):
        print(f"    said    {message.content}")


if __name__ == "__main__":
    main()
