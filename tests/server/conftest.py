"""These tests serve a template: `make test-server` installs what they need and says SERVER_TESTS=1."""

import os

if os.environ.get("SERVER_TESTS"):
    from tests.server.served import open_server, server

    __all__ = ["open_server", "server"]
else:
    collect_ignore_glob = ["test_*.py"]
