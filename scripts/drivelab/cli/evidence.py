"""`drivelab evidence`: what a published number stands on."""

from __future__ import annotations

import argparse
import json
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

from drivelab.errors import UserError

if TYPE_CHECKING:
    import pandas as pd

_MOST_LISTED = 40
_NUMBERS = ("unit", "statistic", "n", "samples", "scope", "verdict", "taint_reason", "doubts", "remarks")


def add_parser(commands: Any) -> None:
    """Register `evidence`."""
    one = commands.add_parser(
        "evidence",
        help="what a published number stands on: recordings, jobs, versions, drive, host",
        description="Finds a number of a study by words of its row, such as op7 pts-iops 'RND 4KiB 0/100' iops, or "
        "COLUMN=VALUE, and says what it stands on: value, statistic, samples, recordings and cells with fio's job and "
        "exit status, versions, drive, host, seals, and whether the recordings are as they were measured. Fit several, "
        "it lists them.",
    )
    one.add_argument("words", nargs="*", metavar="WORD", help="what is known of the number")
    one.add_argument("--row", type=int, metavar="N", help="number of the row, as the list has it")
    one.add_argument("--table", choices=("summary", "deltas"), default="summary")
    one.add_argument("--results", type=Path, default=Path("results"), metavar="DIR", help="results folder of a study")
    one.add_argument("--json", action="store_true", help="print all that is known as JSON")
    one.set_defaults(handler=_evidence)


def _evidence(options: argparse.Namespace) -> int:
    from drivelab.explore.evidence import of_delta, of_value
    from drivelab.explore.published import choose
    from drivelab.recording.places import homes
    from drivelab.tables import io

    def table(name: str) -> pd.DataFrame:
        paths = [path for one in homes(options.results) if (path := one / f"tables/{name}.parquet").is_file()]
        paths += options.results.glob(f"tables/deltas/*/{name}.parquet")  # of a fleet
        if not paths:
            path = options.results / f"tables/{name}.parquet"
            raise UserError(f"{path}: is not there; name a study's results folder with --results, or run the study")
        return io.read(paths, name)

    rows = table(options.table).reset_index(drop=True)
    rows.index += 1
    if options.row is not None:
        if options.row not in rows.index:
            raise UserError(f"{options.table} has no row {options.row}; it has rows 1 to {len(rows)}")
        rows = rows.loc[[options.row]]
    rows = choose(rows, options.table, options.words)
    if len(rows) != 1:
        _list(rows, options)
        return 1
    known = table("conditions")
    known = known[known["facet"] == "reduced"]
    reduced = dict(zip(known["recording"], known["value"], strict=True))
    (row,) = rows.to_dict("records")
    if options.table == "summary":
        facts = of_value(row, options.results, reduced)
    else:
        facts = of_delta(row, table("summary"), options.results, reduced)
    facts = {"table": options.table, "row": int(rows.index[0]), **facts}
    print(json.dumps(facts, indent=1, ensure_ascii=False, default=str) if options.json else "\n".join(_lines(facts)))
    return 0


def _list(rows: pd.DataFrame, options: argparse.Namespace) -> None:
    from drivelab.explore.published import KEYS

    if options.json:
        names = list(KEYS[options.table])
        found = [{"row": index, **one} for index, one in zip(rows.index, rows[names].to_dict("records"), strict=True)]
        print(json.dumps({"table": options.table, "fit": found}, indent=1, ensure_ascii=False))
        return
    value = {"summary": "value", "deltas": "delta_pct"}[options.table]
    for index, row in rows.head(_MOST_LISTED).iterrows():
        print(f"{index}: {_name(row)}: {row[value]:.7g}")
    more = f", of which the first {_MOST_LISTED} are listed" if len(rows) > _MOST_LISTED else ""
    print(f"{len(rows)} numbers fit{more}; add words, or --row N")


def _name(row: Mapping[str, Any]) -> str:
    drive = row["drive"] if "drive" in row else f"{row['comparison']} against {row['basis']}"
    return f"{drive}, {row['measurement']}, {row['cell_label']}, {row['metric']}"


def _lines(facts: Mapping[str, Any]) -> Iterator[str]:
    if facts.get("table") == "deltas":
        yield f"{_name(facts)}: {_told(facts['delta_pct'])} %"
        yield from _numbers(facts)
        for side in ("basis", "comparison"):
            for one in facts[f"{side}_evidence"]:
                yield ""
                yield from _lines(one)
        return
    yield f"{_name(facts)}: {facts['value']!r}"
    yield from _numbers(facts)
    for one in facts["recordings"]:
        yield from _of_recording(one)


def _numbers(facts: Mapping[str, Any]) -> Iterator[str]:
    for name in _NUMBERS:
        if facts.get(name) not in (None, []):
            yield f"    {name.replace('_', ' ')}: {_told(facts[name])}"


def _of_recording(one: Mapping[str, Any]) -> Iterator[str]:
    yield f"  {one['folder']}"
    for name, value in (
        ("measured", f"{one['started']} to {one['finished']}, {one['clock']} clock"),
        ("protocol", f"{one['protocol']}, plan {one['plan_digest']}, run {one['run']}, scenario {one['scenario']}"),
        ("reduced", one["alterations"]),
        ("drive", one["drive"]),
        ("host", one["host"]),
        ("settings", {row["name"]: row["state"] for row in one["settings"] or ()}),
        ("versions", one["versions"]),
        ("gaps", one["gaps"]),
        ("checksums now", one["checksums"] + "".join(f"; {name}: {what}" for name, what in one["altered"].items())),
    ):
        if value:
            yield f"    {name}: {_told(value)}"
    for seal in one["seals"]:
        yield f"    seal of {seal['stage']}: {'intact' if seal['intact'] else 'BROKEN'}, {seal['reason']}"
    for cell in one["cells"]:
        yield from _of_cell(cell)


def _of_cell(cell: Mapping[str, Any]) -> Iterator[str]:
    from drivelab.virtual.clock import ENGINE

    yield f"    {cell['directory']}"
    status = "" if cell["exit_status"] is None else f", exit status {cell['exit_status']}"
    if cell["job"] is not None:
        words = " ".join(cell["job"].split("\n")).strip()
        ran = "simulated" if cell["engine"] == ENGINE else (cell["command"] or "fio, its command not recorded").strip()
        yield f"      {ran}{status}; job.fio: {words}"
    else:
        yield f"      {cell['engine']}{status}{'; ' + _told(cell['choice']) if cell['choice'] else ''}"
    if cell["output"] is not None:
        yield f"      {cell['output']}, SHA-256 {cell['output_sha256']}"


def _told(value: Any) -> str:
    if isinstance(value, Mapping):
        return ", ".join(f"{name} {_told(one)}" for name, one in value.items() if one not in (None, ""))
    if isinstance(value, list):
        return ", ".join(map(_told, value))
    return "yes" if value is True else "no" if value is False else str(value)
