"""Record what torch.compile costs, gains and generates here, for lesson 16.

python assets/recordings/make/record_compile.py

compile_cpu.csv: the script's table from two processes, the first with an empty cache of compiled
code and the second with the cache that the first one left. compile_cpu.log: the generated code.
"""

import os
import re
import tempfile

import recording
import torch

from helpers import machine, terminal

COMMAND = "python notebooks/scripts/compile_some.py"
LOGGED = f"{COMMAND} chain matmul_and_relu"
PREFIX = re.compile(r"^[VIW]\d{4} \S+ \d+ \S+\] ", re.M)


def run(command: str, cache: str, **variables: str):
    variables["TORCHINDUCTOR_CACHE_DIR"] = cache
    return terminal.run(command, recording.ROOT, timeout=3600, **variables)


with tempfile.TemporaryDirectory() as folder:
    tables = [run(COMMAND, folder).stdout.splitlines() for _ in ("empty", "full")]
    log = run(LOGGED, folder, TORCH_LOGS="output_code").stderr
head, *empty = tables[0]
lines = [f"cache,{head}", *(f"empty,{line}" for line in empty)]
lines += [f"full,{line}" for line in tables[1][1:]]
(recording.RECORDINGS / "compile_cpu.csv").write_text("\n".join([*lines, ""]), encoding="utf-8")
code = [line for line in log.splitlines() if "[__output_code]" in line and "written to" not in line]
text = PREFIX.sub("V0101 00:00:00.000000 0 graph.py] ", "\n".join([*code, ""]))
(recording.RECORDINGS / "compile_cpu.log").write_text(text, encoding="utf-8")
about = recording.provenance(
    __file__,
    f"{machine.describe()['processor']}, one of {os.cpu_count()} cores",
    COMMAND,
    torch=torch.__version__,
    vectors=torch.backends.cpu.get_cpu_capability(),
)
recording.save("compile_cpu", about)
