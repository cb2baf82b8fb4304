# Every gate is a target; .ci/run calls the same ones.
PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
PYTEST_ARGS ?=

.PHONY: help setup run test check bench lock

help:
	@echo "make run    set up and start the host      make test   set up and run all tests"
	@echo "make check  lint and types                 make bench  print the figures"

setup: $(VENV)/.ready

$(VENV)/.ready: requirements.lock pyproject.toml
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11) and "Lodger needs Python 3.11 or newer: make PYTHON=python3.12 setup")'
	@test -x $(BIN)/python || $(PYTHON) -m venv $(VENV)
	@echo "Installing the locked packages into $(VENV) (about a minute the first time) ..."
	@$(BIN)/python -m pip install --quiet --disable-pip-version-check --require-hashes --no-deps -r requirements.lock
	@$(BIN)/python -m pip install --quiet --disable-pip-version-check --no-deps --no-build-isolation --editable .
	@touch $@

run: setup
	@$(BIN)/lodger up

test: setup
	$(BIN)/python -m pytest $(PYTEST_ARGS)

check: setup
	$(BIN)/ruff format --check .
	$(BIN)/ruff check .
	$(BIN)/lint-imports --no-cache
	$(BIN)/mypy

bench: setup
	$(BIN)/python -m benchmarks

# New versions enter by this target alone, a week after their release at the earliest.
lock:
	$(BIN)/uv pip compile --universal --python-version 3.11 --generate-hashes --no-emit-index-url \
		--custom-compile-command "make lock" --exclude-newer "$$(date -u -d '7 days ago' +%Y-%m-%dT00:00:00Z)" \
		--group dev pyproject.toml --output-file requirements.lock
