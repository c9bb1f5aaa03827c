"""The tables of a fleet's report: drives in their order, values and their spread, outliers, hosts."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping
from typing import Any

import pandas as pd

from drivelab.analysis.verdict import BETTER, CANNOT_TELL, NOT_COMPARED, SAME, WORSE
from drivelab.report.number_cells import number_cell, percent_cell
from drivelab.report.numbers import DASH, heading, is_missing, metric_name, number, percent, unit_of
from drivelab.report.view import Cell, Column, Table

MOST_OUTLIERS = 300
"""Outlying values that the report lists: the farthest; all are in the table `fleet_deviations`."""
_SPREAD = ("Drives", "Median", "5\u00a0%", "95\u00a0%", "Least", "Most", "Range", "Robust variation", "Outliers",
           "Not to be relied on")  # fmt: skip
_VARIATION = (
    "Range: by how much the most is above the least. Robust variation: 1.4826 median absolute deviations in percent of "
    "the median, the coefficient of variation of a normal distribution; 0 where more than half of the drives are "
    "alike, whatever the others. Values that are not to be relied on count in no other column."
)
_FACTS = {"hosts": "Host", "model": "Model", "firmware": "Firmware", "serial": "Serial"}
"""Of a drive, with their headings; those that all drives share stand in the note, and need no column."""
_CALLED = {
    BETTER: "Better than the basis",
    WORSE: "Worse than the basis",
    SAME: "The same",
    CANNOT_TELL: "Cannot tell",
    NOT_COMPARED: "Not compared",
}


def failed_table(drives: pd.DataFrame) -> Table | None:
    """Drives without a result, with the reason; None where there is none."""
    rows = [(_drive(row), Cell(str(row["reason"] or "no reason told")), _count(row["recordings"], row["planned"]))
            for row in drives[drives["state"] != "measured"].to_dict("records")]  # fmt: skip
    columns = (Column("Drive", numeric=False), Column("Why", numeric=False), Column("Recordings that are kept"))
    return Table("failed", "Drives that were not measured", columns, tuple(rows)) if rows else None


def spread_table(spread: pd.DataFrame, *, keys: bool) -> Table:
    """How the key values, or all values, are spread over the drives."""
    rows = []
    for row in (spread[spread["is_key"]] if keys else spread).to_dict("records"):
        values = (number_cell(row[one]) if not is_missing(row[one]) else Cell(DASH) for one in
                  ("median", "p5", "p95", "min", "max"))  # fmt: skip
        name = f"{row['cell_label']}, {heading(row['metric'], row['unit'])}"
        variation, least = row["robust_cv_pct"], row["min"]
        rows.append(
            (Cell(str(row["measurement"])), Cell(name), number_cell(row["drives"]), *values,
             Cell(DASH) if is_missing(least) else percent_cell(100 * (row["max"] / least - 1)),
             Cell(DASH) if is_missing(variation) else percent_cell(variation),
             number_cell(row["outliers"], tone="mark" if row["outliers"] else ""),
             number_cell(row["faulty"], tone="mark" if row["faulty"] else ""))
        )  # fmt: skip
    return Table(
        id="spread" if keys else "spread-all",
        caption="Spread over the drives, one key value of each measurement" if keys else "Spread of all values",
        columns=(Column("Measurement", numeric=False), Column("Value", numeric=False), *map(Column, _SPREAD)),
        rows=tuple(rows),
        note=_VARIATION if keys else "",
        collapsed=not keys,
    )  # fmt: skip


def outliers_table(deviations: pd.DataFrame) -> Table | None:
    """Values of drives that stand apart from the fleet, the farthest first; None where there is none."""
    found = deviations[deviations["outlier"]]
    found = found.assign(far=found["modified_z"].abs()).sort_values("far", ascending=False, kind="stable")
    rows = []
    for row in found.head(MOST_OUTLIERS).to_dict("records"):
        rows.append(
            (_drive(row), Cell(str(row["measurement"])), Cell(str(row["cell_label"])),
             Cell(heading(row["metric"], row["unit"])), number_cell(row["value"]),
             number_cell(row["median"]),
             percent_cell(row["deviation_pct"], signed=True, tone="good" if row["deviation_pct"] > 0 else "bad"),
             number_cell(row["modified_z"]))
        )  # fmt: skip
    left = len(found) - len(rows)
    names = ("Drive", "Measurement", "Cell", "Metric")
    numbers = ("Value", "Median of the fleet", "Deviation", "Modified z")
    return Table(
        id="outliers",
        caption="Values that are outliers among the drives",
        columns=(*(Column(one, numeric=False) for one in names), *map(Column, numbers)),
        rows=tuple(rows),
        note=f"The farthest; {left:,} more are in tables/fleet_deviations.parquet." if left else "",
        collapsed=len(rows) > 30,
    ) if rows else None  # fmt: skip


def hosts_table(hosts: pd.DataFrame) -> Table | None:
    """The drives of each host beside all others; None for a single host."""
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
        caption="The drives of one host beside those of the others",
        columns=(*(Column(one, numeric=False) for one in names), *map(Column, numbers)),
        rows=tuple(rows),
        note="Mann and Whitney, p adjusted after Benjamini and Hochberg for all rows. Drives were not put on hosts at "
        "random: a difference may be the drives'.",
        collapsed=len(rows) > 30,
    ) if rows else None  # fmt: skip


def drives_table(drives: pd.DataFrame, keys: pd.DataFrame, verdicts: Mapping[str, Mapping[str, int]]) -> Table:
    """All drives in their order, the best first: key value of each measurement, what limits it, deltas by verdict.

    `keys` are the rows of the table `fleet_deviations` of key values, `verdicts` counts deltas by drive and verdict.
    """
    of_value = {(row["drive"], row["measurement"]): row for row in keys.to_dict("records")}
    heads = {row["measurement"]: f"{row['measurement']}, {unit_of(row['metric'], row['unit'])}".rstrip(", ")
             for row in reversed(keys.to_dict("records"))}  # fmt: skip
    measurements = list(dict.fromkeys(keys["measurement"]))
    facts = {name: title for name, title in _FACTS.items() if drives[name].nunique() > 1 or len(drives) == 1}
    alike = [f"{title} {drives[name].iloc[0]}" for name, title in _FACTS.items() if len(drives) and name not in facts]
    called = [name for name in _CALLED if any(name in one for one in verdicts.values())]
    rows = []
    for row in drives.sort_values(["place", "drive"], na_position="last", kind="stable").to_dict("records"):
        drive = str(row["drive"])
        rows.append(
            (_drive(row), Cell(DASH) if is_missing(row["place"]) else number_cell(row["place"]),
             _farthest_cell([of_value[drive, one] for one in measurements if (drive, one) in of_value]),
             *(_key_cell(of_value.get((drive, one))) for one in measurements),
             *(number_cell(verdicts[drive].get(one, 0)) if drive in verdicts else Cell(DASH) for one in called),
             number_cell(row["outlying"], tone="mark" if row["outlying"] else ""),
             number_cell(row["not_steady"], tone="mark" if row["not_steady"] else ""),
             number_cell(row["tainted"], tone="mark" if row["tainted"] else ""),
             number_cell(row["excluded"], tone="mark" if row["excluded"] else ""),
             *(Cell(str(row[one])) for one in facts))
        )  # fmt: skip
    return Table(
        id="drives",
        caption="All drives, the best first",
        columns=(
            Column("Drive", numeric=False), Column("Place"), Column("Largest deviation"),
            *(Column(heads[one]) for one in measurements), *(Column(_CALLED[one]) for one in called),
            Column("Outlying values"), Column("Not steady"), Column("Tainted"), Column("Left out"),
            *(Column(one, numeric=False) for one in facts.values()),
        ),
        rows=tuple(rows),
        note="Largest deviation: of the key values of a drive the one that is farthest from the median of all drives; "
        "positive is better. Place: by the median of these deviations over the measurements, of two measurements their "
        f"mean. Each drive leads to its own report.{' All drives: ' + ', '.join(alike) + '.' if alike else ''}",
    )  # fmt: skip


def _drive(row: Mapping[str, object]) -> Cell:
    """A drive, which leads to its own report; DRIVE@PLATFORM is in that of the drive."""
    drive = str(row["drive"])
    return Cell(drive, href=f"../drives/{drive.partition('@')[0]}/report/index.html")


def _farthest_cell(keys: Iterable[Mapping[str, Any]]) -> Cell:
    """The deviation of the key value that is farthest from its median, as a ratio either way, and its measurement."""
    known = [row for row in keys if not is_missing(row["place"])]
    if not known:
        return Cell(DASH)
    row = max(known, key=lambda one: abs(math.log1p(one["deviation_pct"] / 100)))
    return percent_cell(row["deviation_pct"], signed=True, small=str(row["measurement"]))


def _key_cell(row: Mapping[str, object] | None) -> Cell:
    if row is None:
        return Cell(DASH)
    sound = not is_missing(row["place"])
    told = [str(row["verdict"])] if not sound else [percent(row["deviation_pct"], signed=True)]
    if not is_missing(row["taint_reason"]) and sound:
        told.append("tainted")
    if row["outlier"]:
        told.append("outlier")
    return Cell(number(row["value"]), ", ".join(told), "" if sound and not row["outlier"] else "mark",
                value=float(str(row["value"])))  # fmt: skip


def _count(part: object, whole: object) -> Cell:
    return Cell(f"{part} of {whole}", value=float(str(part)))
