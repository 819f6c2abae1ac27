# Ten targets for people and CI alike. Each makes what it needs, from Python 3.11 alone.
PYTHON ?= python3.11
BIN := .venv/bin
export INFERADMIN_SECRET_KEY ?= checks-only-not-a-secret-0123456789-0123456789
export INFERADMIN_DATABASE_URL_CHECK ?= postgresql://postgres@127.0.0.1/inferadmin

.PHONY: help up check fix test
help:  ## This list
	@grep -hE '^[a-z]+:.*##' $(MAKEFILE_LIST) | sed 's/:.*## /\t/' | expand -t 10

check: ## Lint, types, contracts, migrations
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/lint-imports
	$(BIN)/mypy .

fix: ## Format and mend what can be mended
	$(BIN)/ruff check --fix .
	$(BIN)/ruff format .

test: ## The whole suite on real parts
	$(BIN)/python -m pytest
