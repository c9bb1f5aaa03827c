"""The study: one checked YAML file as typed settings."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from drivelab.config.schema import validate
from drivelab.config.yaml_file import load_yaml
from drivelab.errors import UserError
from drivelab.plan.plan import drive_in_sheet
from drivelab.units import parse_share

DEFAULT_STUDY = "config/study.yaml"


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


ANY_HOST = "any"


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
class MeasurementChoice:
    """One entry of `measurements`."""

    protocol: str
    name: str
    scale: str | None
    traces: tuple[str, ...]
    """In the order of a pass; empty for protocols that take none."""
    drives: tuple[str, ...]
    settings: Mapping[str, Any]
    source: str
    """File and key, for errors."""
    application: str | None = None
    """Name in config/applications.yaml; None for protocols that run none."""


@dataclass(frozen=True)
class Study:
    """A study's settings; names are checked against the pattern, references between its parts too."""

    path: Path
    name: str
    title: str
    results: Path
    drives_sheet: Path
    drive_class: str
    scenario: str
    purge: str
    """How drives are purged: `auto` or a method of `drivelab.drives.purge`."""
    write_cache: str | None
    """`on`, `off`, or None to leave it as it is."""
    host_settings: str
    """`check` or `apply`."""
    taint: Mapping[str, float]
    """Limits as keyword arguments of `drivelab.analysis.taint.Limits`, and `remeasure`."""
    meter: Mapping[str, Any]
    """`csv` or `command` of an external power meter; empty without one."""
    consent: tuple[str, ...]
    """Serials of drives whose data may be destroyed without asking."""
    clock: str
    concurrency: int
    runs: int
    basis: str
    """What deltas are relative to: one of `subjects`."""
    drives: tuple[str, ...]
    platforms: tuple[Platform, ...]
    """Empty for a study of drives alone."""
    traces: Mapping[str, TraceSource]
    measurements: tuple[MeasurementChoice, ...]
    rse_threshold_pct: float
    margin_pct: float = 5.0
    """Differences within it are called the same."""
    confidence_pct: float = 95.0
    """Of the intervals of deltas; what is left of 100 is the level of their tests."""
    intended: tuple[str, ...] | None = None
    """Facets and kinds of the table `conditions` that compared drives are meant to differ in; None: what follows from
    what is compared."""
    unintended: str = "show"
    """`show` or `forbid`: what becomes of deltas of recordings that differ in something else."""

    @property
    def subjects(self) -> tuple[str, ...]:
        """What is compared: the drives, or each drive on each platform as DRIVE@PLATFORM."""
        return _subjects(self.drives, self.platforms)


def load_study(path: Path) -> Study:
    """The study in a file; raises UserError with file and key for anything wrong within it."""
    body = validate(load_yaml(path), "study", str(path))
    drives = tuple(body["drives"])
    write_cache = _write_cache(body["write_cache"], body["class"])
    platforms = _platforms(path, body["platforms"], body["scenario"], write_cache, body["class"])
    subjects = _subjects(drives, platforms)
    basis = body.get("basis", subjects[0])
    if basis not in subjects:
        what = "drives on its platforms" if platforms else "drives"
        raise UserError(
            f"{path}: key 'basis' is '{basis}', which is none of the study's {what}; "
            f"choose one of {', '.join(subjects)}"
        )
    results = Path(body.get("results", f"results/{body['name']}"))
    if body["runs"] % 2 == 0:
        raise UserError(f"{path}: key 'runs' is {body['runs']}; a median takes an odd number of them, so choose one")
    traces = {name: _trace(one, f"{path}: key 'traces.{name}'") for name, one in body["traces"].items()}
    measurements = tuple(
        _choice(entry, f"{path}: key 'measurements[{index}]", drives, traces)
        for index, entry in enumerate(body["measurements"])
    )
    _refuse_twice(path, measurements)
    if all(drive_in_sheet(basis) not in choice.drives for choice in measurements):
        raise UserError(f"{path}: key 'basis' is '{basis}', which no measurement is made on; choose another")
    return Study(
        path=path,
        name=body["name"],
        title=body["title"] or f"Study {body['name']}",
        results=results,
        drives_sheet=Path(body["drives_sheet"]),
        drive_class=body["class"],
        scenario=body["scenario"],
        purge=body["purge"],
        write_cache=write_cache,
        host_settings=body["host_settings"],
        taint=_taint(body["taint"]),
        meter=body.get("meter", {}),
        consent=tuple(body["consent"]),
        clock=body["clock"],
        concurrency=body["concurrency"],
        runs=body["runs"],
        basis=basis,
        drives=drives,
        platforms=platforms,
        traces=traces,
        measurements=measurements,
        **_analysis(path, body["analysis"]),
    )


def _write_cache(wanted: str, drive_class: str) -> str | None:
    """PTS: enterprise drives are tested with the volatile write cache off, client drives with it on."""
    if wanted == "unchanged":
        return None
    return {"enterprise": "off", "client": "on"}[drive_class] if wanted == "by-class" else wanted


def _subjects(drives: Sequence[str], platforms: Sequence[Platform]) -> tuple[str, ...]:
    return tuple(one.of(drive) for drive in drives for one in platforms) if platforms else tuple(drives)


def _platforms(
    path: Path, body: Mapping[str, Mapping[str, str]], scenario: str, write_cache: str | None, drive_class: str
) -> tuple[Platform, ...]:
    """The platforms of a study; what one does not say is as in the study. Raises UserError for two that are alike."""
    found: dict[tuple[str, str, str | None], str] = {}
    platforms = []
    for name, one in body.items():
        cache = _write_cache(one["write_cache"], drive_class) if "write_cache" in one else write_cache
        platform = Platform(name, one["host"], one.get("scenario", scenario), cache)
        other = found.setdefault((platform.host, platform.scenario, platform.write_cache), name)
        if other != name:
            raise UserError(
                f"{path}: key 'platforms' has '{other}' and '{name}', which differ in nothing; give them another "
                "'host', 'scenario' or 'write_cache', or leave one out"
            )
        platforms.append(platform)
    return tuple(platforms)


def _taint(body: Mapping[str, Any]) -> dict[str, float]:
    limits = {f"{key}_pct": 100 * parse_share(body[key]) for key in ("steal", "load") if key in body}
    return {**limits, "remeasure": body.get("remeasure", 0)}


def _analysis(path: Path, body: Mapping[str, Any]) -> dict[str, Any]:
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


def _trace(entry: Mapping[str, Any], place: str) -> TraceSource:
    if ("shipped" in entry) == ("file" in entry):
        raise UserError(f"{place}: name either a trace that is 'shipped' or a 'file' of your own")
    file = Path(entry["file"]) if "file" in entry else None
    return TraceSource(entry.get("shipped"), file, entry.get("capture"), entry.get("origin"))


def _choice(
    entry: Mapping[str, Any], place: str, drives: tuple[str, ...], traces: Mapping[str, TraceSource]
) -> MeasurementChoice:
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


def _refuse_twice(path: Path, measurements: tuple[MeasurementChoice, ...]) -> None:
    seen: set[tuple[str, str]] = set()
    for choice in measurements:
        for drive in choice.drives:
            if (drive, choice.name) in seen:
                raise UserError(
                    f"{path}: key 'measurements' has '{choice.name}' twice for drive '{drive}'; "
                    "give one of them another 'name'"
                )
            seen.add((drive, choice.name))
