"""Parts of a study as typed settings, each from its part of the file."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from drivelab.errors import UserError
from drivelab.units import parse_amount, parse_duration, parse_share

ANY_HOST = "any"
IN_RESULTS = frozenset({
    "recordings", "tables", "figures", "report", "logs", "plans", "seals", "status", "traces", "virtual", "drives",
    "study.txt", "complete.txt", "concurrency.json", "consent.json", "imported.json",
})  # fmt: skip
"""What a study keeps in its results folder under names of its own. Folders of other names may be other studies'."""


@dataclass(frozen=True)
class TraceSource:
    """Where a trace of a study comes from."""

    shipped: str | None
    """Name in traces/, or None."""
    file: Path | None
    """A trace of the user's own, where none is shipped."""
    capture: str | None
    """Application to trace on this host, or None."""
    origin: str | None
    """Virtual drive that the application runs on."""


@dataclass(frozen=True)
class Platform:
    """What a study's drives are compared on: a host with its settings."""

    name: str
    host: str
    """Host name, or ANY_HOST for whichever host the study is run on."""
    scenario: str
    write_cache: str | None
    """As in `Study`."""

    def of(self, drive: str) -> str:
        """What results of a drive on this platform are told of."""
        return f"{drive}@{self.name}"


@dataclass(frozen=True)
class Budget:
    """What a study may take at the most; None where there is no limit."""

    time_s: float | None = None
    """On the busiest host."""
    written_bytes: float | None = None
    """To any one drive."""
    endurance: float | None = None
    """Fraction of any one drive's rated endurance."""


@dataclass(frozen=True)
class MeasurementChoice:
    """One entry of `measurements`."""

    protocol: str
    name: str
    scale: str | None
    traces: tuple[str, ...]
    """In the order of a pass; empty for protocols that take none."""
    drives: tuple[str, ...]
    """Those that it is made of, on whatever platform."""
    settings: Mapping[str, Any]
    source: str
    """File and key, for errors."""
    application: str | None = None
    """Name in config/applications.yaml; None for protocols that run none."""
    runs: Mapping[tuple[str, str], int] = field(default_factory=dict)
    """How often by drive and platform, as `drivelab.config.design` lays it out."""

    def drives_in(self, platform: str, run: int) -> tuple[str, ...]:
        """Drives whose measurements on a platform have a run of that number."""
        return tuple(drive for drive in self.drives if self.runs.get((drive, platform), 0) >= run)


def write_cache_of(wanted: str, drive_class: str) -> str | None:
    """PTS: enterprise drives are tested with the volatile write cache off, client drives with it on."""
    if wanted == "unchanged":
        return None
    return {"enterprise": "off", "client": "on"}[drive_class] if wanted == "by-class" else wanted


def platforms_of(
    path: Path, body: Mapping[str, Mapping[str, str]], scenario: str, write_cache: str | None, drive_class: str
) -> tuple[Platform, ...]:
    """The platforms of a study; what one does not say is as in the study. Raises UserError for two that are alike."""
    found: dict[tuple[str, str, str | None], str] = {}
    platforms = []
    for name, one in body.items():
        cache = write_cache_of(one["write_cache"], drive_class) if "write_cache" in one else write_cache
        platform = Platform(name, one["host"], one.get("scenario", scenario), cache)
        other = found.setdefault((platform.host, platform.scenario, platform.write_cache), name)
        if other != name:
            raise UserError(
                f"{path}: key 'platforms' has '{other}' and '{name}', which differ in nothing; give them another "
                "'host', 'scenario' or 'write_cache', or leave one out"
            )
        platforms.append(platform)
    return tuple(platforms)


def results_of(path: Path, body: Mapping[str, Any]) -> Path:
    """The results folder; raises UserError for one at a place that another study keeps something of its own at."""
    results = Path(body.get("results", f"results/{body['name']}"))
    for folder in (results, *results.parents):
        if folder.name in IN_RESULTS:
            key = "results" if "results" in body else "name"
            raise UserError(
                f"{path}: key '{key}' asks for the results folder {results}, but {folder} is where a study with "
                f"results in {folder.parent} keeps its own {folder.name}; choose another name"
            )
    return results


