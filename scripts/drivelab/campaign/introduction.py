"""Summarise a study in a line or two, before it runs."""

from __future__ import annotations

from pathlib import Path

from drivelab.campaign.planning import Campaign
from drivelab.core.units import counted
from drivelab.plan.hosts import still_elsewhere, this_host


def headline(campaign: Campaign) -> str:
    """Return a summary of the study, with reasons for anything unexpected, and a table of what other hosts measure."""
    study = campaign.study
    on = f" on {len(study.platforms)} platforms; this is host '{this_host()}'" if study.platforms else ""
    drives, measurements = counted(len(study.drives), "drive"), counted(len(campaign.plans), "measurement")
    text = f"Study {study.name}: {drives}{on}, {measurements}."
    if not campaign.basis_is_there:
        text += f" No deltas yet, because another host still has to measure the basis, {study.basis}."
    if any(planned.plan.virtual for planned in campaign.plans):
        clock, reason = campaign.clock
        text += " Virtual drives in real time." if clock == "wall" else f" Virtual clock, not real time: {reason}."
    for name, source in study.traces.items():
        if source.capture is not None and not campaign.traces.is_captured(name):
            text += (
                f" Trace {name}: the shipped trace, because this host cannot trace: {campaign.traces.cannot_capture}."
            )
        if source.file is not None:
            text += "".join(f" Trace {name}: {limit}." for limit in trace_limits(source.file))
    table = still_elsewhere((planned.plan for planned in campaign.elsewhere), study.path)
    return "\n".join(filter(None, [text, table]))


def trace_limits(path: Path) -> list[str]:
    """Return what a trace's replays do not show, as clauses."""
    # Imports pyarrow, which is slow; other plans do not need it.
    from drivelab.trace.parquet_schema import has_queue_times, open_trace

    with open_trace(path) as trace:
        lost = sum(trace.provenance.get("lost", {}).values())
        limits = [f"LOSSY, {lost} events are missing from it"] if lost else []
        return limits if has_queue_times(trace.provenance) else [*limits, "replayed from issue times, not queue times"]
