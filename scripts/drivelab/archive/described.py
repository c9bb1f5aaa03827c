"""What the files and folders of an archive are, in words, for readers who have never seen drivelab."""

from __future__ import annotations

import re
from pathlib import PurePosixPath

from drivelab.archive.contents import REQUIREMENTS, archived_name
from drivelab.config.study import PARTS, Study
from drivelab.recording.places import RUN_LOCK

_RESULTS = {
    "report/index.html": "The report: all results, one file to be read in a browser",
    "report/pts-pages.pdf": "The report's pages for print",
    "study.txt": "Name of the study that the results are of",
    "concurrency.json": "How many measurements each host was allowed to make at a time",
    "complete.txt": "Number of drives that are done, written when the last one was",
    RUN_LOCK: "Lock of the run; empty",
    "cells/": "A folder for each cell: fio's job, its JSON output, stdout, stderr, exit status and one-second logs",
    "condition/": "What the drive was conditioned with, a folder for each job",
    "tables/": "Numbers made of the recordings, typed Parquet with units in the column names",
    "figures/": "Figures made of the tables",
    "report/": "The report",
    "logs/": "What each job of the workflow said",
    "traces/": "Traces of block I/O that were recorded for the study",
    "virtual/": "State of virtual drives between two runs",
    "status/": "How far each drive was, for those who watched the run",
    "plans/": "Plans of recordings that are not finished",
    "seals/": "In which state the drives of recordings that are not finished were left, by their write counters",
    f"{PARTS}/": "A folder for each drive",
}
"""By the name below a results folder, or, of a folder, below anything."""
_PART = re.compile(f"{PARTS}/([^/]+)/")


def words_of(name: str, study: Study) -> str:
    """What a file, or a folder with a slash at its end, is; its kind alone where nothing more is known."""
    path, results = PurePosixPath(name), archived_name(study.results) + "/"
    if name.startswith(results):
        return _of_results(name.removeprefix(results))
    known = {
        archived_name(study.path): "The study: its drives, its measurements, and how they are judged",
        archived_name(study.drives_sheet): "The drive sheet: which drives may be measured, by serial number",
        "config/applications.yaml": "Applications that studies can measure with",
        "config/virtual_drives.yaml": "Models of virtual drives",
        REQUIREMENTS: "Versions of all Python packages, with checksums",
        ".snakemake/metadata/": "Snakemake's records of how each output came about",
    }
    if name in known:
        return known[name]
    if path.parent == PurePosixPath("config/protocols"):
        return f"Protocol {path.stem}: how the drives were conditioned, and what was measured"
    return f"Trace {path.stem}: {'where it is from' if path.suffix == '.yaml' else 'its I/O'}"


def _of_results(name: str) -> str:
    if (part := _PART.match(name)) is not None:
        rest = name[part.end() :]
        words = _of_results(rest) if rest else "recordings, tables, figures, report and logs"
        return f"Drive {part[1]} alone: {words[:1].lower()}{words[1:]}"
    last = PurePosixPath(name).name
    if not name.endswith("/"):
        return _RESULTS.get(name, f"File {last} of the results")
    return _RESULTS.get(f"{last}/", f"Folder {last} of the results")
