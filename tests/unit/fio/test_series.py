"""One-second logs: what a row counts for."""

from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from drivelab.fio.series import read_series


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
