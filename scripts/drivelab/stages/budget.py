"""What a study has taken and may take yet, against what it is allowed to."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from datetime import datetime
from pathlib import Path
from typing import Any

from drivelab.config.study import ANY_HOST
from drivelab.errors import UserError
from drivelab.plan.plan import Plan
from drivelab.recording.writer import read_journal
from drivelab.stages.estimate import Trace
from drivelab.stages.outlook import Outlook
from drivelab.stages.planning import Campaign
from drivelab.stages.platforms import host_of
from drivelab.units import format_amount, format_duration

_MIB = 2**20


def require_within(campaign: Campaign, rows: Sequence[Outlook]) -> None:
    """Raise UserError if a study may exceed its budget, before anything is touched; `rows` are its outlook."""
    if found := exceeded(campaign, rows):
        raise UserError(
            f"{campaign.study.path}: key 'budget' may be exceeded: {'; '.join(found)}; allow more, or measure less or "
            "shorter. Nothing was written."
        )


def exceeded(campaign: Campaign, rows: Sequence[Outlook]) -> list[str]:
    """In words, by how much a study may exceed its budget, and who; empty if it cannot.

    What was spent is told by the recordings, finished or not; what is left to be done counts with its upper estimate.
    Raises UserError for a share of an endurance that the drive sheet does not tell.
    """
    budget = campaign.study.budget
    found: list[str] = []
    if budget.time_s is not None:
        found += _too_long(campaign, rows, budget.time_s)
    if budget.written_bytes is None and budget.endurance is None:
        return found
    spent = _written_bytes(campaign)
    for row in rows:
        written_bytes = spent.get(row.drive, 0.0) + row.estimate.most_bytes
        words = f"drive '{row.drive}' may be written {format_amount(written_bytes)} of" + row.assumption
        if budget.written_bytes is not None and written_bytes > budget.written_bytes:
            found.append(_words(words, format_amount(budget.written_bytes), written_bytes / budget.written_bytes))
        if budget.endurance is not None and not row.virtual:
            if row.endurance_bytes is None:
                raise UserError(
                    f"{campaign.study.path}: key 'budget.endurance': {campaign.study.drives_sheet} does not say the "
                    f"rated endurance of drive '{row.drive}'; enter it in the column endurance_tbw"
                )
            allowed_bytes = budget.endurance * row.endurance_bytes
            if written_bytes > allowed_bytes:
                share = f"{100 * budget.endurance:g} % of its endurance, {format_amount(allowed_bytes)}"
                found.append(_words(words, share, written_bytes / allowed_bytes))
    return found


def _words(what: str, allowed: str, ratio: float) -> str:
    return f"{what} {allowed} allowed, {ratio:.3g} times as much"


def _too_long(campaign: Campaign, rows: Sequence[Outlook], allowed_s: float) -> Iterator[str]:
    """A host takes the sum over its measurements, shared by as many as it makes at a time."""
    hosts: dict[str, float] = {}
    for row in rows:
        for host, estimate in row.by_host.items():
            hosts[host] = hosts.get(host, 0.0) + estimate.most_s
    for host, seconds in _spent_s(campaign).items():
        hosts[host] = hosts.get(host, 0.0) + seconds
    for host, seconds in hosts.items():
        needed_s = seconds / campaign.study.concurrency_of(host)
        if needed_s > allowed_s:
            who = "the host" if host == ANY_HOST else f"host '{host}'"
            yield _words(
                f"{who} may take {format_duration(needed_s)} of", format_duration(allowed_s), needed_s / allowed_s
            )


def _spent_s(campaign: Campaign) -> dict[str, float]:
    """Seconds that recorded measurements in real time took, by host; what is simulated takes hardly any."""
    found: dict[str, float] = {}
    for one in (*campaign.plans, *campaign.elsewhere):
        if one.plan.clock == "wall":
            for folder in _folders(one.plan):
                times = [datetime.fromisoformat(line["at"]) for line in read_journal(folder)]
                if times:
                    host = host_of(one.plan)
                    found[host] = found.get(host, 0.0) + (times[-1] - times[0]).total_seconds()
    return found


def _written_bytes(campaign: Campaign) -> dict[str, float]:
    """Bytes written so far by drive, measurements that were abandoned or are under way included."""
    found: dict[str, float] = {}
    for one in (*campaign.plans, *campaign.elsewhere):
        for folder in _folders(one.plan):
            names = (trace["name"] for trace in one.plan.subject.get("traces", ()))
            traces = dict(zip(names, campaign.traces_of(one.plan), strict=True))
            written = sum(written_in(line, traces) for line in read_journal(folder))
            found[one.plan.sheet_drive] = found.get(one.plan.sheet_drive, 0.0) + written
    return found


def _folders(plan: Plan) -> list[Path]:
    """The recording, and what is unfinished or abandoned of it."""
    path = plan.recording_path
    return [path, *path.parent.glob(f"{path.name}.*")] if path.parent.is_dir() else []


def written_in(line: Mapping[str, Any], traces: Mapping[str, Trace]) -> float:
    """Bytes written according to a line of a journal; 0 where it tells of none, as of an application.

    Of a mix of reads and writes, the share of the workload: they are of one size.
    """
    match line["event"]:
        case "fill" | "prefill":
            return float(line["bytes"])
        case "soak":
            return float(line["bytes"]) * _write_share(line)
        case "cell" | "tainted":
            seconds = line.get("io_ended_s", 0.0) - line.get("io_started_s", 0.0)
            return float(line["metrics"]["bandwidth_mib_s"] * _MIB * seconds) * _write_share(line)
        case "replay":
            trace = traces.get(line["trace"])
            moved = trace.read_bytes + trace.write_bytes if trace else 0
            return float(line["metrics"]["bytes"]) * (trace.write_bytes / moved) if trace and moved else 0.0
        case _:
            return 0.0


def _write_share(line: Mapping[str, Any]) -> float:
    return 1.0 - float(line["workload"].get("read_share", 0)) / 100
