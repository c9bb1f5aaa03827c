"""Figures over several drives show what the tables say."""

from __future__ import annotations

import comparison_frames as frames
import matplotlib
import numpy as np
import pandas as pd
import protocol_frames
import pts_frames as pts
import pytest
from drawn import artists, legend, rows, texts
from drawn import points as drawn
from hypothesis import given
from hypothesis import strategies as st

from drivelab.analysis.detectors.bathtub import LEAST_INDEX_PCT, bathtub_index
from drivelab.analysis.verdict import CANNOT_TELL, DELTA_VERDICTS, NOT_COMPARED
from drivelab.figures.base import overlay, style
from drivelab.figures.kinds.deltas import comparison
from drivelab.figures.kinds.demand import depth_ramp
from drivelab.figures.kinds.latency import latency_distribution
from drivelab.figures.kinds.mixes import bathtub, sizes_of_drives
from drivelab.figures.kinds.replays import application_durations
from drivelab.figures.kinds.seconds import strip_chart, telemetry_strip

NO_WINDOWS = protocol_frames.NO_WINDOWS

_DRAWN = [verdict for verdict in DELTA_VERDICTS if verdict != NOT_COMPARED]


def test_a_forest_shows_every_cell_and_counts_metrics_without_room() -> None:
    """Large blocks are known by throughput and small ones by IOPS; both are on the page."""
    (one, *_) = pts.deltas(("op28",)).query("metric == 'iops'").to_dict("records")
    blocks = {f"RND {size}KiB 100/{share}": "iops" if size < 64 else "bandwidth_mib_s"
              for size in (4, 8, 64, 128) for share in range(11)}  # fmt: skip
    known = [{**one, "cell_label": label, "metric": metric} for label, metric in blocks.items()]
    tails = [{**row, "metric": "p99_latency_us"} for row in known]
    figure = comparison(pd.DataFrame([*known, *tails]))
    assert len(texts(figure, "verdict")) == len(known)
    assert "1 more metric is in the tables" in texts(figure, "note")


@pytest.mark.parametrize("names", [("op28",), tuple(f"drive-{place}" for place in range(7))])
def test_a_forest_has_each_delta_with_its_interval_and_verdict(names: tuple[str, ...]) -> None:
    deltas = pts.deltas(names)
    figure = comparison(deltas)
    for verdict in _DRAWN:
        of_it = deltas[deltas["verdict"] == verdict]
        shown = [x for points in drawn(figure, verdict) for x in points[:, 0]]
        assert sorted(shown) == pytest.approx(sorted(of_it["delta_pct"]))
        lines = [line for line in figure.axes[0].get_lines() if line.get_gid() == verdict]
        assert all((line.get_markerfacecolor() == "white") == (verdict == CANNOT_TELL) for line in lines)
    ends = np.concatenate([points[:, 0] for points in drawn(figure, "interval")])
    both = deltas[["interval_low_pct", "interval_high_pct"]].to_numpy().ravel()
    assert sorted(ends[np.isfinite(ends)]) == pytest.approx(sorted(both[np.isfinite(both)]))
    verdicts = deltas["verdict"] if len(names) == 1 else deltas["verdict"] + ", " + deltas["comparison"]
    assert sorted(texts(figure, "verdict")) == sorted(verdicts)
    assert figure.axes[0].get_xlabel() == "Delta against op7 (%), better →"
    assert {"pts-iops: I/O rate", *deltas["cell_label"]} <= set(rows(figure))


def test_what_is_not_compared_has_no_dot() -> None:
    deltas = pts.deltas(sizes=(4096,), mixes=(0,))
    none = {"delta_pct": [np.nan, -3.0], "verdict": [NOT_COMPARED, CANNOT_TELL]}
    figure = comparison(deltas.assign(**none, interval_low_pct=np.nan, interval_high_pct=np.nan))
    assert sum(len(points) for verdict in _DRAWN for points in drawn(figure, verdict)) == 1
    assert texts(figure, "verdict") == [NOT_COMPARED, CANNOT_TELL]
    assert texts(figure, "number") == ["", "\N{MINUS SIGN}3.0 %"]


