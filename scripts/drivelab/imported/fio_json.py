"""fio's JSON output (`--output-format=json` or `json+`) of single jobs, a file each, of any fio 3.

A file is one run: its group of jobs that differ in nothing is one cell. Files of the same workload are repeats, in the
order of their times, and must have been asked for with the same options, but for names, files and logs. The options of
every run are kept in imported.json.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

from drivelab.errors import UserError
from drivelab.imported.fio_document import document, refuse_forms
from drivelab.imported.fio_numbers import measured, refused
from drivelab.imported.fio_options import DIRECT, ENGINE, asked_depth, cell_of, named, refuse_unlike_repeats
from drivelab.imported.tables import Recording, cell_row
from drivelab.plan.cell import Cell
from drivelab.tables.steps import ROUNDS

KIND = "fio-json"
TEST = "runs"
VIRTUAL_CLOCK = "virtual-clock"
"""What drivelab's virtual drives have for fio's version where the time is theirs too."""
_PERCENTILES = (
    "Percentiles are known only where fio ran with lat_percentiles=1, of mixes and of several jobs only with json+ too."
)


@dataclass(frozen=True)
class Run:
    """One file: what was asked and what came of it."""

    path: Path
    cell: Cell
    started: datetime
    found: Mapping[str, Any]
    """Columns of table `cells`."""
    fio_version: str
    of_jobs: Sequence[Mapping[str, str]]
    """The options of each job, which differ in names, files, places and logs only."""
    series: Sequence[Mapping[str, Any]] = ()
    """Of its one-second logs, as `drivelab.fio.series.Series` has them."""

    @property
    def options(self) -> Mapping[str, str]:
        """Those of the first job."""
        return self.of_jobs[0]

    @property
    def virtual(self) -> bool:
        """Whether fio never ran: drivelab's own drives on the virtual clock write such files too."""
        return VIRTUAL_CLOCK in (self.fio_version, self.options.get("ioengine"))

    @property
    def waited(self) -> bool:
        """Whether `iodepth` asked for more than the engine, which waits for each I/O, can have in flight."""
        return asked_depth(self.options) > self.cell.queue_depth

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
    refuse_unlike_repeats(root, ((one.cell.label, one.path, one.options) for one in ordered))
    _refuse_copies(ordered)
    places = {label: place for place, label in enumerate(dict.fromkeys(one.cell.label for one in ordered))}
    rounds = dict.fromkeys(places, 0)
    rows, series = [], []
    for one in ordered:
        label = one.cell.label
        rounds[label] += 1
        at = {"started": one.started, "elapsed_s": (one.started - ordered[0].started).total_seconds()}
        directory = _place(root, one)
        rows.append(
            cell_row(
                one.cell, kind="loop", number=rounds[label], place=places[label], until=ROUNDS, directory=directory,
                **at, **one.found,
            )
        )  # fmt: skip
        at_place = {"step": 0, "kind": "loop", "round": rounds[label], "cell": places[label]}
        series += [{**at_place, "workload": one.cell.workload, **second} for second in one.series]
    virtual = ordered[0].virtual
    engines = dict.fromkeys(one.options.get("ioengine", ENGINE) for one in ordered)
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
                "direct": " | ".join(dict.fromkeys(one.options.get("direct", DIRECT) for one in ordered)),
                "target": targets[0] if targets else None,
            },
            "time": {"date": " | ".join(dict.fromkeys(f"{one.started:%Y-%m-%d}" for one in ordered))},
            "runs": {_place(root, one): [dict(of_job) for of_job in one.of_jobs] for one in ordered},
        },
        notes=(_PERCENTILES, *_notes(ordered), *notes),
        virtual=virtual,
    )


def _place(root: Path, one: Run) -> str:
    """What the tables and imported.json name a run by."""
    return str(one.path.relative_to(root)) if root.is_dir() else one.path.name


def _notes(runs: Sequence[Run]) -> Iterator[str]:
    """That depths were asked for which no engine that waits for each I/O can have."""
    asked = [(one.options.get("ioengine", ENGINE), asked_depth(one.options)) for one in runs if one.waited]
    for (engine, depth), count in Counter(asked).items():
        yield (
            f"Runs by fio's engine {engine} with iodepth={depth} are of depth 1, {count} in all: it waits for each "
            "I/O, so that one is in flight."
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
    told = document(path)
    try:
        version = str(told["fio version"]).removeprefix("fio-")
        jobs, common = told["jobs"], told.get("global options", {})
        printed_ms = told["timestamp_ms"] if "timestamp_ms" in told else 1000 * told["timestamp"]
        options = [named({**common, **(one.get("job options", {}) if common else one["job options"])}) for one in jobs]
        if version.startswith(("1.", "2.")):
            raise refused(path, f"is of fio {version}, whose JSON has other units", "run fio 3")
        if not jobs:
            raise refused(path, "has no job", "import the files of finished runs")
        refuse_forms(path, jobs, options)
        cell = cell_of(path, jobs, options)
        found = measured(path, jobs, cell)
        started = _started(path, printed_ms / 1000, found["runtime_s"])
    except (KeyError, TypeError, ValueError, AttributeError, OverflowError) as error:
        reason = f"lacks {error}" if isinstance(error, KeyError) else f"is not as fio writes it ({error})"
        raise refused(path, reason, "import fio's JSON as it was written") from None
    return Run(path, cell, started, found, version, options)


def _started(path: Path, printed_s: float, runtime_s: float) -> datetime:
    try:
        return datetime.fromtimestamp(printed_s, UTC) - timedelta(seconds=runtime_s)
    except (OSError, OverflowError, ValueError):
        reason = f"was printed {printed_s:g} s after 1970, by its timestamp, which is no time"
        raise refused(path, reason, "import fio's JSON as it was written") from None
