"""The files of a study, for the rules of the workflow."""

from __future__ import annotations

import os
import re
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from drivelab.campaign.planning import Planned
from drivelab.core import programs
from drivelab.core.errors import UserError
from drivelab.core.files import write_atomic
from drivelab.imported import IMPORTED
from drivelab.plan.hosts import host_of
from drivelab.plan.places import restored_folder
from drivelab.plan.study_parts import IN_RESULTS
from drivelab.recording import checksums
from drivelab.recording.folders import OWNER, owner, refuse_other_owner
from drivelab.recording.writer import UNFINISHED, Recording
from drivelab.run.places import announce
from drivelab.virtual.kept_state import KEPT_DRIVES
from drivelab.workflow.cluster import Simultaneous, simultaneous_jobs
from drivelab.workflow.figure_kinds import REPLAY_TABLES
from drivelab.workflow.figure_layout import FigureLayout, any_of
from drivelab.workflow.locks import place

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
)
"""Tables of each trace. Their schemas are not imported, for speed."""
APPLICATION_TABLES = ("application_runs",)
"""Application tables of each recording; empty for a recording without an application."""
LOAD_TABLES = ("load_rates",)
"""Tables of the load steps of each recording; empty for a recording without one."""


class Layout(FigureLayout):
    """Paths of one study, relative to the project's folder."""

    KEY = "[0-9a-f]{12}-run[0-9]+"
    """Regular expression for the last part of RECORDING."""

    def other_folders(self) -> list[str]:
        """Return recording folders that match no plan of the study, such as a folder that was copied there."""
        known = {Path(folder) for folder in self.of_every_recording("recordings/RECORDING")}
        present = {path.parent for path in (Path(self.results) / "recordings").glob("*/*/*/plan.json")}
        return sorted(str(folder) for folder in present - known if not UNFINISHED.search(folder.name))

    @property
    def recordings(self) -> list[str]:
        """Names of all recordings of the study: DRIVE/MEASUREMENT/KEY."""
        return [planned.plan.recording for planned in self.campaign.plans]

    def with_kind(self, kind: str) -> list[str]:
        """Return the names of the recordings that have figures of a kind."""
        return [recording for recording in self.recordings if kind in self.kinds_of[recording]]

    def measurements(self) -> list[str]:
        """Return the names of the study's measurements, including those that another host still has to make."""
        return sorted({wanted.plan.measurement for wanted in self.campaign.wanted})

    def planned(self, wildcards: object) -> Planned:
        """Return the plan for the wildcards of a recording."""
        return self.campaign.by_recording["/".join(getattr(wildcards, w) for w in ("drive", "measurement", "key"))]

    def targets(self) -> list[str]:
        """Return the files that a run has to make: the reports, and each other file of a finished study that is lost.

        The reports need all other files but PNG figures. Snakemake does not miss such a file while its report exists.
        """
        reports = [self.path("report/index.html"), self.path("report/pts-pages.pdf")]
        figures = zip(self.all_figures("png"), self.all_figures("svg"), strict=False)
        files = [png for png, svg in figures if Path(svg).exists()]
        if Path(reports[0]).exists():
            files += [*self.of_every_recording("recordings/RECORDING/recording.json"), *self.tables()]
            files += self.all_figures()
        return [*reports, *(path for path in files if not Path(path).exists())]

    @property
    def locks(self) -> Path:
        """Folder of Snakemake's locks of this study."""
        return place(self.campaign.study.results)

    def tables(self) -> list[str]:
        """Return all tables of the study, its recordings and its traces."""
        study = (
            "exclusions",
            "summary",
            "conditions",
            "differences",
            "deltas",
            "model_deltas",
            "variation",
            "drives",
            "hosts",
            "traces",
        )
        recording = (
            "cells",
            "latency_bins",
            "series",
            *REPLAY_TABLES,
            *APPLICATION_TABLES,
            *LOAD_TABLES,
            "telemetry",
            "steady_state",
            "findings",
            "saturation",
        )
        return [
            *(self.path(f"tables/{name}.parquet") for name in study),
            *(path for name in recording for path in self.of_every_recording(f"tables/RECORDING/{name}.parquet")),
            *(path.format(trace=trace) for trace in self.traces() for path in self.trace_tables().values()),
        ]

    def compared_pairs(self) -> list[tuple[str, str]]:
        """Return pairs of the basis and each subject that is compared with it."""
        basis = self.campaign.study.basis
        return [(basis, subject) for subject in self.campaign.study.subjects if subject != basis]

    def models(self) -> dict[str, str]:
        """Return the model of each subject whose drive has one in the sheet; on platforms, the model there."""
        named = {}
        for subject in self.campaign.study.subjects:
            drive, at, platform = subject.partition("@")
            if model := self.campaign.sheet[drive].model:
                named[subject] = f"{model}{at}{platform}"
        return named

    def comparison(self) -> dict[str, Any]:
        """Return the study's settings for deltas, as keyword arguments of
        `drivelab.analysis.deltas.deltas.deltas_table`."""
        study = self.campaign.study
        return {
            "margin_pct": study.margin_pct,
            "confidence_pct": study.verdict_confidence_pct,
            "unintended": study.unintended,
        }

    def altered(self) -> dict[str, list[str]]:
        """Return descriptions of each recording's protocol changes; empty for an unchanged protocol."""
        return {planned.plan.recording: list(planned.altered) for planned in self.campaign.plans}

    def analysis_facts(self) -> dict[str, Any]:
        """Return the facts of the study for `drivelab.analysis.study_tables`."""
        study = self.campaign.study
        return {
            "others": self.other_folders(),
            "drives": list(study.subjects),
            "measurements": self.measurements(),
            "rse_threshold_pct": study.rse_threshold_pct,
            "scores": self.scores(),
            "score_sets": study.scores,
            "basis": study.basis,
            "basis_is_there": self.campaign.basis_is_there,
            "models": self.models(),
            "altered": self.altered(),
            "pairs": self.compared_pairs(),
            "intended": study.intended,
            "comparison": self.comparison(),
        }

    def report_facts(self) -> dict[str, Any]:
        """Return the facts of the study that the report needs besides tables and recordings."""
        study, plans = self.campaign.study, self.campaign.plans
        protocols = {planned.protocol.name: planned.protocol for planned in plans}
        return {
            "name": study.name,
            "title": study.title,
            "basis": study.basis,
            "scores": {name: list(members) for name, members in study.scores.items()},
            "scenario": study.scenario,
            "rse_threshold_pct": study.rse_threshold_pct,
            **self.comparison(),
            "growth": study.growth and study.growth.facts(study.confidence_pct),
            "intended": study.intended,
            "clock_reason": self.campaign.clock[1] if any(planned.plan.virtual for planned in plans) else None,
            "cannot_capture": self.campaign.traces.cannot_capture if study.traces else None,
            "altered": self.altered(),
            "protocols": {
                name: {key: str(protocol.body[key]) for key in ("title", "source")}
                for name, protocol in protocols.items()
            },
        }

    def taint_limits(self) -> dict[str, float]:
        """Return the limits above which a cell is tainted, for `drivelab.criteria.taint.Limits`."""
        return {key: value for key, value in self.campaign.study.taint.items() if key != "remeasure"}

    def replay_tables(self) -> dict[str, str]:
        """Return the files of a recording's replay tables, by table."""
        return {name: self.path(f"tables/RECORDING/{name}.parquet") for name in REPLAY_TABLES}

    def trace_tables(self) -> dict[str, str]:
        """Return the output files of a rule that computes trace statistics, by table."""
        return {name: self.path(f"tables/traces/{{trace}}/{name}.parquet") for name in TRACE_TABLES}

    def trace_names(self) -> str:
        """Return a regular expression for the traces of the study; without traces it matches nothing."""
        return "|".join(map(re.escape, self.campaign.study.traces)) or "(?!)"

    def traces_of(self, wildcards: object) -> list[str]:
        """Return the paths of the traces that a recording replays or takes streams from."""
        return [str(path) for path in self.planned(wildcards).plan.context["trace_paths"]]

    def traced_measurements(self) -> str:
        """Return a regular expression for the measurements that use traces; if none does, it matches nothing."""
        return any_of(planned for planned in self.campaign.plans if "traces" in planned.plan.subject)

    def simultaneous(self) -> list[Simultaneous]:
        """Return the jobs of this host that measure several drives at the same time."""
        return simultaneous_jobs(self.campaign.here, self.path)

    def keys_of_single(self) -> str:
        """Return a regular expression for the keys of recordings that are measured alone."""
        keys = {plan.recording.rpartition("/")[2] for plan in self.campaign.here if "simultaneous" in plan.subject}
        return f"(?!({'|'.join(sorted(keys))})/)" * bool(keys) + self.KEY

    def scores(self) -> dict[str, dict[str, Any]]:
        """Return the `analysis` key of each measurement's protocol; empty if the protocol has none."""
        return {
            planned.plan.measurement: dict(planned.protocol.body.get("analysis", {})) for planned in self.campaign.plans
        }

    def check_owner(self) -> None:
        """Raise UserError if the results folder is another study's, holds imported results, or is not a folder.

        Also if it has recordings of a fleet of drivelab 0.1: their drives would be measured again.
        """
        study = self.campaign.study
        refuse_other_owner(study)
        if (study.results / IMPORTED).exists():
            raise UserError(
                f"{study.path}: key 'results' is {self.results}, which holds imported results; name another folder"
            )
        if any(owner(path.parents[1]) == study.name for path in study.results.glob("drives/*/recordings/*")):
            raise UserError(
                f"{self.results}: holds recordings of a fleet, each drive in its own folder; move them, or they would "
                f"be measured again: mkdir -p {self.results}/recordings; "
                f"mv {self.results}/drives/*/recordings/* {self.results}/recordings/"
            )
        for path in (study.results, *study.results.parents):
            if os.path.lexists(path) and not path.is_dir():
                raise UserError(
                    f"{study.path}: key 'results' is {self.results}, but {path} is not a folder; move it away, or "
                    "name another folder"
                )

    def unowned(self) -> list[str]:
        """Return names in a results folder without an owner, except folders that may belong to other studies."""
        results = Path(self.results)
        if not results.is_dir() or owner(results) is not None:
            return []
        return sorted(
            path.name
            for path in results.iterdir()
            if not path.name.startswith(".") and (path.name in IN_RESULTS or not path.is_dir())
        )

    def drop_stale_plans(self) -> None:
        """Remove plan files of a failed run whose facts are out of date, such as a drive's host.

        Snakemake does not rewrite them, because their digest covers only what is measured. Do not call this while a
        Snakemake uses the files: it must run what it has planned.
        """
        for recording, path in self._plan_files():
            planned = self.campaign.by_recording.get(recording)
            if planned is not None and path.read_text() != planned.plan.to_json() + "\n":
                path.unlink()

    def set_torn_aside(self) -> None:
        """Set aside finished recordings that lost files in a loss of power, so that they are measured again; say so.

        Recordings of an archive stay: they were not measured here. Do not call this while a Snakemake measures.
        """
        if restored_folder(Path(self.results)) is not None:
            return
        for plan in self.campaign.here:
            recording = Recording(plan)
            if (loss := checksums.torn(recording.final)) is not None:
                aside = recording.set_final_aside()
                print(
                    f"drivelab: {plan.recording}: is not whole: {loss}, as after a loss of power. It is measured "
                    f"again; the rest is in {aside}.",
                    file=sys.stderr,
                )

    def _plan_files(self) -> Iterator[tuple[str, Path]]:
        """Yield each recording that has a plan file, and the file."""
        plans = Path(self.results) / "plans"
        for path in plans.rglob("*.json"):
            yield str(path.relative_to(plans).with_suffix("")), path

    def claim(self) -> None:
        """Mark the results folder as this study's, and remove obsolete plan files of a failed run.

        Call this at the start of a run only: while you inspect a study, another run may use an earlier version of it.
        """
        wanted = {wanted.plan.recording for wanted in self.campaign.wanted}
        for recording, path in self._plan_files():
            if recording not in wanted:
                path.unlink(missing_ok=True)
        path = Path(self.results) / OWNER
        write_atomic(path, self.campaign.study.name + "\n")
        study = self.campaign.study
        hosts = dict.fromkeys(host_of(plan) for plan in self.campaign.here)
        announce(study.results, {host: study.concurrency_of(host) for host in hosts})

    def virtual_drives(self) -> list[str]:
        """Return the names of the virtual drives that the study runs in real time."""
        wall = {plan.sheet_drive for plan in self.campaign.here if plan.clock == "wall"}
        return sorted(name for drive in wall if (name := self.campaign.sheet[drive].virtual))

    def kept_drives(self) -> Path:
        """Return the folder for the state of virtual drives between two runs of an unfinished study."""
        return self.campaign.study.results / KEPT_DRIVES

    def release(self, *, keep: bool) -> None:
        """Stop the study's virtual drives, except those that another study uses.

        With `keep`, their state is kept for the next run. A drive that cannot be stopped is left running.
        """
        if names := self.virtual_drives():
            options = ["--keep", str(self.kept_drives())] if keep else []
            programs.run(["drivelab", "virtual", "stop", *names, *options])
