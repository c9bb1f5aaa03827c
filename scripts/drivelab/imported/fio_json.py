"""Import fio's JSON output (`--output-format=json` or `json+`) of any fio 3, one job or group per run.

A run is one cell: its group of identical jobs. A file holds one run, or several that were appended. Runs of the same
workload are repeats, in the order of their times. Their options must be the same, except for names, files and logs.
Options that act on the measurement are conditions; imported.json keeps all options of every run.
"""

from __future__ import annotations

import json
import re
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

from drivelab.core.errors import UserError
from drivelab.core.files import read_regular
from drivelab.criteria import inert
from drivelab.criteria.inert import IO_PATH, PAGE_CACHE
from drivelab.imported.fio_numbers import RefusalError, measured, refuse_forms
from drivelab.imported.fio_options import (
    DIRECT,
    ENGINE,
    asked_depth,
    cell_of,
    conditions,
    named,
    place,
    refuse_unlike_repeats,
    target_names,
)
from drivelab.imported.tables import Recording, cell_row
from drivelab.plan.cell import Cell
from drivelab.tables.labels import ROUNDS

KIND = "fio-json"
READS = "fio's JSON output: a file, or a folder of files"
_MOST = 10
"""Number of refused files that are named; the rest is counted."""
MOST_RESULT_BYTES = 64 << 20
"""Size limit of fio's JSON, which is parsed whole: that of 100 jobs with all bins has about 20 MiB."""
_HEAD_BYTES = 64 << 10
_MARK = b'"fio version"'
_START = re.compile(r"^[ \t]*(?=\{)", re.MULTILINE)
_MESSAGE = re.compile(r"^(?:<[^>]*> )?((?:fio|note|warning): .+)$", re.MULTILINE | re.IGNORECASE)
_NO_NUMBERS = re.compile(r'("(?:[^"\\]|\\.)*")|-?\b(?:nan|inf)\b')
"""A JSON string, which stays unchanged, or C's text for an undefined number: fio writes `"slope" : -nan`."""
_SUM_OF_CLIENTS = "All clients"
"""Row that `fio --client` adds to those of the jobs (client.c); it has no options."""
_JSON = "run fio with --output-format=json+ --output=FILE"
VIRTUAL_CLOCK = "virtual-clock"
"""What drivelab's virtual drives on the virtual clock give as fio's version."""
_PERCENTILES = (
    "Percentiles are known only if fio ran with lat_percentiles=1; for mixes and several jobs, only with json+ too."
)


@dataclass(frozen=True)
class Run:
    """One result of fio: its workload, options and numbers."""

    path: Path
    cell: Cell
    started: datetime
    values: Mapping[str, Any]
    """Columns of table `cells`."""
    fio_version: str
    of_jobs: Sequence[Mapping[str, str]]
    """The options of each job, which differ only in names, files, offsets, CPUs and logs."""
    number: int | None = None
    """Place among several runs in the file, from 1."""
    messages: Sequence[str] = ()
    """What fio printed beside its JSON; of several runs in the file, the first has it."""

    @property
    def options(self) -> Mapping[str, str]:
        """Options of the first job."""
        return self.of_jobs[0]

    @property
    def waited(self) -> bool:
        """Whether `iodepth` is larger than the queue depth of the engine, which waits for each I/O."""
        return asked_depth(self.options) > self.cell.queue_depth

    @property
    def targets(self) -> list[str]:
        """The files or the drive, if the options name them."""
        return target_names(self.of_jobs)


def read(path: Path, drive: str) -> list[Recording]:
    """Return one file, or all files of fio's JSON in and below a folder, as one recording of `drive`.

    A file of a folder that cannot be imported is left out, with the reason in `left_out`. Raises UserError for a file
    or a folder without any run, and for runs that do not belong together: several targets, versions or sets of options.
    """
    runs, faults = _each(files_of(path) if path.is_dir() else [path])
    return [_recording(drive, path, runs, faults)]


def _each(files: Sequence[Path]) -> tuple[list[Run], list[str]]:
    """Read all files; return their runs, and a line for each file that is refused.

    Raises UserError with these lines if there is no run.
    """
    runs: list[Run] = []
    faults = []
    for file in files:
        try:
            runs += read_runs(file)
        except UserError as error:
            faults.append(str(error))
    if len(faults) > _MOST:
        faults = [*faults[:_MOST], f"and {len(faults) - _MOST} more of {len(files)} files"]
    if not runs:
        raise UserError("\n".join(faults))
    return runs, faults


