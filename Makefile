# Two commands for a fresh machine: `make diagnose` and `make test`.
# Needs Python 3.11 or newer with pip, and make. Everything goes into .venv.

PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
PIP_INSTALL := $(BIN)/python -m pip install --quiet --disable-pip-version-check --constraint constraints.txt

.PHONY: help diagnose test check format test-runtimes lab clean

help:
	@echo "make diagnose       set up, then diagnose the embedded engine"
	@echo "make test           set up, then run every test that needs no heavy runtime"
	@echo "make check          lint, format, types, layers and docs, in seconds"
	@echo "make test-runtimes  set up vLLM (CPU), transformers and mlx_lm, and test against them (6 GB)"
	@echo "make lab            put known faults in, apply what was advised, test what is said (90 minutes)"
	@echo "make clean          remove what these commands made here"

# A Python without the venv module (Debian's python3 without python3-venv) is mended where that is possible.
$(BIN)/python:
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11))' \
	  || { echo "twospeed needs Python 3.11 or newer; run: make PYTHON=/path/to/python3.11 $(MAKECMDGOALS)"; exit 1; }
	@$(PYTHON) -m venv $(VENV) || { rm -rf $(VENV); \
	  echo "This Python cannot make virtual environments; trying the system package python3-venv."; \
	  { [ "$$(id -u)" = 0 ] && command -v apt-get >/dev/null && apt-get update -qq && apt-get install -y -qq python3-venv \
	    && $(PYTHON) -m venv $(VENV); } \
	  || { rm -rf $(VENV); echo "Install it (Debian, Ubuntu: apt install python3-venv) and run make again."; exit 1; }; }

$(VENV)/.run: pyproject.toml constraints.txt | $(BIN)/python
	@echo "Installing twospeed with the embedded engine into $(VENV) ..."
	@$(PIP_INSTALL) --editable '.[engine]'
	@touch $@

$(VENV)/.dev: pyproject.toml constraints.txt | $(BIN)/python
	@echo "Installing twospeed and its test tools into $(VENV) ..."
	@$(PIP_INSTALL) --editable '.[engine,dev]'
	@touch $@ $(VENV)/.run

diagnose: $(VENV)/.run
	@$(BIN)/twospeed diagnose --embedded || [ $$? = 4 ] # 4: measured, but inconclusive

test: $(VENV)/.dev
	@$(BIN)/python -m twospeed.sources.engine.model
	@$(BIN)/python -m pytest

check: $(VENV)/.dev
	@$(BIN)/ruff check .
	@$(BIN)/ruff format --check .
	@$(BIN)/mypy
	@$(BIN)/python -m pytest -q tests/structure

format: $(VENV)/.dev
	@$(BIN)/ruff check --fix-only .
	@$(BIN)/ruff format .

test-runtimes: $(VENV)/.dev
	@$(BIN)/python tests/heavy/install.py
	@$(BIN)/python -m pytest -m runtimes tests/heavy

lab: $(VENV)/.dev
	@$(BIN)/python -m twospeed.sources.engine.model
	@$(BIN)/python benchmarks/lab --file .lab.jsonl --page docs/lab.md
	@$(BIN)/python benchmarks/lab/savings.py --file .savings.jsonl --page docs/lab.md
	@$(BIN)/python benchmarks/lab/sayings.py --page docs/lab.md

clean:
	rm -rf $(VENV) .runtimes .pytest_cache .ruff_cache .mypy_cache .hypothesis build dist src/*.egg-info
