"""Every figure fits on its page, shows units and status, and is reproducible, for all kinds of studies.

Each case is drawn once and checked for everything; the first case of each figure wears all badges and is drawn twice.
"""

from __future__ import annotations

import json
import math
import os
import re
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any
from xml.etree import ElementTree

import comparison_frames
import numpy as np
import pandas as pd
import protocol_frames as frames
import pts_frames as pts
import pytest
from chart_values import Mark, chart, marks, tooltips
from comparison_frames import any_loop, compared, looked
from drawn import stays_on_its_page
from matplotlib import pyplot as plt
from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.container import BarContainer
from matplotlib.figure import Figure
from matplotlib.text import Text

import drivelab
from drivelab.figures.base import style
from drivelab.figures.base.sheets import render
from drivelab.figures.base.style import label, save
from drivelab.figures.base.svg import values_of
from drivelab.figures.families.lines import Lines
from drivelab.figures.registry import FIGURES

UNITS = ("(IOPS)", "1/s", "(per ", "(MiB/s)", "(GiB/s)", "(µs", "(ms", "(s)", "(min)", "(h)", "(KiB)", "(MiB)", "(GiB)",
         "(TiB)", "(%", "(number)", "user capacity)", "(times ", "(°C)")  # fmt: skip
BARS_BY_NAME = ("replay", "repeats", "comparison", "application_durations", "new_and_working", "measurement_2d")
PLAIN = ("convergence", "window", "measurement_2d", "repeats", "depth_ramp", "demand_intensity", "idle_recovery",
         "stimulus", "head_to_head", "latency_distribution", "saturation_bytes")  # fmt: skip
"""Figures whose axes need no straightening, so that the values are compared with the artists."""
HALF_A_DIGIT = 5.1e-5
"""Of seven."""
DEMANDS = (1, 2, 4, 6, 8, 16, 32)
"""Threads and depths of the PTS."""
FALLING = (90e3, 80e3, 61e3, 70e3, 55e3)


def _both(*frames: pd.DataFrame) -> pd.DataFrame:
    return pd.concat(frames, ignore_index=True)


def _soaks(count: int, name: str = "drive") -> pd.DataFrame:
    return _both(*(pts.soak(f"{name}-{i}", 120, 60.0, 9e4 + 9e3 * i, 3e4 + 4e3 * i) for i in range(count)))


def loop(
    rounds: int = 7, values: tuple[float, ...] = pts.S4600_WINDOW, start: int = 3, **changed: Any
) -> comparison_frames.Draw:
    return lambda: {"cells": pts.cells(rounds, **changed), "steady_state": pts.steady_state(values, start)}


def soaks(*of: str, **capacities: int) -> comparison_frames.Draw:
    return lambda: {"cells": _both(*(pts.soak(drive) for drive in of)), "drives": pts.drives(**capacities)}


def windowed_bins() -> pd.DataFrame:
    """Return histograms of every cell of `pts.cells()` in a round of its window; few I/Os at the largest block."""
    cells = pts.cells()
    rows = cells[cells["round"] == cells["round"].max()]
    return pd.concat(
        pts.latency_bins(
            median_us=row.mean_latency_us, kind="loop", share=row.read_share_pct, size=row.block_size_bytes,
            ios=2_000_000 if row.block_size_bytes < 1 << 20 else 1000,
        ).assign(recording=row.recording, step=row.step, round=row.round)
        for row in rows.itertuples()
    )  # fmt: skip


def timed(soak: pd.DataFrame) -> pd.DataFrame:
    return soak.assign(p50_latency_us=soak["mean_latency_us"] * 0.8, p999_latency_us=soak["p99_latency_us"] * 2)


