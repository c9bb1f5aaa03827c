"""The report of a fleet: a verdict on all drives, what stands apart, and a way to the report of each drive."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from datetime import UTC, datetime
from io import StringIO
from pathlib import Path
from typing import Any

import pandas as pd
from jinja2 import Environment, FileSystemLoader, StrictUndefined
from markupsafe import Markup
from matplotlib.figure import Figure as Drawing

from drivelab.analysis.detectors.outliers import FALSE_ALARM, LEAST_VALUES, MODIFIED_Z
from drivelab.analysis.fleet import VALUE, apart
from drivelab.analysis.taint import worst
from drivelab.figures.fleet_heat import fleet_heat
from drivelab.figures.fleet_order import fleet_order
from drivelab.figures.style import styled
from drivelab.figures.svg import compact
from drivelab.report import fleet_tables
from drivelab.report.embedded import hash_source, packed_json
from drivelab.report.numbers import moment, names, number, percent, quantity, unit_of
from drivelab.report.picture import picture
from drivelab.report.view import Banner, Figure
from drivelab.tables import io
from drivelab.tables.fleet import measured

_TEMPLATES = Path(__file__).parent / "templates"
_NAMED = 8
"""Things that a sentence names; the others are counted."""
_ALPHA = 0.05
_OF_DEVIATIONS = ("drive", *VALUE, "is_key", "deviation_pct", "modified_z", "place", "outlier")
"""Columns of the table `fleet_deviations` that the verdict needs."""


def write_report(
    tables: Mapping[str, Path], outcomes: Sequence[Mapping[str, Any]], study: Mapping[str, Any], output: Path
) -> None:
    """Write the report. `tables` has the four fleet tables and the folder `deltas`; `study` is `Fleet.report_facts`."""
    frames = {name: io.read(path, name) for name, path in tables.items() if name != "deltas"}
    deltas = _verdicts(tables["deltas"])
    traces = io.read([part / "tables/traces.parquet" for part in measured(outcomes).values()], "traces")
    lossy = sorted(set(traces.loc[traces["lossy"], "trace"]))
    output.parent.mkdir(parents=True, exist_ok=True)
    output.write_text(render(frames, deltas, study, lossy), encoding="utf-8")


def verdict(tables: Path, basis: str, margin_pct: float) -> list[str]:
    """The sentences of `lead` from the folder of a fleet's tables, for the terminal."""
    names = ("fleet_drives", "fleet_spread", "fleet_hosts")
    drives, spread, hosts = (io.read(tables / f"{name}.parquet", name) for name in names)
    deviations = io.read_columns([tables / "fleet_deviations.parquet"], "fleet_deviations", _OF_DEVIATIONS)
    return list(lead(drives, spread, deviations, hosts, _verdicts(tables / "deltas"), basis, margin_pct))


def _verdicts(folder: Path) -> pd.DataFrame:
    return io.read_columns(sorted(folder.glob("*/deltas.parquet")), "deltas", ("comparison", "verdict"))


def render(
    frames: Mapping[str, pd.DataFrame], deltas: pd.DataFrame, study: Mapping[str, Any], lossy: Sequence[str] = ()
) -> str:
    """HTML of the report; every text in it is escaped. `lossy` names traces of which events are missing."""
    drives, spread, deviations, hosts = (frames[f"fleet_{one}"] for one in ("drives", "spread", "deviations", "hosts"))
    keys, margin_pct = deviations[deviations["is_key"]], float(study["comparison"]["margin_pct"])
    counts = {drive: dict(of.value_counts()) for drive, of in deltas.groupby("comparison")["verdict"]}
    found = [fleet_tables.failed_table(drives), fleet_tables.spread_table(spread, keys=True),
             fleet_tables.outliers_table(deviations), fleet_tables.hosts_table(hosts)]  # fmt: skip
    environment = Environment(
        loader=FileSystemLoader(_TEMPLATES), autoescape=True, undefined=StrictUndefined, trim_blocks=True,
        lstrip_blocks=True, keep_trailing_newline=True,
    )  # fmt: skip
    environment.filters["shown"] = lambda value: repr(float(value)).removesuffix(".0")
    script = (_TEMPLATES / "report.js").read_text(encoding="utf-8")
    return environment.get_template("fleet.html.j2").render(
        study=study,
        lead=list(lead(drives, spread, deviations, hosts, deltas, study["basis"], margin_pct)),
        banners=list(banners(drives, deviations, study, lossy)),
        summaries=[one for one in found if one is not None],
        figures=list(_figures(keys)),
        drives=fleet_tables.drives_table(drives, keys, counts),
        values=fleet_tables.spread_table(spread, keys=False),
        rule={"z": MODIFIED_Z, "chance_pct": 100 * FALSE_ALARM, "margin_pct": margin_pct},
        report_date=moment(datetime.now(UTC)),
        proofs={},
        style=Markup((_TEMPLATES / "report.css").read_text(encoding="utf-8")),  # our own file: no part of it is data
        script=Markup(script),  # likewise
        script_sources=hash_source(script),
        evidence=packed_json({"proofs": [], "jobs": {}}),
    )


