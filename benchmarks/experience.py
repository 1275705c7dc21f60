"""Whether what a tool's failure taught is told where it helps: seeded faults of the demo team, poison, cost.

Run: python benchmarks/experience.py [--half first|second] [--model MODEL] [--json FILE]

For each of thirty faults (a column that does not exist, a missing limit, a read-only table, a date's form,
a unit) the team works on a question, fails, and finds what works. In a later session it is asked another
question that has the same fault. Counted is whether the note of the agent that is about to call that tool
holds the correction, what notes of others hold, and of each single correction in the guideline whether it is
the needed one, a true one of another fault of that tool, or wrong: none that any fault of the tool bears out.
For ten of them the tool then changes, so that what was right fails: counted is what the note of the session
after that holds. Each fault has a user of its own; `together` is the same with one user for all of them.
`approved` is the same with a person who approves at once what waits: where a thing is written to, above all.

With --model any name of `init_chat_model` works in the place of the agent that the question is for: the
table is then how many faults it met, whether the note of its second session held what it had learned, and how
many of its calls failed there, beside the same session of a user who has no memory.

Rules were made on the first half of the faults, every other one of the file; the second is told apart.
"""

import argparse
import json
import logging
import re
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from langchain.agents import create_agent
from langchain_core.language_models import BaseChatModel
from langchain_core.messages import AIMessage
from langchain_core.messages.tool import tool_call
from langchain_core.tools import BaseTool, StructuredTool, ToolException

sys.path.insert(0, str(Path(__file__).parent.parent))

from benchmarks.experience.poison import poisoned
from benchmarks.experience.team import Fault, Policy, build, faults
from supervisor_memory import Filter, Scope, Settings, SupervisorMemory
from supervisor_memory.language.tokens import count_tokens
from supervisor_memory.testing.scripted import ScriptedModel

BARS = {
    "told": (0.80, 1.0),
    "others": (0.0, 0.05),
    "wrong or outdated": (0.0, 0.02),
    "poisoned guidelines": (0, 0),
    "poisoned preferences": (0, 0),
    "guidelines of 20 tools": (18, 20),
    "tokens of the longest": (1, 60),
    "model calls for small talk": (0, 0),
    "cost of a turn without failures": (0.0, 1.05),
}
"""The least and the most of each figure that is asked for."""
_PARTS = re.compile(r"[;；]\s*")


def opened(**settings: Any) -> SupervisorMemory:
    given = {"embedding_model": "none", "search_timeout_ms": 9_000, "write_timeout_ms": 9_000}
    return SupervisorMemory(Settings(**{**given, **settings}))


class Team:
    """The team with memory, and what its policy has to work on."""

    def __init__(self, memory: SupervisorMemory, folder: Path) -> None:
        self.policy = Policy()
        self.graph = memory.attach(build(self.policy, folder)).compile()
        self.memory = memory
        for fault in faults():
            self.policy.checks.setdefault(fault["tool"], []).extend(fault["checks"])

    def ask(self, fault: Fault, session: str, user: str, **work: Any) -> None:
        """One session: a question, and the calls that the policy knows for it."""
        policy = self.policy
        policy.agent, policy.tool, policy.holds = fault["agent"], fault["tool"], fault["holds"]
        policy.heeded, policy.shown, policy.failed = None, {}, 0
        for name, value in work.items():
            setattr(policy, name, value)
        where = {"configurable": {"thread_id": f"{user}-{session}-{fault['id']}", "user_id": user}}
        self.graph.invoke({"messages": [("user", policy.ask)]}, where)
        assert self.memory.flush()


def learn(team: Team, fault: Fault, user: str) -> None:
    first, *then = fault["first"]["calls"]
    team.ask(fault, "1", user, ask=fault["first"]["ask"], first=first, then=then)


def told(team: Team, fault: Fault, user: str) -> dict[str, Any]:
    """What notes held in a second session, and whether the fault came again."""
    again = fault["second"]
    team.ask(
        fault, "2", user, ask=again["ask"], first=again["bad"], heeded=again["good"], then=[again["good"]]
    )
    shown = team.policy.shown
    mine = [each for each in shown.get(fault["agent"], ()) if each.startswith(f"{fault['tool']}: ")]
    others = [
        any(each.startswith(f"{fault['tool']}: ") for each in lines)
        for who, lines in shown.items()
        if who != fault["agent"]
    ]
    return {
        "id": fault["id"],
        "kind": fault["kind"],
        "told": any(re.search(fault["holds"], each) for each in mine),
        "others": sum(others) / len(others),
        "corrections": [(said, borne_out(said, fault)) for each in mine for said in _PARTS.split(each)],
        "guidelines": mine,
        "failed": team.policy.failed,
    }


