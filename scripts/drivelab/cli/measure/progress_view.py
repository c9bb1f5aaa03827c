"""Show the progress of a study on the terminal: the stage of each drive and the time left."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING

from drivelab.campaign.planning import Campaign
from drivelab.campaign.status import study_status
from drivelab.core.units import format_duration
from drivelab.plan.hosts import host_of
from drivelab.recording.writer import read_object
from drivelab.run.progress import status_of

if TYPE_CHECKING:
    from rich.live import Live

_EVERY_S = 10.0
"""Least time between two lines of a drive without a terminal, unless its stage or round changes."""
_SHARE = 0.02
"""Largest share of a core's time that checking for finished recordings may take."""


class ProgressView:
    """Shows the status files of the study's drives: a line per drive on a terminal, a line per change elsewhere."""

    def __init__(self, campaign: Campaign) -> None:
        self._campaign = campaign
        self._places = sum(campaign.study.concurrency_of(host) for host in {host_of(plan) for plan in campaign.here})
        self._text, self._refresh_s = "", 0.0
        self._width = max(8, *map(len, campaign.study.subjects))
        self._is_measured = self._analysis_shown = False
        self._seen: dict[str, tuple[str, float]] = {}
        self._started_s = time.time()

    def update(self, live: Live | None = None) -> None:
        """Show the current state, on the terminal's display if there is one."""
        lines = []
        for drive in self._campaign.study.subjects:
            status = status_of(read_object(self._campaign.study.results / f"status/{drive}.json"))
            if status is not None and status.at_s >= self._started_s:
                measurement = status.recording.split("/")[1]
                lines.append((drive, f"{drive:<{self._width}} {measurement:<22} {status.stage:<12} {status.text}"))
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
                self._analysis_shown = self._is_measured
        outlook = self._outlook()
        if self._is_measured and not self._analysis_shown:
            self._analysis_shown = True
            print(outlook, flush=True)

    def _outlook(self) -> str:
        """Return the finished measurements and the time left, or the step after the last measurement."""
        began_s = time.monotonic()
        if began_s >= self._refresh_s:
            self._text = self._count_and_estimate()
            now_s = time.monotonic()
            self._refresh_s = now_s + (now_s - began_s) / _SHARE
        return self._text

    def _count_and_estimate(self) -> str:
        rows = study_status(self._campaign)
        done, planned = sum(row.done for row in rows), sum(row.planned for row in rows)
        self._is_measured = done == planned
        text = f"{done} of {planned} measurements done"
        if self._is_measured:
            return f"{text}, making missing tables, figures and report"
        left_s = [row.left_s for row in rows if row.left_s is not None]
        is_known = len(left_s) == len(rows)  # not in simulated time before the first measurement
        return f"{text}, about {format_duration(sum(left_s) / (self._places or 1))} left" if is_known else text
