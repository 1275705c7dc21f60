"""A matrix answers like a dictionary of vectors and numpy, however it came to hold them."""

import importlib
import sys
import threading
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import numpy.typing as npt
import pytest
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, rule

from supervisor_memory.stores import matrix as matrix_module
from supervisor_memory.stores import sieve
from supervisor_memory.stores.matrix import Matrix
from tests.breadth import examples

pytest.importorskip("numkong")

DIMENSION = 96
Vectors = npt.NDArray[np.float32]


def units(vectors: npt.ArrayLike) -> Vectors:
    values = np.asarray(vectors, dtype=np.float64)
    units: Vectors = (values / np.linalg.norm(values, axis=-1, keepdims=True)).astype(np.float32)
    return units


def exact(vectors: Vectors, query: Vectors) -> npt.NDArray[np.float64]:
    return np.clip(vectors.astype(np.float64) @ query.astype(np.float64), -1.0, 1.0)


@pytest.fixture(params=["by bytes", "by halves of bytes", "by all numbers"])
def read(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> str:
    """What is read to find the best rows; all answers are the same."""
    if request.param == "by all numbers":
        monkeypatch.setattr(matrix_module, "kernels", lambda: None)
    if request.param == "by halves of bytes":
        monkeypatch.setattr(sieve, "_HALVED_FROM", 0)
    return str(request.param)


@pytest.fixture(autouse=True)
def _kernel_of_this_test() -> Iterator[None]:
    sieve.kernels.cache_clear()
    yield
    sieve.kernels.cache_clear()


def random(count: int, dimension: int = 384) -> Vectors:
    return units(np.random.default_rng(3).standard_normal((count, dimension)))


def clustered(count: int) -> Vectors:
    generator = np.random.default_rng(4)
    centres = generator.standard_normal((20, 384))
    return units(centres[generator.integers(0, 20, count)] + 0.3 * generator.standard_normal((count, 384)))


def nearly_the_same(count: int) -> Vectors:
    """Nearer to each other than int8 can tell."""
    generator = np.random.default_rng(5)
    return units(generator.standard_normal(384) + 0.002 * generator.standard_normal((count, 384)))


def narrow(count: int) -> Vectors:
    """All in one direction, as of embedders whose unrelated texts have cosines of 0.7 and more; one number
    outweighs the rest."""
    generator = np.random.default_rng(6)
    values = 0.05 * generator.standard_normal((count, 384))
    values[:, 7] += 1.0
    return units(values)


def sparse(count: int) -> Vectors:
    """Few numbers that are not zero, as of embedders that count words."""
    generator = np.random.default_rng(8)
    values = np.zeros((count, 384))
    np.put_along_axis(
        values, generator.integers(0, 384, (count, 3)), generator.choice([-1, 1], (count, 3)), 1
    )
    return units(values)


@pytest.mark.one_in(5)
@pytest.mark.parametrize("made_by", [random, clustered, nearly_the_same, narrow, sparse])
@pytest.mark.usefixtures("read")
def test_the_nearest_rows_are_the_nearest_whatever_the_vectors(made_by: Callable[[int], Vectors]) -> None:
    vectors = made_by(9_000)
    matrix = Matrix.of(np.arange(9_000) * 3, vectors.copy())
    generator = np.random.default_rng(7)
    for row in generator.integers(0, 9_000, 8):
        query = units(vectors[row] + 0.02 * generator.standard_normal(384))
        truth = exact(vectors, query)
        keys, values = matrix.nearest(query, 10)
        assert np.allclose(values, np.sort(truth)[::-1][:10], atol=1e-6)
        assert np.allclose(truth[keys // 3], values, atol=1e-6)
        assert (np.diff(values) <= 0).all()


@pytest.mark.one_in(5, shift=1)
@pytest.mark.usefixtures("read")
@pytest.mark.parametrize("made_by", [random, clustered, nearly_the_same, narrow, sparse])
def test_approximate_cosines_keep_their_bound_and_their_place_below_the_best(
    made_by: Callable[[int], Vectors],
) -> None:
    vectors = made_by(9_000)
    matrix = Matrix.of(range(9_000), vectors.copy())
    for row in range(0, 9_000, 900):
        query = units(vectors[row] + 0.02 * np.random.default_rng(row).standard_normal(384))
        truth = exact(vectors, query)
        keys, values = matrix.cosines(query, exact=30)
        assert keys.tolist() == list(range(9_000))
        best = np.argsort(-truth, kind="stable")[:30]
        assert np.allclose(values[best], truth[best], atol=1e-6)
        assert (np.sort(values)[::-1][:30] == np.sort(values[best])[::-1]).all()
        assert np.abs(values - truth).max() < 0.04
        assert np.abs(matrix.cosines(query)[1] - truth).max() < 1e-6


@pytest.mark.parametrize("halved_from", [0, 1 << 24])
@pytest.mark.parametrize("finely", [True, False])
@pytest.mark.parametrize("dimension", [1, 2, 33, 60, 384])
def test_the_bound_of_the_codes_holds_for_vectors_of_any_length(
    dimension: int, finely: bool, halved_from: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sieve, "_HALVED_FROM", halved_from)
    multiply = sieve.kernels()
    assert multiply is not None
    generator = np.random.default_rng(1)
    rows = (generator.standard_normal((1_500, dimension)) * generator.uniform(0, 9, (1_500, 1))).astype("f4")
    rows[3] = 0.0
    rows[4:40] = np.rint(generator.uniform(-3, 3, (36, dimension)))
    rows[40 : 40 + dimension] = np.eye(dimension)
    coarse = sieve.Sieve(multiply, dimension)
    for query in (rows[1], rows[2] * 5, rows[40], rows[41] - rows[40] / 2):
        values, off = coarse.cosines(
            rows, query, lambda some, query: pytest.fail("all rows are encoded"), finely=finely
        )
        assert (np.abs(values - rows.astype(np.float64) @ query) <= off).all()


def test_few_rows_behind_the_codes_are_compared_as_they_are_and_many_are_packed_with_the_last() -> None:
    multiply = sieve.kernels()
    assert multiply is not None
    rows, coarse, asked = random(3_000), sieve.Sieve(multiply, 384), list[int]()

    def exactly(some: Any, query: Any) -> Any:
        asked.append(len(some))
        return some @ query

    for count in (1_500, 2_000, 3_000):
        values, off = coarse.cosines(rows[:count], rows[0], exactly, finely=True)
        assert (np.abs(values - rows[:count] @ rows[0]) <= off).all()
    assert asked == [500]
    assert [(block.start, block.size) for block in coarse._blocks] == [(0, 3_000)]


def test_turned_rows_are_as_far_from_each_other_as_before() -> None:
    for dimension in (1, 2, 33, 384):
        rows = random(50, dimension)
        signs = np.random.default_rng(2).choice([-1.0, 1.0], (2, dimension)).astype(np.float32)
        turned = sieve._turned(rows, signs)
        assert np.allclose(turned @ turned.T, rows @ rows.T, atol=1e-5)


@pytest.mark.usefixtures("read")
def test_of_equal_rows_the_later_ones_come_first() -> None:
    vectors = random(6_000)
    vectors[[5_000, 17, 444, 2_999]] = vectors[0]
    matrix = Matrix.of(np.arange(6_000)[::-1], vectors.copy())
    assert matrix.nearest(vectors[0], 4)[0].tolist() == [5_999, 5_982, 5_555, 3_000]
    assert (matrix.nearest(vectors[0], 5)[1] == 1.0).all()


@pytest.mark.usefixtures("read")
def test_more_than_there_are_are_all_and_none_are_none() -> None:
    vectors = random(6_000)
    matrix = Matrix.of(range(6_000), vectors.copy())
    assert sorted(matrix.nearest(vectors[9], 7_000)[0].tolist()) == list(range(6_000))
    for empty in (
        matrix.nearest(vectors[9], 0),
        Matrix(384).nearest(vectors[9], 5),
        Matrix(4).cosines(units([1, 0, 0, 0])),
    ):
        assert [len(each) for each in empty] == [0, 0]
    assert Matrix.of([], np.empty((0, 8), dtype=np.float32)).dimension == 8


def test_keys_that_were_handed_out_stay_as_they_were() -> None:
    vectors = random(40)
    matrix = Matrix.of(range(40), vectors.copy())
    keys, _ = matrix.cosines(vectors[0])
    matrix.drop(39)
    matrix.put(77, vectors[1])
    matrix.drop(0)
    for key in range(100, 180):
        matrix.put(key, vectors[2])
    assert keys.tolist() == list(range(40))
    with pytest.raises(ValueError, match="read-only"):
        keys[0] = 5


def test_a_matrix_of_a_million_would_take_little_beside_its_vectors() -> None:
    count, vectors = 2**14, random(2**14)
    matrix = Matrix.of(np.arange(count), vectors)
    matrix.nearest(vectors[0], 10)
    matrix.cosine(5, vectors[0])
    assert matrix.nbytes / count < 1_536 + 384 + 160


@pytest.mark.usefixtures("read")
def test_what_changed_since_the_codes_were_made_is_found_by_what_it_is_now(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(sieve, "_MOST_IN_A_BLOCK", 4_096)
    vectors = random(9_000)
    matrix = Matrix.of(range(7_000), vectors[:7_000].copy())
    current = dict(enumerate(vectors[:7_000]))
    generator = np.random.default_rng(6)
    for step in range(6):
        for key in generator.integers(0, 8_000, 700).tolist():  # enough of them that blocks are packed anew
            current[key] = vectors[generator.integers(0, 9_000)]
            matrix.put(key, current[key])
        for key in generator.choice(list(current), 300, replace=False).tolist():
            del current[key]
            matrix.drop(key)
        query = units(vectors[step] + 0.05 * generator.standard_normal(384))
        truth = {key: float(vector @ query) for key, vector in current.items()}
        best = sorted(truth.values(), reverse=True)[:20]
        keys, found = matrix.nearest(query, 20)
        assert np.allclose(found, best, atol=1e-6)
        assert np.allclose([truth[key] for key in keys.tolist()], best, atol=1e-6)


def test_codes_are_made_when_a_second_search_pays_for_them_and_no_sooner() -> None:
    matrix = Matrix.of(range(8_000), random(8_000))
    before = matrix.nbytes
    matrix.cosines(random(1)[0])
    matrix.nearest(random(1)[0], 10)  # the first one in a process has no time for it
    assert matrix.nbytes == before
    matrix.nearest(random(1)[0], 10)
    assert matrix.nbytes >= before + 8_000 * 384


def test_without_numkong_there_is_no_kernel(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "numkong", None)
    assert sieve.kernels() is None


def test_a_kernel_that_multiplies_wrongly_is_not_used(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    def overflows(query: object, rows: object) -> npt.NDArray[np.int16]:
        return np.asarray(query, dtype=np.int16) @ np.asarray(rows, dtype=np.int16).T

    numkong = importlib.import_module("numkong")
    monkeypatch.setattr(numkong, "dots_pack", lambda rows, dtype=None: rows)
    monkeypatch.setattr(numkong, "dots_packed", overflows)
    assert sieve.kernels() is None
    assert "multiplies wrongly" in caplog.text


def test_numpy_of_before_vecdot_gives_the_same(monkeypatch: pytest.MonkeyPatch) -> None:
    vectors = random(300)
    new = Matrix.of(range(300), vectors.copy()).cosines(vectors[5])[1]
    monkeypatch.setattr(matrix_module, "_VECDOT", None)
    assert np.allclose(Matrix.of(range(300), vectors.copy()).cosines(vectors[5])[1], new, atol=1e-6)


def test_threads_that_search_while_others_write_see_whole_rows() -> None:
    """Every row is one of two vectors, so that any other cosine would be of a torn row or of a wrong key."""
    ends = random(2)
    matrix = Matrix.of(range(6_000), np.repeat(ends[:1], 6_000, axis=0))
    allowed = [float(ends[0] @ ends[0]), float(ends[1] @ ends[0])]
    wrong: list[float] = []
    done = threading.Event()

    def search() -> None:
        while not done.is_set():
            _, values = matrix.nearest(ends[0], 50)
            wrong.extend(v for v in values.tolist() if min(abs(v - a) for a in allowed) > 1e-5)

    searching = [threading.Thread(target=search) for _ in range(2)]
    for thread in searching:
        thread.start()
    generator = np.random.default_rng(2)
    for key in generator.integers(0, 6_000, 1_500).tolist():
        if key % 3:
            matrix.put(key, ends[key % 2])
        else:
            matrix.drop(key)
    done.set()
    for thread in searching:
        thread.join()
    assert not wrong


class LikeADictionary(RuleBasedStateMachine):
    """Few keys, small matrices that grow, shrink and are scanned by codes from the first row on."""

    @initialize(
        start=st.integers(0, 40), sieved=st.booleans(), halved_from=st.sampled_from([0, 5_000, 1 << 24])
    )
    def begin(self, start: int, *, sieved: bool, halved_from: int) -> None:
        self.patch = pytest.MonkeyPatch()
        self.patch.setattr(sieve, "_HALVED_FROM", halved_from)
        if sieved:
            self.patch.setattr(matrix_module, "_SIEVED_FROM", 1)
            self.patch.setattr(matrix_module, "_FIRST_LOOK", 1)
            self.patch.setattr(matrix_module, "_MOST_COMPARED", 1)
            self.patch.setattr(sieve, "_PACKED_FROM", 4)
            self.patch.setattr(sieve, "_MOST_IN_A_BLOCK", 12)
        self.pool = random(64, DIMENSION)
        self.known = {key: self.pool[key] for key in range(start)}
        values = np.array([*self.known.values()], dtype=np.float32).reshape(-1, DIMENSION)
        self.matrix = Matrix.of(list(self.known), values)

    def teardown(self) -> None:
        if hasattr(self, "patch"):
            self.patch.undo()

    @rule(key=st.integers(0, 50), vector=st.integers(0, 63))
    def put(self, key: int, vector: int) -> None:
        self.known[key] = self.pool[vector]
        self.matrix.put(key, self.pool[vector])

    @rule(first=st.integers(100, 200), count=st.integers(1, 40))
    def put_many(self, first: int, count: int) -> None:
        for key in range(first, first + count):
            self.put(key, key % 64)

    @rule(key=st.integers(0, 240))
    def drop(self, key: int) -> None:
        self.known.pop(key, None)
        self.matrix.drop(key)

    @rule(vector=st.integers(0, 63), k=st.integers(1, 30))
    def ask_for_the_nearest(self, vector: int, k: int) -> None:
        query = units(self.pool[vector] + 0.2 * self.pool[(vector + 1) % 64])
        keys, values = self.matrix.nearest(query, k)
        truth = {key: float(exact(v[None], query)[0]) for key, v in self.known.items()}
        assert np.allclose(values, sorted(truth.values(), reverse=True)[:k], atol=1e-6)
        assert np.allclose([truth[key] for key in keys.tolist()], values, atol=1e-6)
        assert len(set(keys.tolist())) == len(keys)

    @rule(vector=st.integers(0, 63), best=st.integers(0, 30))
    def ask_for_all(self, vector: int, best: int) -> None:
        query = self.pool[vector]
        truth = {key: float(exact(v[None], query)[0]) for key, v in self.known.items()}
        keys, values = self.matrix.cosines(query, exact=best)
        found = dict(zip(keys.tolist(), values.tolist(), strict=True))
        assert found.keys() == truth.keys()
        assert all(abs(found[key] - truth[key]) < 0.04 for key in truth)
        for key in sorted(truth, key=lambda key: -truth[key])[:best]:
            assert abs(found[key] - truth[key]) < 1e-6

    @invariant()
    def it_holds_what_the_dictionary_holds(self) -> None:
        if not hasattr(self, "matrix"):
            return
        assert len(self.matrix) == len(self.known)
        keys, values = self.matrix.cosines(self.pool[0])
        found = dict(zip(keys.tolist(), values.tolist(), strict=True))
        assert found.keys() == self.known.keys()
        for key, vector in self.known.items():
            assert abs(found[key] - exact(vector[None], self.pool[0])[0]) < 1e-6
        assert self.matrix.cosine(999, self.pool[0]) is None
        for key in list(self.known)[:2]:
            assert self.matrix.cosine(key, self.pool[0]) == pytest.approx(found[key], abs=1e-6)


TestLikeADictionary = LikeADictionary.TestCase
TestLikeADictionary.settings = settings(max_examples=examples(60), stateful_step_count=30, deadline=None)
