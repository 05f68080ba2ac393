"""Record what the lessons show of a GPU, on yours: one call, under ten minutes.

    python scripts/record_gpu.py FOLDER [PART ...] [--minutes 9.5] [--rehearse]

Needs an NVIDIA GPU and torch 2.11 or later; uses what it finds of the course's
other packages, nsys ($NSYS) and ncu ($NCU), and says what it could not record.
Every part runs in a process of its own and is written when it is complete. The same
call again goes on with what is missing. --rehearse records tiny sizes in a minute
or two, to see that everything works before the real thing. --show prints what a
folder says, in a page.
"""

import argparse
import contextlib
import json
import os
import shutil
import signal
import subprocess
import sys
import tempfile
import time
import traceback
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

SCRIPTS = Path(__file__).resolve().parent
sys.path.insert(0, str(SCRIPTS.parent.parent))  # the course, if it is not installed

from recording import common  # noqa: E402

# Name of a part: the lesson that reads it, the seconds it may take, what it is.
# In this order, so that what most lessons need comes first, and what a hanging tool
# could disturb comes before the tools.
PARTS: dict[str, tuple[str, int, str]] = {
    "ceilings": ("00, 03", 60, "matrix products, copies, launches"),
    "timing": ("01", 60, "a convolution timed wrongly and rightly"),
    "small_cnn": ("04", 60, "SmallCNN's training steps, traced"),
    "memory": ("06", 60, "parameters, saved tensors, peak, a snapshot"),
    "roofline": ("03", 60, "six operators, in two sizes"),
    "copies": ("06", 60, "pinned and pageable copies"),
    "loader": ("06", 90, "the GPU's gaps with 0 and 4 workers"),
    "lines": ("05", 120, "line times, launches blocking and not"),
    "nsys": ("07", 240, "a program with marks, under Nsight Systems"),
    "ncu": ("07", 300, "counters of seven kernels"),
    "resnet50": ("04", 120, "ResNet-50 traced, batch 4 and 512"),
    "vit": ("04", 120, "ViT-B/16 traced, batch 4 and 512"),
    "sweep_resnet50_training": ("04", 120, "batch sizes and formats"),
    "sweep_vit_training": ("04", 120, "batch sizes and formats"),
    "sweep_resnet50_forward": ("04", 120, "batch sizes and formats"),
    "sweep_vit_forward": ("04", 120, "batch sizes and formats"),
    "compiled": ("04", 180, "ResNet-50, eager and compiled"),
}
WITHOUT_A_TOOL = 3  # the exit status of a part that lacks one
REASON = "reason"  # the file in which a part says why it ended early
SAME = ("device", "torch")  # one folder holds one machine's recordings


def function(part: str) -> Callable[[Path, bool], dict[str, Any]]:
    """What records ``part``: imports torch, and only what this part needs."""
    if part in ("ceilings", "roofline", "timing"):
        from recording import speed

        return getattr(speed, part)
    if part in ("lines", "nsys", "ncu"):
        from recording import tools

        return getattr(tools, part)
    if part in ("memory", "copies", "loader"):
        from recording import memory

        return memory.allocator if part == "memory" else getattr(memory, part)
    from recording import profiles

    names = {"resnet50": "ResNet-50", "vit": "ViT-B/16"}
    if part in names:
        return partial(profiles.traces, model_name=names[part])
    if part.startswith("sweep_"):
        _, model, mode = part.split("_")
        return partial(profiles.sweep, model_name=names[model], mode=mode)
    return getattr(profiles, part)


def record(part: str, folder: Path, work: Path, rehearse: bool) -> None:
    """Record one part in this process; move its files to ``folder`` at the end."""
    from recording import gpu
    from recording.tools import Missing

    before = gpu.state()
    try:
        content = function(part)(work, rehearse)
    except ModuleNotFoundError as error:
        (work / REASON).write_text(f"{error.name} is not installed")
        sys.exit(WITHOUT_A_TOOL)
    except Missing as error:
        (work / REASON).write_text(str(error))
        sys.exit(WITHOUT_A_TOOL)
    about = gpu.provenance(part, rehearse)
    about["clocks, power, temperature"] = f"before: {before}; after: {gpu.state()}"
    common.save(work / f"{part}.json", {"provenance": about, **content})
    files = sorted(path for path in work.iterdir() if path.is_file())
    for path in files:
        leak = next(
            (leak for t in common.texts(path) for leak in common.leaks(t)), ""
        )
        if leak:
            held = folder / "held_back" / part
            shutil.rmtree(held, ignore_errors=True)
            shutil.copytree(work, held)
            (work / REASON).write_text(f"{path.name} holds {leak}; see {held}")
            sys.exit(1)
    for path in files:
        path.replace(folder / path.name)


