"""How far a study is, by drive, from its files alone: on any machine that sees them, after any crash."""

from __future__ import annotations

import json
import os
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from datetime import datetime
from pathlib import Path
from statistics import median
from typing import Any

from drivelab.config.study import ANY_HOST, PARTS, Study
from drivelab.plan.plan import Plan
from drivelab.recording.writer import MANIFEST
from drivelab.stages.outlook import ASSUMED_CAPACITY_BYTES, Estimates
from drivelab.stages.planning import Campaign
from drivelab.stages.platforms import host_of
from drivelab.stages.progress import Status, read_status, state_now
from drivelab.telemetry import log

STATES = ("failed", "interrupted", "silent", "running", "to do", "done")
"""What a drive may be, what wants somebody's attention first."""
_LIKELY = 0.15
"""Of the way from the least to the most that a measurement may take: steady state usually comes early."""
_TAIL_BYTES = 16384
_LEAST_SPAN_S = 0.5


@dataclass(frozen=True)
class DriveStatus:
    """One drive of a study; what is not known is None."""

    drive: str
    """As in `Plan.drive`."""
    state: str
    """One of STATES; `silent` is a stage on another host that gives no sign of life."""
    done: int
    planned: int
    host: str | None = None
    recording: str | None = None
    """That the stage is, or was, at work on."""
    stage: str | None = None
    text: str | None = None
    round: int | None = None
    rounds_at_most: int | None = None
    iops: float | None = None
    since_s: float | None = None
    """When the stage began, or failed; seconds since 1970."""
    seen_s: float | None = None
    """Last sign of life."""
    left_s: float | None = None
    """Seconds of measuring that are left, as far as one can know; 0 when all is done."""
    reason: str | None = None
    """Why it failed, or what is known of its end."""

    def to_mapping(self) -> dict[str, Any]:
        """JSON-able."""
        return asdict(self)


def campaign_of(study: Study) -> Campaign:
    """The campaign of all hosts, as it was begun: where the clock is left to the host, the one that plans tell."""
    if study.clock == "auto":
        for path in study.results.glob("**/recordings/*/*/*/plan.json"):
            body = _json(path)
            clock = body.get("subject", {}).get("clock") if body else None
            if clock in ("wall", "virtual") and body and "virtual" in body["subject"].get("drive", {}):
                study = replace(study, clock=clock)
                break
    return Campaign(study, everywhere=True)


def study_status(campaign: Campaign) -> list[DriveStatus]:
    """A row for each drive of the campaign, on each of its platforms, in the study's order."""
    plans: dict[str, list[Plan]] = {}
    for one in (*campaign.plans, *campaign.elsewhere):
        plans.setdefault(one.plan.drive, []).append(one.plan)
    statuses = {status.drive: status for status in read_status(campaign.study.results)}
    finished = {drive: _finished(of_drive) for drive, of_drive in plans.items()}
    folders = [(one, finished[one.drive][one.recording]) for of_drive in plans.values() for one in of_drive
               if one.recording in finished[one.drive]]  # fmt: skip
    remaining = Remaining(campaign, folders)
    return [_row(of_drive, finished[drive], statuses.get(drive), remaining) for drive, of_drive in plans.items()]


class Remaining:
    """How long measurements take: as the same one took on another drive, else by the estimate."""

    def __init__(self, campaign: Campaign, finished: Sequence[tuple[Plan, Path]] = ()) -> None:
        """`finished` are plans with the folders of their recordings."""
        self._campaign, self._estimates = campaign, Estimates(campaign)
        self._finished: dict[str, list[Path]] = {}
        for plan, folder in finished:
            self._finished.setdefault(plan.measurement, []).append(folder)
        self._observed_s: dict[str, float | None] = {}

    def expected_s(self, plan: Plan) -> float:
        """Of a whole measurement with its purge and preconditioning."""
        name = plan.measurement
        if name not in self._observed_s:  # a few tell enough: there may be thousands
            known = [_duration_s(folder) for folder in self._finished.get(name, ())[:9]]
            seconds = [one for one in known if one is not None]
            self._observed_s[name] = median(seconds) if seconds else None
        observed_s = self._observed_s[name]
        return self._estimated_s(plan) if observed_s is None else observed_s

    def _estimated_s(self, plan: Plan) -> float:
        from drivelab.stages.estimate import assumed_mib_s

        known = plan.virtual
        capacity_bytes = self._campaign.capacity_bytes(plan) if known else ASSUMED_CAPACITY_BYTES
        span = self._estimates.of(plan, capacity_bytes, assumed_mib_s(plan, None), None)
        return span.least_s + _LIKELY * (span.most_s - span.least_s)


