"""Protocol files for tests of the grammar: the test gives some parts, the rest has defaults."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import yaml

from drivelab.plan.grammar import Resolved, load, resolve

STEADY = {"window": 5, "max_rounds": 25, "data_excursion": "20%", "slope_excursion": "10%"}
CLASS = {"threads": 2, "queue_depth": 16, "active_range": "75%"}
_COVERED = ("class", "for_each", "workloads", "condition", "simultaneous", "analysis")


def protocol(folder: Path, measure: list[dict[str, Any]], **parts: Any) -> Path:
    """Write a protocol `made.yaml` with these steps; `parts` are other keys of its top level."""
    load_class = parts.pop("class_", CLASS)
    body: dict[str, Any] = {
        "name": "made",
        "title": "t",
        "source": "s",
        "description": "d",
        "class": {"enterprise": load_class, "client": load_class},
        "condition": {"purge": "none"},
        **parts,
        "measure": measure,
    }
    kinds = {kind for step in measure for kind in step}
    body["sources"] = dict.fromkeys([*(part for part in _COVERED if part in body), *sorted(kinds)], "s")
    path = folder / "made.yaml"
    path.write_text(yaml.safe_dump(body, sort_keys=False))
    return path


def resolved(folder: Path, measure: list[dict[str, Any]], at: str | None = None, **parts: Any) -> list[Resolved]:
    """Return the measurements of such a protocol."""
    return resolve(load(protocol(folder, measure, **parts)), "client", at, parts.pop("set_", {}), "test")


def steps(folder: Path, measure: list[dict[str, Any]], at: str | None = None, **parts: Any) -> list[dict[str, Any]]:
    """Return the steps of the only measurement of such a protocol, without their kinds."""
    (measurement,) = resolved(folder, measure, at, **parts)
    return [fields for step in measurement.steps["measure"] for fields in step.values()]


def loop(cells: Any, **fields: Any) -> dict[str, Any]:
    """A loop of five rounds."""
    return {"loop": {"cells": cells, "runtime": "60s", "until": {"rounds": 5}, **fields}}


def soak(**fields: Any) -> dict[str, Any]:
    """A soak of random writes."""
    made = {"pattern": "random", "read_share": 0, "block_size": "4KiB", "slice": "1min", "until": {"time": "20min"}}
    return {"soak": {**made, **fields}}
