"""Sentence models in ONNX form, run by onnxruntime without torch."""

import hashlib
import json
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from supervisor_memory.embedding.estimate import Estimating
from supervisor_memory.embedding.extras import load, require
from supervisor_memory.embedding.per_process import PerProcess
from supervisor_memory.embedding.protocol import Calibration, Matrix, Vector, check_vector, prepare
from supervisor_memory.errors import EmbeddingError, SettingsError

CHARACTERS_PER_TOKEN = 32  # generous: even long technical words stay under it
THREADS_AT_MOST = 2


@dataclass(frozen=True)
class Encoder:
    """A loaded model: one text in, one unit vector out.

    Safe to share: `session.run` and `tokenizer.encode` may be called from many threads, and nothing
    here changes after it is made. Texts are run one at a time; on the few threads allowed, batches
    were no faster, and alone a text gets the same vector whatever its neighbours are.
    """

    session: Any
    tokenizer: Any
    tokens: int
    pooling: str
    name: str

    @property
    def dimension(self) -> int:
        return int(self.session.get_outputs()[0].shape[-1])

    def encode(self, text: str) -> Vector:
        encoding = self.tokenizer.encode(prepare(text, characters=CHARACTERS_PER_TOKEN * self.tokens))
        given = {
            "input_ids": encoding.ids,
            "attention_mask": encoding.attention_mask,
            "token_type_ids": encoding.type_ids,
        }
        wanted = [entry.name for entry in self.session.get_inputs()]
        try:
            inputs = {name: np.array([given[name]], dtype=np.int64) for name in wanted}
            output = self.session.run(None, inputs)[0]
        except Exception as error:  # onnxruntime's own exceptions share no base class
            raise EmbeddingError(
                f"{self.name} failed on a text of {len(text)} characters: {error}"
            ) from error
        what = f"the vector of {self.name}"
        return check_vector(self._pool(output[0]), dimension=output.shape[-1], what=what)

    def _pool(self, output: npt.NDArray[np.float32]) -> npt.NDArray[np.float32]:
        """One vector from one per token. No padding, so no mask."""
        if output.ndim == 1:
            return output  # pooled inside the graph
        pooled: Vector = output[0] if self.pooling == "cls" else output.mean(axis=0)
        return pooled


class OnnxFolder(Estimating):
    """A sentence-transformers folder that has its model in ONNX form.

    Reads `onnx/model.onnx` or `model.onnx`, `tokenizer.json` or `vocab.txt`, and, where they exist,
    `sentence_bert_config.json` (length in tokens) and `1_Pooling/config.json` (mean or cls).

    Args:
        folder: Such a folder.
        threads: 1 or 2.
        calibration: How to read its cosines; None: estimated on first need.
        languages: What it is good at; `()`: unknown.

    Raises:
        EmbedderNotInstalled: onnxruntime or tokenizers is missing.
        EmbeddingError: The folder lacks a file, or pools in a way that is not supported here.
    """

    def __init__(
        self,
        folder: str | Path,
        *,
        threads: int = 1,
        calibration: Calibration | None = None,
        languages: tuple[str, ...] = (),
    ) -> None:
        self._folder = Path(folder).expanduser()
        self._threads = allowed_threads(threads)
        require("onnxruntime", "tokenizers", extra="onnx", embedder=f"the ONNX model in {self._folder}")
        model = onnx_file(self._folder)
        if model is None:
            raise EmbeddingError(
                f"{self._folder} has no onnx/model.onnx or model.onnx next to a tokenizer.json or vocab.txt",
                folder=str(self._folder),
            )
        self._model = model
        with model.open("rb") as file:
            revision = hashlib.file_digest(file, "sha256").hexdigest()[:12]
        name = f"{self._folder.resolve().name}@onnx-{revision}"
        super().__init__(name, calibration=calibration, languages=languages)
        self._encoder = PerProcess(self._load)

    @property
    def dimension(self) -> int:
        return self._encoder.get().dimension

    def embed_query(self, text: str) -> Vector:
        return self._encoder.get().encode(text)

    def embed_documents(self, texts: Sequence[str]) -> Matrix:
        encoder = self._encoder.get()
        vectors = [encoder.encode(text) for text in texts]
        return np.stack(vectors) if vectors else np.zeros((0, encoder.dimension), dtype=np.float32)

    def _load(self) -> Encoder:
        tokens = int(_setting(self._folder / "sentence_bert_config.json", "max_seq_length", 256))
        return Encoder(
            session=open_session(self._model, threads=self._threads, embedder=self._name),
            tokenizer=_folder_tokenizer(self._folder, tokens=tokens),
            tokens=tokens,
            pooling=_folder_pooling(self._folder),
            name=self._name,
        )


