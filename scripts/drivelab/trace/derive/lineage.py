"""What a derived trace says of where it comes from."""

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
"""Counted in the source; for a derived trace they stand with its source, not as if they were its own."""
_IDENTITY = ("name", "title", "application", "first_event", "capacity_bytes", "lost", "unmatched", "malformed")


def source_facts(path: Path, provenance: Mapping[str, Any], rows: int) -> dict[str, Any]:
    """File, SHA-256 and what the source says of itself, for an entry of `derived`."""
    said = {key: provenance[key] for key in (*_IDENTITY, *OF_THE_SOURCE) if key in provenance}
    return {**said, "file": path.name, "sha256": sha256_of(path), "requests": rows}


def derived(
    provenance: Mapping[str, Any], entry: Mapping[str, Any], changes: Mapping[str, Any] | None = None
) -> dict[str, Any]:
    """Provenance of what was derived from one trace: as its source, `changes` made, `entry` appended to `derived`.

    A value of None takes a key away. What was lost or unmatched in the source stays so: it may lie in what is left.
    """
    kept = {key: value for key, value in provenance.items() if key != "format" and key not in OF_THE_SOURCE}
    result = {**kept, **(changes or {}), "derived": [*provenance.get("derived", []), dict(entry)]}
    return {key: value for key, value in result.items() if value is not None}


def follows_the_clock(provenance: Mapping[str, Any]) -> bool:
    """Whether times and the wall clock run alike: not any more once idle time was taken out."""
    return not any(one.get("step") == "drop-idle" and one.get("removed_ns") for one in provenance.get("derived", []))
