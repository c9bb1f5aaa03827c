"""Preparation of a replay from a trace file."""

from __future__ import annotations

import itertools
import json
from dataclasses import replace
from pathlib import Path

import numpy as np
import pyarrow.parquet as pq
import pytest
from hypothesis import given
from hypothesis import strategies as st
from made_traces import Row, batch_sizes, batches_of, made_up, unhurried
from prepared_replays import GIB, MIB, brief, planned_of, prepare_rows, records_of, write_rows
from whole_traces import read_trace

from drivelab.core.errors import UserError
from drivelab.plan.replay_choice import MappingChoice, ReplayChoice, TimingChoice
from drivelab.replay import planner
from drivelab.replay.engine_records import LONGEST_TRANSFER_BYTES, open_schedule
from drivelab.replay.planner import PLANNED
from drivelab.replay.prepare import prepare
from drivelab.replay.survey import footprint_extents
from drivelab.trace import trace_catalogue
from drivelab.trace.parquet_schema import PROVENANCE_KEY

LONG = LONGEST_TRANSFER_BYTES


def test_a_trace_that_fits_is_replayed_unchanged(tmp_path: Path) -> None:
    prepared = prepare_rows(
        tmp_path,
        [
            Row(5000, 5001, 9000, "write", 8192, 4096, "db", 7, flags=("sync", "meta")),
            Row(6500, 6501, None, "read", 4096, 4096, "db", 8, flags=("readahead",)),
            Row(7000, 7001, 7500, "flush", 0, 0), Row(7000, 7001, 7600, "discard", 0, 1024),
            Row(8000, 8001, 8600, "write-zeroes", 512, 1024),
        ],
        block_bytes=512, capacity_bytes=MIB, lost=[3],
    )  # fmt: skip
    assert brief(prepared) == [
        (0, "write", 8192, 4096), (1500, "read", 4096, 4096), (2000, "flush", 0, 0), (2000, "discard", 0, 1024),
        (3000, "write-zeroes", 512, 1024),
    ]  # fmt: skip
    frame = planned_of(prepared)
    assert frame["deadline_ns"].tolist() == [0, 1500, 2000, 2000, 3000]
    assert frame["trace_queue_ns"].tolist() == [5000, 6500, 7000, 7000, 8000]
    assert frame["trace_latency_ns"].isna().tolist() == [False, True, False, False, False]
    assert frame["trace_latency_ns"].dropna().tolist() == [4000, 500, 600, 600]
    assert frame["process"].astype(str).tolist() == ["db", "db", "", "", ""]
    assert frame["pid"].tolist() == [7, 8, -1, -1, -1]
    for flag, row in (("sync", 0), ("meta", 0), ("readahead", 1)):
        assert np.flatnonzero(frame[flag]).tolist() == [row]
    assert (prepared.trace_duration_s, prepared.issue_span_s, prepared.lost) == (4e-6, 3e-6, 3)
    assert prepared.counts == {
        "read": {"requests": 1, "bytes": 4096}, "write": {"requests": 1, "bytes": 4096},
        "flush": {"requests": 1, "bytes": 0}, "discard": {"requests": 1, "bytes": 1024},
        "write-zeroes": {"requests": 1, "bytes": 1024},
    }  # fmt: skip
    header = open_schedule(prepared.schedule).header
    assert (header["target_bytes"], header["block_bytes"], header["longest_bytes"]) == (MIB, 512, 4096)
    assert not records_of(prepared)["depth"].any()
    with pq.ParquetFile(prepared.planned) as file:
        assert json.loads(file.metadata.metadata[PROVENANCE_KEY]) == json.loads(json.dumps(prepared.to_mapping()))
        assert file.schema_arrow.equals(PLANNED)
    assert ReplayChoice.from_mapping(prepared.to_mapping()["choice"]) == prepared.choice


