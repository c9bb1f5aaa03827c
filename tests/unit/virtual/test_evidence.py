from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from drivelab.fio.cell_evidence import PERCENTILES, bin_indices, bin_value, write_evidence
from drivelab.fio.early_end import Completion

JOB = "[cell]\nfilename=S1\niodepth=4\n"


def fio_index(latency_ns: int) -> int:
    """Translate plat_val_to_idx of fio's stat.c line by line."""
    msb = latency_ns.bit_length() - 1 if latency_ns else 0
    if msb <= 6:
        return latency_ns
    error_bits = msb - 6
    base = (error_bits + 1) << 6
    return min(base + (63 & (latency_ns >> error_bits)), 29 * 64 - 1)


@given(st.lists(st.integers(0, 1 << 40), min_size=1))
def test_bins_equal_those_of_fio(latencies_ns: list[int]) -> None:
    assert bin_indices(np.array(latencies_ns)).tolist() == [fio_index(latency_ns) for latency_ns in latencies_ns]


@pytest.mark.parametrize("power", range(35))
def test_bins_equal_those_of_fio_around_powers_of_two(power: int) -> None:
    edges = [max((1 << power) + d, 0) for d in (-1, 0, 1)]
    assert bin_indices(np.array(edges)).tolist() == [fio_index(latency_ns) for latency_ns in edges]


def test_bin_values_equal_those_of_fio() -> None:
    printed_by_fio_3_33 = [
        1064, 1128, 1752, 1880, 2320, 2928, 4896, 7520, 10048, 22912, 45312, 66048, 95744, 2473984, 22675456
    ]  # fmt: skip
    assert [bin_value(fio_index(value)) for value in printed_by_fio_3_33] == printed_by_fio_3_33


@given(st.integers(0, 1 << 33))
def test_a_bin_value_is_accurate_to_one_part_in_128(latency_ns: int) -> None:
    value = bin_value(fio_index(latency_ns))
    assert abs(value - latency_ns) <= max(latency_ns / 128, 1)


def write(directory: Path, completions: list[Completion], **options: Any) -> list[dict[str, Any]]:
    write_evidence(directory, completions, **{"start_us": 0.0, "threads": (2,), "job": JOB, **options})
    text = (directory / "fio.json").read_text()
    decoder, position, documents = json.JSONDecoder(), 0, []
    while position < len(text):
        document, position = decoder.raw_decode(text, position)
        documents.append(document)
        position += 1
    return documents


def test_numbers_of_a_document(tmp_path: Path) -> None:
    completions = [(1000.0 * (i + 1), 1000.0 * i, i % 4 == 0, 4096) for i in range(2000)]
    (document,) = write(tmp_path, completions, start_us=0.0)
    job = document["jobs"][0]
    read, written = job["read"], job["write"]
    assert (read["total_ios"], written["total_ios"]) == (500, 1500)
    assert (read["io_bytes"], written["io_bytes"]) == (500 * 4096, 1500 * 4096)
    assert read["runtime"] == written["runtime"] == 2000
    assert (read["iops"], written["iops"]) == (250, 750)
    assert written["bw_bytes"] == 750 * 4096
    assert written["lat_ns"]["mean"] == 1e6
    assert (written["lat_ns"]["min"], written["lat_ns"]["max"], written["lat_ns"]["stddev"]) == (10**6, 10**6, 0)
    assert written["lat_ns"]["bins"] == {str(bin_value(fio_index(10**6))): 1500}
    assert job["job_runtime"] == 4000
    assert job["job options"] == {"filename": "S1", "iodepth": "4"}
    assert job["error"] == 0
    assert document["fio version"] == "virtual-clock"
    assert document["timestamp_ms"] == 946684800000 + 2000


def test_a_direction_without_ios_is_all_zero(tmp_path: Path) -> None:
    (document,) = write(tmp_path, [(5.0, 1.0, False, 512)])
    read = document["jobs"][0]["read"]
    assert (read["total_ios"], read["runtime"], read["lat_ns"]["N"]) == (0, 0, 0)
    assert "bins" not in read["lat_ns"]


def test_a_run_without_ios_is_written(tmp_path: Path) -> None:
    (document,) = write(tmp_path, [], start_us=3e6)
    assert document["jobs"][0]["write"]["total_ios"] == 0
    assert document["timestamp_ms"] == 946684803000


