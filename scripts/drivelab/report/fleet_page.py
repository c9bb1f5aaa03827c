"""The report of a fleet: a verdict on all drives, outliers, and links to the reports of the drives."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pandas as pd
from jinja2 import Environment, FileSystemLoader, StrictUndefined
from markupsafe import Markup
from matplotlib.figure import Figure as Drawing

from drivelab.analysis import limits
from drivelab.analysis.detectors.outliers import FALSE_ALARM, LEAST_VALUES, MODIFIED_Z
from drivelab.analysis.fleet_parts import measured
from drivelab.analysis.fleet_statistics import VALUE, apart
from drivelab.criteria.repeats import FEWEST
from drivelab.criteria.taint import worst
from drivelab.figures.base.style import svg
from drivelab.figures.kinds.drives.fleet_heat import fleet_heat
from drivelab.figures.kinds.drives.fleet_order import fleet_order
from drivelab.report.html import SCRIPTS, hash_source, packed, packed_json
from drivelab.report.numbers import moment, names, number, percent, quantity, unit_of
from drivelab.report.picture import picture
from drivelab.report.sections import fleet_tables
from drivelab.report.view import Banner, Figure
from drivelab.tables import io

_TEMPLATES = Path(__file__).parent / "templates"
_NAMED = 8
"""Most names in a sentence; it counts the others."""
_ALPHA = 0.05
_OF_DEVIATIONS = ("drive", *VALUE, "is_key", "deviation_pct", "modified_z", "place", "outlier")
"""Columns of the table `fleet_deviations` that the verdict needs."""


def write_report(
    tables: Mapping[str, Path], outcomes: Sequence[Mapping[str, Any]], study: Mapping[str, Any], output: Path
) -> None:
    """Write the report of a fleet.

    `tables` has the four fleet tables, `model_deltas`, and the folder `deltas`; `study` is `Fleet.report_facts`.
    """
    frames = {name: io.read(path, name) for name, path in tables.items() if name != "deltas"}
    deltas = _verdicts(tables["deltas"])
    traces = io.read([part / "tables/traces.parquet" for part in measured(outcomes).values()], "traces")
    lossy = sorted(set(traces.loc[traces["lossy"], "trace"]))
    output.parent.mkdir(parents=True, exist_ok=True)
    output.write_text(render(frames, deltas, study, lossy), encoding="utf-8")


def verdict(tables: Path, basis: str, margin_pct: float) -> list[str]:
    """Return the sentences of `lead` from the folder of a fleet's tables, for the terminal."""
    names = ("fleet_drives", "fleet_spread", "fleet_hosts")
    drives, spread, hosts = (io.read(tables / f"{name}.parquet", name) for name in names)
    deviations = io.read_columns([tables / "fleet_deviations.parquet"], "fleet_deviations", _OF_DEVIATIONS)
    verdicts = _verdicts(tables / "deltas"), io.read(tables / "model_deltas.parquet", "model_deltas")
    return list(lead(drives, spread, deviations, hosts, *verdicts, basis, margin_pct))


def _verdicts(folder: Path) -> pd.DataFrame:
    return io.read_columns(sorted(folder.glob("*/deltas.parquet")), "deltas", ("comparison", "verdict"))


def render(
    frames: Mapping[str, pd.DataFrame], deltas: pd.DataFrame, study: Mapping[str, Any], lossy: Sequence[str] = ()
) -> str:
    """Return the HTML of the report with all texts escaped; `lossy` names traces with missing events."""
    drives, spread, deviations, hosts = (frames[f"fleet_{n}"] for n in ("drives", "spread", "deviations", "hosts"))
    models = frames["model_deltas"]
    keys, margin_pct = deviations[deviations["is_key"]], float(study["comparison"]["margin_pct"])
    counts = {drive: dict(verdicts.value_counts()) for drive, verdicts in deltas.groupby("comparison")["verdict"]}
    summaries = [fleet_tables.failed_table(drives), fleet_tables.spread_table(spread, keys=True),
                 fleet_tables.outliers_table(deviations), fleet_tables.hosts_table(hosts)]  # fmt: skip
    environment = Environment(
        loader=FileSystemLoader(_TEMPLATES), autoescape=True, undefined=StrictUndefined, trim_blocks=True,
        lstrip_blocks=True, keep_trailing_newline=True,
    )  # fmt: skip
    environment.filters["packed"] = packed
    environment.filters["shown"] = lambda value: repr(float(value)).removesuffix(".0")
    script = "".join((_TEMPLATES / name).read_text(encoding="utf-8") for name in SCRIPTS)
    return environment.get_template("fleet.html.j2").render(
        study=study,
        lead=list(lead(drives, spread, deviations, hosts, deltas, models, study["basis"], margin_pct)),
        banners=list(banners(drives, deviations, study, lossy)),
        summaries=[table for table in summaries if table is not None],
        figures=list(_figures(keys)),
        drives=fleet_tables.drives_table(drives, keys, counts),
        values=fleet_tables.spread_table(spread, keys=False),
        rule={"z": MODIFIED_Z, "chance_pct": 100 * FALSE_ALARM, "margin_pct": margin_pct},
        report_date=moment(datetime.now(UTC)),
        proofs={},
        style=Markup((_TEMPLATES / "report.css").read_text(encoding="utf-8")),  # drivelab's file, no data in it
        script=Markup(script),  # likewise
        script_sources=hash_source(script),
        evidence=packed_json({"proofs": [], "jobs": {}}),
    )


