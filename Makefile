# Every target prepares the virtual environment by itself; nothing but Python 3.11 or newer is needed before.
SHELL := /bin/bash
PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
RUNTIME := $(VENV)/.runtime-installed
DEVELOPMENT := $(VENV)/.development-installed
OLDER_CLIENT := $(VENV)/deepagents-0.7.8
REFERENCE := $(VENV)/langgraph-dev
PIP := $(BIN)/python -m pip --disable-pip-version-check --quiet

.PHONY: help demo up test again lint oracle bench messages openapi lock format clean
.DEFAULT_GOAL := help

help: ## show this list
	@grep -hE '^[a-z]+:.*## ' $(MAKEFILE_LIST) | sed -E 's/^([a-z]+):.*## /  make \1\t/'

demo: $(RUNTIME) ## everything with sample data, no key needed; Ctrl-C stops it
	@exec $(BIN)/python manage.py demo $(ARGS)

up: $(RUNTIME) ## the product for real use; ARGS="--host 0.0.0.0 --port 80 --workers 4"
	@exec $(BIN)/python manage.py up $(ARGS)

test: $(DEVELOPMENT) ## all tests this machine can run; ARGS are pytest's
	@.ci/test $(ARGS)

again: $(DEVELOPMENT) ## part of the tests many times on both databases; ARGS="10 -m race" or "3 -m faults"
	@.ci/again $(ARGS)

lint: $(DEVELOPMENT) ## every wall: ruff, mypy, import-linter, djlint, migrations, checks, translations
	@.ci/lint

oracle: $(DEVELOPMENT) $(REFERENCE) ## the Agent Protocol server beside `langgraph dev`: what differs, and why
	@$(BIN)/python -m tests.oracle $(REFERENCE)/bin/langgraph

bench: $(DEVELOPMENT) ## measure the product against the floor server; ARGS are the harness's
	@$(BIN)/python -m bench $(ARGS)

messages: $(DEVELOPMENT) ## collect new sentences into locale/ (needs gettext)
	@$(BIN)/python manage.py makemessages -l zh_Hans --no-wrap --no-location --ignore '.venv/*' --ignore 'tests/*'

openapi: $(DEVELOPMENT) ## write docs/openapi.yaml anew after a change of the API
	@.ci/openapi

lock: $(DEVELOPMENT) ## write constraints.txt anew from the two requirements files
	@.ci/lock

format: $(DEVELOPMENT) ## let ruff lay out the code
	@$(BIN)/ruff check --fix --quiet . ; $(BIN)/ruff format --quiet .

clean: ## remove what can be made again; the database and the secrets in .deer-flow stay
	@rm -rf $(VENV) .pytest_cache .mypy_cache .ruff_cache .hypothesis .import_linter_cache test-artefacts
	@find . -name __pycache__ -type d -prune -exec rm -rf {} + ; find locale -name '*.mo' -delete

$(BIN)/python:
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11))' 2>/dev/null || { \
	  echo "Python 3.11 or newer is needed; '$(PYTHON)' is $$($(PYTHON) --version 2>&1 || true)." ; \
	  echo "Name another one: make PYTHON=python3.12 $(MAKECMDGOALS)" ; exit 1 ; }
	@$(PYTHON) -m venv $(VENV) || { \
	  echo "The virtual environment could not be made. On Debian: apt-get install python3-venv" ; \
	  rm -rf $(VENV) ; exit 1 ; }

# A stamp is newer than the files it was made from, so a second start installs nothing.
$(RUNTIME): $(BIN)/python requirements.txt constraints.txt
	@echo "Installing (only when requirements change) ..."
	@$(PIP) install -r requirements.txt -c constraints.txt
	@touch $@

$(DEVELOPMENT): $(BIN)/python requirements.txt requirements-dev.txt constraints.txt
	@echo "Installing for development (only when requirements change) ..."
	@$(PIP) install -r requirements.txt -r requirements-dev.txt -c constraints.txt
	@$(PIP) install --no-deps --upgrade --target $(OLDER_CLIENT) deepagents==0.7.8
	@touch $@ $(RUNTIME)

# An environment of its own: the SDK inside ours would take the reference's server for its own.
$(REFERENCE): tests/oracle/requirements.txt $(BIN)/python
	@rm -rf $@ && $(PYTHON) -m venv $@
	@$@/bin/python -m pip --disable-pip-version-check --quiet install -r tests/oracle/requirements.txt
	@touch $@
