"""The replay step: repeat passes over the plan's traces until they agree, or a given number of times."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from drivelab.core.errors import CellFailed
from drivelab.core.programs import Timing
from drivelab.criteria.repeats import MOST, next_action
from drivelab.criteria.taint import own_writes
from drivelab.replay.evaluation.passes import pass_metrics
from drivelab.replay.native import EngineOptions
from drivelab.replay.once import evaluate
from drivelab.replay.prefill import check_prefill, prefill_options, prefill_schedule
from drivelab.run.fio_cell import Bench
from drivelab.run.progress import Progress
from drivelab.run.schedules import Scheduled


def run_replay(bench: Bench, progress: Progress, step: int, fields: Mapping[str, Any]) -> None:
    """Replay the plan's traces in their order, pass after pass: first cold passes, then warm passes.

    The relative standard error decides between 3, 5 and 7 warm passes, unless the plan gives a number. Raises
    CellFailed when a replay fails.
    """
    journal = bench.recording.journal()
    done = [line for line in journal if line["event"] == "replay" and line["step"] == step]
    whole = len(bench.plan.subject["traces"])
    if _enough(_passes(done, whole), fields):
        return
    traces = bench.schedules.of(fields["choice"])
    if fields["prefill"] == "footprint":
        written = {line["trace"] for line in journal if line["event"] == "prefill" and line["step"] == step}
        left = [trace for trace in traces if trace.name not in written]
        _prefill(bench, progress, step, left)
    while not _enough(_passes(done, whole), fields):
        repeat, place = 1 + len(done) // whole, len(done) % whole
        done.append(_replay_counted(bench, progress, _Run(step, repeat, traces[place], fields)))


def _passes(done: Sequence[Mapping[str, Any]], traces: int) -> list[Sequence[Mapping[str, Any]]]:
    """Return the journal lines of each complete pass."""
    return [done[first : first + traces] for first in range(0, len(done) - traces + 1, traces)]


def _enough(passes: Sequence[Sequence[Mapping[str, Any]]], fields: Mapping[str, Any]) -> bool:
    warm, until = passes[fields["cold_runs"] :], fields["until"]
    if "passes" in until:
        return len(warm) >= int(until["passes"])
    if not warm:
        return False
    metrics = [pass_metrics([line["metrics"] for line in lines])[until["metric"]] for lines in warm]
    values = [value for value in metrics if value is not None]
    if len(values) < len(metrics):
        raise CellFailed(f"a replay has no {until['metric']}; stop by passes, or choose another metric")
    return len(warm) >= MOST or next_action(values, 100 * until["threshold"]).enough


def _most(fields: Mapping[str, Any]) -> int:
    return int(fields["cold_runs"] + fields["until"].get("passes", MOST))


def _prefill(bench: Bench, progress: Progress, step: int, traces: Sequence[Scheduled]) -> None:
    """Write what the traces read."""
    for trace in traces:
        progress.say(f"writing what {trace.name} reads", 0.0)
        schedule = trace.prepared.schedule.with_suffix(".prefill")
        facts: dict[str, Any] = {}
        if written := prefill_schedule(trace.prepared.schedule, schedule):
            options = prefill_options(EngineOptions())
            facts = _write_all(bench, f"cells/{step}-prefill-{trace.name}", schedule, options)
        bench.recording.append("prefill", step=step, trace=trace.name, bytes=written, **facts)


def _write_all(bench: Bench, name: str, schedule: Path, options: EngineOptions) -> dict[str, Any]:
    directory, facts = bench.run(
        name, lambda folder: bench.device.issue(schedule, folder, options, lambda elapsed_s: None)
    )
    check_prefill(directory)
    return facts


@dataclass(frozen=True)
class _Run:
    """One replay of one trace."""

    step: int
    repeat: int
    trace: Scheduled
    fields: Mapping[str, Any]

    @property
    def warm(self) -> bool:
        return bool(self.repeat > self.fields["cold_runs"])

    @property
    def phase(self) -> dict[str, Any]:
        return {key: self.fields[key] for key in ("phase", "phase_pass") if key in self.fields}


def _replay_counted(bench: Bench, progress: Progress, run: _Run) -> dict[str, Any]:
    """Replay one trace, again if load of others disturbed it, and append what counts to the journal; return its line.

    A cold run and the pass of a phase are not repeated: the next one would find the drive in another state.
    """
    place = {"step": run.step, "repeat": run.repeat, "trace": run.trace.name}
    first = f"cells/{run.step}-replay{run.repeat}-{run.trace.name}"

    def attempt(name: str) -> tuple[dict[str, Any], dict[str, Any]]:
        return _replay_once(bench, progress, run, name)

    alike = run.warm and not run.phase
    line, facts = bench.undisturbed(first, attempt, place, lambda line: line, alike=alike)
    line = {**place, **line, **facts}
    bench.recording.append("replay", **line)
    return line


def _replay_once(bench: Bench, progress: Progress, run: _Run, name: str) -> tuple[dict[str, Any], dict[str, Any]]:
    """Replay one trace once, with its evidence in folder `name`; return what it gave and the facts for the journal."""
    fields, trace, repeat = run.fields, run.trace, run.repeat
    suffix = f", {run.phase['phase']} {run.phase['phase_pass']}" if run.phase else ""
    text = f"replay {repeat} ({'warm' if run.warm else 'cold'}) of at most {_most(fields)} of {trace.name}{suffix}"
    expected_s = max(trace.prepared.trace_duration_s, 1.0)

    def tick(elapsed_s: float) -> None:
        progress.say(
            f"{text}, {elapsed_s:.0f} s of {expected_s:.0f} s", (repeat - 1 + elapsed_s / expected_s) / _most(fields)
        )

    tick(0.0)
    issued = fields.get("issued", ())
    options = EngineOptions(
        depth_limit=fields["depth_limit"],
        go_on=fields["on_error"] == "go-on",
        polled="polled" in issued,
        kernel_thread="kernel-thread" in issued,
        nvme="nvme" in issued,
        seed=bench.plan.seed(name),
    )

    def act(folder: Path) -> Timing | None:
        return bench.device.replay(trace.prepared, folder, options, tick)

    try:
        directory, facts = bench.run(name, act, counted=not options.nvme)
        report = evaluate(trace.prepared, directory)
        if report["state"] != "finished" or report["partial"]:
            raise CellFailed("; ".join(report["marks"]))
    except CellFailed as failure:
        raise CellFailed(f"replay in {name}: {failure}") from None
    completed = [report["completed"].get(operation, {}) for operation in ("read", "write")]
    reads_and_writes = sum(counts.get("requests", 0) for counts in completed)
    moved = sum(counts.get("bytes", 0) for counts in completed)
    measured = ("busy_s", "bandwidth_mib_s", "access_time_us", "score", "duration_s")
    line = {
        "warm": run.warm, **run.phase, "trace_sha256": trace.sha256,
        "choice": fields["choice"], "engine": report["engine"],
        "metrics": {"reads_and_writes": reads_and_writes, "bytes": moved, **{key: report[key] for key in measured}},
    }  # fmt: skip
    return line, {**replay_writes(report), **facts}


def replay_writes(report: Mapping[str, Any]) -> dict[str, Any]:
    """Return the `own_writes` of a replay from its report.

    The kernel counts write-zeroes as writes (include/linux/blk_types.h, op_stat_group).
    """

    def moved(counts: Mapping[str, Mapping[str, int]], *operations: str) -> int:
        return sum(int(counts.get(operation, {}).get("bytes", 0)) for operation in operations)

    done, failed = report["completed"], report["failed"]
    return own_writes(moved(done, "write", "write-zeroes"), moved(done, "discard"),
                      moved(failed, "write", "write-zeroes"), moved(failed, "discard"))  # fmt: skip
