"""Simulated replays: the outcome of each request, and the resulting report, files and tables."""

from __future__ import annotations

import json
from functools import cache, partial
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import numpy as np
import pandas as pd
import protocol_frames
import pyarrow as pa
import pyarrow.parquet as pq

from drivelab.collect.replays import replay_tables
from drivelab.plan.replay_choice import ReplayChoice, TimingChoice
from drivelab.replay.evaluation.replay_report import report
from drivelab.replay.outcome import OUTCOME
from drivelab.trace.parquet_schema import PROVENANCE_KEY

key = partial(protocol_frames.key, measurement="trace-replay")
"""Return the columns of every table by recording of a replay."""
NO_TELEMETRY: dict[str, Any] = {
    **dict.fromkeys(
        ("temperature_min_c", "temperature_mean_c", "temperature_max_c", "throttled", "load_pct", "steal_pct",
         "waited_pct", "cpu_pct", "cpu_frequency_mhz", "power_w", "energy_j", "host_power_w", "taint_reason")
    ),
    "tainted": False,
}  # fmt: skip
WAKEUPS = {"p50": 4.1, "p95": 11.0, "p99": 61.0, "max": 240.0}
MAPPING: dict[str, Any] = {
    "method": "modulo", "reason": "the trace ends at 9 GiB, beyond the active range of 64 MiB",
    "capacity_bytes": 64 << 20, "logical_block_bytes": 4096, "range_start_bytes": 0, "range_bytes": 64 << 20,
    "requests_in_trace": 4120, "requests_merged": 120, "requests_moved": 3805, "requests_resized": 0,
    "requests_split": 2, "requests_clipped": 0, "requests_dropped": 0, "footprint_before_bytes": 30 << 20,
    "footprint_after_bytes": 28 << 20, "sequential_before_pct": 31.4, "sequential_after_pct": 31.1,
    "retouched_before_bytes": 81 << 20, "retouched_after_bytes": 83 << 20,
}  # fmt: skip
_SIZES = np.array([4096, 4096, 4096, 16384, 131072])


def outcome(
    requests: int = 4000, *, seed: int = 1, slowness: float = 1.0, duration_s: float = 12.0, asap: bool = False
) -> pd.DataFrame:
    """Return an outcome, one row per request: bursts of small writes, reads, flushes and discards."""
    random = np.random.default_rng(seed)
    busy = 1 + 0.8 * np.sin(np.linspace(0, 9, requests)) + (np.arange(requests) % 97 == 0) * 30
    gaps = random.exponential(1.0, requests) * busy
    deadline = (np.cumsum(gaps) / gaps.sum() * duration_s * 1e9).astype(np.int64)
    deadline -= deadline[0]
    operation = random.choice(["read", "write", "flush", "discard"], requests, p=[0.34, 0.58, 0.06, 0.02])
    length = np.where(operation == "flush", 0, random.choice(_SIZES, requests))
    base_us = np.select([operation == "read", operation == "write", operation == "flush"], [85, 38, 700], 300)
    trace_us = base_us * random.lognormal(0.5, 0.7, requests)
    replay_us = base_us * slowness * random.lognormal(0, 0.4, requests)
    replay_us *= np.where(random.random(requests) < 0.004, 40, 1)
    late_us = np.abs(random.normal(0.8, 0.5, requests)) + (random.random(requests) < 0.03) * random.exponential(
        90, requests
    )
    if asap:
        issue = np.concatenate([[0], np.cumsum(replay_us[:-1] / 3)]) * 1e3
    else:
        issue = np.maximum.accumulate(deadline + late_us * 1e3)
    issue = issue.astype(np.int64)
    complete = issue + (replay_us * 1e3).astype(np.int64)
    offset = random.integers(0, 4000, requests) * 4096
    return pd.DataFrame(
        {
            "deadline_ns": pd.array([None] * requests if asap else deadline, "Int64"),
            "operation": pd.Categorical(operation),
            "fua": operation == "never",
            "preflush": operation == "never",
            "offset_bytes": np.where(operation == "flush", 0, offset),
            "length_bytes": length,
            "process": pd.Categorical(random.choice(["sqlite3", "kworker/u4:1", "jbd2"], requests, p=[0.7, 0.2, 0.1])),
            "pid": 1,
            "cpu": (np.arange(requests) % 2).astype(np.int32),
            "sync": operation != "never",
            "meta": operation == "never",
            "readahead": operation == "never",
            "after": np.full(requests, -1),
            "trace_queue_ns": deadline,
            "trace_latency_ns": pd.array((trace_us * 1e3).astype(np.int64), "Int64"),
            "issue_ns": pd.array(issue, "Int64"),
            "complete_ns": pd.array(complete, "Int64"),
            "error": np.zeros(requests, np.int32),
            "waited": pd.Categorical(["depth" if number % 211 == 0 else "" for number in range(requests)]),
            "in_flight": random.integers(1, 9, requests).astype(np.int32),
        }
    )  # fmt: skip


