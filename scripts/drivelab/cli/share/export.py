"""`drivelab export`: figures and tables of a study for a paper."""

from __future__ import annotations

import argparse
import json
from pathlib import Path
from typing import Any

from drivelab.core.units import counted

_NONE = "none"


def add_parser(commands: Any) -> None:
    """Register `export`."""
    parser = commands.add_parser(
        "export",
        help="write figures and tables of a study for a paper",
        description="Writes the figures of a finished study in the size of a paper's columns, its tables, a caption "
        "for each with the labels of the data, and a notebook cell that draws each figure again.",
    )
    parser.add_argument(
        "--results", type=Path, default=Path("results"), metavar="DIR", help="results folder (default: results)"
    )
    parser.add_argument("-o", "--output", type=Path, required=True, metavar="FOLDER", help="a new folder")
    parser.add_argument(
        "--figures", choices=("pdf", "svg", "png", _NONE), default="pdf", help="format of the figures (default: pdf)"
    )
    parser.add_argument(
        "--tables", choices=("latex", "csv", "md", _NONE), default="latex", help="format of the tables (default: latex)"
    )
    parser.add_argument(
        "--style",
        choices=("ieee", "report"),
        default="ieee",
        help="ieee: 3.5 or 7.16 inches wide, 8 pt, without titles; report: as in the report (default: ieee)",
    )
    parser.add_argument(
        "--select", default="*", metavar="PATTERN", help="only figures whose path matches, such as 'comparison/*'"
    )
    parser.add_argument("--all-runs", action="store_true", help="the figures of all runs, not only of the first")
    parser.add_argument("--json", action="store_true", help="print the list of files as JSON")
    parser.set_defaults(handler=_export)


def _export(options: argparse.Namespace) -> int:
    from drivelab.core.terminal import progress_line
    from drivelab.explore.export import Wanted, export

    figures, tables = (None if name == _NONE else name for name in (options.figures, options.tables))
    wanted = Wanted(figures, tables, options.style, options.select, options.all_runs)
    with progress_line() as show:
        about = export(options.results, options.output, wanted, lambda done, of: show(f"figure {done + 1} of {of}"))
    if options.json:
        print(json.dumps(about, indent=1, ensure_ascii=False))
    else:
        print(f"{options.output}/README.md: {counted(len(about['figures']), 'figure')} and "
              f"{counted(len(about['tables']), 'table')} with captions")  # fmt: skip
    return 0
