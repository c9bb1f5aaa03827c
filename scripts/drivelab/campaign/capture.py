"""The capture stage: trace an application on a separate file system on a virtual drive."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

from drivelab.campaign.planning import Campaign
from drivelab.core.errors import UserError
from drivelab.core.lock import exclusive
from drivelab.core.sight import advised
from drivelab.drives import guard
from drivelab.run.consent import refuse_foreign_application, refuse_foreign_commands
from drivelab.trace.capturing import applications
from drivelab.trace.capturing.applications import APPLICATIONS
from drivelab.virtual import manage


def capture_trace(campaign: Campaign, name: str, output: Path) -> None:
    """Capture a trace of a study and write it to `output`.

    This process starts the virtual drive if needed, and writes to no other drive. Raises UserError when the application
    fails, and when the tracer lost events: an incomplete trace is not a valid workload for comparisons.
    """
    source = campaign.study.traces.get(name)
    if source is None or source.capture is None or source.origin is None:
        raise UserError(f"{campaign.study.path}: key 'traces.{name}' has no 'capture'; add 'capture' and 'origin'")
    spec = applications.load(APPLICATIONS, source.capture)
    refuse_foreign_application(spec, campaign.study.results)
    model = campaign.model(source.origin, f"{campaign.study.path}: key 'traces.{name}.origin'")
    with manage.borrowed(source.origin, model) as started:
        reason = guard.lasting_holder(started.device, Path(started.device).name)
        if reason is not None:
            raise UserError(f"virtual drive '{source.origin}' at {started.device} may not be used: {advised(reason)}")
        with exclusive(Path(started.device), source.origin):
            summary = applications.run_captured(name, spec, started.device, output, virtual=True)
    print(f"{spec.name}: {summary['application_duration_s']:.3f} s on {source.origin}, measured during tracing")
    if unmatched := _counts(summary["unmatched"]):
        print(f"{spec.name}: unmatched events in the trace: {unmatched}")
    if lost := _counts(summary["lost"]):
        output.unlink()
        raise UserError(
            f"trace '{name}': the capture lost events ({lost}), so the trace is incomplete; "
            "run again on a less busy host, or leave out 'capture' to replay the shipped trace"
        )


def _counts(kinds: Mapping[str, int]) -> str:
    return ", ".join(f"{count} {kind.replace('_', ' ')}" for kind, count in kinds.items())


def refuse_foreign_campaign(campaign: Campaign) -> None:
    """Raise UserError for the first foreign command that the remaining work would run."""
    for plan in campaign.to_do:
        refuse_foreign_commands(plan)
    for name, source in campaign.study.traces.items():
        if source.capture and campaign.traces.is_captured(name) and not campaign.traces.path(name).exists():
            refuse_foreign_application(applications.load(APPLICATIONS, source.capture), campaign.study.results)
