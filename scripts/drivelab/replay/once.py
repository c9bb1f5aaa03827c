"""Replay a prepared schedule once: run an engine, evaluate."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

from drivelab.core.programs import Tick, Timing
from drivelab.drives.target import Target
from drivelab.recording.writer import write_json
from drivelab.replay import native
from drivelab.replay.evaluation.replay_report import report
from drivelab.replay.native import RESULTS, EngineOptions
from drivelab.replay.outcome import OUTCOME_FILE, REPORT_FILE, write_outcome
from drivelab.replay.prepare import Prepared

FACTS = "engine.json"
"""Written by `run` for `evaluate`, beside the results."""


def run(
    target: Target,
    prepared: Prepared,
    directory: Path,
    options: EngineOptions,
    on_tick: Tick = lambda elapsed_s: None,
    on_hang: Callable[[], None] = lambda: None,
) -> Timing:
    """Replay once and leave the evidence in `directory`, for `evaluate`.

    Raises CellFailed when the engine cannot begin or hangs beyond its own watchdog, UserError when it does not support
    a requested option.
    """
    write_json(directory / FACTS, {"engine": "native"})
    options = native.issuing(options, target, prepared.schedule)
    return native.run_engine(target.path, target.identity, prepared.schedule, directory, options,
                             on_tick=on_tick, on_hang=on_hang)  # fmt: skip


def evaluate(prepared: Prepared, directory: Path) -> dict[str, Any]:
    """Write outcome and report from `run`'s files, and return the report.

    Deletes the engine's own files.

    Raises UserError when files cannot be read or written.
    """
    facts = json.loads((directory / FACTS).read_text(encoding="utf-8"))
    results, outcome = directory / RESULTS, directory / OUTCOME_FILE
    plan = prepared.to_mapping()
    write_outcome(prepared.planned, results, outcome, {"engine": facts["engine"]})
    results.unlink()
    replay_report = report(outcome, plan, facts["engine"])
    replay_report["marks"] += facts.get("remarks", [])
    write_json(directory / REPORT_FILE, replay_report)
    return replay_report


def begun(directory: Path) -> bool:
    """Return whether the engine started issuing requests."""
    results = directory / RESULTS
    return results.exists() and native.engine_report(directory)["state"] != "prepared"
