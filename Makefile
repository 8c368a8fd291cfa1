# The whole interface for a contributor. `make` alone lists it.
.DEFAULT_GOAL := help
.DELETE_ON_ERROR:
SHELL := /bin/sh

PYTHON ?= python3
BIN := .venv/bin
PY := $(BIN)/python
STAMP := .venv/.ready
RUN_STAMP := .venv/.ready-to-run
INSTALL := -m pip install --quiet --disable-pip-version-check
CORE := contract protocol workflow runs fleet dispatch triggers security engine agent expressions
SEEDS ?= 2000
SEEDS_B ?= 300
SEEDS_C ?= 200
SEEDS_N ?= 50
SEEDS_L ?= 100
FROM ?= 0
SECONDS ?= 60
MINUTES ?= 5
PORT ?= 8080
TYPESCRIPT := 5.9.3
WEB_STAMP := web/node_modules/.ready
WEB_DIST := src/astraflow/web/dist
COMPILED := build/compiled
IN_COMPILED := PYTHONPATH=$(CURDIR)/$(COMPILED)/site PYTHONHASHSEED=0

.PHONY: screenshots help setup run test check unit coverage sim sim-shrink shells demo fuzz chaos chaos-site bench compiled client clients clients-if-changed wire typescript node web web-check web-source web-corpus docs lock clean chromium promtool deploy-tools compiler

help: ## list the targets
	@grep -hE '^[a-z-]+:.*## ' $(MAKEFILE_LIST) | sort | awk -F ':.*## ' '{printf "  %-18s %s\n", $$1, $$2}'

setup: $(STAMP) ## make .venv from the lock files

$(STAMP): requirements/dev.txt pyproject.toml
	test -x $(PY) || $(PYTHON) -m venv .venv
	$(PY) $(INSTALL) --require-hashes -r requirements/dev.txt
	$(PY) $(INSTALL) --no-deps --no-build-isolation -e .
	touch $@ $(RUN_STAMP)

# What is needed to run is a part of what is needed to work on it.
$(RUN_STAMP): requirements/run.txt pyproject.toml
	test -x $(PY) || $(PYTHON) -m venv .venv
	$(PY) $(INSTALL) --require-hashes -r requirements/run.txt
	$(PY) $(INSTALL) --no-deps --no-build-isolation -e .
	touch $@

run: $(RUN_STAMP) ## start a scheduler and a worker here, and say how to use them (PORT=8080)
	$(BIN)/astra up --port $(PORT)

test: setup chromium promtool deploy-tools compiler clients-if-changed check typescript web-check coverage sim shells compiled ## everything that CI runs
	$(PY) -m pytest -n 2 --ignore tests/unit --ignore tests/tidy

chromium: ## a Chromium for the browser tests: the one that is there, else the package manager's
	@for name in "$$ASTRA_CHROMIUM" chromium chromium-browser google-chrome; do \
	  test -n "$$name" && command -v "$$name" >/dev/null && exit 0; \
	done; \
	as_root=; test "$$(id -u)" = 0 || as_root="sudo -n"; \
	if command -v apt-get >/dev/null; then \
	  $$as_root apt-get update -qq && $$as_root apt-get install -y -qq --no-install-recommends chromium >/dev/null; \
	else \
	  echo "the browser tests need Chromium: install it, or name it in ASTRA_CHROMIUM" >&2; exit 1; \
	fi

promtool: ## Prometheus' own checker of rules: the one that is there, else the package manager's
	@command -v promtool >/dev/null && exit 0; \
	as_root=; test "$$(id -u)" = 0 || as_root="sudo -n"; \
	if command -v apt-get >/dev/null; then \
	  $$as_root apt-get update -qq && $$as_root apt-get install -y -qq --no-install-recommends prometheus >/dev/null; \
	else \
	  echo "the tests of the alert rules need promtool: install Prometheus" >&2; exit 1; \
	fi

deploy-tools: ## haproxy and systemd-analyze, for the tests of deploy/: those that are there, else the package manager's
	@PATH="$$PATH:/usr/sbin"; command -v haproxy >/dev/null && command -v systemd-analyze >/dev/null && exit 0; \
	as_root=; test "$$(id -u)" = 0 || as_root="sudo -n"; \
	if command -v apt-get >/dev/null; then \
	  $$as_root apt-get update -qq && $$as_root apt-get install -y -qq --no-install-recommends haproxy systemd >/dev/null; \
	else \
	  echo "the tests of deploy/ need haproxy and systemd-analyze: install them" >&2; exit 1; \
	fi