def _recording(drive: str, root: Path, runs: Sequence[Run], left_out: Sequence[str]) -> Recording:
    """Return runs on one target as a recording; cells are numbered in the order of their first run."""
    targets = sorted({name for run in runs for name in run.targets})
    if len({place(name) for name in targets}) > 1:
        raise UserError(f"{root}: has results of several targets, {', '.join(targets)}; import one target at a time")
    ordered = sorted(runs, key=lambda run: run.started)
    of_version = ((run, {"fio version": run.fio_version, **run.options}) for run in ordered)
    refuse_unlike_repeats(root, ((run.cell.label, run.path, options) for run, options in of_version))
    _refuse_copies(ordered)
    places = {label: place for place, label in enumerate(dict.fromkeys(run.cell.label for run in ordered))}
    rounds = dict.fromkeys(places, 0)
    rows = []
    for run in ordered:
        label = run.cell.label
        rounds[label] += 1
        at = {"started": run.started, "elapsed_s": (run.started - ordered[0].started).total_seconds()}
        directory = _place(root, run)
        rows.append(
            cell_row(
                run.cell, kind="loop", number=rounds[label], place=places[label], until=ROUNDS, directory=directory,
                **at, **run.values,
            )
        )  # fmt: skip
    engines = dict.fromkeys(run.options.get("ioengine", ENGINE) for run in ordered)
    return Recording(
        drive=drive,
        kind=KIND,
        test="runs",
        title="Runs of fio",
        cells=rows,
        facts={
            "host": {"fio": " | ".join(dict.fromkeys(run.fio_version for run in ordered))},
            "test": {
                "engine": " | ".join(f"fio, {engine}" for engine in engines),
                IO_PATH: " | ".join(dict.fromkeys(_io_path(run.options) for run in ordered)),
                "target": " | ".join(targets) or None,
                **conditions(options for run in ordered for options in run.of_jobs),
            },
            "time": {"date": " | ".join(dict.fromkeys(f"{run.started:%Y-%m-%d}" for run in ordered))},
            "runs": {_place(root, run): [dict(options) for options in run.of_jobs] for run in ordered},
        },
        notes=(_PERCENTILES, *_notes(ordered), *(f"Left out: {fault}" for fault in left_out)),
        left_out=left_out,
    )


def _io_path(options: Mapping[str, str]) -> str:
    return PAGE_CACHE if options.get("direct", DIRECT) == DIRECT else inert.DIRECT


def _place(root: Path, run: Run) -> str:
    """Return the name of a run in the tables and in imported.json."""
    name = str(run.path.relative_to(root)) if root.is_dir() else run.path.name
    return name if run.number is None else f"{name}#{run.number}"


def _notes(runs: Sequence[Run]) -> Iterator[str]:
    """Yield fio's messages, and notes on runs whose `iodepth` their synchronous engine cannot reach."""
    said = Counter(message for run in runs for message in run.messages)
    yield from (f"fio printed ({count}x): {message}" for message, count in said.most_common(_MOST))
    requested = [(run.options.get("ioengine", ENGINE), asked_depth(run.options)) for run in runs if run.waited]
    for (engine, depth), count in Counter(requested).items():
        yield (
            f"{count} runs by fio's engine {engine} with iodepth={depth} have queue depth 1: the engine waits for each "
            "I/O, so only one is in flight."
        )


def _refuse_copies(ordered: Sequence[Run]) -> None:
    """Raise UserError for two files of one run, with the same start and the same numbers to the last digit."""
    known: dict[tuple[Any, ...], Path] = {}
    for run in ordered:
        key = (run.cell, run.started, *sorted(run.values.items()))
        if key in known:
            raise UserError(f"{run.path}: is the same run as {known[key]}; leave one of the two files out")
        known[key] = run.path


def read_runs(path: Path) -> list[Run]:
    """Read and check a file; raises UserError that names it."""
    try:
        return _runs(path, *documents(path))
    except RefusalError as error:
        raise UserError(f"{path}: {error}") from None
    except (KeyError, TypeError, ValueError, AttributeError, OverflowError) as error:
        reason = f"lacks {error}" if isinstance(error, KeyError) else f"is not valid output of fio ({error})"
        raise UserError(f"{path}: {reason}; import fio's JSON unchanged") from None


def _runs(path: Path, bodies: Sequence[Mapping[str, Any]], messages: Sequence[str]) -> list[Run]:
    """Return the runs of a file; of the results during a run (`--status-interval`), only the last is read."""
    runs: list[Run] = []
    last: Mapping[str, Any] = {}
    for body in reversed(bodies):
        if not runs or not _is_status(body, last, runs[-1]):
            runs.append(_run(path, body))
            last = body
    runs[-1] = replace(runs[-1], messages=messages)
    if len(runs) > 1:
        runs = [replace(run, number=number) for number, run in zip(range(len(runs), 0, -1), runs, strict=True)]
    return runs[::-1]


def _is_status(body: Mapping[str, Any], last: Mapping[str, Any], run: Run) -> bool:
    """Whether fio printed a result while it ran `run`, whose result is `last`. `elapsed` is rounded up to seconds."""
    if _options_of(body) != _options_of(last):
        return False
    before_run_ms = _printed_ms(last) - 1000 * (float(last["jobs"][0].get("elapsed", 0)) - 1)
    slack_ms = 0 if "timestamp_ms" in body else 1000
    return _printed_ms(body) > min(before_run_ms, 1000 * run.started.timestamp()) + slack_ms


