"""The evidence in data/ is from fio 3.33 on a file and on a loop device, reduced to the fields that are read."""

from __future__ import annotations

import copy
import json
import math
import shutil
from collections import Counter
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from drivelab.core.errors import CellFailed
from drivelab.fio.document import documents, from_document
from drivelab.fio.result import check, complete_slices, read_result, read_slices
from drivelab.fio.series import read_series, slices
from drivelab.plan.cell import Cell

DATA = Path(__file__).parent / "data"
MIX = Cell("random", 65, 4096, threads=2, queue_depth=4, runtime_s=1.0)
SOAK = Cell("random", 0, 4096, threads=2, queue_depth=4, runtime_s=3.0, slice_s=1.0)


@pytest.fixture
def mix(tmp_path: Path) -> Path:
    """Return a copy of the mixed cell's evidence, to be damaged."""
    return Path(shutil.copytree(DATA / "mix", tmp_path / "mix"))


def soak_documents() -> list[dict[str, Any]]:
    return list(documents((DATA / "soak/fio.json").read_text()))


def test_a_mix_is_reads_plus_writes() -> None:
    raw = json.loads((DATA / "mix/fio.json").read_text())["jobs"][0]
    result = read_result(DATA / "mix", MIX)
    reads, writes = raw["read"], raw["write"]
    assert result.iops == pytest.approx(reads["iops"] + writes["iops"])
    assert result.bandwidth_mib_s == pytest.approx((reads["bw_bytes"] + writes["bw_bytes"]) / 2**20)
    assert result.ios == reads["total_ios"] + writes["total_ios"]
    assert result.bytes == 4096 * result.ios
    assert result.runtime_s == 1.001
    assert (result.user_cpu_pct, result.system_cpu_pct) == (raw["usr_cpu"], raw["sys_cpu"])
    assert result.fio_version == "3.33"


def test_mean_latency_counts_each_io_once_and_the_maximum_is_the_larger() -> None:
    raw = json.loads((DATA / "mix/fio.json").read_text())["jobs"][0]
    reads, writes = raw["read"]["lat_ns"], raw["write"]["lat_ns"]
    result = read_result(DATA / "mix", MIX)
    total_ns = reads["mean"] * reads["N"] + writes["mean"] * writes["N"]
    assert result.mean_latency_us == pytest.approx(total_ns / (reads["N"] + writes["N"]) / 1000)
    assert result.max_latency_us == max(reads["max"], writes["max"]) / 1000
    assert result.read.mean_latency_us == pytest.approx(reads["mean"] / 1000)


def test_percentiles_are_of_the_merged_bins() -> None:
    result = read_result(DATA / "mix", MIX)
    assert result.bins == Counter(result.read.bins) + Counter(result.write.bins)
    assert result.bins.total() == result.ios
    ordered = sorted(result.bins.elements())
    for percent in (50, 99, 99.9, 99.99, 99.999):
        rank = math.ceil(percent / 100 * len(ordered) - 1e-9)
        assert result.percentiles_us(percent) == (min(ordered[rank - 1] / 1000, result.max_latency_us),)
    assert result.percentiles_us(99, 50) == (*result.percentiles_us(99), *result.percentiles_us(50))


def test_fio_stamps_the_end_so_the_start_is_earlier() -> None:
    raw = json.loads((DATA / "mix/fio.json").read_text())
    printed = datetime.fromtimestamp(raw["timestamp_ms"] / 1000, UTC)
    result = read_result(DATA / "mix", MIX)
    assert (printed - result.started).total_seconds() == pytest.approx(result.runtime_s)


def test_slices_are_differences_and_add_up_to_the_run() -> None:
    raw = soak_documents()
    whole, parts = read_result(DATA / "soak", SOAK), read_slices(DATA / "soak", SOAK)
    assert len(raw) == 4
    assert len(parts) == 3  # the last 0.1 s are part of the third slice
    assert sum(part.ios for part in parts) == whole.ios
    assert sum(part.bytes for part in parts) == whole.bytes
    assert sum(part.runtime_s for part in parts) == pytest.approx(whole.runtime_s)
    assert sum((part.bins for part in parts), Counter()) == whole.bins
    total_us = sum(part.write.latencies * part.mean_latency_us for part in parts)
    assert total_us / whole.ios == pytest.approx(whole.mean_latency_us)
    cpu_s = sum(part.thread_time_s * part.user_cpu_pct for part in parts)
    assert cpu_s == pytest.approx(whole.thread_time_s * whole.user_cpu_pct)
    first, second = (document["jobs"][0]["write"] for document in raw[:2])
    seconds = (second["runtime"] - first["runtime"]) / 1000
    assert parts[1].iops == pytest.approx((second["total_ios"] - first["total_ios"]) / seconds)
    assert (parts[1].started - parts[0].started).total_seconds() == pytest.approx(parts[0].runtime_s)


