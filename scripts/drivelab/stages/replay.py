"""The replay step: a trace replayed until its repeats agree, after runs that do not count."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from drivelab.analysis.repeats import next_action
from drivelab.errors import UserError
from drivelab.fio.result import CellFailed, FioResult, read_replay
from drivelab.replay.schedule import Schedule, prepare_schedule
from drivelab.stages.cell import Bench, metrics
from drivelab.stages.progress import Progress
from drivelab.trace.catalogue import sha256_of

MOST_RUNS = 7
"""Solidigm guide: beyond seven runs, discard the set or study the cause."""


def run_replay(bench: Bench, progress: Progress, step: int, fields: Mapping[str, Any]) -> None:
    """Replay the plan's trace: cold runs, then 3, 5 or 7 warm runs, as their relative standard error asks.

    Raises CellFailed when a replay fails, UserError when the trace is not the one that the recording began with.
    """
    device, recording = bench.device, bench.recording
    trace = Path(bench.plan.context["trace_path"])
    schedule = prepare_schedule(trace, device.capacity_bytes, device.logical_block_bytes)
    digest = sha256_of(trace)
    journal = recording.journal()
    begun = {line["trace_sha256"] for line in journal if line["event"] == "replay"}
    if begun - {digest}:
        raise UserError(
            f"{trace}: is not the trace that {bench.plan.recording} began with; remove {recording.part} to begin anew"
        )
    done = [line for line in journal if line["event"] == "replay" and line["step"] == step]
    rule = fields["until"]
    while (repeat := len(done) + 1) <= fields["cold_runs"] + MOST_RUNS:
        warm = [line["metrics"][rule["metric"]] for line in done if line["warm"]]
        if warm and next_action(warm, 100 * rule["threshold"]).enough:
            break
        done.append(_replay_once(bench, progress, step, repeat, schedule, fields, digest))


def _judge(result: FioResult, schedule: Schedule) -> None:
    planned = schedule.planned()
    if (result.read.ios, result.write.ios) != (planned["read_ios"], planned["write_ios"]):
        raise CellFailed(
            f"{result.read.ios} reads and {result.write.ios} writes were issued, the trace has "
            f"{planned['read_ios']} and {planned['write_ios']}"
        )


def _replay_once(
    bench: Bench,
    progress: Progress,
    step: int,
    repeat: int,
    schedule: Schedule,
    fields: Mapping[str, Any],
    digest: str,
) -> dict[str, Any]:
    warm = repeat > fields["cold_runs"]
    text = f"replay {repeat} ({'warm' if warm else 'cold'}) of at most {fields['cold_runs'] + MOST_RUNS}"
    expected_s = max(schedule.duration_s, 1.0)
    whole = fields["cold_runs"] + MOST_RUNS

    def tick(elapsed_s: float) -> None:
        progress.say(f"{text}, {elapsed_s:.0f} s of {expected_s:.0f} s", (repeat - 1 + elapsed_s / expected_s) / whole)

    tick(0.0)
    name = f"cells/{step}-replay{repeat}"
    try:
        directory, facts = bench.run(name, lambda folder: bench.device.replay(schedule, folder, fields["timing"], tick))
        result = read_replay(directory)
        _judge(result, schedule)
    except CellFailed as failure:
        raise CellFailed(f"replay in {name}: {failure}") from None
    line = {
        "step": step, "repeat": repeat, "warm": warm, "trace": bench.plan.subject["trace"]["name"],
        "trace_sha256": digest, "timing": fields["timing"], "engine": bench.device.replay_engine,
        "planned": schedule.planned(),
        "dropped": bench.device.not_replayed(schedule),
        "metrics": metrics(result), **facts,
    }  # fmt: skip
    bench.recording.append("replay", **line)
    return line
