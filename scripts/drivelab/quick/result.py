"""The result of a quick look as other parts of drivelab and other programs take it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import pandas as pd

import drivelab
from drivelab.analysis.values.quick_look import BANDWIDTH, IOPS, LATENCY, Sustained, Value
from drivelab.host.stack.volumes import Layer

_GIB = 1 << 30


@dataclass(frozen=True)
class Place:
    """What is known of one place after its look."""

    name: str
    path: str
    device_class: str
    layers: Sequence[Layer]
    labels: Sequence[str]
    """What limits the numbers, such as `unconditioned`."""
    values: Sequence[Value]
    sustained: Sustained | None
    sentences: Sequence[str]
    recording: str
    run: int
    range_bytes: int
    """Size of the file, or of the part of a device that the look uses."""
    written_bytes: int
    """What the look wrote in all."""
    tables: Mapping[str, pd.DataFrame]


def for_expectations(
    values: Sequence[Value], sustained: Sustained | None, link: Mapping[str, float]
) -> tuple[dict[str, float], str]:
    """Return the keys of `drivelab.quick.thresholds.KEYS` that a look measured, and the words of its busiest test."""
    known: dict[str, float] = dict(link)
    for value in values:
        key = value.shown.key
        if value.shown.metric == LATENCY:
            parts = {"p50": value.value, "p99": value.p99_us, "p99_9": value.p999_us if key != "commit" else None}
            known |= {f"{key}_{part}_us": us for part, us in parts.items() if us is not None}
        elif key:
            known[key] = value.value
    if sustained is not None:
        known |= {"sustained_start_mib_s": sustained.start_mib_s, "sustained_end_mib_s": sustained.end_mib_s}
        if sustained.cliff_bytes is not None:
            known["cliff_gib"] = sustained.cliff_bytes / _GIB
    if not values:
        return known, ""
    busiest = max(values, key=lambda value: value.cpu_share)
    known["widest_spread_pct"] = max(value.half_width_pct or 0.0 for value in values)
    return known | {"busiest_cpu_share": busiest.cpu_share}, busiest.shown.words


def as_mapping(places: Sequence[Place], warnings: Sequence[str], page: str) -> dict[str, Any]:
    """Return a look for JSON."""
    return {
        "drivelab": drivelab.__version__,
        "warnings_before": list(warnings),
        "page": page,
        "places": [
            {
                "name": place.name,
                "place": place.path,
                "class": place.device_class,
                "layers": [{"kind": layer.kind, "name": layer.name, "words": layer.words,
                            "cautions": list(layer.cautions)} for layer in place.layers],
                "labels": list(place.labels),
                "recording": place.recording,
                "written_bytes": place.written_bytes,
                "values": [value_mapping(value) for value in place.values],
                "sustained_write": _sustained_mapping(place.sustained),
                "sentences": list(place.sentences),
            }
            for place in places
        ],
    }  # fmt: skip


def value_mapping(value: Value) -> dict[str, Any]:
    """Return one value for JSON."""
    units = {BANDWIDTH: "MiB/s", IOPS: "IOPS", LATENCY: "us"}
    return {
        "test": value.shown.words,
        "unit": units[value.shown.metric],
        "value": value.value,
        "half_width_pct": value.half_width_pct,
        "rounds": list(value.samples),
        "p99_us": value.p99_us,
        "p99_9_us": value.p999_us,
        "cpu_share": value.cpu_share,
        "host_limited": value.host_limited,
    }


def _sustained_mapping(sustained: Sustained | None) -> dict[str, Any] | None:
    if sustained is None:
        return None
    return {
        "start_mib_s": sustained.start_mib_s,
        "end_mib_s": sustained.end_mib_s,
        "written_bytes": sustained.written_bytes,
        "cliff_bytes": sustained.cliff_bytes,
        "seconds": list(sustained.seconds),
        "mib_s": list(sustained.rates_mib_s),
    }