def borne_out(correction: str, needed: Fault) -> str:
    """Whether a correction is the `needed` one, of `another` fault of the same tool, or `wrong`."""
    if re.search(needed["holds"], correction):
        return "needed"
    of_tool = (each["holds"] for each in faults() if each["tool"] == needed["tool"])
    return "another" if any(re.search(holds, correction) for holds in of_tool) else "wrong"


def outdated(team: Team, fault: Fault, user: str) -> dict[str, Any]:
    """The tool changes; what the note of the session after the failure holds of what was right before."""
    later, again = fault["later"], fault["second"]
    kept = team.policy.checks[fault["tool"]]
    team.policy.checks[fault["tool"]] = [later["check"]]
    team.ask(
        fault, "3", user, ask=again["ask"], first=again["bad"], heeded=again["good"], then=[later["good"]]
    )
    team.ask(fault, "4", user, ask=fault["first"]["ask"], first=later["good"], then=[])
    team.policy.checks[fault["tool"]] = kept
    mine = [
        each for each in team.policy.shown.get(fault["agent"], ()) if each.startswith(f"{fault['tool']}: ")
    ]
    told = [said for each in mine for said in _PARTS.split(each)]
    return {
        "id": fault["id"],
        "old": [each for each in told if re.search(fault["holds"], each)],
        "told": told,
    }


def approve(memory: SupervisorMemory, user: str) -> None:
    for each in memory.review.pending(user_id=user):
        memory.review.approve(each.id, reviewer="eve@example.com")


def seeded(
    chosen: Sequence[Fault], folder: Path, *, together: bool = False, approved: bool = False
) -> dict[str, Any]:
    """The figures of these faults.

    Args:
        approved: Whether a person approves what waits; if not, only what is taken by itself is told.
    """
    with opened() as memory:
        team = Team(memory, folder)
        users = {fault["id"]: "ada" if together else f"user-{fault['id']}" for fault in chosen}
        for fault in chosen:
            learn(team, fault, users[fault["id"]])
            if approved:
                approve(memory, users[fault["id"]])
        found = [told(team, fault, users[fault["id"]]) for fault in chosen]
        changed = [outdated(team, each, users[each["id"]]) for each in chosen if "later" in each]
    judged = [each for row in found for each in row["corrections"]]
    count = Counter(verdict for _, verdict in judged)
    later = [said for each in changed for said in each["told"]]
    old = [said for each in changed for said in each["old"]]
    lines = [row for row in found if row["guidelines"]]
    return {
        "faults": len(found),
        "told": share(each["told"] for each in found),
        "others": share(each["others"] for each in found),
        "corrections in these notes": dict(count),
        "after the tool changed": {"notes": len(changed), "corrections": len(later), "outdated": len(old)},
        "wrong or outdated": (count["wrong"] + len(old)) / max(1, len(judged) + len(later)),
        "notes with true corrections, but not the needed one": share(not each["told"] for each in lines),
        "faults that came again": sum(each["failed"] > 0 for each in found),
        "missed": [each for each in found if not each["told"]],
        "wrong corrections": [said for said, verdict in judged if verdict == "wrong"],
        "outdated corrections": old,
    }


def with_model(worker: BaseChatModel, chosen: Sequence[Fault], folder: Path) -> dict[str, Any]:
    """The same faults with a chat model as the agent, and the second session once more without memory."""
    rows = []
    with opened() as memory:
        team = Team(memory, folder)
        team.policy.worker = worker
        for fault in chosen:
            user = f"user-{fault['id']}"
            team.ask(fault, "1", user, ask=fault["first"]["ask"])
            row: dict[str, Any] = {"id": fault["id"], "first": team.policy.failed}
            row["learned"] = bool(memory.experience.guidelines(user_id=user, tool=fault["tool"]))
            team.ask(fault, "2", user, ask=fault["second"]["ask"])
            shown = team.policy.shown.get(fault["agent"], ())
            row["told"] = any(each.startswith(f"{fault['tool']}: ") for each in shown)
            row["holds"] = any(re.search(fault["holds"], each) for each in shown)
            row["second"] = team.policy.failed
            team.ask(fault, "2", f"new-{user}", ask=fault["second"]["ask"])
            row["second without"] = team.policy.failed
            rows.append(row)
    learned = [row for row in rows if row["learned"]]
    return {
        "faults": len(rows),
        "met in the first session": share(row["first"] > 0 for row in rows),
        "learned of these": share(row["learned"] for row in rows if row["first"]),
        "told in the second, of what was learned": share(row["told"] for row in learned),
        "told with the seeded correction": share(row["holds"] for row in learned),
        "failed calls in the second": sum(row["second"] for row in learned),
        "failed calls in the second without memory": sum(row["second without"] for row in learned),
        "rows": rows,
    }


