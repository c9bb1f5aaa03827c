"""Many drives at once: the places of all drives, how far they are apart, and which of them stand out."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import cached_property

import pandas as pd
from matplotlib.figure import Figure as Drawing

from drivelab.analysis.fleet_statistics import (
    FROM_SUMMARY,
    VALUE,
    deviations_table,
    drive_columns,
    hosts_table,
    spread_table,
)
from drivelab.criteria.taint import is_busy
from drivelab.figures.base.style import note, svg
from drivelab.figures.kinds.drives.fleet_order import fleet_heat, fleet_order
from drivelab.report.document import ManyDrives
from drivelab.report.fleet_sentences import count, lead, some
from drivelab.report.html import picture
from drivelab.report.inputs import Inputs
from drivelab.report.measurement_outcome import BUSY
from drivelab.report.numbers import MISSING, capital, is_missing, metric_name, percent, quantities, rounded, unit_of
from drivelab.report.sections import fleet_tables
from drivelab.report.sentences import brief_words
from drivelab.report.view import Cell, Column, Figure, Table
from drivelab.tables.labels import SCORE

MANY = 8
"""A study of this many drives has the fleet's view."""
INTERVAL = ["interval_low", "interval_high"]
_NBSP = "\u00a0"
_LINES = 3


@dataclass(frozen=True)
class Fleet:
    """The fleet tables of a study. `deviations` also has the columns INTERVAL of the table `summary`."""

    drives: pd.DataFrame
    spread: pd.DataFrame
    deviations: pd.DataFrame
    hosts: pd.DataFrame
    deltas: pd.DataFrame
    models: pd.DataFrame
    basis: str
    margin_pct: float
    links: Mapping[str, str]
    """Address of the pages of each drive."""
    words: Callable[[str, str], str] = lambda _, label: brief_words(label)
    """Returns a workload in words by measurement and cell label."""

    @cached_property
    def keys(self) -> list[pd.DataFrame]:
        """The rows of `deviations` with the key value of each measurement, best first."""
        keys = self.deviations[self.deviations["is_key"]]
        return [rows.sort_values("place", kind="stable") for _, rows in keys.groupby("measurement", sort=False)]

    def lead(self) -> tuple[str, ...]:
        """Return the verdict on all drives in sentences."""
        tables = (self.drives, self.spread, self.deviations, self.hosts, self.deltas, self.models)
        return tuple(lead(*tables, self.basis, self.margin_pct))

    def sentence(self) -> str:
        """Return how far the drives are apart at the first key value, and who is the best and who stands out."""
        rows = next((rows[rows["place"].notna()] for rows in self.keys if rows["place"].notna().any()), None)
        if rows is None:
            return ""
        best = rows.iloc[0]
        ends = [best["value"], *(best[name] for name in INTERVAL), rows["value"].iloc[-1], best["median"]]
        top, low, high, last, median = quantities(ends, unit_of(best["metric"], best["unit"]), rounded)
        sure = "" if MISSING in (low, high) else f" (95\u00a0% interval: {_without_unit(low)} to {high})"
        verb = "reach" if best["kind"] == "speed" else f"have a {metric_name(best['metric'])} of"
        outliers = [f"{row['drive']} ({percent(row['deviation_pct'], signed=True)})"
                    for row in rows[rows["outlier"]].to_dict("records")]  # fmt: skip
        far = {0: "no drive is an outlier", 1: f"{some(outliers)} is an outlier"}.get(
            len(outliers), f"{len(outliers)} are outliers: {some(outliers)}"
        )
        return (
            f"{count(len(rows), 'drive')} {verb} {_without_unit(last)} to {top} at {self._words(best)}, median {median}"
            f"{f', {BUSY}' if self._is_busy(rows) else ''}; {best['drive']} is the best{sure}, {far}."
        )

    def _words(self, row: Mapping[str, str]) -> str:
        return self.words(row["measurement"], row["cell_label"])

    @staticmethod
    def _is_busy(rows: pd.DataFrame) -> bool:
        return any(map(is_busy, rows["taint_reason"]))

    def chart(self) -> Figure | None:
        """Return the drives in the order of the first key value."""
        return self._order(self.keys[0]) if self.keys else None

    def _order(self, rows: pd.DataFrame) -> Figure:
        words = capital(self._words(rows.iloc[0]))
        drawing = fleet_order(rows, words)
        if self._is_busy(rows):
            note(drawing, BUSY)
        measurement = rows["measurement"].iloc[0]
        return _picture(drawing, "fleet_order", f"{measurement}: drives in order",
                        f"{words}: the value of each drive, the best on top, with its 95\u00a0% interval over "
                        "recordings, from three recordings on.")  # fmt: skip

    def glance(self) -> Table | None:
        """Return best, median and last drive of the first key values."""
        rows = []
        for key in self.keys[:_LINES]:
            counted = key[key["place"].notna()]
            if counted.empty:
                continue
            best, last = counted.iloc[0], counted.iloc[-1]
            values = [best["value"], best["median"], last["value"]]
            texts = quantities(values, unit_of(best["metric"], best["unit"]), rounded)
            top, median, bottom = map(_without_unit, texts)
            name = f"{best['measurement']}, {metric_name(best['metric'])} ({texts[0].partition(_NBSP)[2]})"
            better = "; lower is better" if best["kind"] == "time" else ""
            rows.append(
                (Cell(capital(self._words(best)), small=name.replace("IOPS (IOPS)", "IOPS") + better),
                 Cell(top, small=str(best["drive"]), value=best["value"]), Cell(median, value=best["median"]),
                 Cell(bottom, small=f"{last['drive']}, {percent(last['deviation_pct'], signed=True)}",
                      value=last["value"]))
            )  # fmt: skip
        columns = (Column("", numeric=False), *map(Column, ("Best", "Median", "Last")))
        return Table("at-a-glance", "Key values at a glance", columns, tuple(rows)) if rows else None

    def section(self, *, own_reports: bool) -> ManyDrives:
        """Return the figures and tables of all drives."""
        counts = {drive: dict(verdicts.value_counts())
                  for drive, verdicts in self.deltas.groupby("comparison")["verdict"]}  # fmt: skip
        keys = pd.concat(self.keys) if self.keys else self.deviations
        tables = (
            fleet_tables.failed_table(self.drives, self.links),
            fleet_tables.drives_table(self.drives, keys, counts, self.links),
            fleet_tables.outliers_table(self.deviations, self.links), fleet_tables.spread_table(self.spread, keys=True),
            fleet_tables.hosts_table(self.hosts), fleet_tables.spread_table(self.spread, keys=False),
        )  # fmt: skip
        heat = [_picture(fleet_heat(keys), "fleet_heat", "All drives by measurement",
                         "Key value of each drive relative to the median of all; grey values are unreliable.")
                ] if len(self.keys) else []  # fmt: skip
        return ManyDrives(
            figures=(*heat, *map(self._order, self.keys[1:])),
            tables=tuple(table for table in tables if table is not None),
            basis=self.basis,
            margin_pct=self.margin_pct,
            own_reports=own_reports,
        )