PHASES = (("degradation", 2), ("steady", 1), ("recovery", 1))
EIGHT_TRACES: dict[str, Any] = {"traces": tuple(f"trace-{i}" for i in range(8)), "runs": 1}
REPLAYS: dict[str, dict[str, Any]] = {
    "one trace": {},
    "as soon as possible": {"asap": True},
    "partial": {"partial": True, "lost": 3},
    "8 traces": EIGHT_TRACES,
}
CASES: Mapping[str, comparison_frames.Case] = {
    "convergence, 56 cells": ("convergence", loop()),
    "convergence, one round and block size": ("convergence", loop(1, (61000.0,), 1, sizes=(4096,))),
    "convergence, not steady": ("convergence", loop(25, FALLING, 21, drift=0.05)),
    "convergence, a direction without I/Os": ("convergence", loop(), {"metric": "read_iops"}),
    "window": ("window", lambda: {"steady_state": pts.steady_state()}),
    "window, not steady": ("window", lambda: {"steady_state": pts.steady_state(FALLING, start=21)}),
    "window, one round": ("window", lambda: {"steady_state": pts.steady_state((61000.0,), start=1)}),
    "window, all zero": ("window", lambda: {"steady_state": pts.steady_state((0.0,) * 5)}),
    "3d, 56 cells": ("measurement_3d", loop()),
    "3d, maxima, not steady": ("measurement_3d_max", loop(25, FALLING, 21)),
    "2d, 56 cells": ("measurement_2d", loop()),
    "2d, one block size": ("measurement_2d", loop(sizes=(4096,))),
    "2d, not steady": ("measurement_2d", loop(25, FALLING, 21), {"metric": "bandwidth_mib_s"}),
    "window, 3 variables": (
        "window",
        lambda: {"steady_state": _both(*(pts.steady_state(variable=f"RND {size}KiB 0/100") for size in (4, 64, 1024)))},
    ),
    "72 rounds": ("round_history", lambda: any_loop(pts.cells(72, sizes=(4096, 65536), mixes=(0,)))),
    "convergence, mixes": ("convergence_mixes", loop()),
    "convergence, maxima": ("convergence_max", loop()),
    "writes before a sweep": (
        "pre_writes",
        lambda: {"cells": frames.with_pre_writes(frames.sweep()), "steady_state": frames.sweep_window()},
    ),
    "2d, reads and writes": ("measurement_2d", loop(sizes=(131072,), mixes=(100, 0)), {"metric": "bandwidth_mib_s"}),
    "matrix of latencies": ("latency_matrix", lambda: {**loop()(), "latency_bins": windowed_bins()}),
    "time, 2 drives": ("saturation_time", lambda: {"cells": _soaks(2)}),
    "time, 8 drives with long names": ("saturation_time", lambda: {"cells": _soaks(8, pts.LONG_NAME)}),
    "latency over time": ("latency_over_time", lambda: {"cells": timed(pts.soak())}),
    "latency over time, one slice": ("latency_over_time", lambda: {"cells": timed(pts.soak(slices=1))}),
    "bytes, 1 drive": ("saturation_bytes", soaks("op7", op7=1 << 26)),
    "time, one slice": ("saturation_time", lambda: {"cells": pts.soak(slices=1)}),
    "bytes, 2 drives": ("saturation_bytes", soaks("op7", "op28", op7=1 << 26, op28=1 << 26)),
    "bytes, 2 capacities": ("saturation_bytes", soaks("op7", "op28", op7=1 << 26, op28=1 << 27)),
    "latency, 2 drives": (
        "latency_distribution",
        lambda: {"latency_bins": _both(pts.latency_bins(), pts.latency_bins("op28", 70))},
    ),
    "histogram": ("latency_histogram", lambda: {"latency_bins": frames.bins(), "cells": pts.soak()}),
    "histogram, few I/Os": ("latency_histogram", lambda: {"latency_bins": frames.bins(ios=300), "cells": pts.soak()}),
    "histogram, turns": ("latency_histogram", frames.turns),
    "latency, few I/Os": ("latency_distribution", lambda: {"latency_bins": pts.latency_bins(ios=300)}),
    "latency, 8 drives with long names": (
        "latency_distribution",
        lambda: {"latency_bins": _both(*(pts.latency_bins(f"{pts.LONG_NAME}-{i}", 60 + 9 * i) for i in range(8)))},
    ),
    "replay, 1 drive": ("replay", lambda: pts.replayed(runs=7)),
    "replay, 2 drives": ("replay", lambda: pts.replayed("op7", "op28")),
    "replay, 8 drives with long names": ("replay", lambda: pts.replayed(*(f"{pts.LONG_NAME}-{i}" for i in range(8)))),
    "replay, set": ("replay", lambda: pts.replayed(**EIGHT_TRACES)),
    "replay, set in phases": ("replay", lambda: pts.replayed(traces=("a", "b"), phases=PHASES)),
    **{
        f"{name}, {case}": (name, lambda options=options: pts.replayed(**options))
        for name in ("replay_fidelity", "replay_latency", "replay_over_time")
        for case, options in REPLAYS.items()
        if (name, case) != ("replay_fidelity", "as soon as possible")  # without deadlines, there is none
    },
    "phases, 3 traces": ("replay_phases", lambda: pts.replayed(traces=("a", "b", "c"), phases=PHASES)),
    "phases, 7 traces": ("replay_phases", lambda: pts.replayed(traces=tuple("abcdefg"), phases=PHASES[1:])),
    "repeats, 4 cells": ("repeats", lambda: any_loop(frames.repeated())),
    "repeats, a window": ("repeats", loop()),
    "ramp, 49 points": ("depth_ramp", lambda: any_loop(frames.sweep(DEMANDS, DEMANDS))),
    "ramp, 3 workloads": ("depth_ramp", lambda: any_loop(frames.sweep((1,), (1, 4, 16), (100, 65, 0)))),
    "intensity, points": ("demand_intensity", lambda: any_loop(frames.with_points(frames.sweep()))),
    "intensity, 49 points": ("demand_intensity", lambda: any_loop(frames.sweep(DEMANDS, DEMANDS))),
    "intensity, 2 workloads": ("demand_intensity", lambda: any_loop(frames.sweep((1,), (1, 4, 16), (100, 0)))),
    "intensity, maximum": ("demand_intensity_max", lambda: any_loop(frames.with_points(frames.sweep()))),
    "idle, 3 waits": ("idle_recovery", lambda: {"cells": frames.idle()}),
    "idle, 360 bursts": ("idle_recovery", lambda: {"cells": frames.idle((5, 10, 15, 25, 50), 360)}),
    "bytes, side by side": ("saturation_bytes", soaks("op7", "op28", op7=1 << 26, op28=1 << 27)),
    "cache, three waits": ("slc_cache", lambda: {"cells": frames.cached()}),
    "cache, no fall": ("slc_cache", lambda: {"cells": frames.cached((0.0, 0.0))}),
    "quick look": ("quick_look", looked),
    "quick look, two places": ("quick_look", lambda: looked(("home", "mnt-data"))),
    "quick look, reads": ("quick_look", lambda: looked(writes=False)),
    "zones": ("zones", lambda: any_loop(frames.zoned())),
    "zones, two drives": ("zones", lambda: any_loop(comparison_frames.of_drives(frames.zoned, ("op7", "hdd")))),
    "states": ("new_and_working", lambda: {"cells": frames.states()}),
    "stimulus": ("stimulus", lambda: {"cells": frames.crossed()}),
    "stimulus, no recovery": ("stimulus", lambda: {"cells": frames.crossed(recovers=False)}),
    "together, 3 drives": ("head_to_head", frames.together),
    "together, reads beside": ("head_to_head", lambda: frames.together(2, 600, ("read", "write"))),
    "comparison, 2 drives": ("comparison", lambda: compared(pts.deltas())),
    "comparison, 56 cells": ("comparison", lambda: compared(pts.deltas(sizes=tuple(pts.S4600_IOPS), mixes=pts.MIXES))),
    "comparison, 8 drives": ("comparison", lambda: compared(pts.deltas(tuple(f"drive-{i}" for i in range(7))))),
    "comparison, huge and missing": (
        "comparison",
        lambda: compared(
            pts.deltas(sizes=(4096,), mixes=(0,)).assign(
                delta_pct=[4200.0, float("nan")], verdict=["faster beyond the margin", "not compared"]
            )
        ),
    ),
    **comparison_frames.CASES,
}


