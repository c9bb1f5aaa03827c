"""A chart shows at the pointer the value of the table, with its unit and its owner."""

from __future__ import annotations

import re
from itertools import product

import comparison_frames
import numpy as np
import pandas as pd
import protocol_frames as frames
import pts_frames as pts
import pytest
from chart_values import Mark, marks, tooltips

from drivelab.figures.base import quantities, style
from drivelab.figures.base.axes import write
from drivelab.figures.base.words import say, tell
from drivelab.figures.kinds.cells import measurement_2d
from drivelab.figures.kinds.deltas import comparison
from drivelab.figures.kinds.demand import demand_intensity
from drivelab.figures.kinds.latency import latency_distribution, latency_histogram
from drivelab.figures.kinds.seconds import strip_chart
from drivelab.figures.kinds.soaks import saturation_bytes, saturation_time
from drivelab.figures.kinds.trace import trace_heat, trace_interarrival, trace_latency

HALF_A_DIGIT = 5.1e-5
_PER_US = {"µs": 1.0, "ms": 1e3, "s": 1e6}


def named(found: list[Mark], name: str) -> list[Mark]:
    return [mark for mark in found if mark.get("name", "").startswith(name)]


def number(line: str, unit: str) -> float:
    """Return the number in a line that ends with a unit."""
    _, _, value = line.rpartition(": ")
    assert value.endswith(unit), line
    return float(value.removesuffix(unit).replace(",", ""))


def latency_us(line: str) -> float:
    value, unit = line.rpartition(": ")[2].split(" ")
    return float(value.replace(",", "")) * _PER_US[unit]


def counted() -> dict[str, pd.DataFrame]:
    """Return tables of a trace with four intervals of a second."""
    low = np.array([1000, 2000, 40_000, 900_000, 30_000_000])
    bins = pd.DataFrame({"low_ns": low, "high_ns": low * 2, "requests": [5, 90, 400, 10, 1]})
    times = pd.DataFrame({"begin_s": np.arange(4.0), "end_s": np.arange(1.0, 5), "requests_per_s": 10.0})
    return {
        "trace_latency": pd.concat([
            bins.assign(operation=operation, phase=phase, requests=bins["requests"] + more)
            for more, (operation, phase) in enumerate(product(("read", "write"), ("Q2C", "D2C")))
        ]),
        "trace_interarrival": bins,
        "trace_overview": pd.DataFrame([{"interarrival_mean_us": 1234.5, "interarrival_variation": 1.5,
                                         "time_resolution_ns": 1}]),
        "trace_over_time": times,
        "trace_heat": times.assign(low_bytes=0, high_bytes=2**20, reads=[1, 2, 3, 4], writes=[200, 0, 1, 1]),
    }  # fmt: skip


def test_a_thin_line_keeps_its_spikes_and_what_can_be_told_apart() -> None:
    figure = style.new_figure("Long")
    axes = figure.subplots()
    values = np.full(5000, 1.0)
    values[2501] = 9.0
    axes.plot(range(5000), values, label="op7")
    (trace,) = marks(figure)
    assert 100 < len(trace["x"]) < 250
    assert (2501, 9) in zip(trace["x"], trace["y"], strict=True)


def two_drives() -> pd.DataFrame:
    return pd.concat([pts.latency_bins("op7"), pts.latency_bins("op28", 60.0)], ignore_index=True)


def test_both_panels_of_a_traces_latency_tell_the_share_of_faster_requests() -> None:
    table = counted()["trace_latency"]
    result = marks(trace_latency(table))
    for place, phase in ((0, "Q2C"), (1, "D2C")):
        for operation in ("read", "write"):
            bins = table[(table["operation"] == operation) & (table["phase"] == phase)].sort_values("low_ns")
            faster = 100 * (1 - bins["requests"][::-1].cumsum()[::-1] / bins["requests"].sum())
            (trace,) = [mark for mark in named(result, operation) if mark["place"] == place]
            lines = tooltips(trace)[: len(bins)]
            assert [number(texts[2], " %") for texts in lines] == pytest.approx(list(faster), abs=1e-3)
            assert [latency_us(texts[1]) for texts in lines] == pytest.approx(
                list(bins["high_ns"] / 1e3), rel=HALF_A_DIGIT
            )
            assert all(f"({phase})" in texts[1] for texts in lines)


