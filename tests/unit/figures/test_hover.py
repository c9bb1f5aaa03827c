"""The charts that can be pointed at have the values, names and axes of the pictures."""

from __future__ import annotations

import json
import math
from collections.abc import Callable
from functools import partial
from pathlib import Path
from types import ModuleType
from typing import Any

import numpy as np
import plotly.graph_objects as go
import protocol_frames as frames
import pytest
from hypothesis import given
from hypothesis import strategies as st
from matplotlib.colors import LogNorm
from matplotlib.container import BarContainer
from matplotlib.figure import Figure
from matplotlib.patches import StepPatch

from drivelab.figures import hover_room, style
from drivelab.figures.convergence import convergence
from drivelab.figures.demand_intensity import demand_intensity
from drivelab.figures.demand_variation import demand_variation
from drivelab.figures.head_to_head import head_to_head
from drivelab.figures.hover import plotly_figure
from drivelab.figures.hover_axes import tell
from drivelab.figures.hover_numbers import listed, placed
from drivelab.figures.idle_recovery import idle_recovery
from drivelab.figures.latency_distribution import latency_distribution
from drivelab.figures.measurement_2d import measurement_2d
from drivelab.figures.measurement_3d import measurement_3d
from drivelab.figures.nines import nines
from drivelab.figures.repeats import repeats
from drivelab.figures.saturation_bytes import saturation_bytes
from drivelab.figures.stimulus import stimulus
from drivelab.figures.window import window

HALF_A_DIGIT = 5.1e-5  # of five


def chart(figure: Figure) -> dict[str, Any]:
    """The chart of a figure as a page gets it; Plotly's own model refuses what it does not know."""
    with style.matplotlib.rc_context(style.RC):
        figure.draw_without_rendering()
        found: dict[str, Any] = json.loads(json.dumps(plotly_figure(figure), allow_nan=False))
    go.Figure(found)
    return found


def numbers(values: list[float | None]) -> np.ndarray:
    return np.array([math.nan if value is None else value for value in values], dtype=float)


def is_drawn(traces: list[dict[str, Any]], x: Any, y: Any) -> bool:
    """Whether a trace has just these points."""
    return any(
        len(trace["x"]) == len(x)
        and np.allclose(numbers(trace["x"]), np.asarray(x, dtype=float), rtol=HALF_A_DIGIT, equal_nan=True)
        and np.allclose(numbers(trace["y"]), np.asarray(y, dtype=float), rtol=HALF_A_DIGIT, equal_nan=True)
        for trace in traces
        if all(value is None or isinstance(value, int | float) for value in trace["x"])
    )


def drawings(made: ModuleType) -> dict[str, Callable[[], Figure]]:
    cells, steady = made.cells(7), made.steady_state()
    return {
        "convergence": partial(convergence, cells, steady),
        "window": partial(window, steady),
        "measurement_2d": partial(measurement_2d, cells, steady),
        "repeats": partial(repeats, frames.repeated(), frames.NO_WINDOWS),
        "demand_variation": partial(demand_variation, frames.sweep(), frames.NO_WINDOWS),
        "demand_intensity": partial(demand_intensity, frames.with_points(frames.sweep()), frames.NO_WINDOWS),
        "idle_recovery": partial(idle_recovery, frames.idle()),
        "stimulus": partial(stimulus, frames.crossed()),
        "nines": partial(nines, frames.bins()),
        "head_to_head": partial(head_to_head, **frames.together()),
        "latency_distribution": partial(latency_distribution, made.latency_bins()),
        "saturation_bytes": partial(saturation_bytes, made.soak(), made.drives(op7=480 * 10**9)),
    }


NAMES = (
    "convergence",
    "window",
    "measurement_2d",
    "repeats",
    "demand_variation",
    "demand_intensity",
    "idle_recovery",
    "stimulus",
    "nines",
    "head_to_head",
    "latency_distribution",
    "saturation_bytes",
)


