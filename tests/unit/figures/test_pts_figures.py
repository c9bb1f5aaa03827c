"""Figures of the PTS report pages: what they show is what the tables say."""

from __future__ import annotations

import numpy as np
import pandas as pd
import protocol_frames as frames
import pts_frames as pts
import pytest
from drawn import artists, legend, rows

from drivelab.analysis.values.saturation_values import find_cliff, post_saturation
from drivelab.figures.base.sheets import render
from drivelab.figures.kinds.cells import measurement_2d
from drivelab.figures.kinds.demand import depth_ramp
from drivelab.figures.kinds.latency import latency_histogram
from drivelab.figures.kinds.soaks import latency_over_time, saturation_bytes, saturation_time
from drivelab.figures.kinds.steady_state import convergence, window


def test_a_window_for_every_tracked_variable() -> None:
    sizes, values = ("4KiB", "64KiB", "1024KiB"), [(100.0, 101, 102, 103, 104), (50.0, 51, 52, 51, 50), (7.0,) * 5]
    table = pd.concat([pts.steady_state(v, variable=f"RND {s} 0/100") for s, v in zip(sizes, values, strict=True)])
    figure = window(table)
    names = [axes.get_title("left").partition("\n")[0] for axes in figure.axes]
    assert names == [f"RND {size} 0/100" for size in sizes]
    assert [list(line.get_ydata()) for line in artists(figure, "values")] == [
        list(line_values) for line_values in values
    ]


@pytest.mark.parametrize("factor", [0.0, 1.0, 1e3, 3.7e5])
def test_determination_of_large_and_small_values_is_neither_cut_nor_printed_over(factor: float) -> None:
    table = pts.steady_state()
    scaled = ["average", "slope", "intercept", *(name for name in table if name.endswith("_excursion"))]
    table = table.assign(**{name: table[name] * factor for name in scaled})
    table["values"] = [[value * factor for value in values] for values in table["values"]]
    figure = window(table.iloc[:1])
    figure.draw_without_rendering()
    (numbers,) = artists(figure, "determination")
    box, page = numbers.get_window_extent(), figure.bbox
    assert page.x0 <= box.x0
    assert box.x1 <= page.x1
    assert not any(box.overlaps(text.get_window_extent()) for text in figure.texts)


def test_convergence_of_writes_stands_above_that_of_reads() -> None:
    cells = pts.cells(mixes=(100, 65, 0))
    figure = render("convergence_mixes", {"cells": cells, "steady_state": pts.steady_state()}, "op7")
    assert [axes.get_title(loc="left") for axes in figure.axes] == [
        f"{mix} read/write" for mix in ("0/100", "65/35", "100/0")
    ]
    for axes, share in zip(figure.axes, (0, 65, 100), strict=True):
        lines = [line for line in axes.get_lines() if line.get_gid() == "line"]
        sizes = sorted(cells["block_size_bytes"].unique())
        assert len(lines) == len(sizes)
        first = cells[(cells["read_share_pct"] == share) & (cells["block_size_bytes"] == sizes[0])]
        assert list(lines[0].get_ydata()) == pytest.approx(first["iops"].tolist())


def test_convergence_of_maxima() -> None:
    cells, state = pts.cells(), pts.steady_state()
    maxima = render("convergence_max", {"cells": cells, "steady_state": state}, "op7")
    writes = cells[(cells["read_share_pct"] == 0) & (cells["block_size_bytes"] == 512)]
    assert list(artists(maxima, "line")[0].get_ydata()) == pytest.approx((writes["max_latency_us"] / 1e6).tolist())
    assert maxima.axes[0].get_ylabel().startswith("Maximum latency (s)")


def test_convergence_shows_every_tracked_cell() -> None:
    cells = pts.cells()
    tracked = ("RND 4KiB 0/100", "RND 64KiB 65/35", "RND 1024KiB 100/0")
    state = pd.concat([pts.steady_state(variable=variable) for variable in tracked])
    figure = convergence(cells, state)
    shown = [str(line.get_label()) for line in artists(figure, "line")]
    others = [name for name in shown if name.endswith("*")]
    assert others == ["RND 4KiB 0/100 *", "RND 64KiB 65/35 *", "RND 1024KiB 100/0 *"]
    assert len(shown) == cells["block_size_bytes"].nunique() + 2


