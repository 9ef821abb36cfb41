# Everything works on a fresh machine with git, Python 3.10 or newer and Java 17 or 21.
.DEFAULT_GOAL := help
.PHONY: help setup quick test test-full demo lint format lock wheel clean
MAKEFLAGS += --no-print-directory

PYTHON ?= python3
BIN := .venv/bin
PYTEST := $(BIN)/python -m pytest -p no:cacheprovider
# Tests of apps mostly wait for them: three workers keep two cores busy.
WORKERS ?= 3
PARALLEL := --dist loadfile --no-loadscope-reorder
PART ?= 1/1
export MZSHARE_JARS ?= $(CURDIR)/.cache/jars

help: ## Show this list
	@awk -F ':.*## ' '/^[a-z-]+:.*## / { printf "  make %-10s %s\n", $$1, $$2 }' $(MAKEFILE_LIST)

setup: ## Make .venv from the lock file and fetch the jars
	@$(PYTHON) tools/setup.py $(SETUP_FLAGS)

test test-full: SETUP_FLAGS := --postgres required

quick: lint ## Check the code and all that needs no server
	@$(PYTEST) -m "not full and not server" -n logical $(PARALLEL)

test: lint ## Check the code and every behaviour on small data
	@JAVA_HOME=$$($(BIN)/python -m tests.support.java) $(PYTEST) -m "not full" -n $(WORKERS) $(PARALLEL)

test-full: setup ## What test leaves out: large sizes, every kill point, repeats; PART=2/4 is the second of four parts
	@$(PYTEST) -m full --part $(PART)

demo: setup ## Show the main job on embedded parts, nothing else needed
	@$(BIN)/python -m airflow_provider_mzshare.demo

lint: setup ## Check style, types, layers and spelling
	@$(BIN)/ruff check
	@$(BIN)/ruff format --check
	@$(BIN)/mypy
	@$(BIN)/lint-imports --no-cache --no-logo
	@$(BIN)/codespell

format: setup ## Format the code and fix what can be fixed
	@$(BIN)/ruff check --fix
	@$(BIN)/ruff format

lock: setup ## Pin all dependencies anew in requirements.lock
	@$(BIN)/uv pip compile -q --generate-hashes --universal --python-version 3.10 --extra dev \
	  --custom-compile-command 'make lock' pyproject.toml -o requirements.lock

wheel: setup ## Build the wheel into dist/
	@$(BIN)/python -m hatchling build -t wheel

clean: ## Remove what was built; .venv and the jars stay
	@rm -rf dist build .mypy_cache .ruff_cache .pytest_cache .hypothesis .import_linter_cache
	@find . -name __pycache__ -type d -not -path './.venv/*' -prune -exec rm -rf {} +