def test_a_write_with_a_preflush_waits_for_its_flush(tmp_path: Path) -> None:
    rows = [
        Row(0, 1, 50, "read", 0, 512, "db", 7),
        Row(100, 101, 200, "write", 512, 512, "db", 7, flags=("preflush", "fua")),
        Row(300, 301, 400, "write", 1024, 512, "db", 7, flags=("fua",)),
    ]  # fmt: skip
    frame = planned_of(prepare_rows(tmp_path, rows))
    assert frame["operation"].tolist() == ["read", "flush", "write", "write"]
    assert frame["after"].tolist() == [-1, -1, 1, -1]
    assert frame["preflush"].tolist() == [False, True, False, False]
    assert frame["fua"].tolist() == [False, False, True, True]
    assert frame["trace_latency_ns"].tolist() == pytest.approx([50, float("nan"), 100, 100], nan_ok=True)
    ordered = prepare_rows(tmp_path, rows, ReplayChoice(dependencies="process"))
    assert planned_of(ordered)["after"].tolist() == [-1, 0, 1, 2]
    assert records_of(ordered)["think_ns"].tolist() == [0, 50, 0, 100]


def test_requests_too_long_for_an_engine_are_split(tmp_path: Path) -> None:
    rows = [
        Row(0, 1, 90, "write", 4096, 2 * LONG + 4096, "db", 7, flags=("preflush", "fua")),
        Row(100, 101, 200, "read", 0, LONG, "db", 7), Row(210, 211, 300, "read", 0, LONG + 512, "db", 7),
        Row(300, 301, 400, "discard", 0, 4 * LONG, "db", 7),
    ]  # fmt: skip
    prepared = prepare_rows(tmp_path, rows, ReplayChoice(dependencies="process"))
    assert brief(prepared) == [
        (0, "flush", 0, 0), (0, "write", 4096, LONG), (0, "write", 4096 + LONG, LONG),
        (0, "write", 4096 + 2 * LONG, 4096),
        (100, "read", 0, LONG), (210, "read", 0, LONG), (210, "read", LONG, 512), (300, "discard", 0, 4 * LONG),
    ]  # fmt: skip
    frame = planned_of(prepared)
    assert frame["after"].tolist() == [-1, 0, 0, 0, 3, 4, 4, 6]
    assert frame["fua"].tolist() == [False, True, True, True, False, False, False, False]
    assert frame["trace_latency_ns"].isna().tolist() == [True, True, True, False, False, True, False, False]
    assert records_of(prepared)["think_ns"].tolist() == [0, 0, 0, 0, 10, 10, 10, 0]
    assert prepared.mapping.requests_split == 2
    assert prepared.mapping.footprint_before_bytes == prepared.mapping.footprint_after_bytes == 2 * LONG + 8192
    assert open_schedule(prepared.schedule).header["longest_bytes"] == LONG


def test_asap_has_depths_instead_of_deadlines(tmp_path: Path) -> None:
    rows = [Row(1000, 1001, 5000), Row(2000, 2001, 4000), Row(4500, 4501, 9000), Row(6000, 6001, 7000)]
    prepared = prepare_rows(tmp_path, rows, ReplayChoice(TimingChoice("asap")))
    records, frame = records_of(prepared), planned_of(prepared)
    assert records["depth"].tolist() == [1, 2, 2, 2]
    assert not records["deadline_ns"].any()
    assert frame["deadline_ns"].isna().all()
    assert frame["trace_queue_ns"].tolist() == [1000, 2000, 4500, 6000]
    assert prepared.issue_span_s == 5e-6
    fixed = prepare_rows(tmp_path, rows, ReplayChoice(TimingChoice("asap", depth=9)))
    assert records_of(fixed)["depth"].tolist() == [9] * 4


def test_the_report_counts_changes_by_the_mapping(tmp_path: Path) -> None:
    rows = [
        Row(0, 1, 2, "write", 0, 1024), Row(1, 2, 3, "write", 1024, 1024), Row(2, 3, 4, "read", 512, 1024),
        Row(3, 4, 5, "read", MIB, 1024), Row(4, 5, 6, "write", 3 * MIB, 1024, dispatch_id=5),
        Row(5, 6, 7, "write", 3 * MIB + 1024, 1024, dispatch_id=5), Row(6, 7, 8, "discard", 4 * MIB, 100),
    ]  # fmt: skip
    report = prepare_rows(tmp_path, rows, capacity_bytes=2 * MIB, block_bytes=4096).mapping
    assert (report.method, report.requests_in_trace, report.requests_merged) == ("modulo", 7, 1)
    assert (report.requests_moved, report.requests_resized, report.requests_dropped) == (1, 5, 1)
    assert (report.footprint_before_bytes, report.retouched_before_bytes) == (2048 + 1024 + 2048, 1024)
    assert (report.footprint_after_bytes, report.retouched_after_bytes) == (2 * 4096, 3 * 4096)
    assert (report.sequential_before_pct, report.sequential_after_pct) == (20.0, 0.0)


