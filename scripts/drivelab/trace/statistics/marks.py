"""Mark what a reader must know about a trace's origin."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

MARKS = ("lossy", "incomplete", "derived", "imported", "virtual")


def lost(provenance: Mapping[str, Any]) -> int:
    """Return the number of events that the tracer lost."""
    return sum(dict(provenance.get("lost") or {}).values())


def resolution_ns(provenance: Mapping[str, Any]) -> int:
    """Return the resolution of the trace's times in ns."""
    return int(provenance.get("time_resolution_ns") or 1)


def notes(provenance: Mapping[str, Any]) -> dict[str, str]:
    """Return a trace's marks (of MARKS), each with a short explanation."""
    marks: dict[str, str] = {}
    if lost(provenance):
        marks["lossy"] = f"{lost(provenance):,} events were lost ({_counts(provenance['lost'])})"
    left_out = int(provenance.get("malformed") or 0)
    if left_out:
        marks["incomplete"] = f"{left_out:,} malformed lines of the source were skipped"
    if provenance.get("unmatched"):
        reason = f"unmatched events: {_counts(provenance['unmatched'])}"
        marks["incomplete"] = "; ".join(filter(None, [marks.get("incomplete"), reason]))
    if provenance.get("derived"):
        marks["derived"] = "derived by: " + ", ".join(_step(step) for step in provenance["derived"])
    if provenance.get("format_imported"):
        marks["imported"] = f"imported from {provenance.get('source', 'a file')} ({provenance['format_imported']})"
    if provenance.get("virtual"):
        marks["virtual"] = "captured on a virtual drive: a model computed the latencies"
    return marks


def _counts(counts: Mapping[str, int]) -> str:
    return ", ".join(f"{kind} {count:,}" for kind, count in counts.items())


def _step(step: Any) -> str:
    return str(step.get("step", step)) if isinstance(step, Mapping) else str(step)
