"""The tables of a fleet report: ranked drives, values and their spread, outliers, hosts."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping
from typing import Any

import pandas as pd

from drivelab.analysis.verdict import DELTA_VERDICTS
from drivelab.report.numbers import DASH, capital, heading, is_missing, metric_name, number, percent, unit_of
from drivelab.report.table_fields import number_cell, percent_cell
from drivelab.report.view import Cell, Column, Table

MOST_OUTLIERS = 300
"""Outliers that the report lists, farthest first; the table `fleet_deviations` has all."""
_SPREAD = ("Drives", "Median", "5\u00a0%", "95\u00a0%", "Lowest", "Highest", "Range", "Robust variation", "Outliers",
           "Unreliable")  # fmt: skip
_VARIATION = (
    "Range: how far the highest value is above the lowest. Robust variation: 1.4826 median absolute deviations in "
    "percent of the median; for a normal distribution it equals the coefficient of variation. It is 0 if more than "
    "half of the drives are equal, whatever the others do. Unreliable values count in no other column."
)
_FACTS = {"hosts": "Host", "model": "Model", "firmware": "Firmware", "serial": "Serial"}
"""Columns with facts of a drive, and their headings; the note lists facts that all drives share."""


def failed_table(drives: pd.DataFrame, links: Mapping[str, str]) -> Table | None:
    """Return drives without a result, with the reason; None if all drives have results."""
    rows = [(_drive(row, links), Cell(str(row["reason"] or "reason not recorded")),
             _count(row["recordings"], row["planned"]))
            for row in drives[drives["state"] != "measured"].to_dict("records")]  # fmt: skip
    columns = (Column("Drive", numeric=False), Column("Reason", numeric=False), Column("Recordings kept"))
    return Table("failed", "Drives that were not measured", columns, tuple(rows)) if rows else None


def spread_table(spread: pd.DataFrame, *, keys: bool) -> Table:
    """Return the spread of the key values, or of all values, over the drives."""
    rows = []
    for row in (spread[spread["is_key"]] if keys else spread).to_dict("records"):
        values = (number_cell(row[name]) if not is_missing(row[name]) else Cell(DASH) for name in
                  ("median", "p5", "p95", "min", "max"))  # fmt: skip
        value_name = f"{row['cell_label']}, {heading(row['metric'], row['unit'])}"
        variation, lowest = row["robust_cv_pct"], row["min"]
        rows.append(
            (Cell(str(row["measurement"])), Cell(value_name), number_cell(row["drives"]), *values,
             Cell(DASH) if is_missing(lowest) else percent_cell(100 * (row["max"] / lowest - 1)),
             Cell(DASH) if is_missing(variation) else percent_cell(variation),
             number_cell(row["outliers"], tone="mark" if row["outliers"] else ""),
             number_cell(row["faulty"], tone="mark" if row["faulty"] else ""))
        )  # fmt: skip
    return Table(
        id="spread" if keys else "spread-all",
        caption="Spread over the drives, one key value per measurement" if keys else "Spread of all values",
        columns=(Column("Measurement", numeric=False), Column("Value", numeric=False), *map(Column, _SPREAD)),
        rows=tuple(rows),
        note=_VARIATION if keys else "",
        collapsed=not keys,
    )  # fmt: skip


def outliers_table(deviations: pd.DataFrame, links: Mapping[str, str]) -> Table | None:
    """Return the outliers of the fleet, farthest first; None if there are none."""
    outliers = deviations[deviations["outlier"]]
    outliers = outliers.assign(far=outliers["modified_z"].abs()).sort_values("far", ascending=False, kind="stable")
    rows = []
    for row in outliers.head(MOST_OUTLIERS).to_dict("records"):
        rows.append(
            (_drive(row, links), Cell(str(row["measurement"])), Cell(str(row["cell_label"])),
             Cell(heading(row["metric"], row["unit"])), number_cell(row["value"]),
             number_cell(row["median"]),
             percent_cell(row["deviation_pct"], signed=True, tone="good" if row["deviation_pct"] > 0 else "bad"),
             number_cell(row["modified_z"]))
        )  # fmt: skip
    omitted = len(outliers) - len(rows)
    names = ("Drive", "Measurement", "Cell", "Metric")
    numbers = ("Value", "Median of the fleet", "Deviation", "Modified z")
    return Table(
        id="outliers",
        caption="Outliers among the drives",
        filtered=True,
        columns=(*(Column(name, numeric=False) for name in names), *map(Column, numbers)),
        rows=tuple(rows),
        note=f"Farthest values only; {omitted:,} more are in tables/fleet_deviations.parquet." if omitted else "",
        collapsed=len(rows) > 30,
    ) if rows else None  # fmt: skip


def hosts_table(hosts: pd.DataFrame) -> Table | None:
    """Return each host's drives compared with all others; None for a single host."""
    rows = []
    for row in hosts.sort_values("p_adjusted", kind="stable").to_dict("records"):
        rows.append(
            (Cell(str(row["host"])), Cell(str(row["measurement"])),
             Cell(f"{row['cell_label']}, {metric_name(row['metric'])}"), number_cell(row["drives"]),
             number_cell(row["median"]), number_cell(row["others_median"]),
             percent_cell(row["difference_pct"], signed=True), number_cell(row["p_adjusted"]))
        )  # fmt: skip
    names, numbers = ("Host", "Measurement", "Value"), ("Drives", "Median", "Median of the others", "Difference", "p")
    return Table(
        id="hosts",
        caption="Each host's drives compared with the drives of all other hosts",
        columns=(*(Column(name, numeric=False) for name in names), *map(Column, numbers)),
        rows=tuple(rows),
        note=f"Mann{DASH}Whitney test; p adjusted for all rows (Benjamini{DASH}Hochberg). Drives were not assigned to "
        "hosts at random, so the drives may cause a difference.",
        collapsed=len(rows) > 30,
    ) if rows else None  # fmt: skip