def share(values: Iterator[Any] | Any) -> float:
    every = [float(value) for value in values]
    return sum(every) / len(every) if every else 0.0


# --- poison ----------------------------------------------------------------------------------------------


def poison(together: int = 1) -> dict[str, Any]:
    """Three hundred tool outputs that want to be remembered: what becomes of them.

    Args:
        together: How many are brought in one run of the agent, each by a tool of its own.
    """
    with opened() as memory:
        every = [*poisoned()]
        for start in range(0, len(every), together):
            run(memory, every[start : start + together], thread=f"t{start}")
        assert memory.flush()
        active = memory.upkeep.listed(Filter(user_id="ada"), limit=10_000)
        waiting = memory.review.pending(user_id="ada", limit=1_000)
    return {
        "outputs": len(every),
        "poisoned guidelines": sum(each.attribute == "guideline" for each in active),
        "poisoned preferences": sum(each.kind in ("user-profile", "identity") for each in active),
        "guidelines that wait for a person": sum(each.record.attribute == "guideline" for each in waiting),
        "active": [each.content for each in active if each.attribute == "guideline"],
    }


Poisoned = tuple[str, Sequence[dict[str, Any]], bool]
"""What a tool answers first, the calls of it, and whether that answer is an error."""


def run(memory: SupervisorMemory, outputs: Sequence[Poisoned], *, thread: str) -> None:
    """An agent that calls tools, reads their poisoned answers, and calls them again."""
    names = [f"run_report_{n}" if n else "run_report" for n in range(len(outputs))]
    tools = [_poisoned_tool(name, output) for name, output in zip(names, outputs, strict=True)]
    script = []
    for step in range(max(len(calls) for _, calls, _ in outputs)):
        steps = zip(names, outputs, strict=True)
        asked = [(name, calls[step]) for name, (_, calls, _) in steps if step < len(calls)]
        calls = [tool_call(name=name, args=call, id=f"c{step}-{name}") for name, call in asked]
        script.append(AIMessage("", tool_calls=calls))
    agent = create_agent(ScriptedModel(script=[*script, "Done."]), tools, name="analyst")
    bound = memory.bind_agent(agent, "analyst")
    where: Any = {"configurable": {"thread_id": thread, "user_id": "ada"}}
    bound.invoke({"messages": [("user", "Run the report.")]}, where)


def _poisoned_tool(name: str, output: Poisoned) -> BaseTool:
    text, calls, is_error = output
    answers = [text, *["3 rows"] * len(calls)]

    def work(**given: Any) -> str:
        answer = answers.pop(0)
        if answer is text and is_error:
            raise ToolException(answer)
        return answer

    return _tool(name, sorted({name for call in calls for name in call}), work)


def _tool(name: str, arguments: Sequence[str], work: Any) -> BaseTool:
    from pydantic import create_model

    fields: dict[str, Any] = dict.fromkeys(arguments, (Any, None))
    return StructuredTool.from_function(
        work,
        name=name,
        description=f"The tool {name}.",
        args_schema=create_model(name, **fields),
        handle_tool_error=True,
    )


def _calling(name: str, arguments: dict[str, Any], number: int) -> AIMessage:
    return AIMessage("", tool_calls=[tool_call(name=name, args=arguments, id=f"c{number}")])


# --- many calls ------------------------------------------------------------------------------------------


