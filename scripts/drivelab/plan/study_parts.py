"""Parse the parts of a study file into typed settings."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from drivelab.core.errors import UserError, suggestion
from drivelab.core.units import parse_amount, parse_duration, parse_share
from drivelab.plan.file_system import FileSystem

ANY_HOST = "any"
BY_PROTOCOL = "by-protocol"
IN_RESULTS = frozenset({
    "recordings", "tables", "dataset", "figures", "report", "logs", "facts", "plans", "seals", "status", "traces",
    "virtual", "together", "study.txt", "concurrency.json", "consent.json", "imported.json", "looks.json",
    "judged.json",
})  # fmt: skip
"""Names that a study uses in its results folder. Folders with other names may belong to other studies."""


@dataclass(frozen=True)
class TraceSource:
    """Source of a study's trace."""

    shipped: str | None
    """Name in traces/, or None."""
    file: Path | None
    """The user's trace file, or None for a shipped trace."""
    capture: str | None
    """Application to trace on this host, or None."""
    origin: str | None
    """Virtual drive on which the application runs."""


@dataclass(frozen=True)
class Platform:
    """A host with its settings, and perhaps a file system, on which a study compares drives."""

    name: str
    host: str
    """Host name, or ANY_HOST for the host that runs the study."""
    scenario: str
    write_cache: str
    """As in `Study`."""
    note: str | None = None
    """What the host cannot tell."""
    file_system: FileSystem | None = None
    """The file system on which a file is measured; None: the drive itself is measured."""

    def of(self, drive: str) -> str:
        """Return the subject name of a drive on this platform."""
        return f"{drive}@{self.name}"


@dataclass(frozen=True)
class Budget:
    """Limits of a study; None means no limit."""

    time_s: float | None = None
    """Time on the busiest host."""
    written_bytes: float | None = None
    """Bytes written to any one drive."""
    endurance: float | None = None
    """Fraction of any one drive's rated endurance."""


@dataclass(frozen=True)
class MeasurementChoice:
    """One entry of `measurements`."""

    protocol: str
    name: str
    scale: str | None
    traces: tuple[str, ...]
    """Traces in the order of a pass; empty for protocols without traces."""
    drives: tuple[str, ...]
    """The measured drives, on any platform."""
    settings: Mapping[str, Any]
    source: str
    """File and key, for errors."""
    application: str | None = None
    """Name in config/applications.yaml; None for protocols without an application."""
    runs: Mapping[tuple[str, str], int] = field(default_factory=dict)
    """Number of runs by drive and platform, from `drivelab.plan.design`."""
    drive_class: str | None = None
    """Class of the drives; None for that of the study."""
    array_state: str = "clean"
    """State that an array must be in: `clean`, `degraded` or `rebuilding`."""

    def drives_in(self, platform: str, run: int) -> tuple[str, ...]:
        """Return the drives with at least `run` runs on a platform."""
        return tuple(drive for drive in self.drives if self.runs.get((drive, platform), 0) >= run)


def platforms_of(
    path: Path, body: Mapping[str, Mapping[str, Any]], scenario: str, write_cache: str
) -> tuple[Platform, ...]:
    """Return the platforms. Settings left out are the study's. Raises UserError for two that are identical."""
    seen: dict[tuple[str, str, str | None, FileSystem | None], str] = {}
    platforms = []
    for name, entry in body.items():
        cache = entry.get("write_cache", write_cache)
        place = f"{path}: key 'platforms.{name}.file_system"
        file_system = FileSystem.from_study(entry["file_system"], place) if "file_system" in entry else None
        platform = Platform(name, entry["host"], entry.get("scenario", scenario), cache, entry.get("note"), file_system)
        other = seen.setdefault((platform.host, platform.scenario, platform.write_cache, file_system), name)
        if other != name:
            raise UserError(
                f"{path}: key 'platforms' has '{other}' and '{name}', which are identical; change the 'host', "
                "'scenario', 'write_cache' or 'file_system' of one, or remove it"
            )
        platforms.append(platform)
    return tuple(platforms)


def results_of(path: Path, body: Mapping[str, Any]) -> Path:
    """Return the results folder. Raises UserError if it collides with a name in another study's results."""
    results = Path(body.get("results", f"results/{body['name']}"))
    for folder in (results, *results.parents):
        if folder.name in IN_RESULTS:
            key = "results" if "results" in body else "name"
            raise UserError(
                f"{path}: key '{key}' gives the results folder {results}, but a study with results in "
                f"{folder.parent} uses {folder} for its own {folder.name}; choose another name"
            )
    return results


def budget_of(path: Path, body: Mapping[str, str]) -> Budget:
    """Return the limits; raises UserError for an invalid value or 0."""
    parsers = {"time": parse_duration, "written": parse_amount, "endurance": parse_share}
    limits = {}
    for key, text in body.items():
        try:
            limits[key] = parsers[key](text)
        except UserError as error:
            raise UserError(f"{path}: key 'budget.{key}': {error}") from None
        if limits[key] == 0:
            raise UserError(
                f"{path}: key 'budget.{key}' is {text}, so nothing can run; set a positive limit or remove the key"
            )
    return Budget(limits.get("time"), limits.get("written"), limits.get("endurance"))


