"""Load a study: one checked YAML file as typed settings."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from drivelab.core.errors import UserError, suggestion
from drivelab.plan.design import NO_PLATFORM, Design, Growth, growth_of
from drivelab.plan.places import refuse_outside
from drivelab.plan.schema import validate
from drivelab.plan.study_parts import ANY_HOST as ANY_HOST
from drivelab.plan.study_parts import BY_PROTOCOL as BY_PROTOCOL
from drivelab.plan.study_parts import (
    Budget,
    analysis_of,
    budget_of,
    measurement,
    platforms_of,
    refuse_scores,
    refuse_twice,
    results_of,
    taint_of,
    trace_source,
)
from drivelab.plan.study_parts import MeasurementChoice as MeasurementChoice
from drivelab.plan.study_parts import Platform as Platform
from drivelab.plan.study_parts import TraceSource as TraceSource
from drivelab.plan.yaml_file import load_yaml

DEFAULT_STUDY = "config/study.yaml"


@dataclass(frozen=True)
class Study:
    """Settings of a study; its names and the references between its parts are checked."""

    path: Path
    name: str
    title: str
    results: Path
    drives_sheet: Path
    drive_class: str | None
    """None for the usual class of each protocol."""
    scenario: str
    purge: str
    """How drives are purged: `auto`, a method of `drivelab.drives.purge`, or `none`: not purged."""
    write_cache: str
    """`on`, `off`, `unchanged`, or BY_PROTOCOL."""
    host_settings: str
    """`check` or `apply`."""
    taint: Mapping[str, float]
    """Keyword arguments of `drivelab.criteria.taint.Limits`, and `remeasure`."""
    host_note: str | None
    """What the host cannot tell, such as its cooler."""
    meter: Mapping[str, Any]
    """`csv` or `command` of an external power meter; empty without a meter."""
    consent: tuple[str, ...]
    """Serials of drives whose data drivelab may destroy without asking."""
    clock: str
    concurrency: int | Mapping[str, int]
    """Simultaneous measurements on each host; see `concurrency_of`."""
    runs: int
    """Runs of each measurement; of a growing study, after the last look and of the measurement that has most."""
    basis: str
    """The subject, one of `subjects`, that deltas are relative to."""
    drives: tuple[str, ...]
    platforms: tuple[Platform, ...]
    """Empty for a study of drives alone."""
    traces: Mapping[str, TraceSource]
    measurements: tuple[MeasurementChoice, ...]
    rse_threshold_pct: float
    margin_pct: float = 5.0
    """Differences within the margin count as equal."""
    confidence_pct: float = 95.0
    """Confidence level of the intervals of deltas; their tests have the significance level 100 minus it."""
    intended: tuple[str, ...] | None = None
    """Facets and kinds of the table `conditions` in which compared drives are meant to differ; None: derived from what
    is compared."""
    unintended: str = "show"
    """`show` or `forbid` deltas of recordings that differ in anything else."""
    scores: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    """Members of each score: measurements, or scores before it (drivelab.analysis.values.scores)."""
    order: int | None = None
    """Seed of the random order of measurements (`drivelab.plan.hosts`); None for the order in the file."""
    budget: Budget = field(default_factory=Budget)
    growth: Growth | None = None
    """For a study that adds runs until it is decided."""

    def concurrency_of(self, host: str) -> int:
        """Return the simultaneous measurements on a host or ANY_HOST. Return 1 for a host that a mapping leaves out."""
        return self.concurrency if isinstance(self.concurrency, int) else self.concurrency.get(host, 1)

    @property
    def verdict_confidence_pct(self) -> float:
        """Return the confidence level of verdicts: that of the next look, if the study grows."""
        if self.growth is None:
            return self.confidence_pct
        return self.growth.confidence_pct(self.confidence_pct)

    @property
    def subjects(self) -> tuple[str, ...]:
        """Return the compared drives, or each drive on each platform as DRIVE@PLATFORM."""
        return _subjects(self.drives, self.platforms)


def load_study(path: Path, growth: Growth | None = None) -> Study:
    """Return the study in a file; raises UserError with file and key for any fault.

    `growth` replaces the looks that a growing study has recorded.
    """
    body = validate(load_yaml(path, "a study file"), "study", str(path))
    drives = tuple(body["drives"])
    platforms = platforms_of(path, body["platforms"], body["scenario"], body["write_cache"])
    subjects = _subjects(drives, platforms)
    basis = body.get("basis", subjects[0])
    if basis not in subjects:
        kind = "drives on its platforms" if platforms else "drives"
        raise UserError(
            f"{path}: key 'basis' is '{basis}', which is not among the study's {kind}; {suggestion(basis, subjects)}"
        )
    results = results_of(path, body)
    traces = {name: trace_source(entry, f"{path}: key 'traces.{name}'") for name, entry in body["traces"].items()}
    refuse_outside(path, Path(body["drives_sheet"]), _files(traces, body.get("meter", {})))
    measurements = tuple(
        measurement(entry, f"{path}: key 'measurements[{index}]", drives, traces)
        for index, entry in enumerate(body["measurements"])
    )
    growth = growth or growth_of(path, body["runs"], results)
    names = tuple(platform.name for platform in platforms)
    design = Design(str(path), measurements, drives, names, body["runs"] if growth is None else growth.runs)
    measurements = design.resolve(body["exclude"], body["include"])
    refuse_twice(path, measurements)
    analysis = analysis_of(path, body["analysis"])
    refuse_scores(path, analysis["scores"], measurements)
    drive, _, platform = basis.partition("@")
    if all((drive, platform or NO_PLATFORM) not in choice.runs for choice in measurements):
        raise UserError(f"{path}: key 'basis' is '{basis}', on which nothing is measured; choose another")
    return Study(
        path=path,
        name=body["name"],
        title=body["title"] or f"Study {body['name']}",
        results=results,
        drives_sheet=Path(body["drives_sheet"]),
        drive_class=None if body["class"] == BY_PROTOCOL else body["class"],
        scenario=body["scenario"],
        purge=body["purge"],
        write_cache=body["write_cache"],
        host_settings=body["host_settings"],
        taint=taint_of(body["taint"]),
        host_note=body.get("host_note"),
        meter=body.get("meter", {}),
        consent=tuple(body["consent"]),
        clock=body["clock"],
        concurrency=body["concurrency"],
        runs=body["runs"] if growth is None else growth.now,
        growth=growth,
        basis=basis,
        drives=drives,
        platforms=platforms,
        traces=traces,
        measurements=measurements,
        budget=budget_of(path, body.get("budget", {})),
        order=body["order"]["random"] if isinstance(body["order"], dict) else None,
        **analysis,
    )


def _files(traces: Mapping[str, TraceSource], meter: Mapping[str, Any]) -> dict[str, Path]:
    """Return the files that a study names, by key."""
    files = {f"traces.{name}.file": source.file for name, source in traces.items() if source.file is not None}
    return {**files, **({"meter.csv": Path(meter["csv"])} if "csv" in meter else {})}


def _subjects(drives: Sequence[str], platforms: Sequence[Platform]) -> tuple[str, ...]:
    return tuple(platform.of(drive) for drive in drives for platform in platforms) if platforms else tuple(drives)
