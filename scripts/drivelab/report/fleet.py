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

from drivelab.analysis.detectors.outliers import FALSE_ALARM, MODIFIED_Z
from drivelab.figures.fleet_heat import fleet_heat
from drivelab.figures.fleet_order import fleet_order
from drivelab.figures.style import styled
from drivelab.figures.svg import compact
from drivelab.report import fleet_tables
from drivelab.report.embedded import hash_source, packed_json
from drivelab.report.numbers import moment, names, number, percent
from drivelab.report.picture import picture
from drivelab.report.view import Banner, Figure
from drivelab.tables import io
from drivelab.tables.fleet import measured

_TEMPLATES = Path(__file__).parent / "templates"
_NAMED = 8
"""Things that a sentence names; the others are counted."""
_ALPHA = 0.05
_TAINTED = "tainted"


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


def verdict(tables: Path, basis: str) -> list[str]:
    """The sentences of `lead` from the folder of a fleet's tables, for the terminal."""
    names = ("fleet_drives", "fleet_spread", "fleet_hosts")
    drives, spread, hosts = (io.read(tables / f"{name}.parquet", name) for name in names)
    return list(lead(drives, spread, hosts, _verdicts(tables / "deltas"), basis))


def _verdicts(folder: Path) -> pd.DataFrame:
    return io.read_columns(sorted(folder.glob("*/deltas.parquet")), "deltas", ("comparison", "verdict"))


def render(
    frames: Mapping[str, pd.DataFrame], deltas: pd.DataFrame, study: Mapping[str, Any], lossy: Sequence[str] = ()
) -> str:
    """HTML of the report; every text in it is escaped. `lossy` names traces of which events are missing."""
    drives, spread, deviations, hosts = (frames[f"fleet_{one}"] for one in ("drives", "spread", "deviations", "hosts"))
    keys = deviations[deviations["is_key"]]
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
        lead=list(lead(drives, spread, hosts, deltas, study["basis"])),
        banners=list(banners(drives, deviations, study, lossy)),
        summaries=[one for one in found if one is not None],
        figures=list(_figures(keys)),
        drives=fleet_tables.drives_table(drives, keys, counts),
        values=fleet_tables.spread_table(spread, keys=False),
        rule={"z": MODIFIED_Z, "chance_pct": 100 * FALSE_ALARM, "margin_pct": study["comparison"]["margin_pct"]},
        report_date=moment(datetime.now(UTC)),
        proofs={},
        style=Markup((_TEMPLATES / "report.css").read_text(encoding="utf-8")),  # our own file: no part of it is data
        script=Markup(script),  # likewise
        script_sources=hash_source(script),
        evidence=packed_json({"proofs": [], "jobs": {}}),
    )


def lead(
    drives: pd.DataFrame, spread: pd.DataFrame, hosts: pd.DataFrame, deltas: pd.DataFrame, basis: str
) -> Iterator[str]:
    """The verdict in sentences: how many were measured, how they are spread, which stand apart, hosts, basis."""
    failed = drives[drives["state"] != "measured"]
    steady = int(((drives["not_steady"] == 0) & (drives["state"] == "measured")).sum())
    yield (
        f"{number(len(drives) - len(failed))} of {number(len(drives))} drives were measured, {number(steady)} of them "
        "steady in every test." + (f" Not measured: {_some(failed['drive'])}." if len(failed) else "")
    )
    keys = spread[spread["is_key"] & spread["robust_cv_pct"].notna()].sort_values("robust_cv_pct")
    if len(keys):
        ends = [f"{percent(row['robust_cv_pct'])} in {row['measurement']}" for _, row in keys.iloc[[0, -1]].iterrows()]
        spans = " to ".join(dict.fromkeys(ends))
        yield f"Key values vary from drive to drive by {spans} (robust coefficient of variation)."
    apart = drives[drives["outlying"] > 0].sort_values("outlying", ascending=False, kind="stable")
    told = [f"{row['drive']} in {row['outlying']} of {row['values']} values" for _, row in apart.iterrows()]
    yield f"{_drives(len(apart))} from the fleet: {_some(told)}." if told else "No drive differs from the fleet."
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
        ("tainted", "tainted", _TAINTED, "Something disturbed the host while they were measured."),
    ):
        of = drives[drives[column] > 0]
        if len(of):
            told = [f"{row['drive']} ({row[column]} values)" for _, row in of.iterrows()]
            yield Banner(one, label, f"{len(of)} drives have values that are {label}", f"{words} {_some(told)}.")
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


def _drives(count: int) -> str:
    return "1 drive differs" if count == 1 else f"{count} drives differ"


def _some(items: Any) -> str:
    told = [str(one) for one in items]
    return names(told) if len(told) <= _NAMED else f"{', '.join(told[:_NAMED])} and {len(told) - _NAMED} more"