def taint_of(body: Mapping[str, Any]) -> dict[str, float]:
    """Return limits in percent, and as `remeasure` the most repetitions of what is tainted, if the study has them."""
    limits = {f"{key}_pct": 100 * parse_share(body[key]) for key in ("steal", "load") if key in body}
    return limits | {key: body[key] for key in ("remeasure",) if key in body}


def analysis_of(path: Path, body: Mapping[str, Any]) -> dict[str, Any]:
    """Return the analysis fields of `Study`; raises UserError for limits out of range."""
    margin_pct, confidence_pct = (
        100 * parse_share(body.get(key, default)) for key, default in (("margin", "5%"), ("confidence", "95%"))
    )
    if not 50 <= confidence_pct < 100:
        raise UserError(
            f"{path}: key 'analysis.confidence' is {confidence_pct:g} %; choose at least 50 % and less than 100 %"
        )
    if margin_pct == 0:
        raise UserError(
            f"{path}: key 'analysis.margin' is 0 %; no difference can be shown to lie within it; choose a larger one"
        )
    return {
        "rse_threshold_pct": 100 * parse_share(body.get("relative_standard_error", "5%")),
        "margin_pct": margin_pct,
        "confidence_pct": confidence_pct,
        "intended": tuple(body["intended"]) if "intended" in body else None,
        "unintended": body.get("unintended", "show"),
        "scores": {name: tuple(members) for name, members in body.get("scores", {}).items()},
    }


def refuse_scores(path: Path, scores: Mapping[str, tuple[str, ...]], measurements: Iterable[MeasurementChoice]) -> None:
    """Raise UserError for a score with an unknown member, or with the name of a measurement."""
    known = {choice.name for choice in measurements}
    for name, members in scores.items():
        place = f"{path}: key 'analysis.scores.{name}'"
        if name in known:
            raise UserError(f"{place} has the name of a measurement or of a score before it; choose another")
        for member in members:
            if member not in known:
                raise UserError(
                    f"{place} names '{member}', which is neither a measurement nor a score before it; choose from "
                    f"{', '.join(sorted(known))}"
                )
        known.add(name)


def trace_source(entry: Mapping[str, Any], place: str) -> TraceSource:
    """Return the source in an entry of `traces`. Raises UserError unless there is exactly one."""
    if ("shipped" in entry) == ("file" in entry):
        raise UserError(f"{place}: give either 'shipped' (a trace of drivelab) or 'file' (your own trace)")
    file = Path(entry["file"]) if "file" in entry else None
    if file is not None and {"<", ">"} & set(str(file)):
        raise UserError(f"{place}: {file} has '<' or '>', which Snakemake's own report would show as HTML; rename it")
    return TraceSource(entry.get("shipped"), file, entry.get("capture"), entry.get("origin"))


def measurement(
    entry: Mapping[str, Any], place: str, drives: tuple[str, ...], traces: Mapping[str, TraceSource]
) -> MeasurementChoice:
    """Return an entry of `measurements`. Raises UserError for an unknown drive or trace."""
    for drive in entry.get("drives", ()):
        if drive not in drives:
            raise UserError(
                f"{place}.drives' names '{drive}', which is not among the study's drives; add it to 'drives'"
            )
    if "trace" in entry and "traces" in entry:
        raise UserError(f"{place}.trace' and 'traces' are both given; use 'trace' for one trace or 'traces' for a set")
    key = "trace" if "trace" in entry else "traces"
    chosen = (entry["trace"],) if "trace" in entry else tuple(entry.get("traces", ()))
    for trace in chosen:
        if trace not in traces:
            hint = suggestion(trace, sorted(traces))
            raise UserError(f"{place}.{key}' names '{trace}', which is not a key of 'traces'; {hint}")
    return MeasurementChoice(
        protocol=entry["protocol"],
        name=entry.get("name", entry["protocol"]),
        scale=entry.get("scale"),
        traces=chosen,
        drives=tuple(entry.get("drives", drives)),
        settings=entry.get("set", {}),
        source=f"{place}'",
        drive_class=entry.get("class"),
        application=entry.get("application"),
        array_state=entry.get("array_state", "clean"),
    )


def refuse_twice(path: Path, measurements: tuple[MeasurementChoice, ...]) -> None:
    """Raise UserError if two measurements of one drive have the same name."""
    seen: set[tuple[str, str]] = set()
    for choice in measurements:
        for drive in choice.drives:
            if (drive, choice.name) in seen:
                raise UserError(
                    f"{path}: key 'measurements' has '{choice.name}' twice for drive '{drive}'; "
                    "give one of them another 'name'"
                )
            seen.add((drive, choice.name))
