"""The figures of an import: those of a study, as far as what was imported has the values for them."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import drivelab
from drivelab.figures.titles import TITLES

if TYPE_CHECKING:
    import pandas as pd

    from drivelab.imported.tables import Recording

_CAPTIONS = Path(drivelab.__file__).parents[2] / "workflow" / "report"
_FEWEST_ROUNDS = 3
_FEWEST_CAPACITIES = 2


def draw_figures(
    tables: Mapping[str, pd.DataFrame], recordings: Sequence[Recording], folder: Path
) -> list[dict[str, Any]]:
    """Draw each figure as `folder`/RECORDING/NAME.svg (and png, json); returns them as the report takes them.

    Those of all drives are `folder`/comparison/MEASUREMENT/METRIC/NAME.svg.
    """
    from drivelab.figures.sheets import draw  # with matplotlib, which an import without a report need not wait for

    found = []
    for one in recordings:
        of_one = {
            name: frame[frame["recording"] == one.name] for name, frame in tables.items() if name in _BY_RECORDING
        }
        of_one["drives"] = tables["drives"][tables["drives"]["drive"] == one.drive]
        names = list(figure_names(of_one))
        place = folder / one.name
        if names:
            place.mkdir(parents=True, exist_ok=True)
            draw({name: place / name for name in names}, of_one, f"{one.drive}, {one.measurement}")
        found += [_figure(one, place / name) for name in names]
    for measurement in dict.fromkeys(one.measurement for one in recordings):
        for metric, of_all in _by_capacity(tables["summary"], recordings, measurement):
            stem = folder / "comparison" / measurement / metric / "capacity"
            stem.parent.mkdir(parents=True, exist_ok=True)
            draw({"capacity": stem}, of_all, measurement)
            found.append(_figure(None, stem) | {"measurement": measurement})
    return found


def _by_capacity(
    summary: pd.DataFrame, recordings: Sequence[Recording], measurement: str
) -> Iterator[tuple[str, Mapping[str, pd.DataFrame]]]:
    """Metric and tables of each figure `capacity`; none unless the capacities are known and not all the same.

    Printed cells have one metric each, and the figure has the cells of its first metric.
    """
    import pandas as pd

    capacities = {
        one.drive: one.facts.get("drive", {}).get("capacity_bytes")
        for one in recordings
        if one.measurement == measurement
    }
    values = summary[summary["measurement"] == measurement]
    if None in capacities.values() or len(set(capacities.values())) < _FEWEST_CAPACITIES or values.empty:
        return
    drives = pd.DataFrame(capacities.items(), columns=["drive", "capacity_bytes"])
    for metric in dict.fromkeys(values["metric"]):
        yield metric, {"summary": values[values["metric"] == metric], "drives": drives}


_BY_RECORDING = ("cells", "steady_state")


def figure_names(tables: Mapping[str, pd.DataFrame]) -> Iterator[str]:
    """Which figures the tables of one recording have the values for: cells, steady_state, drives."""
    cells, windows = tables["cells"], tables["steady_state"]
    loops, soaks = (cells[cells["kind"] == kind] for kind in ("loop", "soak"))
    if len(loops) and len(windows):
        yield "convergence"
        if windows["metric"].iloc[0] == "bandwidth_mib_s":
            yield "convergence_reads"
        yield "window"
        yield "measurement_2d"
        if loops["block_size_bytes"].nunique() > 1 and loops["read_share_pct"].nunique() > 2:
            yield "measurement_3d"
    elif len(loops):
        if loops["round"].max() >= _FEWEST_ROUNDS:
            yield "repeats"
        if loops.groupby(["workload", "threads"])["queue_depth"].nunique().max() > 1:
            yield "depth_ramp"
    if len(soaks):
        yield "saturation_time"
        if tables["drives"]["capacity_bytes"].notna().all():
            yield "saturation_bytes"


def _figure(one: Recording | None, stem: Path) -> dict[str, Any]:
    """Of a recording, or of the drives of all."""
    chart = stem.with_suffix(".json")
    return {
        "drive": one and one.drive,
        "measurement": one and one.measurement,
        "recording": one and one.name,
        "trace": None,
        "name": stem.name,
        "title": TITLES[stem.name],
        "caption": (_CAPTIONS / f"{stem.name}.rst").read_text(encoding="utf-8").strip(),
        "svg": stem.with_suffix(".svg").read_text(encoding="utf-8"),
        "chart": chart.read_text(encoding="utf-8") if chart.exists() else "",
    }
