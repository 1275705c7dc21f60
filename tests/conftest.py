"""Settings of all tests."""

import os

from hypothesis import settings

# How long an example takes is the machine's affair; `make slow` asks for more of them.
settings.register_profile("any-machine", deadline=None, max_examples=int(os.environ.get("EXAMPLES", "40")))
settings.load_profile("any-machine")