@pytest.mark.parametrize("name", NAMES)
def test_every_line_and_bar_is_in_the_chart(name: str, made: ModuleType) -> None:
    figure = drawings(made)[name]()
    found = chart(figure)
    checked = 0
    for axes in figure.axes:
        for line in axes.get_lines():
            if line.get_transform() == axes.transData and len(line.get_xdata()):
                x, y = line.get_xdata(orig=False), line.get_ydata(orig=False)
                assert is_drawn(found["data"], x, y), f"{name}: {line.get_label()}"
                checked += 1
        for patch in axes.patches:
            if isinstance(patch, StepPatch):
                values, edges, _ = patch.get_data()  # none of these stands on another
                assert is_drawn(found["data"], edges, [*values, values[-1]])
                checked += 1
        for bars in (one for one in axes.containers if isinstance(one, BarContainer)):
            ends = [bar.get_width() if bars.orientation == "horizontal" else bar.get_height() for bar in bars.patches]
            along = [one["x" if bars.orientation == "horizontal" else "y"] for one in found["data"]]
            assert any(len(one) == len(ends) and np.allclose(numbers(one), ends, rtol=HALF_A_DIGIT) for one in along)
            checked += 1
    assert checked > 0


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize("width_px", [hover_room.NARROWEST_PX, 928])
def test_no_text_is_cut_off_at_a_side(name: str, width_px: int, made: ModuleType) -> None:
    layout = chart(drawings(made)[name]())["layout"]
    right = layout["margin"]["r"]
    axis_px = 70  # Plotly makes room for tick labels by itself
    room = width_px - axis_px - right
    for note in layout["annotations"]:
        width = hover_room.width_px(note)
        start = hover_room.place(note, layout) * room + note.get("xshift", 0)
        start -= width * {"left": 0, "center": 0.5, "right": 1}[note["xanchor"]]
        assert -axis_px <= start + 8, note["text"]  # but for the padding, in which there are no letters
        assert start + width <= room + right + 1, note["text"]


def test_room_is_made_for_what_is_written_beside_a_panel() -> None:
    figure = style.new_figure("A panel")
    axes = figure.subplots()
    axes.set_xlim(0, 1)
    empty = chart(figure)["layout"]["margin"]["r"]
    axes.text(1.08, 0.5, "12,345,678.9", transform=axes.transAxes, ha="right")
    over = chart(figure)["layout"]["margin"]["r"]
    axes.text(1.0, 0.5, "12,345,678.9 of them", transform=axes.transAxes, ha="left")
    assert empty < over < chart(figure)["layout"]["margin"]["r"]


def test_the_determination_block_stands_below_its_panel(made: ModuleType) -> None:
    """Without its texts there would be an empty band."""
    figure = window(made.steady_state().iloc[:1])
    layout = chart(figure)["layout"]
    (texts,) = [axes.texts for axes in figure.axes if axes.texts]
    assert {text.get_gid() for text in texts} == {"determination"}
    assert [one["text"] for one in layout["annotations"]] == [text.get_text() for text in texts]
    assert {(one["xref"], one["yref"]) for one in layout["annotations"]} == {("paper", "paper")}
    assert all(0 <= one["x"] <= 1 and 0 <= one["y"] < layout["yaxis"]["domain"][0] for one in layout["annotations"])


def test_a_quote_is_a_quote_for_a_reader() -> None:
    """Of HTML's marks those alone are escaped that Plotly would read as such; so no text of a chart has a number's."""
    figure = style.new_figure('The host\'s "own" title')
    axes, empty = figure.subplots(2, 1)
    axes.plot([1, 2], [3, 4], label="the host's")
    axes.plot([1, 2], [4, 5], label="a < b & c's")
    axes.set(xlabel="the drive's time (s)", ylabel="the host's share (%)")
    axes.set_title("the panel's")
    axes.set_xticks([1, 2], ["the first's", "the second's"])
    axes.annotate("the point's", (1, 3))
    empty.set_axis_off()
    empty.text(0, 0.5, "the block's")
    axes.legend(title="the legend's")
    style.note(figure, "others used 89 % of the host's CPU time")
    style.label(figure, reduced=True, virtual=True, clock="wall", subject="the drive's")
    text = json.dumps(chart(figure), ensure_ascii=False)
    assert text.count("'s") >= 10
    assert "&#" not in text
    assert "a &lt; b &amp; c's" in text


@pytest.mark.parametrize("name", NAMES)
def test_axes_have_titles_scales_and_ranges_of_the_picture(name: str, made: ModuleType) -> None:
    figure = drawings(made)[name]()
    layout = chart(figure)["layout"]
    for number, axes in enumerate([one for one in figure.axes if one.axison], start=1):
        ending = "" if number == 1 else str(number)
        for which, axis in (("x", axes.xaxis), ("y", axes.yaxis)):
            shown = layout[f"{which}axis{ending}"]
            assert shown["title"]["text"].replace("<br>", "\n").replace("&lt;", "<") == axis.get_label_text()
            assert shown["type"] == axis.get_scale()
            low, high = axes.get_xlim() if which == "x" else axes.get_ylim()
            ends = np.log10([low, high]) if axis.get_scale() == "log" else [low, high]
            assert shown["range"] == pytest.approx(list(ends), rel=1e-5, abs=1e-6)


