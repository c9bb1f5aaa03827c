"""Preparation of a replay of several volumes, and the evaluation of each."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from made_traces import Row, batch_sizes, batches_of, made_up, unhurried, write_volumes
from prepared_replays import GIB, MIB, prepare_rows, records_of
from replay_outcomes import request, write_results

from drivelab.core.errors import UserError
from drivelab.plan.replay_choice import MappingChoice, ReplayChoice, TimingChoice
from drivelab.replay.engine_records import OPERATION_CODES, open_schedule, target_numbers
from drivelab.replay.evaluation.replay_report import report
from drivelab.replay.outcome import OUTCOME_OF_VOLUMES, read_outcome, volumes_of, write_outcome
from drivelab.replay.prepare import Prepared, prepare_volumes
from drivelab.replay.survey import footprint_extents
from drivelab.replay.volumes import Volumes
from drivelab.run.replays.replay_targets import targets_of
from drivelab.trace.parquet_schema import read_trace

TWO = Volumes({"log": 2 * MIB, "data": GIB}, 512)


def prepared_volumes(
    folder: Path, rows: list[tuple[str, Row]], choice: ReplayChoice | None = None, volumes: Volumes = TWO
) -> Prepared:
    trace = write_volumes(folder / "trace.parquet", rows)
    return prepare_volumes(trace, folder / "made", choice or ReplayChoice(), volumes)


def test_each_volume_has_a_target_and_all_have_one_time_base(tmp_path: Path) -> None:
    rows = [
        ("data", Row(5000, None, 6000, "write", 4096)), ("other", Row(5100, None, 5200, "write", 0)),
        ("log", Row(5500, None, 5600, "read", 8192)), ("data", Row(5500, None, 5700, "flush", 0, 0)),
        ("log", Row(7000, None, 7100, "write", 0)),
    ]  # fmt: skip
    prepared = prepared_volumes(tmp_path, rows)
    records = records_of(prepared)
    assert target_numbers(records).tolist() == [1, 0, 1, 0]
    assert records["deadline_ns"].tolist() == [0, 500, 500, 2000]
    assert records["offset_bytes"].tolist() == [4096, 8192, 0, 0]
    header = open_schedule(prepared.schedule).header
    assert (header["targets"], header["target_bytes"], header["block_bytes"]) == (2, GIB, 512)
    mappings = prepared.mappings
    assert {name: mapping.requests_in_trace for name, mapping in mappings.items()} == {"log": 2, "data": 2}
    assert {name: mapping.capacity_bytes for name, mapping in mappings.items()} == {"log": 2 * MIB, "data": GIB}
    assert footprint_extents(prepared.schedule, 0).tolist() == [[8192, 4096]]
    assert footprint_extents(prepared.schedule, 1).tolist() == []


def test_each_volume_is_mapped_to_the_capacity_of_its_target(tmp_path: Path) -> None:
    rows = [(name, Row(n, operation="write", offset_bytes=3 * MIB)) for n, name in enumerate(["log", "data", "log"])]
    prepared = prepared_volumes(tmp_path, rows)
    assert records_of(prepared)["offset_bytes"].tolist() == [MIB, 3 * MIB, MIB]
    assert {name: mapping.method for name, mapping in prepared.mappings.items()} == {"log": "modulo", "data": "exact"}
    assert prepared.to_mapping()["mapping"]["method"] == "modulo, exact"
    assert [mapping.requests_moved for mapping in prepared.mappings.values()] == [2, 0]
    with pytest.raises(UserError, match=r"volume log: the trace ends at .*, beyond the active range"):
        prepared_volumes(tmp_path, rows, ReplayChoice(mapping=MappingChoice("exact")))


@pytest.mark.parametrize("method", ["exact", "modulo", "scale", "compact"])
def test_a_volume_may_have_neither_reads_nor_writes(tmp_path: Path, method: str) -> None:
    rows = [("data", Row(n, operation="write", offset_bytes=4096 * n)) for n in range(3)]
    rows += [("log", Row(3, operation="discard", offset_bytes=0)), ("log", Row(4, operation="flush", length_bytes=0))]
    rows += [("log", Row(5 + n, operation="discard", offset_bytes=8192 * n)) for n in range(1, 3)]
    mapping = MappingChoice(method)  # type: ignore[arg-type]
    records = records_of(prepared_volumes(tmp_path, rows, ReplayChoice(mapping=mapping)))
    log = records[target_numbers(records) == 0]
    discards = log["offset_bytes"][log["operation"] == OPERATION_CODES["discard"]].tolist()
    assert log["operation"].tolist().count(OPERATION_CODES["flush"]) == 1
    in_place, scaled = [0, 8192, 16384], [0, 838656, 1677312]
    assert discards == {"exact": in_place, "modulo": in_place, "scale": scaled, "compact": []}[method]


def test_requests_of_one_address_on_two_volumes_do_not_conflict(tmp_path: Path) -> None:
    rows = [
        ("data", Row(0, None, 100, "write", 0)), ("log", Row(10, None, 90, "write", 0)),
        ("log", Row(20, None, 80, "read", 0)), ("data", Row(120, None, 130, "read", 0)),
    ]  # fmt: skip
    prepared = prepared_volumes(tmp_path, rows, ReplayChoice(conflicts="ordered"))
    assert records_of(prepared)["after"].tolist() == [0, 0, 2, 1]
    assert prepared.conflicts == {
        "policy": "ordered", "overlapping": 1, "waiting": 2,
        "volumes": {"log": {"overlapping": 1, "waiting": 1}, "data": {"overlapping": 0, "waiting": 1}},
    }  # fmt: skip
    apart = [rows[0], rows[1], rows[3]]
    assert prepared_volumes(tmp_path, apart, ReplayChoice(conflicts="refused")).conflicts["overlapping"] == 0
    with pytest.raises(UserError, match="the data: volume log: 4KiB at 0 B, "):
        prepared_volumes(tmp_path, rows, ReplayChoice(conflicts="refused"))


@pytest.mark.parametrize("kind", ["process", "trace"])
def test_dependencies_and_depth_are_of_all_volumes_together(tmp_path: Path, kind: str) -> None:
    rows = [
        ("log", Row(0, None, 100, "write", 0, process="db", pid=1)),
        ("data", Row(150, None, 300, "write", 0, process="db", pid=1)),
        ("data", Row(160, None, 200, "write", 8192, process="db", pid=1)),
        ("log", Row(400, None, 500, "write", 4096, process="db", pid=1)),
    ]
    prepared = prepared_volumes(tmp_path, rows, ReplayChoice(dependencies=kind))
    records = records_of(prepared)
    assert records["after"].tolist() == [0, 1, 1, 2], "the last completion, of whichever volume"
    assert records["think_ns"].tolist() == [0, 50, 60, 100]
    if kind == "trace":
        assert records["depth"].tolist() == [1, 1, 2, 1]
    asap = prepared_volumes(tmp_path, rows, ReplayChoice(TimingChoice("asap")))
    assert records_of(asap)["depth"].tolist() == [1, 1, 2, 1]


def test_merged_and_split_requests_keep_their_volume(tmp_path: Path) -> None:
    rows = [
        ("data", Row(0, 5, 9, "write", 0, 4096, dispatch_id=1)),
        ("log", Row(1, 6, 9, "write", 4096, 4096, dispatch_id=2)),
        ("data", Row(2, 5, 9, "write", 4096, 4096, dispatch_id=1)),
        ("log", Row(3, 7, 9, "write", 0, 512, dispatch_id=3, flags=("preflush",))),
        ("data", Row(4, 8, 9, "write", 0, 65 << 20, dispatch_id=4)),
    ]  # fmt: skip
    prepared = prepared_volumes(tmp_path, rows)
    records = records_of(prepared)
    assert target_numbers(records).tolist() == [1, 0, 0, 0, 1, 1]
    assert records["length_bytes"].tolist() == [8192, 4096, 0, 512, 64 << 20, MIB]
    assert [mapping.requests_split for mapping in prepared.mappings.values()] == [0, 1]
    assert [mapping.requests_merged for mapping in prepared.mappings.values()] == [0, 1]


@unhurried
@given(made_up(most=14, complete=True), st.lists(st.sampled_from("abc"), min_size=14, max_size=14), batch_sizes)
def test_a_volume_is_planned_as_it_is_alone(
    tmp_path_factory: pytest.TempPathFactory, rows: list[Row], names: list[str], size: int
) -> None:
    """Without dependencies, the records of a volume are those of a trace of this volume, later by its start."""
    folder = tmp_path_factory.mktemp("volumes")
    named = list(zip(names, [row._replace(dispatch_id=None) for row in rows], strict=False))
    volumes = Volumes({"b": GIB, "a": 64 * MIB}, 512)
    own = {name: [row for of, row in named if of == name] for name in "abc"}
    planned = [name for name in "ab" if any(transfers(row) for row in own[name])]
    trace = write_volumes(folder / "trace.parquet", named, {"volumes": {name: len(own[name]) for name in own}})
    with batches_of(size):
        if not planned:
            with pytest.raises(UserError, match="neither reads nor writes"):
                prepare_volumes(trace, folder / "made", ReplayChoice(), volumes)
            return
        records = records_of(prepare_volumes(trace, folder / "made", ReplayChoice(), volumes))
        start_ns = min(row.queue_ns for name in "ab" for row in own[name])
        for name in planned:
            number, capacity_bytes = volumes.names.index(name), volumes.capacities_bytes[name]
            alone = records_of(prepare_rows(folder, own[name], capacity_bytes=capacity_bytes))
            part = records[target_numbers(records) == number]
            for field in ("offset_bytes", "length_bytes", "operation"):
                assert part[field].tolist() == alone[field].tolist()
            later_ns = own[name][0].queue_ns - start_ns
            assert (part["deadline_ns"] == alone["deadline_ns"] + np.uint64(later_ns)).all()


def transfers(row: Row) -> bool:
    return row.operation in ("read", "write") and row.length_bytes > 0


def test_a_trace_of_several_volumes_is_for_replays_only(tmp_path: Path) -> None:
    trace = write_volumes(tmp_path / "trace.parquet", [("log", Row(0)), ("data", Row(1))])
    with pytest.raises(
        UserError, match=r"is a trace of 2 volumes \(data, log\).*separate one with .drivelab trace filter"
    ):
        read_trace(trace)
    unlisted = write_volumes(tmp_path / "unlisted.parquet", [("log", Row(0)), ("x", Row(1))], {"volumes": {"log": 1}})
    with pytest.raises(UserError, match="does not list the volume 'x'"):
        prepare_volumes(unlisted, tmp_path / "made", ReplayChoice(), Volumes({"log": GIB}, 512))


def test_results_are_reported_together_and_for_each_volume(tmp_path: Path) -> None:
    rows = [
        ("log", Row(0, None, 100, "write", 0)), ("data", Row(10, None, 110, "read", 0)),
        ("log", Row(20, None, 120, "write", 0)), ("data", Row(30, None, 40, "read", 4096)),
    ]  # fmt: skip
    prepared = prepared_volumes(tmp_path, rows)
    times = [("write", 1, 3), ("read", 1.01, 9.01), ("write", 1.02, 2.02), ("read", 1.03, 4.03)]
    done = [request(operation, issue, complete) for operation, issue, complete in times]
    write_results(tmp_path / "results.bin", done)
    write_outcome(prepared.planned, tmp_path / "results.bin", tmp_path / "out.parquet", {"engine": "native"})
    assert read_outcome(tmp_path / "out.parquet").columns.tolist() == OUTCOME_OF_VOLUMES.names
    assert volumes_of(tmp_path / "out.parquet") == ("data", "log")

    def found(volume: str | None) -> dict[str, Any]:
        return report(tmp_path / "out.parquet", prepared.to_mapping(), "native", volume)

    together, log, data = found(None), found("log"), found("data")
    assert [part["access_time_us"] for part in (together, log, data)] == [3.5, 1.5, 5.5]
    assert [part["response_us"]["mean"] for part in (together, log, data)] == [4.5, 2.5, 6.5]
    assert [part["in_flight"]["replay"]["most"] for part in (together, log, data)] == [4, 2, 2]
    assert [part["in_flight"]["trace"]["most"] for part in (together, log, data)] == [4, 2, 2]
    assert [part["overlaps"]["replay"] for part in (together, log, data)] == [1, 1, 0]
    assert [part["overlaps"]["trace"] for part in (together, log, data)] == [1, 1, 0]
    assert [part["planned"] for part in (log, data)] == [
        {"write": {"requests": 2, "bytes": 8192}}, {"read": {"requests": 2, "bytes": 8192}}
    ]  # fmt: skip
    assert [part["mapping"]["method"] for part in (together, log, data)] == ["exact"] * 3
    assert not any(part["partial"] for part in (together, log, data))


def test_names_of_volumes_and_targets_may_contain_an_equals_sign(tmp_path: Path) -> None:
    trace = write_volumes(tmp_path / "trace.parquet", [("log", Row(0)), ("log=a", Row(1)), ("=", Row(2))])
    mapped = ["log=/dev/disk/by-id/x=y", "log=a=/dev/loop7", "===z", "la=b=c"]
    assert targets_of(trace, mapped) == {
        "log": "/dev/disk/by-id/x=y", "log=a": "/dev/loop7", "=": "=z", "la": "b=c",
    }  # fmt: skip
    for wrong in ("log", "log=", "log=a=", "=/dev/loop7"):
        with pytest.raises(UserError, match=f"--volume {wrong}: is not NAME=TARGET"):
            targets_of(trace, [wrong])
    with pytest.raises(UserError, match="volume 'log=a' already has the target x"):
        targets_of(trace, ["log=a=x", "log=a=y"])