FIRST = {case[0]: name for name, case in reversed(CASES.items())}
"""The first case of each figure."""
BADGES = {"reduced": "REDUCED protocol", "virtual": "VIRTUAL drive", "clock": "virtual clock"}


def _place(figure: Figure) -> None:
    """Place all artists as in the PNG, without its pixels.

    At the 72 dpi of SVG, letters on whole pixels are wider than on paper.
    """
    figure.set_dpi(style.PNG_DPI)
    FigureCanvasAgg(figure)
    figure.draw_without_rendering()


def _texts(figure: Figure, gid: str) -> list[str]:
    return [text.get_text() for text in figure.texts if text.get_gid() == gid]


def test_every_figure_has_a_case() -> None:
    assert set(FIRST) == set(FIGURES)


@pytest.mark.parametrize("case", CASES)
def test_a_figure_is_as_it_should_be(case: str) -> None:
    name, make, *options = CASES[case]
    tables, first = make(), FIRST[name] == case
    if first:
        status = FIGURES[name].status_table
        tables[status] = tables[status].assign(reduced=True, virtual=True, clock="virtual")
    before = {table: frame.copy(deep=True) for table, frame in tables.items()}
    subject = f"{pts.LONG_NAME} against {pts.LONG_NAME}-2, all cells, client class"
    figure = render(name, tables, subject, **(options[0] if options else {}))
    svg = style.svg(figure)
    if name in PLAIN:
        values_are_those_of_the_picture(figure)
    _place(figure)

    assert all(frame.equals(tables[table]) for table, frame in before.items()), "it leaves its input alone"
    assert plt.get_fignums() == []
    stays_on_its_page(figure, figure.axes)
    nothing_covers_the_data_or_the_header(figure)
    axes_have_units(figure, categories=name in BARS_BY_NAME)
    assert min(text.get_fontsize() for text in figure.findobj(Text)) >= 9
    if values_of(svg):
        the_picture_has_each_mark_tick_and_note_that_the_values_name(svg)
    else:
        assert name.startswith("measurement_3d"), "measurement_2d has the same values"
    is_loud_if_not_steady(name, case, figure, tables)
    if first:
        assert set(_texts(figure, "badge")) == set(BADGES.values())
        readers_can_show(svg)
    if first and name in PLAIN:
        assert svg == style.svg(render(name, tables, subject, **(options[0] if options else {}))), "reproducible"


