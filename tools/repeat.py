"""Run the notebooks strictly again and again, and sum up what failed: for flakes.

python -m tools.repeat TIMES [--busy PROCESSES] [NOTEBOOK ...]
"""

import argparse
import subprocess
import sys
from collections import Counter

from tools import notebooks


def main(arguments: list[str]) -> int:
    parser = argparse.ArgumentParser(description="Run the notebooks several times.")
    parser.add_argument("times", type=int)
    parser.add_argument("--busy", type=int, default=0, help="processes that compute beside them")
    parser.add_argument("pytest", nargs="*", default=[str(notebooks.NOTEBOOKS)])
    options = parser.parse_intermixed_args(arguments)
    failures: Counter[str] = Counter()
    beside = [subprocess.Popen([sys.executable, "-c", "while 1: 0"]) for _ in range(options.busy)]
    try:
        for run in range(1, options.times + 1):
            words = [sys.executable, "-m", "pytest", "-q", "-rfE", *options.pytest]
            done = subprocess.run(words, cwd=notebooks.ROOT, capture_output=True, text=True)
            said = (done.stdout + done.stderr).splitlines()
            last = [line for line in said if line.strip()][-1]
            failed = [line for line in said if line[:6] in ("FAILED", "ERROR ")]
            failures.update(failed or [last] * (done.returncode != 0))
            print(f"{run}: {len(failed)} failed; {last}", flush=True)
    finally:
        for process in beside:
            process.kill()
            process.wait()
    for line, count in failures.most_common():
        print(f"{count} of {options.times}: {line}")
    return 1 if failures else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
