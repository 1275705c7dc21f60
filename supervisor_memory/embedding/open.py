"""From the text of EMBEDDING_MODEL to an embedder: the only place where that text is read."""

from pathlib import Path

from supervisor_memory.embedding.e5 import open_e5
from supervisor_memory.embedding.hashing import HashingEmbedder
from supervisor_memory.embedding.minilm import CALIBRATION as MINILM_CALIBRATION
from supervisor_memory.embedding.minilm import MiniLM
from supervisor_memory.embedding.onnx import OnnxFolder, onnx_file
from supervisor_memory.embedding.protocol import Embedder
from supervisor_memory.embedding.st import SentenceTransformersEmbedder
from supervisor_memory.errors import EmbedderNotInstalled, SettingsError

MINILM = "all-MiniLM-L6-v2"
E5 = "multilingual-e5-small"


def open_embedder(model: str | None, *, dimension: int | None, threads: int = 1) -> Embedder | None:
    """Open the embedder that EMBEDDING_MODEL names.

    Args:
        model: `all-MiniLM-L6-v2` or `multilingual-e5-small` (with or without the owner's name before
            them), `hashing` (tests), `none`, a folder, or any other model of sentence-transformers.
            None or empty: all-MiniLM-L6-v2 if the extra `local` is installed, else no embedder.
        dimension: What EMBEDDING_DIM says; None: whatever the model has. `hashing` takes any.
        threads: 1 or 2.

    Returns:
        The embedder, or None for lexical search alone. Weights are not loaded yet, except to check
        the dimension of a model that is not one of ours.

    Raises:
        EmbedderNotInstalled: The model's package is missing.
        SettingsError: The dimension is not the model's, or the folder does not exist.
    """
    embedder = _open(model.strip() if model else "", dimension=dimension, threads=threads)
    if embedder is not None and dimension is not None and embedder.dimension != dimension:
        raise SettingsError(
            f"EMBEDDING_DIM is {dimension}, but the vectors of {embedder.fingerprint} have "
            f"{embedder.dimension} dimensions; remove EMBEDDING_DIM or choose another EMBEDDING_MODEL",
            dimension=dimension,
            actual=embedder.dimension,
            model=model,
        )
    return embedder


def _open(model: str, *, dimension: int | None, threads: int) -> Embedder | None:
    match model.removeprefix("sentence-transformers/").removeprefix("intfloat/"):
        case "":
            return _default()
        case "none":
            return None
        case "hashing":
            return HashingEmbedder() if dimension is None else HashingEmbedder(dimension)
        case name if name == MINILM:
            return MiniLM()
        case name if name == E5:
            return open_e5(threads=threads)
        case _:
            return _folder_or_hub(model, threads=threads)


def _default() -> Embedder | None:
    try:
        return MiniLM()
    except EmbedderNotInstalled:
        return None


def _folder_or_hub(model: str, *, threads: int) -> Embedder:
    folder = Path(model).expanduser()
    if not folder.is_dir():
        if model.startswith((".", "/", "~")) or "\\" in model or model.count("/") > 1:  # surely a path
            raise SettingsError(f"EMBEDDING_MODEL is {model!r}, and there is no such folder", model=model)
        return SentenceTransformersEmbedder(model, threads=threads)
    is_minilm = folder.resolve().name == MINILM
    calibration, languages = (MINILM_CALIBRATION, ("en",)) if is_minilm else (None, ())
    if onnx_file(folder) is None:
        return SentenceTransformersEmbedder(
            folder, calibration=calibration, languages=languages, threads=threads
        )
    return OnnxFolder(folder, calibration=calibration, languages=languages, threads=threads)