def nothing_covers_the_data_or_the_header(figure: Figure) -> None:
    header = [text.get_window_extent() for text in figure.texts]
    for number, box in enumerate(header):
        assert not any(box.overlaps(other) for other in header[number + 1 :])
    lowest = min(box.y0 for box in header)
    for axes in figure.axes:
        assert axes.get_position().y1 * figure.bbox.height <= lowest
        for legend in figure.legends:
            assert not legend.get_window_extent().overlaps(axes.get_window_extent())


def axes_have_units(figure: Figure, *, categories: bool) -> None:
    """The y axis of categories names things, it measures nothing."""
    said = [text for one in figure.axes for text in (one.get_xlabel(), one.get_ylabel()) if text]
    assert len(said) >= 2 - categories
    assert all(any(unit in text for unit in UNITS) for text in said), said


def is_loud_if_not_steady(name: str, case: str, figure: Figure, tables: dict[str, pd.DataFrame]) -> None:
    if name in ("convergence", "window", "measurement_2d"):
        alarms = _texts(figure, "alarm")
        assert bool(alarms) == (not tables["steady_state"]["reached"].all())
        assert "not steady" not in case or alarms == ["NOT STEADY after 25 rounds: RND 4KiB 0/100"]


def values_are_those_of_the_picture(figure: Figure) -> None:
    """Every line and bar is among the marks, and axes have names, scales and limits of the picture."""
    result, shown = marks(figure), [axes for axes in figure.axes if axes.axison]
    checked = 0
    for axes in figure.axes:
        for line in axes.get_lines():
            if line.get_transform() == axes.transData and len(line.get_xdata()):
                assert is_drawn(result, line.get_xdata(orig=False), line.get_ydata(orig=False)), line.get_label()
                checked += 1
        for bars in (container for container in axes.containers if isinstance(container, BarContainer)):
            flat = bars.orientation == "horizontal"
            ends = [bar.get_width() if flat else bar.get_height() for bar in bars.patches]
            along = [mark["x" if flat else "y"] for mark in result if mark.get("bar")]
            assert any(len(values) == len(ends) and np.allclose(values, ends, rtol=HALF_A_DIGIT) for values in along)
            checked += 1
    assert checked > 0
    for panel, axes in zip(chart(figure)["panels"], shown, strict=True):
        for which, axis, limits in (("x", axes.xaxis, axes.get_xlim()), ("y", axes.yaxis, axes.get_ylim())):
            assert panel[which]["name"] in " ".join(axis.get_label_text().split()) or not axis.get_label_text()
            assert panel[which]["scale"] == axis.get_scale()
            assert panel[which]["ends"] == pytest.approx(list(limits), rel=1e-6, abs=1e-9)


