"""These tests drive a real browser: `make test-browser` installs what they need and says BROWSER_TESTS=1."""

import os

if os.environ.get("BROWSER_TESTS"):
    from tests.browser.served import browser, demo, opened, page, site

    __all__ = ["browser", "demo", "opened", "page", "site"]
else:
    collect_ignore_glob = ["test_*.py"]