def _row(
    plans: Sequence[Plan], finished: Mapping[str, Path], status: Status | None, remaining: Remaining
) -> DriveStatus:
    drive, host = plans[0].drive, host_of(plans[0])
    left = [plan for plan in plans if plan.recording not in finished]
    row = DriveStatus(
        drive, "to do" if left else "done", len(finished), len(plans), host=None if host == ANY_HOST else host,
        left_s=sum(remaining.expected_s(plan) for plan in left),
    )  # fmt: skip
    if status is None or not left:
        return _without_status(row, left)
    state = state_now(status)
    row = replace(
        row, host=status.host or row.host, recording=status.recording, stage=status.stage, text=status.text,
        since_s=status.since_s or None, seen_s=status.at_s,
    )  # fmt: skip
    if state == "done":
        return row  # between two stages
    row = replace(row, state=state, reason=status.reason, round=status.round, rounds_at_most=status.rounds_at_most)
    at = next((plan for plan in left if plan.recording == status.recording), None)
    if state == "interrupted":
        row = replace(row, reason=_last_words(plans, status) or "its process ended without a word")
    if state in ("running", "silent") and at is not None:
        row = replace(row, iops=_iops_now(at, status), left_s=(row.left_s or 0.0) - _share_done(at, status, remaining))
    return row


def _without_status(row: DriveStatus, left: Sequence[Plan]) -> DriveStatus:
    """Nothing tells of a process; a measurement may still be there half-done."""
    for plan in left:
        part = _part(plan)
        if (part / "journal.jsonl").exists():
            return replace(row, state="interrupted", recording=plan.recording,
                           reason="begun, and no process tells of it")  # fmt: skip
    return row


def _share_done(plan: Plan, status: Status, remaining: Remaining) -> float:
    """Seconds of a measurement under way that are over, by the time since it was begun; nearly all at the most."""
    try:
        begun_s = (_part(plan) / "plan.json").stat().st_mtime
    except OSError:
        begun_s = status.since_s
    return min(max(status.at_s - begun_s, 0.0), 0.9 * remaining.expected_s(plan))


def _finished(plans: Sequence[Plan]) -> dict[str, Path]:
    """Folders of the recordings that are there, by their names."""
    recordings = _results(plans[0]) / "recordings"
    folders = {plan.recording: recordings / plan.recording for plan in plans}
    return {name: folder for name, folder in folders.items() if (folder / MANIFEST).exists()}


def _results(plan: Plan) -> Path:
    """The results folder, of a fleet the drive's own."""
    results = Path(plan.context["results"])
    part = results / PARTS / plan.sheet_drive
    return part if part.is_dir() else results


def _part(plan: Plan) -> Path:
    return _results(plan) / "recordings" / f"{plan.recording}.part"


def _iops_now(plan: Plan, status: Status) -> float | None:
    """By the kernel's counts in the last samples, else of the last cell that is finished."""
    samples = [one for one in _last_samples(_part(plan) / log.NAME) if "reads" in one and "writes" in one]
    for early in reversed(samples[:-1]):
        span_s = samples[-1]["at_s"] - early["at_s"]
        if span_s >= _LEAST_SPAN_S:
            done = sum(float(samples[-1][key] - early[key]) for key in ("reads", "writes"))
            return round(max(done, 0.0) / float(span_s), 1)
    return status.iops


def _last_samples(path: Path) -> list[dict[str, Any]]:
    """Of a file that is being written: whole lines of its end."""
    try:
        with path.open("rb") as file:
            file.seek(max(file.seek(0, os.SEEK_END) - _TAIL_BYTES, 0))
            lines = file.read().splitlines(keepends=True)[1:]
    except OSError:
        return []
    found = []
    for line in lines:
        try:
            found.append(dict(json.loads(line)))
        except (ValueError, TypeError):
            continue
    return found


def _last_words(plans: Sequence[Plan], status: Status) -> str | None:
    """The sentence with which a stage ended, from its log."""
    results = _results(plans[0])
    for rule in (status.stage, "replay", "measure_together"):
        try:
            lines = (results / "logs" / rule / f"{status.recording}.log").read_text(errors="replace").splitlines()
        except OSError:
            continue
        said = [line.removeprefix("drivelab: ") for line in lines if line.startswith("drivelab: ")]
        if said:
            return said[-1]
    return None


def _duration_s(recording: Path) -> float | None:
    body = _json(recording / MANIFEST) or {}
    try:
        started, finished = (datetime.fromisoformat(body[key]) for key in ("started", "finished"))
    except (KeyError, TypeError, ValueError):
        return None
    return (finished - started).total_seconds()


def _json(path: Path) -> dict[str, Any] | None:
    try:
        body = json.loads(path.read_text(encoding="utf-8"))
    except (OSError, ValueError):
        return None
    return body if isinstance(body, dict) else None
