"""Figures over several drives show what the tables say."""

from __future__ import annotations

import comparison_frames as frames
import matplotlib
import numpy as np
import pandas as pd
import protocol_frames
import pts_frames as pts
import pytest
from drawn import legend, rows, texts
from drawn import points as drawn
from hypothesis import given
from hypothesis import strategies as st

from drivelab.analysis.detectors.bathtub import LEAST_INDEX_PCT, bathtub_index
from drivelab.analysis.values.latency_values import percentiles_us
from drivelab.analysis.verdict import CANNOT_TELL, DELTA_VERDICTS, FASTER, NOT_COMPARED
from drivelab.figures.base import overlay, style
from drivelab.figures.kinds.cells import alignment
from drivelab.figures.kinds.deltas import comparison, normalised
from drivelab.figures.kinds.demand import depth_ramp
from drivelab.figures.kinds.drives import capacity
from drivelab.figures.kinds.latency import exceedance_of_drives, nines_of_drives, tail
from drivelab.figures.kinds.latency_maps import latency_heat
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


def test_drives_differ_in_greyscale() -> None:
    figure = normalised(pts.deltas(("op28", "op7-512e", "op3")))
    fills = {patch.get_hatch() for patch in figure.axes[0].patches if patch.get_gid() == "bar"}
    assert len(fills) == 3
    assert {patch.get_hatch() for patch in figure.legends[0].get_patches()[:3]} == fills


def test_relative_bars_far_apart_begin_at_the_basis() -> None:
    figure = normalised(pts.deltas(sizes=(4096,), mixes=(0,)).query("metric == 'iops'").assign(delta_pct=4200.0))
    (bar,) = [patch for patch in figure.axes[0].patches if patch.get_gid() == "bar"]
    assert figure.axes[0].get_xscale() == "log"
    assert (bar.get_x(), bar.get_x() + bar.get_width()) == pytest.approx((1.0, 43.0))


def test_metrics_that_say_the_same_share_a_panel() -> None:
    deltas = pts.deltas(("op28",)).query("metric == 'iops'")
    twins = pd.concat([deltas, deltas.assign(metric="mean_latency_us", kind="time", unit="us")], ignore_index=True)
    assert [axes.get_xlabel().partition(",")[0] for axes in normalised(twins).axes] == ["I/O rate"]


def test_a_drive_has_one_colour_whether_the_basis_is_shown_or_not() -> None:
    deltas = pts.deltas(("op28", "op7-512e"))
    every = overlay.looks(["op7", "op28", "op7-512e"])
    bars = normalised(deltas).legends[0].get_patches()
    assert {bar.get_label(): bar.get_facecolor()[:3] for bar in bars if bar.get_label() in every} == {
        drive: pytest.approx(every[drive].colour) for drive in ("op28", "op7-512e")
    }
    with overlay.among(["op3", "op28", "op7", "op7-512e"]):  # the basis is not the first
        assert overlay.looks(["op7", "op28"]) == {"op28": every["op28"], "op7": every["op7-512e"]}
        markers = {line.get_label(): line.get_marker() for line in comparison(deltas).legends[0].get_lines()}
    assert (markers["op28"], markers["op7-512e"]) == (every["op28"].marker, style.MARKERS[3])


def test_bars_without_a_verdict_are_pale_and_set_no_scale() -> None:
    deltas = pts.deltas(("op28",), sizes=(4096,), mixes=(65, 0)).query("metric == 'iops'")
    deltas = deltas.assign(delta_pct=[40.0, 488.0], interval_low_pct=np.nan, interval_high_pct=np.nan,
                           verdict=[FASTER, CANNOT_TELL])  # fmt: skip
    figure = normalised(deltas)
    decided, pale = (patch for patch in figure.axes[0].patches if patch.get_gid() == "bar")
    assert pale.get_edgecolor() == decided.get_facecolor()
    tint = [1 - 0.35 * (1 - part) for part in decided.get_facecolor()[:3]]
    assert pale.get_facecolor()[:3] == pytest.approx(tint), "neither white on white nor as strong as a verdict"
    assert pale.get_width() == pytest.approx(5.88)  # as a chart that can be zoomed has it
    assert figure.axes[0].get_xlim() == pytest.approx((0.0, 1.47))
    cut, times = "\N{BLACK RIGHT-POINTING SMALL TRIANGLE}", "\N{MULTIPLICATION SIGN}"
    assert texts(figure, "number") == [f"1.4{times}", f"{cut}5.88{times}"]
    assert [patch.get_label() for patch in figure.legends[0].get_patches()] == ["op28", "pale: cannot tell"]


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
    assert [points[:, 0].tolist() for points in rates] == [[1, 2, 16]] * 2
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
    assert texts(figure, "index") == ["\N{MINUS SIGN}50 / \N{MINUS SIGN}24 %"] * 3
    assert drawn(figure, "line")[0].tolist() == [[0, 2000], [20, 1800], [60, 3400], [100, 10000]]
    assert drawn(figure, "end to end")[0].tolist() == [[0, 2000], [100, 10000]]
    with pytest.raises(ValueError, match="no workload with reads alone"):
        bathtub(frames.mixes((100, 0)), NO_WINDOWS)


