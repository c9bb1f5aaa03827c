"""Figures draw the measured values."""

from __future__ import annotations

from unittest.mock import patch

import numpy as np
import pandas as pd
import pts_frames as pts
import pytest
from drawn import artists, legend, texts
from hypothesis import given
from hypothesis import strategies as st
from matplotlib.figure import Figure
from mpl_toolkits.mplot3d import Axes3D

from drivelab.figures.base import style
from drivelab.figures.base.axes import log_axis
from drivelab.figures.base.sheets import render
from drivelab.figures.kinds.cells import measurement_2d
from drivelab.figures.kinds.columns import measurement_3d
from drivelab.figures.kinds.latency import exceedance, latency_distribution
from drivelab.figures.kinds.soaks import saturation_bytes, saturation_time
from drivelab.figures.kinds.steady_state import convergence, window


def test_convergence_draws_each_round_and_fills_the_window() -> None:
    cells = pts.cells(7, sizes=(4096, 65536), mixes=(0,)).sample(frac=1, random_state=1)  # rows come in any order
    figure = convergence(cells, pts.steady_state(start=3))
    for size, line, outside in zip((4096, 65536), artists(figure, "line"), artists(figure, "outside"), strict=True):
        wanted = cells[(cells["block_size_bytes"] == size) & (cells["read_share_pct"] == 0)].set_index("round")["iops"]
        assert list(line.get_xdata()) == [1, 2, 3, 4, 5, 6, 7]
        assert list(line.get_ydata()) == wanted.sort_index().tolist()
        assert list(outside.get_xdata()) == [1, 2]
    assert legend(figure) == ["RND 4KiB 0/100 *", "RND 64KiB 0/100", "window", "outside window"]
    (span,) = artists(figure, "span")
    assert (span.get_x(), span.get_x() + span.get_width()) == (2.5, 7.5)


@given(st.floats(-3, 6), st.floats(0.2, 7))
def test_the_largest_value_of_a_logarithmic_axis_is_near_a_tick(log_largest: float, decades: float) -> None:
    largest = 10**log_largest
    axes = Figure().subplots()
    log_axis(axes, "y", largest / 10**decades, largest)
    low, high = axes.get_ylim()
    ticks = [tick for tick in axes.get_yticks() if low <= tick <= high * (1 + 1e-9)]
    assert high >= largest * 1.25
    assert max(ticks) >= largest / (3 if decades > 2.6 else 1.5) * (1 - 1e-9)


def test_the_legend_of_the_convergence_explains_what_is_there_alone() -> None:
    cells = pts.cells(7, sizes=(4096, 65536), mixes=(0,))
    figure = convergence(cells, pts.steady_state(), metric="max_latency_us")
    assert figure.legends[0].get_title().get_text() == "Cell"  # this metric is not tracked
    later = convergence(cells[cells["round"] >= 3], pts.steady_state(start=3))
    assert (texts(figure, "note"), texts(later, "note")) == ([], ["*: tracked"])
    assert legend(later) == ["RND 4KiB 0/100 *", "RND 64KiB 0/100", "window"]
    hollow = [handle.get_markerfacecolor() == "white" for handle in figure.legends[0].get_lines()]
    assert hollow == [False, False, True]


def test_convergence_takes_the_tracked_metric() -> None:
    latency = pts.steady_state((2100.0, 2100.0, 2110.0, 2120.0, 2100.0), metric="mean_latency_us")
    cells = pts.cells(7, sizes=(4096, 8192)).assign(mean_latency_us=lambda rows: rows["round"] * 10.0)
    figure = convergence(cells, latency)
    assert [list(line.get_ydata()) for line in artists(figure, "line")] == [
        [10.0 * number for number in range(1, 8)]
    ] * 2
    assert figure.axes[0].get_ylabel() == "Mean latency (µs)"
    assert figure.axes[0].get_ylim()[0] == 0


def test_convergence_marks_tainted_cells_and_gaps() -> None:
    cells = pts.cells(7, sizes=(4096,))
    cells["tainted"] = (cells["round"] == 2) & (cells["read_share_pct"] == 0)
    cells["after_gap"] = cells["round"] == 3
    figure = convergence(cells, pts.steady_state())
    assert list(artists(figure, "tainted")[0].get_xdata()) == [2]
    assert [list(line.get_xdata()) for line in artists(figure, "gap")] == [[2.5, 2.5]]


def test_convergence_of_steps_with_windows_of_their_own() -> None:
    one, two = pts.cells(6, sizes=(131072,)), pts.cells(9, sizes=(1048576,)).assign(step=2)
    states = [pts.steady_state(start=2), pts.steady_state(start=5).assign(step=2)]
    figure = convergence(pd.concat([one, two]), pd.concat(states))
    assert [list(line.get_xdata()) for line in artists(figure, "outside")] == [[1], [1, 2, 3, 4]]
    assert artists(figure, "span") == []


