"""Progress of a study on the terminal: what runs on which drive, how far it is, how long it takes yet."""

from __future__ import annotations

import json
import sys
import time
from pathlib import Path
from types import TracebackType
from typing import Any

from drivelab.recording.places import home
from drivelab.stages.estimate import assumed_mib_s, estimate
from drivelab.stages.planning import Campaign, Planned
from drivelab.stages.platforms import host_of
from drivelab.stages.scheduling import reckoned_capacity_bytes
from drivelab.units import format_duration

_EVERY_S = 10.0
"""Where the output is no terminal, a line at least so far apart, unless the stage or the round changes."""


class ProgressView:
    """Reads the status files of the study's drives; a line a drive on a terminal, a line a change elsewhere."""

    def __init__(self, campaign: Campaign) -> None:
        self._campaign = campaign
        self._expected = {
            one.plan.recording: _expected_s(campaign, one) for one in campaign.plans if campaign.is_here(one.plan)
        }
        self._width = max(8, *map(len, campaign.study.subjects))
        self._began: dict[str, float] = {}
        self._seen: dict[str, tuple[str, float]] = {}
        self._live: Any = None
        self._started_s = time.time()

    def __enter__(self) -> ProgressView:
        if sys.stdout.isatty():
            from rich.live import Live

            self._live = Live(refresh_per_second=4, transient=True)
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

    def _read(self, drive: str) -> dict[str, Any] | None:
        try:
            return dict(json.loads((home(self._campaign.study.results, drive) / f"status/{drive}.json").read_text()))
        except (OSError, ValueError):
            return None

    def _outlook(self) -> str:
        """Estimated time left: what measurements took on another drive, else a guess from the protocol."""
        done, left_s = 0, 0.0
        for one in self._campaign.plans:
            recording = one.plan.recording
            if (one.plan.recording_path / "recording.json").exists():
                done += 1
                continue
            expected_s = self._observed_s(one) or self._expected[recording]
            spent_s = time.time() - self._began[recording] if recording in self._began else 0.0
            left_s += max(expected_s - spent_s, 0.1 * expected_s)
        hosts = {host_of(plan) for plan in self._campaign.here}
        left_s /= sum(map(self._campaign.study.concurrency_of, hosts)) or 1
        return f"{done} of {len(self._campaign.plans)} measurements done, about {format_duration(left_s)} left"

    def _observed_s(self, one: Planned) -> float | None:
        """Seconds that the same measurement took on a drive that is done."""
        for other in self._campaign.plans:
            if other.plan.measurement == one.plan.measurement:
                seconds = _duration_s(other.plan.recording_path)
                if seconds is not None:
                    return seconds
        return None


def _duration_s(recording: Path) -> float | None:
    from datetime import datetime

    try:
        manifest = json.loads((recording / "recording.json").read_text())
    except (OSError, ValueError):
        return None
    return (datetime.fromisoformat(manifest["finished"]) - datetime.fromisoformat(manifest["started"])).total_seconds()


def _expected_s(campaign: Campaign, one: Planned) -> float:
    """Between the least and the most, nearer to the least: steady state usually comes early."""
    bandwidth_mib_s = assumed_mib_s(one.plan, None)
    span = estimate(
        one.plan, reckoned_capacity_bytes(campaign, one.plan), bandwidth_mib_s, campaign.traces_of(one.plan)
    )
    return span.least_s + 0.15 * (span.most_s - span.least_s)