def lead(
    drives: pd.DataFrame, spread: pd.DataFrame, deviations: pd.DataFrame, hosts: pd.DataFrame, deltas: pd.DataFrame,
    models: pd.DataFrame, basis: str, margin_pct: float,
) -> Iterator[str]:  # fmt: skip
    """Yield the verdict in sentences: measured drives, models, spread, outliers, hosts, basis.

    `deviations` needs the columns _OF_DEVIATIONS.
    """
    failed = drives[drives["state"] != "measured"]
    steady = int(((drives["not_steady"] == 0) & (drives["state"] == "measured")).sum())
    yield (
        f"{number(len(drives) - len(failed))} of {number(len(drives))} drives were measured; {number(steady)} of them "
        "are steady in every test." + (f" Not measured: {_some(failed['drive'])}." if len(failed) else "")
    )
    for (base, model), rows in models.groupby(["basis", "comparison"], sort=False):
        counts = rows["comparison_n"].max(), rows["basis_n"].max()
        needed = f" (a verdict needs {FEWEST})" if min(counts) < FEWEST else ""
        yield f"As models: {model} against {base}, {counts[0]} against {counts[1]} specimens{needed}, {_counts(rows)}."
    yield from _ranges(spread)
    outlying = drives[drives["outlying"] > 0].sort_values("outlying", ascending=False, kind="stable")
    outliers = [f"{row['drive']} in {row['outlying']} of {_count(row['values'], 'value')}"
                for _, row in outlying.iterrows()]  # fmt: skip
    if outliers:
        heading = "1 drive is an outlier" if len(outliers) == 1 else f"{len(outliers)} drives are outliers"
        yield f"{heading}: {_some(outliers)}."
    elif len(spread) and spread["drives"].max() >= LEAST_VALUES:
        yield (
            f"No drive is an outlier. An outlier has a modified z above {MODIFIED_Z:g}, a chance below "
            f"{100 * FALSE_ALARM:g}\u00a0% among normal values of {_count(spread['drives'].max(), 'drive')}, and is "
            f"more than {margin_pct:g}\u00a0% from the median. This rule cannot detect a group of similar outliers."
        )
    elif len(spread):
        yield f"No drive is called an outlier: the rule needs values of at least {LEAST_VALUES} drives."
    for measurement, rows in apart(deviations, margin_pct).groupby("measurement", sort=False):
        far = "1 drive is" if len(rows) == 1 else f"{number(len(rows))} drives are"
        ends = [percent(end, signed=True) for end in (rows["deviation_pct"].min(), rows["deviation_pct"].max())]
        yield (
            f"In {measurement}, {far} far from the median but not outliers by the rule: {_some(rows['drive'])}, "
            f"by {' to '.join(dict.fromkeys(ends))}."
        )
    if len(hosts):
        different = hosts[hosts["p_adjusted"] <= _ALPHA]
        differences = [f"{row['host']} by {percent(row['difference_pct'], signed=True)} in {row['measurement']}"
                       for _, row in different.iterrows()]  # fmt: skip
        yield (
            f"The drives of some hosts differ from those of the others: {_some(differences)}."
            if differences
            else "The drives of each host do not differ from those of the other hosts."
        )
    if len(deltas):
        yield f"Compared with {basis}, {_counts(deltas)}."
    elif len(drives) > 1:
        yield f"No values are compared with the basis, {basis}: it was not measured, or no other drive was."