def test_window_draws_values_bands_fit_and_numbers() -> None:
    figure = window(pts.steady_state(start=3))
    (values,), (fit,) = artists(figure, "values"), artists(figure, "fit")
    assert list(values.get_ydata()) == list(pts.S4600_WINDOW)
    assert list(values.get_xdata()) == [3, 4, 5, 6, 7]
    slope, intercept = np.polyfit([3, 4, 5, 6, 7], pts.S4600_WINDOW, 1)
    assert list(fit.get_ydata()) == pytest.approx([slope * 3 + intercept, slope * 7 + intercept])
    for gid, half in (("data band", 6126.52), ("slope band", 3063.26)):
        (band,) = artists(figure, gid)
        assert band.get_y() == pytest.approx(61265.2 - half)
        assert band.get_height() == pytest.approx(2 * half)
    assert texts(figure, "determination") == [
        "average 61,265 IOPS; fit 279.1 · R + 59,870 max \N{MINUS SIGN} min: 2,919 of 12,253 allowed "
        "rise of the fit: 1,116 of 6,127 allowed; residual drift +1.8 %"
    ]
    assert legend(figure)[2:4] == ["allowed max \N{MINUS SIGN} min (20 %)", "allowed rise of the fit (10 %)"]


def test_window_marks_the_number_that_broke_the_rule() -> None:
    figure = window(pts.steady_state((90.0, 100.0, 119.0, 100.0, 91.0), metric="mean_latency_us"))  # no slope
    (numbers,) = artists(figure, "determination")
    assert numbers.get_color() == style.ALARM
    assert "min: 29 of 20 allowed\nrise of the fit: 0.8 of 10" in numbers.get_text()
    (numbers,) = artists(window(pts.steady_state()), "determination")
    assert numbers.get_color() == style.INK


def _golden() -> pd.DataFrame:
    """Return cells whose window average is the printed one: rounds 3 to 7 vary symmetrically."""
    cells = pts.cells(7)
    for index, row in cells.iterrows():
        printed = pts.S4600_IOPS[row["block_size_bytes"]][pts.MIXES.index(row["read_share_pct"])]
        cells.loc[index, "iops"] = printed * (1 + 0.01 * (row["round"] - 5)) if row["round"] >= 3 else 1e6
    return cells


def test_measurement_2d_shows_the_printed_averages() -> None:
    figure = measurement_2d(_golden(), pts.steady_state(start=3))
    for number, (mix, line) in enumerate(zip(pts.MIXES, artists(figure, "line"), strict=True)):
        assert line.get_label() == f"{mix}/{100 - mix}"
        assert list(line.get_xdata()) == list(pts.S4600_IOPS)
        assert list(line.get_ydata()) == pytest.approx([averages[number] for averages in pts.S4600_IOPS.values()])


def test_measurement_3d_columns_are_the_averages_with_the_tall_end_at_the_back() -> None:
    with patch.object(Axes3D, "bar3d", autospec=True, side_effect=Axes3D.bar3d) as columns:
        figure = measurement_3d(_golden(), pts.steady_state(start=3))
    assert columns.call_count == 56
    for call in columns.call_args_list:
        mix, size = call.kwargs["gid"].split("|")
        assert call.args[6] == pytest.approx(pts.S4600_IOPS[int(size)][pts.MIXES.index(int(mix.partition("/")[0]))])
    assert [tick.get_text() for tick in figure.axes[0].get_yticklabels()] == [
        "1024", "128", "64", "32", "16", "8", "4", "0.5"
    ], "front to back"  # fmt: skip
    assert figure.axes[0].get_xticklabels()[0].get_text() == "100/0", "back to front"
    assert figure.axes[0].get_zlim()[0] == 0
    order = [call.kwargs["zorder"] for call in columns.call_args_list]
    assert order == sorted(order), "a column in front must be painted later"


def test_measurement_2d_takes_the_worst_of_the_maximum() -> None:
    cells = pts.cells(7, sizes=(4096,), mixes=(0,)).assign(max_latency_us=[9e9, 9e9, 1.0, 2.0, 30.0, 4.0, 5.0])
    (line,) = artists(measurement_2d(cells, pts.steady_state(start=3), metric="max_latency_us"), "line")
    assert list(line.get_ydata()) == [30.0]


def test_random_and_sequential_cells_of_one_loop_are_told_apart() -> None:
    random, state = pts.cells(sizes=(4096, 8192)), pts.steady_state()
    named = random["workload"].str.replace("RND", "SEQ")
    both = pd.concat([random, random.assign(pattern="sequential", workload=named, iops=2 * random["iops"])])
    lines = {line.get_label(): list(line.get_ydata()) for line in artists(measurement_2d(both, state), "line")}
    assert lines["SEQ 0/100"] == pytest.approx([2 * value for value in lines["RND 0/100"]])
    assert {"RND 4KiB 0/100 *", "SEQ 4KiB 0/100"} <= set(legend(convergence(both, state)))