def fleet_of(inputs: Inputs) -> Fleet:
    """Return the fleet tables of a study from its other tables."""
    summary = inputs.frame("summary")
    values = summary[summary["protocol"] != SCORE]
    margin_pct = float(inputs.study["margin_pct"])
    deviations = deviations_table(values[list(FROM_SUMMARY)], margin_pct, {
        name: inputs.tracked(name) for name in inputs.measurements})  # fmt: skip
    deviations = deviations.merge(values[["drive", *VALUE, *INTERVAL]], how="left", on=["drive", *VALUE])
    drives = _drives(inputs).merge(drive_columns(deviations), how="left", left_on="drive", right_index=True)
    numbers = ["values", "faulty", "not_steady", "tainted", "outlying"]
    drives[numbers] = drives[numbers].fillna(0).astype(int)
    deltas, models = (inputs.frame(name).reindex(columns=["basis", "comparison", "comparison_n", "basis_n", "verdict"])
                      for name in ("deltas", "model_deltas"))  # fmt: skip
    loads = inputs.loads
    return Fleet(
        drives, spread_table(deviations), deviations, hosts_table(deviations, drives.set_index("drive")["hosts"]),
        deltas, models, str(inputs.study["basis"]), margin_pct,
        {drive: f"#{anchor}" for (drive, _), anchor in reversed([*inputs.anchors.items()])},
        lambda measurement, label: brief_words(label, loads.get((measurement, label))),
    )  # fmt: skip


def _drives(inputs: Inputs) -> pd.DataFrame:
    """Return the facts of each drive of the study; a drive whose recordings are all excluded was not measured."""
    of_study = {*inputs.drives, *(plan["drive"] for plan in inputs.plans)}
    excluded = inputs.frame("exclusions").reindex(columns=["drive", "words"])
    excluded = excluded[excluded["drive"].isin(of_study)]
    only_host = inputs.host(inputs.plans).get("host", MISSING)
    rows = []
    for drive in dict.fromkeys([*inputs.drives, *excluded["drive"]]):
        identity, plans = inputs.drive(drive), [plan for plan in inputs.plans if plan["drive"] == drive]
        hosts = dict.fromkeys(only_host if is_missing(plan.get("host")) else plan["host"] for plan in plans)
        words = excluded.loc[excluded["drive"] == drive, "words"]
        rows.append(
            {"drive": drive, "state": "measured" if drive in inputs.drives else "excluded",
             "reason": "; ".join(dict.fromkeys(words)) or None, "recordings": len(plans), "planned": len(plans),
             "hosts": " and ".join(map(str, hosts)) or MISSING, "excluded": len(words),
             **{name: MISSING if is_missing(identity.get(name)) else str(identity[name])
                for name in ("model", "serial", "firmware")}}
        )  # fmt: skip
    return pd.DataFrame(rows)


def _picture(drawing: Drawing, name: str, title: str, caption: str) -> Figure:
    return picture({"name": name, "title": title, "caption": caption, "svg": svg(drawing)})


def _without_unit(quantity: str) -> str:
    return quantity.partition(_NBSP)[0]
