"""Show the progress of a study on the terminal: the stage of each drive and the time left."""

from __future__ import annotations

import time
from collections.abc import Mapping
from dataclasses import asdict
from typing import TYPE_CHECKING, Any

from drivelab.campaign.estimate import assumed_mib_s
from drivelab.campaign.outlook import Estimates
from drivelab.campaign.planning import Campaign
from drivelab.core.units import format_duration
from drivelab.plan.hosts import host_of
from drivelab.plan.plan import Plan
from drivelab.recording.folders import is_recorded, worked_s
from drivelab.recording.writer import read_object
from drivelab.run.progress import status_of
from drivelab.workflow.scheduling import reckoned_capacity_bytes

if TYPE_CHECKING:
    from rich.live import Live

_EVERY_S = 10.0
"""Least time between two lines of a drive without a terminal, unless its stage or round changes."""
_SHARE = 0.02
"""Largest share of a core's time that checking for finished recordings may take."""
_LEAST_SHARE = 0.05
"""Least finished share of a stage before its pace predicts the rest."""
_LEAST_LEFT = 0.1
"""Least share of its expected time that an unfinished measurement is assumed to need."""
_ANALYSIS = "making missing tables, figures and report"


class ProgressView:
    """Shows the status files of the study's drives: a line per drive on a terminal, a line per change elsewhere."""

    def __init__(self, campaign: Campaign) -> None:
        self._campaign = campaign
        self._estimates = Estimates(campaign)
        self._left = {plan.recording: plan for plan in campaign.here}
        self._places = sum(campaign.study.concurrency_of(host) for host in {host_of(plan) for plan in campaign.here})
        self._observed_s: dict[str, float | None] = {}
        self._text, self._refresh_s = "", 0.0
        self._width = max(8, *map(len, campaign.study.subjects))
        self._began: dict[str, float] = {}
        self._pace_s: dict[str, float] = {}
        self._analysis_shown = False
        self._seen: dict[str, tuple[str, float]] = {}
        self._started_s = time.time()

    def update(self, live: Live | None = None) -> None:
        """Show the current state, on the terminal's display if there is one."""
        lines = []
        for drive in self._campaign.study.subjects:
            status = self._read(drive)
            if status is None or status["at_s"] < self._started_s:
                continue
            recording = status["recording"]
            self._began.setdefault(recording, status["at_s"])
            self._pace_s[recording] = _pace_s(status, time.time())
            measurement = recording.split("/")[1]
            lines.append((drive, f"{drive:<{self._width}} {measurement:<22} {status['stage']:<12} {status['text']}"))
        if live is not None:
            from rich.text import Text

            text = "\n".join(line[:110] for _, line in lines) or "planning"
            live.update(Text(f"{text}\n{self._outlook()}"))
        else:
            self._print_changes(lines)

    def _print_changes(self, lines: list[tuple[str, str]]) -> None:
        now_s = time.monotonic()
        for drive, line in lines:
            key = line.split(", cell")[0].split(" s of")[0]
            known, printed_s = self._seen.get(drive, ("", 0.0))
            if key != known and (now_s - printed_s > _EVERY_S or key.split(",")[0] != known.split(",")[0]):
                self._seen[drive] = (key, now_s)
                print(f"{line}   [{self._outlook()}]", flush=True)
                self._analysis_shown = not self._left
        outlook = self._outlook()
        if not self._left and not self._analysis_shown:
            self._analysis_shown = True
            print(outlook, flush=True)

    def _read(self, drive: str) -> dict[str, Any] | None:
        status = status_of(read_object(self._campaign.study.results / f"status/{drive}.json"))
        return None if status is None else asdict(status)

    def _outlook(self) -> str:
        """Return the finished measurements and the time left, or the step after the last measurement."""
        began_s = time.monotonic()
        if began_s >= self._refresh_s:
            self._text = self._count_and_estimate()
            now_s = time.monotonic()
            self._refresh_s = now_s + (now_s - began_s) / _SHARE
        return self._text

    def _count_and_estimate(self) -> str:
        for plan in [plan for plan in self._left.values() if is_recorded(plan)]:
            del self._left[plan.recording]
            if self._observed_s.get(plan.measurement) is None:
                self._observed_s[plan.measurement] = worked_s(plan.recording_path)
        total = len(self._campaign.plans)
        done = f"{total - len(self._left)} of {total} measurements done"
        if not self._left:
            return f"{done}, {_ANALYSIS}"
        return f"{done}{self._time_left()}"

    def _likely_s(self, plan: Plan) -> float:
        capacity_bytes = reckoned_capacity_bytes(plan)
        return self._estimates.of(plan, capacity_bytes, assumed_mib_s(plan, None), None).likely_s

    def _time_left(self) -> str:
        """Return the estimated time left.

        The estimate of a measurement is its time on another drive, else a guess from the protocol. If it takes longer,
        the pace of its stage gives an upper limit, because a stop rule may end the stage earlier. In simulated time
        the protocol does not predict the waiting time, so the text is empty.
        """
        now_s, left_s, limit = time.time(), 0.0, "about"
        for recording, plan in self._left.items():
            expected_s = self._observed_s.get(plan.measurement)
            if not expected_s and plan.clock == "virtual":
                return ""
            expected_s = expected_s or self._likely_s(plan)
            rest_s, least_s = expected_s - (now_s - self._began.get(recording, now_s)), _LEAST_LEFT * expected_s
            if rest_s < least_s < self._pace_s.get(recording, 0.0):
                rest_s, limit = self._pace_s[recording], "at most"
            left_s += max(rest_s, least_s)
        return f", {limit} {format_duration(left_s / (self._places or 1))} left"


def _pace_s(status: Mapping[str, Any], now_s: float) -> float:
    """Return the seconds until a stage ends at its present pace, from its status; 0 if unknown."""
    share, spent_s = status.get("fraction", 0.0), now_s - status.get("since_s", now_s)
    return spent_s * (1 / share - 1) if _LEAST_SHARE <= share < 1 and spent_s > 0 else 0.0