def test_unknown_verdicts_are_refused() -> None:
    with pytest.raises(ValueError, match=r"unknown verdict\(s\) splendid"):
        comparison(pts.deltas().assign(verdict="splendid"))


def test_the_margin_has_an_end_where_all_deltas_are_small() -> None:
    small = dict.fromkeys(("delta_pct", "interval_low_pct", "interval_high_pct"), 0.02)
    figure = comparison(pts.deltas(("op28",)).assign(**small))
    low, high = figure.axes[0].get_xlim()
    assert low < -6.5 < 6.5 < high  # the margin is five
    assert set(texts(figure, "number")) == {"+0.02 %"}


def test_a_drive_has_one_colour_whether_the_basis_is_shown_or_not() -> None:
    deltas = pts.deltas(("op28", "op7-512e"))
    every = overlay.looks(["op7", "op28", "op7-512e"])
    dots = comparison(deltas).legends[0].get_lines()
    assert {dot.get_label(): dot.get_marker() for dot in dots if dot.get_label() in every} == {
        drive: every[drive].marker for drive in ("op28", "op7-512e")
    }
    with overlay.among(["op3", "op28", "op7", "op7-512e"]):  # the basis is not the first
        assert overlay.looks(["op7", "op28"]) == {"op28": every["op28"], "op7": every["op7-512e"]}
        markers = {line.get_label(): line.get_marker() for line in comparison(deltas).legends[0].get_lines()}
    assert (markers["op28"], markers["op7-512e"]) == (every["op28"].marker, style.MARKERS[3])


def test_long_names_of_cells_leave_room_for_the_deltas() -> None:
    deltas = pts.deltas(("op28", "op7-512e"), sizes=(4096,)).query("metric == 'iops'")
    long = deltas.assign(
        cell_label=[f"RND 4KiB-64KiB mix {share}/{100 - share}, 3 zones" for share in (100, 100, 65, 65, 0, 0)]
    )
    figure = comparison(long)
    assert rows(figure) == ["I/O rate", "100/0", "65/35", "0/100"]
    assert "each cell: RND 4KiB-64KiB mix 3 zones" in texts(figure, "note")
    figure.draw_without_rendering()
    assert figure.axes[0].bbox.width > figure.bbox.width / 3


def test_a_ramp_of_one_drive_has_a_line_for_each_number_of_threads() -> None:
    figure = depth_ramp(protocol_frames.sweep((1, 4), (1, 2, 16)), NO_WINDOWS)
    rates, times = drawn(figure, "line", 0), drawn(figure, "line", 1)
    assert [points[:, 0].tolist() for points in rates] == [[1, 2, 16], [4, 8, 64]]
    assert rates[1][:, 1] == pytest.approx(np.array([4, 8, 16]) * 1.004e4)
    assert len(times) == 2


def test_a_ramp_of_drives_is_against_all_outstanding_ios() -> None:
    cells = frames.of_drives(lambda: protocol_frames.sweep((1, 4), (1, 2, 16)))
    figure = depth_ramp(cells, NO_WINDOWS)
    assert texts(figure, "title") == ["Queue-depth ramp, RND 4KiB 100/0"]
    assert legend(figure) == [f"{drive}, T{threads}" for drive in frames.DRIVES for threads in (1, 4)]
    lines = drawn(figure, "line", 0)
    assert [points[:, 0].tolist() for points in lines] == [[1, 2, 16], [4, 8, 64]] * 3
    assert [points[0, 1] for points in lines[::2]] == pytest.approx([1.004e4, 1.2 * 1.004e4, 1.4 * 1.004e4])


