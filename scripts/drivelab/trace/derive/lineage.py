"""Provenance of derived traces."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from drivelab.trace.catalogue import sha256_of

OF_THE_SOURCE = (
    "requests",
    "events",
    "events_by_action",
    "passthrough",
    "other_devices",
    "device_flushes",
    "duration_s",
)
"""Counts of the source. A derived trace lists them under its source, not as its own."""
_IDENTITY = ("name", "title", "application", "first_event", "capacity_bytes", "lost", "unmatched", "malformed")


def source_facts(path: Path, provenance: Mapping[str, Any], rows: int) -> dict[str, Any]:
    """Return file, SHA-256 and provenance of the source, for an entry of `derived`."""
    facts = {key: provenance[key] for key in (*_IDENTITY, *OF_THE_SOURCE) if key in provenance}
    return {**facts, "file": path.name, "sha256": sha256_of(path), "requests": rows}


def derived(
    provenance: Mapping[str, Any], entry: Mapping[str, Any], changes: Mapping[str, Any] | None = None
) -> dict[str, Any]:
    """Return a derived trace's provenance from its source's.

    Applies `changes` (None removes a key) and appends `entry` to `derived`. Lost and unmatched events of the source
    stay listed: they may belong to the part that is left.
    """
    kept = {key: value for key, value in provenance.items() if key != "format" and key not in OF_THE_SOURCE}
    result = {**kept, **(changes or {}), "derived": [*provenance.get("derived", []), dict(entry)]}
    return {key: value for key, value in result.items() if value is not None}


def follows_the_clock(provenance: Mapping[str, Any]) -> bool:
    """Return whether times follow the wall clock: not after idle time was removed."""
    return not any(step.get("step") == "drop-idle" and step.get("removed_ns") for step in provenance.get("derived", []))
