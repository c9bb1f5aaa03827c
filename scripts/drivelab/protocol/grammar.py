"""Protocol files: read, checked, scaled and resolved into steps with numbers in base units."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from drivelab.config.schema import unfit
from drivelab.config.yaml_file import load_yaml
from drivelab.errors import UserError
from drivelab.protocol.alteration import Alteration
from drivelab.protocol.cells import check_workload
from drivelab.protocol.conditions import condition
from drivelab.protocol.misfit import MisfitError, Place, at
from drivelab.protocol.parameters import differences, unknown, unsourced
from drivelab.protocol.points import point
from drivelab.protocol.repeats import refuse_unclear, turns
from drivelab.protocol.steps import STEPS
from drivelab.protocol.uses import refuse_unused
from drivelab.protocol.values import Values, active_range, filled

_NO_CLASS = {"threads": 1, "queue_depth": 1, "active_range": "100%"}


@dataclass(frozen=True)
class Protocol:
    """A protocol file that fits the schema; `body` is the file's mapping."""

    path: Path
    body: Mapping[str, Any]

    @property
    def name(self) -> str:
        return str(self.body["name"])

    @property
    def description(self) -> str:
        """What the test asks and how to read it, in one paragraph; empty if the file has none."""
        return " ".join(str(self.body.get("description", "")).split())

    @property
    def replays(self) -> bool:
        """Whether it has a replay step, so that a study must name a trace, or several."""
        return any(kind == "replay" for kind, _ in self._steps())

    @property
    def takes_streams(self) -> bool:
        """Whether it has a loop of a trace's streams, so that a study must name one trace."""
        return any(kind == "loop" and "streams" in fields["cells"] for kind, fields in self._steps())

    @property
    def applications(self) -> bool:
        """Whether it has an application step, so that a study must name an application."""
        return any(kind == "application" for kind, _ in self._steps())

    @property
    def simultaneous(self) -> bool:
        """Whether all drives of a measurement are measured at the same time."""
        return bool(self.body.get("simultaneous", False))

    @property
    def analysis(self) -> Mapping[str, Any]:
        """What is worked out beside the usual: `figure_of_merit`, `best_run`; empty if nothing is."""
        return dict(self.body.get("analysis", {}))

    def _steps(self) -> Iterator[tuple[str, Mapping[str, Any]]]:
        for turn in turns(self.body["measure"]):
            yield turn.kind, turn.fields


@dataclass(frozen=True)
class Resolved:
    """One measurement that a protocol asks for, ready for a plan."""

    variant: str | None
    """The value of `for_each` as a part of a name, such as `4KiB` or `50pct`, or None."""
    steps: dict[str, Any]
    """`class`, `condition` and `measure`, JSON-able, numbers in base units."""
    altered: tuple[str, ...]
    """What differs from the full-length protocol, in words; empty for the protocol as it stands."""
    simultaneous: bool
    """Whether all drives of the measurement are to be measured at the same time."""


@dataclass(frozen=True)
class _Layer:
    """Fields that are laid over a protocol, and where they are written."""

    change: Mapping[str, Any]
    place: Place


def load(path: Path) -> Protocol:
    """The protocol in a file; raises UserError with file, line and key for anything that does not fit."""
    body = load_yaml(path)
    try:
        _check(body)
        if body["name"] != path.stem:
            raise MisfitError(f"is '{body['name']}', the file is called '{path.stem}'; make them agree", ("name",))
        if missing := unsourced(body):
            raise MisfitError(f"has no entry for '{missing[0]}'; say where the value comes from", ("sources",))
        _refuse_stale_sources(body)
    except MisfitError as misfit:
        raise Place(path).error(misfit) from None
    return Protocol(path, body)


def _refuse_stale_sources(body: Mapping[str, Any]) -> None:
    """Raise MisfitError for a source of nothing that the protocol has, at full length or at one of its scales."""
    stale = unknown(body["sources"], body)
    for name, change in body.get("scale", {}).items() if stale else ():
        with at("scale", name):
            stale = unknown(stale, Alteration.of(body, change).body)
    if stale:
        raise MisfitError(
            f"'{stale[0]}' is no parameter of this protocol; correct the path or leave it out", ("sources",), stale[0]
        )