def is_drawn(found: list[Mark], x: Any, y: Any) -> bool:
    """Return whether a mark has exactly these points."""

    def same(one: list[float | None], other: Any) -> bool:
        values = [math.nan if value is None else value for value in one]
        return len(values) == len(other) and np.allclose(
            values, np.asarray(other, dtype=float), rtol=HALF_A_DIGIT, equal_nan=True
        )

    return any(same(mark["x"], x) and same(mark["y"], y) for mark in found if "x" in mark and "z" not in mark)


def readers_can_show(svg: str) -> None:
    assert "<dc:date>" not in svg
    assert "DejaVu Sans" in svg, "readers without the font must have others to fall back on"
    assert "Verdana, sans-serif" in svg
    assert len(svg.encode()) < 160_000
    identifiers = re.findall(r'\bid="([^"]+)"', svg)
    assert len(identifiers) == len(set(identifiers))


def the_picture_has_each_mark_tick_and_note_that_the_values_name(svg: str) -> None:
    """The page finds marks by number and ticks by order."""
    root, values = ElementTree.fromstring(svg), json.loads(values_of(svg))
    for number, panel in enumerate(values["panels"]):
        group = next((element for element in root.iter() if element.get("data-p") == str(number)), None)
        assert group is not None
        second = [element for scale in group.iter() if scale.get("data-c") for element in scale.iter()]
        own = [element for element in group.iter() if element not in second]
        of = {kind: [element.get(f"data-{kind}") for element in own if element.get(f"data-{kind}")] for kind in "mnt"}
        told_of = [mark for mark in panel["marks"] if any(tooltips({"name": "", "panel": panel, **mark}))]
        drawn = {str(mark["m"]) for mark in told_of if "z" not in mark}
        assert drawn - set(of["m"]) == set(), "only images are without a group"
        for mark in panel["marks"]:
            assert not mark.get("bar") or of["m"].count(str(mark["m"])) == len(mark["x"])
        assert {str(note[0]) for note in panel.get("notes", [])} <= set(of["n"])
        for axis in "xy":
            assert of["t"].count(axis) in (0, len(panel[axis]["ticks"])), "all, or none of an axis without labels"


@pytest.mark.parametrize("name", [name for name, kind in FIGURES.items() if isinstance(kind.function, Lines)])
def test_every_point_of_a_declaration_is_on_its_line(name: str) -> None:
    declared, tables = FIGURES[name].function, CASES[FIRST[name]][1]()
    assert isinstance(declared, Lines)
    assert declared.data is not None
    points = declared.data(tables["cells"], tables["steady_state"])
    figure = declared(tables["cells"], tables["steady_state"])
    lines = [line for axes in figure.axes for line in axes.get_lines() if line.get_gid() == "line"]
    for metric in declared.metrics:
        for (_, name), wanted in points.groupby([points.get("panel", points["line"]), "line"], sort=False):
            assert any(
                line.get_label() == name
                and list(line.get_xdata()) == wanted[declared.x.column].tolist()
                and np.ptp(line.get_ydata() / wanted[metric].to_numpy()) == pytest.approx(0, abs=1e-9)
                for line in lines
            ), (metric, name)


