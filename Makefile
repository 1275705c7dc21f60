# Every target does its own set-up; a machine needs only Python (3.11 or newer) and make.
PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
LOWEST := .venv-lowest
# What the tests of these need is newer than our lower bounds.
NEWER := deepagents|openinference|tests.host import hosts|hosts_in_the_wild
INSTALLED := $(VENV)/.installed
READY := $(VENV)/.ready
SERVER := .venv-server
BENCH := build/bench
DISK := $(or $(TMPDIR),/tmp)
# One more than there are cores, since tests also wait: for locks, for clocks, for other processes.
export PYTEST_XDIST_AUTO_NUM_WORKERS := $(shell $(PYTHON) -c 'import os; print(1 + (os.cpu_count() or 1))')
# What is compiled is kept, whatever the environment says: the tests start many programs that import the same.
# All is compiled once, by all cores: otherwise each of pytest's processes compiles the same modules, side by side.
# pytest compiles tests in its own way, when it collects them.
KEPT = PYTHONDONTWRITEBYTECODE= PYTHONPYCACHEPREFIX="$(CURDIR)/$(1)/bytecode"
COMPILED = $(KEPT) $(1)/bin/python
PYTEST := $(call COMPILED,$(VENV)) -m pytest

.PHONY: help demo chat test test-browser test-server slow faults lowest lint bench clean
.DEFAULT_GOAL := help

help:
	@echo "make demo   three sessions of a supervisor that remembers, then a second user, offline"
	@echo "make chat   talk to the demo team yourself"
	@echo "make test   the tests"
	@echo "make test-browser  the dashboard in a real browser; installs Playwright, and Chromium where it may"
	@echo "make test-server   the template for a LangGraph server under langgraph dev, in an environment of its own"
	@echo "make slow   all tests at full length: every case, Qdrant's own engine, a hundred users to erase, more kills"
	@echo "make faults thousands of kills, full disks, damaged files, and the table of what was counted: 15 minutes"
	@echo "make lowest the tests over the oldest supported releases, in an environment of its own"
	@echo "make lint   ruff, mypy --strict, import-linter, docstrings that are riddles"
	@echo "make bench  what is found, what it costs beside peers; rewrites the tables and plots of docs/benchmarks.md"

$(INSTALLED): pyproject.toml
	$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11) and "supervisor-memory needs Python 3.11 or newer; set PYTHON=python3.x")'
	@echo 'setting up $(VENV): a minute the first time, about 500 MB'
	$(PYTHON) -m venv $(VENV)
	$(BIN)/python -m pip install --quiet --disable-pip-version-check --upgrade 'pip>=25.1'
	$(BIN)/python -m pip install --quiet --disable-pip-version-check --no-compile -e '.[local,chinese,redact,demo]'
	@touch $@

