"""Progress of a study by drive, from its files alone: on any machine that can read them, after any crash."""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from itertools import pairwise
from pathlib import Path
from statistics import median

from drivelab.campaign.estimate import assumed_mib_s
from drivelab.campaign.outlook import ASSUMED_CAPACITY_BYTES, Estimates
from drivelab.campaign.planning import STAGES, Campaign
from drivelab.campaign.subjects import capacity_bytes_of
from drivelab.campaign.unfinished import Inventory, Unfinished, folders, last_words, unfinished_of
from drivelab.core.grouping import grouped
from drivelab.plan.hosts import host_of
from drivelab.plan.plan import Plan
from drivelab.plan.study import ANY_HOST, Study
from drivelab.recording.checksums import MANIFEST, misplaced
from drivelab.recording.folders import worked_s
from drivelab.recording.writer import read_object
from drivelab.run.places import RESERVED_S
from drivelab.run.progress import Status, read_status, state_now

STATES = ("failed", "interrupted", "silent", "running", "between stages", "to do", "done")
"""States of a drive; the states that need attention come first."""
_ENOUGH = 9
"""Recordings used to predict a measurement's duration; there may be thousands."""
_MOST_DONE = 0.9
"""Largest share of the expected duration that an unfinished measurement counts as done."""


@dataclass(frozen=True)
class DriveStatus:
    """One drive of a study; unknown values are None."""

    drive: str
    """As in `Plan.drive`."""
    state: str
    """One of STATES. `silent`: a stage on another host gives no sign of life. `between stages`: a stage succeeded,
    more are planned, and no process uses the drive now; the study may or may not be running."""
    done: int
    planned: int
    host: str | None = None
    recording: str | None = None
    """Recording of the present or last stage."""
    stage: str | None = None
    text: str | None = None
    since_s: float | None = None
    """When the stage began or failed, Unix time in seconds."""
    seen_s: float | None = None
    """Last sign of life."""
    left_s: float | None = None
    """Estimated seconds of measuring left; 0 when all is done."""
    reason: str | None = None
    """Why the stage failed or ended."""
    next_recording: str | None = None
    """Next recording of a drive that no process uses; None before its first stage."""
    next_stage: str | None = None
    unfinished: tuple[Unfinished, ...] = ()
    """Failed or interrupted measurements other than `recording`."""


def campaign_of(study: Study) -> Campaign:
    """Return the campaign of all hosts; with `clock: auto`, the recordings' plans give the clock."""
    if study.clock == "auto" and (clock := _clock_of_virtual(study.results)) is not None:
        study = replace(study, clock=clock)
    return Campaign(study, everywhere=True)


def _clock_of_virtual(results: Path) -> str | None:
    """Return the clock of the recorded virtual drives, or None; reads one recording per drive."""
    for drive in folders(f"{results}/recordings"):
        for recording in folders(f"{results}/recordings/{drive}", drive, depth=2):
            subject = read_object(results / "recordings" / recording / "plan.json").get("subject", {})
            if subject.get("clock") in ("wall", "virtual"):
                if "virtual" in subject.get("drive", {}):
                    return str(subject["clock"])
                break
    return None


def study_status(campaign: Campaign) -> list[DriveStatus]:
    """Return the status of each drive on each of its platforms, in the study's order."""
    plans = grouped((planned.plan for planned in campaign.wanted), lambda plan: plan.drive)
    statuses = {status.drive: status for status in read_status(campaign.study.results)}
    inventories = {drive: Inventory.of(of_drive) for drive, of_drive in plans.items()}
    remaining = Remaining(campaign, inventories.values())
    return [_row(campaign, inventory, statuses.get(drive), remaining) for drive, inventory in inventories.items()]


