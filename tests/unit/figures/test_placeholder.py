"""Figures show the remaining values after exclusions; a placeholder gives the reasons if none remain."""

from __future__ import annotations

import json
import re
from pathlib import Path

import comparison_frames
import pandas as pd
import protocol_frames as frames
import pytest

from drivelab.criteria.soundness import because
from drivelab.figures.base.sheets import draw, placeholder, reasons
from drivelab.figures.base.style import svg
from drivelab.figures.base.svg import values_of
from drivelab.tables.schemas import SCHEMAS

SAYS_SO = "NOTHING TO SHOW"


def excluded(*recordings: str, measurement: str = "test", place: str = "recording") -> pd.DataFrame:
    return pd.DataFrame(
        [{"recording": recording, "drive": recording.partition("/")[0], "measurement": measurement, "place": place,
          "fault": "mixed versions", "words": "made with another fio"} for recording in recordings],
        columns=SCHEMAS["exclusions"].names,
    )  # fmt: skip


def drawn(folder: Path, name: str, tables: dict[str, pd.DataFrame]) -> str:
    """Draw all files of the figure and return the text of the SVG."""
    draw([name], tables, "op7, test", folder)
    assert (folder / f"{name}.png").stat().st_size > 0
    return (folder / f"{name}.svg").read_text()


def test_a_recording_without_a_sound_cell_has_a_figure_that_says_so(tmp_path: Path) -> None:
    cells = frames.idle()
    cells["unsound"] = because("no I/O", "fio did no I/O at all")
    svg = drawn(tmp_path, "idle_recovery", {"cells": cells})
    assert SAYS_SO in svg
    assert "Recovery in idle time" in svg, "the figure's own title"
    assert f"no I/O: {len(cells)} cells of {cells['recording'].iloc[0]}" in svg


def test_what_is_left_is_drawn_and_a_figure_that_it_is_too_little_for_says_so(tmp_path: Path) -> None:
    cells = comparison_frames.mixes()
    windows = pd.DataFrame(columns=SCHEMAS["steady_state"].names)
    for name, share, placed in (("some", 60, False), ("ends", 100, True)):
        bad = cells["read_share_pct"] == share
        left = cells.assign(unsound=[because("no I/O", "x") if is_bad else None for is_bad in bad])
        svg = drawn(tmp_path, "bathtub", {"cells": left, "steady_state": windows})
        assert (SAYS_SO in svg) == placed, name


def test_a_figure_that_refuses_sound_tables_still_does(tmp_path: Path) -> None:
    windows = pd.DataFrame(columns=SCHEMAS["steady_state"].names)
    with pytest.raises(ValueError, match="reads alone, writes alone"):
        drawn(tmp_path, "bathtub", {"cells": comparison_frames.mixes((60, 20)), "steady_state": windows})


def test_excluded_recordings_are_not_in_figures_over_drives(tmp_path: Path) -> None:
    runs = comparison_frames.applications(("op7", "op28"))
    names = list(runs["recording"].unique())
    assert len(names) == 2

    def without(out: pd.DataFrame) -> str:
        return drawn(tmp_path, "application_durations", {"application_runs": runs, "exclusions": out})

    assert "op7<" in without(excluded())
    left = without(excluded(names[0]))
    assert SAYS_SO not in left
    assert "op28<" in left
    assert "op7<" not in left
    none = without(excluded(*names))
    assert SAYS_SO in none
    assert f"mixed versions: {names[0]}, made with another" in none


def test_an_empty_comparison_lists_its_exclusions(tmp_path: Path) -> None:
    """Tables of the study have no rows of recordings, so exclusions are found by measurement."""
    empty = {name: pd.DataFrame(columns=SCHEMAS[name].names) for name in ("deltas", "summary")}
    svg = drawn(tmp_path, "comparison", {**empty, "exclusions": excluded("op7/test/0-run1", place="round 3, A")})
    assert SAYS_SO in svg
    with pytest.raises(ValueError, match="has no rows"):
        drawn(tmp_path, "comparison", {**empty, "exclusions": excluded()})


def test_an_unsound_run_is_a_reason_and_a_taint_is_not() -> None:
    runs = comparison_frames.applications()
    assert reasons({"application_runs": runs.assign(taint_reason="load of the host; steal")}) == []
    (line, *rest) = reasons({"application_runs": runs.iloc[:1].assign(taint_reason="no duration: it is zero; steal")})
    assert line.startswith("no duration: 1 run of ")
    assert line.endswith(", it is zero")
    assert rest == []


def test_a_placeholder_lists_the_first_of_many_reasons() -> None:
    texts = [text.get_text() for text in placeholder("window", [f"no I/O: {n}" for n in range(50)]).texts]
    assert "no I/O: 5" in texts
    assert "no I/O: 6" not in texts
    assert "and 44 more reasons, see what is left out" in texts


def test_a_placeholder_is_high_enough_for_long_reasons() -> None:
    picture = svg(placeholder("window", ["altered evidence: since it was measured, this file " * 9] * 2))
    heights = [float(y) for y in re.findall(r'<text[^>]*? y="([\d.]+)"', picture)]
    assert max(heights) < float(re.search(r'viewBox="0 0 [\d.]+ ([\d.]+)"', picture)[1])


def test_exclusions_do_not_change_the_colours_of_drives(tmp_path: Path) -> None:
    cells = comparison_frames.of_drives(comparison_frames.mixes)
    first, second, *_ = cells["drive"].unique()
    out = excluded(*cells.loc[cells["drive"] == first, "recording"].unique(),
                   measurement=cells["measurement"].iloc[0])  # fmt: skip
    tables = {"cells": cells, "steady_state": pd.DataFrame(columns=SCHEMAS["steady_state"].names)}
    colours = []
    for more in ({}, {"exclusions": out}):
        draw(["bathtub"], tables | more, "all drives", tmp_path)
        svg = (tmp_path / "bathtub.svg").read_text()
        of_entry = re.findall(r'<g data-k="(\d)">\s*<path[^>]*stroke: (#\w+)', svg)
        names = json.loads(values_of(svg))["legend"]
        colours.append(
            {names[int(entry)]: colour for entry, colour in of_entry if names[int(entry)] in (first, second)}
        )
    assert set(colours[0]) == {first, second}
    assert colours[1] == {second: colours[0][second]}
