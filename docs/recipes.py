"""Writes the sections of docs/recipes.md from the recipes themselves: python docs/recipes.py

Between the marks of the page it puts the table and a section for each. A test keeps it so.
"""

import json
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from supervisor_memory.recipes.open import OURS, published
from supervisor_memory.recipes.published import HEADINGS, Published

PAGE = Path(__file__).with_name("recipes.md")
FIGURES = PAGE.with_suffix(".json")
BEGIN, END = "<!-- begin: python docs/recipes.py -->\n", "<!-- end -->\n"


def page() -> str:
    """The page as it should be."""
    before, _, rest = PAGE.read_text("utf-8").partition(BEGIN)
    after = rest.partition(END)[2]
    return f"{before}{BEGIN}{''.join(_told())}{END}{after}"


def _told() -> Iterator[str]:
    known = [told for name in OURS if (told := published(name)) is not None]
    measured = json.loads(FIGURES.read_text("utf-8"))
    rows = measured["recipes"]
    yield "| `MEMORY_RECIPE` | idea | follows | R@5 | R@10 | R@600t | R@10 beside the default |\n"
    yield "|---|---|---|--:|--:|--:|---|\n"
    yield f"| `default` | rules and evidence, no model | | {_cells(rows['default'])} | |\n"
    for each in known:
        row = rows.get(each.name, {})
        told = f"[`{each.name}`](#{each.name}) | {each.idea} | {_first_words(each)} | {_cells(row)}"
        yield f"| {told} | {row.get('against_default', 'not measured yet')} |\n"
    yield f"| the bare store | the nearest by cosine, nothing else | | {_cells(rows['bare store'])} | "
    yield f"{rows['bare store']['against_default']} |\n\n"
    if (peer := rows.get("isage-neuromem")) is not None:
        yield from (
            f"`isage-neuromem` 0.2.1.12, the engine of the SAGE documents, with the same texts and vectors "
            f"in its own environment (`benchmarks/neuromem.py`), has R@5 {peer['R@5']:.3f}, R@10 "
            f"{peer['R@10']:.3f}, R@600t {peer['R@600t']:.3f}, R@10 beside the default "
            f"{peer['against_default']}.\n\n",
        )
    yield (
        f"Measured {measured['date']} by `python benchmarks/recipes.py --write`, without a model, after the "
        f"recipe's chores, on the {measured['questions']} questions of our own sets (dialogues, dialogues "
        "with an assistant, facts; English and Chinese). The default was developed on these sets, the other "
        "recipes were not. A recipe that returns few records cannot reach a high R@10; the number is one of "
        "its constants.\n"
    )
    yield from _guards(measured.get("guards", {}))
    yield from _costs(measured.get("cost", {}))
    for each in known:
        yield f"\n### {each.name}\n\n{each.said['Title']}\n\n"
        if rows.get(each.name, {}).get("is_below_bare"):
            yield (
                "**Without a model it finds less than its own bare store**: R@10 "
                f"{rows[each.name]['R@10']:.3f} beside {rows['bare store']['R@10']:.3f} "
                f"({rows[each.name]['against_bare']}).\n\n"
            )
        yield from (f"- **{heading}:** {each.said[heading]}\n" for heading in HEADINGS)
        if each.sources:
            yield "\n| constant | value | from |\n|---|---|---|\n"
            yield from (f"| `{name}` | {value} | {source} |\n" for name, value, source in each.sources)


def _cells(row: Mapping[str, Any]) -> str:
    return " | ".join(f"{row[name]:.3f}" if row else "–" for name in ("R@5", "R@10", "R@600t"))


def _guards(guards: Mapping[str, Any]) -> Iterator[str]:
    """What recipes find beside what their mechanisms found as prototypes."""
    if not guards:
        return
    yield (
        "\nChats between friends name few things. So each recipe is also compared with a prototype of its "
        "mechanism on such chats, without a model: the first five conversations of LoCoMo (997 questions), "
        'turns as "Speaker: text", all-MiniLM-L6-v2, no chores, and at least ten records told. '
        f"Measured {guards['date']} by `python benchmarks/recipes.py --guards FILE`.\n\n"
        "| recipe | figure | found | at least | with |\n|---|---|--:|--:|---|\n"
    )
    for name, row in guards["recipes"].items():
        changed = ", ".join(f"`{constant} = {value}`" for constant, value in row["with"].items())
        found = f"{row['found']:.3f}{' **(less)**' if row['found'] < row['least'] else ''}"
        yield f"| `{name}` | {row['figure']} | {found} | {row['least']:.2f} | {changed} |\n"


def _costs(cost: Mapping[str, Any]) -> Iterator[str]:
    """What a search and an insert cost, where it was measured."""
    if not cost:
        return
    counts = [*cost]
    yield (
        "\nProcessor time in ms by the number of records, without embedding, the quietest of five rounds of "
        "`python benchmarks/recipes.py --cost`, beside other work on two cores. The aim for a search and an "
        "insert is at most twice the default's time (four times for A-Mem's insert).\n\n"
    )
    yield "![Cost of each recipe by the number of records](images/growth.svg)\n\n"
    heads = " | ".join(f"search, {int(n):,} | insert, {int(n):,}" for n in counts)
    yield f"| recipe | {heads} |\n|---|{'--:|' * 2 * len(counts)}\n"
    for name in cost[counts[0]]:
        cells = " | ".join(f"{cost[n][name]['search_ms']} | {cost[n][name]['insert_ms']}" for n in counts)
        yield f"| {name} | {cells} |\n"


def _first_words(each: Published) -> str:
    return "the paper" if each.said["Follows"].startswith("the paper") else "the code"


if __name__ == "__main__":
    PAGE.write_text(page(), "utf-8")