class Remaining:
    """Predicts durations: from finished recordings of the same measurement, else from the estimate."""

    def __init__(self, campaign: Campaign, inventories: Iterable[Inventory]) -> None:
        self._campaign, self._estimates = campaign, Estimates(campaign)
        self._finished: dict[str, list[Path]] = {}
        for inventory in inventories:
            for name in inventory.finished:
                known = self._finished.setdefault(inventory.plans[name].measurement, [])
                if len(known) < _ENOUGH:
                    known.append(inventory.results / "recordings" / name)
        self._observed_s: dict[str, float | None] = {}

    def of_all(self, plans: Iterable[Plan]) -> float | None:
        """Return the total seconds of one drive's measurements; None if a duration is unknown."""
        runs = Counter(plan.measurement for plan in plans)
        first = {plan.measurement: plan for plan in reversed(list(plans))}
        expected = [(count, self.expected_s(first[name])) for name, count in runs.items()]
        known = [count * seconds for count, seconds in expected if seconds is not None]
        return sum(known) if len(known) == len(expected) else None

    def expected_s(self, plan: Plan) -> float | None:
        """Return the seconds of a whole measurement with purge and preconditioning, or None."""
        name = plan.measurement
        if name not in self._observed_s:
            seconds = [spent_s for folder in self._finished.get(name, ()) if (spent_s := worked_s(folder)) > 0]
            self._observed_s[name] = median(seconds) if seconds else None
        observed_s = self._observed_s[name]
        return self._estimated_s(plan) if observed_s is None else observed_s

    def _estimated_s(self, plan: Plan) -> float | None:
        """Return the estimate; None in simulated time, where a protocol does not determine the waiting time."""
        if plan.clock == "virtual":
            return None
        capacity_bytes = capacity_bytes_of(plan) if plan.virtual else ASSUMED_CAPACITY_BYTES
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
        row = _with_failed(row, recordings, status)
    return _with_misplaced(row, recordings) if row.state in ("to do", "done") else row


def _by_status(
    campaign: Campaign, row: DriveStatus, recordings: Inventory, status: Status, remaining: Remaining
) -> DriveStatus:
    """Return the row with the present or last activity of the drive."""
    state = state_now(status)
    row = replace(
        row, host=status.host or row.host, recording=status.recording, stage=status.stage, text=status.text,
        since_s=status.since_s or None, seen_s=status.at_s,
    )  # fmt: skip
    at = recordings.plans.get(status.recording) if status.recording not in recordings.finished else None
    if state == "done":
        row = _with_next(campaign, row, recordings.left, at, status.stage)
        continues = (at is not None or row.done > 0) and time.time() - status.at_s < RESERVED_S
        return replace(row, state="between stages") if continues else row
    row = replace(row, state=state, reason=status.reason)
    if state == "interrupted":
        row = replace(row, reason=last_words(recordings.results, status))
    if at is not None and state != "failed":
        until_s = status.at_s if state in ("running", "silent") else None
        expected_s = remaining.expected_s(at)
        if row.left_s is not None and expected_s is not None:
            done_s = min(worked_s(recordings.part(at.recording), until_s), _MOST_DONE * expected_s)
            row = replace(row, left_s=row.left_s - done_s)
    return row


def _with_misplaced(row: DriveStatus, recordings: Inventory) -> DriveStatus:
    """Mark the drive as failed if a finished recording's folder holds another recording: the analysis would fail."""
    remedy = "move the folder to its place, or remove it if it is a copy"
    for name in filter(recordings.finished.__contains__, recordings.plans):
        if (fault := misplaced(recordings.results / "recordings" / name)) is not None:
            reason = f"{MANIFEST} is {fault}; {remedy}"
            return replace(row, state="failed", recording=name, stage="tables", reason=reason)
    return row


def _with_next(
    campaign: Campaign, row: DriveStatus, left: Sequence[Plan], at: Plan | None = None, stage: str = ""
) -> DriveStatus:
    """Return the row with the stage after a successful stage; `at` is its recording if that is unfinished."""
    after = dict(pairwise(STAGES))
    if at is None or stage not in after:
        at, stage = min(left, key=campaign.order), ""
    return replace(row, next_recording=at.recording, next_stage=after.get(stage, STAGES[0]))


def _with_failed(row: DriveStatus, recordings: Inventory, status: Status | None) -> DriveStatus:
    """Show a failed measurement as the drive's state if the drive is idle and has nothing else to do."""
    idle = row.state in ("to do", "between stages")
    if not row.unfinished or not idle or (status is not None and len(row.unfinished) < len(recordings.left)):
        return row
    first = min(row.unfinished, key=lambda measurement: STATES.index(measurement.state))
    return replace(
        row, state=first.state, recording=first.recording, stage=first.stage, reason=first.reason, seen_s=first.seen_s,
        text=None, since_s=None, next_recording=None, next_stage=None,
        unfinished=tuple(measurement for measurement in row.unfinished if measurement is not first),
    )  # fmt: skip
