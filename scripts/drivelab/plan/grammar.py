"""Load, check and alter protocols, and resolve them into steps in base units."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from drivelab.core.errors import UserError, suggestion
from drivelab.plan.cell import Cell, cells_of
from drivelab.plan.loop_cells import check_workload, matches
from drivelab.plan.loops import TRACE, description, selector
from drivelab.plan.parameters import Alteration, differences, unknown, unsourced
from drivelab.plan.repetition import POINT, ExpandedStep, expanded, refuse_unclear, refuse_unused
from drivelab.plan.schema import find_violation
from drivelab.plan.steps import STEPS, condition
from drivelab.plan.value_types import OF_A_POINT, MisfitError, Place, Values, active_range, at, duration_s, filled
from drivelab.plan.yaml_file import load_yaml


def point(
    step: ExpandedStep, resolved: Mapping[str, Any], before: Sequence[Mapping[str, Any]], values: Values
) -> dict[str, Any]:
    """Return `point` for a resolved step in a repeat over points.

    The result is empty if none of its cells uses one. `before` holds the plan's earlier steps. Raises MisfitError if
    there is no loop to choose from, or if the choice is ambiguous.
    """
    cells = cells_of(resolved)
    if step.key != POINT or all({*OF_A_POINT} <= {*cell} for cell in cells):
        return {}
    if any(len({*OF_A_POINT} & {*cell}) == 1 for cell in cells):
        with at(*step.keys):
            raise MisfitError("takes only one of 'threads' and 'queue_depth' from a point; write 'each' for both")
    with at(*step.keys[:3], "over"):
        if step.after is None:
            raise MisfitError("no earlier loop provides points; put the repeat after a loop", (POINT,))
        wanted = values.filled(step.over["of"])
        with at("of"):
            of = selector(wanted)
            _refuse_ambiguous(before[step.after]["loop"], of, description(wanted))
        return {
            "point": {
                "name": step.value,
                "step": step.after,
                "of": of,
                "response_time_us": duration_s(step.over, "response_time") * 1e6,
            }
        }


def _refuse_ambiguous(loop: Mapping[str, Any], of: Mapping[str, Any], named: str) -> None:
    if "streams" in loop:
        raise MisfitError("the loop before uses a trace's streams; points need a loop whose cells the protocol lists")
    if "point" in loop:
        raise MisfitError("the loop before uses a point itself; put the repeat after the loop that provides the points")
    matching = [cell for cell in loop["cells"] if matches(cell, of)]
    if not matching:
        raise MisfitError(f"{named} matches no cell of the loop before; name one of its cells")
    labels: dict[tuple[int, int], str] = {}
    for cell in matching:
        demand, label = (cell["threads"], cell["queue_depth"]), Cell(**cell).label
        if demand in labels:
            raise MisfitError(f"{named} matches several cells of the loop before ({labels[demand]}, {label}); name one")
        labels[demand] = label


PROTOCOLS = Path("config/protocols")
_NO_CLASS = {"threads": 1, "queue_depth": 1, "active_range": "100%"}


@dataclass(frozen=True)
class Protocol:
    """A protocol file that is valid under the schema; `body` is its mapping."""

    path: Path
    body: Mapping[str, Any]

    @property
    def name(self) -> str:
        return str(self.body["name"])

    @property
    def description(self) -> str:
        """Return the file's description as one paragraph; empty if the file has none."""
        return " ".join(str(self.body.get("description", "")).split())

    @property
    def replays(self) -> bool:
        """Return whether it has a replay step, which needs one or more traces."""
        return any(kind == "replay" for kind, _ in self._steps())

    @property
    def takes_streams(self) -> bool:
        """Return whether a loop uses a trace's streams, or a load its arrivals, which needs one trace."""
        return any(
            (kind == "loop" and "streams" in fields["cells"]) or (kind == "load" and fields["arrivals"] == TRACE)
            for kind, fields in self._steps()
        )

    @property
    def applications(self) -> bool:
        """Return whether it has an application step, which needs an application."""
        return any(kind == "application" for kind, _ in self._steps())

    @property
    def simultaneous(self) -> bool:
        """Return whether all drives of a measurement are measured simultaneously."""
        return bool(self.body.get("simultaneous", False))

    @property
    def usual_class(self) -> str:
        """Return the class of drives that the test is for."""
        return str(self.body.get("usual_class", "enterprise"))

    def write_cache(self, drive_class: str) -> str:
        """Return `on`, `off` or `unchanged`: what the test asks of the drives' volatile write cache.

        PTS: it is off for enterprise drives and on for client drives.
        """
        return str(self.body.get("write_cache", {"enterprise": "off", "client": "on"}[drive_class]))

    @property
    def analysis(self) -> Mapping[str, Any]:
        """Return the additional analyses, `figure_of_merit` or `best_run`. The result is empty if there are none."""
        return dict(self.body.get("analysis", {}))

    def _steps(self) -> Iterator[tuple[str, Mapping[str, Any]]]:
        for step in expanded(self.body["measure"]):
            yield step.kind, step.fields