def banners(
    drives: pd.DataFrame, deviations: pd.DataFrame, study: Mapping[str, Any], lossy: Sequence[str]
) -> Iterator[Banner]:
    """Yield the limitations of the numbers, most severe first."""
    failed = drives[drives["state"] != "measured"]
    if len(failed):
        yield Banner("excluded", "drives missing", "Drives are missing", "No number of this report includes them.",
                     reasons=tuple(f"{row['drive']}: {row['reason']}" for _, row in failed.iterrows()))  # fmt: skip
    if study["elsewhere"]:
        yield Banner("elsewhere", "drives on other hosts", "Drives on other hosts are missing",
                     f"Not yet measured there: {_some(study['elsewhere'])}.")  # fmt: skip
    for column, banner_id, label, meaning in (
        ("not_steady", "not-steady", limits.NOT_STEADY, "Medians exclude values without steady state."),
        ("tainted", limits.TAINTED, "tainted", "Something disturbed the drive or its host during these measurements."),
    ):
        affected = drives[drives[column] > 0]
        if len(affected):
            counts = [f"{row['drive']} ({_count(row[column], 'value')})" for _, row in affected.iterrows()]
            verb = "has" if len(affected) == 1 else "have"
            title = f"{_count(len(affected), 'drive')} {verb} values that are {label}"
            reasons = tuple(_disturbances(deviations, affected["drive"])) if column == "tainted" else ()
            yield Banner(banner_id, label, title, f"{meaning} Drives: {_some(counts)}.", reasons=reasons)
    if lossy:
        yield Banner("lossy", limits.LOSSY, "A lossy trace was replayed", f"Events are missing from {_some(lossy)}.")
    if study["altered"]:
        yield Banner("reduced", limits.REDUCED, "Reduced protocols",
                     "The measured protocol is not the full-length one.", reasons=tuple(study["altered"]))  # fmt: skip
    if deviations["virtual"].any():
        on_clock = " on the virtual clock" if (deviations["clock"] == "virtual").any() else ""
        why = f": {study['clock_reason']}" if study["clock_reason"] else ""
        yield Banner("virtual", limits.VIRTUAL, "Virtual drives", f"The drives are models{on_clock}, not SSDs{why}.")


def _figures(keys: pd.DataFrame) -> Iterator[Figure]:
    if keys.empty:
        return
    yield _picture(fleet_heat(keys), "fleet_heat", "All drives by measurement",
                   "Key value of each drive relative to the median of all; grey values are unreliable.")  # fmt: skip
    for name, rows in keys.groupby("measurement", sort=False):
        yield _picture(fleet_order(rows), "fleet_order", f"{name}: drives in order",
                       f"{rows['cell_label'].iloc[0]}: the value of each drive, from the lowest.")  # fmt: skip


def _picture(drawing: Drawing, name: str, title: str, caption: str) -> Figure:
    return picture({"name": name, "title": title, "caption": caption, "svg": svg(drawing)})


def _ranges(spread: pd.DataFrame) -> Iterator[str]:
    """Yield the narrowest and widest range of key values: robust variation alone misses groups of drives."""
    keys = spread[spread["is_key"] & (spread["drives"] > 1)]
    keys = keys.assign(range_pct=100 * (keys["max"] / keys["min"] - 1)).sort_values("range_pct", kind="stable")
    if keys.empty:
        return
    ranges = [
        f"{percent(row['range_pct'])} in {row['measurement']} ({number(row['min'])} to "
        f"{quantity(row['max'], unit_of(row['metric'], row['unit']))} over {number(row['drives'])} drives, robust "
        f"variation {percent(row['robust_cv_pct'])})"
        for _, row in keys.iloc[[0, -1]].iterrows()
    ]
    yield f"From the lowest drive to the highest, key values differ by {' to '.join(dict.fromkeys(ranges))}."


def _disturbances(deviations: pd.DataFrame, drives: pd.Series) -> Iterator[str]:
    """Yield each drive's worst taints: `throttled` is the drive, `foreign` its users, others the host."""
    taints = deviations[deviations["taint_reason"].notna()].groupby("drive")["taint_reason"]
    reasons = {drive: "; ".join(worst(texts)) for drive, texts in taints}
    yield from (f"{drive}: {reasons[drive]}" for drive in drives if drive in reasons)


def _count(count: int, thing: str) -> str:
    return f"{number(count)} {thing}{'' if count == 1 else 's'}"


def _counts(deltas: pd.DataFrame) -> str:
    """Count values by verdict: `12 values: 8 same within the margin, 4 cannot tell`."""
    counts = ", ".join(f"{number(count)} {verdict}" for verdict, count in deltas["verdict"].value_counts().items())
    return f"{_count(len(deltas), 'value')}: {counts}"


def _some(items: Any) -> str:
    texts = list(map(str, items))
    return names(texts) if len(texts) <= _NAMED else f"{', '.join(texts[:_NAMED])} and {len(texts) - _NAMED} more"