def test_requests_stay_in_the_active_range(tmp_path: Path) -> None:
    rows = [Row(0, 1, 2, "write", 0, 4096), Row(1, 2, 3, "read", MIB, 4096)]
    prepared = prepare_rows(tmp_path, rows, ReplayChoice(mapping=MappingChoice("modulo", MIB, MIB)), block_bytes=4096)
    assert [record[2] for record in brief(prepared)] == [MIB, MIB]
    assert prepared.mapping.requests_moved == 1
    assert footprint_extents(prepared.schedule).tolist() == [[MIB, 4096]]


def test_footprint_extents_are_those_of_the_reads(tmp_path: Path) -> None:
    rows = [
        Row(0, 1, 2, "read", 8192, 1024), Row(1, 2, 3, "read", 512, 512), Row(2, 3, 4, "read", 0, 512),
        Row(3, 4, 5, "write", 65536, 512), Row(4, 5, 6, "read", 8704, 1024), Row(5, 6, 7, "flush", 0, 0),
    ]  # fmt: skip
    assert footprint_extents(prepare_rows(tmp_path, rows).schedule).tolist() == [[0, 1024], [8192, 1536]]
    nothing = prepare_rows(tmp_path, rows[3:4])
    assert footprint_extents(nothing.schedule).shape == (0, 2)


@unhurried
@given(
    made_up(least=2), batch_sizes, st.sampled_from(["original", "asap", "idle-capped"]),
    st.sampled_from(["auto", "compact", "scale"]), st.sampled_from(["none", "process"]),
    st.sampled_from([6 * 512, 8 * 512, MIB]),
)  # fmt: skip
def test_batches_do_not_matter(
    tmp_path_factory: pytest.TempPathFactory,
    rows: list[Row],
    size: int,
    mode: str,
    method: str,
    order: str,
    capacity: int,
) -> None:
    rows = [*rows, Row(rows[-1].queue_ns, None, rows[-1].queue_ns + 9, "read", 512, 512, "db", 7)]
    timing = TimingChoice(mode, idle_cap_s=2e-9) if mode == "idle-capped" else TimingChoice(mode)
    mapping = MappingChoice(method, gap_bytes=0) if method == "compact" else MappingChoice(method)
    choice = ReplayChoice(timing, mapping, order)
    whole = prepare_rows(tmp_path_factory.mktemp("a"), rows, choice, 16 * 512)
    with batches_of(size):
        parts = prepare_rows(tmp_path_factory.mktemp("b"), rows, choice, 16 * 512)
    assert records_of(whole).tobytes() == records_of(parts).tobytes()
    assert planned_of(whole).astype(str).equals(planned_of(parts).astype(str))
    assert whole.to_mapping() == parts.to_mapping()
    extent = records_of(whole)["offset_bytes"] + records_of(whole)["length_bytes"]
    assert int(extent.max()) <= 16 * 512
    assert sum(count["requests"] for count in whole.counts.values()) == whole.requests


@pytest.mark.parametrize("name", sorted(trace_catalogue.load()))
def test_shipped_traces_fit_small_and_large_drives(tmp_path: Path, name: str) -> None:
    requests = read_trace(trace_catalogue.entry(name).path)[0].to_pandas()
    moved = requests.groupby(requests["operation"].astype(str))["length_bytes"].sum()
    choices = itertools.product(
        (TimingChoice(), TimingChoice("asap"), TimingChoice("idle-capped", idle_cap_s=0.001)), ("none", "process")
    )
    for (timing, order), capacity in zip(itertools.cycle(choices), (256 * MIB, 1 << 43) * 3, strict=False):
        for method in ("auto", "compact", "scale"):
            choice = ReplayChoice(timing, MappingChoice(method), order)
            prepared = prepare(trace_catalogue.entry(name).path, tmp_path / "made", choice, capacity, 4096)
            counts, report = prepared.counts, prepared.mapping
            assert {name: counts[name]["bytes"] for name in ("read", "write")} == {
                name: moved.get(name, 0) for name in ("read", "write")
            }
            assert counts["flush"]["requests"] == (requests["operation"] == "flush").sum() + requests["preflush"].sum()
            dispatched = report.requests_in_trace - report.requests_merged
            assert dispatched + int(requests["preflush"].sum()) == prepared.requests + report.requests_dropped
            assert (report.requests_resized, report.requests_split) == (0, 0)
            in_gaps = (requests["operation"] == "discard").sum() if method == "compact" else 0
            assert report.requests_dropped <= in_gaps, "a gap that is left out may have been discarded"
            planned_of(prepared)


