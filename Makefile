# The two commands: `make train` and `make test`. Both set up everything they need in .venv.
# `make test-all` runs the slow tests too, `make test-touched` those of what a change touches.
PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
RUN := runs/first
# Four processes share two cores: threads of PyTorch that wait for work sleep instead of spinning.
PYTEST := OMP_WAIT_POLICY=passive $(BIN)/pytest -n 4

.PHONY: train test test-touched test-all lint types tests tests-touched tests-all docs setup format clean

train: $(VENV)/ready  ## train CartPole-v1 until it is solved, then film it
	rm -rf $(RUN)
	$(BIN)/escalade train CartPole-v1 --seed 1 --run-dir $(RUN)
	$(BIN)/escalade eval $(RUN)
	$(BIN)/escalade render $(RUN)
	@echo "Look at $(RUN)/curve.png and $(RUN)/video.mp4"
	@echo "Now run 'source $(BIN)/activate', and then 'escalade --help'; or call $(BIN)/escalade"

# Types and documentation use one core each, side by side. The tests start after lint, next to what is left of the types.
test: $(VENV)/ready  ## what a change is checked by
	@$(MAKE) --no-print-directory -j2 types docs lint tests

test-touched: $(VENV)/ready  ## with the slow tests of the files that git says were touched
	@$(MAKE) --no-print-directory -j2 types docs lint tests-touched

test-all: $(VENV)/ready  ## all that continuous integration runs
	@$(MAKE) --no-print-directory -j2 types docs lint tests-all

lint: $(VENV)/ready  ## format, lint, and the direction of imports
	$(BIN)/ruff format --check .
	$(BIN)/ruff check .
	$(BIN)/lint-imports

types: $(VENV)/ready
	$(BIN)/mypy

tests: $(VENV)/ready
	$(PYTEST)

tests-touched: $(VENV)/ready
	$(PYTEST) -m 'slow or not slow' --touched

tests-all: $(VENV)/ready  ## with those marked slow, and five times the damaged run folders
	ESCALADE_FUZZ_CASES=600 $(PYTEST) -m 'slow or not slow'

docs: $(VENV)/ready  ## the guides and the API reference, in site/
	NO_MKDOCS_2_WARNING=1 $(BIN)/mkdocs build --strict
	$(BIN)/python docs/links.py

setup: $(VENV)/ready

format: $(VENV)/ready
	$(BIN)/ruff format .
	$(BIN)/ruff check --fix .

clean:
	rm -rf $(VENV)

$(VENV)/ready: pyproject.toml constraints.txt
	$(PYTHON) -m venv $(VENV)
	$(BIN)/python -m pip install --quiet --disable-pip-version-check -c constraints.txt -e '.[all,dev,docs,examples,language]'
	touch $@
