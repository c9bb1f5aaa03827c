"""The trace's part of a plan."""

from __future__ import annotations

from collections.abc import Callable
from functools import cache
from pathlib import Path
from typing import Any

from drivelab.config.study import TraceSource
from drivelab.errors import UserError
from drivelab.stages.planned_application import APPLICATIONS
from drivelab.trace import application, catalogue
from drivelab.virtual.model import DriveModel


def trace_subject(
    name: str, source: TraceSource, traces: Path, key: str, model: Callable[[str, str], DriveModel],
    is_captured: Callable[[], bool],
) -> dict[str, Any]:  # fmt: skip
    """Return what a replay depends on: the content of an existing trace, or how a trace is captured.

    `traces` is the folder of shipped traces; `key` is file and key for errors, without the closing quote; `model`
    finds the virtual drive of a capture; `is_captured` returns whether this host captures the trace. Raises UserError
    for a missing trace.
    """
    if source.file is not None:
        return {"name": name, "sha256": _digest(source.file, f"{key}.file'")}
    assert source.shipped is not None  # the schema requires one of the two
    shipped = catalogue.entry(source.shipped, traces)
    if not shipped.path.is_file():
        raise UserError(f"{key}': {shipped.path} is missing; restore it with git")
    if source.capture is None or source.origin is None:
        return {"name": name, "sha256": shipped.sha256}
    spec = application.load(APPLICATIONS, source.capture)  # checked even if this host cannot trace
    origin = model(source.origin, f"{key}.origin'")
    if not is_captured():
        return {"name": name, "sha256": shipped.sha256}
    return {"name": name, "application": spec.to_mapping(), "origin": origin.to_mapping()}


@cache
def _digest(path: Path, source: str) -> str:
    try:
        return catalogue.sha256_of(path)
    except UserError as error:
        raise UserError(f"{source}: {error}") from None
