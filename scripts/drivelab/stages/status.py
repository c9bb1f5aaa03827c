"""How far a study is, by drive, from its files alone: on any machine that sees them, after any crash."""

from __future__ import annotations

import json
import os
import time
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import asdict, dataclass, replace
from itertools import pairwise
from pathlib import Path
from statistics import median
from typing import Any

from drivelab.config.study import ANY_HOST, PARTS, Study
from drivelab.files import open_regular
from drivelab.plan.plan import Plan
from drivelab.recording.checksums import MANIFEST, misplaced
from drivelab.recording.writer import read_object, worked_s
from drivelab.stages.fill import FOLDER
from drivelab.stages.inventory import Inventory, folders
from drivelab.stages.outlook import ASSUMED_CAPACITY_BYTES, Estimates
from drivelab.stages.places import RESERVED_S
from drivelab.stages.planning import Campaign
from drivelab.stages.platforms import host_of
from drivelab.stages.progress import Status, read_status, state_now
from drivelab.stages.scheduling import STAGES as CHAIN
from drivelab.stages.unfinished import Unfinished, last_words, unfinished_of
from drivelab.telemetry import log

STATES = ("failed", "interrupted", "silent", "running", "between stages", "to do", "done")
"""What a drive may be, what wants somebody's attention first."""
_ENOUGH = 9
"""Recordings that tell how long one like them takes: there may be thousands."""
_MOST_DONE = 0.9
"""Of the time that a measurement is expected to take, as long as it is not done."""
_TAIL_BYTES = 16384
_LEAST_SPAN_S = 0.5


@dataclass(frozen=True)
class DriveStatus:
    """One drive of a study; what is not known is None."""

    drive: str
    """As in `Plan.drive`."""
    state: str
    """One of STATES; `silent` is a stage on another host that gives no sign of life, `between stages` one that ended
    well with more to come: no process is at work on the drive, whether or not the study goes on."""
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
    next_recording: str | None = None
    """What comes next to a drive that nothing is at work on; None where its first stage is still to come."""
    next_stage: str | None = None
    unfinished: tuple[Unfinished, ...] = ()
    """Measurements that failed or were interrupted, but the one that `recording` is: what the drive did since may be
    another."""

    def to_mapping(self) -> dict[str, Any]:
        """JSON-able."""
        return asdict(self)


def campaign_of(study: Study) -> Campaign:
    """The campaign of all hosts, as it was begun: where the clock is left to the host, the one that plans tell."""
    if study.clock == "auto" and (clock := _clock_of_virtual(study.results)) is not None:
        study = replace(study, clock=clock)
    return Campaign(study, everywhere=True)


def _clock_of_virtual(results: Path) -> str | None:
    """Clock of the virtual drives that recordings are there of. One recording tells what a drive is."""
    roots = [results, *(results / PARTS / one for one in folders(str(results / PARTS)))]
    for root in roots:
        for drive in folders(f"{root}/recordings"):
            for recording in folders(f"{root}/recordings/{drive}", drive, depth=2):
                subject = read_object(root / "recordings" / recording / "plan.json").get("subject", {})
                if subject.get("clock") in ("wall", "virtual"):
                    if "virtual" in subject.get("drive", {}):
                        return str(subject["clock"])
                    break
    return None


def study_status(campaign: Campaign) -> list[DriveStatus]:
    """A row for each drive of the campaign, on each of its platforms, in the study's order."""
    plans: dict[str, list[Plan]] = {}
    for one in campaign.wanted:
        plans.setdefault(one.plan.drive, []).append(one.plan)
    statuses = {status.drive: status for status in read_status(campaign.study.results)}
    recordings = {drive: Inventory.of(of_drive) for drive, of_drive in plans.items()}
    remaining = Remaining(campaign, recordings.values())
    return [_row(campaign, one, statuses.get(drive), remaining) for drive, one in recordings.items()]


class Remaining:
    """How long measurements take: as the same one took on another drive, else by the estimate."""

    def __init__(self, campaign: Campaign, recordings: Iterable[Inventory]) -> None:
        self._campaign, self._estimates = campaign, Estimates(campaign)
        self._finished: dict[str, list[Path]] = {}
        for one in recordings:
            for name in one.finished:
                known = self._finished.setdefault(one.plans[name].measurement, [])
                if len(known) < _ENOUGH:
                    known.append(one.results / "recordings" / name)
        self._observed_s: dict[str, float | None] = {}

    def of_all(self, plans: Iterable[Plan]) -> float | None:
        """Of measurements of one drive together; None if nothing is known of one of them."""
        runs = Counter(plan.measurement for plan in plans)
        first = {plan.measurement: plan for plan in reversed(list(plans))}
        each = [(count, self.expected_s(first[name])) for name, count in runs.items()]
        return None if any(one is None for _, one in each) else sum(count * (one or 0.0) for count, one in each)

    def expected_s(self, plan: Plan) -> float | None:
        """Of a whole measurement with its purge and preconditioning."""
        name = plan.measurement
        if name not in self._observed_s:
            seconds = [spent_s for folder in self._finished.get(name, ()) if (spent_s := worked_s(folder)) > 0]
            self._observed_s[name] = median(seconds) if seconds else None
        observed_s = self._observed_s[name]
        return self._estimated_s(plan) if observed_s is None else observed_s

    def _estimated_s(self, plan: Plan) -> float | None:
        """None in simulated time: a protocol tells nothing of how long it is waited for."""
        from drivelab.stages.estimate import assumed_mib_s

        if plan.clock == "virtual":
            return None
        capacity_bytes = self._campaign.capacity_bytes(plan) if plan.virtual else ASSUMED_CAPACITY_BYTES
        return self._estimates.of(plan, capacity_bytes, assumed_mib_s(plan, None), None).likely_s