def test_a_refused_preparation_writes_nothing(tmp_path: Path) -> None:
    def refused(rows: list[Row], choice: ReplayChoice | None = None, capacity: int = MIB) -> str:
        with pytest.raises(UserError) as caught:
            prepare_rows(tmp_path, rows, choice, capacity)
        assert [path.name for path in tmp_path.iterdir()] == ["trace.parquet"]
        text = str(caught.value)
        assert text.startswith(f"{tmp_path / 'trace.parquet'}: ")
        return text

    assert "neither reads nor writes" in refused([])
    assert "neither reads nor writes" in refused([Row(0, 1, 2, "flush", 0, 0), Row(1, 2, 3, "discard", 0, 512)])
    assert "neither reads nor writes" in refused([Row(0, 1, 2, "read", 0, 0)])
    assert "longer than the active range of 1024KiB" in refused([Row(0, 1, 2, "read", 0, 2 * MIB)])
    assert "not in the order" in refused([Row(5), Row(3)])
    assert "its times are impossible" in refused([Row(-5), Row(3)])
    assert "which is out of range" in refused([Row(0), Row(2**63 - 1)])
    assert "which is out of range" in refused([Row(0, 1, 2**62)])
    assert "fits no device" in refused([Row(0, 1, 2, "read", 0, 1 << 58)], capacity=1 << 60)
    assert "fits no device" in refused([Row(0, 1, 2, "read", 0, 1 << 50)], capacity=1 << 60)
    assert "set --depth" in refused([Row(0)], ReplayChoice(TimingChoice("asap")))
    assert "has no completions" in refused([Row(0, pid=7)], ReplayChoice(dependencies="process"))
    assert "does not record the process" in refused([Row(0, 1, 2)], ReplayChoice(dependencies="process"))
    choice = ReplayChoice(mapping=MappingChoice(range_bytes=2 * MIB))
    assert "outside the drive" in refused([Row(0)], choice)


def test_a_damaged_trace_is_refused_with_its_name(tmp_path: Path) -> None:
    trace = write_rows(
        tmp_path / "t.parquet", [Row(at, None, at + 1, "read", 512 * (at * 7919 % 9973)) for at in range(5000)]
    )
    content = bytearray(trace.read_bytes())
    content[len(content) // 4] ^= 0xFF
    trace.write_bytes(content)
    with pytest.raises(UserError, match=r"t\.parquet: is damaged"):
        prepare(trace, tmp_path / "made", ReplayChoice(), GIB, 512)
    assert [path.name for path in tmp_path.iterdir()] == ["t.parquet"]
    with pytest.raises(UserError, match="the trace does not exist"):
        prepare(tmp_path / "none.parquet", tmp_path / "made", ReplayChoice(), GIB, 512)
    own = write_rows(tmp_path / "x.planned.parquet", [Row(0)])
    with pytest.raises(UserError, match="would be lost"):
        prepare(own, tmp_path / "x", ReplayChoice(), GIB, 512)
    with pytest.raises(UserError, match="cannot be written"):
        prepare(own, tmp_path / "nowhere" / "x", ReplayChoice(), GIB, 512)


def test_the_number_of_records_is_limited(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(planner, "MOST_RECORDS", 2)
    with pytest.raises(UserError, match="more than 2 requests"):
        prepare_rows(tmp_path, [Row(0), Row(1), Row(2)])


def test_the_mapping_of_prepared_has_no_paths(tmp_path: Path) -> None:
    prepared = prepare_rows(tmp_path, [Row(0, 1, 2), Row(10, 11, 12)], ReplayChoice(TimingChoice("scaled", factor=2.0)))
    moved = replace(prepared, schedule=tmp_path / "elsewhere", planned=tmp_path / "elsewhere too")
    assert moved.to_mapping() == prepared.to_mapping()
    assert (prepared.issue_span_s, prepared.trace_duration_s) == (2e-8, 1.2e-8)
    assert not planned_of(prepared)["after"].ge(0).any()
