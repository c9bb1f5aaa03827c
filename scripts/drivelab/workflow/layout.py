"""The files of a study, for the rules of the workflow."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from functools import cached_property
from typing import Any

from drivelab.campaign.planning import Campaign, Planned
from drivelab.campaign.results_folder import require_writable, set_torn_aside
from drivelab.campaign.study_facts import analysis_facts, report_facts
from drivelab.core import programs
from drivelab.core.errors import UserError
from drivelab.core.files import write_atomic
from drivelab.core.grouping import grouped
from drivelab.figures.over_drives import measurements_by_size
from drivelab.plan.hosts import host_of
from drivelab.recording.folders import OWNER, is_recorded
from drivelab.run.places import announce
from drivelab.run.study_lock import RunLock, hold
from drivelab.virtual.kept_state import KEPT_DRIVES


class Layout:
    """Files and settings of one study; paths are relative to the project's folder."""

    KEY = "[0-9a-f]{12}-run[0-9]+"
    """Regular expression for the last part of a recording's path."""

    def __init__(self, campaign: Campaign, *, existing: bool = False) -> None:
        """With `existing`, the study is what was measured of it: after a failure, all that is there is analysed."""
        self.campaign, self._existing = campaign, existing
        self.plans = [planned for planned in campaign.plans if not existing or is_recorded(planned.plan)]
        self.results = str(campaign.study.results)
        self._lock: RunLock | None = None

    @property
    def recordings(self) -> list[str]:
        """Names of all recordings of the study: DRIVE/MEASUREMENT/KEY."""
        return [planned.plan.recording for planned in self.plans]

    @cached_property
    def series(self) -> Mapping[str, list[str]]:
        """Recordings by DRIVE/MEASUREMENT: each measurement of a drive is a series of recordings with one job."""
        return grouped(self.recordings, _series)

    def runs(self, wildcards: Any) -> list[str]:
        """Return the names of the recordings of a drive and a measurement."""
        return self.series[f"{wildcards.drive}/{wildcards.measurement}"]

    def keys(self, wildcards: Any) -> list[str]:
        """Return the keys of the recordings of a drive and a measurement."""
        return [name.rpartition("/")[2] for name in self.runs(wildcards)]

    @cached_property
    def comparisons(self) -> Mapping[str, list[str]]:
        """Recordings by what has comparison figures: measurements of several drives, and protocols of several sizes."""
        plans = [planned.plan for planned in self.plans]
        of = grouped(plans, lambda plan: plan.measurement)
        compared = {name: (name,) for name in of if len({plan.drive for plan in of[name]}) > 1}
        return {
            name: [plan.recording for measurement in measurements for plan in of[measurement]]
            for name, measurements in {**compared, **measurements_by_size(plans)}.items()
        }

    def compared_series(self, wildcards: Any) -> list[str]:
        """Return the DRIVE/MEASUREMENT of a comparison."""
        return list(dict.fromkeys(map(_series, self.comparisons[wildcards.measurement])))

    def traces(self) -> dict[str, str]:
        """Return the path of each trace of the study by name."""
        paths = {name: self.campaign.traces.path(name) for name in self.campaign.study.traces}
        return {name: str(path) for name, path in paths.items() if path.exists() or not self._existing}

    def planned(self, wildcards: Any) -> Planned:
        """Return the plan for the wildcards of a recording."""
        return self.campaign.by_recording[f"{wildcards.drive}/{wildcards.measurement}/{wildcards.key}"]

    @cached_property
    def analysis_facts(self) -> dict[str, Any]:
        """What an analysis needs to know of the study."""
        return analysis_facts(self.campaign, self.plans)

    def report_facts(self) -> dict[str, Any]:
        """Return what the report needs to know of the study."""
        return report_facts(self.campaign, self.plans, self.analysis_facts, list(self.comparisons), list(self.traces()))

    def reduced(self, wildcards: Any) -> list[str]:
        """Return the keys of the recordings of a drive and a measurement whose protocol was changed."""
        by_recording = self.campaign.by_recording
        return [name.rpartition("/")[2] for name in self.runs(wildcards) if by_recording[name].altered]

    def taint_limits(self) -> dict[str, float]:
        """Return the limits above which a cell is tainted, for `drivelab.criteria.taint.Limits`."""
        return {key: value for key, value in self.campaign.study.taint.items() if key != "remeasure"}

    def trace_names(self) -> str:
        """Return a regular expression for the traces of the study; without traces it matches nothing."""
        return _any_of(self.campaign.study.traces)

    def traces_of(self, wildcards: Any) -> list[str]:
        """Return the paths of the traces that a recording uses and that the study captures itself.

        The path of any other trace may change without a new measurement: the plan has its digest.
        """
        paths = self.planned(wildcards).plan.context.get("trace_paths", [])
        return [path for path in dict.fromkeys(paths) if path.startswith(f"{self.results}/traces/")]

    def traced_measurements(self) -> str:
        """Return a regular expression for the measurements that use traces; if none does, it matches nothing."""
        return _any_of(sorted({known.plan.measurement for known in self.plans if "traces" in known.plan.subject}))

    def together(self, wildcards: Any) -> list[str]:
        """Return the recordings that are measured at the same time as that of the wildcards, which is one of them."""
        return [plan.recording for plan in self.campaign.together[self.planned(wildcards).plan.recording]]

    def measured_together(self, wildcards: Any) -> list[str]:
        """Return the file that says that drives were measured at the same time; none for a drive measured alone."""
        plans = self.campaign.together.get(self.planned(wildcards).plan.recording)
        return [f"{self.results}/together/{plans[0].recording}"] if plans else []

    def claim(self) -> None:
        """Hold the results folder, mark it as this study's, and bring its plan files up to date.

        Call this at the start of a run only: while you inspect a study, another run may use an earlier version of it.
        The digest in a plan's path covers what is measured; other facts in it, such as the drive's host, may change
        between two runs. Raises UserError if another process runs the study, if this user may not write to its files,
        or if recordings were set aside.
        """
        study, results = self.campaign.study, self.campaign.study.results
        require_writable(results)
        self._lock = hold(results, study.name)
        if self._lock is not None and set_torn_aside(self.campaign):
            self._lock.ended_in_order()
            raise UserError("recordings are not whole (see above); start again to measure them again")
        known = {wanted.plan.recording: wanted.plan for wanted in self.campaign.wanted}
        plans = results / "plans"
        for path in plans.rglob("*.json"):
            recording = str(path.relative_to(plans).with_suffix(""))
            if recording not in known:
                path.unlink(missing_ok=True)
            elif path.read_bytes() != (text := known[recording].to_json() + "\n").encode():
                write_atomic(path, text)
        write_atomic(results / OWNER, study.name + "\n")
        hosts = dict.fromkeys(host_of(plan) for plan in self.campaign.here)
        announce(results, {host: study.concurrency_of(host) for host in hosts})

    def release(self, *, keep: bool) -> None:
        """Stop the study's virtual drives, except those that another study uses.

        With `keep`, their state is kept for the next run. A drive that cannot be stopped is left running.
        """
        if not self._existing and (names := self.campaign.virtual_drives):
            options = ["--keep", str(self.campaign.study.results / KEPT_DRIVES)] if keep else []
            programs.run(["drivelab", "virtual", "stop", *names, *options])
        if self._lock is not None:
            self._lock.ended_in_order()


def _series(recording: str) -> str:
    return recording.rpartition("/")[0]


def _any_of(names: Iterable[str]) -> str:
    return "|".join(map(re.escape, names)) or "(?!)"