def test_writes_before_each_round_are_apart_from_the_sweep() -> None:
    cells = frames.with_pre_writes(frames.sweep())
    figure = convergence(cells, frames.sweep_window(), beside_sweep=True)
    (line,) = artists(figure, "line")
    assert list(line.get_ydata()) == [49e3, 48e3, 47e3]
    with pytest.raises(ValueError, match="no sweep with cells of one demand"):
        convergence(frames.sweep(), frames.sweep_window(), beside_sweep=True)


def test_two_pure_accesses_are_bars() -> None:
    figure = measurement_2d(pts.cells(sizes=(131072,), mixes=(100, 0)), pts.steady_state(), metric="bandwidth_mib_s")
    assert [bar.get_width() for bar in figure.axes[0].patches] == pytest.approx([3479.2 / 8, 3783.0 / 8], rel=0.02)
    assert rows(figure) == ["128KiB 100/0, reads", "128KiB 0/100, writes"]
    assert figure.axes[0].get_xlim()[0] == 0


def test_a_soak_shows_the_cliff_and_the_levels_of_the_tables() -> None:
    soak = pts.soak()
    cliff = find_cliff(soak, 1 << 26)
    levels = [(post_saturation(soak, metric), unit) for metric, unit in (("iops", 1.0), ("mean_latency_us", 1e3))]
    assert cliff is not None
    by_time, by_volume = saturation_time(soak), saturation_bytes(soak, pts.drives(op7=1 << 26))
    for figure, place in ((by_time, cliff.time_s), (by_volume, cliff.bytes_written / 2**20)):
        assert [list(line.get_xdata()) for line in artists(figure, "cliff")] == [pytest.approx([place, place])] * 2
        for level, (settled, unit) in zip(artists(figure, "level"), levels, strict=True):
            assert list(level.get_ydata()) == pytest.approx([settled.average / unit] * 2)
    assert list(artists(by_time, "level")[0].get_xdata()) == [32.0, 40.0]  # the last fifth of forty
    assert f"write cliff: after {cliff.drive_fills:.3g} drive fills" in legend(by_volume)


def test_a_drive_that_was_filled_has_no_cliff() -> None:
    figure = saturation_time(pts.soak().assign(filled=True))
    assert artists(figure, "cliff") == []
    assert any(text.startswith("average of the whole soak") for text in legend(figure))


def test_a_soak_that_ended_steady_shows_its_window() -> None:
    soak = pts.soak()
    soak = soak.assign(in_window=soak["round"].between(21, 30))
    rate, latency = artists(saturation_time(soak), "level")
    assert list(rate.get_xdata()) == list(latency.get_xdata()) == [20.0, 30.0]
    inside = soak[soak["in_window"]]
    assert rate.get_ydata()[0] == pytest.approx(float(inside["iops"].mean()))


def test_marks_of_several_soaks_are_named_once_and_their_shades_do_not_add_up() -> None:
    soaks = pd.concat([pts.soak(drive, fresh=9000.0 + place) for place, drive in enumerate(("a", "b", "c"))])
    figure = saturation_time(soaks)
    assert legend(figure) == ["a", "b", "c", "write cliff", "level", "level window"]
    assert {shade.get_alpha() for shade in artists(figure, "counted")} == {1.0}
    alone = legend(saturation_time(pts.soak()))
    assert not {"level", "level window"} & set(alone), "the level says what it is of"


def test_volume_begins_near_the_first_slice_where_all_before_would_be_empty() -> None:
    soak = pts.soak()
    late = soak.assign(bytes_written_total=soak["bytes_written_total"] + (1 << 32))
    drives = pts.drives(op7=1 << 30)
    assert saturation_bytes(soak, drives).axes[0].get_xlim()[0] == 0
    low, _ = saturation_bytes(late, drives).axes[0].get_xlim()
    assert 3.9 < low < 4.0 + late["bytes_written"].iloc[0] / 2**30