def drives_table(
    drives: pd.DataFrame, keys: pd.DataFrame, verdicts: Mapping[str, Mapping[str, int]], links: Mapping[str, str]
) -> Table:
    """Return all drives, best first: key values, limitations, deltas by verdict.

    `keys` are the rows of the table `fleet_deviations` with key values; `verdicts` counts deltas by drive and verdict.
    `links` are addresses of the pages of each drive.
    """
    key_rows = {(row["drive"], row["measurement"]): row for row in keys.to_dict("records")}
    headings = {row["measurement"]: f"{row['measurement']}, {unit_of(row['metric'], row['unit'])}".rstrip(", ")
                for row in reversed(keys.to_dict("records"))}  # fmt: skip
    measurements = list(dict.fromkeys(keys["measurement"]))
    facts = {name: title for name, title in _FACTS.items() if drives[name].nunique() > 1 or len(drives) == 1}
    shared = [f"{title} {drives[name].iloc[0]}" for name, title in _FACTS.items() if len(drives) and name not in facts]
    called = [verdict for verdict in DELTA_VERDICTS if any(verdict in counts for counts in verdicts.values())]
    rows = []
    for row in drives.sort_values(["place", "drive"], na_position="last", kind="stable").to_dict("records"):
        drive = str(row["drive"])
        rows.append(
            (_drive(row, links), Cell(DASH) if is_missing(row["place"]) else number_cell(row["place"]),
             _farthest_cell([key_rows[drive, name] for name in measurements if (drive, name) in key_rows]),
             *(_key_cell(key_rows.get((drive, name))) for name in measurements),
             *(number_cell(verdicts[drive].get(verdict, 0)) if drive in verdicts else Cell(DASH) for verdict in called),
             number_cell(row["outlying"], tone="mark" if row["outlying"] else ""),
             number_cell(row["not_steady"], tone="mark" if row["not_steady"] else ""),
             number_cell(row["tainted"], tone="mark" if row["tainted"] else ""),
             number_cell(row["excluded"], tone="mark" if row["excluded"] else ""),
             *(Cell(str(row[name])) for name in facts))
        )  # fmt: skip
    return Table(
        id="drives",
        caption="All drives, best first",
        filtered=True,
        columns=(
            Column("Drive", numeric=False), Column("Place"), Column("Largest deviation"),
            *(Column(headings[name]) for name in measurements), *(Column(capital(verdict)) for verdict in called),
            Column("Outliers"), Column("Not steady"), Column("Tainted"), Column("Excluded"),
            *(Column(title, numeric=False) for title in facts.values()),
        ),
        rows=tuple(rows),
        note="Largest deviation: the key value of the drive that is farthest from the median of all drives; positive "
        "is better. Place: rank by the median of these deviations over all measurements; with two measurements, by "
        f"their mean. Each drive links to its own pages.{' All drives: ' + ', '.join(shared) + '.' if shared else ''}",
    )  # fmt: skip


def _drive(row: Mapping[str, object], links: Mapping[str, str]) -> Cell:
    """Return a drive with a link to its pages."""
    drive = str(row["drive"])
    return Cell(drive, href=links.get(drive, ""))


def _farthest_cell(keys: Iterable[Mapping[str, Any]]) -> Cell:
    """Return the largest deviation of the key values, by ratio, and its measurement."""
    ranked = [row for row in keys if not is_missing(row["place"])]
    if not ranked:
        return Cell(DASH)
    row = max(ranked, key=lambda key: abs(math.log1p(key["deviation_pct"] / 100)))
    return percent_cell(row["deviation_pct"], signed=True, small=str(row["measurement"]))


def _key_cell(row: Mapping[str, object] | None) -> Cell:
    if row is None:
        return Cell(DASH)
    sound = not is_missing(row["place"])
    marks = [str(row["verdict"])] if not sound else [percent(row["deviation_pct"], signed=True)]
    if not is_missing(row["taint_reason"]) and sound:
        marks.append("tainted")
    if row["outlier"]:
        marks.append("outlier")
    return Cell(number(row["value"]), ", ".join(marks), "" if sound and not row["outlier"] else "mark",
                value=float(str(row["value"])))  # fmt: skip


def _count(part: object, whole: object) -> Cell:
    return Cell(f"{part} of {whole}", value=float(str(part)))
