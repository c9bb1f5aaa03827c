"""What a study's recordings have used so far, by their journals: bytes by drive, seconds by host and drive."""

from __future__ import annotations

import json
import os
import platform
from collections.abc import Callable, Iterator, Mapping
from datetime import datetime
from functools import partial
from pathlib import Path
from typing import Any, TypeVar

from drivelab.config.study import ANY_HOST, PARTS
from drivelab.errors import UserError
from drivelab.plan.plan import Plan
from drivelab.recording.writer import UNFINISHED, read_journal
from drivelab.stages.estimate import Trace
from drivelab.stages.planning import Campaign
from drivelab.stages.platforms import host_of, this_host

_MIB = 2**20
_T = TypeVar("_T")
_DEPTH = 3
"""Depth of a recording below recordings/: drive, measurement, key."""


def written_bytes(campaign: Campaign) -> dict[str, float]:
    """Return the bytes written so far to each drive, by serial.

    All recordings in the study's results folder count, including unfinished and abandoned ones, and those without a
    present plan. Raises UserError for a damaged journal.
    """
    known: dict[str, Trace | None] = {}

    def trace_of(name: str) -> Trace | None:
        if name not in known:
            exists = name in campaign.study.traces
            known[name] = campaign.traces_of(Plan({"traces": [{"name": name}]}, {}))[0] if exists else None
        return known[name]

    by_serial: dict[str, float] = {}
    for folder, plan in _recordings(campaign):
        serial = str(plan.subject["drive"]["serial"])
        written = sum(_from_journal(folder, partial(written_in, trace_of=trace_of)))
        by_serial[serial] = by_serial.get(serial, 0.0) + written
    return by_serial


def measured_s(campaign: Campaign) -> dict[str, dict[str, float]]:
    """Return the seconds that recordings in real time took, by host and serial: from first to last journal line.

    The host is the one that measured, wherever the drive is attached now; ANY_HOST if it is unknown. The same
    recordings count as in `written_bytes`, except simulated ones. Raises UserError for a damaged journal.
    """
    hosts = _Hosts(campaign)
    by_host: dict[str, dict[str, float]] = {}
    for folder, plan in _recordings(campaign):
        if plan.clock == "wall":
            times_s = list(
                _from_journal(folder, lambda line: datetime.fromisoformat(line["at"]).timestamp(), ends_only=True)
            )
            of_host = by_host.setdefault(hosts.measured(folder, plan), {})
            serial = str(plan.subject["drive"]["serial"])
            of_host[serial] = of_host.get(serial, 0.0) + max(times_s, default=0.0) - min(times_s, default=0.0)
    return by_host


class _Hosts:
    """Finds the hosts that made recordings, by the study's names for them."""

    def __init__(self, campaign: Campaign) -> None:
        self._of_plans = {host_of(planned.plan) for planned in campaign.wanted}
        self._of_sheet = {row.serial: row.host for row in campaign.sheet.values()}
        self._names: dict[tuple[str, str], str] = {}

    def measured(self, folder: Path, plan: Plan) -> str:
        """Return the host from the recording's host.json, else its plan, else the drive sheet, else ANY_HOST.

        `plan` may be the present plan, whose host is where the drive is attached now. To be fast, this reads only one
        small file of most recordings, and a recording's own plan only if necessary.
        """
        name = _host_in(folder)
        if name is None:  # the measurement ended before it wrote host.json
            own = host_of(_plan_in(folder))
            return own if own != ANY_HOST else self._of_sheet.get(plan.subject["drive"]["serial"]) or ANY_HOST
        if name in self._of_plans:
            return name
        if (key := (name, host_of(plan))) not in self._names:
            # Slurm's name of the host may differ from the host's own; the plan has Slurm's name.
            own = host_of(_plan_in(folder))
            here = this_host() if name == platform.node() else name
            self._names[key] = own if own != ANY_HOST else here
        return self._names[key]