def lead(
    drives: pd.DataFrame, spread: pd.DataFrame, deviations: pd.DataFrame, hosts: pd.DataFrame, deltas: pd.DataFrame,
    basis: str, margin_pct: float,
) -> Iterator[str]:  # fmt: skip
    """The verdict in sentences: how many were measured, how they are spread, which stand apart, hosts, basis.

    Of `deviations` the columns _OF_DEVIATIONS.
    """
    failed = drives[drives["state"] != "measured"]
    steady = int(((drives["not_steady"] == 0) & (drives["state"] == "measured")).sum())
    yield (
        f"{number(len(drives) - len(failed))} of {number(len(drives))} drives were measured, {number(steady)} of them "
        "steady in every test." + (f" Not measured: {_some(failed['drive'])}." if len(failed) else "")
    )
    yield from _ranges(spread)
    outlying = drives[drives["outlying"] > 0].sort_values("outlying", ascending=False, kind="stable")
    told = [f"{row['drive']} in {row['outlying']} of {_count(row['values'], 'value')}"
            for _, row in outlying.iterrows()]  # fmt: skip
    if told:
        yield f"{'1 drive is an outlier' if len(told) == 1 else f'{len(told)} drives are outliers'}: {_some(told)}."
    elif len(spread) and spread["drives"].max() >= LEAST_VALUES:
        yield (
            f"No drive is an outlier by the rule: modified z above {MODIFIED_Z:g}, a chance below "
            f"{100 * FALSE_ALARM:g}\u00a0% among normal values of {_count(spread['drives'].max(), 'drive')}, and more "
            f"than {margin_pct:g}\u00a0% from the median. That several are apart as a group it cannot tell."
        )
    elif len(spread):
        yield f"No drive is called an outlier: that takes a value of {LEAST_VALUES} drives or more."
    for measurement, of in apart(deviations, margin_pct).groupby("measurement", sort=False):
        far = "1 drive is" if len(of) == 1 else f"{number(len(of))} drives are"
        ends = [percent(one, signed=True) for one in (of["deviation_pct"].min(), of["deviation_pct"].max())]
        yield (
            f"In {measurement} {far} far from the median, though no outlier by the rule: {_some(of['drive'])}, "
            f"by {' to '.join(dict.fromkeys(ends))}."
        )
    if len(hosts):
        of_hosts = hosts[hosts["p_adjusted"] <= _ALPHA]
        told = [f"{row['host']} by {percent(row['difference_pct'], signed=True)} in {row['measurement']}"
                for _, row in of_hosts.iterrows()]  # fmt: skip
        yield (
            f"Drives of a host differ from those of the others: {_some(told)}."
            if told
            else ("Drives of no host differ from those of the others.")
        )
    if len(deltas):
        counts = ", ".join(f"{number(count)} {verdict}" for verdict, count in deltas["verdict"].value_counts().items())
        yield f"Of {number(len(deltas))} values beside those of {basis}: {counts}."
    elif len(drives) > 1:
        yield f"Nothing is compared with the basis, {basis}: it was not measured, or is the only one."