@pytest.mark.parametrize(("iops", "is_bathtub"), [(1800, True), (2400, False)])
def test_a_bathtub_is_in_bold_where_the_detector_calls_it_one(iops: float, is_bathtub: bool) -> None:
    mixes = frames.mixes((100, 20, 0))
    mixes.loc[mixes["read_share_pct"] == 20, "iops"] = iops  # sharing the time alone comes to 2381
    (number,) = [text for text in bathtub(mixes, NO_WINDOWS).axes[0].texts if text.get_gid() == "index"]
    assert (number.get_fontweight() == "bold") == is_bathtub
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


def test_alignment_pairs_what_is_alike_otherwise() -> None:
    figure = alignment(frames.of_drives(frames.shifted, ("op7", "op28")), NO_WINDOWS)
    assert texts(figure, "number") == ["\N{MINUS SIGN}25 %"] * 6
    assert drawn(figure, "aligned")[1][:, 0] == pytest.approx([4800.0] * 3)
    assert drawn(figure, "unaligned")[1][:, 0] == pytest.approx([3600.0] * 3)
    with pytest.raises(ValueError, match="no aligned and unaligned cells"):
        alignment(frames.shifted(()), NO_WINDOWS)


def test_capacity_puts_values_over_what_the_drives_hold() -> None:
    figure = capacity(**frames.capacities((256, 1024), 1))
    (line,) = drawn(figure, "line", 0)
    assert line == pytest.approx(np.array([[256e9, 1e5], [1024e9, 1.2e5]]))


def test_capacity_shows_sequential_cells_by_throughput() -> None:
    tables = frames.capacities((256, 1024), 1)
    random = tables["summary"]
    rates = random.assign(metric="bandwidth_mib_s", unit="MiB/s", value=random["value"] / 256)
    both = pd.concat([random, rates.drop_duplicates("drive")], ignore_index=True)
    sequential = both.assign(cell_label="SEQ 128KiB 100/0 T1Q64")
    tables["summary"] = pd.concat([both, sequential], ignore_index=True)
    left, right = capacity(**tables).axes[:2]
    for axes, label, cell in ((left, "I/O rate", "RND 4KiB 100/0"), (right, "Bandwidth", "SEQ 128KiB 100/0 T1Q64")):
        assert axes.get_ylabel().startswith(label)
        assert [line.get_label() for line in axes.get_lines() if line.get_gid() == "line"] == [cell]


def test_capacity_finds_a_drive_on_its_platform() -> None:
    tables = frames.capacities((256, 512))
    tables["summary"]["drive"] += "@bench"
    assert capacity(**tables).axes


def test_curves_that_lie_on_each_other_are_named() -> None:
    alike, apart = frames.bins(("op7",)), frames.bins(("op7", "op28"))
    apart["count"] *= 1 + (apart["drive"] == "op28") * np.arange(len(apart))  # slow I/Os, else the tails are the same
    alike = pd.concat([alike, alike.assign(drive="op7-512e", recording="op7-512e/x/run1")])
    for draw in (tail, exceedance_of_drives):
        assert "op7-512e lies on op7" in texts(draw(alike), "note")
        assert not any("lies on" in said for said in texts(draw(apart), "note"))


def test_nines_side_by_side_are_the_percentiles_of_each_drive() -> None:
    bins = frames.bins()
    figure = nines_of_drives(bins)
    for (_, part), points in zip(bins.groupby("drive", sort=False), drawn(figure, "reliable"), strict=True):
        assert points[:, 0] == pytest.approx(percentiles_us(part, [50, 90, 99, 99.9, 99.99, 99.999, 99.9999]))


def test_a_drive_of_fewer_ios_has_fewer_nines() -> None:
    figure = nines_of_drives(pd.concat([frames.bins(("op7",), 3000), frames.bins(("op28",))]))
    assert sum(len(points) for points in (*drawn(figure, "reliable"), *drawn(figure, "unreliable"))) == 4 + 7
    assert rows(figure)[-1] == "99.9999"


def test_only_the_last_soak_counts_and_of_one_workload() -> None:
    bins = frames.bins(("op7",))
    before = bins.assign(step=-1, latency_ns=bins["latency_ns"] * 100)
    with_both, alone = exceedance_of_drives(pd.concat([before, bins])), exceedance_of_drives(bins)
    assert drawn(with_both, "line")[0] == pytest.approx(drawn(alone, "line")[0])
    other = bins.assign(**protocol_frames.key("op28"), workload="RND 8KiB 100/0")
    for figure in (nines_of_drives, exceedance_of_drives, tail):
        with pytest.raises(ValueError, match="2 values of 'workload'"):
            figure(pd.concat([bins, other]))


