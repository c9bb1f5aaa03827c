"""Check a measurement's application and traces, and add them to its plan, without reading a drive."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from drivelab.application import stand_in
from drivelab.config.study import MeasurementChoice
from drivelab.errors import UserError
from drivelab.plan.plan import Plan
from drivelab.protocol.grammar import Protocol
from drivelab.trace import application
from drivelab.virtual.model import DriveModel

APPLICATIONS = Path("config/applications.yaml")


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
        spec = application.load(APPLICATIONS, name)
    except UserError as error:
        raise UserError(f"{source}: key 'application': {error}") from None
    model = plan.subject["drive"].get("virtual")
    if model is not None:
        capacity_bytes = DriveModel.from_mapping(plan.drive, model).capacity_bytes
        application.refuse_small_drive(spec, capacity_bytes, f"{source}: drive '{plan.drive}'")
    subject: dict[str, Any] = {**plan.subject, "application": spec.to_mapping()}
    context: dict[str, Any] = {
        **plan.context,
        "application": {"title": spec.title, "requires": dict(spec.requires)},
    }
    if plan.clock == "virtual":
        trace = stand_in.find(name, traces, source)
        subject["stand_in"] = {"trace": trace.name, "trace_sha256": trace.sha256, "choice": stand_in.CHOICE}
        context["stand_in_path"] = str(trace.path)
    return Plan(subject, context)


def refuse_on_drive(plan: Plan, capacity_bytes: int) -> None:
    """Raise UserError when the application of a plan, if any, does not fit a real drive."""
    if "application" in plan.subject:
        application.refuse_small_drive(application.of_plan(plan), capacity_bytes, f"drive '{plan.drive}'")


def check_traces(choice: MeasurementChoice, protocol: Protocol) -> None:
    """Raise UserError unless a measurement names traces exactly if its protocol uses them."""
    if protocol.replays and not choice.traces:
        raise UserError(f"{choice.source}: protocol '{choice.protocol}' replays a trace; add a 'trace'")
    if protocol.takes_streams and len(choice.traces) != 1:
        raise UserError(
            f"{choice.source}: protocol '{choice.protocol}' takes the streams of one trace, "
            f"but {len(choice.traces)} are named; name one 'trace'"
        )
    if choice.traces and not (protocol.replays or protocol.takes_streams):
        raise UserError(f"{choice.source}: protocol '{choice.protocol}' uses no trace; remove its 'trace'")
