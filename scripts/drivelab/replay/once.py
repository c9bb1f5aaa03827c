"""Replay a prepared schedule once: run an engine, evaluate."""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from drivelab.core.errors import UserError
from drivelab.core.programs import Tick, Timing
from drivelab.drives.target import Target
from drivelab.fio.job_run import run_fio
from drivelab.recording.writer import write_json
from drivelab.replay import fio_iolog, native
from drivelab.replay.evaluation.replay_report import report
from drivelab.replay.fio_iolog import MOST_LANES, FioIolog
from drivelab.replay.native import RESULTS, EngineOptions
from drivelab.replay.outcome import OUTCOME_FILE, REPORT_FILE, write_outcome
from drivelab.replay.prepare import Prepared
from drivelab.replay.thread_choice import issuing
from drivelab.replay.volumes import ONLY

FACTS = "engine.json"
"""Written by `run` for `evaluate`, beside the results."""


@dataclass(frozen=True)
class Manner:
    """How a schedule is replayed."""

    engine: str = "native"
    options: EngineOptions = field(default_factory=EngineOptions)


def run(
    target: Target,
    prepared: Prepared,
    directory: Path,
    manner: Manner,
    on_tick: Tick = lambda elapsed_s: None,
    on_hang: Callable[[], None] = lambda: None,
    others: Sequence[Target] = (),
) -> Timing:
    """Replay once and leave the evidence in `directory`, for `evaluate`.

    `others` are the targets of the further volumes; only drivelab's own engine takes them.

    Raises CellFailed when the engine cannot begin or hangs beyond its own watchdog, UserError when it does not support
    a requested option.
    """
    if manner.engine == "fio":
        _refuse_options(manner.options)
        return _run_fio(target, prepared, directory, on_tick, on_hang)
    write_json(directory / FACTS, {"engine": "native"})
    options = issuing(manner.options, target, prepared.schedule)
    further = [(each.path, each.identity) for each in others]
    return native.run_engine(target.path, target.identity, prepared.schedule, directory, options, others=further,
                             on_tick=on_tick, on_hang=on_hang)  # fmt: skip


def evaluate(prepared: Prepared, directory: Path) -> dict[str, Any]:
    """Write outcome and report from `run`'s files, and return the report.

    If the trace has several volumes, the report has those of each as `volumes`.

    Deletes the engine's own files.

    Raises CellFailed when fio's evidence is invalid, UserError when files cannot be read or written.
    """
    facts = json.loads((directory / FACTS).read_text(encoding="utf-8"))
    results, outcome = directory / RESULTS, directory / OUTCOME_FILE
    plan = prepared.to_mapping()
    if facts["engine"] == FioIolog.name:
        write_outcome(prepared.planned, None, outcome, {"engine": facts["engine"]})
        facts["totals"] = fio_iolog.totals(directory, plan)
    else:
        write_outcome(prepared.planned, results, outcome, {"engine": facts["engine"]})
        results.unlink()
    names = list(plan["mapping"].get("volumes", ())) or [ONLY]
    replay_report = report(outcome, plan, facts)
    replay_report["marks"] += facts.get("remarks", [])
    if names != [ONLY]:
        replay_report["volumes"] = {name: report(outcome, plan, facts, name) for name in names}
    write_json(directory / REPORT_FILE, replay_report)
    return replay_report


def _refuse_options(options: EngineOptions) -> None:
    """Raise UserError for options of the native engine only; fio ignores the seed."""
    plain = EngineOptions(seed=options.seed)
    names = {"depth_limit": "depth limit", "go_on": "continuing after an error", "threads": "several threads",
             "cpus": "choice of CPUs", "polled": "polling", "kernel_thread": "a submitting kernel thread",
             "nvme": "NVMe passthrough", "realtime_priority": "real-time priority",
             "watchdog_s": "watchdog"}  # fmt: skip
    for name, option in names.items():
        if getattr(options, name) != getattr(plain, name):
            raise UserError(f"fio's replay does not support: {option}; remove the option, or use the native engine")


def begun(directory: Path) -> bool:
    """Return whether the native engine started issuing requests."""
    results = directory / RESULTS
    return results.exists() and native.engine_report(directory)["state"] != "prepared"


def _run_fio(
    target: Target,
    prepared: Prepared,
    directory: Path,
    on_tick: Tick,
    on_hang: Callable[[], None],
) -> Timing:
    engine = FioIolog()
    dropped = ", ".join(f"{count} {kind}" for kind, count in engine.dropped(prepared).items())
    remarks = [fio_iolog.REMARK, *([f"dropped: fio does not replay {dropped}"] if dropped else [])]
    job = target.as_comment + engine.job(prepared, target.own_path, directory)
    if job.count("[lane-") == MOST_LANES:
        remarks.append(f"depth limited: fio replays with at most {MOST_LANES} requests in flight")
    write_json(directory / FACTS, {"engine": engine.name, "remarks": remarks})
    name = None if target.device is None else Path(target.device).name
    return run_fio(name, job, directory, on_tick=on_tick, on_hang=on_hang, idles=True, inherited=[target.descriptor])