def test_the_legend_is_that_of_the_picture_and_each_point_says_its_line(made: ModuleType) -> None:
    figure = convergence(made.cells(7, sizes=(4096, 65536)), made.steady_state(start=3))
    found = chart(figure)
    entries = [one["name"] for one in (*found["data"], *found["layout"]["shapes"]) if one.get("showlegend")]
    (legend,) = figure.legends
    assert sorted(entries) == sorted(text.get_text() for text in legend.get_texts())
    assert entries[:2] == ["4KiB *", "64KiB"]
    lines = [one for one in found["data"] if one["x"] == [1, 2, 3, 4, 5, 6, 7]]
    assert lines[0]["hovertemplate"] == "<b>4KiB *</b><br>Round: %{x:,.5~r}<br>I/O rate: %{y:,.5~r} IOPS<extra></extra>"
    inside = [one for one in found["data"] if one["x"] == [3, 4, 5, 6, 7]]
    assert [one["name"] for one in inside] == ["4KiB *", "64KiB"]  # filled markers, without a label of their own


def test_columns_become_a_map_of_the_same_values(made: ModuleType) -> None:
    cells, steady = made.cells(7, sizes=(4096, 65536)), made.steady_state(start=3)
    (trace,) = chart(measurement_3d(cells, steady))["data"]
    inside = cells[cells["round"].between(3, 7)]
    for size, row in zip(trace["y"], trace["z"], strict=True):
        for mix, value in zip(trace["x"], row, strict=True):
            of_field = (inside["block_size_bytes"] == int(size) * 1024) & (
                inside["read_share_pct"] == int(mix.partition("/")[0])
            )
            assert value == pytest.approx(inside[of_field]["iops"].mean(), rel=HALF_A_DIGIT)


def test_a_map_of_colours_keeps_values_edges_and_its_bar() -> None:
    figure = style.new_figure("Map")
    axes = figure.subplots()
    values = np.array([[1.0, 10.0, 100.0], [1000.0, np.nan, 50.0]])
    mesh = axes.pcolormesh([0, 1, 2, 3], [0, 5, 10], np.ma.masked_invalid(values), norm=LogNorm(1, 1000))
    figure.colorbar(mesh, label="Requests (number)")
    found = chart(figure)
    (trace,) = [one for one in found["data"] if one["type"] == "heatmap"]
    assert trace["x"] == [0, 1, 2, 3]
    assert trace["y"] == [0, 5, 10]
    assert trace["customdata"] == [[1, 10, 100], [1000, None, 50]]
    assert trace["colorbar"]["title"]["text"] == "Requests (number)"
    assert "xaxis2" not in found["layout"]  # the bar is no panel


def test_lines_across_bands_names_and_words() -> None:
    figure = style.new_figure("Rules <b>")
    axes = figure.subplots()
    axes.plot([0, 1, 2], [1e-3, 1e-2, 1e-1], label="share <1 %")
    axes.set_yscale("log")
    axes.axhline(0.05, label="limit")
    axes.axvspan(0.5, 1.5, color="#00ff00", alpha=0.5, label="window")
    axes.set_xticks([0, 1, 2], ["none", "one", "two"])
    axes.annotate("here", (1, 1e-2), (4, 6), textcoords="offset points")
    tell(axes.yaxis, lambda share: f"{100 * (1 - share):g} %")
    axes.set_ylabel("Faster (% of all)")
    figure.legend(*axes.get_legend_handles_labels(), loc="outside lower center")
    found = chart(figure)
    line, limit = (next(one for one in found["data"] if one["name"].startswith(name)) for name in ("share", "limit"))
    assert line["name"] == "share &lt;1 %"  # Plotly reads tags in what it writes
    assert line["customdata"] == [["none", "99.9 %"], ["one", "99 %"], ["two", "90 %"]]
    assert set(limit["y"]) == {0.05}
    assert [limit["x"][0], limit["x"][-1]] == pytest.approx(list(axes.get_xlim()), rel=1e-4, abs=1e-6)
    (band,) = found["layout"]["shapes"]
    assert (band["x0"], band["x1"], band["yref"], band["name"]) == (0.5, 1.5, "y domain", "window")
    (note,) = found["layout"]["annotations"]
    assert (note["text"], note["x"], note["y"]) == ("here", 1, pytest.approx(-2))  # of a logarithmic axis the power
    assert "Rules &lt;b&gt;" in found["layout"]["title"]["text"]


