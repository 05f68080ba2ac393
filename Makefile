# make lab        work through the course in work/, a copy of your own (FRESH=04 starts lesson 04 again)
# make teach      the same for an instructor, in teach/
# make test       execute every notebook again and check it
# make test-all   everything that CI checks
# make grade SUBMISSIONS=folder                 a class's exercises (OPTIONS="--due 2026-12-01T23:59")
# make slides     a deck for each lesson, in slides/
# make site       the course as a web site to read, in site/html/
# make report MODEL=package.module:function     profile a model of yours, as one page
# make compare OLD=module:function NEW=module:function     which is faster? (OPTIONS="--seconds 10")
# make refresh    execute the notebooks in place
# make lint       the style of code and notebooks
# make lock       renew constraints.txt from the requirements
#
# PYTHON=python3.12 chooses the Python that .venv is made with.

PYTHON ?= python3
BIN := .venv/bin
READY := .venv/ready
MAKERS := .venv/makers
GRADERS := .venv/graders
# Two files at a time, in order: a lesson measures beside a busy neighbour, as its claims must stand.
PARALLEL := -n 2 --dist loadfile --no-loadscope-reorder

.PHONY: lab teach slides site test test-all refresh report compare grade lint lock
.DELETE_ON_ERROR:

lab: $(READY)
	$(BIN)/python -m tools.lab $(if $(FRESH),--fresh $(FRESH))

teach: $(READY)
	$(BIN)/python -m tools.lab --teach $(if $(FRESH),--fresh $(FRESH))

slides: $(READY) $(MAKERS)
	@$(BIN)/python -m tools.slides $(NOTEBOOK)

test: $(READY)
	$(BIN)/python -m pytest $(PARALLEL)

test-all: test $(MAKERS) $(GRADERS) # then all that costs more, under a malloc that keeps freed blocks, as macOS's does
	MALLOC_MMAP_MAX_=0 MALLOC_TRIM_THRESHOLD_=10000000000 MALLOC_TOP_PAD_=0 \
	  $(BIN)/python -m pytest --everything -m 'everything or notebook'

refresh: $(READY) $(GRADERS) # then the exercises are released from their solutions
	$(BIN)/python -m tools.refresh $(NOTEBOOK)
	@$(BIN)/python -m tools.exercises release

report: $(READY)
	@$(BIN)/python -m tools.report "$(MODEL)"

compare: $(READY)
	@$(BIN)/python -m helpers.compare "$(OLD)" "$(NEW)" $(OPTIONS)

site: $(READY) $(MAKERS)
	@$(BIN)/sphinx-build -M html . site -c tools/site -q --fail-on-warning --keep-going
	@echo "written: site/html/index.html"

grade: $(READY) $(GRADERS)
	@$(BIN)/python -m grading "$(SUBMISSIONS)" $(OPTIONS)

lint: $(READY)
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .

lock: $(READY)
	cat requirements.txt requirements-make.txt requirements-grade.txt | grep -v '^-' | $(BIN)/uv pip compile --quiet --universal --python-version 3.11 \
	  --no-annotate --no-header - -o constraints.txt

$(READY): requirements.txt constraints.txt pyproject.toml
	@test -w . || { echo "This folder cannot be written to: copy the course to one of your own, and call make there."; exit 1; }
	@$(PYTHON) tools/install.py --check
	$(PYTHON) -m venv .venv
	$(BIN)/python tools/install.py
	@touch $(READY)

$(MAKERS): requirements-make.txt $(READY)
	$(BIN)/python -m pip install --quiet -r requirements-make.txt -c constraints.txt && touch $(MAKERS) \
	  || echo "What the site, the decks and the browser's tests need could not be installed: the tests are skipped."

$(GRADERS): requirements-grade.txt $(READY)
	$(BIN)/python -m pip install --quiet -r requirements-grade.txt -c constraints.txt && touch $(GRADERS)
