"""Describe the files and folders of an archive for readers who do not know drivelab."""

from __future__ import annotations

import re
from pathlib import PurePosixPath

from drivelab.archive.contents import REQUIREMENTS, archived_name
from drivelab.config.study import PARTS, Study
from drivelab.recording.places import RUN_LOCK

_RESULTS = {
    "report/index.html": "The report: all results in one file for a browser",
    "report/pts-pages.pdf": "The report's pages for print",
    "study.txt": "Name of the study of these results",
    "concurrency.json": "Number of measurements that each host may run at a time",
    "complete.txt": "Number of finished drives, written when the last one finished",
    RUN_LOCK: "Lock of the run; empty",
    "cells/": "A folder for each cell: fio's job, its JSON output, stdout, stderr, exit status and one-second logs",
    "condition/": "Jobs that conditioned the drive, a folder for each job",
    "tables/": "Numbers from the recordings, typed Parquet with units in the column names",
    "figures/": "Figures from the tables",
    "report/": "The report",
    "logs/": "Log of each job of the workflow",
    "benchmarks/": "Time and memory of each analysis job",
    "traces/": "Traces of block I/O recorded for the study",
    "virtual/": "State of virtual drives between two runs",
    "status/": "Progress of each drive during the run",
    "plans/": "Plans of unfinished recordings",
    "seals/": "State of the drives of unfinished recordings, by their write counters",
    f"{PARTS}/": "A folder for each drive",
}
"""Descriptions by name below a results folder; those of folders apply at any depth."""
_PART = re.compile(f"{PARTS}/([^/]+)/")


def words_of(name: str, study: Study) -> str:
    """Return the description of a file or folder (trailing slash); only its kind if no more is known."""
    path, results = PurePosixPath(name), archived_name(study.results) + "/"
    if name.startswith(results):
        return _of_results(name.removeprefix(results))
    known = {
        archived_name(study.path): "The study: its drives, measurements and criteria",
        archived_name(study.drives_sheet): "The drive sheet: the drives that may be measured, by serial number",
        "config/applications.yaml": "Applications for measurements",
        "config/virtual_drives.yaml": "Models of virtual drives",
        REQUIREMENTS: "Versions of all Python packages, with checksums",
        ".snakemake/metadata/": "Snakemake's records of how each output was made",
    }
    if name in known:
        return known[name]
    if path.parent == PurePosixPath("config/protocols"):
        return f"Protocol {path.stem}: conditioning of the drives and measured workloads"
    return f"Trace {path.stem}: {'its origin' if path.suffix == '.yaml' else 'its I/O'}"


def _of_results(name: str) -> str:
    if (part := _PART.match(name)) is not None:
        rest = name[part.end() :]
        words = _of_results(rest) if rest else "recordings, tables, figures, report and logs"
        return f"Drive {part[1]} alone: {words[:1].lower()}{words[1:]}"
    last = PurePosixPath(name).name
    if not name.endswith("/"):
        return _RESULTS.get(name, f"File {last} of the results")
    return _RESULTS.get(f"{last}/", f"Folder {last} of the results")
