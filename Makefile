# make run | test | check | bench: each sets up what it needs in .venv; Python >= 3.11 with venv is enough.
PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
PORT ?= 8080

.PHONY: run test check bench bench-scan fuzz conformance leakbench real-model lock clean

run: $(VENV)/ready
	$(BIN)/sidecar demo --port $(PORT)

test: $(VENV)/ready
	$(BIN)/python -m pytest -n 2

check: $(VENV)/ready
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy
	$(BIN)/lint-imports --no-cache

bench: $(VENV)/ready
	$(BIN)/python -m bench

# The scanner: recall and precision beside its peers, and what it costs.
bench-scan: $(VENV)/ready
	$(BIN)/python -m bench.scan

# The nightly size of the property tests: 50,000 random streams and more.
fuzz: $(VENV)/ready
	FUZZ=1 $(BIN)/python -m pytest -n 2 tests/text tests/wire tests/stores tests/test_streams_property.py

# The official client's own 6,000 tests and more, direct and through the sidecar.
conformance: $(VENV)/ready
	$(BIN)/python -m tests.conformance

# A black box that looks for personal data and keys on both sides of the sidecar: every value cut at every place.
leakbench: $(VENV)/ready
	$(BIN)/python -m tests.leakbench

# A small model that really runs, behind the sidecar: tool calls and objects for the official clients. Needs Node.js.
real-model: $(VENV)/ready
	$(BIN)/python -m tests.realmodel

$(VENV)/ready: requirements-dev.txt pyproject.toml
	$(PYTHON) -m venv $(VENV)
	$(BIN)/python -m pip install --quiet --disable-pip-version-check --require-hashes --requirement requirements-dev.txt
	$(BIN)/python -m pip install --quiet --disable-pip-version-check --no-deps --no-build-isolation --editable .
	touch $@

# Needs pip-tools; rewrites both lock files from pyproject.toml and requirements-dev.in.
COMPILE := $(BIN)/pip-compile --quiet --generate-hashes --allow-unsafe --strip-extras --no-emit-index-url --no-emit-find-links --no-emit-trusted-host --no-emit-options
lock: $(VENV)/ready
	$(COMPILE) --output-file requirements.txt pyproject.toml
	$(COMPILE) --constraint requirements.txt --extra demo --output-file requirements-dev.txt requirements-dev.in pyproject.toml

clean:
	rm -rf $(VENV) build *.egg-info
