"""`drivelab evidence`: trace a published number back to its recordings."""

from __future__ import annotations

import argparse
import json
import shutil
from pathlib import Path
from typing import TYPE_CHECKING, Any

from drivelab.core.errors import UserError

if TYPE_CHECKING:
    import pandas as pd

_MOST_LISTED = 40
_WIDTH = 100
"""Characters per line without a terminal."""


def add_parser(commands: Any) -> None:
    """Register `evidence`."""
    parser = commands.add_parser(
        "evidence",
        help="show the evidence for a published number: recordings, jobs, versions, drive, host",
        description="Finds a number of a study by words of its row, such as op7 pts-iops 'RND 4KiB 0/100' iops, or "
        "COLUMN=VALUE, and computes it again from its recordings. Shows its evidence: value, statistic, samples, "
        "recordings and cells with fio's job and exit status, versions, drive, host, seals, and whether the recordings "
        "are unaltered. If several numbers match, lists them. Exit status 1 unless exactly one matches, and its "
        "recordings are unaltered and give the same number.",
    )
    parser.add_argument("words", nargs="*", metavar="WORD", help="word or COLUMN=VALUE of the number's row")
    parser.add_argument("--row", type=int, metavar="N", help="number of the row, as listed")
    parser.add_argument(
        "--table", choices=("summary", "deltas"), default="summary", help="table of the number (default: summary)"
    )
    parser.add_argument(
        "--results", type=Path, default=Path("results"), metavar="DIR", help="results folder of a study"
    )
    parser.add_argument("--json", action="store_true", help="print all known facts as JSON")
    parser.set_defaults(handler=_evidence)


def _evidence(options: argparse.Namespace) -> int:
    from drivelab.explore.evidence_text import lines
    from drivelab.explore.number_evidence import as_measured, choose, of_delta, of_value
    from drivelab.recording.folders import homes
    from drivelab.tables import io

    def table(name: str) -> pd.DataFrame:
        paths = [path for home in homes(options.results) if (path := home / f"tables/{name}.parquet").is_file()]
        paths += options.results.glob(f"tables/deltas/*/{name}.parquet")  # a fleet keeps them there
        if not paths:
            path = options.results / f"tables/{name}.parquet"
            raise UserError(f"{path}: does not exist; name a study's results folder with --results, or run the study")
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
    conditions = table("conditions")
    conditions = conditions[conditions["facet"] == "reduced"]
    reduced = dict(zip(conditions["recording"], conditions["value"], strict=True))
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
    from drivelab.explore.number_evidence import KEYS

    if options.json:
        names = list(KEYS[options.table])
        matches = [{"row": index, **key} for index, key in zip(rows.index, rows[names].to_dict("records"), strict=True)]
        print(json.dumps({"table": options.table, "fit": matches}, indent=1, ensure_ascii=False))
        return
    value = {"summary": "value", "deltas": "delta_pct"}[options.table]
    for index, row in rows.head(_MOST_LISTED).iterrows():
        print(f"{index}: {name_of(row.to_dict())}: {row[value]:.7g}")
    more = f" (first {_MOST_LISTED} listed)" if len(rows) > _MOST_LISTED else ""
    print(f"{len(rows)} numbers match{more}; add words, or --row N")
