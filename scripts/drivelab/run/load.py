"""The load step: measure rate after rate with open-loop arrivals, until the search has its answer."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from drivelab.core.errors import CellFailed
from drivelab.core.programs import Timing
from drivelab.criteria.rate_search import Search, next_rate, worth_repeating
from drivelab.criteria.taint import own_writes
from drivelab.plan.cell import Cell
from drivelab.plan.loops import MOST_REQUESTS, TRACE, grace_s, load_words
from drivelab.recording.writer import write_json
from drivelab.replay import native
from drivelab.replay.arrivals import gaps_of, load_schedule
from drivelab.replay.engine_records import OPERATION_CODES, open_schedule
from drivelab.replay.evaluation.load_rate import rate_facts, read_requests, write_requests
from drivelab.replay.native import RESULTS, EngineOptions
from drivelab.run.fio_cell import Bench
from drivelab.run.progress import Progress
from drivelab.run.schedules import same_trace

_LIKELY_RATES = 16
"""For the progress only."""
ENGINE = "engine.json"
_ENGINE_FACTS = ("state", "issued", "completed", "most_in_flight", "threads", "spin_us", "wakeup_us", "buffers",
                 "start_realtime_ns")  # fmt: skip


def run_load(bench: Bench, progress: Progress, step: int, fields: Mapping[str, Any]) -> None:
    """Measure the rates of a search, each up to `tries` times; see drivelab.criteria.rate_search.

    The journal has a line for each measurement, with the outcome of its rate so far. The next rate follows from these
    lines alone, so an interrupted search resumes. Raises CellFailed when requests fail or the engine ends early.
    """
    origin = _Origin.of(bench) if fields["arrivals"] == TRACE else None
    lines = [line for line in bench.recording.journal() if line["event"] == "load" and line["step"] == step]
    search = Search.of_step(fields, bench.plan.seed(f"cells/{step}-load") / 2**32)
    while (iops := _following(search, lines, fields)) is not None:
        lines.append(_measure(bench, progress, step, iops, lines, fields, origin))


@dataclass(frozen=True)
class _Origin:
    """The trace whose arrivals a load has."""

    path: Path
    facts: Mapping[str, str]
    """Name and digest for the journal."""

    @classmethod
    def of(cls, bench: Bench) -> _Origin:
        """Return the plan's trace; raises UserError if the recording began with a different one of this name."""
        path, name = Path(bench.plan.context["trace_paths"][0]), bench.plan.subject["traces"][0]["name"]
        return cls(path, {"trace": name, "trace_sha256": same_trace(bench.recording, name, path)})


def _following(search: Search, lines: Sequence[Mapping[str, Any]], fields: Mapping[str, Any]) -> float | None:
    """Return the rate to measure next: the last one again if it is worth it, else the next one of the search."""
    if lines:
        last = lines[-1]
        if worth_repeating(last["outcome"], last["effective_requests"], last["attempt"], fields["tries"],
                           fields["limit"]["percentile"]):  # fmt: skip
            return float(last["rate_iops"])
    outcomes = {float(line["rate_iops"]): str(line["outcome"]) for line in lines}
    return next_rate(search, list(outcomes.items()))


def _measure(
    bench: Bench, progress: Progress, step: int, iops: float, lines: Sequence[Mapping[str, Any]],
    fields: Mapping[str, Any], origin: _Origin | None,
) -> dict[str, Any]:  # fmt: skip
    """Measure one rate once, judge all measurements of it, and append the journal's line."""
    cell, device, limit = Cell(**fields["cell"]), bench.device, fields["limit"]
    earlier = [line for line in lines if line["rate_iops"] == iops]
    rate = earlier[0]["rate"] if earlier else 1 + len({line["rate_iops"] for line in lines})
    attempt = 1 + len(earlier)
    name = f"cells/{step}-load-rate{rate}-{attempt}"
    seed = bench.plan.seed(name)
    count = min(max(round(fields["runtime_s"] * iops), 1), MOST_REQUESTS)
    trace, of_trace = (None, {}) if origin is None else (origin.path, origin.facts)
    text = f"load {load_words(fields)}: {iops:,.0f} IOPS, rate {rate}, measurement {attempt}"

    def tick(elapsed_s: float) -> None:
        done = len(lines) / _LIKELY_RATES + elapsed_s * iops / count / _LIKELY_RATES
        progress.say(f"{text}, {elapsed_s:.0f} s", min(done, 0.99))

    def act(folder: Path) -> Timing | None:
        schedule = folder / "load.schedule"
        try:
            last_s = load_schedule(cell, gaps_of(fields["arrivals"], seed, trace), iops, count, schedule, seed,
                                   device.capacity_bytes, device.logical_block_bytes)  # fmt: skip
            tick(0.0)
            options = EngineOptions(depth_limit=cell.queue_depth, threads=cell.threads, seed=seed,
                                    runtime_s=round(last_s + grace_s(fields), 3))  # fmt: skip
            timing = device.issue(schedule, folder, options, tick)
            _keep_evidence(folder, schedule)
        finally:
            schedule.unlink(missing_ok=True)
            (folder / RESULTS).unlink(missing_ok=True)
        return timing

    try:
        directory, facts = bench.run(name, act)
    except CellFailed as failure:
        raise CellFailed(f"load in {name}: {failure}") from None
    folders = [*(bench.recording.part / line["directory"] for line in earlier), directory]
    judged = rate_facts([read_requests(folder) for folder in folders], limit["percentile"],
                        limit["response_time_us"])  # fmt: skip
    written = read_requests(directory).completed(OPERATION_CODES["write"]) * cell.block_size_bytes
    phase = {key: fields[key] for key in ("phase", "phase_value", "phase_pass") if key in fields}
    line = {
        "step": step, "rate": rate, "attempt": attempt, "rate_iops": iops, **phase, **of_trace,
        "workload": cell.to_mapping(), "engine": "native" if bench.plan.clock == "wall" else device.engine,
        **judged, "written_bytes": written, **own_writes(written, 0), **facts,
    }  # fmt: skip
    bench.recording.append("load", **line)
    return line


def _keep_evidence(folder: Path, schedule: Path) -> None:
    """Check how the engine ended, and keep the times of all requests and the engine's facts."""
    report = native.engine_report(folder)
    if report["state"] not in ("finished", "time is up") or report["failed"]:
        raise CellFailed(
            f"the replay engine ended in state '{report['state']}'; {report['failed']} of {report['issued']} requests "
            "failed"
        )
    write_requests(schedule, folder / RESULTS, folder / "requests.parquet")
    facts = {name: report[name] for name in _ENGINE_FACTS}
    write_json(folder / ENGINE, {**facts, "schedule_checksum": open_schedule(schedule).header["checksum"]})
