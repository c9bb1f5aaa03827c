"""Units and numbers as people read them."""

from __future__ import annotations

import pytest

from drivelab.figures.base import quantities as q


@pytest.mark.parametrize(
    ("value", "text"),
    [
        (0, "0"),
        (0.5, "0.5"),
        (485.2, "485"),
        (999.4, "999"),
        (999.9, "1k"),
        (1500, "1.5k"),
        (61265, "61.3k"),
        (999_800, "1M"),
        (3_500_000, "3.5M"),
        (6.1e9, "6.1G"),
        (-2000, "-2k"),
    ],
)
def test_format_number(value: float, text: str) -> None:
    assert q.format_number(value) == text


@pytest.mark.parametrize(
    ("value", "text"), [(61265.2, "61,265"), (1116.4, "1,116"), (56.6767, "56.68"), (6.1e9, "6,100.0M")]
)
def test_format_exact(value: float, text: str) -> None:
    assert q.format_exact(value) == text


@pytest.mark.parametrize(
    ("value_us", "text"), [(0.5, "0.5 µs"), (90, "90 µs"), (1000, "1 ms"), (1250, "1.25 ms"), (3e6, "3 s")]
)
def test_format_latency(value_us: float, text: str) -> None:
    assert q.format_latency(value_us) == text


def test_block_sizes_and_mixes_as_in_the_pts() -> None:
    assert [q.format_kib(size) for size in (512, 4096, 1 << 20)] == ["0.5", "4", "1024"]
    assert q.format_mix(65) == "65/35"


@pytest.mark.parametrize(
    ("metric", "largest", "label", "divisor"),
    [
        ("iops", 8e4, "I/O rate (IOPS)", 1),
        ("bandwidth_mib_s", 7000, "Bandwidth (MiB/s)", 1),
        ("bandwidth_mib_s", 28_000, "Bandwidth (GiB/s)", 1024),
        ("mean_latency_us", 180, "Mean latency (µs)", 1),
        ("max_latency_us", 166_700, "Maximum latency (ms)", 1e3),
        ("max_latency_us", 3e7, "Maximum latency (s)", 1e6),
        ("mean_latency_us", float("nan"), "Mean latency (µs)", 1),
    ],
)
def test_quantity(metric: str, largest: float, label: str, divisor: float) -> None:
    result = q.quantity(metric, largest)
    assert (result.label, result.divisor) == (label, divisor)


def test_time_and_volume_axes() -> None:
    assert [q.elapsed(s).unit for s in (1, 40, 1200, 86400, 7 * 86400)] == ["s", "s", "min", "h", "d"]
    assert [q.volume(size).unit for size in (1 << 20, 256 << 20, 4 << 40)] == ["KiB", "MiB", "TiB"]


def test_short_names() -> None:
    assert [q.short_name(m) for m in ("iops", "mean_latency_us", "bandwidth_mib_s", "score")] == [
        "I/O rate",
        "mean latency",
        "bandwidth",
        "score",
    ]
