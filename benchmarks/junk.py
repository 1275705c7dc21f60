"""What of a conversation becomes a memory: how much of the chatter, and how many of the statements.

Run: python benchmarks/junk.py [--set junk|second|third] [--show]

Each line of the corpus is a turn of a user of its own, replayed through `memory.remember` without a language
model: what the user said as a message, what a tool said as its message, what an agent said as its final
answer. Chatter counts as stored when any record is left of it. A statement counts as kept when a record of it
holds the words that matter (`holds`); a retraction when what had been said `before` is no longer known.
"""

import argparse

from junk.replay import judged, read, table

from supervisor_memory import Settings, SupervisorMemory

SETS = {"junk": ("en", "zh"), "second": ("second_en", "second_zh"), "third": ("third_en", "third_zh")}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("--set", choices=SETS, default="junk")
    parser.add_argument("--show", action="store_true", help="also show each turn that went wrong")
    options = parser.parse_args()
    lines = [line for name in SETS[options.set] for line in read(name)]
    with SupervisorMemory(settings=Settings(backend="in_memory")) as memory:
        results = judged(memory, lines)
    print(table(results))
    for each in results if options.show else ():
        if not each.is_right:
            print(f"{'missed' if each.line.keep else 'stored'} [{each.line.about}] {each.line.text!r}")
            print(f"    {each.stored}")


if __name__ == "__main__":
    main()
