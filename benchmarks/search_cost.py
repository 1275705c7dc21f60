"""What a whole search costs beside the least it could: a product of all vectors and the question's.

Run: python benchmarks/search_cost.py [--full] [--rounds 9] [--records N …] [--torch PYTHON] [--before FOLDER]
                                    [--json FILE]

`memory.search` with the default recipe over sqlite: meaning, words, place in the conversation, fusion,
ranking, and the records read and checked. Beside it, of the same namespace, our search by vectors alone and
a scan by numpy in float32, which says which rows are nearest and hands out nothing. Half of the records are
utterances with a speaker, a session and a time, half are facts. Nobody embeds: the vectors are made
beforehand and looked up. Who asks alternates, a block each, in one process with one thread of BLAS; figures
are medians over the rounds, in milliseconds of CPU time of the process, and ratios are of pairs.

Then a note: `memory.recall` over as many records of one tier, and over a few hundred records beside so many
session messages, all with vectors. With --before, a checkout of another commit recalls over one tier as well,
in a process of its own, and the target is for the two tiers beside that. And what a search costs whatever
the number of records, by a line through 1,000 and 10,000.

Then the embedding of a question: all-MiniLM-L6-v2 as we run it, on one thread, beside sentence-transformers
on torch, one thread too, where that is installed. It weighs too much to be installed for this alone: name an
interpreter that has it with --torch or BENCHMARK_TORCH. Where the published weights were never downloaded,
torch runs a model of the same shape with weights at random, which takes as long.

    python3 -m venv /tmp/torch
    /tmp/torch/bin/pip install torch --index-url https://download.pytorch.org/whl/cpu
    /tmp/torch/bin/pip install sentence-transformers -e '.[local]' --group dev
"""

import argparse
import json
import os
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, nullcontext
from dataclasses import asdict, dataclass
from functools import partial
from importlib.metadata import version
from pathlib import Path
from typing import Any, Final

import numpy as np
import numpy.typing as npt
from peers import Line, machine

import supervisor_memory
from supervisor_memory import Settings, SupervisorMemory
from supervisor_memory.embedding.minilm import TOKENS, MiniLM
from supervisor_memory.embedding.protocol import Calibration
from supervisor_memory.errors import EmbedderNotInstalled
from supervisor_memory.model.records import SESSION_FAMILY, Filter, Query, Record, Scope, Source, new_id
from supervisor_memory.stores.protocol import Change, Commit

DIMENSION: Final = 384
LIMIT: Final = 10
BESIDE: Final = 300  # records beside session messages
TOGETHER: Final = 500  # written in a commit
QUESTIONS: Final = 200
SESSION: Final = 20  # utterances
VOCABULARY: Final = 20_000
SPEAKERS: Final = ("Ann", "Ben")
ROLES: Final = ("user", "assistant")
FIRST: Final = 1_735_689_600.0  # 2025-01-01
AT_MOST: Final = 15.0  # times the scan of 10,000
TWO_TIERS_AT_MOST: Final = 1.5  # times as many records in one, at the commit before there were two
AT_LEAST: Final = 2.5  # times as fast as torch
SECONDS_OF_A_BLOCK: Final = 0.15
THREADS: Final = "OPENBLAS_NUM_THREADS"
PATIENCE_MS: Final = 60_000  # a loaded machine must change no answer
USER: Final = "reader"
CALIBRATION: Final = Calibration(unrelated=0.1, same=0.6)

Vectors = npt.NDArray[np.float32]
Ask = Callable[[int], object]
"""Ask the question of that number."""
Block = Callable[[int, int], float]
"""Seconds of CPU for a question, of so many in the round of that number."""


