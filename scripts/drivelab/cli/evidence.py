"""`drivelab evidence`: what a published number stands on."""

from __future__ import annotations

import argparse
import json
import shutil
from pathlib import Path
from typing import TYPE_CHECKING, Any

from drivelab.errors import UserError

if TYPE_CHECKING:
    import pandas as pd

_MOST_LISTED = 40
_WIDTH = 100
"""Characters in a line where there is no terminal."""


def add_parser(commands: Any) -> None:
    """Register `evidence`."""
    one = commands.add_parser(
        "evidence",
        help="what a published number stands on: recordings, jobs, versions, drive, host",
        description="Finds a number of a study by words of its row, such as op7 pts-iops 'RND 4KiB 0/100' iops, or "
        "COLUMN=VALUE, and says what it stands on: value, statistic, samples, recordings and cells with fio's job and "
        "exit status, versions, drive, host, seals, and whether the recordings are as they were measured. Fit several, "
        "it lists them. Ends with status 1 unless one fits and its recordings are as they were measured.",
    )
    one.add_argument("words", nargs="*", metavar="WORD", help="what is known of the number")
    one.add_argument("--row", type=int, metavar="N", help="number of the row, as the list has it")
    one.add_argument(
        "--table", choices=("summary", "deltas"), default="summary", help="where the number stands (summary)"
    )
    one.add_argument("--results", type=Path, default=Path("results"), metavar="DIR", help="results folder of a study")
    one.add_argument("--json", action="store_true", help="print all that is known as JSON")
    one.set_defaults(handler=_evidence)


def _evidence(options: argparse.Namespace) -> int:
    from drivelab.explore.evidence import as_measured, of_delta, of_value
    from drivelab.explore.evidence_text import lines
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
    if options.json:
        print(json.dumps(facts, indent=1, ensure_ascii=False, default=str))
    else:
        print("\n".join(lines(facts, shutil.get_terminal_size((_WIDTH, 0)).columns)))
    return 0 if as_measured(facts) else 1


def _list(rows: pd.DataFrame, options: argparse.Namespace) -> None:
    from drivelab.explore.evidence_text import name_of
    from drivelab.explore.published import KEYS

    if options.json:
        names = list(KEYS[options.table])
        found = [{"row": index, **one} for index, one in zip(rows.index, rows[names].to_dict("records"), strict=True)]
        print(json.dumps({"table": options.table, "fit": found}, indent=1, ensure_ascii=False))
        return
    value = {"summary": "value", "deltas": "delta_pct"}[options.table]
    for index, row in rows.head(_MOST_LISTED).iterrows():
        print(f"{index}: {name_of(row.to_dict())}: {row[value]:.7g}")
    more = f", of which the first {_MOST_LISTED} are listed" if len(rows) > _MOST_LISTED else ""
    print(f"{len(rows)} numbers fit{more}; add words, or --row N")