def test_what_the_reader_must_not_miss_stands_over_the_chart() -> None:
    figure = style.new_figure("Title")
    figure.subplots().plot([1, 2], [3, 4])
    style.label(figure, reduced=True, virtual=False, clock="virtual", subject="op7, pts-iops")
    style.alarm(figure, "NOT STEADY")
    text = chart(figure)["layout"]["title"]["text"]
    assert all(word in text for word in ("Title", "REDUCED protocol", "virtual clock", "op7, pts-iops", "NOT STEADY"))
    assert "VIRTUAL drive" not in text


def test_bars_on_a_base_tell_their_length() -> None:
    figure = style.new_figure("Stack")
    axes = figure.subplots()
    axes.bar([0, 1], [10, 20], label="user")
    axes.bar([0, 1], [1, 2], bottom=[10, 20], label="system")
    axes.set_ylabel("CPU (%)")
    axes.set_xticks([0, 1], ["T1Q1", "T2Q1"])
    lower, upper = chart(figure)["data"]
    assert lower["y"] == [10, 20]
    assert (upper["base"], upper["y"]) == ([10, 20], [1, 2])
    assert upper["customdata"] == [["T1Q1", "1 %"], ["T2Q1", "2 %"]]


def test_steps_on_steps_tell_their_own_height_and_hide_no_other() -> None:
    figure = style.new_figure("Stack")
    axes = figure.subplots()
    axes.stairs([1, 2], [0, 10, 20], fill=True, label="reads")
    axes.stairs([4, 6], [0, 10, 20], baseline=np.array([1, 2]), fill=True, label="writes")
    axes.set_ylabel("Requests (number)")
    _, upper = chart(figure)["data"]
    assert upper["fill"] == "toself"
    assert (min(upper["y"]), max(upper["y"])) == (1, 6)
    assert upper["x"][:4] == [0, 10, 10, 20]
    assert [height for _, height in upper["customdata"]][:4] == ["3", "3", "4", "4"]


def test_what_is_hatched_keeps_its_colour() -> None:
    figure = style.new_figure("Hatched")
    axes = figure.subplots()
    axes.bar([0, 1], [2, 3], color="#de8f05", edgecolor="white", hatch="//", label="writes")
    (trace,) = chart(figure)["data"]
    assert trace["marker"]["color"] == "#de8f05"
    assert trace["marker"]["pattern"]["fillmode"] == "overlay"


def test_texts_beside_and_over_a_panel_have_room() -> None:
    figure = style.new_figure("Beside")
    axes = figure.subplots()
    axes.plot([1, 2], [3, 4])
    axes.set_title("606 reads")
    axes.annotate("+36.3 cannot tell", (1.02, 0.5), xycoords="axes fraction")
    layout = chart(figure)["layout"]
    assert {one["text"] for one in layout["annotations"]} == {"606 reads", "+36.3 cannot tell"}
    assert layout["margin"]["r"] > 80


def test_saving_a_figure_writes_its_chart(tmp_path: Path) -> None:
    figure = style.new_figure("Title")
    figure.subplots().plot([1, 2], [3, 4])
    style.save(figure, tmp_path / "one")
    first = (tmp_path / "one.json").read_bytes()
    assert json.loads(first)["data"][0]["y"] == [3, 4]
    style.save(figure, tmp_path / "two")
    assert (tmp_path / "two.json").read_bytes() == first


@given(st.lists(st.floats(allow_nan=True, allow_infinity=True, width=64), min_size=1))
def test_rounding_keeps_five_digits_and_is_json(values: list[float]) -> None:
    found = listed(values)
    json.dumps(found, allow_nan=False)
    for value, shown in zip(values, found, strict=True):
        if not math.isfinite(value):
            assert shown is None
        elif 1e-290 < abs(value) < 1e300:
            assert shown == pytest.approx(value, rel=HALF_A_DIGIT)


@given(st.integers(0, 10_000), st.integers(2, 2000))
def test_seconds_of_a_day_stay_apart(start: int, count: int) -> None:
    seconds = list(range(start, start + count))
    assert placed(seconds) == seconds
