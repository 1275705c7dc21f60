"""How well memory tells what the results of the demo team are made of: table, column, metric, file, report.

Run: python benchmarks/lineage.py [--half made|apart]
The team works through the turns of benchmarks/lineage/questions.json, offline, with its memory. Then each
question is asked of `memory.relations`: it is answered where exactly the expected things are found. The
questions were written before the code that answers them; those at even places were kept apart meanwhile.

about     What is asked about: a name, or what a turn has left: its file, chart or conclusion.
way       "upstream": what it is made from; "downstream": what is made from it.
"""

import argparse
import json
import sys
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

HERE = Path(__file__).parent
sys.path.insert(0, str(HERE.parent))  # `agents` and `common` are in the clone, in no package

from langchain_core.messages import HumanMessage
from langgraph.checkpoint.memory import InMemorySaver

from agents.team import build_team
from common.llm import RuleBasedChatModel
from supervisor_memory import Settings, SupervisorMemory

USER = "analyst"
PATIENCE_MS = 60_000


def worked(memory: SupervisorMemory, turns: Sequence[str], folder: Path) -> Mapping[str, str]:
    """Let the team do its turns; gives what each has left, by its name in the questions: "3:file"."""
    builder = build_team(RuleBasedChatModel(), database=folder / "flights.sqlite", output_dir=folder / "out")
    graph: Any = memory.attach(builder).compile(checkpointer=InMemorySaver())
    left: dict[str, str] = {}
    known = {each.id for each in memory.get_all(user_id=USER, limit=1_000)}
    for number, text in enumerate(turns, start=1):
        config = {"configurable": {"thread_id": f"turn-{number}", "user_id": USER}}
        state = graph.invoke({"messages": [HumanMessage(text, id=f"q{number}")]}, config)
        names = {"csv": "file", "chart": "chart"}
        left |= {
            f"{number}:{names[effect['type']]}": effect["path"]
            for effect in state.get("side_effects", ())
            if effect["type"] in names
        }
        records = memory.get_all(user_id=USER, limit=1_000)
        new = [each for each in records if each.id not in known and each.kind == "task-traces"]
        left |= {f"{number}:conclusion": each.id for each in new[:1]}
        known |= {each.id for each in records}
    return left


def answered(memory: SupervisorMemory, question: Mapping[str, Any], left: Mapping[str, str]) -> set[str]:
    """The things that are found, as the questions name them."""
    names = {path: name for name, path in left.items()}
    about = left.get(question["about"], question["about"])
    if question["about"].endswith(":conclusion"):
        about = f"report:{about}"
    told = getattr(memory.relations(about, user_id=USER), question["way"])
    found = (each for each in told if each.kind == question["kind"])
    return {names.get(each.record_id or each.name, each.name) for each in found}


def figures(half: str) -> Iterator[tuple[Mapping[str, Any], set[str]]]:
    data = json.loads((HERE / "lineage" / "questions.json").read_text("utf-8"))
    settings = Settings(embedding_model="none", search_timeout_ms=PATIENCE_MS, write_timeout_ms=PATIENCE_MS)
    with tempfile.TemporaryDirectory() as folder, SupervisorMemory(settings) as memory:
        left = worked(memory, data["turns"], Path(folder))
        for place, question in enumerate(data["questions"], start=1):
            if half in ("all", "apart" if place % 2 == 0 else "made"):
                yield question, answered(memory, question, left)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("--half", choices=("all", "made", "apart"), default="all")
    parser.add_argument("--json", type=Path)
    options = parser.parse_args()
    right = 0
    told = list(figures(options.half))
    for question, found in told:
        is_right = found == set(question["expected"])
        right += is_right
        if not is_right and options.half != "apart":
            print(f"  {question['q']}\n    expected {question['expected']}\n    found    {sorted(found)}")
    print(f"{options.half}: {right} of {len(told)} answered exactly ({right / len(told):.2f})")
    if options.json:
        options.json.write_text(json.dumps({"right": right, "of": len(told)}))


if __name__ == "__main__":
    main()