def test_percentiles_are_bins_at_the_rank(tmp_path: Path) -> None:
    latencies_us = np.random.default_rng(1).lognormal(5, 1, 5000)
    completions = [(1e4 * (i + 1), 1e4 * (i + 1) - us, True, 4096) for i, us in enumerate(latencies_us)]
    (document,) = write(tmp_path, completions)
    latency = document["jobs"][0]["read"]["lat_ns"]
    ordered = np.sort(latencies_us) * 1000
    assert list(latency["percentile"]) == [f"{p:.6f}" for p in PERCENTILES]
    for p in PERCENTILES:
        exact = ordered[int(np.ceil(p / 100 * len(ordered) - 1e-9)) - 1]
        assert latency["percentile"][f"{p:.6f}"] == pytest.approx(exact, rel=1 / 100)
    assert sum(latency["bins"].values()) == 5000


def test_slices_are_cumulative(tmp_path: Path) -> None:
    completions = [(1000.0 * (i + 1), 1000.0 * i, i % 2 == 0, 4096) for i in range(3500)]
    documents = write(tmp_path, completions, slice_s=1.0, start_us=0.0)
    assert [d["jobs"][0]["write"]["total_ios"] for d in documents] == [500, 1000, 1500, 1750]
    assert [d["jobs"][0]["write"]["runtime"] for d in documents] == [1000, 2000, 3000, 3500]
    assert documents[1]["timestamp_ms"] - documents[0]["timestamp_ms"] == 1000


def test_a_slice_without_ios_has_a_document(tmp_path: Path) -> None:
    documents = write(tmp_path, [(1000.0, 0.0, False, 512), (3.5e6, 3.4e6, False, 512)], slice_s=1.0)
    assert [d["jobs"][0]["write"]["total_ios"] for d in documents] == [1, 1, 1, 2]


def test_io_in_flight_at_the_end_is_in_the_last_document(tmp_path: Path) -> None:
    completions = [(1000.0 * (i + 1), 1000.0 * i, True, 512) for i in range(2010)]
    documents = write(tmp_path, completions, slice_s=1.0, until_s=2.0)
    assert [d["jobs"][0]["read"]["total_ios"] for d in documents] == [1000, 2010]


def test_the_chunks_of_a_long_run_add_up(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    completions = [(700.0 * (i + 1), 700.0 * i, i % 3 == 0, 4096) for i in range(5000)]
    (tmp_path / "whole").mkdir()
    (tmp_path / "parts").mkdir()
    write(tmp_path / "whole", completions, slice_s=0.5)
    monkeypatch.setattr("drivelab.fio.cell_evidence._CHUNK", 7)
    write(tmp_path / "parts", completions, slice_s=0.5)
    for whole in sorted((tmp_path / "whole").iterdir()):
        assert (tmp_path / "parts" / whole.name).read_text() == whole.read_text()


def test_series_have_one_line_per_second_and_direction(tmp_path: Path) -> None:
    completions = [(1000.0 * (i + 1), 1000.0 * i, i % 4 == 0, 4096) for i in range(2400)]
    write(tmp_path, completions, start_us=0.0)
    rows = {
        name: [
            [int(v) for v in line.split(", ")] for line in (tmp_path / f"series_{name}.1.log").read_text().splitlines()
        ]
        for name in ("iops", "bw", "lat")
    }
    assert [(row[0], row[2]) for row in rows["iops"]] == [(1000, 0), (1000, 1), (2000, 0), (2000, 1)]
    assert [row[1] for row in rows["iops"]] == pytest.approx([250, 750, 250, 750], abs=1)
    assert [row[1] for row in rows["bw"]] == pytest.approx([1000, 3000, 1000, 3000], abs=4)
    assert {row[1] for row in rows["lat"]} == {10**6}


def test_a_run_shorter_than_a_second_has_one_line_with_its_rate(tmp_path: Path) -> None:
    write(tmp_path, [(1000.0 * (i + 1), 1000.0 * i, False, 4096) for i in range(500)])
    assert (tmp_path / "series_iops.1.log").read_text() == "500, 1000, 1, 0, 0\n"
