# Everything needs only make and Python 3.11 or newer; the targets build .venv by themselves.
#   make test PYTHON=python3.12     use another interpreter

.DEFAULT_GOAL := help
.DELETE_ON_ERROR:

PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin

# Stamps of what is installed in the one environment: enough for the demonstration, all that the
# checks need, and the documentation tools on top of that.
DEMO_READY := $(VENV)/.demo-ready
READY := $(VENV)/.ready
DOCS_READY := $(VENV)/.docs-ready

BENCH_VENV := .bench-venv
BENCH_READY := $(BENCH_VENV)/.ready

# A comma in an argument of $(call) would end it.
COMMA := ,

.PHONY: help demo test docs lint format bench clean

help:  ## Show this list
	@grep -E '^[a-z]+:.*## ' $(MAKEFILE_LIST) | sed -E 's/^([a-z]+):.*## /  make \1\t/'

demo: $(DEMO_READY)  ## Run the demonstration
	$(BIN)/python -m regcal.demo

# Each process takes whole stretches of tests, so that what a file builds is built once. Bytecode is
# kept whatever the environment says, since tests start processes that import regcal anew.
test: export PYTHONDONTWRITEBYTECODE :=
test: lint  ## Check style and types, then run every test
	$(BIN)/python -m pytest -n 2 --dist worksteal

# Threads of linear algebra wait for each other where other processes run.
docs: export OMP_NUM_THREADS ?= 1
docs: $(DOCS_READY)  ## Build the documentation, run its examples and check its links
	$(BIN)/python -m sphinx -W --keep-going -q -b html -d docs/_build/doctrees docs docs/_build/html
	$(BIN)/python docs/check_links.py docs/_build/html
	@echo "Open docs/_build/html/index.html"

lint: $(READY)  ## Check style and types
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy

format: $(READY)  ## Repair style where that can be done automatically
	$(BIN)/ruff check --fix .
	$(BIN)/ruff format .

bench: $(BENCH_READY)  ## Compare with the peers, in an environment of its own; QUICK=1 takes minutes
	cd benchmarks && ../$(BENCH_VENV)/bin/python -m peers.run $(if $(QUICK),--quick)
	cd benchmarks && ../$(BENCH_VENV)/bin/python -m peers.report $(if $(QUICK),--quick)

clean:  ## Remove the environment and everything generated
	rm -rf $(VENV) .pytest_cache .mypy_cache .ruff_cache build dist demo-output \
		docs/_build docs/auto_examples docs/api/generated $(BENCH_VENV) .bench-cache
	find . -name __pycache__ -type d -prune -exec rm -rf {} +

$(BIN)/python:
	@command -v "$(PYTHON)" >/dev/null || { \
		echo "Found no '$(PYTHON)'. Install Python 3.11 or newer, or name one: make $(MAKECMDGOALS) PYTHON=/path/to/python" >&2; \
		exit 1; }
	@"$(PYTHON)" -c 'import sys; sys.exit(sys.version_info < (3, 11))' || { \
		echo "regcal needs Python 3.11 or newer, and '$(PYTHON)' is $$("$(PYTHON)" --version 2>&1)." >&2; \
		echo "Name a newer one: make $(MAKECMDGOALS) PYTHON=python3.12" >&2; \
		exit 1; }
	@if command -v uv >/dev/null; then \
		echo "Making $(VENV) with uv ..."; \
		uv venv --quiet --python "$$(command -v "$(PYTHON)")" $(VENV); \
	else \
		echo "Making $(VENV) with venv ..."; \
		"$(PYTHON)" -m venv $(VENV) || { rm -rf $(VENV); \
			echo "Install the venv module (package python3-venv on Debian and Ubuntu) or uv." >&2; exit 1; }; \
	fi

# $(call install,extras): regcal itself, with what these extras bring.
define install
	@echo "Installing regcal[$(1)] into $(VENV) ..."
	@if command -v uv >/dev/null; then \
		uv pip install --quiet $(UV_COMPILES) --python $(BIN)/python -e '.[$(1)]'; \
	else \
		$(BIN)/python -m pip install --quiet --disable-pip-version-check $(PIP_COMPILES) -e '.[$(1)]'; \
	fi
endef

# The demonstration imports a part of what it installs: Python compiles that part as it goes.
UV_COMPILES := --compile-bytecode
$(DEMO_READY): UV_COMPILES :=
$(DEMO_READY): PIP_COMPILES := --no-compile
$(DEMO_READY): pyproject.toml | $(BIN)/python
	$(call install,plots$(COMMA)report)
	@touch $@

# Holds what the demonstration needs as well.
$(READY): pyproject.toml | $(BIN)/python
	$(call install,dev)
	@touch $(DEMO_READY) $@

$(DOCS_READY): $(READY)
	$(call install,docs)
	@touch $@

# pip, not uv: the peers need a build of PyTorch that uv may not find.
$(BENCH_READY): pyproject.toml benchmarks/peers/install.py
	@test -x $(BENCH_VENV)/bin/python || "$(PYTHON)" -m venv $(BENCH_VENV)
	$(BENCH_VENV)/bin/python -m pip install --quiet --disable-pip-version-check -e .
	cd benchmarks && ../$(BENCH_VENV)/bin/python -m peers.install
	@touch $@
