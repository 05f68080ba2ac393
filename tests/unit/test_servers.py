from pathlib import Path

import pytest

from helpers import servers

REQUESTS = """input_tokens,output_tokens,queued_s,scheduled_s,first_token_s,last_token_s
10,3,0.0,1.0,1.5,3.5
10,5,1.0,4.0,4.5,8.5
"""


def test_the_median_of_each_part_of_a_request(tmp_path: Path) -> None:
    (tmp_path / "requests.csv").write_text(REQUESTS)
    medians = servers.medians(tmp_path / "requests.csv")
    assert medians.to_dict() == {"in the queue": 2, "prompt": 0.5, "per token": 1}
    assert servers.moments(tmp_path / "requests.csv")[1] == [1, 4, 4.5, 8.5]


def test_the_flop_and_bytes_of_a_phase_are_the_sums_of_its_shapes(tmp_path: Path) -> None:
    text = "phase,rows,n,k,calls,time_us\ndecode,1,2,3,10,60\ndecode,1,1,1,10,40\n"
    (tmp_path / "matmuls.csv").write_text(text)
    decode = servers.matmul_phases(tmp_path / "matmuls.csv").loc["decode"]
    assert decode["flop"] == 10 * 12 + 10 * 2
    assert decode["bytes"] == 2 * (10 * (3 + 6 + 2) + 10 * 3)
    assert decode["rate"] == pytest.approx(140 / 100e-6)
    assert decode["intensity"] == decode["flop"] / decode["bytes"]


def test_a_server_s_reports_become_curves(tmp_path: Path) -> None:
    text = "second,running,waiting,cache_percent\n1.0,5,2,13.2\n2.0,9,0,50.0\n"
    (tmp_path / "seconds.csv").write_text(text)
    lines = servers.running_requests(tmp_path / "seconds.csv")
    assert lines["running"] == [(1.0, 5), (2.0, 9)]
    assert lines["cache"] == [(1.0, 13.2), (2.0, 50.0)]