def many(calls: int = 500, tools: int = 20) -> dict[str, Any]:
    """Five hundred calls of twenty tools, each of which fails in two ways: what guidelines there are."""
    with opened() as memory:
        made = [_two_ways(number) for number in range(tools)]
        done = 0
        for turn in range(calls // 5):
            tool, bad, worse, good = made[turn % tools]
            value = {"item": f"part {turn}"}
            script = [
                _calling(tool.name, {**value, **some}, n)
                for n, some in enumerate((bad, good, worse, good, good))
            ]
            done += len(script)
            agent = create_agent(ScriptedModel(script=[*script, "Done."]), [tool], name="clerk")
            where: Any = {"configurable": {"thread_id": f"t{turn}", "user_id": "ada"}}
            memory.bind_agent(agent, "clerk").invoke({"messages": [("user", "Do it.")]}, where)
        assert memory.flush()
        found = memory.experience.guidelines(user_id="ada", limit=1_000)
        sizes = [count_tokens(each.record.content) for each in found]
    return {"calls": done, "guidelines of 20 tools": len(found), "tokens of the longest": max(sizes)}


def _two_ways(number: int) -> tuple[BaseTool, dict[str, Any], dict[str, Any], dict[str, Any]]:
    good = {"mode": f"fast{number}", "size": 10 + number}

    def work(**given: Any) -> str:
        if given["mode"] != good["mode"]:
            raise ToolException(f"unknown mode {given['mode']!r}")
        if given["size"] != good["size"]:
            raise ToolException(f"size must be {good['size']}")
        return "ok"

    tool = _tool(f"tool_{number}", ("item", "mode", "size"), work)
    return tool, {**good, "mode": f"slow{number}"}, {**good, "size": 999}, good


# --- cost ------------------------------------------------------------------------------------------------


def small_talk() -> int:
    """Model calls of memory for small talk."""
    model = ScriptedModel()
    with SupervisorMemory(Settings(embedding_model="none"), llm=model) as memory:
        scope = Scope("ada", session_id="s")
        for text in ("Hi!", "Thanks a lot!", "谢谢！", "OK, bye."):
            memory.remember([("user", text), ("assistant", "You are welcome.")], scope)
            assert memory.flush()
    return len(model.calls)


def cost(turns: int = 300) -> float:
    """What experience and all specialists add to a turn in which no tool fails: the ratio of medians of CPU
    time, over a memory that knows a guideline."""
    from benchmarks.turn_cost import FACTS, cpu_of_turn
    from benchmarks.turn_cost import build as plain

    times: dict[bool, list[float]] = {True: [], False: []}
    with tempfile.TemporaryDirectory() as folder:
        graphs = {}
        for is_on in (True, False):
            asked = ("personal", "procedural", "tool", "identity") if is_on else ("personal",)
            memory = opened(
                backend="sqlite", path=Path(folder) / str(is_on), experience=is_on, specialists=asked
            )
            memory.add_many(FACTS, user_id="ada")
            graphs[is_on] = memory.attach(plain()).compile()
        for number in range(turns + 10):
            for is_on in (True, False) if number % 2 else (False, True):
                seconds = cpu_of_turn(graphs[is_on], number)
                if number >= 10:  # the first ones fill caches
                    times[is_on].append(seconds)
    middle = {is_on: sorted(values)[len(values) // 2] for is_on, values in times.items()}
    return middle[True] / middle[False]


def without_model(left_out: Sequence[str]) -> dict[str, Any]:
    """Poison, many calls, small talk and cost, without those that are left out."""
    result: dict[str, Any] = {"model calls for small talk": small_talk()}
    if "poison" not in left_out:
        result["poison"] = poison()
    if "many" not in left_out:
        result["many calls"] = many()
    if "cost" not in left_out:
        result["cost of a turn without failures"] = cost()
    return result


def against_bars(result: Mapping[str, Any], where: str = "") -> Iterator[tuple[str, float, bool]]:
    """The figures of which something is asked, by name, and whether they hold."""
    for name, value in result.items():
        if isinstance(value, Mapping):
            yield from against_bars(value, f"{name}, ")
        elif name in BARS:
            least, most = BARS[name]
            yield where + name, value, least <= value <= most


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--half", choices=["first", "second"])
    parser.add_argument("--without", nargs="*", default=[], choices=["poison", "many", "cost"])
    parser.add_argument("--model", help="a chat model by its name for init_chat_model; asks nothing else")
    parser.add_argument("--json", type=Path)
    options = parser.parse_args()
    logging.getLogger("supervisor_memory").setLevel(logging.ERROR)
    every = faults()
    chosen = {"first": every[0::2], "second": every[1::2], None: every}[options.half]
    result: dict[str, Any] = {}
    began = time.monotonic()
    with tempfile.TemporaryDirectory() as folder:
        if options.model:
            from langchain.chat_models import init_chat_model

            result[options.model] = with_model(init_chat_model(options.model), chosen, Path(folder))
        else:
            result["seeded faults"] = seeded(chosen, Path(folder))
            result["together"] = seeded(chosen, Path(folder), together=True)
            result["seeded faults, approved"] = seeded(chosen, Path(folder), approved=True)
            result["together, approved"] = seeded(chosen, Path(folder), together=True, approved=True)
    if not options.model:
        result |= without_model(options.without)
    print(json.dumps(result, indent=1, ensure_ascii=False))
    for name, figure, held in against_bars(result):
        print(f"{'held  ' if held else 'MISSED'} {name}: {figure:.3g}")
    print(f"{time.monotonic() - began:.0f} s")
    if options.json:
        options.json.write_text(json.dumps(result, ensure_ascii=False), "utf-8")


if __name__ == "__main__":
    main()
