"""The application step: repeat an application on the drive until its runs agree."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from drivelab.application import stand_in, timed
from drivelab.core.errors import CellFailed, UserError
from drivelab.criteria.repeats import MOST, next_action
from drivelab.plan.replay_choice import ReplayChoice
from drivelab.replay import once
from drivelab.replay.prepare import Prepared, prepare
from drivelab.run.fio_cell import Bench
from drivelab.run.progress import Progress
from drivelab.run.schedules import same_trace
from drivelab.trace.capturing.applications import Application, of_plan


def run_application(bench: Bench, progress: Progress, step: int, fields: Mapping[str, Any]) -> None:
    """Run the plan's application: first cold runs, then warm runs.

    The relative standard error decides between 3, 5 and 7 warm runs, unless the plan gives a number. Each run has a
    fresh file system. Runs in the journal count; an interrupted run is repeated. If the step has cold runs, the first
    run after an interruption is cold too, because the drive may have cooled.

    Raises CellFailed when a run fails, UserError when the drive may no longer be written to.
    """
    done = _runs(bench.recording.journal(), step)
    if enough(done, fields):
        return
    spec, trace = of_plan(bench.plan), _stand_in(bench)
    while not enough(done, fields):
        cold = next_is_cold(bench.recording.journal(), step, int(fields["cold_runs"]))
        done.append(_run_once(bench, progress, step, done, spec, trace, fields, cold=cold))


def _runs(journal: Sequence[Mapping[str, Any]], step: int) -> list[Mapping[str, Any]]:
    return [line for line in journal if line["event"] == "application" and line["step"] == step]


def enough(done: Sequence[Mapping[str, Any]], fields: Mapping[str, Any]) -> bool:
    """Return whether the runs in these journal lines complete the step."""
    warm, until = [line for line in done if not line["cold"]], fields["until"]
    if "passes" in until:
        return len(warm) >= int(until["passes"])
    if not warm:
        return False
    values = [float(line[until["metric"]]) for line in warm]
    return len(values) >= MOST or next_action(values, 100 * until["threshold"]).enough


def next_is_cold(journal: Sequence[Mapping[str, Any]], step: int, cold_runs: int) -> bool:
    """Return whether the next run is cold: an initial run, or the first after an interruption."""
    if not cold_runs:
        return False
    after_gap = False
    for line in journal:
        if line["event"] == "gap":
            after_gap = True
        elif line["event"] == "application" and line["step"] == step:
            after_gap = False
    return after_gap or len(_runs(journal, step)) < cold_runs


def _stand_in(bench: Bench) -> Prepared | None:
    """Return the application's trace, prepared for this drive, on the virtual clock; its files join the schedules."""
    plan, device = bench.plan, bench.device
    if "stand_in" not in plan.subject:
        return None
    path = Path(plan.context["stand_in_path"])
    if same_trace(bench.recording, plan.subject["stand_in"]["trace"], path) != plan.subject["stand_in"]["trace_sha256"]:
        raise UserError(f"{path}: this is not the trace that {plan.recording} was planned with; run again")
    folder = bench.recording.part / "schedules" / "application"
    folder.mkdir(parents=True, exist_ok=True)
    choice = ReplayChoice.from_mapping(stand_in.CHOICE)
    return prepare(path, folder / "trace", choice, device.capacity_bytes, device.logical_block_bytes)


def _run_once(
    bench: Bench,
    progress: Progress,
    step: int,
    done: Sequence[Mapping[str, Any]],
    spec: Application,
    trace: Prepared | None,
    fields: Mapping[str, Any],
    *,
    cold: bool,
) -> dict[str, Any]:
    """Run once more, check the evidence and append it to the journal."""
    run = 1 + len(done)
    all_cold = max(int(fields["cold_runs"]), cold + sum(line["cold"] for line in done))
    most = all_cold + int(fields["until"].get("passes", MOST))
    phase = {key: fields[key] for key in ("phase", "phase_pass", "phase_value") if key in fields}
    text = f"{spec.name}, run {run} ({'cold' if cold else 'warm'}) of at most {most}"
    name = f"cells/{step}-application-run{run}"
    progress.say(f"{text}: its file system and files", (run - 1) / most)
    try:
        with bench.device.application(spec, trace) as act:
            directory, facts = bench.run(
                name,
                lambda folder: act(folder, lambda elapsed_s: progress.say(f"{text}, {elapsed_s:.0f} s", run / most)),
            )
        result = timed.of_command(directory) if trace is None else _of_replay(trace, directory)
    except CellFailed as failure:
        raise CellFailed(f"{text} in {name}: {failure}") from None
    line = {"step": step, "run": run, "cold": cold, **phase, "application": spec.name, **result.to_mapping(), **facts}
    if trace is not None:
        of_trace = bench.plan.subject["stand_in"]
        line |= {key: of_trace[key] for key in ("trace", "trace_sha256")}
        line["remark"] = stand_in.words(of_trace["trace"])
    bench.recording.append("application", **line)
    return line


def _of_replay(trace: Prepared, directory: Path) -> timed.Outcome:
    return timed.of_stand_in(once.evaluate(trace, directory))
