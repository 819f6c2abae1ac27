# The same targets for people and CI. Each makes what it needs, from Python 3.11 alone.
PYTHON ?= python3.11
BIN := .venv/bin
RUN_TIME := base engines weights

# What checks need to load the settings; nothing connects to it.
CHECKS := INFERADMIN_SECRET_KEY=for-checks-only-0123456789-abcdefghijklmnopqrstuvwxyz-0123456789 \
	INFERADMIN_DATABASE_URL=postgresql://nobody@127.0.0.1:1/none \
	INFERADMIN_REDIS_URL=redis://127.0.0.1:1/0 INFERADMIN_HTTPS_ONLY=1

.DEFAULT_GOAL := help
.PHONY: help up run worker fix check test e2e schema bootstrap bootstrap-dev

help: ## This list
	@grep -hE '^[a-z0-9]+:.*##' $(MAKEFILE_LIST) | sed 's/:[^#]*## /\t/' | expand -t 10

up: bootstrap ## Everything on this machine, seeded; Ctrl-C ends it
	@exec $(BIN)/python -m inferadmin.embedded

run: bootstrap ## The web process alone, on the services that the environment names
	@exec $(BIN)/uvicorn inferadmin.asgi:application --port $${INFERADMIN_PORT:-8080} --no-access-log

worker: bootstrap ## A worker with the clock inside, on the services that the environment names
	@exec $(BIN)/celery --app inferadmin.celery worker --beat --pool threads --concurrency 6 \
		--queues control,telemetry,ledger --schedule var/celerybeat-schedule

fix: bootstrap-dev ## Format and mend what can be mended
	$(BIN)/ruff check --fix .
	$(BIN)/ruff format .
	$(BIN)/djade --target-version 5.2 $$(git ls-files 'templates/*.html')

check: bootstrap-dev ## Lint, format, contracts, types, migrations, settings, templates
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/djade --check --target-version 5.2 $$(git ls-files 'templates/*.html')
	$(BIN)/lint-imports
	$(BIN)/mypy .
	@# Django warns that it cannot look at the history of a database that is not there.
	$(CHECKS) $(BIN)/python -W ignore::RuntimeWarning manage.py makemigrations --check --dry-run
	$(CHECKS) $(BIN)/python manage.py check --deploy --fail-level WARNING

test: bootstrap-dev ## The whole suite on real Postgres, Valkey, Triton, llama.cpp and a browser
	@$(BIN)/python scripts/install_browser.py
	$(BIN)/python -m pytest --numprocesses 2 --no-loadscope-reorder

e2e: bootstrap-dev ## Only the stories on real processes
	$(BIN)/python -m pytest -m e2e

schema: bootstrap-dev ## docs/api.yaml from the code
	$(CHECKS) $(BIN)/python manage.py spectacular --validate --fail-on-warn --file docs/api.yaml

bootstrap:
	@$(PYTHON) scripts/bootstrap.py $(RUN_TIME)

bootstrap-dev:
	@$(PYTHON) scripts/bootstrap.py $(RUN_TIME) dev
