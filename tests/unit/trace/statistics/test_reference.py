"""Every statistic of a trace against a simple reference, in one batch and in small ones."""

from __future__ import annotations

import math
import random
from collections import Counter
from itertools import pairwise
from types import ModuleType
from typing import Any

import numpy as np
import pandas as pd
import pytest
from hypothesis import HealthCheck, Phase, given, settings
from hypothesis import strategies as st

from drivelab.trace.statistics.bins import ERROR_PCT
from drivelab.trace.statistics.streams import STREAMS

Rows = list[dict[str, Any]]


def close(value: float, expected: float) -> bool:
    return abs(value - expected) <= ERROR_PCT / 100 * expected + 1e-12


# No shrinking: it takes minutes.
@settings(
    max_examples=24, deadline=None, suppress_health_check=[HealthCheck.too_slow],
    phases=[Phase.explicit, Phase.reuse, Phase.generate],
)  # fmt: skip
@given(dice=st.randoms(use_true_random=True), batch_rows=st.integers(1, 20), blocks=st.sampled_from([6, 40]))
def test_statistics_agree_with_a_simple_reference(
    model: ModuleType, dice: random.Random, batch_rows: int, blocks: int
) -> None:
    """All statistics of a trace are checked together, because counting takes longer than checking."""
    rows = model.traces(dice, blocks)
    whole, tables = model.counted(rows), model.counted(rows, batch_rows)
    for name, frame in whole.items():
        pd.testing.assert_frame_equal(tables[name], frame, check_exact=False, rtol=1e-12, atol=1e-9)
    for check in (footprint_and_working_set, depth, sequence_and_streams, times, heat):
        check(model, rows, tables)


def footprint_and_working_set(model: ModuleType, rows: Rows, tables: dict[str, pd.DataFrame]) -> None:
    overview, over_time = tables["trace_overview"].iloc[0], tables["trace_over_time"]
    assert overview["footprint_block_bytes"] == 4096
    assert overview["footprint_bytes"] == model.footprint(rows, "read", "write")
    assert overview["read_footprint_bytes"] == model.footprint(rows, "read")
    assert overview["write_footprint_bytes"] == model.footprint(rows, "write")
    first_ns = rows[0]["queue_ns"]
    for interval in over_time.itertuples():
        begin, end = first_ns + round(interval.begin_s * 1e9), first_ns + round(interval.end_s * 1e9)
        inside = [r for r in rows if begin <= r["queue_ns"] < end]
        assert interval.requests == len(inside)
        assert interval.writes == sum(r["operation"] == "write" for r in inside)
        assert interval.write_bytes == sum(r["length_bytes"] for r in inside if r["operation"] == "write")
        assert interval.working_set_bytes == model.footprint(inside, "read", "write")
        assert interval.footprint_bytes == model.footprint([r for r in rows if r["queue_ns"] < end], "read", "write")
    assert over_time["requests"].sum() == len(rows)
    assert over_time["discard_bytes"].sum() == sum(r["length_bytes"] for r in rows if r["operation"] == "discard")


def depth(model: ModuleType, rows: Rows, tables: dict[str, pd.DataFrame]) -> None:
    overview, over_time = tables["trace_overview"].iloc[0], tables["trace_over_time"]
    first_ns, last_ns = rows[0]["queue_ns"], model.end_ns(rows)
    queued = [(r["queue_ns"], r["complete_ns"]) for r in rows if r["complete_ns"] is not None]
    for name, spans in (("queue_depth", queued), ("dispatch_depth", model.dispatched(rows))):
        times = model.time_at_depths(spans, first_ns, last_ns)
        if not spans or last_ns == first_ns:
            assert math.isnan(overview[f"{name}_mean"])
            continue
        mean = sum(depth * time for depth, time in times.items()) / (last_ns - first_ns)
        assert overview[f"{name}_mean"] == pytest.approx(mean)
        assert overview[f"{name}_max"] == max(times)
        for interval in over_time.itertuples():
            begin, end = first_ns + round(interval.begin_s * 1e9), first_ns + round(interval.end_s * 1e9)
            times_inside = model.time_at_depths(spans, begin, end)
            mean = sum(depth * time for depth, time in times_inside.items()) / (end - begin)
            assert getattr(interval, f"{name}_mean") == pytest.approx(mean, abs=1e-6)
            assert getattr(interval, f"{name}_max") == max(times_inside)
    known = model.time_at_depths(queued, first_ns, last_ns)
    if len(queued) == len(rows) and last_ns > first_ns:
        assert overview["idle_basis"] == "nothing in flight"
        assert overview["idle_share_pct"] == pytest.approx(100 * known[0] / (last_ns - first_ns))
        for percent in (50, 99):
            reached = np.cumsum([known[depth] for depth in range(max(known) + 1)])
            depth = int(np.searchsorted(reached, percent / 100 * (last_ns - first_ns) - 0.5))
            assert overview[f"queue_depth_p{percent}"] == depth
    merges = [r["dispatch_id"] for r in rows if r["dispatch_id"] is not None]
    assert overview["merged"] == (len(merges) - len(set(merges)) if merges else None)