def budget_of(path: Path, body: Mapping[str, str]) -> Budget:
    """Raises UserError for what is no duration, no amount or no share, and for nothing at all."""
    known = {"time": parse_duration, "written": parse_amount, "endurance": parse_share}
    found = {}
    for key, text in body.items():
        try:
            found[key] = known[key](text)
        except UserError as error:
            raise UserError(f"{path}: key 'budget.{key}': {error}") from None
        if found[key] == 0:
            raise UserError(
                f"{path}: key 'budget.{key}' is {text}, of which nothing can be measured; allow more, or leave it out"
            )
    return Budget(found.get("time"), found.get("written"), found.get("endurance"))


def taint_of(body: Mapping[str, Any]) -> dict[str, float]:
    """Limits in percent, and how often a tainted cell is measured again."""
    limits = {f"{key}_pct": 100 * parse_share(body[key]) for key in ("steal", "load") if key in body}
    return {**limits, "remeasure": body.get("remeasure", 0)}


def analysis_of(path: Path, body: Mapping[str, Any]) -> dict[str, Any]:
    """Fields of `Study` for the analysis; raises UserError for limits that make no sense."""
    margin_pct, confidence_pct = (
        100 * parse_share(body.get(key, default)) for key, default in (("margin", "5%"), ("confidence", "95%"))
    )
    if not 50 <= confidence_pct < 100:
        raise UserError(
            f"{path}: key 'analysis.confidence' is {confidence_pct:g} %, at which there is no interval; choose one "
            "from 50 % to below 100 %"
        )
    if margin_pct == 0:
        raise UserError(
            f"{path}: key 'analysis.margin' is 0 %, within which nothing measured can be shown to lie; choose one above"
        )
    return {
        "rse_threshold_pct": 100 * parse_share(body.get("relative_standard_error", "5%")),
        "margin_pct": margin_pct,
        "confidence_pct": confidence_pct,
        "intended": tuple(body["intended"]) if "intended" in body else None,
        "unintended": body.get("unintended", "show"),
    }


def trace_source(entry: Mapping[str, Any], place: str) -> TraceSource:
    """An entry of `traces`; raises UserError unless it has just one source."""
    if ("shipped" in entry) == ("file" in entry):
        raise UserError(f"{place}: name either a trace that is 'shipped' or a 'file' of your own")
    file = Path(entry["file"]) if "file" in entry else None
    return TraceSource(entry.get("shipped"), file, entry.get("capture"), entry.get("origin"))


def measurement(
    entry: Mapping[str, Any], place: str, drives: tuple[str, ...], traces: Mapping[str, TraceSource]
) -> MeasurementChoice:
    """An entry of `measurements`; raises UserError for a drive or a trace that the study does not have."""
    for drive in entry.get("drives", ()):
        if drive not in drives:
            raise UserError(f"{place}.drives' names '{drive}', which is none of the study's drives; add it there")
    if "trace" in entry and "traces" in entry:
        raise UserError(
            f"{place}.trace' and 'traces' are both there; name one trace with the one, a set with the other"
        )
    key = "trace" if "trace" in entry else "traces"
    chosen = (entry["trace"],) if "trace" in entry else tuple(entry.get("traces", ()))
    for trace in chosen:
        if trace not in traces:
            known = ", ".join(sorted(traces)) or "none"
            raise UserError(f"{place}.{key}' names '{trace}', which is no key of 'traces'; there are: {known}")
    return MeasurementChoice(
        protocol=entry["protocol"],
        name=entry.get("name", entry["protocol"]),
        scale=entry.get("scale"),
        traces=chosen,
        drives=tuple(entry.get("drives", drives)),
        settings=entry.get("set", {}),
        source=f"{place}'",
        application=entry.get("application"),
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
