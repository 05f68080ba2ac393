# make lab       work through the course in JupyterLab      make test      re-execute and check it all
# make refresh   re-execute the notebooks in place          make lint      style of code and notebooks
#
# CPU=1 takes torch from PyTorch's CPU index: on Linux without an NVIDIA GPU it saves gigabytes.
# PYTHON=python3.12 chooses the Python that .venv is made with.

PYTHON ?= python3
BIN := .venv/bin
CPU_INDEX := https://download.pytorch.org/whl/cpu
READY := .venv/ready

.PHONY: lab test refresh lint
.DELETE_ON_ERROR:

lab: $(READY)
	$(BIN)/jupyter lab notebooks/00_start_here.ipynb

test: $(READY)
	$(BIN)/python -m pytest

refresh: $(READY)
	$(BIN)/python -m tools.refresh $(NOTEBOOK)

lint: $(READY)
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .

$(READY): requirements.txt pyproject.toml
	@$(PYTHON) -c 'import sys; v = sys.version_info[:2]; sys.exit(not (3, 11) <= v < (3, 14) and \
	  "This course needs Python 3.11, 3.12 or 3.13, but $(PYTHON) is %d.%d. Try: make PYTHON=python3.12 $(MAKECMDGOALS)" % v)'
	$(PYTHON) -m venv .venv
ifdef CPU
	$(BIN)/pip install --index-url $(CPU_INDEX) "$$(grep -o '^torch==[^ ]*' requirements.txt)"
endif
	$(BIN)/pip install -r requirements.txt
	@touch $(READY)