@dataclass(frozen=True)
class Texts:
    """Made-up texts and questions, whose words are as rare and as frequent as those of a language are.

    Source: Zipf, Human Behavior and the Principle of Least Effort, 1949.
    """

    records: Sequence[str]
    questions: Sequence[str]
    vectors: Vectors
    asked: Vectors

    @classmethod
    def made(cls, records: int) -> "Texts":
        random = np.random.default_rng(7)
        frequency = 1 / np.arange(1, VOCABULARY + 1)
        words = random.choice(VOCABULARY, size=(records, 14), p=frequency / frequency.sum())
        texts = [f"{' '.join(map(_word, row))} {_word(VOCABULARY + at)}" for at, row in enumerate(words)]
        meant = random.choice(records, size=QUESTIONS)
        questions = [
            f"{' '.join(map(_word, words[row, 3:9]))} {_word(at)}?" for at, row in enumerate(meant.tolist())
        ]
        vectors = _units(random.standard_normal((records, DIMENSION), dtype=np.float32))
        noise = random.standard_normal((QUESTIONS, DIMENSION), dtype=np.float32) / DIMENSION**0.5
        return cls(texts, questions, vectors, _units(vectors[meant] + noise))


def _word(number: int) -> str:
    """A word of its own for each number, made of syllables."""
    word = ""
    while number or not word:
        number, syllable = divmod(number, 70)
        word += "bdfghjklmnprst"[syllable // 5] + "aeiou"[syllable % 5]
    return word


def _units(rows: Vectors) -> Vectors:
    return rows / np.linalg.norm(rows, axis=1, keepdims=True)


@dataclass(frozen=True)
class LooksUp:
    """An embedder that knows the vectors of all texts it will be given."""

    known: Mapping[str, Vectors]
    fingerprint: str = "looked-up"
    dimension: int = DIMENSION
    calibration: Calibration = CALIBRATION
    languages: tuple[str, ...] = ("*",)

    def embed_query(self, text: str) -> Vectors:
        return self.known[text]

    def embed_documents(self, texts: Sequence[str]) -> Vectors:
        return np.stack([self.known[text.rpartition(": ")[2]] for text in texts])


def sides(texts: Texts, memory: SupervisorMemory) -> dict[str, Ask]:
    """Who is asked, ours first and the scan last; each finds the same nearest vector."""
    where = Filter(user_id=USER)

    def search(number: int) -> object:
        return memory.search(texts.questions[number], user_id=USER, limit=LIMIT, threshold=0.0)

    def by_vectors(number: int) -> object:
        query = Query(text="", where=where, now=FIRST, vector=texts.asked[number], embedder="looked-up")
        return memory.backend.search(query, limit=LIMIT)

    def scan(number: int) -> object:
        cosines = texts.vectors @ texts.asked[number]
        nearest = np.argpartition(cosines, len(cosines) - LIMIT)[-LIMIT:]
        return nearest[np.argsort(-cosines[nearest])]

    return {"ours": search, "vectors": by_vectors, "numpy": scan}


def filled(texts: Texts, folder: Path, *, some: slice = slice(None)) -> SupervisorMemory:
    """A memory of one user that holds some of the records: sessions of utterances, and as many facts."""
    known = dict(zip((*texts.records, *texts.questions), (*texts.vectors, *texts.asked), strict=True))
    settings = Settings(
        backend="sqlite", path=folder, search_timeout_ms=PATIENCE_MS, write_timeout_ms=PATIENCE_MS
    )
    memory = SupervisorMemory(settings, embedder=LooksUp(known))
    entries: list[str | dict[str, object]] = [
        text
        if at % 2
        else {
            "content": text,
            "speaker": SPEAKERS[at // 2 % 2],
            "session_id": f"session-{at // 2 // SESSION}",
            "created_at": FIRST + 60 * at,
        }
        for at, text in enumerate(texts.records[some])
    ]
    memory.add_many(entries, user_id=USER)
    return memory


def said(texts: Texts, memory: SupervisorMemory, messages: int) -> None:
    """Keep the first texts as session messages of a user and an assistant, with their vectors."""
    records = [
        Record(
            id=new_id(),
            namespace=Scope(USER).namespace(SESSION_FAMILY),
            content=text,
            kind="task-traces",
            layer="history",
            created_at=FIRST + 60 * at,
            updated_at=FIRST + 60 * at,
            source=Source(
                ("user", "agent")[at % 2], session_id=f"said-{at // SESSION}", speaker=ROLES[at % 2]
            ),
            embedder="looked-up",
            vector=texts.vectors[at],
        )
        for at, text in enumerate(texts.records[:messages])
    ]
    for start in range(0, messages, TOGETHER):
        memory.backend.batch(Commit(tuple(map(Change, records[start : start + TOGETHER]))))


@contextmanager
def one_tier_of(checkout: Path, records: int) -> Iterator[Block]:
    """Let the package in another folder recall over one tier, in a process of its own."""
    path = os.pathsep.join([str(checkout), os.environ.get("PYTHONPATH", "")])
    command = [sys.executable, __file__, f"--one-tier={records}"]
    with subprocess.Popen(
        command,
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
        env=os.environ | {"PYTHONPATH": path},
    ) as process:
        asks, answers = process.stdin, process.stdout
        assert asks is not None
        assert answers is not None

        def block(calls: int, turn: int) -> float:
            print(calls, turn, file=asks, flush=True)
            return float(answers.readline())

        if not Path(answers.readline().strip()).is_relative_to(checkout.resolve()):
            raise SystemExit(f"{checkout} has no package supervisor_memory that can be imported")
        yield block
        asks.close()


def recall_when_asked(records: int) -> None:
    """Recall over one tier for `one_tier_of`: a line for each block that a line asks for."""
    texts, scope = Texts.made(records + BESIDE), Scope(USER)

    def recall(number: int) -> object:
        return memory.recall([], scope, query=texts.questions[number])

    with (
        tempfile.TemporaryDirectory() as folder,
        filled(texts, Path(folder), some=slice(records)) as memory,
    ):
        print(Path(supervisor_memory.__file__).resolve(), flush=True)
        for line in sys.stdin:
            calls, turn = map(int, line.split())
            print(_block(recall, calls, turn), flush=True)


def two_tiers(messages: int, *, rounds: int, before: Path | None) -> Line:
    """Let a memory with so many records, and one with so many session messages and a few records, recall."""
    texts = Texts.made(messages + BESIDE)
    scope, first, last = Scope(USER), slice(messages), slice(messages, None)
    with (
        tempfile.TemporaryDirectory() as one,
        tempfile.TemporaryDirectory() as two,
        filled(texts, Path(one), some=first) as records,
        filled(texts, Path(two), some=last) as both,
        nullcontext() if before is None else one_tier_of(before, messages) as earlier,
    ):
        said(texts, both, messages)
        times = paired(
            {
                "both": lambda at: both.recall([], scope, query=texts.questions[at]),
                "one": lambda at: records.recall([], scope, query=texts.questions[at]),
            },
            rounds=rounds,
            elsewhere={} if earlier is None else {"before": earlier},
        )
    beside = "one" if before is None else "before"
    ratios = sorted(two / one for two, one in zip(times["both"], times[beside], strict=True))
    middle = {name: 1_000 * statistics.median(column) for name, column in times.items()}
    ratio, judged = statistics.median(ratios), messages == 10_000 and before is not None
    earlier_told = f", in {before} {middle['before']:.2f}" if before is not None else ""
    return Line(
        f"a note, {BESIDE} records and {messages:,} session messages",
        {"messages": messages, "ratio": ratio, **{f"{name}_ms": value for name, value in middle.items()}},
        f"{ratio:.2f} times {messages:,} records{' before' if before else ''} "
        f"({ratios[0]:.2f} to {ratios[-1]:.2f} in {rounds} rounds): "
        f"{middle['both']:.2f} ms, records alone {middle['one']:.2f}{earlier_told}",
        f"at most {TWO_TIERS_AT_MOST:g} times" if judged else "",
        ratio <= TWO_TIERS_AT_MOST if judged else None,
    )


def fixed(few: Line, many: Line) -> Line:
    """What a search costs whatever the number of records, by a line through two numbers of them."""
    (small, cheap), (large, dear) = ((each.values["records"], each.values["ours_ms"]) for each in (few, many))
    rest = (cheap * large - dear * small) / (large - small)
    told = f"{rest:.2f} ms of {cheap:.2f} at {small:,} records"
    return Line("fixed part of a whole search", {"fixed_ms": rest, "ours_ms": cheap}, told)


def compare(records: int, *, rounds: int) -> Line:
    """Fill a memory and let all sides answer in turn."""
    texts = Texts.made(records)
    with tempfile.TemporaryDirectory() as folder, filled(texts, Path(folder)) as memory:
        asked = sides(texts, memory)
        times = paired(asked, rounds=rounds)
    middle = {name: 1_000 * statistics.median(column) for name, column in times.items()}
    ratios = sorted(ours / scan for ours, scan in zip(times["ours"], times["numpy"], strict=True))
    ratio = statistics.median(ratios)
    judged = records == 10_000
    return Line(
        f"a whole search, {records:,} records",
        {
            **{"records": records, "rounds": rounds, "ratio": ratio},
            **{"ratio_low": ratios[0], "ratio_high": ratios[-1]},
            **{f"{name}_ms": value for name, value in middle.items()},
        },
        f"{ratio:.1f} times the scan ({ratios[0]:.1f} to {ratios[-1]:.1f} in {rounds} rounds): "
        f"{middle['ours']:.2f} ms, by vectors alone {middle['vectors']:.2f}, numpy {middle['numpy']:.3f}",
        f"at most {AT_MOST:g} times" if judged else "",
        ratio <= AT_MOST if judged else None,
    )


def paired(
    asked: Mapping[str, Ask], *, rounds: int, elsewhere: Mapping[str, Block] | None = None
) -> dict[str, list[float]]:
    """Seconds of CPU for one question, of each side in each round; all have been asked before."""
    blocks = {name: partial(_block, ask) for name, ask in asked.items()} | dict(elsewhere or {})
    # The last forty are asked first: rules are compiled when they are first used, and no round repeats
    # these questions while their answers are still kept.
    seconds = {name: block(40, -1) for name, block in blocks.items()}
    sizes = {
        name: max(1, min(QUESTIONS, int(SECONDS_OF_A_BLOCK / max(each, 1e-6))))
        for name, each in seconds.items()
    }
    times: dict[str, list[float]] = {name: [] for name in blocks}
    for turn in range(rounds):
        for name, block in blocks.items():
            times[name].append(block(sizes[name], turn))
    return times


def _block(ask: Ask, calls: int, turn: int) -> float:
    began = time.process_time()
    for number in range(calls):
        ask((turn * calls + number) % QUESTIONS)
    return (time.process_time() - began) / calls


def embedding_by(python: str, *, rounds: int) -> Line:
    """The line of `embedding`, by another interpreter.

    Raises:
        subprocess.CalledProcessError: it failed, and has said why.
    """
    command = [python, __file__, "--embedding-alone", f"--rounds={rounds}"]
    return Line(**json.loads(subprocess.run(command, stdout=subprocess.PIPE, check=True).stdout))


def embedding(*, rounds: int) -> Line:
    """The embedding of a question by us and by torch."""
    name, target = "embedding of a question, beside sentence-transformers", f"at least {AT_LEAST:g} x"
    questions = [f"What did Ann say about the trip to Lisbon in week {week}?" for week in range(QUESTIONS)]
    try:
        ours = MiniLM()
        ours.embed_query(questions[0])
    except EmbedderNotInstalled:
        return Line(name, {"skipped": "the extra local is not installed"}, "left out: no extra local", target)
    peer = _torch()
    if isinstance(peer, str):
        alone = paired({"ours": lambda at: ours.embed_query(questions[at])}, rounds=rounds)["ours"]
        took = 1_000 * statistics.median(alone)
        return Line(name, {"skipped": peer, "ours_ms": took}, f"{took:.2f} ms; {peer}", target)
    times = paired(
        {"ours": lambda at: ours.embed_query(questions[at]), "peer": lambda at: peer(questions[at])},
        rounds=rounds,
    )
    mine, theirs = (1_000 * statistics.median(times[side]) for side in ("ours", "peer"))
    ratio = statistics.median(b / a for a, b in zip(times["ours"], times["peer"], strict=True))
    return Line(
        name,
        {"ours_ms": mine, "peer_ms": theirs, "ratio": ratio},
        f"{ratio:.2f} x as fast: {mine:.2f} ms beside {theirs:.2f}, {_torch_versions()}",
        target,
        ratio >= AT_LEAST,
    )


def _torch() -> Callable[[str], object] | str:
    """The same model on torch with one thread; or why there is none."""
    try:
        import torch
        from sentence_transformers import SentenceTransformer
    except ImportError:
        return "sentence-transformers is not installed"
    torch.set_num_threads(1)
    try:
        model = SentenceTransformer(
            "sentence-transformers/all-MiniLM-L6-v2", device="cpu", local_files_only=True
        )
    except OSError:
        model = _of_its_shape()
    return lambda text: model.encode(text, show_progress_bar=False)


def _of_its_shape() -> Any:
    """What sentence-transformers would load, but for the weights."""
    from sentence_transformers import SentenceTransformer
    from sentence_transformers.sentence_transformer.modules import Normalize, Pooling, Transformer
    from transformers import BertConfig, BertModel, BertTokenizerFast

    from supervisor_memory.language.vocabulary import word_pieces

    shape = BertConfig(hidden_size=DIMENSION, num_hidden_layers=6, intermediate_size=4 * DIMENSION)
    with tempfile.TemporaryDirectory() as folder, word_pieces() as vocabulary:
        BertModel(shape).save_pretrained(folder)
        BertTokenizerFast(str(vocabulary), do_lower_case=True).save_pretrained(folder)
        return SentenceTransformer(
            modules=[Transformer(folder, max_seq_length=TOKENS), Pooling(DIMENSION), Normalize()],
            device="cpu",
        )


def _torch_versions() -> str:
    return ", ".join(f"{name} {version(name)}" for name in ("torch", "sentence-transformers", "numpy"))


def lines(options: argparse.Namespace) -> Iterator[Line]:
    sizes = options.records or [100, 1_000, 10_000, *((100_000, 1_000_000) if options.full else ())]
    told: dict[int, Line] = {}
    for records in sizes:
        told[records] = compare(records, rounds=options.rounds)
        yield told[records]
    if {1_000, 10_000} <= told.keys():
        yield fixed(told[1_000], told[10_000])
    yield two_tiers(min(10_000, max(sizes)), rounds=options.rounds, before=options.before)
    yield embedding_by(options.torch, rounds=options.rounds)


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--full", action="store_true", help="100,000 and 1,000,000 records too: half an hour")
    parser.add_argument("--rounds", type=int, default=9)
    parser.add_argument("--records", type=int, nargs="+", help="these numbers of records, at least 10")
    parser.add_argument(
        "--torch", default=os.environ.get("BENCHMARK_TORCH", sys.executable), help="see above"
    )
    parser.add_argument("--before", type=Path, help="a checkout of another commit; see above")
    parser.add_argument("--json", type=Path, help="append each line to this file, as JSON")
    parser.add_argument("--embedding-alone", action="store_true", help=argparse.SUPPRESS)
    parser.add_argument("--one-tier", type=int, help=argparse.SUPPRESS)
    options = parser.parse_args()
    if THREADS not in os.environ:  # is read once, when numpy is loaded
        os.execve(sys.executable, [sys.executable, *sys.argv], os.environ | {THREADS: "1"})
    if options.one_tier is not None:
        recall_when_asked(options.one_tier)
        return
    if options.embedding_alone:
        print(json.dumps(asdict(embedding(rounds=options.rounds))))
        return
    told: dict[str, Any] = {"machine": machine(), "at": time.strftime("%Y-%m-%dT%H:%MZ", time.gmtime())}
    print(f"{told['machine']}\n")
    _append(options.json, told)
    for line in lines(options):
        judged = {None: "", True: ", reached", False: ", NOT reached"}[line.is_met]
        target = f"   (target: {line.target}{judged})" if line.target else ""
        print(f"{line.name}\n    {line.told}{target}", flush=True)
        _append(options.json, asdict(line))


def _append(path: Path | None, value: Mapping[str, Any]) -> None:
    if path is not None:
        with path.open("a", encoding="utf-8") as file:
            file.write(json.dumps(value, ensure_ascii=False) + "\n")


if __name__ == "__main__":
    main()