def test_a_ramp_of_many_drives_has_a_panel_for_each_number_of_threads() -> None:
    cells = frames.of_drives(lambda: protocol_frames.sweep((1, 4), (1, 2, 16)), tuple("abcdefg"))
    figure = depth_ramp(cells, NO_WINDOWS)
    titles = [title for axes in figure.axes if (title := axes.get_title(loc="left"))]
    assert titles == ["RND 4KiB 100/0, 1 thread", "RND 4KiB 100/0, 4 threads"]
    assert figure.axes[0].get_xlim()[0] < 1 < 64 < figure.axes[0].get_xlim()[1]
    assert len(drawn(figure, "line", 0)) == 7


def test_runs_of_a_drive_are_averaged() -> None:
    first = protocol_frames.sweep((1,), (1, 2, 16))
    second = first.assign(**protocol_frames.key(run=2), iops=first["iops"] * 3)
    figure = depth_ramp(pd.concat([first, second]), NO_WINDOWS)
    assert drawn(figure, "line", 0)[0][:, 1] == pytest.approx(2 * np.array([1, 2, 16]) * 1.004e4)


def test_sizes_are_the_averages_of_the_windows_of_their_measurements() -> None:
    figure = sizes_of_drives(**frames.single_sizes())
    assert [axes.get_title(loc="left") for axes in figure.axes] == ["SEQ 100/0, reads", "SEQ 0/100, writes"]
    for panel, factor in ((0, 2), (1, 1)):
        lines = drawn(figure, "line", panel)
        for place, line in enumerate(lines):
            large = 100 * factor * (1 + place / 10)
            assert line.tolist() == [[2**17, pytest.approx(large * 0.125**0.1)], [2**20, pytest.approx(large)]]
    assert len(lines) == len(frames.DRIVES)
    assert figure.axes[0].get_ylabel() == "Bandwidth (MiB/s)"
    assert figure.axes[0].get_ylim() == figure.axes[1].get_ylim()


def test_a_size_that_a_drive_was_not_measured_at_is_no_point() -> None:
    tables = frames.single_sizes((2**20, 2**17, 2**12))
    missing = ("op28", "throughput.4KiB")
    fewer = {name: t[(t["drive"] != missing[0]) | (t["measurement"] != missing[1])] for name, t in tables.items()}
    assert [len(line) for line in drawn(sizes_of_drives(**fewer), "line", 0)] == [3, 2, 3]


def test_sizes_of_different_metrics_are_refused() -> None:
    tables = frames.single_sizes()
    tables["steady_state"].loc[0, "metric"] = "iops"
    with pytest.raises(ValueError, match="metric"):
        sizes_of_drives(**tables)


def test_the_bathtub_says_how_far_below_the_line_it_is() -> None:
    figure = bathtub(frames.of_drives(frames.mixes), NO_WINDOWS)
    assert texts(figure, "title") == [
        "Reads and writes mixed, RND 4KiB; deepest: op7 \N{MINUS SIGN}50 / \N{MINUS SIGN}24 % *"
    ]
    assert drawn(figure, "line")[0].tolist() == [[0, 2000], [20, 1800], [60, 3400], [100, 10000]]
    assert drawn(figure, "end to end")[0][[0, 10, -1]].tolist() == [[0, 2000], [50, 6000], [100, 10000]]
    with pytest.raises(ValueError, match="no workload with reads alone"):
        bathtub(frames.mixes((100, 0)), NO_WINDOWS)


@pytest.mark.parametrize(("iops", "is_bathtub"), [(1800, True), (2400, False)])
def test_a_bathtub_has_a_star_where_the_detector_calls_it_one(iops: float, is_bathtub: bool) -> None:
    mixes = frames.mixes((100, 20, 0))
    mixes.loc[mixes["read_share_pct"] == 20, "iops"] = iops  # sharing the time alone comes to 2381
    assert legend(bathtub(mixes, NO_WINDOWS))[0].endswith("% *") == is_bathtub
    deepest = bathtub_index(mixes)
    assert deepest is not None
    assert deepest.index_pct > LEAST_INDEX_PCT  # below the line it is either way


