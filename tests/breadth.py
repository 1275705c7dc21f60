"""How many made-up examples a test takes where it asks for more than the profile says (`conftest.py`)."""

import os

__all__ = ["examples"]


def examples(full: int) -> int:
    """The full number with SLOW, as in `make slow`; else a third."""
    return full if os.environ.get("SLOW") else max(8, full // 3)