def describe() -> dict[str, Any]:
    """The provenance of this machine's GPU; ends with a sentence if it has none."""
    try:
        import torch
    except ModuleNotFoundError:
        sys.exit("record_gpu.py needs torch 2.11 or later, and none is installed.")
    if not torch.cuda.is_available():
        sys.exit(
            "record_gpu.py needs an NVIDIA GPU that PyTorch can use, but torch "
            f"{torch.__version__} finds none. On a machine with one, install torch "
            "without CPU=1 and compare its CUDA with what nvidia-smi shows."
        )
    if os.environ.get("CUDA_LAUNCH_BLOCKING", "0") != "0":
        sys.exit(
            "CUDA_LAUNCH_BLOCKING is set, so launches would wait and times would "
            "be wrong: unset it and call again."
        )
    from recording import gpu

    return gpu.provenance("PART", False)


def child(words: list[str], limit: float) -> tuple[int | None, str, str]:
    """Run this program again; return status (None: too long), output and errors."""
    text = {"mode": "w+", "encoding": "utf-8", "errors": "replace"}
    with (
        tempfile.TemporaryFile(**text) as out,
        tempfile.TemporaryFile(**text) as err,
    ):
        process = subprocess.Popen(
            [sys.executable, __file__, *words],
            stdout=out,
            stderr=err,
            start_new_session=True,  # so that its own children end with it
        )
        try:
            status = process.wait(limit)
        except subprocess.TimeoutExpired:
            status = None
            process.terminate()  # it ends the tool that it started, then itself
            with contextlib.suppress(subprocess.TimeoutExpired):
                process.wait(10)
        finally:
            if process.poll() is None:
                common.end(process)
        out.seek(0)
        err.seek(0)
        return status, out.read(), err.read()


def attempt(
    part: str, folder: Path, rehearse: bool, limit: float, keep: Path | None = None
) -> tuple[str, str]:
    """Record ``part`` in a child: ("recorded", ""), or a verdict and a reason."""
    work = Path(tempfile.mkdtemp(dir=folder, prefix=".part-"))
    words = [str(folder), "--child", part, "--work", str(work)]
    words += ["--rehearse"] if rehearse else []
    try:
        status, out, said = child(words, limit)
        file = work / REASON
        reason = file.read_text() if file.exists() else f"it ended with {status}"
        if keep is not None:
            shutil.copytree(work, keep / part, dirs_exist_ok=True)
            log = keep / part / "log.txt"
            log.write_text(f"{status}\n{out}\n{said}", encoding="utf-8")
    finally:
        shutil.rmtree(work, ignore_errors=True)
    if status == 0:
        return "recorded", ""
    if status is None:
        return "failed", f"it took longer than {limit:.0f} s"
    if status == WITHOUT_A_TOOL:
        return "missing", reason
    print("\n".join(f"    {line}" for line in said.splitlines()[-12:]))
    return "failed", reason


def read_index(
    folder: Path, about: dict[str, Any], rehearse: bool
) -> dict[str, Any]:
    """What ``folder`` already holds, or an error if it is of another machine."""
    path = folder / "index.json"
    if not path.exists():
        command = "python scripts/record_gpu.py FOLDER"
        about = about | {"command": command, "rehearsal": str(rehearse).lower()}
        return {"provenance": about, "recorded": {}, "not recorded": {}}
    index = common.load(path)
    here = about | {"rehearsal": str(rehearse).lower()}
    for name in (*SAME, "rehearsal"):
        if index["provenance"][name] != here[name]:
            sys.exit(
                f"{folder} holds recordings with {name} "
                f"{index['provenance'][name]}, but this would be {here[name]}: "
                "choose another folder."
            )
    return index


