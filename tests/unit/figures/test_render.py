"""Every figure fits on its page, shows units and status, and is reproducible, for all kinds of studies."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from types import ModuleType
from typing import Any
from xml.etree import ElementTree

import comparison_frames
import pandas as pd
import protocol_frames as frames
import pytest
from chart_values import tooltips
from matplotlib import pyplot as plt
from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.figure import Figure
from matplotlib.text import Text

import drivelab
from drivelab.figures import FIGURES, label, render, save
from drivelab.figures.base import style
from drivelab.figures.base.svg import values_of

Case = tuple[str, dict[str, pd.DataFrame], dict[str, Any]]
UNITS = (
    "(IOPS)",
    "1/s",
    "(per ",
    "(MiB/s)",
    "(GiB/s)",
    "(µs",
    "(ms",
    "(s)",
    "(min)",
    "(h)",
    "(KiB)",
    "(MiB)",
    "(GiB)",
    "(TiB)",
    "(%",
    "(number)",
    "user capacity)",
    "(times ",
    "(°C)",
    "(MiB, GB",
)
BARS_BY_NAME = ("comparison", "normalised", "variation", "alignment", "application_durations", "new_and_working")
DEMANDS = (1, 2, 4, 6, 8, 16, 32)
"""Threads and depths of the PTS."""
FALLING = (90e3, 80e3, 61e3, 70e3, 55e3)


def _both(*frames: pd.DataFrame) -> pd.DataFrame:
    return pd.concat(frames, ignore_index=True)


def _soaks(m: ModuleType, count: int, name: str = "drive") -> pd.DataFrame:
    return _both(*(m.soak(f"{name}-{i}", 120, 60.0, 9e4 + 9e3 * i, 3e4 + 4e3 * i) for i in range(count)))


def windowed_bins(made: ModuleType) -> pd.DataFrame:
    """Return histograms of every cell of `made.cells()` in a round of its window; few I/Os at the largest block."""
    cells = made.cells()
    rows = cells[cells["round"] == cells["round"].max()]
    return pd.concat(
        made.latency_bins(
            median_us=row.mean_latency_us, kind="loop", share=row.read_share_pct, size=row.block_size_bytes,
            ios=2_000_000 if row.block_size_bytes < 1 << 20 else 1000,
        ).assign(recording=row.recording, step=row.step, round=row.round)
        for row in rows.itertuples()
    )  # fmt: skip


PHASES = (("degradation", 2), ("steady", 1), ("recovery", 1))
EIGHT_TRACES: dict[str, Any] = {"traces": tuple(f"trace-{i}" for i in range(8)), "runs": 1}
REPLAYS: dict[str, dict[str, Any]] = {
    "one trace": {},
    "as soon as possible": {"asap": True},
    "partial": {"partial": True, "lost": 3},
    "3 traces": {"traces": ("boot", "sqlite", "compile")},
    "8 traces": EIGHT_TRACES,
    "in phases": {"phases": PHASES},
}
CASES: Mapping[str, Callable[[ModuleType], Case]] = {
    "convergence, 56 cells": lambda m: ("convergence", {"cells": m.cells(), "steady_state": m.steady_state()}, {}),
    "convergence, one round and block size": lambda m: (
        "convergence",
        {"cells": m.cells(1, sizes=(4096,)), "steady_state": m.steady_state((61e3,), start=1)},
        {},
    ),
    "convergence, not steady": lambda m: (
        "convergence",
        {"cells": m.cells(25, drift=0.05), "steady_state": m.steady_state(FALLING, start=21)},
        {},
    ),
    "convergence, a direction without I/Os": lambda m: (
        "convergence",
        {"cells": m.cells(), "steady_state": m.steady_state()},
        {"metric": "read_iops"},
    ),
    "convergence, maximum latency": lambda m: (
        "convergence",
        {"cells": m.cells(), "steady_state": m.steady_state()},
        {"metric": "max_latency_us"},
    ),
    "window": lambda m: ("window", {"steady_state": m.steady_state()}, {}),
    "window, not steady": lambda m: ("window", {"steady_state": m.steady_state(FALLING, start=21)}, {}),
    "window, one round": lambda m: ("window", {"steady_state": m.steady_state((61e3,), start=1)}, {}),
    "window, all zero": lambda m: ("window", {"steady_state": m.steady_state((0.0,) * 5)}, {}),
    "window, huge": lambda m: ("window", {"steady_state": m.steady_state(tuple(1e5 * v for v in m.S4600_WINDOW))}, {}),
    "window, latency": lambda m: (
        "window",
        {"steady_state": m.steady_state((59.4, 54.7, 56.1, 55.9, 57.4), metric="mean_latency_us")},
        {},
    ),
    "2d, 56 cells": lambda m: ("measurement_2d", {"cells": m.cells(), "steady_state": m.steady_state()}, {}),
    "2d, one block size": lambda m: (
        "measurement_2d",
        {"cells": m.cells(sizes=(4096,)), "steady_state": m.steady_state()},
        {},
    ),
    "2d, not steady": lambda m: (
        "measurement_2d",
        {"cells": m.cells(25), "steady_state": m.steady_state(FALLING, start=21)},
        {"metric": "bandwidth_mib_s"},
    ),
    "window, 3 variables": lambda m: (
        "window",
        {"steady_state": _both(*(m.steady_state(variable=f"RND {size}KiB 0/100") for size in (4, 64, 1024)))},
        {},
    ),
    "72 rounds": lambda m: (
        "round_history",
        {"cells": m.cells(rounds=72, sizes=(4096, 65536), mixes=(0,)), "steady_state": m.steady_state().iloc[:0]},
        {},
    ),
    "convergence, mixes": lambda m: ("convergence_mixes", {"cells": m.cells(), "steady_state": m.steady_state()}, {}),
    "convergence, maxima": lambda m: ("convergence_max", {"cells": m.cells(), "steady_state": m.steady_state()}, {}),
    "writes before a sweep": lambda m: (
        "pre_writes",
        {"cells": frames.with_pre_writes(frames.sweep()), "steady_state": frames.sweep_window()},
        {},
    ),
    "2d, reads and writes": lambda m: (
        "measurement_2d",
        {"cells": m.cells(sizes=(131072,), mixes=(100, 0)), "steady_state": m.steady_state()},
        {"metric": "bandwidth_mib_s"},
    ),
    "3d, maxima": lambda m: ("measurement_3d_max", {"cells": m.cells(), "steady_state": m.steady_state()}, {}),
    "matrix of latencies": lambda m: (
        "latency_matrix",
        {"cells": m.cells(), "steady_state": m.steady_state(), "latency_bins": windowed_bins(m)},
        {},
    ),
    "3d, 56 cells": lambda m: ("measurement_3d", {"cells": m.cells(), "steady_state": m.steady_state()}, {}),
    "3d, one cell": lambda m: (
        "measurement_3d",
        {"cells": m.cells(sizes=(4096,), mixes=(0,)), "steady_state": m.steady_state()},
        {},
    ),
    "3d, not steady, zeros": lambda m: (
        "measurement_3d",
        {"cells": m.cells(25), "steady_state": m.steady_state(FALLING, start=21)},
        {"metric": "write_iops"},
    ),
    "time, 2 drives": lambda m: ("saturation_time", {"cells": _soaks(m, 2)}, {}),
    "time, 8 drives with long names": lambda m: ("saturation_time", {"cells": _soaks(m, 8, m.LONG_NAME)}, {}),
    "time, 1 drive": lambda m: ("saturation_time", {"cells": _soaks(m, 1)}, {}),
    "bytes, 1 drive": lambda m: (
        "saturation_bytes",
        {"cells": m.soak(), "drives": m.drives(op7=1 << 26)},
        {},
    ),
    "time, one slice": lambda m: ("saturation_time", {"cells": m.soak(slices=1)}, {}),
    "bytes, 2 drives": lambda m: (
        "saturation_bytes",
        {"cells": _both(m.soak(), m.soak("op28")), "drives": m.drives(op7=1 << 26, op28=1 << 26)},
        {},
    ),
    "bytes, 2 capacities": lambda m: (
        "saturation_bytes",
        {"cells": _both(m.soak(), m.soak("op28")), "drives": m.drives(op7=1 << 26, op28=1 << 27)},
        {},
    ),
    "latency, 2 drives": lambda m: (
        "latency_distribution",
        {"latency_bins": _both(m.latency_bins(), m.latency_bins("op28", 70))},
        {},
    ),
    "histogram": lambda m: ("latency_histogram", {"latency_bins": frames.bins()}, {}),
    "histogram, few I/Os": lambda m: ("latency_histogram", {"latency_bins": frames.bins(ios=300)}, {}),
    "histogram, turns": lambda m: ("histogram_by_turn", frames.turns(), {}),
    "latency, few I/Os": lambda m: ("latency_distribution", {"latency_bins": m.latency_bins(ios=300)}, {}),
    "latency, 8 drives with long names": lambda m: (
        "latency_distribution",
        {"latency_bins": _both(*(m.latency_bins(f"{m.LONG_NAME}-{i}", 60 + 9 * i) for i in range(8)))},
        {},
    ),
    "replay, 1 drive": lambda m: ("replay", m.replayed(runs=7), {}),
    "replay, 2 drives": lambda m: ("replay", m.replayed("op7", "op28"), {}),
    "replay, 8 drives with long names": lambda m: ("replay", m.replayed(*(f"{m.LONG_NAME}-{i}" for i in range(8))), {}),
    "replay, set": lambda m: ("replay", m.replayed(**EIGHT_TRACES), {}),
    "replay, set in phases": lambda m: ("replay", m.replayed(traces=("a", "b"), phases=PHASES), {}),
    **{
        f"{name}, {case}": lambda m, name=name, options=options: (name, m.replayed(**options), {})
        for name in ("replay_fidelity", "replay_latency", "replay_over_time", "replay_operations")
        for case, options in REPLAYS.items()
    },
    "phases, 1 trace": lambda m: ("replay_phases", m.replayed(phases=PHASES), {}),
    "phases, 3 traces": lambda m: ("replay_phases", m.replayed(traces=("a", "b", "c"), phases=PHASES), {}),
    "phases, 7 traces": lambda m: (
        "replay_phases",
        m.replayed(traces=tuple("abcdefg"), phases=(("steady", 1), ("recovery", 1))),
        {},
    ),
    "repeats, 4 cells": lambda m: ("repeats", {"cells": frames.repeated(), "steady_state": frames.NO_WINDOWS}, {}),
    "repeats, 24 cells, one round": lambda m: (
        "repeats",
        {"cells": frames.repeated(24, 1, 0), "steady_state": frames.NO_WINDOWS},
        {},
    ),
    "repeats, a window": lambda m: ("repeats", {"cells": m.cells(), "steady_state": m.steady_state()}, {}),
    "variation, 4 by 6": lambda m: (
        "demand_variation",
        {"cells": frames.sweep(), "steady_state": frames.NO_WINDOWS},
        {},
    ),
    "variation, 49 points": lambda m: (
        "demand_variation",
        {"cells": frames.sweep(DEMANDS, DEMANDS), "steady_state": frames.NO_WINDOWS},
        {},
    ),
    "variation, 3 workloads": lambda m: (
        "demand_variation",
        {"cells": frames.sweep((1,), (1, 4, 16), (100, 65, 0)), "steady_state": frames.NO_WINDOWS},
        {},
    ),
    "outstanding, 49 points": lambda m: (
        "demand_outstanding",
        {"cells": frames.sweep(DEMANDS, DEMANDS), "steady_state": frames.NO_WINDOWS},
        {},
    ),
    "outstanding, 3 workloads": lambda m: (
        "demand_outstanding",
        {"cells": frames.sweep((1,), (1, 4, 16), (100, 65, 0)), "steady_state": frames.NO_WINDOWS},
        {},
    ),
    "cpu, 4 by 6": lambda m: ("demand_cpu", {"cells": frames.sweep(), "steady_state": frames.NO_WINDOWS}, {}),
    "intensity, points": lambda m: (
        "demand_intensity",
        {"cells": frames.with_points(frames.sweep()), "steady_state": frames.NO_WINDOWS},
        {},
    ),
    "intensity, 49 points": lambda m: (
        "demand_intensity",
        {"cells": frames.sweep(DEMANDS, DEMANDS), "steady_state": frames.NO_WINDOWS},
        {},
    ),
    "intensity, 2 workloads": lambda m: (
        "demand_intensity",
        {"cells": frames.sweep((1,), (1, 4, 16), (100, 0)), "steady_state": frames.NO_WINDOWS},
        {},
    ),
    "intensity, maximum": lambda m: (
        "demand_intensity_max",
        {"cells": frames.with_points(frames.sweep()), "steady_state": frames.NO_WINDOWS},
        {},
    ),
    "intensity, 99.999 %": lambda m: (
        "demand_intensity_nines",
        {"cells": frames.with_points(frames.sweep()), "steady_state": frames.NO_WINDOWS},
        {},
    ),
    "mixes, 3 sizes": lambda m: (
        "mix_lines",
        {
            "cells": comparison_frames.mixes(sizes=(512, 4096, 65536)).assign(
                **frames.key("op7"), alignment_offset_bytes=0
            ),
            "steady_state": frames.NO_WINDOWS,
        },
        {},
    ),
    "idle, 3 waits": lambda m: ("idle_recovery", {"cells": frames.idle()}, {}),
    "idle, 360 bursts": lambda m: ("idle_recovery", {"cells": frames.idle((5, 10, 15, 25, 50), 360)}, {}),
    "bytes, side by side": lambda m: (
        "saturation_of_drives",
        {
            "cells": pd.concat([m.soak(), m.soak("op28")], ignore_index=True),
            "drives": m.drives(op7=1 << 26, op28=1 << 27),
        },
        {},
    ),
    "cache, three waits": lambda m: ("slc_cache", {"cells": frames.cached()}, {}),
    "cache, no fall": lambda m: ("slc_cache", {"cells": frames.cached((0.0, 0.0))}, {}),
    "quick look": lambda m: ("quick_look", comparison_frames.looked(), {}),
    "quick look, two places": lambda m: ("quick_look", comparison_frames.looked(("home", "mnt-data")), {}),
    "quick look, reads": lambda m: ("quick_look", comparison_frames.looked(writes=False), {}),
    "zones": lambda m: ("zones", {"cells": frames.zoned(), "steady_state": frames.NO_WINDOWS}, {}),
    "zones, two drives": lambda m: (
        "zones",
        {"cells": comparison_frames.of_drives(frames.zoned, ("op7", "hdd")), "steady_state": frames.NO_WINDOWS},
        {},
    ),
    "states": lambda m: ("new_and_working", {"cells": frames.states()}, {}),
    "stimulus": lambda m: ("stimulus", {"cells": frames.crossed()}, {}),
    "stimulus, no recovery": lambda m: ("stimulus", {"cells": frames.crossed(recovers=False)}, {}),
    "turns, points": lambda m: ("latency_by_turn", frames.turns(), {}),
    "points, bars": lambda m: ("point_bars", {"cells": frames.turns()["cells"]}, {}),
    "nines": lambda m: ("nines", {"latency_bins": frames.bins()}, {}),
    "nines, few I/Os": lambda m: ("nines", {"latency_bins": frames.bins(ios=300)}, {}),
    "together, 3 drives": lambda m: ("head_to_head", frames.together(), {}),
    "together, reads beside": lambda m: ("head_to_head", frames.together(2, 600, ("read", "write")), {}),
    "comparison, 2 drives": lambda m: ("comparison", {"deltas": m.deltas(), "summary": m.summary()}, {}),
    "comparison, 56 cells": lambda m: (
        "comparison",
        {"deltas": m.deltas(sizes=tuple(m.S4600_IOPS), mixes=m.MIXES), "summary": m.summary()},
        {},
    ),
    "comparison, 8 drives": lambda m: (
        "comparison",
        {"deltas": m.deltas(tuple(f"drive-{i}" for i in range(7))), "summary": m.summary()},
        {},
    ),
    "comparison, huge and missing": lambda m: (
        "comparison",
        {
            "deltas": m.deltas(sizes=(4096,), mixes=(0,)).assign(
                delta_pct=[4200.0, float("nan")], verdict=["faster beyond the margin", "not compared"]
            ),
            "summary": m.summary(),
        },
        {},
    ),
    **comparison_frames.CASES,
}


@dataclass(frozen=True)
class Drawn:
    name: str
    tables: dict[str, pd.DataFrame]
    before: dict[str, pd.DataFrame]
    figure: Figure
    svg: str


@pytest.fixture(scope="module", params=CASES, ids=str)
def drawn(request: pytest.FixtureRequest, made: ModuleType) -> Drawn:
    name, tables, options = _case(made, request.param)
    before = {table: frame.copy(deep=True) for table, frame in tables.items()}
    figure = render(name, tables, f"{made.LONG_NAME} against {made.LONG_NAME}-2, all cells, client class", **options)
    svg = style.svg(figure)
    _place(figure)
    return Drawn(name, tables, before, figure, svg)


def _place(figure: Figure) -> None:
    """Place all artists as in the PNG, without its pixels.

    At the 72 dpi of SVG, letters on whole pixels are wider than on paper.
    """
    figure.set_dpi(style.PNG_DPI)
    FigureCanvasAgg(figure)
    figure.draw_without_rendering()


def _badges(figure: Figure) -> set[str]:
    return {text.get_text() for text in figure.texts if text.get_gid() == "badge"}


@cache
def _case(made: ModuleType, which: str) -> Case:
    return CASES[which](made)


def _first_case(made: ModuleType, name: str) -> Case:
    _, tables, options = next(case for case in (_case(made, case) for case in CASES) if case[0] == name)
    return name, dict(tables), options


def test_every_figure_has_a_case(made: ModuleType) -> None:
    assert {_case(made, case)[0] for case in CASES} == set(FIGURES)


def test_leaves_its_input_alone(drawn: Drawn) -> None:
    for table, frame in drawn.before.items():
        pd.testing.assert_frame_equal(frame, drawn.tables[table])
    assert plt.get_fignums() == []


def test_stays_on_its_page(drawn: Drawn) -> None:
    page = drawn.figure.bbox
    labels = [axis.label for axes in drawn.figure.axes for axis in (axes.xaxis, axes.yaxis) if axis.label.get_text()]
    for artist in (*drawn.figure.texts, *drawn.figure.legends, *labels):
        box = artist.get_window_extent()
        assert box.x0 >= page.x0 - 1, artist
        assert box.y0 >= page.y0 - 1, artist
        assert box.x1 <= page.x1 + 1, artist
        assert box.y1 <= page.y1 + 1, artist


def test_nothing_covers_the_data_or_the_header(drawn: Drawn) -> None:
    header = [text.get_window_extent() for text in drawn.figure.texts]
    for number, box in enumerate(header):
        assert not any(box.overlaps(other) for other in header[number + 1 :])
    lowest = min(box.y0 for box in header)
    for axes in drawn.figure.axes:
        assert axes.get_position().y1 * drawn.figure.bbox.height <= lowest
        for legend in drawn.figure.legends:
            assert not legend.get_window_extent().overlaps(axes.get_window_extent())


def test_axes_carry_units(drawn: Drawn) -> None:
    axes = drawn.figure.axes
    said = [text for one in axes for text in (one.get_xlabel(), one.get_ylabel()) if text]
    said += [one.get_zlabel() for one in axes if hasattr(one, "get_zlabel")]
    categories = (
        1 if drawn.name in ("replay", "replay_operations", "repeats", *BARS_BY_NAME) else 0
    )  # their y axis names things, it measures nothing
    assert len(said) >= 2 - categories
    assert all(any(unit in text for unit in UNITS) for text in said), said


def test_fonts_are_readable(drawn: Drawn) -> None:
    assert min(text.get_fontsize() for text in drawn.figure.findobj(Text)) >= 9


@pytest.mark.parametrize("reduced", [False, True])
@pytest.mark.parametrize("virtual", [False, True])
@pytest.mark.parametrize("clock", ["wall", "virtual"])
def test_badges_tell_the_status(made: ModuleType, reduced: bool, virtual: bool, clock: str) -> None:
    figure = render("window", {"steady_state": made.steady_state(reduced=reduced, virtual=virtual, clock=clock)}, "op7")
    wanted = {"REDUCED protocol": reduced, "VIRTUAL drive": virtual, "virtual clock": clock == "virtual"}
    assert _badges(figure) == {text for text, shown in wanted.items() if shown}


@pytest.mark.parametrize("name", FIGURES)
def test_every_figure_wears_all_badges(made: ModuleType, name: str) -> None:
    _, tables, options = _first_case(made, name)
    status = FIGURES[name].status_table
    tables[status] = tables[status].assign(reduced=True, virtual=True, clock="virtual")
    figure = render(name, tables, "op7, PTS, random access, enterprise class", **options)
    assert _badges(figure) == {"REDUCED protocol", "VIRTUAL drive", "virtual clock"}
    _place(figure)
    boxes = [text.get_window_extent() for text in figure.texts]
    assert not any(one.overlaps(two) for i, one in enumerate(boxes) for two in boxes[i + 1 :])
    assert all(box.x1 <= figure.bbox.x1 and box.x0 >= 0 for box in boxes)


def test_one_reduced_row_is_enough(made: ModuleType) -> None:
    cells = _both(made.soak(), made.soak("op28", reduced=True))
    assert _badges(render("saturation_time", {"cells": cells}, "op7 and op28")) == {"REDUCED protocol"}


def test_long_subjects_lose_nothing(made: ModuleType) -> None:
    subject = f"{made.LONG_NAME}, serial S64GNE0R504321, against {made.LONG_NAME}-2, PTS write saturation, client class"
    figure = render("window", {"steady_state": made.steady_state()}, subject)
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


@pytest.mark.parametrize("reached", [True, False])
@pytest.mark.parametrize("name", ["convergence", "window", "measurement_2d", "measurement_3d"])
def test_not_steady_is_loud(made: ModuleType, name: str, reached: bool) -> None:
    values = made.S4600_WINDOW if reached else FALLING
    tables = {"cells": made.cells(25), "steady_state": made.steady_state(values, start=21)}
    alarms = [text for text in render(name, tables, "op7").texts if text.get_gid() == "alarm"]
    assert [text.get_text() for text in alarms] == ([] if reached else ["NOT STEADY after 25 rounds: RND 4KiB 0/100"])


def test_label_refuses_nonsense(made: ModuleType) -> None:
    figure = FIGURES["window"].function(made.steady_state())
    with pytest.raises(ValueError, match="subject"):
        label(figure, reduced=False, virtual=False, clock="wall", subject=" ")
    with pytest.raises(ValueError, match="clock 'sundial'"):
        label(figure, reduced=False, virtual=False, clock="sundial", subject="op7")
    label(figure, reduced=False, virtual=False, clock="wall", subject="op7")
    with pytest.raises(ValueError, match="label already"):
        label(figure, reduced=False, virtual=False, clock="wall", subject="op7")


@pytest.mark.parametrize("name", FIGURES)
def test_pictures_are_reproducible(made: ModuleType, name: str) -> None:
    _, tables, options = _first_case(made, name)
    picture, again = (style.svg(render(name, tables, "op7", **options)) for _ in range(2))
    assert picture == again
    assert "<dc:date>" not in picture
    assert "DejaVu Sans" in picture, "readers without the font must have others to fall back on"
    assert "Verdana, sans-serif" in picture
    assert len(picture.encode()) < 60_000
    identifiers = re.findall(r'\bid="([^"]+)"', picture)
    assert len(identifiers) == len(set(identifiers))


@pytest.mark.parametrize("name", ["comparison", "measurement_3d", "saturation_time"])
def test_files_are_reproducible(made: ModuleType, name: str, tmp_path: Path) -> None:
    _, tables, options = _first_case(made, name)
    for stem in ("once.v1", "again.v1"):
        written = save(render(name, tables, "op7", **options), tmp_path / stem)
        assert [path.name for path in written] == [f"{stem}.svg", f"{stem}.png"]
    for kind in ("svg", "png"):
        assert (tmp_path / f"once.v1.{kind}").read_bytes() == (tmp_path / f"again.v1.{kind}").read_bytes()


def test_the_picture_has_each_mark_tick_and_note_that_the_values_name(drawn: Drawn) -> None:
    """The page finds marks by number and ticks by order."""
    root, values = ElementTree.fromstring(drawn.svg), json.loads(values_of(drawn.svg))
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
        for axis in "xy" if "box" in panel else "":
            assert of["t"].count(axis) in (0, len(panel[axis]["ticks"])), "all, or none of an axis without labels"


SCRIPT = """
import sys
from importlib.util import module_from_spec, spec_from_file_location
from pathlib import Path
sys.path.append(str(Path(sys.argv[1]).parents[2] / "support"))
spec = spec_from_file_location("made", sys.argv[1])
made = module_from_spec(spec)
spec.loader.exec_module(made)
from drivelab.figures import render, save
save(render("comparison", {"deltas": made.deltas(), "summary": made.summary()}, "op28"), sys.argv[2])
"""


def test_files_are_the_same_in_another_process(made: ModuleType, tmp_path: Path) -> None:
    tables = {"deltas": made.deltas(), "summary": made.summary()}
    here, _ = save(render("comparison", tables, "op28"), tmp_path / "here")
    library = str(Path(drivelab.__file__).parents[1])
    command = [sys.executable, "-c", SCRIPT, str(made.__file__), str(tmp_path / "there")]
    subprocess.run(command, check=True, env=os.environ | {"PYTHONHASHSEED": "1", "PYTHONPATH": library})
    assert here.read_bytes() == (tmp_path / "there.svg").read_bytes()
