"""The folder that bench-fio leaves behind, which belongs to fio-plot.

`OUTPUT/TARGET/BLOCK/MODE-IODEPTH-NUMJOBS.json`, of a mix `OUTPUT/TARGET/MODE+RWMIXREAD/BLOCK/…`, with a folder `run-N`
in the end where runs are repeated (bench_fio/benchlib/supporting.py and runfio.py); early versions had no folder for
the block size. The files are fio's JSON, whose options say the same as the names: what contradicts is refused.

Beside them are fio's logs of averages, by the names that `write_iops_log` and its like say (bench_fio/benchlib/
generatefio.py). Early versions named them after the depth alone, so that runs wrote over each other's.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Sequence
from dataclasses import replace
from glob import escape
from pathlib import Path
from typing import Any

from drivelab.errors import UserError
from drivelab.fio.series import read_series
from drivelab.imported.fio_json import Run, read_run, recording
from drivelab.imported.fio_numbers import refused
from drivelab.imported.fio_options import PATTERNS, asked_depth, size_bytes
from drivelab.imported.tables import Recording

KIND = "fio-plot"
_MODES = "|".join(sorted(PATTERNS, key=len, reverse=True))
_NAME = re.compile(rf"({_MODES})-(\d+)-(\d+)\.json")
_MIX = re.compile(r"(?:randrw|readwrite|rw)(\d{1,3})")
_BLOCK = re.compile(r"\d+[kmg]?b?", re.IGNORECASE)


def read(path: Path, drive: str) -> list[Recording]:
    """All results below a folder as one recording of `drive`.

    Raises UserError for a folder without any, for one with several targets, and as `fio_json.read` does.
    """
    files = sorted(one for one in path.rglob("*.json") if _NAME.fullmatch(one.name))
    if not files:
        raise UserError(f"{path}: has no file such as randread-16-1.json; name the folder that bench-fio wrote")
    runs = [_run(path, one) for one in files]
    logged, notes = _with_series(runs)
    return [recording(KIND, "sweep", "Sweep, bench-fio", drive, path, logged, notes)]


def _with_series(runs: Sequence[Run]) -> tuple[list[Run], list[str]]:
    """Runs with what their logs say of each second, and what is to be noted of logs that are left out."""
    owners = Counter(_logs(one) for one in runs)
    found, notes = [], []
    for one in runs:
        logs, interval = _logs(one), one.options.get("log_avg_msec", "0")
        if logs is None or not any(logs.parent.glob(f"{escape(logs.name)}_*.*.log")):
            found.append(one)
        elif owners[logs] > 1:
            notes.append(f"Logs {logs.name} are left out: {owners[logs]} runs wrote to them, one over the other.")
            found.append(one)
        elif not interval.isdigit() or not int(interval) or 1000 % int(interval):
            notes.append(f"Logs {logs.name} are left out: averages over {interval} ms do not fill a second.")
            found.append(one)
        else:
            found.append(replace(one, series=_seconds(one, logs, int(interval))))
    return found, list(dict.fromkeys(notes))


def _logs(run: Run) -> Path | None:
    """What the names of a run's logs begin with, in the folder where its JSON is now."""
    name = run.options.get("write_iops_log")
    return run.path.with_name(Path(name).name) if name else None


def _seconds(run: Run, logs: Path, interval_ms: int) -> list[dict[str, Any]]:
    series = read_series(logs.parent, logs.name, interval_ms)
    if series.bad:
        raise UserError(f"{logs.parent}: {series.bad[0].words}; restore the log, or remove it")
    others = {row["direction"] for row in series.rows if not run.found[f"{row['direction']}_ios"]}
    if others:
        raise refused(
            run.path,
            f"has no {others.pop()}s, but its logs {logs.name} have, which another run wrote",
            "remove those logs",
        )
    return series.rows


def _run(root: Path, path: Path) -> Run:
    """One file; its place must say what its options say."""
    run = read_run(path)
    match = _NAME.fullmatch(path.name)
    assert match is not None
    pattern, share = PATTERNS[match[1]]
    said = {"pattern": pattern, "queue_depth": int(match[2]), "threads": int(match[3])}
    if share is not None:
        said["read_share"] = share
    for folder in path.relative_to(root).parent.parts:
        if mix := _MIX.fullmatch(folder):
            said["read_share"] = int(mix[1])
        elif _BLOCK.fullmatch(folder):
            said["block_size_bytes"] = size_bytes(folder)
    for name, value in said.items():
        # a sweep goes over the depths that were asked for, also where an engine that waits for each I/O has but 1
        found = asked_depth(run.options) if name == "queue_depth" else getattr(run.cell, name)
        if found != value:
            words = name.replace("_", " ")
            raise UserError(
                f"{path}: its place says {words} {value}, its options say {found}; the file was moved or changed, put "
                "the right one there"
            )
    return run