def _host_in(folder: Path) -> str | None:
    """Return the measuring host's own name; None if the recording has none."""
    try:
        name = json.loads((folder / "host.json").read_bytes())["host"]
    except (OSError, ValueError, TypeError, KeyError):
        return None
    return name if isinstance(name, str) and name else None


def _recordings(campaign: Campaign) -> Iterator[tuple[Path, Plan]]:
    """Yield each folder with a journal below the study's results, with its plan.

    A fleet has one results per drive. There may be tens of thousands of plans, so plans of the campaign are not read
    again.
    """
    known = {planned.plan.recording: planned.plan for planned in campaign.wanted}
    results = campaign.study.results
    for home in (str(results), *_below(f"{results}/{PARTS}", 1)):
        root = f"{home}/recordings"
        for path in _below(root, _DEPTH):
            if Path(f"{path}/journal.jsonl").exists():
                name = UNFINISHED.sub("", path.removeprefix(f"{root}/"))
                yield Path(path), known.get(name) or _plan_in(Path(path))


def _below(path: str, depth: int) -> list[str]:
    """Return the folders at `depth` below a path, sorted; none if the path is missing."""
    try:
        with os.scandir(path) as entries:
            children = sorted(entry.path for entry in entries if entry.is_dir())
    except OSError:
        return []
    return children if depth == 1 else [folder for child in children for folder in _below(child, depth - 1)]


def _plan_in(folder: Path) -> Plan:
    """Read a plan without checking its digest, unlike `Plan.read`, which is too slow for all recordings."""
    path = folder / "plan.json"
    try:
        body = json.loads(path.read_text(encoding="utf-8"))
        plan = Plan(body["subject"], body["context"])
        _ = plan.clock, plan.subject["drive"]["serial"], host_of(plan)
    except (OSError, ValueError, TypeError, KeyError, AttributeError):
        raise _damaged(path, "is not a plan") from None
    return plan


def _from_journal(folder: Path, value: Callable[[Mapping[str, Any]], _T], *, ends_only: bool = False) -> Iterator[_T]:
    """Yield the value of each line of a journal, or only of its first and last line."""
    path, number = folder / "journal.jsonl", 0
    try:
        if ends_only:
            whole = [line for line in path.read_bytes().splitlines(keepends=True) if line.endswith(b"\n")]
            for number in (1, len(whole)) if whole else ():
                yield value(json.loads(whole[number - 1]))
            return
        lines = read_journal(folder)
        while True:
            number += 1
            line = next(lines, None)
            if line is None:
                return
            yield value(line)
    except (ValueError, TypeError, KeyError, AttributeError):
        raise _damaged(path, f"line {number} is not a journal line") from None


def _damaged(path: Path, reason: str) -> UserError:
    return UserError(
        f"{path}: {reason}, so drivelab cannot compute the used budget; restore the file from a copy "
        f"('drivelab verify {path.parent}' lists other altered files)"
    )


def written_in(line: Mapping[str, Any], trace_of: Callable[[str], Trace | None]) -> float:
    """Return the bytes written according to a journal line.

    0 if the line has none, as for an application. For a mix of reads and writes of one size, the workload's write share
    applies. If a trace is unknown, because the study changed, all replayed bytes count as written.
    """
    match line["event"]:
        case "purge":
            return float(line.get("written_bytes", 0))
        case "fill" | "prefill":
            return float(line["bytes"])
        case "soak":
            return float(line["bytes"]) * _write_share(line)
        case "cell" | "tainted":
            seconds = line.get("io_ended_s", 0.0) - line.get("io_started_s", 0.0)
            return float(line["metrics"]["bandwidth_mib_s"] * _MIB * seconds) * _write_share(line)
        case "replay":
            return float(line["metrics"]["bytes"]) * _write_share_of(trace_of(line["trace"]))
        case _:
            return 0.0


def _write_share(line: Mapping[str, Any]) -> float:
    return 1.0 - float(line["workload"].get("read_share", 0)) / 100


def _write_share_of(trace: Trace | None) -> float:
    if trace is None:
        return 1.0
    moved = trace.read_bytes + trace.write_bytes
    return trace.write_bytes / moved if moved else 0.0
