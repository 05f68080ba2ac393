"""Print the high-water marks of this process, perhaps after it has run a program.

Run it, on Linux, with ``python scripts/memory_marks.py [SCRIPT ARGUMENT ...]``. The
last line of the output is JSON, in bytes.
"""

import json
import resource
import runpy
import sys
from pathlib import Path

if sys.argv[1:]:
    del sys.argv[0]
    runpy.run_path(sys.argv[0], run_name="__main__")

status = Path("/proc/self/status").read_text()
usage = resource.getrusage(resource.RUSAGE_SELF)
marks = {
    "ru_maxrss": 1024 * usage.ru_maxrss,  # Linux counts both of them in KiB
    "VmHWM": 1024 * int(status.split("VmHWM:")[1].split()[0]),
}
print(json.dumps(marks))