def banners(
    drives: pd.DataFrame, deviations: pd.DataFrame, study: Mapping[str, Any], lossy: Sequence[str]
) -> Iterator[Banner]:
    """What limits the numbers, the gravest first."""
    failed = drives[drives["state"] != "measured"]
    if len(failed):
        yield Banner("excluded", "drives missing", "Drives are missing", "They count in no number of this report.",
                     reasons=tuple(f"{row['drive']}: {row['reason']}" for _, row in failed.iterrows()))  # fmt: skip
    if study["elsewhere"]:
        yield Banner("elsewhere", "drives on other hosts", "Drives on other hosts are missing",
                     f"Still to be measured there: {_some(study['elsewhere'])}.")  # fmt: skip
    for column, one, label, words in (
        ("not_steady", "not-steady", "not steady", "Values without a steady state count in no median."),
        ("tainted", "tainted", "tainted", "Something disturbed the drive or its host while they were measured."),
    ):
        of = drives[drives[column] > 0]
        if len(of):
            told = [f"{row['drive']} ({_count(row[column], 'value')})" for _, row in of.iterrows()]
            title = f"{_count(len(of), 'drive')} {'has' if len(of) == 1 else 'have'} values that are {label}"
            reasons = tuple(_disturbances(deviations, of["drive"])) if column == "tainted" else ()
            yield Banner(one, label, title, f"{words} {_some(told)}.", reasons=reasons)
    if lossy:
        yield Banner("lossy", "lossy trace", "A lossy trace was replayed", f"Events are missing from {_some(lossy)}.")
    if study["altered"]:
        yield Banner("reduced", "reduced", "Reduced protocols", "What was measured is not the full-length protocol.",
                     reasons=tuple(study["altered"]))  # fmt: skip
    if deviations["virtual"].any():
        on_clock = " on the virtual clock" if (deviations["clock"] == "virtual").any() else ""
        why = f": {study['clock_reason']}" if study["clock_reason"] else ""
        yield Banner("virtual", "virtual drives", "Virtual drives", f"A model was measured{on_clock}, no SSD{why}.")


def _figures(keys: pd.DataFrame) -> Iterator[Figure]:
    if keys.empty:
        return
    yield _picture(fleet_heat(keys), "fleet_heat", "All drives by measurement",
                   "The key value of each drive beside the median of all; grey is not to be relied on.")  # fmt: skip
    for name, rows in keys.groupby("measurement", sort=False):
        yield _picture(fleet_order(rows), "fleet_order", f"{name}: drives in order",
                       f"{rows['cell_label'].iloc[0]}: the value of each drive, from the lowest.")  # fmt: skip


@styled
def _picture(drawing: Drawing, name: str, title: str, caption: str) -> Figure:
    drawn = StringIO()
    drawing.savefig(drawn, format="svg", metadata={"Date": None})
    return picture({"name": name, "title": title, "caption": caption, "svg": compact(drawn.getvalue())})


def _ranges(spread: pd.DataFrame) -> Iterator[str]:
    """The narrowest and the widest range of the key values: the robust variation alone is blind to groups of drives."""
    keys = spread[spread["is_key"] & (spread["drives"] > 1)]
    keys = keys.assign(range_pct=100 * (keys["max"] / keys["min"] - 1)).sort_values("range_pct", kind="stable")
    if keys.empty:
        return
    told = [
        f"{percent(row['range_pct'])} in {row['measurement']} ({number(row['min'])} to "
        f"{quantity(row['max'], unit_of(row['metric'], row['unit']))} over {number(row['drives'])} drives, robust "
        f"variation {percent(row['robust_cv_pct'])})"
        for _, row in keys.iloc[[0, -1]].iterrows()
    ]
    yield f"From the least drive to the most, key values differ by {' to '.join(dict.fromkeys(told))}."


def _disturbances(deviations: pd.DataFrame, drives: pd.Series) -> Iterator[str]:
    """What tainted the values of each drive: `throttled` is the drive itself, `foreign` its users, others the host."""
    told = deviations[deviations["taint_reason"].notna()].groupby("drive")["taint_reason"]
    reasons = {drive: "; ".join(worst(of)) for drive, of in told}
    yield from (f"{drive}: {reasons[drive]}" for drive in drives if drive in reasons)


def _count(count: int, one: str) -> str:
    return f"{number(count)} {one}{'' if count == 1 else 's'}"


def _some(items: Any) -> str:
    told = [str(one) for one in items]
    return names(told) if len(told) <= _NAMED else f"{', '.join(told[:_NAMED])} and {len(told) - _NAMED} more"
