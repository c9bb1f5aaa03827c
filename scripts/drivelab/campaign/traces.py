"""Find a study's traces; check a measurement's application and traces, and add them to its plan."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import cache, cached_property
from pathlib import Path
from typing import Any

from drivelab.application import stand_in
from drivelab.campaign.estimate import Trace
from drivelab.core.errors import UserError
from drivelab.core.units import format_amount
from drivelab.plan.cell import rounds_at_least
from drivelab.plan.grammar import Protocol, Resolved
from drivelab.plan.loops import TRACE
from drivelab.plan.plan import Plan
from drivelab.plan.study import MeasurementChoice, Study
from drivelab.trace import trace_catalogue
from drivelab.trace.capturing import applications, capture
from drivelab.trace.capturing.applications import APPLICATIONS
from drivelab.virtual.model import DriveModel

TRACES = Path("traces")
"""Folder of the shipped traces."""


class StudyTraces:
    """A study's traces, where they are and how large: captured by this host, shipped, or the user's own."""

    def __init__(
        self, study: Study, clock: Callable[[], tuple[str, str | None]], model: Callable[[str, str], DriveModel]
    ) -> None:
        """Take the study, a function that returns `Campaign.clock`, and `Campaign.model`."""
        self._study, self._clock, self._model = study, clock, model

    @cached_property
    def cannot_capture(self) -> str | None:
        """Why traces cannot be captured on this host; None if they can."""
        clock, reason = self._clock()
        return f"virtual drives run on the virtual clock ({reason})" if clock == "virtual" else capture.possible()

    def is_captured(self, name: str) -> bool:
        """Return whether this host captures the trace itself; otherwise the shipped trace is replayed."""
        return self._study.traces[name].capture is not None and self.cannot_capture is None

    def path(self, name: str) -> Path:
        """Return the path of a trace, which may not be captured yet."""
        return self._study.results / "traces" / f"{name}.parquet" if self.is_captured(name) else self._existing(name)

    def entry(self, name: str) -> dict[str, Any]:
        """Return what a replay depends on: the content of an existing trace, or how a trace is captured.

        Raises UserError for a missing trace.
        """
        source, key = self._study.traces[name], f"{self._study.path}: key 'traces.{name}"
        if source.file is not None:
            return {"name": name, "sha256": _digest(source.file, f"{key}.file'")}
        assert source.shipped is not None  # the schema requires one of the two
        shipped = trace_catalogue.entry(source.shipped, TRACES)
        if not shipped.path.is_file():
            raise UserError(f"{key}': {shipped.path} is missing; restore it with git")
        if source.capture is not None and source.origin is not None:
            spec = applications.load(APPLICATIONS, source.capture)  # checked even if this host cannot trace
            origin = self._model(source.origin, f"{key}.origin'")
            if self.is_captured(name):
                return {"name": name, "application": spec.to_mapping(), "origin": origin.to_mapping()}
        return {"name": name, "sha256": shipped.sha256}

    def of(self, plan: Plan) -> tuple[Trace, ...]:
        """Return the extent of each of a plan's traces."""
        return tuple(self.extent(trace["name"]) for trace in plan.subject.get("traces", ()))

    @cache  # noqa: B019 - it lives as long as the process
    def extent(self, name: str) -> Trace:
        """Return the extent of a trace; of the shipped trace, if it is not captured yet."""
        from drivelab.trace.parquet_schema import extent  # imports pyarrow, which is slow; plans do not need it

        path = self.path(name)
        return Trace(*extent(path if path.exists() else self._existing(name)))

    def _existing(self, name: str) -> Path:
        """Return the trace that exists without a capture: the user's own, or the shipped trace."""
        source = self._study.traces[name]
        if source.file is not None:
            return source.file
        assert source.shipped is not None  # the schema requires one of the two
        return trace_catalogue.entry(source.shipped, TRACES).path