def onnx_file(folder: Path) -> Path | None:
    """The model file of a folder that `OnnxFolder` can read, or None."""
    if not any((folder / name).is_file() for name in ("tokenizer.json", "vocab.txt")):
        return None
    candidates = (folder / "onnx" / "model.onnx", folder / "model.onnx")
    return next((path for path in candidates if path.is_file()), None)


def allowed_threads(threads: int) -> int:
    """Check a thread count: an embedder sits beside an agent and must not take the machine."""
    if not 1 <= threads <= THREADS_AT_MOST:
        raise SettingsError(
            f"threads is {threads}; an embedder may use 1 to {THREADS_AT_MOST}", threads=threads
        )
    return threads


def open_session(model: Path, *, threads: int, embedder: str) -> Any:
    """Start onnxruntime on a model file."""
    runtime = load("onnxruntime", extra="onnx", embedder=embedder)
    options = runtime.SessionOptions()
    options.intra_op_num_threads = threads
    options.inter_op_num_threads = 1
    options.log_severity_level = 3  # errors only; they are raised as well
    # Spinning threads burn a core while waiting for the next text.
    options.add_session_config_entry("session.intra_op.allow_spinning", "0")
    options.add_session_config_entry("session.inter_op.allow_spinning", "0")
    try:
        return runtime.InferenceSession(str(model), options, providers=["CPUExecutionProvider"])
    except Exception as error:  # onnxruntime's own exceptions share no base class
        raise EmbeddingError(f"onnxruntime cannot load {embedder}: {error}") from error


def limited(tokenizer: Any, *, tokens: int) -> Any:
    """Cut at `tokens`, without padding. Set once, here: a later change would not be safe between threads."""
    tokenizer.no_padding()
    tokenizer.enable_truncation(max_length=tokens)
    return tokenizer


def _folder_tokenizer(folder: Path, *, tokens: int) -> Any:
    tokenizers = load("tokenizers", extra="onnx", embedder=str(folder))
    if (folder / "tokenizer.json").is_file():
        return limited(tokenizers.Tokenizer.from_file(str(folder / "tokenizer.json")), tokens=tokens)
    lowercase = bool(_setting(folder / "tokenizer_config.json", "do_lower_case", default=True))
    pieces = (folder / "vocab.txt").read_text(encoding="utf-8").splitlines()
    vocabulary = {piece: number for number, piece in enumerate(pieces)}
    return limited(tokenizers.BertWordPieceTokenizer(vocab=vocabulary, lowercase=lowercase), tokens=tokens)


def _folder_pooling(folder: Path) -> str:
    settings = folder / "1_Pooling" / "config.json"
    if _setting(settings, "pooling_mode_cls_token", default=False):
        return "cls"
    if not _setting(settings, "pooling_mode_mean_tokens", default=True):
        raise EmbeddingError(
            f"{settings} asks for neither mean nor cls pooling; "
            "pip install 'supervisor-memory[sentence-transformers]' and pass "
            "SentenceTransformersEmbedder(folder)",
            folder=str(folder),
        )
    return "mean"


def _setting(file: Path, name: str, default: Any) -> Any:
    if not file.is_file():
        return default
    return json.loads(file.read_text(encoding="utf-8")).get(name, default)
