"""fio's JSON output (`--output-format=json` or `json+`) of single jobs, a file each, of any fio 3.

A file is one run: its group of jobs that differ in nothing is one cell. Files of the same workload are repeats, in the
order of their times. Options that `drivelab` has no name for do not tell cells apart; all are kept in imported.json.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

from drivelab.errors import UserError
from drivelab.imported.fio_numbers import measured, refused
from drivelab.imported.tables import Recording, cell_row
from drivelab.plan.cell import Cell
from drivelab.tables.steps import ROUNDS

KIND = "fio-json"
TEST = "runs"
VIRTUAL_CLOCK = "virtual-clock"
"""What drivelab's virtual drives have for fio's version where the time is theirs too."""
PATTERNS = {
    "read": ("sequential", 100),
    "write": ("sequential", 0),
    "randread": ("random", 100),
    "randwrite": ("random", 0),
    "rw": ("sequential", None),
    "readwrite": ("sequential", None),
    "randrw": ("random", None),
}
"""By `rw`: pattern and share of reads; None: `rwmixread` says."""
_DEFAULTS = {"rw": "read", "bs": "4096", "iodepth": "1", "numjobs": "1", "rwmixread": "50"}
"""fio's own."""
_OTHER_NAMES = {"readwrite": "rw", "blocksize": "bs"}
_UNLIKE = ("bsrange", "bssplit", "rwmixwrite", "rate_iops", "zonemode", "random_distribution")
"""Options that make a workload another one than its cell would say."""
_OF_ONE_JOB = ("name", "filename", "directory", "offset", "cpus_allowed", "numa_cpu_nodes", "write_bw_log",
               "write_lat_log", "write_iops_log", "write_hist_log")  # fmt: skip
"""Options in which jobs of one workload may differ."""
_SIZE = re.compile(r"(\d+)\s*(?:([kmgt])(?:i?b)?|b)?", re.IGNORECASE)
_FACTORS = {"": 1, "k": 1 << 10, "m": 1 << 20, "g": 1 << 30, "t": 1 << 40}


@dataclass(frozen=True)
class Run:
    """One file: what was asked and what came of it."""

    path: Path
    cell: Cell
    started: datetime
    found: Mapping[str, Any]
    """Columns of table `cells`."""
    fio_version: str
    options: Mapping[str, str]
    series: Sequence[Mapping[str, Any]] = ()
    """Of its one-second logs, as `drivelab.fio.series.Series` has them."""

    @property
    def virtual(self) -> bool:
        """Whether fio never ran: drivelab's own drives on the virtual clock write such files too."""
        return VIRTUAL_CLOCK in (self.fio_version, self.options.get("ioengine"))

    @property
    def target(self) -> str | None:
        """The file or drive, where the options name it."""
        return self.options.get("filename") or self.options.get("directory")


def read(path: Path, drive: str) -> list[Recording]:
    """All files NAME.json in a folder and below, or one file, as one recording of `drive`.

    Raises UserError for a folder without any, and names the file that is not the sound result of one workload on the
    one target that all have: text before the JSON, an error, no I/O, missing parts, several jobs at the same time.
    """
    files = sorted(path.rglob("*.json")) if path.is_dir() else [path]
    if not files:
        raise UserError(f"{path}: has no file NAME.json; name a folder of fio's JSON output")
    return [recording(KIND, TEST, "Runs of fio", drive, path, [read_run(one) for one in files])]


def recording(
    kind: str, test: str, title: str, drive: str, root: Path, runs: Sequence[Run], notes: Sequence[str] = ()
) -> Recording:
    """Runs on one target as a recording; cells are numbered in the order of their first run."""
    targets = sorted({one.target for one in runs if one.target})
    if len(targets) > 1:
        raise UserError(
            f"{root}: has results of several targets, {', '.join(targets)}; import the files of one at a time"
        )
    if len({one.virtual for one in runs}) > 1:
        raise UserError(f"{root}: has files of fio and of drivelab's virtual clock; import one kind at a time")
    ordered = sorted(runs, key=lambda one: one.started)
    _refuse_versions(root, ordered)
    _refuse_copies(ordered)
    places = {label: place for place, label in enumerate(dict.fromkeys(one.cell.label for one in ordered))}
    rounds = dict.fromkeys(places, 0)
    rows, series = [], []
    for one in ordered:
        label = one.cell.label
        rounds[label] += 1
        at = {"started": one.started, "elapsed_s": (one.started - ordered[0].started).total_seconds()}
        directory = str(one.path.relative_to(root)) if root.is_dir() else one.path.name
        rows.append(
            cell_row(
                one.cell, kind="loop", number=rounds[label], place=places[label], until=ROUNDS, directory=directory,
                **at, **one.found,
            )
        )  # fmt: skip
        at_place = {"step": 0, "kind": "loop", "round": rounds[label], "cell": places[label]}
        series += [{**at_place, "workload": one.cell.workload, **second} for second in one.series]
    virtual = ordered[0].virtual
    engines = dict.fromkeys(one.options.get("ioengine", "psync") for one in ordered)
    return Recording(
        drive=drive,
        kind=kind,
        test=test,
        title=title,
        cells=rows,
        series=series,
        facts={
            "host": {"fio": " | ".join(dict.fromkeys(_words(one.fio_version) for one in ordered))},
            "test": {
                "engine": " | ".join(_words(one) if virtual else f"fio, {one}" for one in engines),
                "direct": " | ".join(dict.fromkeys(one.options.get("direct", "0") for one in ordered)),
                "target": targets[0] if targets else None,
            },
            "time": {"date": " | ".join(dict.fromkeys(f"{one.started:%Y-%m-%d}" for one in ordered))},
        },
        notes=("Percentiles are known only where fio was asked for those of the whole latency, or for json+.", *notes),
        virtual=virtual,
    )