def _check(body: dict[str, Any]) -> None:
    if found := unfit(body, "protocol"):
        raise MisfitError(found.sentence, found.keys, found.culprit)
    refuse_unclear(body["measure"])
    refuse_unused(body)


def resolve(
    protocol: Protocol, drive_class: str, scale: str | None, settings: Mapping[str, Any], source: str
) -> list[Resolved]:
    """The measurements of a protocol for a drive class, one for each value of `for_each`.

    `scale` names an entry of the protocol's `scale`, `settings` changes fields on top of it; `source` names, in
    errors, the place that asked for them, such as `config/study.yaml: key 'measurements[0]'`. Raises UserError, with
    the line of what is to blame, when anything does not fit.
    """
    layers = []
    if scale is not None:
        scales = protocol.body.get("scale", {})
        if scale not in scales:
            known = ", ".join(sorted(scales)) or "none"
            raise UserError(f"{source}: protocol '{protocol.name}' has no scale '{scale}'; it has: {known}")
        layers.append(_Layer(scales[scale], Place(protocol.path, ("scale", scale))))
    if settings:
        layers.append(_Layer(settings, Place.named(source, "set")))
    return _resolve(protocol, drive_class, layers)


def _resolve(protocol: Protocol, drive_class: str, layers: Sequence[_Layer]) -> list[Resolved]:
    """With layers over the protocol: a misfit is blamed on the first one without which there is none."""
    body, alteration = dict(protocol.body), None
    for layer in layers:
        try:
            alteration = Alteration.of(body, layer.change)
        except MisfitError as misfit:
            raise layer.place.error(misfit) from None
        body = alteration.body
    try:
        if layers:
            _check(body)
        return _measurements(protocol.body, body, drive_class)
    except MisfitError as misfit:
        if alteration is None:
            raise Place(protocol.path).error(misfit) from None
        _resolve(protocol, drive_class, layers[:-1])
        raise layers[-1].place.error(alteration.blamed(misfit)) from None


def _measurements(full: Mapping[str, Any], body: Mapping[str, Any], drive_class: str) -> list[Resolved]:
    altered = differences(full, body, drive_class)
    simultaneous = bool(body.get("simultaneous", False))
    ((key, values),) = body.get("for_each", {"": [None]}).items()
    return [
        Resolved(
            variant=None if value is None else str(value).replace("%", "pct"),
            steps=_steps(body, drive_class, () if value is None else ((key, value),)),
            altered=altered,
            simultaneous=simultaneous,
        )
        for value in values
    ]


def _steps(body: Mapping[str, Any], drive_class: str, turn: tuple[tuple[str, Any], ...]) -> dict[str, Any]:
    with at("class", drive_class):
        chosen = filled(body.get("class", {}).get(drive_class, _NO_CLASS), turn)
        with at("active_range"):
            span = active_range(chosen["active_range"])
    with at("condition"):
        conditioned = condition(filled(body["condition"], turn))
    for name, fields in body.get("workloads", {}).items():
        with at("workloads", name):
            check_workload(fields)
    values = Values(chosen["threads"], chosen["queue_depth"], span, body.get("workloads", {}), turn)
    drives_class = {**chosen, "active_range": span["range_share"], "name": drive_class}
    if "range_bytes" in span:
        drives_class["range_bytes"] = span["range_bytes"]
    return {"class": drives_class, "condition": conditioned, "measure": _measure(body["measure"], values)}


def _measure(measure: Sequence[Mapping[str, Any]], values: Values) -> list[dict[str, Any]]:
    steps: list[dict[str, Any]] = []
    for turn in turns(measure):
        of_turn = values.at(turn.key, turn.value)
        with at(*turn.keys):
            made = STEPS[turn.kind](of_turn.filled(turn.fields), of_turn)
        steps.append({turn.kind: {**made, **turn.phase, **point(turn, made, steps, of_turn)}})
    return steps