compiler: setup ## a C compiler and the headers of Python: those that are there, else the package manager's
	@command -v cc >/dev/null && test -f "$$($(PY) -c 'import sysconfig; print(sysconfig.get_path("include"))')/Python.h" && exit 0; \
	as_root=; test "$$(id -u)" = 0 || as_root="sudo -n"; \
	if command -v apt-get >/dev/null; then \
	  $$as_root apt-get update -qq && $$as_root apt-get install -y -qq --no-install-recommends gcc libc6-dev python3-dev >/dev/null; \
	else \
	  echo "compiling the core needs a C compiler and the headers of Python: install them" >&2; exit 1; \
	fi

check: setup ## lint, format, types, layers, generated pages
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy
	$(BIN)/lint-imports
	$(PY) scripts/make_reference.py --check
	$(PY) scripts/make_openapi.py --check
	$(PY) scripts/make_blocking_client.py --check
	$(PY) scripts/make_builder.py --check
	$(PY) scripts/make_wire_models.py --check
	$(PY) scripts/make_pictures.py --check
	$(PY) scripts/make_curves.py --check
	$(PY) -m pytest -q tests/tidy

unit: setup ## the unit tests alone
	$(PY) -m pytest -q tests/unit

coverage: setup ## unit tests with branch coverage: at least 95 % of each core package
	$(BIN)/coverage run -m pytest -q tests/unit
	@set -e; for package in $(CORE); do \
	  test -d src/astraflow/core/$$package || continue; \
	  echo "coverage of $$package"; \
	  $(BIN)/coverage report --include="src/astraflow/core/$$package/*" --fail-under=95 -m; \
	done

sim: setup ## simulate SEEDS=2000 faulty worlds, FROM=0
	PYTHONHASHSEED=0 $(PY) -m tests.sim --seeds $(SEEDS) --from $(FROM)

shells: setup ## simulate on a real store (SEEDS_B=300) with the real shells (SEEDS_C=200), several nodes (SEEDS_N=50), several lanes (SEEDS_L=100)
	PYTHONHASHSEED=0 $(PY) -m tests.sim --tier B --seeds $(SEEDS_B) --from $(FROM)
	PYTHONHASHSEED=0 $(PY) -m tests.sim --tier C --seeds $(SEEDS_C) --from $(FROM)
	PYTHONHASHSEED=0 $(PY) -m tests.sim --tier N --seeds $(SEEDS_N) --from $(FROM)
	PYTHONHASHSEED=0 $(PY) -m tests.sim --tier L --seeds $(SEEDS_L) --from $(FROM)

demo: setup ## print one run of a workflow in a simulated world, with a crash in the middle of it
	PYTHONHASHSEED=0 $(PY) -m tests.sim --demo

sim-shrink: setup ## make the failing world SEED=k as small as it can be
	PYTHONHASHSEED=0 $(PY) -m tests.sim --shrink $(SEED)

fuzz: setup ## fuzz every target for SECONDS=60 each
	$(PY) -m tests.fuzz all --seconds $(SECONDS)

chaos: setup ## kill, freeze and cut off real processes for MINUTES=5
	$(PY) -m tests.chaos --minutes $(MINUTES)

chaos-site: setup ## kill, freeze, cut off and restart the nodes of a site, and fail its PostgreSQL over, for MINUTES=5
	$(PY) -m tests.chaos --nodes 3 --minutes $(MINUTES)

clients: setup ## make a client from the description of the API, and try it
	$(PY) scripts/make_clients.py

clients-if-changed: setup ## the same, if the description has changed since
	$(PY) scripts/make_clients.py --if-changed

bench: setup ## measure, each figure beside its budget
	PYTHONHASHSEED=0 $(PY) -m benchmarks

client: setup ## write the blocking client from the asynchronous one
	$(PY) scripts/make_blocking_client.py

wire: setup ## write the Python and TypeScript models of the wire from schemas/
	$(PY) scripts/make_wire_models.py