def test_the_largest_latency_of_a_slice() -> None:
    """It is exact if the run's maximum rose; otherwise it is the highest bin that gained I/Os."""
    raw = soak_documents()
    maxima = [document["jobs"][0]["write"]["lat_ns"]["max"] / 1000 for document in raw]
    assert maxima[0] < maxima[1] == maxima[3]
    parts = read_slices(DATA / "soak", SOAK)
    assert [part.max_latency_us for part in parts[:2]] == maxima[:2]
    gained = set(parts[2].bins)
    assert parts[2].max_latency_us == max(gained) / 1000 < maxima[3]


def test_a_slice_in_which_the_drive_hung_has_no_latency() -> None:
    first = soak_documents()[0]
    hung = copy.deepcopy(first)
    hung["jobs"][0]["write"]["runtime"] += 1000
    parts = slices([from_document(first), from_document(hung)])
    assert parts[1].ios == 0
    assert parts[1].iops == 0
    assert parts[1].runtime_s == 1
    assert math.isnan(parts[1].mean_latency_us)
    assert math.isnan(parts[1].max_latency_us)
    assert all(math.isnan(percentile) for percentile in parts[1].percentiles_us(50, 99))


def test_io_in_flight_counts_in_the_slice_of_its_completion() -> None:
    """What fio 3.33 printed of 32 blocks of 1 MiB in flight on a drive that does 21 a second, asked for 8 s.

    It counts what it issues; after 8 s it issues nothing more and waits.
    """
    printed = [(871, 53, 20, 21), (1871, 76, 43, 44), (2871, 99, 66, 67), (3871, 120, 87, 88), (4871, 141, 108, 109),
               (5871, 162, 129, 130), (6871, 183, 150, 151), (7871, 204, 171, 172), (8871, 206, 175, 206),
               (9507, 206, 206, 206)]  # fmt: skip
    raw = []
    for runtime_ms, issued, mib, completed in printed:
        document = copy.deepcopy(soak_documents()[0])
        write = document["jobs"][0]["write"]
        write.update(runtime=runtime_ms, total_ios=issued, io_bytes=mib * 2**20)
        write["lat_ns"].update(N=completed, bins={"1000000000": completed})
        raw.append(from_document(document))
    parts = slices(raw, minimum_s=0.5)
    assert [round(part.iops, 1) for part in parts] == [24.1, 23.0, 23.0, 21.0, 21.0, 21.0, 21.0, 21.0, 20.8]
    assert parts[-1].bandwidth_mib_s == pytest.approx(35 / 1.636)
    assert sum(part.ios for part in parts) == 206
    assert sum(part.bytes for part in parts) == 206 * 2**20


def test_decreasing_counts_are_refused() -> None:
    first, second, *_ = map(from_document, soak_documents())
    reset = copy.deepcopy(soak_documents()[0])
    reset["jobs"][0]["write"]["runtime"] = 5000
    with pytest.raises(CellFailed, match="a count decreased"):
        slices([first, second, from_document(reset)])


@pytest.mark.parametrize("cut", [1, 40, 3000])
def test_a_killed_soak_keeps_the_slices_that_were_printed(tmp_path: Path, cut: int) -> None:
    text = (DATA / "soak/fio.json").read_text()
    second_end = [i for i, character in enumerate(text) if character == "\n"][1]
    (tmp_path / "fio.json").write_text(text[: second_end + cut])
    kept = complete_slices(tmp_path)
    assert [part.ios for part in kept] == [part.ios for part in slices(map(from_document, soak_documents()[:2]))]


def test_a_soak_that_printed_nothing_has_no_slices(tmp_path: Path) -> None:
    assert complete_slices(tmp_path) == []
    (tmp_path / "fio.json").write_text("")
    assert complete_slices(tmp_path) == []


@pytest.mark.parametrize("name", ["exit_code", "fio.json"])
def test_missing_evidence(mix: Path, name: str) -> None:
    (mix / name).unlink()
    with pytest.raises(CellFailed):
        read_result(mix, MIX)


def test_the_tolerance_of_the_runtime_is_a_parameter() -> None:
    result = read_result(DATA / "mix")
    check(result, Cell("random", 65, 4096, 2, 4, 2.0), least_share=0.5, tolerance_s=0)
    with pytest.raises(CellFailed):
        check(result, Cell("random", 65, 4096, 2, 4, 1.01), least_share=1, tolerance_s=0)


