"""Record what torch.compile costs and gains here, for lesson 15: compile_cpu.csv.

python assets/recordings/make/record_compile.py
"""

import os

import recording
import torch

from helpers import machine, terminal

COMMAND = "python notebooks/scripts/compile_some.py"
table = terminal.run(COMMAND, recording.ROOT, timeout=3600).stdout
(recording.RECORDINGS / "compile_cpu.csv").write_text(table, encoding="utf-8")
about = recording.provenance(
    __file__,
    f"{machine.describe()['processor']}, one of {os.cpu_count()} cores",
    COMMAND,
    torch=torch.__version__,
    vectors=torch.backends.cpu.get_cpu_capability(),
)
recording.save("compile_cpu", about)
