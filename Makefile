# Every target sets up .venv first (once; again when pyproject.toml or constraints.txt change): `make demo` with what
# the package itself needs, the others with the tools for working on it.

PYTHON ?= python3
JOBS ?= 2
VENV := .venv
BIN := $(VENV)/bin
INSTALLED := $(VENV)/.installed
READY := $(VENV)/.ready
PIP := $(BIN)/python -m pip install --quiet --disable-pip-version-check -c constraints.txt
PYTEST := $(BIN)/python -m pytest -n $(JOBS) --dist worksteal
# Tests of compiled code, and of so many steps that compiling pays; all other quick tests run uncompiled.
COMPILED := $(addprefix tests/,kernels mdp generators planners theory conformance continuous cli docs examples studio \
	$(patsubst %,beliefs/test_beliefs_%.py,disturbance exact interpreted sampling scale undo))

.PHONY: help setup demo test test-slow test-all bench docs notebooks reproduction evidence lint format clean

help:
	@echo "make demo      two planners on a 5 by 5 grid: a table, and out/learning-curve.png"
	@echo "make test      the test suite"
	@echo "make test-all  the same and the slow tests"
	@echo "make bench     speed, as tables and out/bench.json"
	@echo "make docs      the documentation, as out/site/index.html"
	@echo "make notebooks the notebooks, run anew with their outputs"
	@echo "make reproduction  tables and figures of the reproduction in docs, from results/dss2020"
	@echo "make evidence  tables and figures of docs/evidence.md and README, from results"
	@echo "make lint      style, types and import contracts"
	@echo "make clean     remove .venv, caches and what was built"

setup: $(READY)

$(INSTALLED): pyproject.toml constraints.txt
	test -x $(BIN)/python || $(PYTHON) -m venv $(VENV)
	$(PIP) -e .
	@touch $@

$(READY): $(INSTALLED)
	$(PIP) -e '.[dev]'
	@touch $@

demo: $(INSTALLED)
	$(BIN)/bamdp run grid5 dss-pi thompson --runs 20 --figure out/learning-curve.png
	@echo "the picture: out/learning-curve.png"

test: $(READY)
	$(PYTEST) -m "not slow" $(COMPILED)
	NUMBA_DISABLE_JIT=1 $(PYTEST) -m "not slow" $(addprefix --ignore=,$(COMPILED))

test-slow: $(READY)
	$(PYTEST) -m slow

test-all: test test-slow

bench: $(READY)
	mkdir -p out
	$(BIN)/python benchmarks/bench.py --json out/bench.json
	$(BIN)/python benchmarks/bench_trees.py
	$(BIN)/python benchmarks/bench_myopic.py
	$(BIN)/python benchmarks/bench_large.py

docs: $(READY)
	NO_MKDOCS_2_WARNING=1 $(BIN)/mkdocs build --strict --quiet
	@echo "documentation: out/site/index.html"

notebooks: $(READY)
	$(BIN)/python tools/notebooks.py

reproduction: $(READY)
	$(BIN)/python paper/pages.py reproduction deep-sea

evidence: $(READY)
	$(BIN)/python paper/pages.py evidence

lint: $(READY)  # no caches: what a file imports may have moved since it was read
	$(BIN)/ruff check --no-cache .
	$(BIN)/ruff format --no-cache --check .
	$(BIN)/mypy
	$(BIN)/lint-imports

format: $(READY)
	$(BIN)/ruff check --fix .
	$(BIN)/ruff format .

clean:
	rm -rf $(VENV) build dist out .pytest_cache .mypy_cache .ruff_cache .hypothesis .import_linter_cache
	find . -name __pycache__ -type d -prune -exec rm -rf {} +
