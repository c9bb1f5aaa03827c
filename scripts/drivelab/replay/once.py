"""One replay of a prepared schedule on a target: run by an engine, watched by the kernel's tracer, evaluated."""

from __future__ import annotations

import json
import shutil
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from drivelab.drives.target import Target
from drivelab.errors import UserError
from drivelab.fio.run import run_fio
from drivelab.process import Runner, Timing, run_program
from drivelab.recording.writer import write_json
from drivelab.replay import fio_totals, kernel_view, native
from drivelab.replay.fio_iolog import FioIolog
from drivelab.replay.native import EngineOptions
from drivelab.replay.outcome import outcome_about, write_outcome
from drivelab.replay.prepare import Prepared
from drivelab.replay.report import report
from drivelab.trace import capture as capturing
from drivelab.trace.decode import decode

ENGINES = ("native", "fio")
OUTCOME, REPORT, RESULTS, FACTS = "outcome.parquet", "report.json", "results.bin", "engine.json"
_RAW, _CAPTURED = "capture", "captured.parquet"


@dataclass(frozen=True)
class Manner:
    """How a schedule is replayed."""

    engine: str = "native"
    options: EngineOptions = field(default_factory=EngineOptions)
    watched: bool = False
    """Whether the kernel's tracer looks on, which costs the fastest drives a few percent of their speed."""


def run(
    target: Target,
    prepared: Prepared,
    directory: Path,
    manner: Manner,
    on_tick: Callable[[float], None] = lambda elapsed_s: None,
    on_hang: Callable[[], None] = lambda: None,
) -> Timing:
    """Replay once and leave the evidence in `directory`, for `evaluate`.

    Raises CellFailed when the engine could do nothing at all or hangs beyond its own watchdog, UserError when it
    cannot do what is asked.
    """
    if manner.engine == "fio":
        return _run_fio(target, prepared, directory, on_tick, on_hang)
    if (reason := _unwatched(target, manner)) is None:
        try:
            return _run_natively(target, prepared, directory, manner, _watched_by(target, directory), on_tick, on_hang)
        except UserError as error:
            if _begun(directory):
                raise
            shutil.rmtree(directory / _RAW, ignore_errors=True)
            reason = str(error)
    write_json(directory / FACTS, {"engine": "native", "kernel_reason": reason})
    return _run_natively(target, prepared, directory, manner, run_program, on_tick, on_hang)


def evaluate(prepared: Prepared, directory: Path) -> dict[str, Any]:
    """Write outcome and report of what `run` left, and return the report; the engine's own files go.

    Raises CellFailed when fio's evidence does not hold, UserError when files cannot be read or written.
    """
    facts = json.loads((directory / FACTS).read_text(encoding="utf-8"))
    results, outcome = directory / RESULTS, directory / OUTCOME
    plan = prepared.to_mapping()
    if facts["engine"] == FioIolog.name:
        write_outcome(prepared.planned, None, outcome, {"engine": facts["engine"]})
        facts["totals"] = fio_totals.totals(directory, plan)
    else:
        write_outcome(prepared.planned, results, outcome, {"engine": facts["engine"]})
        results.unlink()
    if (directory / _CAPTURED).exists():
        start_ns = outcome_about(outcome)["results"]["start_monotonic_ns"]
        facts["kernel"] = kernel_view.compare(directory / _CAPTURED, outcome, start_ns)
        (directory / _CAPTURED).unlink()
    found = report(outcome, plan, facts)
    found["marks"] += facts.get("remarks", [])
    write_json(directory / REPORT, found)
    return found


def _unwatched(target: Target, manner: Manner) -> str | None:
    """Why the kernel's tracer does not look on."""
    if not manner.watched:
        return "the kernel's tracer was not asked to look on"
    if target.device is None:
        return "the kernel's tracer sees block devices, not files"
    return capturing.possible()


def _begun(directory: Path) -> bool:
    results = directory / RESULTS
    return results.exists() and native.engine_report(directory)["state"] != "prepared"


def _run_natively(
    target: Target, prepared: Prepared, directory: Path, manner: Manner, runner: Runner,
    on_tick: Callable[[float], None], on_hang: Callable[[], None],
) -> Timing:  # fmt: skip
    return native.run_engine(target.path, target.identity, prepared.schedule, directory, manner.options,
                             on_tick=on_tick, on_hang=on_hang, runner=runner)  # fmt: skip


def _watched_by(target: Target, directory: Path) -> Runner:
    """Runs the engine as the command of a capture, whose trace is left beside the results. Nothing ticks meanwhile."""
    raw = directory / _RAW

    def runner(
        command: Sequence[str],
        directory: Path,
        on_tick: Callable[[float], None],
        on_hang: Callable[[], None] = lambda: None,
    ) -> Timing:
        assert target.device is not None
        started_s = time.monotonic()
        capture = capturing.capture(target.device, command, raw)
        ended_s = time.monotonic()
        for name in ("stdout", "stderr"):
            (raw / name).replace(directory / name)
        (directory / "exit_code").write_text(f"{capture.exit_status}\n")
        facts: dict[str, Any] = {"engine": "native"}
        try:
            decode(raw, directory / _CAPTURED)
        except UserError as error:
            facts["kernel_reason"] = str(error)
        shutil.rmtree(raw)
        write_json(directory / FACTS, facts)
        return Timing(started_s, ended_s)

    return runner


def _run_fio(
    target: Target,
    prepared: Prepared,
    directory: Path,
    on_tick: Callable[[float], None],
    on_hang: Callable[[], None],
) -> Timing:
    engine = FioIolog()
    dropped = ", ".join(f"{count} {kind}" for kind, count in engine.dropped(prepared).items())
    remarks = [fio_totals.REMARK, *([f"dropped: fio does not replay {dropped}"] if dropped else [])]
    reason = "fio's replay is not watched"
    write_json(directory / FACTS, {"engine": engine.name, "remarks": remarks, "kernel_reason": reason})
    name = None if target.device is None else Path(target.device).name
    job = engine.job(prepared, target.path, directory)
    return run_fio(name, job, directory, on_tick=on_tick, on_hang=on_hang, idles=True)