def _refuse_copies(ordered: Sequence[Run]) -> None:
    """Two files of one run are no two rounds: the same beginning and the same numbers, to the last digit."""
    known: dict[tuple[Any, ...], Path] = {}
    for one in ordered:
        key = (one.cell, one.started, *sorted(one.found.items()))
        if key in known:
            raise refused(one.path, f"is the same run as {known[key]}", "leave one of the two out")
        known[key] = one.path


def _refuse_versions(root: Path, runs: Sequence[Run]) -> None:
    """Repeats of one workload, which are pooled, are of one fio."""
    versions: dict[str, str] = {}
    for one in runs:
        if versions.setdefault(one.cell.label, one.fio_version) != one.fio_version:
            both = f"{versions[one.cell.label]} and {one.fio_version}"
            raise UserError(
                f"{root}: has repeats of {one.cell.label} of several versions of fio, {both}, which are never pooled; "
                "import the files of one version at a time"
            )


def _words(name: str) -> str:
    """As recordings of drivelab have it."""
    return name.replace("-", " ") if name == VIRTUAL_CLOCK else name


def read_run(path: Path) -> Run:
    """One file, checked; raises UserError that names it."""
    document = _document(path)
    try:
        version = str(document["fio version"]).removeprefix("fio-")
        jobs, common = document["jobs"], document.get("global options", {})
        printed_ms = document["timestamp_ms"] if "timestamp_ms" in document else 1000 * document["timestamp"]
        options = [
            _options({**common, **(one.get("job options", {}) if common else one["job options"])}) for one in jobs
        ]
        if version.startswith(("1.", "2.")):
            raise refused(path, f"is of fio {version}, whose JSON has other units", "run fio 3")
        if not jobs:
            raise refused(path, "has no job", "import the files of finished runs")
        cell = _cell(path, jobs, options)
        ended = datetime.fromtimestamp(printed_ms / 1000, UTC)
        found = measured(path, jobs, cell)
    except (KeyError, TypeError, ValueError, AttributeError) as error:
        reason = f"lacks {error}" if isinstance(error, KeyError) else f"is not as fio writes it ({error})"
        raise refused(path, reason, "import fio's JSON as it was written") from None
    return Run(path, cell, ended - timedelta(seconds=found["runtime_s"]), found, version, options[0])


def size_bytes(text: str) -> int:
    """Bytes of a size as fio's options have it: `4k`, `1m`, `4KiB`, `512`; raises ValueError for anything else."""
    match = _SIZE.fullmatch(text.strip())
    if match is None or int(match[1]) == 0:
        raise ValueError(f"'{text}' is no size")
    return int(match[1]) * _FACTORS[(match[2] or "").lower()]


def _document(path: Path) -> Mapping[str, Any]:
    try:
        text = path.read_text(encoding="utf-8", errors="replace").strip()
    except OSError as error:
        raise refused(path, f"cannot be read ({error.strerror})", "check the name") from None
    if not text.startswith("{"):
        line = text.partition("\n")[0][:120] or "nothing"
        raise refused(path, f"begins with '{line}' where JSON should be", "leave the file out, or look what fio said")
    try:
        document, end = json.JSONDecoder().raw_decode(text)
    except json.JSONDecodeError as error:
        raise refused(path, f"is cut off or damaged ({error})", "leave the file out") from None
    if text[end:].strip():
        raise refused(path, "has more than one result, or text after it", "import a file for each result")
    return dict(document)


def _options(given: Mapping[str, Any]) -> dict[str, str]:
    return {_OTHER_NAMES.get(name, name): str(value) for name, value in given.items()}


def _cell(path: Path, jobs: Sequence[Mapping[str, Any]], options: Sequence[Mapping[str, str]]) -> Cell:
    """What all jobs of the file do together."""
    asked = {tuple(sorted((k, v) for k, v in one.items() if k not in _OF_ONE_JOB)) for one in options}
    if len(asked) > 1 or len({job.get("groupid", 0) for job in jobs}) > 1:
        raise refused(path, "has several jobs that differ", "run fio once for each workload")
    one = {**_DEFAULTS, **options[0]}
    if unlike := [name for name in _UNLIKE if name in one]:
        raise refused(path, f"has the option {unlike[0]}, which no cell is told by", "leave the file out")
    if one["rw"] not in PATTERNS:
        raise refused(path, f"has the workload rw={one['rw']}", f"import files of {', '.join(PATTERNS)}")
    if "," in one["bs"]:
        raise refused(path, f"has several block sizes, bs={one['bs']}", "leave the file out")
    pattern, share = PATTERNS[one["rw"]]
    # a group that is reported as one is a single job here, whatever its number of processes
    threads = len(jobs) if len(jobs) > 1 else int(one["numjobs"])
    read_share = int(one["rwmixread"]) if share is None else share
    return Cell(pattern, read_share, size_bytes(one["bs"]), threads, int(one["iodepth"]))