def test_drives_that_lie_on_each_other_are_named() -> None:
    cells = frames.of_drives(frames.mixes)
    first, *others = cells["drive"].unique()
    alike = cells[cells["drive"] == first]
    for drive in others[:1]:
        cells.loc[cells["drive"] == drive, "iops"] = alike["iops"].to_numpy() * 1.0001
    assert f"{others[0]} lies on {first}" in texts(bathtub(cells, NO_WINDOWS), "note")
    assert not any("lies on" in text for text in texts(bathtub(frames.of_drives(frames.mixes), NO_WINDOWS), "note"))


@given(st.lists(st.sampled_from([100.0, 200.0, 300.0]), min_size=2, max_size=6))
def test_each_hidden_drive_lies_on_one_that_is_seen(levels: list[float]) -> None:
    rows = [{"drive": f"d{place}", "at": at, "iops": level + at} for place, level in enumerate(levels) for at in (1, 2)]
    said = overlay.coinciding(pd.DataFrame(rows), ["at"], ["iops"])
    pairs = [pair.split(" lies on ") for pair in said.split(", ")] if said else []
    assert len(pairs) == len(levels) - len(set(levels))
    assert not {upper for upper, _ in pairs} & {lower for _, lower in pairs}
    assert all(levels[int(upper[1:])] == levels[int(lower[1:])] for upper, lower in pairs)


def test_what_is_written_beside_a_forest_lies_within_the_picture() -> None:
    """A text has the measured width at every resolution."""
    deltas = pts.deltas(("op28",)).assign(measurement="pts-composite-block-workload-of-a-long-name")
    figure = comparison(deltas)
    with matplotlib.rc_context(style.RC):
        figure.get_layout_engine().execute(figure)
        figure.set_dpi(style.PNG_DPI)
        boxes = [text.get_window_extent() for text in (*figure.axes[0].get_yticklabels(), *figure.axes[0].texts)]
    assert min(box.x0 for box in boxes) >= 0
    assert max(box.x1 for box in boxes) <= figure.get_window_extent().x1


def test_curves_that_lie_on_each_other_are_named() -> None:
    alike, apart = frames.bins(("op7",)), frames.bins(("op7", "op28"))
    apart["count"] *= 1 + (apart["drive"] == "op28") * np.arange(len(apart))  # slow I/Os, else the tails are the same
    alike = pd.concat([alike, alike.assign(drive="op7-512e", recording="op7-512e/x/run1")])
    assert "op7-512e lies on op7" in texts(latency_distribution(alike), "note")
    assert not any("lies on" in said for said in texts(latency_distribution(apart), "note"))


def test_only_the_last_soak_counts_and_of_one_workload() -> None:
    bins = frames.bins(("op7",))
    before = bins.assign(step=-1, latency_ns=bins["latency_ns"] * 100)
    with_both, alone = latency_distribution(pd.concat([before, bins])), latency_distribution(bins)
    assert drawn(with_both, "line")[0] == pytest.approx(drawn(alone, "line")[0])
    other = bins.assign(**protocol_frames.key("op28"), workload="RND 8KiB 100/0")
    with pytest.raises(ValueError, match="2 values of 'workload'"):
        latency_distribution(pd.concat([bins, other]))


def test_exceedance_reaches_the_slowest_of_a_million() -> None:
    figure = latency_distribution(frames.bins())
    assert min(figure.axes[0].get_ylim()) == pytest.approx(5e-7)
    assert any("99.9999 %" in text for text in legend(figure))