def test_saturation_against_time_and_volume() -> None:
    cells = pd.concat([pts.soak(), pts.soak("op28", settled=4000.0)])
    time = saturation_time(cells)
    volume = saturation_bytes(cells, pts.drives(op7=1 << 26, op28=1 << 26))
    for drive, by_time, by_volume in zip(
        ("op7", "op28"), artists(time, "line", 0), artists(volume, "line", 0), strict=True
    ):
        of_drive = cells[cells["drive"] == drive]
        assert by_time.get_label() == by_volume.get_label() == drive
        assert list(by_time.get_xdata()) == [float(end) for end in range(1, 41)]  # ends of slices, from the first
        assert list(by_time.get_ydata()) == of_drive["iops"].tolist()
        assert list(by_volume.get_ydata()) == of_drive["iops"].tolist()
        assert list(by_volume.get_xdata()) == pytest.approx((of_drive["bytes_written_total"] / 2**20).tolist())
    low, high = volume.axes[0].get_xlim()
    top = volume.axes[0].child_axes[0]
    volume.draw_without_rendering()
    assert top.get_xlim() == pytest.approx((low / 64, high / 64))
    assert volume.axes[1].get_xlabel() == "Written by the host (MiB)"


def test_saturation_of_several_runs_and_capacities() -> None:
    again = pts.soak(run=2, recording="op7/pts-write-saturation/0123456789ab-run2")
    figure = saturation_bytes(pd.concat([pts.soak(), again]), pts.drives(op7=1 << 26))
    assert legend(figure)[:2] == ["op7, run 1", "op7, run 2"]
    mixed = saturation_bytes(pd.concat([pts.soak(), pts.soak("op28")]), pts.drives(op7=1 << 26, op28=1 << 28))
    assert texts(mixed, "note") == ["a drive fill: op7 64 MiB, op28 256 MiB"]
    assert mixed.axes[0].child_axes == []


def test_exceedance_is_the_share_of_ios_at_least_so_slow() -> None:
    bins = pd.DataFrame({"latency_ns": [3000, 1000, 2000, 1000], "count": [1, 400, 99, 500]})
    assert exceedance(bins["latency_ns"] / 1e3, bins["count"]).to_dict() == pytest.approx(
        {1.0: 1.0, 2.0: 0.1, 3.0: 0.001}
    )


def test_latency_distribution_merges_directions_and_reads_the_tail() -> None:
    bins = pts.latency_bins(share=65).iloc[:0]
    rows = [("read", 10_000, 990), ("write", 10_000, 9000), ("write", 200_000, 5), ("read", 5_000_000, 5)]
    template = pts.latency_bins(share=65).iloc[0].to_dict()
    bins = pd.DataFrame([template | {"direction": d, "latency_ns": ns, "count": n} for d, ns, n in rows])
    figure = latency_distribution(bins)
    (line,) = artists(figure, "line")
    assert list(line.get_xdata()) == [10.0, 200.0, 5000.0]
    assert list(line.get_ydata()) == pytest.approx([1.0, 0.001, 0.0005])
    assert line.get_label() == "op7: 99 % 10 µs"
    low, high = figure.axes[0].get_ylim()
    assert low > high, "the tail belongs at the top"
    assert [tick.get_text() for tick in figure.axes[0].get_yticklabels()] == ["0", "90", "99", "99.9"]


REASONS = ("load: others used 30 % of the host's CPU time", "load: others used 43 % of the host's CPU time")
SAID = "tainted: load: others used 43 % of the host's CPU time at worst, in 2 cells"


def _notes(figure: Figure) -> list[str]:
    notes = [text.get_text().replace("\n", " ") for text in figure.texts if text.get_gid() == "note"]
    return [note for note in notes if not note.startswith(("each point", "8 of 56 cells"))]


@pytest.mark.parametrize("name", ["convergence", "window", "measurement_2d"])
def test_figures_of_a_loop_say_why_what_they_show_is_tainted(name: str) -> None:
    cells = pts.cells(7)
    cells["taint_reason"] = None
    tables = {"cells": cells, "steady_state": pts.steady_state(start=3)}
    assert not _notes(render(name, tables, "op7"))
    rows = cells[(cells["block_size_bytes"] == 4096) & (cells["read_share_pct"] == 0)]
    cells.loc[rows[rows["round"].isin([4, 5])].index, "taint_reason"] = list(REASONS)
    assert _notes(render(name, tables, "op7")) == [SAID]
    cells["taint_reason"] = None
    cells.loc[rows[rows["round"] == 1].index, "taint_reason"] = REASONS[0]
    assert bool(_notes(render(name, tables, "op7"))) == (name == "convergence"), "the others show the window alone"


@pytest.mark.parametrize("name", ["convergence", "window"])
def test_figures_of_a_loop_say_that_the_host_is_the_limit(name: str) -> None:
    cells = pts.cells(7).assign(host_limit=None)
    tables = {"cells": cells, "steady_state": pts.steady_state(start=3)}
    assert not _notes(render(name, tables, "op7"))
    rows = cells[(cells["block_size_bytes"] == 4096) & (cells["read_share_pct"] == 0) & (cells["round"] == 5)]
    limit = "fio's threads used 97 % of a CPU each, so the drive may be faster"
    cells.loc[rows.index, "host_limit"] = limit
    figure = render(name, tables, "op7")
    assert _notes(figure) == [f"host-limited: {limit}"]
    marked = [line for axes in figure.axes for line in axes.lines if line.get_gid() == "host-limited"]
    assert bool(marked) == (name == "convergence")
