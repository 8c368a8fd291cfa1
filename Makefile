# The whole interface for a contributor. `make` alone lists it.
.DEFAULT_GOAL := help
.DELETE_ON_ERROR:
SHELL := /bin/sh

PYTHON ?= python3
BIN := .venv/bin
PY := $(BIN)/python
STAMP := .venv/.ready
CORE := protocol workflow runs dispatch security engine agent
SEEDS ?= 2000
FROM ?= 0
SECONDS ?= 60

.PHONY: help setup run test check unit coverage sim sim-shrink fuzz bench docs lock clean

help: ## list the targets
	@grep -hE '^[a-z-]+:.*## ' $(MAKEFILE_LIST) | sort | awk -F ':.*## ' '{printf "  %-12s %s\n", $$1, $$2}'

setup: $(STAMP) ## make .venv from the lock files

$(STAMP): requirements/dev.txt pyproject.toml
	test -x $(PY) || $(PYTHON) -m venv .venv
	$(PY) -m pip install --quiet --disable-pip-version-check --require-hashes -r requirements/dev.txt
	$(PY) -m pip install --quiet --disable-pip-version-check --no-deps --no-build-isolation -e .
	touch $@

run: setup ## tell one run of a workflow in a simulated world, with a crash in the middle of it
	PYTHONHASHSEED=0 $(PY) -m tests.sim --demo

test: setup check coverage sim ## everything that CI runs
	$(PY) -m pytest -n 2

check: setup ## lint, format, types, layers, generated pages
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy
	$(BIN)/lint-imports
	$(PY) scripts/make_reference.py --check
	$(PY) -m pytest -q tests/tidy

unit: setup ## the unit tests alone
	$(PY) -m pytest -q tests/unit

coverage: setup ## unit tests with branch coverage: at least 95 % of each core package
	$(BIN)/coverage run -m pytest -q tests/unit
	@set -e; for package in $(CORE); do \
	  test -d src/astraflow/$$package || continue; \
	  echo "coverage of $$package"; \
	  $(BIN)/coverage report --include="src/astraflow/$$package/*" --fail-under=95 -m; \
	done

sim: setup ## simulate SEEDS=2000 faulty worlds, FROM=0
	PYTHONHASHSEED=0 $(PY) -m tests.sim --seeds $(SEEDS) --from $(FROM)

sim-shrink: setup ## make the failing world SEED=k as small as it can be
	PYTHONHASHSEED=0 $(PY) -m tests.sim --shrink $(SEED)

fuzz: setup ## fuzz every target for SECONDS=60 each
	$(PY) -m tests.fuzz all --seconds $(SECONDS)

bench: setup ## measure the core
	PYTHONHASHSEED=0 $(PY) -m benchmarks

docs: setup ## write the generated reference pages
	$(PY) scripts/make_reference.py

lock: setup ## resolve the lock files anew
	for name in run dev; do \
	  $(BIN)/uv pip compile --quiet --upgrade --universal --python-version 3.11 --generate-hashes \
	    --no-emit-index-url --custom-compile-command "make lock" \
	    --output-file requirements/$$name.txt requirements/$$name.in; \
	done

clean: ## remove everything that can be made again
	rm -rf .venv build dist .mypy_cache .ruff_cache .pytest_cache .hypothesis .import_linter_cache .coverage var
	find . -name __pycache__ -type d -prune -exec rm -rf {} +
