"""Which files a study leads to, for the workflow: its rules name them, this module knows them."""

from __future__ import annotations

import os
import re
import shlex
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from drivelab.config.study_parts import IN_RESULTS
from drivelab.errors import UserError
from drivelab.imported import IMPORTED
from drivelab.recording.places import OWNER, owner, refuse_other_owner
from drivelab.recording.writer import UNFINISHED
from drivelab.stages.figure_kinds import REPLAY_TABLES
from drivelab.stages.figure_layout import FigureLayout, any_of
from drivelab.stages.places import announce
from drivelab.stages.planning import Planned
from drivelab.stages.simultaneous import Simultaneous, simultaneous_jobs
from drivelab.virtual.kept import KEPT_DRIVES

TRACE_TABLES = (
    "trace_overview",
    "trace_operations",
    "trace_over_time",
    "trace_sizes",
    "trace_interarrival",
    "trace_burstiness",
    "trace_latency",
    "trace_heat",
    "trace_streams",
    "trace_streams_over_time",
    "trace_reuse",
)
"""Tables of each trace, without importing their schemas for the same reason."""
KEY = "[0-9a-f]{12}-run[0-9]+"
"""Regular expression for the last part of RECORDING."""
APPLICATION_TABLES = ("application_runs",)
"""Tables of the applications that each recording ran, likewise; empty for one that ran none."""


