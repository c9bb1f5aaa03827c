"""Import the result folder of bench-fio, which is part of fio-plot.

Files are `OUTPUT/TARGET/BLOCK/MODE-IODEPTH-NUMJOBS.json`, for a mix `OUTPUT/TARGET/MODE+RWMIXREAD/BLOCK/…`, with a last
folder `run-N` for repeated runs (bench_fio/benchlib/supporting.py and runfio.py). Early versions had no folder for the
block size. The files are fio's JSON; a file whose options contradict its name is refused.

The same folders hold fio's logs of averages, under the names in `write_iops_log` and similar options (bench_fio/
benchlib/generatefio.py). Early versions named the logs by depth only, so that runs overwrote each other's logs.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Sequence
from dataclasses import replace
from glob import escape
from pathlib import Path
from typing import Any

from drivelab.core.errors import UserError
from drivelab.fio.series import read_series
from drivelab.imported.fio_json import Run, each, read_run, recording
from drivelab.imported.fio_numbers import refused
from drivelab.imported.fio_options import PATTERNS, asked_depth, size_bytes
from drivelab.imported.tables import Recording

KIND = "fio-plot"
READS = "folder of bench-fio (fio-plot)"
_MODES = "|".join(sorted(PATTERNS, key=len, reverse=True))
_NAME = re.compile(rf"({_MODES})-(\d+)-(\d+)\.json")
_MIX = re.compile(r"(?:randrw|readwrite|rw)(\d{1,3})")
_BLOCK = re.compile(r"\d+[kmg]?b?", re.IGNORECASE)


def read(path: Path, drive: str) -> list[Recording]:
    """Return all results below a folder as one recording of `drive`.

    Raises UserError for a folder without results or with several targets, and as `fio_json.read` does.
    """
    files = sorted(file for file in path.rglob("*.json") if _NAME.fullmatch(file.name))
    if not files:
        raise UserError(f"{path}: has no file such as randread-16-1.json; name a folder of bench-fio")
    runs, faults = each(files, lambda file: [_run(path, file)])
    if faults:
        raise UserError("\n".join(faults))
    logged, notes = _with_series(runs)
    return [recording(KIND, "sweep", "Sweep, bench-fio", drive, path, logged, notes)]


def _with_series(runs: Sequence[Run]) -> tuple[list[Run], list[str]]:
    """Return the runs with the values per second of their logs, and notes on logs that are left out."""
    owners = Counter(_logs(run) for run in runs)
    completed, notes = [], []
    for run in runs:
        logs, interval = _logs(run), run.options.get("log_avg_msec", "0")
        if logs is None or not any(logs.parent.glob(f"{escape(logs.name)}_*.*.log")):
            completed.append(run)
        elif owners[logs] > 1:
            notes.append(f"Logs {logs.name} are left out: {owners[logs]} runs overwrote each other's logs.")
            completed.append(run)
        elif not interval.isdigit() or not int(interval) or 1000 % int(interval):
            notes.append(
                f"Logs {logs.name} are left out: the averaging interval of {interval} ms does not divide a second."
            )
            completed.append(run)
        else:
            completed.append(replace(run, series=_seconds(run, logs, int(interval))))
    return completed, list(dict.fromkeys(notes))


def _logs(run: Run) -> Path | None:
    """Return the path prefix of a run's logs, in the present folder of its JSON; None without logs."""
    name = run.options.get("write_iops_log")
    return run.path.with_name(Path(name).name) if name else None


def _seconds(run: Run, logs: Path, interval_ms: int) -> list[dict[str, Any]]:
    series = read_series(logs.parent, logs.name, interval_ms)
    if series.bad:
        raise UserError(f"{logs.parent}: {series.bad[0].words}; restore the log, or remove it")
    others = {row["direction"] for row in series.rows if not run.values[f"{row['direction']}_ios"]}
    if others:
        raise refused(
            run.path,
            f"has no {others.pop()}s, but its logs {logs.name} have some, so they belong to another run",
            "remove those logs",
        )
    return series.rows


def _run(root: Path, path: Path) -> Run:
    """Read one file; raises UserError if its path contradicts its options."""
    run = read_run(path)
    match = _NAME.fullmatch(path.name)
    assert match is not None
    pattern, share = PATTERNS[match[1]]
    expected = {"pattern": pattern, "queue_depth": int(match[2]), "threads": int(match[3])}
    if share is not None:
        expected["read_share"] = share
    for folder in path.relative_to(root).parent.parts:
        if mix := _MIX.fullmatch(folder):
            expected["read_share"] = int(mix[1])
        elif _BLOCK.fullmatch(folder):
            expected["block_size_bytes"] = size_bytes(folder)
    for name, value in expected.items():
        # a path has the requested depth, even if a synchronous engine only reaches 1
        actual = asked_depth(run.options) if name == "queue_depth" else getattr(run.cell, name)
        if actual != value:
            label = name.replace("_", " ")
            raise UserError(
                f"{path}: its path says {label} {value}, its options say {actual}; the file was moved or changed, "
                "restore the original"
            )
    return run
