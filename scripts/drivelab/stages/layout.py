"""Which files a study leads to, for the workflow: its rules name them, this module knows them."""

from __future__ import annotations

import re
import shlex
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any

from drivelab.errors import UserError
from drivelab.stages.planning import Campaign, Planned
from drivelab.virtual.kept import KEPT_DRIVES

RECORDING = "{drive}/{measurement}/{key}"
"""Path of a recording as wildcards; `key` is `digest-runN`."""
FIGURES_OF = {
    "loop": ("convergence", "window", "measurement_2d", "measurement_3d"),
    "soak": ("saturation_time", "saturation_bytes", "latency_distribution"),
    "replay": ("replay", "replay_fidelity", "replay_latency", "replay_over_time", "replay_operations"),
    "phases": ("replay_phases",),
    "comparison": ("comparison",),
    "trace": (
        "trace_footprint",
        "trace_sizes",
        "trace_streams",
        "trace_interarrival",
        "trace_depth",
        "trace_heat",
        "trace_latency",
    ),
}
"""Figures of each kind of step, without importing what draws them: a plan must not wait for matplotlib."""
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
REPLAY_TABLES = (
    "replays",
    "replay_operations",
    "replay_streams",
    "replay_latency",
    "replay_issue_errors",
    "replay_over_time",
    "replay_mappings",
    "replay_passes",
)
"""Tables of the replays of each recording, likewise; empty for one that replays nothing."""
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

    def figures(self, place: str, kind: str, report: Callable[..., str]) -> dict[str, str]:
        """Output files of a rule that draws the figures of a kind of step, of the comparison, or of a trace.

        `report` is Snakemake's, handed in because this library does not import it: it marks the SVG files for
        Snakemake's own report, with caption and category.
        """
        files: dict[str, str] = {}
        for name in FIGURES_OF[kind]:
            stem = self.path(f"figures/{place}/{name}")
            if kind == "trace":
                subject, labels = "{trace}", {"trace": "{trace}", "figure": name}
            else:
                drive = "all" if kind == "comparison" else "{drive}"
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
        recording = ("cells", "latency_bins", "series", *REPLAY_TABLES, "telemetry", "steady_state")
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
            for kind in ("loop", "soak", "replay", "phases")
            for name in FIGURES_OF[kind]
            for path in self.of_every_recording(f"figures/RECORDING/{name}.{ending}", kind)
        ]
        if len(self.campaign.study.drives) > 1:
            names = dict.fromkeys(one.plan.measurement for one in self.campaign.plans)
            files += [f"{self.results}/figures/comparison/{name}/comparison.{ending}" for name in names]
        files += [
            self.path(f"figures/traces/{one}/{name}.{ending}") for one in self.traces() for name in FIGURES_OF["trace"]
        ]
        return files

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

    def measurements(self, kind: str) -> str:
        """Regular expression for the measurements that have a step of a kind; matches nothing if none has."""
        return _any_of(one for one in self.campaign.plans if kind in kinds(one))

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
            uses[_resource(drive)] = lambda wildcards, drive=drive: int(wildcards.drive == drive)
        return uses

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
        wall = {one.plan.drive for one in self.campaign.plans if one.plan.clock == "wall"}
        return sorted(name for drive in wall if (name := self.campaign.sheet[drive].virtual))

    def kept_drives(self) -> Path:
        """Folder for the state of virtual drives between two runs of an unfinished study."""
        return self.campaign.study.results / KEPT_DRIVES

    def release_command(self, *, keep: bool) -> str:
        """Shell command that ends the study's virtual drives; one that another study uses goes on."""
        names = self.virtual_drives()
        option = f" --keep {shlex.quote(str(self.kept_drives()))}" if keep else ""
        return f"drivelab virtual stop {' '.join(names)}{option} > /dev/null 2>&1 || true" if names else "true"


def kinds(planned: Planned) -> set[str]:
    """Kinds of steps that a plan has, and `phases` if it repeats some by phase.

    A soak in a phase is none of its own: it puts the drive in a state for the replay after it. A loop of a trace's
    streams is of the kind `streams`: its cells have no common scale of block sizes.
    """
    steps = [(kind, fields) for step in planned.plan.subject["measure"] for kind, fields in step.items()]
    found = {"streams" if "streams" in fields else kind for kind, fields in steps
             if not (kind == "soak" and "phase" in fields)}  # fmt: skip
    return found | {"phases" for kind, fields in steps if kind == "replay" and "phase" in fields}


def _any_of(plans: Iterable[Planned]) -> str:
    return "|".join(map(re.escape, sorted({one.plan.measurement for one in plans}))) or "(?!)"


def _resource(drive: str) -> str:
    return f"drive_{drive.replace('-', '_')}"
