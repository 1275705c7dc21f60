"""Settings of all tests."""

import os

import pytest
from hypothesis import settings

# How long an example takes is the machine's affair; `make slow` asks for more of them.
settings.register_profile("any-machine", deadline=None, max_examples=int(os.environ.get("EXAMPLES", "25")))
settings.load_profile("any-machine")


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Tests marked `slow` run where SLOW is set, as `make slow` does."""
    if not os.environ.get("SLOW"):
        for item in items:
            if item.get_closest_marker("slow"):
                item.add_marker(pytest.mark.skip(reason="takes long: `make slow` runs it"))