@pytest.mark.parametrize("status", [{}, {"reduced": True}, {"virtual": True}, {"clock": "virtual"}], ids=str)
def test_badges_tell_the_status(status: dict[str, Any]) -> None:
    figure = render("window", {"steady_state": pts.steady_state(**status)}, "op7")
    assert _texts(figure, "badge") == [BADGES[name] for name in status]


def test_one_reduced_row_is_enough() -> None:
    cells = _both(pts.soak(), pts.soak("op28", reduced=True))
    assert _texts(render("saturation_time", {"cells": cells}, "op7 and op28"), "badge") == ["REDUCED protocol"]


def test_long_subjects_lose_nothing() -> None:
    subject = f"{pts.LONG_NAME}, serial S64GNE0R504321, against {pts.LONG_NAME}-2, PTS write saturation, client class"
    figure = render("window", {"steady_state": pts.steady_state()}, subject)
    text = next(text.get_text() for text in figure.texts if text.get_gid() == "subject")
    assert "\n" in text
    assert "".join(text.split()) == "".join(subject.split())


@pytest.mark.parametrize("title", ["Random writes 4KiB " * 5, "WWWWWW " * 9 + "iiiiii " * 20, "W" * 90])
@style.styled
def test_long_titles_lose_nothing(title: str) -> None:
    figure = style.new_figure(title)
    axes = figure.subplots()
    label(figure, reduced=True, virtual=True, clock="virtual", subject="op7")
    _place(figure)
    text = next(text for text in figure.texts if text.get_gid() == "title")
    assert "".join(text.get_text().split()) == "".join(title.split())
    boxes = [text.get_window_extent() for text in figure.texts]
    assert all(box.x0 >= 0 and box.x1 <= figure.bbox.x1 for box in boxes)
    assert not any(one.overlaps(two) for place, one in enumerate(boxes) for two in boxes[place + 1 :])
    figure.get_layout_engine().execute(figure)  # type: ignore[union-attr]
    assert axes.bbox.y1 <= min(box.y0 for box in boxes)


def test_label_refuses_nonsense() -> None:
    figure = FIGURES["window"].function(pts.steady_state())
    with pytest.raises(ValueError, match="subject"):
        label(figure, reduced=False, virtual=False, clock="wall", subject=" ")
    with pytest.raises(ValueError, match="clock 'sundial'"):
        label(figure, reduced=False, virtual=False, clock="sundial", subject="op7")
    label(figure, reduced=False, virtual=False, clock="wall", subject="op7")
    with pytest.raises(ValueError, match="label already"):
        label(figure, reduced=False, virtual=False, clock="wall", subject="op7")


SCRIPT = """
import sys
import pts_frames
from drivelab.figures.base.sheets import render
from drivelab.figures.base.style import save
save(render("comparison", {"deltas": pts_frames.deltas(), "summary": pts_frames.summary()}, "op28"), sys.argv[1])
"""


def test_files_are_the_same_in_another_process(tmp_path: Path) -> None:
    tables = {"deltas": pts.deltas(), "summary": pts.summary()}
    written = save(render("comparison", tables, "op28"), tmp_path / "here.v1")
    assert [path.name for path in written] == ["here.v1.svg", "here.v1.png"]
    paths = f"{Path(drivelab.__file__).parents[1]}:{Path(pts.__file__).parent}"
    command = [sys.executable, "-c", SCRIPT, str(tmp_path / "there.v1")]
    subprocess.run(command, check=True, env=os.environ | {"PYTHONHASHSEED": "1", "PYTHONPATH": paths})
    for here in written:
        assert here.read_bytes() == here.with_name(here.name.replace("here", "there")).read_bytes()
