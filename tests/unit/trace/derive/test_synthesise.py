"""Synthetic equivalents: streams, reported losses, and a study that runs one."""

from __future__ import annotations

import math
from collections import Counter
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from made_traces import Row, batch_sizes, batches_of, made_up, unhurried, write

from drivelab.analysis.values.summary import summary_table
from drivelab.campaign.planning import Campaign
from drivelab.collect.collect import collect
from drivelab.core.errors import UserError
from drivelab.plan.grammar import load, resolve
from drivelab.recording.writer import read_journal
from drivelab.run.condition import precondition, purge
from drivelab.run.measure import measure as run_measurement
from drivelab.tables.windows import windows_table
from drivelab.trace.derive.synthesise import mean_depth, synthesise
from drivelab.trace.statistics.requests import opened

MIB = 1 << 20


def synthetic(path: Path, **options: Any) -> dict[str, Any]:
    return synthesise(path, path.with_suffix(".yaml"), **options)


def brute_streams(rows: list[Row], block_bytes: int) -> Counter[tuple[str, int, bool]]:
    """Count streams by their definition, request by request."""
    ends: dict[str, list[int]] = {"read": [], "write": []}
    counts: Counter[tuple[str, int, bool]] = Counter()
    for row in rows:
        if row.operation in ends and row.length_bytes:
            sequential = row.offset_bytes in ends[row.operation][-32:]
            counts[row.operation, -(-row.length_bytes // block_bytes) * block_bytes, sequential] += 1
            ends[row.operation].append(row.offset_bytes + row.length_bytes)
    return counts


@unhurried
@given(made_up(), st.integers(1, 4), st.sampled_from([512, 1024]), batch_sizes)
def test_streams_match_their_definition(rows: list[Row], most: int, block_bytes: int, size: int) -> None:
    expected = brute_streams(rows, block_bytes)
    with TemporaryDirectory() as name, batches_of(size):
        path = write(Path(name) / "a.parquet", rows, {"capacity_bytes": 1 << 40})
        if not expected:
            with pytest.raises(UserError, match="no read or write moves data"):
                synthetic(path)
            return
        report = synthetic(path, streams=most, block_bytes=block_bytes)
    streams = {(row["operation"], row["length_bytes"], row["sequential"]): row["requests"] for row in report["streams"]}
    assert streams.items() <= expected.items()
    assert sorted(streams.values(), reverse=True) == sorted(expected.values(), reverse=True)[:most]
    shown = sum(stream["share_pct"] for stream in report["streams"])
    assert shown == pytest.approx(100 * sum(streams.values()) / expected.total())
    assert shown + report["left_out_pct"] == pytest.approx(100)


@unhurried
@given(st.lists(st.tuples(st.integers(0, 40), st.integers(0, 15)), min_size=1, max_size=12), batch_sizes)
def test_mean_depth_equals_counting_every_instant(spans: list[tuple[int, int]], size: int) -> None:
    spans.sort()
    rows = [Row(begin, None, begin + length, "write", 0, 4096) for begin, length in spans]
    at = [sum(begin <= now < begin + length for begin, length in spans) for now in range(60)]
    with TemporaryDirectory() as name, batches_of(size), opened(write(Path(name) / "a.parquet", rows)) as requests:
        depth = mean_depth(requests, "trace WHERE true")
    assert depth == (pytest.approx(sum(at) / sum(map(bool, at))) if any(at) else pytest.approx(math.nan, nan_ok=True))


def mixed_rows() -> list[Row]:
    """Return, per ms, four random 4 KiB writes and a sequential read; rare flushes."""
    generator, rows = np.random.default_rng(3), []
    for number in range(400):
        start = 1_000_000 * number
        rows += [
            Row(start, start, start + 500_000, "write", 4096 * int(generator.integers(1, 500)) * 3 % (8 * MIB), 4096)
            for _ in range(4)
        ]
        rows.append(Row(start + 600_000, start + 600_000, start + 900_000, "read", 8 * MIB + 65536 * number % (4 * MIB),
                        65536))  # fmt: skip
        if number % 10 == 0:
            rows.append(Row(start + 950_000, None, start + 960_000, "flush", 0, 0))
    return rows


ABOUT = {"title": 'A "mixed": # load\nof two', "capacity_bytes": 64 * MIB}


def test_depth_share_and_range_come_from_the_trace(tmp_path: Path) -> None:
    report = synthetic(write(tmp_path / "a.parquet", mixed_rows(), ABOUT), streams=2)
    writes, reads = report["streams"]
    assert (writes["operation"], writes["length_bytes"], writes["sequential"]) == ("write", 4096, False)
    assert (reads["operation"], reads["length_bytes"], reads["sequential"]) == ("read", 65536, True)
    assert (writes["depth"], reads["depth"]) == (pytest.approx(4), pytest.approx(1))
    assert writes["share_pct"] == pytest.approx(80, abs=1)
    touched = {
        block
        for row in mixed_rows()
        for block in range(row.offset_bytes // 4096, -(-(row.offset_bytes + row.length_bytes) // 4096))
    }
    assert report["active_range_pct"] == pytest.approx(100 * 4096 * len(touched) / (64 * MIB), abs=0.01)
    # Each ms has 0.8 busy ms, every tenth 0.81; the trace ends with its last request.
    idle_pct = 100 * (1 - (400 * 0.8 + 40 * 0.01) / 399.9)
    assert f"idle time: {idle_pct:.3g} % (nothing in flight)" in report["not_carried_over"][0]


def test_the_protocol_describes_its_origin_and_losses(tmp_path: Path) -> None:
    about = {**ABOUT, "lost": {"overrun": 3}, "derived": [{"step": "cut"}]}
    report = synthesise(write(tmp_path / "a.parquet", mixed_rows(), about), tmp_path / "mixed.yaml", streams=2)
    protocol = load(tmp_path / "mixed.yaml")
    text = (tmp_path / "mixed.yaml").read_text()
    assert protocol.body["title"] == 'Synthetic equivalent of: A "mixed": # load of two'
    assert "lossy: 3 events lost" in protocol.body["source"]
    assert "made by cut" in protocol.body["source"]
    for phrase in ("arrival times: 2040 requests in 0.3999 s", "40 flush requests", "locality:", "streams left out"):
        assert phrase in " ".join(report["not_carried_over"]), phrase
    for sentence in report["not_carried_over"]:
        assert sentence.split(":")[0] in text
    (resolved,) = resolve(protocol, "client", None, {}, "test")
    cells = resolved.steps["measure"][0]["loop"]["cells"]
    assert [(c["pattern"], c["read_share"], c["block_size_bytes"], c["queue_depth"]) for c in cells] == [
        ("random", 0, 4096, 4),
        ("sequential", 100, 65536, 1),
    ]
    shares = [stream["share_pct"] for stream in report["streams"]]
    assert [c["runtime_s"] for c in cells] == [pytest.approx(120 * s / sum(shares), abs=1e-3) for s in shares]
    assert resolved.altered == ()
    assert resolved.steps["class"]["active_range"] == pytest.approx(report["active_range_pct"] / 100)
    (demo,) = resolve(protocol, "client", "demo", {}, "test")
    assert demo.altered
    times = [c["runtime_s"] for c in demo.steps["measure"][0]["loop"]["cells"]]
    assert sum(times) == pytest.approx(1.4, abs=0.01)


def test_unknown_properties_of_a_trace_are_reported(tmp_path: Path) -> None:
    rows = [Row(0, offset_bytes=4096 * number * 7, operation="read") for number in range(50)]
    report = synthesise(write(tmp_path / "a.parquet", rows), tmp_path / "bare.yaml")
    printed = " ".join(report["not_carried_over"])
    assert report["streams"][0]["depth"] is None
    assert "arrival times: the trace has none" in printed
    assert "queue depth: 1 in every cell, as the trace has no completions" in printed
    assert "does not record its drive's capacity" in printed
    assert resolve(load(tmp_path / "bare.yaml"), "client", None, {}, "t")[0].steps["class"]["active_range"] == 1


def test_sizes_become_multiples_of_a_block(tmp_path: Path) -> None:
    rows = [Row(time, length_bytes=size, offset_bytes=1 << 20) for time, size in enumerate([512, 3584, 4096, 4608])]
    report = synthetic(write(tmp_path / "a.parquet", rows), block_bytes=4096)
    assert {(stream["length_bytes"], stream["requests"]) for stream in report["streams"]} == {(4096, 3), (8192, 1)}
    assert report["rounded"] == 3


STUDY = """\
name: one
results: results
clock: virtual
drives: [op7]
class: client
measurements:
  - {protocol: mixed, scale: demo, set: {settle: 200ms, fill: {capacity_multiple: 0.5}, loop: {runtime: 100ms}}}
"""


def test_a_study_runs_the_protocol_on_the_virtual_clock(project: Path) -> None:
    synthesise(write(project / "a.parquet", mixed_rows(), ABOUT), Path("config/protocols/mixed.yaml"))
    Path("config/one.yaml").write_text(STUDY)
    (planned,) = Campaign.load("config/one.yaml").plans
    plan = planned.plan
    purge(plan, Path("purged.json"))
    precondition(plan, Path("purged.json"), Path("conditioned.json"))
    run_measurement(plan, Path("conditioned.json"))
    journal = list(read_journal(plan.recording_path))
    loop = next(line for line in journal if line["event"] == "loop")
    assert loop["steady"]
    loads: list[dict[str, Any]] = [line["workload"] for line in journal if line["event"] == "cell"]
    assert {(load["pattern"], load["read_share"]) for load in loads} >= {("random", 0), ("sequential", 100)}
    tables = collect(plan.recording_path, reduced=True)
    table = tables["cells"]
    windows = windows_table(table, {0: plan.subject["measure"][0]["loop"]["until"]})
    assert list(windows["variable"]) == ["RND 4KiB 0/100 T1Q4", "SEQ 64KiB 100/0 T1Q1"]
    assert windows["reached"].all()
    summary = summary_table(table, windows, tables["replays"], tables["replay_passes"])
    assert {"RND 4KiB 0/100 T1Q4", "SEQ 64KiB 100/0 T1Q1"} <= set(summary["cell_label"])


@pytest.mark.parametrize(
    ("output", "more", "reason"),
    [
        ("x.yml", {}, "does not end in .yaml"),
        ("Bad Name.yaml", {}, "is not a protocol name"),
        ("x.yaml", {"streams": 0}, "choose 1 or more"),
        ("x.yaml", {"block_bytes": 1000}, "not a power of two of at least 512 B"),
    ],
)
def test_invalid_protocol_outputs_are_refused(tmp_path: Path, output: str, more: dict[str, Any], reason: str) -> None:
    source = write(tmp_path / "a.parquet", mixed_rows()[:20])
    with pytest.raises(UserError, match=reason):
        synthesise(source, tmp_path / output, **more)
    assert [path.name for path in tmp_path.iterdir()] == ["a.parquet"]


def test_a_trace_without_workload_is_refused(tmp_path: Path) -> None:
    source = write(tmp_path / "a.parquet", [Row(0, operation="flush", length_bytes=0)])
    with pytest.raises(UserError, match="no read or write"):
        synthesise(source, tmp_path / "x.yaml")
    with pytest.raises(UserError, match="the trace does not exist"):
        synthesise(tmp_path / "absent.parquet", tmp_path / "x.yaml")
    with pytest.raises(UserError, match="no read or write"):
        synthesise(write(tmp_path / "empty.parquet", []), tmp_path / "x.yaml")