typescript: ## check the TypeScript models with the compiler, and that it refuses what is wrong
	@command -v npm >/dev/null && exit 0; \
	as_root=; test "$$(id -u)" = 0 || as_root="sudo -n"; \
	if command -v apt-get >/dev/null; then \
	  $$as_root apt-get update -qq && $$as_root apt-get install -y -qq --no-install-recommends npm >/dev/null; \
	else \
	  echo "the check of the TypeScript models needs npm: install it" >&2; exit 1; \
	fi
	test -x build/typescript/node_modules/.bin/tsc || npm install --silent --no-save --no-package-lock \
	  --no-audit --no-fund --prefix build/typescript typescript@$(TYPESCRIPT)
	build/typescript/node_modules/.bin/tsc --project clients/typescript

node:
	@node -e 'const [major, minor] = process.versions.node.split(".").map(Number); process.exit(major > 20 || (major === 20 && minor >= 19) ? 0 : 1)' \
	  2>/dev/null && command -v npm >/dev/null || \
	  { echo "the web app is built with Node 20.19 or newer and its npm: install them (running AstraFlow needs neither)" >&2; exit 1; }

$(WEB_STAMP): web/package.json web/package-lock.json web/.npmrc | node
	cd web && npm ci --no-audit --no-fund
	touch $@

screenshots: setup chromium ## pictures of every page and state of the web app, in build/screenshots
	$(PY) -m tests.browser.screenshots build/screenshots

web-corpus: setup ## write the definitions that the validation in the browser is held to
	$(PY) scripts/make_web_corpus.py

web-source: $(WEB_STAMP) setup ## types, lint and tests of the web app's source
	$(PY) scripts/make_web_corpus.py --check
	cd web && npm run --silent api:check && npm run --silent types && npm run --silent lint && npm test --silent

web: web-source ## build the web app into src/astraflow/web/dist, where the scheduler serves it from
	cd web && npm run --silent build

web-check: web-source ## build the web app anew, and compare it with the one that is committed
	rm -rf build/web && mkdir -p build
	cd web && ASTRA_WEB_OUT=../build/web npm run --silent build
	@diff -r build/web $(WEB_DIST) || \
	  { echo "$(WEB_DIST) is not what web/ builds: run \`make web\` and commit it" >&2; exit 1; }

docs: setup client wire ## write the generated reference pages, modules and pictures
	$(PY) scripts/make_pictures.py
	$(PY) scripts/make_curves.py
	$(PY) scripts/make_builder.py
	$(PY) scripts/make_reference.py
	$(PY) scripts/make_openapi.py

lock: setup ## resolve the lock files anew
	for name in run dev clients; do \
	  $(BIN)/uv pip compile --quiet --upgrade --universal --python-version 3.11 --generate-hashes --no-strip-extras \
	    --no-emit-index-url --custom-compile-command "make lock" \
	    --output-file requirements/$$name.txt requirements/$$name.in; \
	done

# Never beside the sources: a checkout is pure Python, and so is what is tested everywhere else.
$(COMPILED)/.ready: setup.py compiled-modules.txt pyproject.toml $(shell find src sdk/src packages examples -name '*.py')
	rm -rf $(COMPILED)
	ASTRA_COMPILE=1 $(PY) -m pip wheel --quiet --disable-pip-version-check --no-deps --no-build-isolation \
	  --wheel-dir $(COMPILED) .
	$(PY) -m zipfile -e $(COMPILED)/*.whl $(COMPILED)/site
	touch $@

compiled: setup compiler $(COMPILED)/.ready ## build the core compiled into build/compiled, and test that it does the same
	$(PY) scripts/check_compiled.py $(COMPILED)/site
	$(IN_COMPILED) $(PY) -m pytest -q tests/unit/core
	$(IN_COMPILED) $(PY) -m tests.sim --seeds 200
	$(IN_COMPILED) $(PY) -m tests.sim --tier B --seeds 30
	$(IN_COMPILED) $(PY) -m tests.sim --tier C --seeds 20
	$(IN_COMPILED) $(PY) -m pytest -q tests/chaos/test_smoke.py

clean: ## remove everything that can be made again
	rm -rf .venv build dist web/node_modules .mypy_cache .ruff_cache .pytest_cache .hypothesis .import_linter_cache .coverage var
	find . -name __pycache__ -type d -prune -exec rm -rf {} +
