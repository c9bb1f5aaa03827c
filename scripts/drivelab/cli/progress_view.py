"""Progress of a study on the terminal: what runs on which drive, how far it is, how long it takes yet."""

from __future__ import annotations

import sys
import time
from collections.abc import Mapping
from dataclasses import asdict
from types import TracebackType
from typing import Any

from drivelab.plan.plan import Plan
from drivelab.recording.places import home
from drivelab.recording.writer import read_object, worked_s
from drivelab.stages.estimate import assumed_mib_s
from drivelab.stages.outlook import Estimates
from drivelab.stages.planning import Campaign
from drivelab.stages.platforms import host_of, is_recorded
from drivelab.stages.progress import status_of
from drivelab.stages.scheduling import reckoned_capacity_bytes
from drivelab.terminal import NO_REDIRECTION, console
from drivelab.units import format_duration

_EVERY_S = 10.0
"""Where the output is no terminal, a line at least so far apart, unless the stage or the round changes."""
_SHARE = 0.02
"""Of a core that looking for what is done may take, however many recordings there are."""
_LEAST_SHARE = 0.05
"""Of a stage that must be done before its pace tells anything."""
_LEAST_LEFT = 0.1
"""Of the time that a measurement is expected to take, as long as it is not done."""
_ANALYSIS = "making what is missing of tables, figures and report"


class ProgressView:
    """Reads the status files of the study's drives; a line a drive on a terminal, a line a change elsewhere."""

    def __init__(self, campaign: Campaign) -> None:
        self._campaign = campaign
        self._estimates = Estimates(campaign)
        self._left = {plan.recording: plan for plan in campaign.here}
        self._places = sum(campaign.study.concurrency_of(host) for host in {host_of(plan) for plan in campaign.here})
        self._observed_s: dict[str, float | None] = {}
        self._told, self._look_again_s = "", 0.0
        self._width = max(8, *map(len, campaign.study.subjects))
        self._began: dict[str, float] = {}
        self._pace_s: dict[str, float] = {}
        self._analysis_told = False
        self._seen: dict[str, tuple[str, float]] = {}
        self._live: Any = None
        self._started_s = time.time()

    def __enter__(self) -> ProgressView:
        if sys.stdout.isatty():
            from rich.live import Live

            self._live = Live(console=console(), refresh_per_second=4, transient=True, **NO_REDIRECTION)
            self._live.__enter__()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self._live is not None:
            self._live.__exit__(kind, error, trace)

    def update(self) -> None:
        """Show what has changed."""
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
        if self._live is not None:
            from rich.text import Text

            text = "\n".join(line[:110] for _, line in lines) or "planning"
            self._live.update(Text(f"{text}\n{self._outlook()}"))
        else:
            self._print_changes(lines)

    def _print_changes(self, lines: list[tuple[str, str]]) -> None:
        now_s = time.monotonic()
        for drive, line in lines:
            key = line.split(", cell")[0].split(" s of")[0]
            known, said_s = self._seen.get(drive, ("", 0.0))
            if key != known and (now_s - said_s > _EVERY_S or key.split(",")[0] != known.split(",")[0]):
                self._seen[drive] = (key, now_s)
                print(f"{line}   [{self._outlook()}]", flush=True)
                self._analysis_told = not self._left
        outlook = self._outlook()
        if not self._left and not self._analysis_told:
            self._analysis_told = True
            print(outlook, flush=True)

    def _read(self, drive: str) -> dict[str, Any] | None:
        status = status_of(read_object(home(self._campaign.study.results, drive) / f"status/{drive}.json"))
        return None if status is None else asdict(status)

    def _outlook(self) -> str:
        """What is done and how long the rest takes, or what comes after the last measurement."""
        began_s = time.monotonic()
        if began_s >= self._look_again_s:
            self._told = self._look()
            now_s = time.monotonic()
            self._look_again_s = now_s + (now_s - began_s) / _SHARE
        return self._told

    def _look(self) -> str:
        for plan in [plan for plan in self._left.values() if is_recorded(plan)]:
            del self._left[plan.recording]
            if self._observed_s.get(plan.measurement) is None:
                self._observed_s[plan.measurement] = worked_s(plan.recording_path)
        whole = len(self._campaign.plans)
        done = f"{whole - len(self._left)} of {whole} measurements done"
        if not self._left:
            return f"{done}, {_ANALYSIS}"
        return f"{done}{self._time_left()}"

    def _likely_s(self, plan: Plan) -> float:
        capacity_bytes = reckoned_capacity_bytes(self._campaign, plan)
        return self._estimates.of(plan, capacity_bytes, assumed_mib_s(plan, None), None).likely_s

    def _time_left(self) -> str:
        """Estimated: what measurements took on another drive, else a guess from the protocol. One that takes longer is
        told by the pace of its stage, which is the most where a stop rule may end it earlier. In simulated time the
        protocol tells nothing of the time that one waits.
        """
        now_s, left_s, word = time.time(), 0.0, "about"
        for recording, plan in self._left.items():
            expected_s = self._observed_s.get(plan.measurement)
            if not expected_s and plan.clock == "virtual":
                return ""
            expected_s = expected_s or self._likely_s(plan)
            one_s, least_s = expected_s - (now_s - self._began.get(recording, now_s)), _LEAST_LEFT * expected_s
            if one_s < least_s < self._pace_s.get(recording, 0.0):
                one_s, word = self._pace_s[recording], "at most"
            left_s += max(one_s, least_s)
        return f", {word} {format_duration(left_s / (self._places or 1))} left"


def _pace_s(status: Mapping[str, Any], now_s: float) -> float:
    """Seconds until a stage ends if it goes on as it has, as far as its status tells; 0 where nothing can be told."""
    share, spent_s = status.get("fraction", 0.0), now_s - status.get("since_s", now_s)
    return spent_s * (1 / share - 1) if _LEAST_SHARE <= share < 1 and spent_s > 0 else 0.0