def _options_of(body: Mapping[str, Any]) -> list[Any]:
    return [body.get("global options"), *(job.get("job options") for job in body.get("jobs", ()))]


def _printed_ms(body: Mapping[str, Any]) -> float:
    return float(body["timestamp_ms"] if "timestamp_ms" in body else 1000 * body["timestamp"])


def _run(path: Path, body: Mapping[str, Any]) -> Run:
    version = str(body["fio version"]).removeprefix("fio-")
    if version.startswith(("1.", "2.")):
        raise RefusalError(f"is from fio {version}, whose JSON has other units", "run fio 3")
    jobs, common = body["jobs"], body.get("global options", {})
    options = [named(common, job.get("job options", {}) if common else job["job options"]) for job in jobs]
    if not jobs:
        raise RefusalError("has no job", "import files of finished runs")
    if VIRTUAL_CLOCK in (version, options[0].get("ioengine")):
        raise RefusalError("is of drivelab's virtual clock, not of fio", "compare its study: FOLDER:DRIVE")
    refuse_forms(jobs, options)
    cell = cell_of(jobs, options)
    values = measured(jobs, options, cell)
    started = _started(_printed_ms(body) / 1000, values["runtime_s"])
    return Run(path, cell, started, values, version, options)


def _started(printed_s: float, runtime_s: float) -> datetime:
    try:
        return datetime.fromtimestamp(printed_s, UTC) - timedelta(seconds=runtime_s)
    except (OSError, OverflowError, ValueError):
        reason = f"has an invalid timestamp, {printed_s:g} s after 1970"
        raise RefusalError(reason, "import fio's JSON unchanged") from None


def files_of(folder: Path) -> list[Path]:
    """Return the files in and below a folder that are named NAME.json or hold fio's JSON.

    Raises UserError if there are none.
    """
    if files := [file for file in sorted(folder.rglob("*")) if not file.is_dir() and _is_output(file)]:
        return files
    raise UserError(f"{folder}: has no file with fio's JSON; name another folder, or {_JSON}")


def _is_output(file: Path) -> bool:
    if file.suffix == ".json" or not file.is_file():
        return file.suffix == ".json"
    try:
        with file.open("rb") as stream:
            return _MARK in stream.read(_HEAD_BYTES)
    except OSError:
        return False


def documents(path: Path) -> tuple[list[Mapping[str, Any]], list[str]]:
    """Return the results in a file, and fio's messages around them.

    Other text, such as that of `--output-format=normal,json`, repeats the results. Raises RefusalError for a file
    without results, with a damaged one, and with results of several hosts.
    """
    try:
        text = read_regular(path, MOST_RESULT_BYTES).decode("utf-8-sig", errors="replace")
    except OSError as error:
        raise RefusalError(f"cannot be read ({error.strerror})", "check the name") from None
    if not text.strip():
        raise RefusalError("is empty", "leave the file out")
    start = _START.search(text)
    if start is None:
        line = text.strip().partition("\n")[0][:120]
        raise RefusalError(f"has no JSON; it begins with '{line}'", _JSON)
    around = [text[: start.end()]]
    text = _NO_NUMBERS.sub(lambda match: match[1] or "null", text[start.end() :])
    bodies: list[Mapping[str, Any]] = []
    position = 0
    while True:
        try:
            body, end = json.JSONDecoder(object_pairs_hook=_object).raw_decode(text, position)
        except ValueError as error:
            raise RefusalError(f"is truncated or damaged ({error})", "leave the file out") from None
        except RecursionError:
            raise RefusalError("is nested deeper than any output of fio", "leave the file out") from None
        bodies.append(_of_one_host(body))
        start = _START.search(text, end)
        around.append(text[end : start.end() if start else None])
        if start is None:
            return bodies, [message.strip() for part in around for message in _MESSAGE.findall(part)]
        position = start.end()


def _object(pairs: Sequence[tuple[str, Any]]) -> dict[str, Any]:
    """Return a JSON object. An option given twice is there twice: `filename` adds a target, others override."""
    names = [str(value) for name, value in pairs if name == "filename"]
    return {**dict(pairs), **({"filename": ":".join(names)} if names else {})}


def _of_one_host(body: dict[str, Any]) -> dict[str, Any]:
    """Return a document with `jobs`, also that of `fio --client`, which has `client_stats` instead."""
    if "client_stats" not in body or "jobs" in body:
        return body
    jobs = [job for job in body["client_stats"] if job.get("jobname") != _SUM_OF_CLIENTS or "job options" in job]
    hosts = sorted({str(job.get("hostname")) for job in jobs})
    if len(hosts) > 1:
        raise RefusalError(
            f"is of several hosts ({', '.join(hosts)}), whose drives differ",
            f"run fio for each host by itself, such as fio --client={hosts[0]} JOBFILE",
        )
    return {**body, "jobs": jobs}
