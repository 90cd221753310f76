# Needs Python 3.11+ and Java 17+, nothing else. `make demo` shows everything, `make test test-all` checks everything.
PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
WALKS ?= 10000000
STAMP := $(VENV)/.installed

# Programs that run on demand, outside of the environment that they look at.
TOOLS := build/tools

# Each test process would compile all tests again.
unexport PYTHONDONTWRITEBYTECODE
# More processes than cores, as tests wait a good part of their time; fewer where each starts brokers of its own.
PYTEST := $(BIN)/pytest -q --dist loadgroup --no-loadscope-reorder

.PHONY: help setup demo test test-all check-old-brokers check-spark-connector prepared lint check format bench bench-versions bench-pages bench-looked-at \
  bench-quotas soak soak-tokens tools docs package package-check audit clean

help:
	@echo "make demo    two Kafka clusters, live mirroring, proof, clean stop (about a minute)"
	@echo "make check   format, lint, types, import contract, unit tests: a minute"
	@echo "make test    also the contract with Kafka, in memory and on a pair of brokers, and the product as users run it: 8 minutes"
	@echo "make test-all  what make test leaves out: Java's own MirrorMaker, clusters of three brokers, faults, secured clusters,"
	@echo "             Spark clusters, abuse of the REST API: 25 minutes"
	@echo "make check-old-brokers  flows from and to brokers of Kafka 2.2 to 3.3, whose jars it fetches"
	@echo "make check-spark-connector  the data frames' options beside Spark's own Kafka connector, which it fetches"
	@echo "make bench   throughput, CPU, memory and latency beside Java MirrorMaker 2"
	@echo "make bench-versions BEFORE=CHECKOUT  the same code before a change: throughput, CPU, latency, starts"
	@echo "make bench-pages  what looking at a large mirror costs: pages, view, /metrics; how soon a page shows what happens"
	@echo "make bench-looked-at  throughput and latency with 20 pages open and with none, in pairs; ARGS='--pairs 10'"
	@echo "make bench-quotas  the share of a client quota beside Java MirrorMaker 2"
	@echo "make soak    random walks of the model, then faults at random moments under load, for half an hour;"
	@echo "             WALKS=1000000 ARGS='--seed 7 --minutes 60'"
	@echo "make soak-tokens  an hour of logins by tokens of a minute that are rotated and revoked; MINUTES=4 TOKEN_S=8 SEED=7"
	@echo "make docs    this documentation as a site with search, in build/docs/site; needs npm the first time"
	@echo "make package  wheel, sdist, documentation, deploy/, bill of materials and checksums into dist/"
	@echo "make package-check  what users get, proved: 12 minutes the first time"
	@echo "make audit   known vulnerabilities of the packages in requirements.lock that users install"

setup: $(STAMP)

$(STAMP): requirements.lock pyproject.toml
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11))' || \
	  { echo "sparkmirror needs Python 3.11 or newer; $(PYTHON) is $$($(PYTHON) -V 2>&1). Try: make PYTHON=python3.12 $(MAKECMDGOALS)" >&2; exit 2; }
	@test -x $(BIN)/python || $(PYTHON) -m venv $(VENV)
	@echo "Installing the locked requirements into $(VENV) …"
	@# Before 23.1, pip would unpack PySpark without a list of its files.
	@PIP_USE_PEP517=1 $(BIN)/python -m pip install --require-hashes -r requirements.lock
	@$(BIN)/python -m pip install --quiet --no-deps --no-build-isolation --editable .
	@touch $@

demo: setup
	$(BIN)/sparkmirror demo $(ARGS)

lint: setup
	$(BIN)/ruff format --check .
	$(BIN)/ruff check .
	$(BIN)/mypy
	$(BIN)/lint-imports

check: lint
	$(PYTEST) -n 4 --tiers check $(ARGS)

test: setup
	@$(MAKE) --no-print-directory -j2 lint prepared
	$(PYTEST) -n 6 --tiers check,test $(ARGS)

test-all: prepared
	$(PYTEST) -n 4 --tiers all $(ARGS)

check-old-brokers: export OLD_BROKERS := 1
check-old-brokers: prepared
	$(PYTEST) -n 4 tests/old_brokers $(ARGS)

check-spark-connector: prepared
	$(BIN)/pytest -q tests/spark/check_spark_connector.py $(ARGS)

prepared: setup
	-$(BIN)/sparkmirror prepare # once; dozens of brokers and Spark sessions start in half the time

format: setup
	$(BIN)/ruff format .
	$(BIN)/ruff check --fix .

bench: setup
	$(BIN)/python -m bench $(ARGS)

bench-versions: setup
	$(BIN)/python -m bench.versions $(BEFORE) $(ARGS)

bench-pages: setup
	$(BIN)/python -m bench.view
	$(BIN)/python -m bench.metrics_page
	$(BIN)/python -m bench.pages
	$(BIN)/python -m bench.seen
	$(BIN)/pytest -s tests/system/check_rest_wait.py

bench-looked-at: setup
	$(BIN)/python -m bench.looked_at $(ARGS)

bench-quotas: setup
	$(BIN)/pytest -q -s tests/system/check_quota_share.py $(ARGS)

soak: setup
	$(BIN)/python -m tests.model --walks $(WALKS) --seed $$(date +%s)
	$(BIN)/python -m tests.faults.soak $(ARGS)
	PERIODS=10 PERIOD_S=60 $(BIN)/pytest -q -n 2 --dist load -k "not some" tests/system/check_idle_pairs.py

soak-tokens: export TOKEN_S ?= 60
soak-tokens: export MINUTES ?= 60
soak-tokens: setup
	$(BIN)/pytest -s tests/system/check_short_tokens.py

tools: $(TOOLS)/.installed

$(TOOLS)/.installed: requirements-tools.lock
	@test -x $(TOOLS)/bin/python || $(PYTHON) -m venv $(TOOLS)
	@echo "Installing the locked tools into $(TOOLS) …"
	@$(TOOLS)/bin/python -m pip install --quiet --require-hashes -r requirements-tools.lock
	@touch $@

docs: setup tools
	$(BIN)/python -m release.docs_site

package: setup tools
	$(BIN)/python -m release.artefacts

package-check: package tools
	-$(BIN)/sparkmirror prepare
	$(PYTEST) -n 4 --tiers package $(ARGS)

build/runtime.txt: $(STAMP) release.runtime_requirements.py
	@mkdir -p build
	@$(BIN)/python -m release.runtime_requirements >$@

audit: build/runtime.txt tools
	$(TOOLS)/bin/pip-audit --requirement $< --require-hashes --disable-pip --strict $(ARGS)

clean:
	rm -rf $(VENV) build dist .mypy_cache .ruff_cache .pytest_cache .hypothesis
