"""Which files a study leads to, for the workflow: its rules name them, this module knows them."""

from __future__ import annotations

import re
import shlex
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any

from drivelab.errors import UserError
from drivelab.plan.plan import drive_in_sheet
from drivelab.stages.figure_kinds import FIGURES_OF, OF_A_RECORDING, REPLAY_TABLES, TABLES_OF, figure_kinds
from drivelab.stages.planning import Campaign, Planned
from drivelab.stages.simultaneous import Simultaneous, simultaneous_jobs
from drivelab.virtual.kept import KEPT_DRIVES

RECORDING = "{drive}/{measurement}/{key}"
"""Path of a recording as wildcards; `key` is `digest-runN`."""
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
_OWNER = "study.txt"


class Layout:
    """Paths of one study, relative to the project's folder."""

    def __init__(self, campaign: Campaign) -> None:
        self.campaign = campaign
        self.results = str(campaign.study.results)

    def path(self, pattern: str) -> str:
        """A path in the results folder; `RECORDING` in it stands for the wildcards of a recording."""
        return f"{self.results}/{pattern.replace('RECORDING', RECORDING)}"

    def of_every_recording(self, pattern: str, kind: str | None = None) -> list[str]:
        """The path for every recording of the study, or for those that have a step of a kind."""
        return [
            f"{self.results}/{pattern.replace('RECORDING', one.plan.recording)}"
            for one in self.campaign.plans
            if kind is None or kind in kinds(one)
        ]

    def of_every_trace(self, table: str) -> list[str]:
        """A table of every trace of the study."""
        return [self.path(f"tables/traces/{name}/{table}.parquet") for name in self.campaign.study.traces]

    def planned(self, wildcards: object) -> Planned:
        """The plan that the wildcards of a recording stand for."""
        return self.campaign.by_recording["/".join(getattr(wildcards, w) for w in ("drive", "measurement", "key"))]

    def figure_sets(self) -> list[tuple[str, ...]]:
        """The combinations of kinds of figures that recordings of the study have."""
        return sorted({found for one in self.campaign.plans if (found := _in_order(one))})

    def with_figures(self, of_kinds: tuple[str, ...]) -> dict[str, str]:
        """Regular expressions for the wildcards of the recordings that have just these kinds of figures.

        The measurement tells them, but where it differs from drive to drive: there the key does.
        """
        chosen = [one for one in self.campaign.plans if _in_order(one) == of_kinds]
        found = {"measurement": _any_of(chosen)}
        names = {one.plan.measurement for one in chosen}
        if any(one.plan.measurement in names and _in_order(one) != of_kinds for one in self.campaign.plans):
            found["key"] = "|".join(sorted({one.plan.recording.rpartition("/")[2] for one in chosen}))
        return found

    def figure_tables(self, of_kinds: Iterable[str]) -> dict[str, str]:
        """Input files of the rule that draws these kinds of figures, by table."""
        names = dict.fromkeys(name for kind in of_kinds for name in TABLES_OF[kind])
        return {name: self.path(f"tables/{'' if name == 'drives' else 'RECORDING/'}{name}.parquet") for name in names}

    def figures(self, place: str, of_kinds: Iterable[str], report: Callable[..., str]) -> dict[str, str]:
        """Output files of a rule that draws kinds of figures, of a recording, of the comparison, or of a trace.

        `report` is Snakemake's, handed in because this library does not import it: it marks the SVG files for
        Snakemake's own report, with caption and category.
        """
        files: dict[str, str] = {}
        for kind, name in ((one, figure) for one in of_kinds for figure in FIGURES_OF[one]):
            stem = self.path(f"figures/{place}/{name}")
            if kind == "trace":
                subject, labels = "{trace}", {"trace": "{trace}", "figure": name}
            else:
                drive = "all" if kind in ("comparison", "head_to_head") else "{drive}"
                subject, labels = "{measurement}", {"test": "{measurement}", "drive": drive, "figure": name}
            files[name] = report(
                f"{stem}.svg",
                caption=f"../report/{name}.rst",
                category="Figures",
                subcategory=subject,
                labels=labels,
            )
            files[f"{name}_png"] = f"{stem}.png"
        return files

    def targets(self) -> list[str]:
        """All that a finished study has: what is deleted of it is made again."""
        study = ("summary", "deltas", "drives", "hosts", "traces")
        recording = (
            "cells",
            "latency_bins",
            "series",
            *REPLAY_TABLES,
            *APPLICATION_TABLES,
            "telemetry",
            "steady_state",
        )
        return [
            self.path("report/index.html"),
            *self.of_every_recording("recordings/RECORDING/recording.json"),
            *(self.path(f"tables/{name}.parquet") for name in study),
            *(path for name in recording for path in self.of_every_recording(f"tables/RECORDING/{name}.parquet")),
            *(path for name in TRACE_TABLES for path in self.of_every_trace(name)),
            *self.all_figures("svg"),
            *self.all_figures("png"),
        ]

    def all_figures(self, ending: str = "svg") -> list[str]:
        """The figure files of the whole study with an ending, `svg` or `png`."""
        files = [
            path
            for kind in OF_A_RECORDING
            for name in FIGURES_OF[kind]
            for path in self.of_every_recording(f"figures/RECORDING/{name}.{ending}", kind)
        ]
        files += [f"{self.results}/figures/comparison/{name}/comparison.{ending}" for name in self.compared()]
        files += [
            self.path(f"figures/comparison/{one}/{name}.{ending}")
            for one in self.together()
            for name in FIGURES_OF["head_to_head"]
        ]
        files += [
            self.path(f"figures/traces/{one}/{name}.{ending}") for one in self.traces() for name in FIGURES_OF["trace"]
        ]
        return files

    def compared(self) -> list[str]:
        """Measurements that are there of the basis and of something to compare with it."""
        made: dict[str, set[str]] = {}
        for one in self.campaign.plans:
            made.setdefault(one.plan.measurement, set()).add(one.plan.drive)
        return [name for name, subjects in made.items() if self.campaign.study.basis in subjects and len(subjects) > 1]

    def together(self) -> list[str]:
        """Measurements that several drives went through at the same time."""
        return list(dict.fromkeys(one.plan.measurement for one in self.campaign.plans
                                  if "simultaneous" in one.plan.subject))  # fmt: skip

    def of_measurement(self, pattern: str, measurement: str) -> list[str]:
        """The path for every recording of one measurement."""
        return [
            f"{self.results}/{pattern.replace('RECORDING', one.plan.recording)}"
            for one in self.campaign.plans
            if one.plan.measurement == measurement
        ]

    def report_facts(self) -> dict[str, Any]:
        """What the report needs to know of the study beyond tables and recordings; the analysis depends on it."""
        study, titles = self.campaign.study, {one.protocol.name: one.protocol for one in self.campaign.plans}
        return {
            "name": study.name,
            "title": study.title,
            "basis": study.basis,
            "scenario": study.scenario,
            "rse_threshold_pct": study.rse_threshold_pct,
            "clock_reason": self.campaign.clock[1] if any(one.plan.virtual for one in self.campaign.plans) else None,
            "cannot_capture": self.campaign.cannot_capture if study.traces else None,
            "altered": {one.plan.recording: list(one.altered) for one in self.campaign.plans},
            "protocols": {
                name: {key: str(one.body[key]) for key in ("title", "source")} for name, one in titles.items()
            },
        }

    def taint_limits(self) -> dict[str, float]:
        """Above which a cell is tainted, as `drivelab.analysis.taint.Limits` takes them."""
        return {key: value for key, value in self.campaign.study.taint.items() if key != "remeasure"}

    def traces(self) -> dict[str, str]:
        """Path of every trace of the study by name."""
        return {name: str(self.campaign.trace_path(name)) for name in self.campaign.study.traces}

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
        return _any_of(one for one in self.campaign.plans if "traces" in one.plan.subject)

    def host_limits(self) -> dict[str, int]:
        """Snakemake resources with their limits: a resource without a limit is unlimited."""
        return {
            "measuring": self.campaign.study.concurrency,
            **{_resource(d): 1 for d in self.campaign.study.drives},
        }

    def all_cores(self, cores: int | None) -> int:
        """Cores that a measuring job claims, so that no analysis disturbs it: its share of all there are."""
        return max(1, (cores or 1) // self.campaign.study.concurrency)

    def drive_resources(self) -> dict[str, int | Callable[..., int]]:
        """Resources of a job that uses a drive: one place on the host, and the drive."""
        uses: dict[str, int | Callable[..., int]] = {"measuring": 1}
        for drive in self.campaign.study.drives:
            uses[_resource(drive)] = lambda wildcards, drive=drive: int(drive_in_sheet(wildcards.drive) == drive)
        return uses

    def simultaneous(self) -> list[Simultaneous]:
        """Jobs of this host that measure several drives at the same time."""
        return simultaneous_jobs(self.campaign.here, self.path)

    def resources_of(self, drives: Iterable[str]) -> dict[str, int]:
        """Resources of a job that uses several drives at the same time: one place on the host, and the drives."""
        return {"measuring": 1, **{_resource(drive): 1 for drive in drives}}

    def keys_of_single(self) -> str:
        """Regular expression for the keys of recordings that are made alone."""
        keys = {one.recording.rpartition("/")[2] for one in self.campaign.here if "simultaneous" in one.subject}
        return f"(?!({'|'.join(sorted(keys))})/)" * bool(keys) + KEY

    def scores(self) -> dict[str, dict[str, Any]]:
        """How each measurement is condensed: the `analysis` of its protocol; empty where it has none."""
        return {one.plan.measurement: dict(one.protocol.body.get("analysis", {})) for one in self.campaign.plans}

    def check_owner(self) -> None:
        """Raise UserError if the results folder is another study's."""
        owner = Path(self.results) / _OWNER
        study = self.campaign.study
        if owner.exists() and (found := owner.read_text().strip()) != study.name:
            raise UserError(
                f"{study.path}: key 'results' is {self.results}, which holds study '{found}'; name another folder"
            )

    def claim(self) -> None:
        """Mark the results folder as this study's."""
        owner = Path(self.results) / _OWNER
        owner.parent.mkdir(parents=True, exist_ok=True)
        owner.write_text(self.campaign.study.name + "\n")

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


def _in_order(planned: Planned) -> tuple[str, ...]:
    found = kinds(planned)
    return tuple(kind for kind in OF_A_RECORDING if kind in found)


def kinds(planned: Planned) -> set[str]:
    """Kinds of figures that a plan leads to."""
    return figure_kinds(planned.plan.subject)


def _any_of(plans: Iterable[Planned]) -> str:
    return "|".join(map(re.escape, sorted({one.plan.measurement for one in plans}))) or "(?!)"


def _resource(drive: str) -> str:
    return f"drive_{drive.replace('-', '_')}"