def test_times_between_arrivals_are_told_in_their_unit() -> None:
    tables = counted()
    result = marks(trace_interarrival(tables["trace_interarrival"], tables["trace_overview"]))
    bins = tables["trace_interarrival"].sort_values("low_ns")
    bins = bins[bins["high_ns"] > 0]
    line = next(mark for mark in result if len(tooltips(mark)) == len(bins) + 2)
    at_us = (bins["low_ns"] + bins["high_ns"]) / 2e3
    assert [latency_us(texts[0]) for texts in tooltips(line)[1:-1]] == pytest.approx(list(at_us), rel=HALF_A_DIGIT)
    (mean,) = named(result, "mean")
    mean_us = float(tables["trace_overview"]["interarrival_mean_us"].iloc[0])
    assert {len(texts) for texts in tooltips(mean)} == {2}  # its name and itself: nothing else was measured on it
    assert latency_us(tooltips(mean)[0][1]) == pytest.approx(mean_us, rel=HALF_A_DIGIT)


def test_a_delta_is_told_with_its_cell_interval_and_verdict() -> None:
    deltas = pts.deltas(("op28", "op9"))
    result = [mark for mark in marks(comparison(deltas)) if tooltips(mark)]
    checked = 0
    for trace in result:
        for name, delta, cell, interval in tooltips(trace):
            drive, verdict = name.split(", ")
            of_drive = deltas[deltas["comparison"] == drive]
            (row,) = [row for row in of_drive.itertuples() if cell.endswith(f", {row.cell_label}")]
            assert cell.startswith(f"{row.measurement}: ")
            assert row.verdict == verdict
            assert number(delta, " %") == pytest.approx(row.delta_pct, rel=HALF_A_DIGIT)
            ends = f"Interval: {row.interval_low_pct:+,.4g} to {row.interval_high_pct:+,.4g} %"
            assert interval == ends.replace("-", "\N{MINUS SIGN}")
            checked += 1
    assert checked == len(deltas)


def test_a_histogram_tells_latencies_with_their_unit_and_empty_bins_as_empty() -> None:
    result = marks(latency_histogram(pts.latency_bins(), pts.soak()))
    (line,) = named(result, "I/Os")
    heights = [number(texts[2], "") for texts in tooltips(line)]
    assert min(heights) == 0
    assert all(height == 0 or height >= 1 for height in heights)
    assert [latency_us(texts[1]) for texts in tooltips(line)] == pytest.approx(line["x"], rel=HALF_A_DIGIT)
    (percentile,) = named(result, "99.9 %")
    assert {len(texts) for texts in tooltips(percentile)} == {2}
    assert all(not tooltips(mark) for mark in result if not mark["name"])


def test_a_latency_has_its_own_unit_at_each_point() -> None:
    result = marks(latency_distribution(two_drives()))
    for lines in (lines for trace in result for lines in tooltips(trace)):
        assert re.search(r": [\d.,]+ (µs|ms|s)$", lines[1]), lines
        assert lines[2].endswith(" %")


def test_a_map_tells_units_and_what_is_counted() -> None:
    tables = counted()
    maps = [mark for mark in marks(trace_heat(tables["trace_heat"], tables["trace_over_time"]))
            if "z" in mark]  # fmt: skip
    assert [tooltips(mark)[0][0] for mark in maps] == ["reads", "writes"]
    counts = [[lines[-1].rpartition(": ") for lines in tooltips(mark)] for mark in maps]
    assert {name for cells in counts for name, _, _ in cells} == {"Requests that begin in a cell"}
    assert [[value for _, _, value in cells] for cells in counts] == [["1", "2", "3", "4"], ["200", "1", "1"]]