class Layout(FigureLayout):
    """Paths of one study, relative to the project's folder."""

    def other_folders(self) -> list[str]:
        """Folders where the study's recordings lie that no plan of it leads to, such as one that was copied there."""
        known = {Path(one) for one in self.of_every_recording("recordings/RECORDING")}
        found = {one.parent for one in (Path(self.results) / "recordings").glob("*/*/*/plan.json")}
        return sorted(str(one) for one in found - known if not UNFINISHED.search(one.name))

    def measurements(self) -> list[str]:
        """Names of the study's measurements, also of those that are still to be made on another host."""
        return sorted({one.plan.measurement for one in self.campaign.wanted})

    def of_every_trace(self, table: str) -> list[str]:
        """A table of every trace of the study."""
        return [self.path(f"tables/traces/{name}/{table}.parquet") for name in self.campaign.study.traces]

    def planned(self, wildcards: object) -> Planned:
        """The plan that the wildcards of a recording stand for."""
        return self.campaign.by_recording["/".join(getattr(wildcards, w) for w in ("drive", "measurement", "key"))]

    def targets(self) -> list[str]:
        """All that a finished study has: what is deleted of it is made again."""
        return [
            self.path("report/index.html"),
            self.path("report/pts-pages.pdf"),
            *self.of_every_recording("recordings/RECORDING/recording.json"),
            *self.tables(),
            *self.all_figures("svg"),
            *self.all_figures("png"),
            *self.all_figures("json"),
        ]

    def tables(self) -> list[str]:
        """All tables: of the study, of its recordings, of its traces."""
        study = ("exclusions", "summary", "conditions", "differences", "deltas", "drives", "hosts", "traces")
        recording = (
            "cells",
            "latency_bins",
            "series",
            *REPLAY_TABLES,
            *APPLICATION_TABLES,
            "telemetry",
            "steady_state",
            "findings",
            "saturation",
        )
        return [
            *(self.path(f"tables/{name}.parquet") for name in study),
            *(path for name in recording for path in self.of_every_recording(f"tables/RECORDING/{name}.parquet")),
            *(path for name in TRACE_TABLES for path in self.of_every_trace(name)),
        ]

    def compared_pairs(self) -> list[tuple[str, str]]:
        """The basis, and each of what is compared with it."""
        basis = self.campaign.study.basis
        return [(basis, one) for one in self.campaign.study.subjects if one != basis]

    def comparison(self) -> dict[str, Any]:
        """How the study wants deltas to be judged, as keyword arguments of `drivelab.analysis.deltas.deltas_table`."""
        study = self.campaign.study
        return {"margin_pct": study.margin_pct, "confidence_pct": study.confidence_pct, "unintended": study.unintended}

    def altered(self) -> dict[str, list[str]]:
        """How the protocol of each recording was shortened or changed, in words; empty for a full-length one."""
        return {one.plan.recording: list(one.altered) for one in self.campaign.plans}

    def report_facts(self) -> dict[str, Any]:
        """What the report needs to know of the study beyond tables and recordings; the analysis depends on it."""
        study, titles = self.campaign.study, {one.protocol.name: one.protocol for one in self.campaign.plans}
        return {
            "name": study.name,
            "title": study.title,
            "basis": study.basis,
            "scenario": study.scenario,
            "rse_threshold_pct": study.rse_threshold_pct,
            **self.comparison(),
            "intended": study.intended,
            "clock_reason": self.campaign.clock[1] if any(one.plan.virtual for one in self.campaign.plans) else None,
            "cannot_capture": self.campaign.cannot_capture if study.traces else None,
            "altered": self.altered(),
            "protocols": {
                name: {key: str(one.body[key]) for key in ("title", "source")} for name, one in titles.items()
            },
        }

    def taint_limits(self) -> dict[str, float]:
        """Above which a cell is tainted, as `drivelab.analysis.taint.Limits` takes them."""
        return {key: value for key, value in self.campaign.study.taint.items() if key != "remeasure"}

    def replay_tables(self) -> dict[str, str]:
        """Files of a recording's tables of replays, by table."""
        return {name: self.path(f"tables/RECORDING/{name}.parquet") for name in REPLAY_TABLES}

    def trace_tables(self) -> dict[str, str]:
        """Output files of a rule that counts a trace, by table."""
        return {name: self.path(f"tables/traces/{{trace}}/{name}.parquet") for name in TRACE_TABLES}

    def trace_names(self) -> str:
        """Regular expression for the traces of the study; matches nothing if there is none."""
        return "|".join(map(re.escape, self.campaign.study.traces)) or "(?!)"

    def traces_of(self, wildcards: object) -> list[str]:
        """Paths of the traces that a recording replays or takes streams of."""
        return [str(path) for path in self.planned(wildcards).plan.context["trace_paths"]]

    def traced_measurements(self) -> str:
        """Regular expression for the measurements that use traces; matches nothing if none does."""
        return any_of(one for one in self.campaign.plans if "traces" in one.plan.subject)

    def simultaneous(self) -> list[Simultaneous]:
        """Jobs of this host that measure several drives at the same time."""
        return simultaneous_jobs(self.campaign.here, self.path)

    def keys_of_single(self) -> str:
        """Regular expression for the keys of recordings that are made alone."""
        keys = {one.recording.rpartition("/")[2] for one in self.campaign.here if "simultaneous" in one.subject}
        return f"(?!({'|'.join(sorted(keys))})/)" * bool(keys) + KEY

    def scores(self) -> dict[str, dict[str, Any]]:
        """How each measurement is condensed: the `analysis` of its protocol; empty where it has none."""
        return {one.plan.measurement: dict(one.protocol.body.get("analysis", {})) for one in self.campaign.plans}

    def check_owner(self) -> None:
        """Raise UserError if the results folder is another study's, holds imported results, or cannot be a folder."""
        study = self.campaign.study
        refuse_other_owner(study)
        if (study.results / IMPORTED).exists():
            raise UserError(
                f"{study.path}: key 'results' is {self.results}, which holds imported results; name another folder"
            )
        for place in (study.results, *study.results.parents):
            if os.path.lexists(place) and not place.is_dir():
                raise UserError(
                    f"{study.path}: key 'results' is {self.results}, but {place} is no folder; move it away, or name "
                    "another folder"
                )

    def unowned(self) -> list[str]:
        """Names of what lies in the results folder though no study has claimed it, but folders that may be studies'."""
        results = Path(self.results)
        if not results.is_dir() or owner(results) is not None:
            return []
        return sorted(
            one.name
            for one in results.iterdir()
            if not one.name.startswith(".") and (one.name in IN_RESULTS or not one.is_dir())
        )

    def drop_stale_plans(self) -> None:
        """Remove files of plans, left by a run that failed, that say of a drive what no longer holds, such as its host.

        Snakemake does not write them again by itself; their digest is of what is measured alone. None while a Snakemake
        is at work on them, also as a part of a fleet: what it carries out is what it has planned.
        """
        for recording, path in self._plan_files():
            planned = self.campaign.by_recording.get(recording)
            if planned is not None and path.read_text() != planned.plan.to_json() + "\n":
                path.unlink()

    def _plan_files(self) -> Iterator[tuple[str, Path]]:
        """Recordings with the files that their plans are in while they are to be made."""
        plans = Path(self.results) / "plans"
        for path in plans.rglob("*.json"):
            yield str(path.relative_to(plans).with_suffix("")), path

    def claim(self) -> None:
        """Mark the results folder as this study's, and forget what a run that failed has planned and no longer counts.

        At the start of a run, not of a look at one: another may be under way then, by the study as it was.
        """
        wanted = {one.plan.recording for one in self.campaign.wanted}
        for recording, path in self._plan_files():
            if recording not in wanted:
                path.unlink(missing_ok=True)
        path = Path(self.results) / OWNER
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(self.campaign.study.name + "\n")
        announce(self.campaign)

    def virtual_drives(self) -> list[str]:
        """Names of the virtual drives that the study runs in real time."""
        wall = {plan.sheet_drive for plan in self.campaign.here if plan.clock == "wall"}
        return sorted(name for drive in wall if (name := self.campaign.sheet[drive].virtual))

    def kept_drives(self) -> Path:
        """Folder for the state of virtual drives between two runs of an unfinished study."""
        return self.campaign.study.results / KEPT_DRIVES

    def release_command(self, *, keep: bool) -> str:
        """Shell command that ends the study's virtual drives; one that another study uses goes on."""
        names = self.virtual_drives()
        option = f" --keep {shlex.quote(str(self.kept_drives()))}" if keep else ""
        return f"drivelab virtual stop {' '.join(names)}{option} > /dev/null 2>&1 || true" if names else "true"
