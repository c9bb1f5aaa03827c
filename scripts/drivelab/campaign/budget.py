"""Compare what a study has used, and may still use, with its budget."""

from __future__ import annotations

import json
import platform
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from datetime import datetime
from functools import partial
from pathlib import Path
from typing import Any, TypeVar

from drivelab.campaign.estimate import Trace
from drivelab.campaign.outlook import Outlook
from drivelab.campaign.planning import Campaign
from drivelab.campaign.unfinished import folders
from drivelab.core.errors import UserError
from drivelab.core.files import open_regular
from drivelab.core.units import format_amount, format_duration, format_factor
from drivelab.plan.hosts import host_of, this_host
from drivelab.plan.plan import Plan
from drivelab.plan.study import ANY_HOST
from drivelab.recording.writer import UNFINISHED

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
            known[name] = campaign.traces.extent(name) if name in campaign.study.traces else None
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

    There may be tens of thousands of plans, so plans of the campaign are not read again.
    """
    known = {planned.plan.recording: planned.plan for planned in campaign.wanted}
    root = f"{campaign.study.results}/recordings"
    for path in sorted(folders(root, root, _DEPTH)):
        if Path(f"{path}/journal.jsonl").exists():
            name = UNFINISHED.sub("", path.removeprefix(f"{root}/"))
            yield Path(path), known.get(name) or _plan_in(Path(path))


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
    path, number = folder / "journal.jsonl", 1
    try:
        with open_regular(path) as file:
            lines = list(enumerate((line for line in file if line.endswith(b"\n")), 1))
        for number, line in [*lines[:1], *lines[-1:]] if ends_only else lines:  # noqa: B007 - errors name it
            yield value(json.loads(line))
    except FileNotFoundError:  # the recording was finished a moment ago
        return
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
        case "replay" | "tainted" if "trace" in line:
            return float(line["metrics"]["bytes"]) * _write_share_of(trace_of(line["trace"]))
        case "cell" | "tainted":
            seconds = line.get("io_ended_s", 0.0) - line.get("io_started_s", 0.0)
            return float(line["metrics"]["bandwidth_mib_s"] * _MIB * seconds) * _write_share(line)
        case "load":
            return float(line["written_bytes"])
        case _:
            return 0.0


def _write_share(line: Mapping[str, Any]) -> float:
    return 1.0 - float(line["workload"].get("read_share", 0)) / 100


def _write_share_of(trace: Trace | None) -> float:
    if trace is None:
        return 1.0
    moved = trace.read_bytes + trace.write_bytes
    return trace.write_bytes / moved if moved else 0.0


def require_within(campaign: Campaign, rows: Sequence[Outlook]) -> None:
    """Raise UserError if a study may exceed its budget; `rows` are its outlook."""
    if excesses := exceeded(campaign, rows):
        raise refusal(campaign, excesses)


def refusal(campaign: Campaign, excesses: Sequence[str]) -> UserError:
    """Return the error for a study that may exceed its budget; `excesses` come from `exceeded`."""
    return UserError(
        f"{campaign.study.path}: key 'budget' may be exceeded: {'; '.join(excesses)}; raise the budget, or measure "
        "less or shorter. Nothing was written."
    )


def exceeded(campaign: Campaign, rows: Sequence[Outlook]) -> list[str]:
    """Say which drives or hosts may exceed the budget, and by how much.

    Empty if none can. The recordings of the study show what was spent (`drivelab.campaign.budget`). Remaining work
    counts with its upper estimate. Raises UserError for a share of an endurance that the drive sheet lacks, for a time
    budget if all drives are simulated, and for a damaged journal.
    """
    budget = campaign.study.budget
    excesses: list[str] = []
    if budget.time_s is not None:
        excesses += _too_long(campaign, rows, budget.time_s)
    if budget.written_bytes is None and budget.endurance is None:
        return excesses
    spent = written_bytes(campaign)
    for row in (row for row in rows if row.to_do):
        whole_bytes = spent.get(row.serial, 0.0) + row.estimate.most_bytes
        use = f"drive '{row.drive}' may be written {format_amount(whole_bytes)}{row.premises} of"
        if budget.written_bytes is not None and whole_bytes > budget.written_bytes:
            excesses.append(_excess(use, format_amount(budget.written_bytes), whole_bytes / budget.written_bytes))
        if budget.endurance is not None:
            if row.endurance_bytes is None:
                raise UserError(
                    f"{campaign.study.path}: key 'budget.endurance': {campaign.study.drives_sheet} does not say the "
                    f"rated endurance of drive '{row.drive}'; enter it in the column endurance_tbw"
                )
            allowed_bytes = budget.endurance * row.endurance_bytes
            if whole_bytes > allowed_bytes:
                share = f"{100 * budget.endurance:g} % of its endurance, {format_amount(allowed_bytes)}"
                excesses.append(_excess(use, share, whole_bytes / allowed_bytes))
    return excesses


def _excess(use: str, allowed: str, ratio: float) -> str:
    return f"{use} {allowed} allowed, {format_factor(ratio)} times as much"


def together_s(drives_s: Collection[float], places: int) -> float:
    """Return the seconds that a host needs for drives that need `drives_s` each.

    The host measures `places` drives at a time, and each drive only once at a time.
    """
    return max(sum(drives_s) / places, max(drives_s, default=0.0))


def _too_long(campaign: Campaign, rows: Sequence[Outlook], allowed_s: float) -> Iterator[str]:
    """Say which hosts may exceed the time budget.

    Only measurements in real time count, by `together_s`. Drives without a host are measured on this host, where the
    study runs.
    """
    simulated = {wanted.plan.sheet_drive for wanted in campaign.wanted if wanted.plan.clock == "virtual"}
    if all(wanted.plan.sheet_drive in simulated for wanted in campaign.wanted):
        raise UserError(
            f"{campaign.study.path}: key 'budget.time' limits the host's time, but all drives are simulated, which "
            f"takes hardly any ({campaign.clock[1]}); remove the key"
        )
    names: dict[str, set[str]] = {}
    taken_s: dict[str, dict[str, float]] = {}
    for row in rows:
        for name, estimate in row.by_host.items() if row.drive not in simulated else ():
            host = this_host() if name == ANY_HOST else name
            names.setdefault(host, set()).add(name)
            of_drives = taken_s.setdefault(host, {})
            of_drives[row.serial] = of_drives.get(row.serial, 0.0) + estimate.most_s
    spent_s = measured_s(campaign)
    for host, called in names.items():
        # Measurements whose host is unknown may have run on this host.
        of_drives = taken_s[host]
        for place in (host, ANY_HOST) if ANY_HOST in called else (host,):
            for serial, seconds in spent_s.get(place, {}).items():
                of_drives[serial] = of_drives.get(serial, 0.0) + seconds
        # The strictest concurrency limit applies.
        places = min(campaign.study.concurrency_of(name) for name in called)
        needed_s = together_s(of_drives.values(), places)
        if needed_s > allowed_s:
            subject = "the host" if called == {ANY_HOST} else f"host '{host}'"
            yield _excess(
                f"{subject} may take {format_duration(needed_s)} of", format_duration(allowed_s), needed_s / allowed_s
            )
