# make lab       work through the course in JupyterLab      make test      re-execute and check it all
# make refresh   re-execute the notebooks in place          make lint      style of code and notebooks
# make recordings   record what the lessons show of a GPU, on a computer with one
#
# CPU=1 takes torch from PyTorch's CPU index: on Linux without an NVIDIA GPU it saves gigabytes.
# PYTHON=python3.12 chooses the Python that .venv is made with.
# OUT=folder chooses where the recordings go.

PYTHON ?= python3
BIN := .venv/bin
CPU_INDEX := https://download.pytorch.org/whl/cpu
READY := .venv/ready
OUT ?= assets/recordings/gpu

.PHONY: lab test refresh lint recordings
.DELETE_ON_ERROR:

lab: $(READY)
	$(BIN)/jupyter lab notebooks/00_start_here.ipynb

test: $(READY)
	$(BIN)/python -m pytest

refresh: $(READY)
	$(BIN)/python -m tests.refresh $(NOTEBOOK)

lint: $(READY)
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .

recordings: $(READY)
	$(BIN)/python notebooks/scripts/record_gpu.py $(OUT)

$(READY): requirements.txt pyproject.toml
	@$(PYTHON) -c 'import sys; v = sys.version_info[:2]; sys.exit(not (3, 11) <= v < (3, 14) and \
	  "This course needs Python 3.11, 3.12 or 3.13, but $(PYTHON) is %d.%d. Try: make PYTHON=python3.12 $(MAKECMDGOALS)" % v)'
	$(PYTHON) -m venv .venv
ifdef CPU
	$(BIN)/pip install --index-url $(CPU_INDEX) "$$(grep -o '^torch==[^ ]*' requirements.txt)"
endif
	$(BIN)/pip install -r requirements.txt
	@touch $(READY)