def test_percentiles_of_each_slice_are_at_its_end() -> None:
    soak = pts.soak().assign(p50_latency_us=90.0, p99_latency_us=300.0, p999_latency_us=None)
    lines = {line.get_label(): line for line in artists(latency_over_time(soak), "line")}
    assert list(lines) == ["median", "99 %", "maximum"]
    assert list(lines["99 %"].get_xdata()) == [float(end) for end in range(1, 41)]
    assert set(lines["median"].get_ydata() / lines["99 %"].get_ydata()) == {0.3}


def test_a_histogram_counts_every_io_and_marks_the_nines() -> None:
    bins = frames.bins(ios=2_000_000)
    figure = latency_histogram(bins, pts.soak())
    (line,) = artists(figure, "line")
    heights = np.asarray(line.get_ydata())
    assert heights[heights >= 1].sum() == bins["count"].sum()
    total, order = bins["count"].sum(), bins.sort_values("latency_ns")
    for percent in (99.9, 99.99, 99.999):
        at_us = order["latency_ns"][(order["count"].cumsum() >= total * percent / 100)].iloc[0] / 1e3
        (mark,) = artists(figure, f"{percent:g} %")
        assert mark.get_xdata()[0] == pytest.approx(at_us)


def test_a_nine_without_an_io_above_it_is_not_marked() -> None:
    figure = latency_histogram(frames.bins(ios=2000), pts.soak())  # the bell's bins lose fractions: fewer than 2000
    assert len(artists(figure, "99.9 %")) == 1
    assert artists(figure, "99.99 %") == []


def test_each_turn_has_its_histogram() -> None:
    figure = latency_histogram(**frames.turns())
    heads = [axes.get_title("left") for axes in figure.axes]
    assert [head.partition(",")[0] for head in heads] == ["MAX (T4Q4)", "MID (T2Q4)", "MIN (T1Q1)"]
    assert all("mean 3" in head or "mean 2" in head or "mean 1" in head for head in heads)
    assert not any("50" in head.partition("mean ")[2].partition(" ")[0] for head in heads), "preparation is not shown"


def test_the_numbers_over_a_histogram_are_within_the_page() -> None:
    figure = latency_histogram(**frames.turns())
    figure.draw_without_rendering()
    for axes in figure.axes:
        (head,) = [artist for artist in axes.get_children() if artist.get_gid() == "numbers"]
        assert "99.999 %" in head.get_text()
        assert head.get_window_extent().x1 <= figure.bbox.x1


def test_a_sweep_against_all_outstanding() -> None:
    figure = depth_ramp(frames.sweep(), frames.NO_WINDOWS)
    rates, times, *_ = figure.axes
    lines = [line for line in rates.get_lines() if line.get_gid() == "line"]
    assert list(lines[1].get_xdata()) == [2, 4, 8, 16, 32, 64]  # two threads
    assert lines[1].get_ydata()[0] == pytest.approx(2e4 * 1.004)  # the median of three rounds
    at_64 = [line.get_ydata()[-1] for line in times.get_lines()][1]
    assert at_64 == pytest.approx(64 / (16e4 * 1.004) * 1e6, rel=1e-3)


def test_cpu_time_is_of_all_threads_together() -> None:
    figure = depth_ramp(frames.sweep(), frames.NO_WINDOWS)
    _, _, system, user = figure.axes
    of_eight = system.get_lines()[-1].get_ydata(), user.get_lines()[-1].get_ydata()
    assert of_eight[0][0] == pytest.approx(9.0 * 8 * 8)  # 72 % of each of eight
    assert of_eight[1][0] == pytest.approx(3.0 * 8 * 8)
    assert system.get_ylabel().replace("\n", " ") == "System CPU (% of a core), log scale"
    virtual = depth_ramp(frames.sweep().assign(clock="virtual"), frames.NO_WINDOWS)
    assert len(virtual.axes) == 2, "on the virtual clock, I/Os need no CPU"