def test_a_size_is_told_as_its_tick_is() -> None:
    result = marks(measurement_2d(pts.cells(7, sizes=(4096, 65536)), pts.steady_state(start=3)))
    sizes = {line for trace in result for lines in tooltips(trace) for line in lines if line.startswith("Block size")}
    assert sizes == {"Block size: 4 KiB", "Block size: 64 KiB"}


def test_a_strip_chart_tells_the_unit_and_what_is_a_mean() -> None:
    figure = strip_chart(**comparison_frames.soaks(("op7", "op28"), 600))
    result = [trace for trace in marks(figure) if tooltips(trace)]
    for trace in result:
        for name, _, value, kind in tooltips(trace):
            assert name in ("op7", "op28", "op9"), name
            assert value.endswith(" IOPS")
            assert kind == "every second" or kind.startswith("rolling mean over ")
    assert len({lines[-1] for trace in result for lines in tooltips(trace)}) == 2


def test_the_points_of_a_sweep_say_what_they_are() -> None:
    table = frames.with_points(frames.sweep())
    result = marks(demand_intensity(table, frames.NO_WINDOWS))
    chosen = table[table["point"].notna()].drop_duplicates("point")
    for row in chosen.itertuples():
        (mark,) = named(result, f"{str(row.point).upper()} T{row.threads}Q{row.queue_depth}")
        assert len(mark["x"]) == 1
    others = [lines[-1] for trace in result if "thread" in trace["name"] for lines in tooltips(trace)]
    assert others
    assert all(re.fullmatch(r"T\d+Q\d+", name) for name in others)


@pytest.mark.parametrize("draw", ["time", "bytes"])
def test_marks_of_a_soak_tell_their_own_value_alone(draw: str) -> None:
    soak = pts.soak()
    figure = saturation_time(soak) if draw == "time" else saturation_bytes(soak, pts.drives(op7=480 * 10**9))
    result = marks(figure)
    measured = named(result, "op7")
    assert measured
    assert all(len(lines) == 3 for trace in measured for lines in tooltips(trace))
    others = [trace for trace in result if trace not in measured and tooltips(trace)]
    assert others
    for trace in others:
        assert {len(lines) for lines in tooltips(trace)} == {2}
        assert trace["name"]


def test_axes_that_are_shared_are_worded_alike() -> None:
    figure = style.new_figure("Shared")
    one, other = figure.subplots(1, 2, sharey=True)
    for axes in (one, other):
        axes.plot([1, 2], [0.1, 0.2], label="op7")
    tell(one.yaxis, quantities.Texts(str, lambda share: f"{100 * (1 - share):g} %"))
    one.set_ylabel("Faster (% of all)")
    assert [[lines[2] for lines in tooltips(trace)] for trace in marks(figure)] == [
        ["Faster: 90 %", "Faster: 80 %"],
        ["Faster: 90 %", "Faster: 80 %"],
    ]


def test_a_value_has_the_unit_of_the_ticks_around_it() -> None:
    figure = style.new_figure("Units")
    axes = figure.subplots()
    axes.plot([2048, 4096], [999.6, 123456], label="op7")
    axes.set_yscale("log")
    write(axes.xaxis, quantities.BLOCK)
    write(axes.yaxis, quantities.LATENCY)
    axes.set_xticks([2048, 4096])
    axes.set_ylabel("Latency (ns, µs, ms, s), log scale")
    (trace,) = marks(figure)
    assert tooltips(trace) == [["op7", "2 KiB", "Latency: 0.9996 ms"],
                           ["op7", "4 KiB", "Latency: 123.46 ms"]]  # fmt: skip


def test_lines_of_points_must_be_as_many_as_these() -> None:
    figure = style.new_figure("Points")
    (line,) = figure.subplots().plot([1, 2, 3], [1, 2, 3], label="op7")
    say(line, ["a < b", "two", "three"])
    assert [lines[-1] for trace in marks(figure) for lines in tooltips(trace)] == ["a < b", "two", "three"]
    say(line, ["one", "two"])
    with pytest.raises(ValueError, match="3 points cannot have 2 lines"):
        marks(figure)