$(READY): $(INSTALLED)
	@echo 'adding what the tests need: a minute or two the first time, about 400 MB'
	$(BIN)/python -m pip install --quiet --disable-pip-version-check --no-compile --group dev
	$(call COMPILED,$(VENV)) -m compileall -qq -j 0 $(VENV)/lib supervisor_memory agents common
	@ls -d tests/*/ tests/test_*.py | $(call KEPT,$(VENV)) xargs -P 2 -n 32 $(BIN)/python -m pytest --collect-only -qq >/dev/null
	@touch $@

demo: $(INSTALLED)
	$(BIN)/python examples/02_two_sessions.py

chat: $(INSTALLED)
	$(BIN)/python examples/03_chat.py

test: $(READY)
	$(PYTEST) -n auto

test-browser: $(READY)
	$(BIN)/python -m pip install --quiet --disable-pip-version-check --group browser
	@if [ -x /usr/bin/chromium ]; then :; \
	elif [ "$$(id -u)" = 0 ]; then apt-get -o Acquire::Retries=3 update -qq && apt-get -o Acquire::Retries=3 install -y -qq --no-install-recommends chromium; \
	else echo 'there is no /usr/bin/chromium, and only root can install it: apt-get install chromium; skipping'; fi
	BROWSER_TESTS=1 $(PYTEST) tests/browser

# Of its own: langgraph-api and schemathesis ask for different releases of jsonschema-rs.
$(SERVER)/.ready: pyproject.toml
	$(PYTHON) -m venv $(SERVER)
	$(SERVER)/bin/python -m pip install --quiet --disable-pip-version-check --upgrade 'pip>=25.1'
	$(SERVER)/bin/python -m pip install --quiet --disable-pip-version-check --no-compile -e '.[server,langchain]' --group server-tests
	@touch $@

test-server: $(SERVER)/.ready
	SERVER_TESTS=1 $(SERVER)/bin/python -m pytest tests/server

slow: $(READY)
	TMPDIR=$(DISK) SLOW=1 QDRANT_ENGINE_TESTS=1 EXAMPLES=400 ERASE_USERS=100 ERASE_KILLS=40 MOVING_KILLS=15 WALKS=10000 JOURNAL_KILLS=140 STORE_EXAMPLES=9800 THREAT_EXAMPLES=2500 THREAT_AUDIT_ROWS=100000 SEARCH_QUERIES=50000 SCHEMATHESIS_CASES=1000 $(PYTEST) -n auto

faults: $(READY)
	TMPDIR=$(DISK) FAULTS=long ERASE_KILLS=100 $(PYTEST) -n auto tests/faults tests/audit/test_anchor.py tests/audit/test_verify.py tests/stores/test_erase.py

lowest: pyproject.toml
	$(PYTHON) -m venv $(LOWEST)
	$(LOWEST)/bin/python -m pip install --quiet --disable-pip-version-check uv
	$(LOWEST)/bin/uv pip install --quiet --python $(LOWEST)/bin/python --resolution lowest-direct -e '.[all,demo]'
	$(LOWEST)/bin/uv pip install --quiet --python $(LOWEST)/bin/python --group tests editables
	$(call COMPILED,$(LOWEST)) -m pytest -n auto $(addprefix --ignore=,$(shell grep -rlE '$(NEWER)' tests --include=test_*.py))

lint: $(READY)
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy
	$(BIN)/lint-imports
	$(BIN)/python benchmarks/house.py --check

bench: $(READY)
	rm -rf $(BENCH) && mkdir -p $(BENCH)
	$(BIN)/python benchmarks/turn_cost.py
	$(BIN)/python benchmarks/node_cost.py
	$(BIN)/python benchmarks/write_cost.py
	$(BIN)/python benchmarks/decision_cost.py
	$(BIN)/python benchmarks/queue_cost.py
	$(BIN)/python benchmarks/message_vectors.py
	$(BIN)/python benchmarks/qdrant_cost.py --rounds 10 --block 10
	$(BIN)/python benchmarks/import_weight.py
	$(BIN)/python benchmarks/peers.py $(if $(FULL),--full) --json $(BENCH)/peers.jsonl
	$(BIN)/python benchmarks/search_cost.py $(if $(FULL),--full) --json $(BENCH)/search.jsonl
	$(BIN)/python benchmarks/quality.py --k 20 --json $(BENCH)/quality.json
	$(BIN)/python benchmarks/relations.py --json $(BENCH)/relations.json
	$(if $(LOCOMO),$(BIN)/python benchmarks/quality.py --k 20 --data $(LOCOMO) --json $(BENCH)/locomo.json)
	$(BIN)/python benchmarks/recipes.py --write
	$(BIN)/python benchmarks/recipes.py --cost --write
	$(BIN)/python docs/recipes.py
	$(BIN)/python benchmarks/merging.py --json $(BENCH)/merging.json
	$(BIN)/python benchmarks/kept.py --json $(BENCH)/kept.json
	$(BIN)/python benchmarks/sense.py
	$(BIN)/python benchmarks/note_tokens.py --json $(BENCH)/notes.json
	$(BIN)/python benchmarks/threads.py --json $(BENCH)/threads.json
	$(BIN)/python benchmarks/report.py --folder $(BENCH)
	$(BIN)/python benchmarks/plots.py --folder $(BENCH)

clean:
	rm -rf $(VENV) $(LOWEST) $(SERVER) .demo .supervisor_memory
