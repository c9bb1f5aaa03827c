"""What a reader of a trace's numbers must know of how the trace came about."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

MARKS = ("lossy", "incomplete", "derived", "imported", "virtual")


def lost(provenance: Mapping[str, Any]) -> int:
    """Events that the tracer lost."""
    return sum(dict(provenance.get("lost") or {}).values())


def resolution_ns(provenance: Mapping[str, Any]) -> int:
    """What the times of the trace are multiples of."""
    return int(provenance.get("time_resolution_ns") or 1)


def notes(provenance: Mapping[str, Any]) -> dict[str, str]:
    """Each mark of MARKS that a trace carries, with what it stands for in a few words."""
    found: dict[str, str] = {}
    if lost(provenance):
        found["lossy"] = f"{lost(provenance):,} events were lost ({_counts(provenance['lost'])})"
    left_out = int(provenance.get("malformed") or 0)
    if left_out:
        found["incomplete"] = f"{left_out:,} malformed lines of the source were left out"
    if provenance.get("unmatched"):
        reason = f"events without a partner: {_counts(provenance['unmatched'])}"
        found["incomplete"] = "; ".join(filter(None, [found.get("incomplete"), reason]))
    if provenance.get("derived"):
        found["derived"] = "derived by: " + ", ".join(_step(one) for one in provenance["derived"])
    if provenance.get("format_imported"):
        found["imported"] = f"imported from {provenance.get('source', 'a file')} ({provenance['format_imported']})"
    if provenance.get("virtual"):
        found["virtual"] = "captured on a virtual drive: its latencies are those of a model"
    return found


def _counts(counts: Mapping[str, int]) -> str:
    return ", ".join(f"{kind} {count:,}" for kind, count in counts.items())


def _step(one: Any) -> str:
    return str(one.get("step", one)) if isinstance(one, Mapping) else str(one)
