"""All drives of a study, and the study's progress."""

from __future__ import annotations

import time
from collections import deque
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from drivelab.recording.writer import MANIFEST
from drivelab.watch.drive_view import DONE, RUNNING, WAITING, DriveWatch

_LINES = 200
"""Log lines that are kept."""
_PAUSE_S = 120.0
"""Longest pause between two stages; after it, the study counts as stopped."""
_LOOKS_A_SECOND = 500
"""Checks for finished recordings per second: a study of thousands must not load a shared file system."""


@dataclass(frozen=True)
class StudyFacts:
    """Facts of a study from its configuration."""

    name: str
    title: str
    results: Path
    drives: tuple[str, ...]
    recordings: Mapping[str, bool]
    """All planned recordings, and whether their protocol is reduced."""

    @classmethod
    def load(cls, path: Path) -> StudyFacts:
        """Load a study; raises UserError for an invalid configuration, or another study's results folder."""
        from drivelab.campaign.planning import Campaign
        from drivelab.campaign.results_folder import refuse_foreign

        campaign = Campaign.load(path)
        refuse_foreign(campaign.study)
        study = campaign.study
        recordings = {planned.plan.recording: bool(planned.altered) for planned in campaign.wanted}
        return cls(study.name, study.title, study.results, study.subjects, recordings)


class StudyWatch:
    """Polls all drives of a study."""

    def __init__(self, facts: StudyFacts, clock_s: Callable[[], float] = time.time) -> None:
        self.facts = facts
        self._clock_s = clock_s
        names: dict[str, list[str]] = {drive: [] for drive in facts.drives}
        for name in facts.recordings:
            names[name.split("/")[0]].append(name)
        self._names = names
        self.drives = {drive: DriveWatch(facts.results, drive) for drive in facts.drives}
        self.lines: deque[tuple[float, str, str]] = deque(maxlen=_LINES)
        """Log lines: time, drive, sentence."""
        self._measured: set[str] = set()
        self._looked_s = 0.0

    def poll(self) -> None:
        """Read what is new."""
        self._look()
        polled = {drive: watch.poll() for drive, watch in self.drives.items()}
        self.lines.extend(sorted((at_s, drive, text) for drive, lines in polled.items() for at_s, text in lines))

    def state(self) -> dict[str, Any]:
        """Return the present state of the study and its drives."""
        now_s = self._clock_s()
        drives = [self._drive_state(watch, now_s) for watch in self.drives.values()]  # this also updates self._measured
        done, wanted = len(self._measured), len(self.facts.recordings)
        standing = "finished" if done == wanted else _study_standing(drives, now_s)
        return {
            "name": self.facts.name,
            "title": self.facts.title,
            "standing": standing,
            "done": done,
            "recordings": wanted,
            "drives": drives,
        }

    def _drive_state(self, watch: DriveWatch, now_s: float) -> dict[str, Any]:
        wanted = self._names[watch.drive]
        state = watch.state(now_s)
        recording = state.get("recording", "")
        if state.get("complete") and recording in self.facts.recordings:
            self._measured.add(recording)
        if wanted and self._measured.issuperset(wanted) and state["standing"] in (DONE, WAITING):
            state["standing"] = "measured"  # also if its status is lost or outdated
        return {**state, "reduced": self.facts.recordings.get(recording, False)}

    def _look(self) -> None:
        """Update the set of complete recordings."""
        left = [name for name in self.facts.recordings if name not in self._measured]
        now_s = self._clock_s()
        if 0 <= now_s - self._looked_s < max(2.0, len(left) / _LOOKS_A_SECOND):
            return
        self._looked_s = now_s
        recordings = self.facts.results / "recordings"
        self._measured.update(name for name in left if (recordings / name / MANIFEST).is_file())


def _study_standing(drives: Sequence[Mapping[str, Any]], now_s: float) -> str:
    """Return the state of an unfinished study: `running`, `failed`, `stopped` or `waiting`."""
    standings = {drive["standing"] for drive in drives}
    ended_s = max((drive.get("at_s", 0.0) for drive in drives if drive["standing"] in (DONE, "measured")), default=0.0)
    if RUNNING in standings or now_s - ended_s < _PAUSE_S:
        return RUNNING
    return "failed" if "failed" in standings else WAITING if standings == {WAITING} else "stopped"