def test_ios_that_all_took_one_time_have_a_step() -> None:
    bins = frames.bins().groupby("drive").head(1).assign(latency_ns=206_000, count=1000)
    for points in drawn(latency_distribution(bins), "line"):
        assert points.tolist() == [[206.0, 1.0], [206.0, 0.0005]]


def test_a_strip_chart_lays_soaks_on_each_other_from_their_starts() -> None:
    tables = frames.soaks(seconds=20)
    late = tables["cells"]["drive"] == "op28"
    tables["cells"].loc[late, "elapsed_s"] += 1000
    figure = strip_chart(**tables)
    assert [points[:, 0].tolist() for points in drawn(figure, "line")] == [list(range(1, 21))] * 3
    assert [points[0, 1] for points in drawn(figure, "line")] == [1001, 2001, 3001]


def test_a_long_strip_is_its_rolling_mean() -> None:
    figure = strip_chart(**frames.soaks(("op7",), 600))
    (bold,), (pale,) = drawn(figure, "line"), drawn(figure, "second")
    assert pale[:, 1].tolist() == [1000.0 + second for second in range(1, 601)]
    assert bold[300, 1] == pytest.approx(pale[295:305, 1].mean())
    assert "rolling mean over 10 s" in texts(figure, "note")[0]


def test_soaks_of_different_workloads_show_bandwidth() -> None:
    figure = strip_chart(**frames.soaks(workloads=("SEQ 1024KiB 0/100", "RND 8KiB 0/100")))
    assert figure.axes[0].get_ylabel() == "Bandwidth, writes (MiB/s)"


def test_telemetry_shades_where_the_drive_throttled() -> None:
    figure = telemetry_strip(**frames.heated(300))
    assert legend(figure).count("throttled") == 1
    assert [axes.get_ylabel() for axes in figure.axes] == [
        "I/O rate (IOPS)", "Temperature (°C)", "Processor time\n(% of all)"
    ]  # fmt: skip
    for axes in figure.axes:
        (span,) = [patch for patch in axes.patches if patch.get_gid() == "throttled"]
        minutes = span.get_x(), span.get_x() + span.get_width()
        assert minutes == pytest.approx((179 / 60, 210 / 60))
    assert drawn(figure, "line", 0)[0][:, 1].min() == 2500


def test_a_panel_without_samples_is_left_out() -> None:
    tables = frames.heated()
    tables["telemetry"] = tables["telemetry"].assign(temperature_c=None)
    assert len(telemetry_strip(**tables).axes) == 2
    none = telemetry_strip(**frames.heated(sampled=False))
    assert len(none.axes) == 1
    assert "neither temperature" in texts(none, "note")[0]


def test_many_workloads_that_differ_in_the_mix_have_one_look() -> None:
    tables = frames.heated(sampled=False)
    mixes = [f"{share}/{100 - share}" for share in (0, 25, 50, 75, 100)]
    loads = [f"RND {size} {mix}" for size in ("4KiB", "64KiB", "1024KiB") for mix in mixes]
    cell = tables["cells"].iloc[0].to_dict()
    cells = pd.DataFrame([{**cell, "kind": "loop", "cell": n, "workload": load} for n, load in enumerate(loads)])
    for some, names in ((3, loads[:3]), (15, ["RND 4KiB", "RND 64KiB", "RND 1024KiB"])):
        figure = telemetry_strip(tables["telemetry"], tables["series"].iloc[:0], cells[:some])
        assert [name for name in legend(figure) if name != "throttled"] == names
        lines = artists(figure, "line")
        assert sum(len(line.get_xdata()) for line in lines) == some
        assert len({(line.get_color(), line.get_marker()) for line in lines}) == len(names)


def test_cold_runs_of_an_application_move_no_median() -> None:
    figure = application_durations(frames.applications(("op7",)))
    assert drawn(figure, "median")[0][:, 0].tolist() == [11]
    assert drawn(figure, "cold")[0][:, 0].tolist() == [15]
    assert texts(figure, "number") == ["11 s (3)"]