@dataclass(frozen=True)
class Resolved:
    """One measurement of a protocol, ready for a plan."""

    variant: str | None
    """Value of `for_each` as part of a name, such as `4KiB` or `50pct`, or None."""
    steps: dict[str, Any]
    """`class`, `condition` and `measure`, ready for JSON, numbers in base units."""
    altered: tuple[str, ...]
    """Differences from the full-length protocol, in words; empty if unchanged."""


@dataclass(frozen=True)
class _Layer:
    """Changes to a protocol, and the place that they are written in."""

    change: Mapping[str, Any]
    place: Place


def protocol_names(folder: Path = PROTOCOLS) -> list[str]:
    """Return the names of all protocols in a folder."""
    return sorted(file.stem for file in folder.glob("*.yaml"))


def protocol_path(name: str, source: str = "", folder: Path = PROTOCOLS) -> Path:
    """Return the file of a protocol; raise UserError that begins with `source` if there is none."""
    path = folder / f"{name}.yaml"
    if path.parent != folder or not path.exists():
        raise UserError(f"{source}there is no protocol '{name}'; {suggestion(name, protocol_names(folder))}")
    return path


def load(path: Path) -> Protocol:
    """Return the protocol in a file. Raises UserError with file, line and key for any fault."""
    body = load_yaml(path)
    try:
        _check(body)
        if body["name"] != path.stem:
            raise MisfitError(f"is '{body['name']}', but the file is called '{path.stem}'; make them equal", ("name",))
        if missing := unsourced(body):
            raise MisfitError(f"has no entry for '{missing[0]}'; give the source of its value", ("sources",))
        _refuse_stale_sources(body)
    except MisfitError as misfit:
        raise Place(path).error(misfit) from None
    return Protocol(path, body)


def _refuse_stale_sources(body: Mapping[str, Any]) -> None:
    """Raise MisfitError for a source without a parameter at any scale."""
    stale = unknown(body["sources"], body)
    for name, change in body.get("scale", {}).items() if stale else ():
        with at("scale", name):
            stale = unknown(stale, Alteration.of(body, change).body)
    if stale:
        raise MisfitError(
            f"'{stale[0]}' is not a parameter of this protocol; correct the path or remove it", ("sources",), stale[0]
        )


def _check(body: dict[str, Any]) -> None:
    if violation := find_violation(body, "protocol"):
        raise MisfitError(violation.sentence, violation.keys, violation.unknown_key)
    refuse_unclear(body["measure"])
    refuse_unused(body)


def resolve(
    protocol: Protocol, drive_class: str, scale: str | None, settings: Mapping[str, Any], source: str
) -> list[Resolved]:
    """Return the measurements for a drive class, one per value of `for_each`.

    `scale` names an entry of the protocol's `scale`. `settings` then change further fields. `source` names their place
    in errors, such as `config/study.yaml: key 'measurements[0]'`. Raises UserError with the line of any fault.
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
    """Return the measurements with layers applied in order. An error names the first layer that causes it."""
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
        raise layers[-1].place.error(alteration.translate(misfit)) from None


def _measurements(full: Mapping[str, Any], body: Mapping[str, Any], drive_class: str) -> list[Resolved]:
    altered = differences(full, body, drive_class)
    ((key, values),) = body.get("for_each", {"": [None]}).items()
    return [
        Resolved(
            variant=None if value is None else str(value).replace("%", "pct"),
            steps=_steps(body, drive_class, () if value is None else ((key, value),)),
            altered=altered,
        )
        for value in values
    ]


def _steps(body: Mapping[str, Any], drive_class: str, bindings: tuple[tuple[str, Any], ...]) -> dict[str, Any]:
    with at("class", drive_class):
        settings = filled(body.get("class", {}).get(drive_class, _NO_CLASS), bindings)
        with at("active_range"):
            span = active_range(settings["active_range"])
    with at("condition"):
        conditioned = condition(filled(body["condition"], bindings))
    for name, fields in body.get("workloads", {}).items():
        with at("workloads", name):
            check_workload(fields)
    values = Values(settings["threads"], settings["queue_depth"], span, body.get("workloads", {}), bindings)
    class_fields = {**settings, "active_range": span["range_share"], "name": drive_class}
    if "range_bytes" in span:
        class_fields["range_bytes"] = span["range_bytes"]
    return {"class": class_fields, "condition": conditioned, "measure": _measure(body["measure"], values)}


def _measure(measure: Sequence[Mapping[str, Any]], values: Values) -> list[dict[str, Any]]:
    steps: list[dict[str, Any]] = []
    for step in expanded(measure):
        step_values = values.bound(step.key, step.value)
        with at(*step.keys):
            resolved = STEPS[step.kind](step_values.filled(step.fields), step_values)
        steps.append({step.kind: {**resolved, **step.phase, **point(step, resolved, steps, step_values)}})
    return steps