def sequence_and_streams(model: ModuleType, rows: Rows, tables: dict[str, pd.DataFrame]) -> None:
    overview, streams = tables["trace_overview"].iloc[0], tables["trace_streams"]
    multi, strict = model.sequential(rows, STREAMS), model.sequential(rows, 1)
    moving = [bool(model.blocks(row)) for row in rows]
    transfers = sum(row["operation"] in ("read", "write") for row in rows)
    if transfers:
        assert overview["sequential_share_pct"] == pytest.approx(100 * sum(multi) / transfers)
        assert overview["strict_sequential_share_pct"] == pytest.approx(100 * sum(strict) / transfers)
    expected = Counter(
        (row["operation"], row["length_bytes"], follows)
        for row, follows, moves in zip(rows, multi, moving, strict=True)
        if moves
    )
    counts = {(row.operation, row.length_bytes, row.sequential): row.requests for row in streams.itertuples()}
    assert counts == expected
    assert list(streams["requests"]) == sorted(expected.values(), reverse=True)
    if expected:
        covered = np.cumsum(streams["requests"]) / streams["requests"].sum()
        fewest = int(np.argmax(covered >= 0.8 - 1e-12)) + 1
        assert list(streams["main"]) == [True] * fewest + [False] * (len(streams) - fewest)
        assert streams["cumulative_pct"].iloc[-1] == pytest.approx(100)
    sizes = {(row.operation, row.length_bytes): row.requests for row in tables["trace_sizes"].itertuples()}
    assert sizes == Counter((row["operation"], row["length_bytes"]) for row in rows)


def times(model: ModuleType, rows: Rows, tables: dict[str, pd.DataFrame]) -> None:
    overview = tables["trace_overview"].iloc[0]
    between = [b["queue_ns"] - a["queue_ns"] for a, b in pairwise(rows)]
    assert tables["trace_interarrival"]["requests"].sum() == len(between)
    if between:
        assert overview["interarrival_mean_us"] == pytest.approx(np.mean(between) / 1e3)
        assert close(overview["interarrival_p90_us"], model.nearest_rank(between, 90) / 1e3)
        assert overview["interarrival_max_us"] == max(between) / 1e3
        for value in between:
            bins = tables["trace_interarrival"]
            assert ((bins["low_ns"] <= value) & (value <= bins["high_ns"])).sum() == 1
        if len(between) > 1 and any(between):
            assert overview["interarrival_variation"] == pytest.approx(np.std(between) / np.mean(between))
    for row in tables["trace_burstiness"].itertuples():
        width, first_ns = round(row.window_s * 1e9), rows[0]["queue_ns"]
        counts = Counter((r["queue_ns"] - first_ns) // width for r in rows)
        whole = [counts[number] for number in range((rows[-1]["queue_ns"] - first_ns) // width)]
        assert (row.windows, row.mean_requests) == (len(whole), pytest.approx(np.mean(whole)))
        assert row.dispersion == pytest.approx(np.var(whole) / np.mean(whole))
    events = {"Q": "queue_ns", "D": "dispatch_ns", "C": "complete_ns"}
    latency, operations = tables["trace_latency"], tables["trace_operations"].set_index("operation")
    for operation in operations.index:
        requests = [row for row in rows if row["operation"] == operation]
        for phase in ("Q2C", "Q2D", "D2C"):
            begin, end = events[phase[0]], events[phase[2]]
            spans = [row[end] - row[begin] for row in requests if row[begin] is not None and row[end] is not None]
            bins = latency[(latency["operation"] == operation) & (latency["phase"] == phase)]
            assert bins["requests"].sum() == len(spans)
            if spans:
                assert operations.loc[operation, f"{phase.lower()}_max_us"] == max(spans) / 1e3
                assert operations.loc[operation, f"{phase.lower()}_mean_us"] == pytest.approx(np.mean(spans) / 1e3)
                p99 = model.nearest_rank(spans, 99) / 1e3
                assert close(operations.loc[operation, f"{phase.lower()}_p99_us"], p99)
        assert operations.loc[operation, "requests"] == len(requests)
        assert operations.loc[operation, "bytes"] == sum(row["length_bytes"] for row in requests)
        assert operations.loc[operation, "errors"] == sum(row["error"] != 0 for row in requests)
        assert operations.loc[operation, "split"] == sum(row["pieces"] > 1 for row in requests)
        assert operations.loc[operation, "without_completion"] == sum(row["complete_ns"] is None for row in requests)


def heat(model: ModuleType, rows: Rows, tables: dict[str, pd.DataFrame]) -> None:
    heat, first_ns = tables["trace_heat"], rows[0]["queue_ns"]
    for cell in heat.itertuples():
        begin, end = first_ns + round(cell.begin_s * 1e9), first_ns + round(cell.end_s * 1e9)
        inside = [
            r
            for r in rows
            if model.blocks(r)
            and begin <= r["queue_ns"] < end
            and cell.low_bytes <= r["offset_bytes"] < cell.high_bytes
        ]
        assert cell.reads == sum(r["operation"] == "read" for r in inside)
        assert cell.write_bytes == sum(r["length_bytes"] for r in inside if r["operation"] == "write")
    assert (heat["reads"] + heat["writes"]).sum() == sum(bool(model.blocks(cell)) for cell in rows)