def check_application(choice: MeasurementChoice, *, runs_one: bool) -> None:
    """Raise UserError unless a measurement names an application exactly if its protocol runs one."""
    if runs_one and choice.application is None:
        raise UserError(
            f"{choice.source}: protocol '{choice.protocol}' runs an application; add 'application' with a name from "
            f"{APPLICATIONS}"
        )
    if choice.application is not None and not runs_one:
        raise UserError(f"{choice.source}: protocol '{choice.protocol}' runs no application; remove its 'application'")


def add_application(plan: Plan, name: str, source: str, traces: Path) -> Plan:
    """Return the plan with its application, and on the virtual clock with the trace in `traces` that replaces it.

    Raises UserError when the application is unknown, when its file system is larger than a virtual drive, and when no
    trace can replace it.
    """
    try:
        spec = applications.load(APPLICATIONS, name)
    except UserError as error:
        raise UserError(f"{source}: key 'application': {error}") from None
    model = plan.subject["drive"].get("virtual")
    if model is not None:
        capacity_bytes = DriveModel.from_mapping(plan.drive, model).capacity_bytes
        applications.refuse_small_drive(spec, capacity_bytes, f"{source}: drive '{plan.drive}'")
    subject: dict[str, Any] = {**plan.subject, "application": spec.to_mapping()}
    context: dict[str, Any] = {**plan.context, "application": {"title": spec.title, "requires": dict(spec.requires)}}
    if plan.clock == "virtual":
        trace = stand_in.find(name, traces, source)
        subject["stand_in"] = {"trace": trace.name, "trace_sha256": trace.sha256, "choice": stand_in.CHOICE}
        context["stand_in_path"] = str(trace.path)
    return Plan(subject, context)


def refuse_on_drive(plan: Plan, capacity_bytes: int) -> None:
    """Raise UserError when the application of a plan, if any, does not fit a real drive."""
    if "application" in plan.subject:
        applications.refuse_small_drive(applications.of_plan(plan), capacity_bytes, f"drive '{plan.drive}'")


def check_traces(choice: MeasurementChoice, protocol: Protocol, variants: Iterable[Resolved]) -> None:
    """Raise UserError unless a measurement names traces exactly if its protocol uses them.

    Also if a change of the protocol's `variants` gives a load the arrivals of a trace, and the measurement names none.
    """
    if protocol.replays and not choice.traces:
        raise UserError(f"{choice.source}: protocol '{choice.protocol}' replays a trace; add a 'trace'")
    if protocol.takes_streams and len(choice.traces) != 1:
        raise UserError(
            f"{choice.source}: protocol '{choice.protocol}' takes one trace, "
            f"but {len(choice.traces)} are named; name one 'trace'"
        )
    if choice.traces and not (protocol.replays or protocol.takes_streams):
        raise UserError(f"{choice.source}: protocol '{choice.protocol}' uses no trace; remove its 'trace'")
    steps = [step for variant in variants for step in variant.steps["measure"]]
    if not choice.traces and any(step.get("load", {}).get("arrivals") == TRACE for step in steps):
        raise UserError(
            f"{choice.source}: a change gives protocol '{choice.protocol}' the arrivals of a trace, which it does not "
            "take; use protocol latency-bounded-bursts"
        )


def refuse_small_set(
    choice: MeasurementChoice, measure: Sequence[Mapping[str, Any]], extent: Callable[[str], Trace]
) -> None:
    """Raise UserError if all passes over a set of traces write less than its protocol demands.

    `extent` returns that of a trace; it is slow, so it is called only for a protocol that demands a volume.
    """
    for fields in (step["replay"] for step in measure if "replay" in step):
        least = fields.get("least_written_bytes")
        if least is None:
            continue
        volume = rounds_at_least(fields["until"]) * sum(extent(name).write_bytes for name in choice.traces)
        if volume < least:
            raise UserError(
                f"{choice.source}: all passes over the traces write {format_amount(volume)}, but protocol "
                f"'{choice.protocol}' is a set that writes at least {format_amount(least)}; make longer traces with "
                "'drivelab trace filter --written', or choose trace-set"
            )


@cache
def _digest(path: Path, source: str) -> str:
    try:
        return trace_catalogue.sha256_of(path)
    except UserError as error:
        raise UserError(f"{source}: {error}") from None
