"""What retrieval is compared with, and ours as the comparison uses it."""

import json
from pathlib import Path
from typing import Literal

import numpy as np

from benchmarks.quality.corpus import Corpus, Item, Question
from benchmarks.quality.systems import OURS, ablations, systems
from benchmarks.quality.vectors import Remembered
from supervisor_memory.embedding.hashing import HashingEmbedder
from supervisor_memory.embedding.protocol import Vector
from tests import programs
from tests.cases import every_case

ROOT = Path(__file__).parents[2]
CORPUS = Corpus(
    "teas",
    (
        Item("1", "The kettle is on", "Ann", 1_700_000_000.0),
        Item("2", "Oolong for me, please", "Ben", 1_700_000_030.0),
        Item("3", "And there is some cake", "Ann", 1_700_000_060.0),
    ),
    (Question("Who wants oolong?", "single-hop", ("2",)),),
    asked=1_700_100_000.0,
)


class Counting(HashingEmbedder):
    """An embedder that keeps what it embeds, texts and questions."""

    def __init__(self) -> None:
        super().__init__()
        self.given: list[str] = []

    def embed_query(self, text: str) -> Vector:
        self.given.append(text)
        return super().embed_query(text)


@every_case("backend", ["in_memory", "sqlite"])
def test_every_system_finds_the_words_of_the_question(backend: Literal["in_memory", "sqlite"]) -> None:
    embedder = HashingEmbedder()
    measured = systems(embedder, backend=backend) | ablations(embedder, backend=backend)
    assert next(iter(measured)) == OURS
    for name, system in measured.items():
        with system(CORPUS) as search:
            found = search("Who wants oolong?", 2)
            assert (found[0], len(set(found))) == ("2", 2), name


def test_a_search_gives_as_many_as_there_are() -> None:
    for name, system in systems(HashingEmbedder(), backend="in_memory").items():
        with system(CORPUS) as search:
            assert sorted(search("nothing of the kind", 10)) == ["1", "2", "3"], name


def test_the_speaker_is_part_of_what_is_read_unless_the_name_says_otherwise() -> None:
    measured = systems(None, backend="in_memory")
    with measured["BM25"](CORPUS) as told, measured["BM25, text alone"](CORPUS) as untold:
        assert told("Ben", 1) == ["2"]
        assert untold("Ben", 1) == ["1"]  # nothing fits, so the order stays


def test_without_an_embedder_there_are_no_dense_systems() -> None:
    assert list(systems(None, backend="in_memory")) == [OURS, "BM25, text alone", "BM25"]


def test_each_text_is_embedded_once() -> None:
    counting = Counting()
    vectors = Remembered(counting)
    for _ in range(2):
        vectors.embed_documents(["a", "b", "a"])
        vectors.embed_query("a")
    assert sorted(counting.given) == ["a", "a", "b"]  # "a" as a text and as a question
    assert np.array_equal(vectors.embed_documents(["b", "a"])[1], vectors.embed_documents(["a"])[0])
    assert vectors.embed_documents([]).shape == (0, vectors.dimension)


def test_the_program_tells_a_table_and_writes_the_figures(tmp_path: Path) -> None:
    turns = [{"id": item.id, "text": item.text, "speaker": item.speaker} for item in CORPUS.items]
    questions = [{"q": "Who wants oolong?", "cat": "single-hop", "evidence": ["2"]}]
    data, figures = tmp_path / "teas_en.json", tmp_path / "figures.json"
    data.write_text(
        json.dumps({"conversations": [{"id": "teas", "turns": turns, "questions": questions}]}),
        encoding="utf-8",
    )
    words = ("--data", data, "--embedder", "none", "--json", figures)
    done = programs.run("benchmarks/quality.py", *words, cwd=ROOT, timeout=120, check=True)
    (measured,) = json.loads(figures.read_text(encoding="utf-8"))
    assert measured["systems"][OURS]["R@1"] == 1.0
    assert measured["systems"]["BM25"]["categories"]["single-hop"]["n"] == 1
    assert measured["answers"][OURS][0]["found"][0] == "2"
    assert f"| {OURS:24} |" in done.stdout
    assert "R@1: 1.000, best other 1.000" in done.stdout
    assert done.stderr == ""