def test_a_missing_kind_of_io_matters_only_where_it_must_occur() -> None:
    writes_only = read_result(DATA / "soak")
    with pytest.raises(CellFailed, match="no reads, but the cell has 65 %"):
        check(writes_only, Cell("random", 65, 4096, 2, 4, 3.0))
    few = json.loads((DATA / "mounted_device/fio.json").read_text().partition("\n")[2])
    few["jobs"][0]["write"] |= {"total_ios": 10, "io_bytes": 40960, "runtime": 1000}
    few["jobs"][0]["write"]["lat_ns"] |= {"N": 10, "mean": 1000.0, "max": 1000, "bins": {"1000": 10}}
    check(from_document(few), Cell("random", 5, 4096, 1, 1, 1.0))  # ten I/Os, 5 % of them reads: none is likely


def logs(folder: Path, *, iops: str, lat: str, bw: str = "", thread: int = 1) -> None:
    for name, text in (("iops", iops), ("lat", lat), ("bw", bw)):
        (folder / f"series_{name}.{thread}.log").write_text(text)


def latencies_us(folder: Path) -> list[float | None]:
    return [row["mean_latency_us"] for row in read_series(folder).rows]


def test_a_latency_without_a_count_is_not_in_the_second(tmp_path: Path) -> None:
    """fio logs the latencies of what it drains after the end as a second row of the last second, without IOPS."""
    logs(
        tmp_path,
        iops="1000, 40, 0, 0, 0\n2000, 40, 0, 0, 0\n",
        lat="1000,100000,0,0,0\n2000,100000,0,0,0\n2003,900000,0,0,0\n",
    )
    assert latencies_us(tmp_path) == [100.0, 100.0]


def test_rows_of_a_second_are_combined_by_their_counts(tmp_path: Path) -> None:
    logs(
        tmp_path,
        iops="1000, 40, 1, 0, 0\n2000, 40, 1, 0, 0\n2010, 1000, 1, 0, 0\n",
        lat="1000,100000,1,0,0\n2000,100000,1,0,0\n2010,900000,1,0,0\n",
        bw="1000, 160, 1, 0, 0\n2000, 160, 1, 0, 0\n2010, 4000, 1, 0, 0\n",
    )
    first, second = read_series(tmp_path).rows
    assert (first["iops"], first["mean_latency_us"]) == (40, 100)
    assert second["iops"] == pytest.approx(50 / 1.01)  # 40 in 1000 ms, 10 in 10 ms
    assert second["mean_latency_us"] == pytest.approx((40 * 100 + 10 * 900) / 50)
    assert second["bandwidth_mib_s"] == pytest.approx(second["iops"] * 4 / 1024)


def test_directions_and_threads_are_combined_apart(tmp_path: Path) -> None:
    read = ("2005, 10, 0, 0, 0\n", "2005,200000,0,0,0\n2005,9000000,0,0,0\n")
    logs(tmp_path, iops=read[0] + "2001, 30, 1, 0, 0\n", lat=read[1] + "2001,400000,1,0,0\n")
    logs(tmp_path, iops=read[0], lat=read[1].replace("200000", "600000", 1), thread=2)
    by_direction = {row["direction"]: row for row in read_series(tmp_path).rows}
    assert (by_direction["read"]["iops"], by_direction["read"]["mean_latency_us"]) == (20, 400)
    assert (by_direction["write"]["iops"], by_direction["write"]["mean_latency_us"]) == (30, 400)


@settings(max_examples=100, deadline=None)
@given(
    st.lists(
        st.tuples(st.integers(1, 250), st.integers(1, 500), st.integers(1_000, 10_000_000)), min_size=1, max_size=3
    )
)
def test_a_second_has_the_mean_of_its_ios(
    tmp_path_factory: pytest.TempPathFactory, parts: list[tuple[int, int, int]]
) -> None:
    """However fio divides a second into rows, its IOPS and latency are those of all its I/Os."""
    folder = tmp_path_factory.mktemp("logs")
    at_ms, iops, lat = 700, "700, 0, 0, 0, 0\n", "700, 0, 0, 0, 0\n"
    for span_ms, ios, latency_ns in parts:
        at_ms += span_ms
        iops += f"{at_ms}, {ios * 1000 / span_ms}, 0, 0, 0\n"
        lat += f"{at_ms}, {latency_ns}, 0, 0, 0\n"
    logs(folder, iops=iops, lat=lat)
    (row,) = read_series(folder).rows
    total = sum(ios for _, ios, _ in parts)
    assert row["iops"] == pytest.approx(total * 1000 / at_ms)
    assert row["mean_latency_us"] == pytest.approx(sum(ios * ns for _, ios, ns in parts) / total / 1000)