def cell(
    directory: Path,
    frame: pd.DataFrame,
    *,
    choice: ReplayChoice,
    state: str = "finished",
    lost: int = 0,
    span_s: float = 12.0,
) -> dict[str, Any]:
    """Write the files of a replay from an `outcome` into `directory`; return its report."""
    directory.mkdir(parents=True, exist_ok=True)
    results = {"state": state, **{f"wakeup_{name}_ns": 1000 * us for name, us in WAKEUPS.items()}}
    prepared = {"choice": choice.to_mapping(), "mapping": MAPPING, "trace_duration_s": span_s, "issue_span_s": span_s,
                "lost": lost}  # fmt: skip
    schema = OUTCOME.with_metadata({PROVENANCE_KEY: json.dumps({"prepared": prepared, "results": results}).encode()})
    pq.write_table(pa.Table.from_pandas(frame, schema=schema, preserve_index=False), directory / "outcome.parquet",
                   write_page_checksum=True)  # fmt: skip
    body = report(directory / "outcome.parquet", prepared, "native")
    (directory / "report.json").write_text(json.dumps(body))
    return body


def tables(drive: str = "op7", *, measurement: str = "trace-replay", **changed: Any) -> dict[str, pd.DataFrame]:
    """Return the REPLAY tables of one recording, see `_replayed`; all drives have the same values."""
    names = key(drive, measurement=measurement)
    return {
        name: frame.assign(**{column: value for column, value in names.items() if column in frame})
        for name, frame in _replayed(**changed).items()
    }


@cache
def _replayed(
    *,
    traces: tuple[str, ...] = ("sqlite-inserts",),
    runs: int = 3,
    slowness: float = 1.0,
    phases: tuple[tuple[str, int], ...] = (),
    asap: bool = False,
    requests: int = 1500,
    partial: bool = False,
    lost: int = 0,
) -> dict[str, pd.DataFrame]:
    """Return the REPLAY tables of one recording: a cold run and `runs` warm ones, or passes by (phase, passes)."""
    choice = ReplayChoice(TimingChoice("asap" if asap else "original"))
    places: list[dict[str, Any]] = [{"step": 0, "repeat": repeat, "warm": repeat > 1} for repeat in range(1, runs + 2)]
    if phases:
        places = [
            {"step": step, "phase": phase, "phase_pass": number, "repeat": 1, "warm": True}
            for step, (phase, passes) in enumerate(phases)
            for number in range(1, passes + 1)
        ]
    lines = []
    with TemporaryDirectory() as folder:
        for order, place in enumerate(places):
            worse = 1.0 if place["warm"] else 1.3
            if phases:
                worse = {0: 1 + 0.25 * place["phase_pass"], 1: 3.1}.get(place["step"], 1.4)
            for number, trace in enumerate(traces):
                frame = outcome(
                    requests, seed=10 * number + order, asap=asap, slowness=slowness * worse * (1 + number / 2)
                )
                if partial:
                    frame.loc[requests // 2 :, ["issue_ns", "complete_ns"]] = None
                line = {**place, "trace": trace, "directory": f"{order}-{trace}", "choice": choice.to_mapping()}
                cell(Path(folder) / line["directory"], frame, choice=choice, lost=lost,
                     state="failed" if partial else "finished")  # fmt: skip
                lines.append(line)
        return replay_tables(Path(folder), lines, [], key(), lambda line: NO_TELEMETRY)


def together(*many: dict[str, pd.DataFrame]) -> dict[str, pd.DataFrame]:
    """Join the tables of several recordings."""
    return {name: pd.concat([recording[name] for recording in many], ignore_index=True) for name in many[0]}