def record_all(
    folder: Path,
    parts: list[str],
    minutes: float,
    rehearse: bool,
    keep: Path | None,
) -> dict[str, Any]:
    """Record what is missing, as far as the time goes; return the index."""
    end = time.monotonic() + 60 * minutes
    status, out, said = child(["--describe"], 120)
    if status != 0:
        sys.exit(said.strip() or "the GPU did not answer within two minutes")
    folder.mkdir(parents=True, exist_ok=True)
    index = read_index(folder, json.loads(out), rehearse)
    print(f"{index['provenance']['device']}, torch {index['provenance']['torch']}")
    for part in parts:
        if part in index["recorded"] and (folder / f"{part}.json").exists():
            print(f"  {part:26}already there")
            continue
        left = end - time.monotonic()
        if left < PARTS[part][1] / 3:  # it would hardly end
            verdict, reason = "no time", "no time was left: the same call goes on"
        else:
            start = time.monotonic()
            limit = min(left, PARTS[part][1])
            verdict, reason = attempt(part, folder, rehearse, limit, keep)
            seconds = round(time.monotonic() - start, 1)
        if verdict == "recorded":
            index["recorded"][part] = seconds
            index["not recorded"].pop(part, None)
            print(f"  {part:26}recorded in {seconds} s", flush=True)
        else:
            told = reason if not any(common.leaks(reason)) else "see the terminal"
            index["not recorded"][part] = {"verdict": verdict, "reason": told}
            print(f"  {part:26}{verdict}: {reason}", flush=True)
        common.save(folder / "index.json", index)
    return index


def show(folder: Path, parts: list[str]) -> None:
    """Print a few lines about each part that ``folder`` holds."""
    from recording import summary

    index = folder / "index.json"
    if not index.exists():
        sys.exit(f"{folder} holds no recordings: it has no index.json.")
    about = common.load(index)["provenance"]
    print(f"{about['device']}, torch {about['torch']}, {about['date']}")
    for part in parts:
        if (folder / f"{part}.json").exists():
            print(f"\n{part}: {PARTS[part][2]}")
            print(*(f"  {line}" for line in summary.of(part, folder)), sep="\n")


def main() -> None:
    parser = argparse.ArgumentParser(
        description="Record what the lessons show of a GPU.",
        epilog="Parts: "
        + "; ".join(f"{name} ({what})" for name, (_, _, what) in PARTS.items()),
    )
    parser.add_argument("folder", nargs="?", type=Path, help="where recordings go")
    parser.add_argument("parts", nargs="*", help="only these, instead of all")
    parser.add_argument(
        "--minutes", type=float, default=9.5, help="at most (default: 9.5)"
    )
    parser.add_argument(
        "--rehearse", action="store_true", help="tiny sizes, to try it out"
    )
    parser.add_argument(
        "--keep",
        type=Path,
        metavar="DIR",
        help="keep what the tools wrote there; it tells about your machine",
    )
    parser.add_argument(
        "--show",
        action="store_true",
        help="print what the folder says; record nothing",
    )
    parser.add_argument("--describe", action="store_true", help=argparse.SUPPRESS)
    parser.add_argument("--child", help=argparse.SUPPRESS)
    parser.add_argument("--work", type=Path, help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.describe:
        print(json.dumps(describe()))
        return
    if options.folder is None:
        parser.error("give the folder where the recordings go")
    folder = options.folder.resolve()
    if options.child:
        signal.signal(signal.SIGTERM, lambda *_: sys.exit("out of time"))
        try:
            record(options.child, folder, options.work.resolve(), options.rehearse)
        except Exception as error:
            traceback.print_exc()
            said = str(error).split("\n")[0]
            (options.work / REASON).write_text(f"{type(error).__name__}: {said}")
            sys.exit(1)
        return
    if unknown := set(options.parts) - set(PARTS):
        parser.error(
            f"parts are {', '.join(PARTS)}, but {', '.join(sorted(unknown))} came"
        )
    parts = [part for part in PARTS if not options.parts or part in options.parts]
    if options.show:
        show(folder, parts)
        return
    keep = options.keep and options.keep.resolve()
    index = record_all(folder, parts, options.minutes, options.rehearse, keep)
    size = sum(path.stat().st_size for path in folder.iterdir() if path.is_file())
    print(f"{len(index['recorded'])} of {len(PARTS)} parts, {size / 1e6:.1f} MB")
    verdicts = {entry["verdict"] for entry in index["not recorded"].values()}
    sys.exit(1 if verdicts & {"failed", "no time"} else 0)


if __name__ == "__main__":
    main()