def _row(campaign: Campaign, recordings: Inventory, status: Status | None, remaining: Remaining) -> DriveStatus:
    left, first = recordings.left, next(iter(recordings.plans.values()))
    host = host_of(first)
    row = DriveStatus(
        first.drive, "to do" if left else "done", len(recordings.finished), len(recordings.plans),
        host=None if host == ANY_HOST else host, left_s=remaining.of_all(left),
    )  # fmt: skip
    if left:
        row = replace(row, unfinished=tuple(unfinished_of(recordings, None if status is None else status.recording)))
        if status is not None:
            row = _by_status(campaign, row, recordings, status, remaining)
        elif row.done:
            row = _with_next(campaign, row, left)
        row = _with_what_failed(row, recordings, status)
    return _with_misplaced(row, recordings) if row.state in ("to do", "done") else row


def _by_status(
    campaign: Campaign, row: DriveStatus, recordings: Inventory, status: Status, remaining: Remaining
) -> DriveStatus:
    """What the drive does now, or did last."""
    state = state_now(status)
    row = replace(
        row, host=status.host or row.host, recording=status.recording, stage=status.stage, text=status.text,
        since_s=status.since_s or None, seen_s=status.at_s,
    )  # fmt: skip
    at = recordings.plans.get(status.recording) if status.recording not in recordings.finished else None
    if state == "done":
        row = _with_next(campaign, row, recordings.left, at, status.stage)
        goes_on = (at is not None or row.done > 0) and time.time() - status.at_s < RESERVED_S
        return replace(row, state="between stages") if goes_on else row
    row = replace(row, state=state, reason=status.reason, round=status.round, rounds_at_most=status.rounds_at_most)
    if state == "interrupted":
        row = replace(row, reason=last_words(recordings.results, status))
    if at is not None and state != "failed":
        part, until_s = recordings.part(at.recording), status.at_s if state in ("running", "silent") else None
        expected_s = remaining.expected_s(at)
        if row.left_s is not None and expected_s is not None:
            row = replace(row, left_s=row.left_s - min(worked_s(part, until_s), _MOST_DONE * expected_s))
        row = row if until_s is None else replace(row, iops=_iops_now(part, status))
    return row


def _with_misplaced(row: DriveStatus, recordings: Inventory) -> DriveStatus:
    """That the analysis fails, where another recording is in the place of a finished one."""
    remedy = "move the folder to its place, or remove it if it is a copy"
    for name in filter(recordings.finished.__contains__, recordings.plans):
        if (words := misplaced(recordings.results / "recordings" / name)) is not None:
            reason = f"{MANIFEST} is {words}; {remedy}"
            return replace(row, state="failed", recording=name, stage="tables", reason=reason)
    return row


def _with_next(
    campaign: Campaign, row: DriveStatus, left: Sequence[Plan], at: Plan | None = None, stage: str = ""
) -> DriveStatus:
    """With what comes after a stage that ended well, of the recording `at` if that is not finished yet."""
    after = dict(pairwise(CHAIN))
    if at is None or stage not in after:
        at, stage = min(left, key=campaign.order), ""
    return replace(row, next_recording=at.recording, next_stage=after.get(stage, CHAIN[0]))


def _with_what_failed(row: DriveStatus, recordings: Inventory, status: Status | None) -> DriveStatus:
    """Where the drive does nothing, and nothing else is left for it to do or tells of a process, that is its state."""
    idle = row.state in ("to do", "between stages")
    if not row.unfinished or not idle or (status is not None and len(row.unfinished) < len(recordings.left)):
        return row
    first = min(row.unfinished, key=lambda one: STATES.index(one.state))
    return replace(
        row, state=first.state, recording=first.recording, stage=first.stage, reason=first.reason, seen_s=first.seen_s,
        text=None, since_s=None, next_recording=None, next_stage=None,
        unfinished=tuple(one for one in row.unfinished if one is not first),
    )  # fmt: skip


def _iops_now(part: Path, status: Status) -> float | None:
    """By the kernel's counts in the last samples, else of the last cell that is finished."""
    folder = part / FOLDER if status.stage == "precondition" else part
    samples = [one for one in _last_samples(folder / log.NAME) if "reads" in one and "writes" in one]
    for early in reversed(samples[:-1]):
        span_s = samples[-1]["at_s"] - early["at_s"]
        if span_s >= _LEAST_SPAN_S:
            done = sum(float(samples[-1][key] - early[key]) for key in ("reads", "writes"))
            return round(max(done, 0.0) / float(span_s), 1)
    return status.iops


def _last_samples(path: Path) -> list[dict[str, Any]]:
    """Of a file that is being written: whole lines of its end."""
    try:
        with open_regular(path) as file:
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
