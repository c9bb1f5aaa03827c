"""What the options of fio's jobs say of a run: which cell it is, and whether it is a repeat of another."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

from drivelab.errors import UserError
from drivelab.imported.fio_numbers import refused
from drivelab.plan.cell import Cell

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
ENGINE, DIRECT = "psync", "0"
"""fio's own, where the options do not say."""
_DEFAULTS = {"bs": "4096", "iodepth": "1", "numjobs": "1", "rwmixread": "50"}
"""fio's own of what a cell is told by; `rw` has one too, but a file that does not say it has lost its options."""
_OTHER_NAMES = {"readwrite": "rw", "blocksize": "bs"}
_UNLIKE = {"bsrange": "", "bssplit": "", "rwmixwrite": "", "zonemode": "none", "zonesize": "0",
           "random_distribution": "random", "percentage_random": "100", "read_iolog": ""}  # fmt: skip
"""Options that make a workload another one than its cell would say, and the value with which they do not."""
_LIMITS = {"rate": "0", "rate_min": "0", "rate_iops": "0", "rate_iops_min": "0", "rate_process": "linear",
           "thinktime": "0", "latency_target": "0", "flow": "0"}  # fmt: skip
"""Options under which a drive does less than it can, and the value that is none."""
_NAMES_AND_FILES = ("name", "description", "filename", "directory", "filename_format")
_LOGS = re.compile(r"write_\w+_log|log_\w+|per_job_logs")
_OF_ONE_JOB = {*_NAMES_AND_FILES, "offset", "cpus_allowed", "numa_cpu_nodes"}
"""Options in which jobs of one workload may differ, as in the names of logs."""
_OF_REPEATS = {*_NAMES_AND_FILES, "rw", *_DEFAULTS, "group_reporting", "lat_percentiles", "clat_percentiles",
               "slat_percentiles", "percentile_list", "randseed"}  # fmt: skip
"""Options in which repeats may differ, as in those of logs: names, what a cell is told by, what is reported, seeds."""
_SYNCHRONOUS = ("psync", "sync", "vsync", "pvsync", "pvsync2", "mmap")
"""Engines that wait for each I/O, so that one is in flight whatever `iodepth` says."""
_MOSTLY_PCT = 99.0
_WHOLE = re.compile(r"[0-9]{1,9}")
_SIZE = re.compile(r"([0-9]+)\s*(?:([kmgt])(?:i?b)?|b)?", re.IGNORECASE)
_FACTORS = {"": 1, "k": 1 << 10, "m": 1 << 20, "g": 1 << 30, "t": 1 << 40}


def named(given: Mapping[str, Any]) -> dict[str, str]:
    """Options of a job by one name each."""
    return {_OTHER_NAMES.get(name, name): str(value) for name, value in given.items()}


def size_bytes(text: str) -> int:
    """Bytes of a size as fio's options have it: `4k`, `1m`, `4KiB`, `512`; raises ValueError for anything else."""
    match = _SIZE.fullmatch(text.strip())
    if match is None or int(match[1]) == 0:
        raise ValueError(f"'{text}' is no size")
    return int(match[1]) * _FACTORS[(match[2] or "").lower()]


def cell_of(path: Path, jobs: Sequence[Mapping[str, Any]], options: Sequence[Mapping[str, str]]) -> Cell:
    """What all jobs of the file do together; raises UserError for what no cell is."""
    asked = {
        tuple(sorted((k, v) for k, v in one.items() if k not in _OF_ONE_JOB and not _LOGS.fullmatch(k)))
        for one in options
    }
    if len(asked) > 1 or len({job.get("groupid", 0) for job in jobs}) > 1:
        raise refused(path, "has several jobs that differ", "run fio once for each workload")
    if "rw" not in options[0]:
        raise refused(
            path,
            "does not say rw, neither among the options of its job nor among the global ones, so that its workload is "
            "not known",
            "import fio's JSON as it was written, or give rw to fio",
        )
    one = {**_DEFAULTS, **options[0]}
    _refuse_unlike(path, one)
    if one["rw"] not in PATTERNS:
        raise refused(path, f"has the workload rw={one['rw']}", f"import files of {', '.join(PATTERNS)}")
    if "," in one["bs"]:
        raise refused(path, f"has several block sizes, bs={one['bs']}", "leave the file out")
    pattern, share = PATTERNS[one["rw"]]
    read_share = _whole(path, one, "rwmixread", 0, 100) if share is None else share
    # a group that is reported as one is a single job here, whatever its number of processes
    numjobs = _whole(path, one, "numjobs", 1)
    threads = len(jobs) if len(jobs) > 1 else numjobs
    depth = _whole(path, one, "iodepth", 1)
    in_flight = 1 if all(_waits(job, one) for job in jobs) else depth
    return Cell(pattern, read_share, size_bytes(one["bs"]), threads, in_flight)


def asked_depth(options: Mapping[str, str]) -> int:
    """`iodepth` as it was asked for, of options that a cell was found in."""
    return int(options.get("iodepth", _DEFAULTS["iodepth"]))


def refuse_unlike_repeats(root: Path, runs: Iterable[tuple[str, Path, Mapping[str, str]]]) -> None:
    """Raises UserError where runs of one cell, each with its label, file and options, are no repeats of one another."""
    first: dict[str, tuple[Path, dict[str, str]]] = {}
    for label, path, given in runs:
        one = {"ioengine": ENGINE, "direct": DIRECT, **given}
        one = {name: value for name, value in one.items() if name not in _OF_REPEATS and not _LOGS.fullmatch(name)}
        known_path, known = first.setdefault(label, (path, one))
        for name in sorted({*known, *one}):
            if known.get(name) != one.get(name):
                both = " and ".join(
                    f"{f'{name}={of[name]}' if name in of else f'without {name}'} ({file.name})"
                    for of, file in ((known, known_path), (one, path))
                )
                raise UserError(
                    f"{root}: has repeats of {label} whose options differ, {both}, which are never pooled; import the "
                    "files of one set of options at a time"
                )


def _refuse_unlike(path: Path, options: Mapping[str, str]) -> None:
    for known, words, remedy in (
        (_UNLIKE, "which no cell is told by", "leave the file out"),
        (_LIMITS, "under which the numbers are not what the drive can do", "leave the file out, or run fio without it"),
    ):
        for name, none in known.items():
            if name in options and not {part.strip() for part in options[name].split(",")} <= {none, ""}:
                raise refused(path, f"has the option {name}={options[name]}, {words}", remedy)


def _whole(path: Path, options: Mapping[str, str], name: str, least: int, most: int | None = None) -> int:
    text = options[name]
    if _WHOLE.fullmatch(text) is None or not least <= int(text) <= (int(text) if most is None else most):
        span = f"of {least} or more" if most is None else f"from {least} to {most}"
        raise refused(path, f"has the option {name}={text}, which is no whole number {span}", "leave the file out")
    return int(text)


def _waits(job: Mapping[str, Any], options: Mapping[str, str]) -> bool:
    """Whether one I/O is in flight at a time; what fio counted goes before what is known of the engine."""
    if options.get("ioengine", ENGINE) not in _SYNCHRONOUS:
        return False
    levels = job.get("iodepth_level")
    return levels is None or float(levels.get("1", 0)) >= _MOSTLY_PCT