def test_exceedance_reaches_the_slowest_of_a_million() -> None:
    figure = exceedance_of_drives(frames.bins())
    assert min(figure.axes[0].get_ylim()) == pytest.approx(5e-7)
    assert any("99.9999 % in" in text for text in legend(figure))


def test_the_tail_of_equal_ios_is_their_share_and_a_slow_one_costs_more() -> None:
    bins = frames.bins(("op7",)).iloc[[50, 51]]
    even = tail(bins.assign(count=[500_000, 500_000], latency_ns=[100_000, 100_001]))
    assert "op7: 1 %" in legend(even)
    slow = tail(bins.assign(count=[990, 10], latency_ns=[100_000, 9_900_000]))
    assert "op7: 50 %" in legend(slow)


def test_ios_that_all_took_one_time_have_a_step_and_a_tail() -> None:
    bins = frames.bins().groupby("drive").head(1).assign(latency_ns=206_000, count=1000)
    for points in drawn(exceedance_of_drives(bins), "line"):
        assert points.tolist() == [[206.0, 1.0], [206.0, 0.0005]]
    figure = tail(bins)
    for points in drawn(figure, "line"):
        assert points == pytest.approx(np.array([[100.0, 100.0], [0.1, 0.1]]))
    names = legend(figure)
    assert names[:-1] == [f"{drive}: all I/Os took 206 µs" for drive in bins["drive"]]
    assert texts(figure, "note") == ["op28 lies on op7, op7-512e lies on op7"], "no part of the time is in the legend"


def test_one_slice_has_a_median() -> None:
    (median,) = drawn(latency_heat(**frames.slices(1)), "median")
    assert median[:, 0].tolist() == [0.0, 10.0]
    assert median[0, 1] == median[1, 1]


def test_the_heat_of_a_slice_adds_up_to_all_its_ios() -> None:
    tables = frames.slices(5)
    figure = latency_heat(**tables)
    (mesh,) = [artist for artist in figure.axes[0].collections if artist.get_gid() == "map"]
    assert list(np.ma.sum(mesh.get_array(), axis=0)) == pytest.approx([100.0] * 5)
    (median,) = drawn(figure, "median")
    assert median[:, 0].tolist() == [5.0, 15.0, 25.0, 35.0, 45.0]
    slices = tables["latency_bins"].groupby("round")
    assert median[:, 1] == pytest.approx([percentiles_us(part, [50])[0] for _, part in slices])


def test_too_many_slices_share_columns() -> None:
    figure = latency_heat(**frames.slices(600))
    (mesh,) = [artist for artist in figure.axes[0].collections if artist.get_gid() == "map"]
    assert mesh.get_array().shape[1] == 200


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
    named = [text.get_text() for axes in figure.axes for text in axes.get_legend().get_texts()]
    assert named.count("throttled") == 1
    assert [axes.get_ylabel() for axes in figure.axes] == ["I/O rate (IOPS)", "Temperature\n(°C)",
                                                           "Processor time\n(% of all)"]  # fmt: skip
    for axes in figure.axes:
        (span,) = [patch for patch in axes.patches if patch.get_gid() == "throttled"]
        minutes = span.get_x(), span.get_x() + span.get_width()
        assert minutes == pytest.approx((179 / 60, 210 / 60))
    assert drawn(figure, "rate")[0][:, 1].min() == 2500


def test_a_panel_without_samples_is_left_out() -> None:
    tables = frames.heated()
    tables["telemetry"] = tables["telemetry"].assign(temperature_c=None)
    assert len(telemetry_strip(**tables).axes) == 2
    none = telemetry_strip(**frames.heated(sampled=False))
    assert len(none.axes) == 1
    assert "neither temperature" in texts(none, "note")[0]


def test_more_workloads_than_names_have_a_key_of_sizes_and_mixes() -> None:
    tables = frames.heated(sampled=False)
    loads = [f"RND {size} {mix}" for size in ("4KiB", "64KiB", "1024KiB") for mix in ("0/100", "65/35", "100/0")]
    cell = tables["cells"].iloc[0].to_dict()
    cells = pd.DataFrame([{**cell, "kind": "loop", "cell": n, "workload": load} for n, load in enumerate(loads)])
    (axes,) = telemetry_strip(tables["telemetry"], tables["series"].iloc[:0], cells).axes
    named = [text.get_text() for text in axes.get_legend().get_texts()]
    assert named == ["RND 4KiB", "RND 64KiB", "RND 1024KiB", "0/100", "65/35", "100/0"]
    looks = {(line.get_color(), line.get_marker()) for line in axes.get_lines() if line.get_gid() == "rate"}
    assert len(looks) == len(loads)
    assert {len({look[part] for look in looks}) for part in (0, 1)} == {3}


def test_cold_runs_of_an_application_move_no_median() -> None:
    figure = application_durations(frames.applications(("op7",)))
    assert drawn(figure, "median")[0][:, 0].tolist() == [11]
    assert drawn(figure, "cold")[0][:, 0].tolist() == [15]
    assert texts(figure, "number") == ["11 s (3)"]
