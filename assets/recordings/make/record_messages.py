"""Read the numbers of ten out-of-memory messages: gpu/out_of_memory.csv, for lesson 09.

    python assets/recordings/make/record_messages.py

The messages are from issues and pull requests on GitHub. They were chosen because they say what
the process itself has in use, and because the free memory alone is too little for the request.
Only the message itself is here, with the page where it was published and the date of the post (for
OCRFlux, of the log in it). In the CSV, sizes are in GiB, and ``named others`` is the sum of the
other processes that the message names.
"""

import csv
import json
import re

import recording

MESSAGES = [
    (
        "pytorch/pytorch/pull/99699",
        "2023-04-21",
        "Tried to allocate 138.00 MiB. GPU 0 has a total capacty of 15.90 GiB of which 8.44 MiB is "
        "free. Process 1246069 has 577.00 MiB memory in use. Including non-PyTorch memory, this "
        "process has 15.32 GiB memory in use. Of the allocated memory 14.12 GiB is allocated by "
        "PyTorch, and 410.41 MiB is reserved by PyTorch but unallocated.",
    ),
    (
        "meta-llama/llama/issues/918",
        "2023-11-15",
        "Tried to allocate 448.00 MiB. GPU 3 has a total capacty of 15.77 GiB of which 289.38 MiB "
        "is free. Including non-PyTorch memory, this process has 15.49 GiB memory in use. Of the "
        "allocated memory 14.66 GiB is allocated by PyTorch, and 483.75 MiB is reserved by PyTorch "
        "but unallocated.",
    ),
    (
        "rwth-i6/returnn/issues/1469",
        "2023-11-28",
        "Tried to allocate 52.00 MiB. GPU 0 has a total capacty of 31.74 GiB of which 39.62 MiB is "
        "free. "
        + "".join(f"Process {n} has 1.19 GiB memory in use. " for n in range(101549, 101564))
        + "Including non-PyTorch memory, this process has 13.82 GiB memory in use. Of the "
        "allocated memory 11.54 GiB is allocated by PyTorch, and 677.26 MiB is reserved by PyTorch "
        "but unallocated.",
    ),
    (
        "kerrj/lerf/issues/73",
        "2024-02-01",
        "Tried to allocate 3.00 GiB. GPU 0 has a total capacty of 23.65 GiB of which 1.66 GiB is "
        "free. Including non-PyTorch memory, this process has 20.81 GiB memory in use. Of the "
        "allocated memory 12.09 GiB is allocated by PyTorch, and 4.84 GiB is reserved by PyTorch "
        "but unallocated.",
    ),
    (
        "kvcache-ai/ktransformers/issues/526",
        "2025-02-24",
        "Tried to allocate 3.45 GiB. GPU 0 has a total capacity of 31.73 GiB of which 1.66 GiB is "
        "free. Including non-PyTorch memory, this process has 30.07 GiB memory in use. Of the "
        "allocated memory 29.35 GiB is allocated by PyTorch, and 376.65 MiB is reserved by PyTorch "
        "but unallocated.",
    ),
    (
        "lllyasviel/FramePack/issues/369",
        "2025-04-27",
        "Tried to allocate 30.29 GiB. GPU 0 has a total capacity of 10.74 GiB of which 3.69 GiB is "
        "free. Including non-PyTorch memory, this process has 6.68 GiB memory in use. Of the "
        "allocated memory 6.10 GiB is allocated by PyTorch, and 396.58 MiB is reserved by PyTorch "
        "but unallocated.",
    ),
    (
        "Wan-Video/Wan2.1/issues/465",
        "2025-07-03",
        "Tried to allocate 100.00 MiB. GPU 0 has a total capacity of 31.37 GiB of which 15.88 MiB "
        "is free. Including non-PyTorch memory, this process has 31.34 GiB memory in use. Of the "
        "allocated memory 30.74 GiB is allocated by PyTorch, and 19.41 MiB is reserved by PyTorch "
        "but unallocated.",
    ),
    (
        "chatdoc-com/OCRFlux/issues/64",
        "2025-07-30",
        "Tried to allocate 786.00 MiB. GPU 0 has a total capacity of 44.35 GiB of which 739.50 MiB "
        "is free. Process 7668 has 28.14 GiB memory in use. Process 42562 has 536.00 MiB memory in "
        "use. Process 43388 has 1.94 GiB memory in use. Including non-PyTorch memory, this process "
        "has 12.99 GiB memory in use. Of the allocated memory 12.54 GiB is allocated by PyTorch, "
        "and 149.96 MiB is reserved by PyTorch but unallocated.",
    ),
    (
        "vllm-project/vllm-omni/pull/168",
        "2025-12-05",
        "Tried to allocate 320.00 MiB. GPU 0 has a total capacity of 22.05 GiB of which 113.62 MiB "
        "is free. Process 60 has 184.00 MiB memory in use. Process 161 has 184.00 MiB memory in "
        "use. Process 198 has 13.57 GiB memory in use. Including non-PyTorch memory, this process "
        "has 7.79 GiB memory in use. Process 344 has 184.00 MiB memory in use. Of the allocated "
        "memory 6.79 GiB is allocated by PyTorch, and 778.05 MiB is reserved by PyTorch but "
        "unallocated.",
    ),
    (
        "vllm-project/compressed-tensors/pull/587",
        "2026-02-17",
        "Tried to allocate 1.96 GiB. GPU 0 has a total capacity of 79.18 GiB of which 1.08 GiB is "
        "free. Including non-PyTorch memory, this process has 78.09 GiB memory in use. Of the "
        "allocated memory 75.31 GiB is allocated by PyTorch, and 1.83 GiB is reserved by PyTorch "
        "but unallocated.",
    ),
]
SIZE = r"([\d.]+ [MG]iB)"
PATTERNS = {
    "requested": rf"allocate {SIZE}",
    "capacity": rf"total capaci?ty of {SIZE}",
    "free": rf"of which {SIZE} is free",
    "this process": rf"this process has {SIZE}",
    "named others": rf"Process \d+ has {SIZE}",
    "tensors": rf"{SIZE} is allocated by PyTorch",
    "unused": rf"{SIZE} is reserved by PyTorch but unallocated",
}


def gibibytes(sizes: list[str]) -> float:
    """The sum of sizes such as "577.00 MiB", rounded to a hundredth of a MiB."""
    units = {"MiB": 2**-10, "GiB": 1}
    numbers = (float(number) * units[unit] for number, unit in map(str.split, sizes))
    return round(sum(numbers), 5)


rows = [
    {"page": page, "date": date}
    | {name: gibibytes(re.findall(pattern, message)) for name, pattern in PATTERNS.items()}
    for page, date, message in MESSAGES
]
target = recording.RECORDINGS / "gpu" / "out_of_memory.csv"
with target.open("w", encoding="utf-8", newline="") as file:
    table = csv.DictWriter(file, rows[0], lineterminator="\n")
    table.writeheader()
    table.writerows(rows)
about = {
    "device": "ten GPUs of others, with 10.74 to 79.18 GiB",
    "versions": "PyTorch 2.1 or newer, because older messages do not contain these numbers",
    "sources": "the pages of github.com in the column page; only the numbers of each message",
    "date": "2026-11-28",
    "command": "python assets/recordings/make/record_messages.py",
    "recorder": "assets/recordings/make/record_messages.py",
}
text = json.dumps({"provenance": about}, indent=1) + "\n"
target.with_suffix(".json").write_text(text, encoding="utf-8", newline="\n")
