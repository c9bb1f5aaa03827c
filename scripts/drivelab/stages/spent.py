"""What was spent on a study's recordings so far: bytes written by drive, seconds by host and drive, as their journals
tell."""

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
"""Of a recording below recordings/: drive, measurement, key."""


def written_bytes(campaign: Campaign) -> dict[str, float]:
    """Bytes written so far to each drive, by its serial.

    Counted is whatever lies in the study's results folder: also what is unfinished or abandoned, and what no plan leads
    to any more. Raises UserError for a journal that is damaged.
    """
    known: dict[str, Trace | None] = {}

    def trace_of(name: str) -> Trace | None:
        if name not in known:
            there = name in campaign.study.traces
            known[name] = campaign.traces_of(Plan({"traces": [{"name": name}]}, {}))[0] if there else None
        return known[name]

    found: dict[str, float] = {}
    for folder, plan in _recordings(campaign):
        serial = str(plan.subject["drive"]["serial"])
        found[serial] = found.get(serial, 0.0) + sum(_told(folder, partial(written_in, trace_of=trace_of)))
    return found


def measured_s(campaign: Campaign) -> dict[str, dict[str, float]]:
    """Seconds that recordings in real time took, by host and by the drive's serial: of each from its first word to its
    last.

    The host is the one that measured, wherever the drive is attached today; ANY_HOST where nothing tells. Counted is
    what `written_bytes` counts, but for what was simulated. Raises UserError likewise.
    """
    hosts = _Hosts(campaign)
    found: dict[str, dict[str, float]] = {}
    for folder, plan in _recordings(campaign):
        if plan.clock == "wall":
            times = list(_told(folder, lambda line: datetime.fromisoformat(line["at"]).timestamp(), ends_only=True))
            of_host = found.setdefault(hosts.measured(folder, plan), {})
            serial = str(plan.subject["drive"]["serial"])
            of_host[serial] = of_host.get(serial, 0.0) + max(times, default=0.0) - min(times, default=0.0)
    return found


class _Hosts:
    """Which hosts made recordings, by the names that the study has for them."""

    def __init__(self, campaign: Campaign) -> None:
        self._of_plans = {host_of(one.plan) for one in campaign.wanted}
        self._of_sheet = {row.serial: row.host for row in campaign.sheet.values()}
        self._called: dict[tuple[str, str], str] = {}

    def measured(self, folder: Path, plan: Plan) -> str:
        """By the recording's host.json, else by its own plan, else by the drive sheet; else ANY_HOST.

        `plan` may be today's, which says where the drive is attached now. One small file is read of a recording, the
        plan of one only where it must be.
        """
        name = _host_in(folder)
        if name is None:  # it came to an end before that was written
            own = host_of(_plan_in(folder))
            return own if own != ANY_HOST else self._of_sheet.get(plan.subject["drive"]["serial"]) or ANY_HOST
        if name in self._of_plans:
            return name
        if (key := (name, host_of(plan))) not in self._called:
            # Slurm may call the host something else than it does itself, and then so does the plan.
            own = host_of(_plan_in(folder))
            here = this_host() if name == platform.node() else name
            self._called[key] = own if own != ANY_HOST else here
        return self._called[key]


def _host_in(folder: Path) -> str | None:
    """What the host that measured calls itself; None where the recording does not tell."""
    try:
        told = json.loads((folder / "host.json").read_bytes())["host"]
    except (OSError, ValueError, TypeError, KeyError):
        return None
    return told if isinstance(told, str) and told else None


def _recordings(campaign: Campaign) -> Iterator[tuple[Path, Plan]]:
    """Folders with a journal below the study's results, of a fleet its drives', each with its plan.

    Plans of the campaign are at hand; there may be tens of thousands.
    """
    at_hand = {one.plan.recording: one.plan for one in campaign.wanted}
    results = campaign.study.results
    for home in (str(results), *_below(f"{results}/{PARTS}", 1)):
        root = f"{home}/recordings"
        for path in _below(root, _DEPTH):
            if Path(f"{path}/journal.jsonl").exists():
                name = UNFINISHED.sub("", path.removeprefix(f"{root}/"))
                yield Path(path), at_hand.get(name) or _plan_in(Path(path))


def _below(path: str, depth: int) -> list[str]:
    """Folders so deep below one, sorted; none where it is not there."""
    try:
        with os.scandir(path) as entries:
            found = sorted(entry.path for entry in entries if entry.is_dir())
    except OSError:
        return []
    return found if depth == 1 else [one for folder in found for one in _below(folder, depth - 1)]


def _plan_in(folder: Path) -> Plan:
    """As `Plan.read`, which makes the digest anew: too slow for all, and not needed here."""
    path = folder / "plan.json"
    try:
        body = json.loads(path.read_text(encoding="utf-8"))
        plan = Plan(body["subject"], body["context"])
        _ = plan.clock, plan.subject["drive"]["serial"], host_of(plan)
    except (OSError, ValueError, TypeError, KeyError, AttributeError):
        raise _damaged(path, "is no plan") from None
    return plan


def _told(folder: Path, of_line: Callable[[Mapping[str, Any]], _T], *, ends_only: bool = False) -> Iterator[_T]:
    """What each line of a journal tells, or its first and last one only."""
    path, number = folder / "journal.jsonl", 0
    try:
        if ends_only:
            whole = [line for line in path.read_bytes().splitlines(keepends=True) if line.endswith(b"\n")]
            for number in (1, len(whole)) if whole else ():
                yield of_line(json.loads(whole[number - 1]))
            return
        lines = read_journal(folder)
        while True:
            number += 1
            line = next(lines, None)
            if line is None:
                return
            yield of_line(line)
    except (ValueError, TypeError, KeyError, AttributeError):
        raise _damaged(path, f"line {number} is none of a journal") from None


def _damaged(path: Path, reason: str) -> UserError:
    return UserError(
        f"{path}: {reason}, so that nobody can tell what the study has taken of its budget; restore it from a copy "
        f"('drivelab verify {path.parent}' tells what else was altered)"
    )


def written_in(line: Mapping[str, Any], trace_of: Callable[[str], Trace | None]) -> float:
    """Bytes written according to a line of a journal; 0 where it tells of none, as of an application.

    Of a mix of reads and writes, the share of the workload: they are of one size. All that was replayed of a trace that
    is not known, as it is of a study that has changed.
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
