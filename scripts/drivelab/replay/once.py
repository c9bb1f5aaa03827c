"""Replay a prepared schedule once: run an engine, capture, evaluate."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import Any

from drivelab.core.errors import UserError
from drivelab.core.programs import Runner, Tick, Timing, run_program
from drivelab.drives.target import Target
from drivelab.fio.job_run import run_fio
from drivelab.recording.writer import write_json
from drivelab.replay import fio_iolog, native
from drivelab.replay.evaluation import kernel_view
from drivelab.replay.evaluation.replay_report import report
from drivelab.replay.fio_iolog import MOST_LANES, FioIolog
from drivelab.replay.native import RESULTS, EngineOptions
from drivelab.replay.outcome import OUTCOME_FILE, REPORT_FILE, outcome_about, write_outcome
from drivelab.replay.prepare import Prepared
from drivelab.replay.thread_choice import issuing
from drivelab.replay.volumes import ONLY
from drivelab.replay.watched import CAPTURED, NO_DEVICE, run_watched
from drivelab.trace.capturing import capture as capturing

_UNFINISHED = "the capture is unusable because the engine had to be killed"
FACTS = "engine.json"
"""Written by `run` for `evaluate`, beside the results and the capture."""


@dataclass(frozen=True)
class Manner:
    """How a schedule is replayed."""

    engine: str = "native"
    options: EngineOptions = field(default_factory=EngineOptions)
    watched: bool = False
    """Whether the kernel's tracer records, which costs the fastest drives a few percent of their speed."""


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
    write_json(directory / FACTS, {"engine": "native", "kernel_reason": _UNFINISHED})
    targets = [target, *others]
    natively = partial(_run_natively, targets, prepared, directory, manner, on_tick, on_hang)
    if (reason := _unwatched(targets, manner)) is None:
        facts: dict[str, Any] = {"kernel_reason": _UNFINISHED}

        def watched(
            command: Sequence[str], folder: Path, tick: Tick, free: Callable[[], None], patience_s: float
        ) -> Timing:
            devices = [target.device for target in targets]
            timing, reasons = run_watched(devices, command, folder, tick, free, patience_s)
            facts.update(kernel_reason=None, kernel_reasons=reasons)
            return timing

        try:
            timing = natively(watched)
        except UserError as error:
            if begun(directory):
                raise
            reason = str(error)
        else:
            write_json(directory / FACTS, {"engine": "native", **facts})
            return timing
    write_json(directory / FACTS, {"engine": "native", "kernel_reason": reason})
    return natively(run_program)


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
    seen, of_volumes = _kernel_views(facts, names, directory)
    replay_report = report(outcome, plan, facts | seen)
    replay_report["marks"] += facts.get("remarks", [])
    if names != [ONLY]:
        replay_report["volumes"] = {name: report(outcome, plan, facts | of_volumes[name], name) for name in names}
    write_json(directory / REPORT_FILE, replay_report)
    return replay_report


def _kernel_views(
    facts: Mapping[str, Any], names: Sequence[str], directory: Path
) -> tuple[dict[str, Any], dict[str, dict[str, Any]]]:
    """Return what the kernel saw of the whole replay and of each volume, or why it is unknown; delete the captures.

    If the view of any volume is unknown, so is that of the whole replay.
    """
    if "kernel_reasons" not in facts:
        return {}, {name: {} for name in names}
    reasons = dict(zip(names, facts["kernel_reasons"], strict=True))
    captures = {name: directory / CAPTURED.format(number) for number, name in enumerate(names) if reasons[name] is None}
    start_ns = outcome_about(directory / OUTCOME_FILE)["results"]["start_monotonic_ns"]
    whole, each = kernel_view.compare(captures, directory / OUTCOME_FILE, start_ns) if captures else ({}, {})
    for path in captures.values():
        path.unlink()
    of_volumes = {name: {"kernel": each.get(name), "kernel_reason": reason} for name, reason in reasons.items()}
    if len(captures) == len(names):
        return {"kernel": whole}, of_volumes
    known = [f"volume {name}: {reason}" if name else reason for name, reason in reasons.items() if reason is not None]
    return {"kernel_reason": "; ".join(known)}, of_volumes


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


def _unwatched(targets: Sequence[Target], manner: Manner) -> str | None:
    """Return why the kernel's tracer does not record, or None."""
    if not manner.watched:
        return "the kernel's tracer was not requested"
    if manner.options.start_ns is not None:
        return "each drive of this replay has its own process, and the kernel has one tracer"
    if all(target.device is None for target in targets):
        return NO_DEVICE
    return capturing.possible()


def begun(directory: Path) -> bool:
    """Return whether the native engine started issuing requests."""
    results = directory / RESULTS
    return results.exists() and native.engine_report(directory)["state"] != "prepared"


def _run_natively(
    targets: Sequence[Target], prepared: Prepared, directory: Path, manner: Manner, on_tick: Tick,
    on_hang: Callable[[], None], runner: Runner,
) -> Timing:  # fmt: skip
    (first, *_), others = targets, [(target.path, target.identity) for target in targets[1:]]
    options = issuing(manner.options, first, prepared.schedule)
    return native.run_engine(first.path, first.identity, prepared.schedule, directory, options, others=others,
                             on_tick=on_tick, on_hang=on_hang, runner=runner)  # fmt: skip


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
    reason = "fio's replay is not watched"
    write_json(directory / FACTS, {"engine": engine.name, "remarks": remarks, "kernel_reason": reason})
    name = None if target.device is None else Path(target.device).name
    return run_fio(name, job, directory, on_tick=on_tick, on_hang=on_hang, idles=True, inherited=[target.descriptor])
