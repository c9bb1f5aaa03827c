"""Contradictory or misplaced evidence is excluded and listed."""

from __future__ import annotations

import shutil
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from made_recordings import SOAK, change_documents, change_job, change_journal, copied, made_recording

from drivelab.analysis.exclusions import exclusions_table, recording_facts
from drivelab.collect.belonging import foreign_devices
from drivelab.collect.collect import collect
from drivelab.criteria.soundness import split
from drivelab.fio.consistency import contradiction, contradiction_of_slice
from drivelab.fio.document import documents, from_document
from drivelab.fio.series import slices
from drivelab.plan.cell import Cell
from drivelab.plan.plan import Plan
from drivelab.tables.windows import windows_table

MIX = {"pattern": "random", "read_share": 50, "block_size_bytes": 4096, "threads": 2, "queue_depth": 2,
       "runtime_s": 0.3}  # fmt: skip
TRACK = {"pattern": "random", "read_share": 50, "block_size_bytes": 4096, "metric": "iops"}
UNTIL = {"window": 5, "max_rounds": 7, "data_excursion": 0.9, "slope_excursion": 0.9, "track": [TRACK]}
DATA = Path(__file__).parents[1] / "fio/data"


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Make a recording on the virtual clock: five rounds of a mix, then a soak of ten slices."""
    steps: list[dict[str, Any]] = [{"loop": {"cells": [MIX], "until": UNTIL}},
                                   {"soak": {"cell": SOAK, "until": {"time_s": 1.0}}}]  # fmt: skip
    return made_recording(tmp_path_factory.mktemp("made"), steps)


@pytest.fixture
def recording(made: Path, tmp_path: Path) -> Path:
    return copied(made, tmp_path)


def cell(recording: Path, number: int) -> Path:
    return recording / f"cells/0-round0{number}-cell00"


def excluded(recording: Path) -> list[tuple[str, str, str]]:
    result = exclusions_table(collect(recording, reduced=False)["cells"], recording_facts([recording]))
    return [(row.place.partition(",")[0], row.fault, row.words) for row in result.itertuples()]


def faults(recording: Path) -> list[tuple[str, str]]:
    return [(place, fault) for place, fault, _ in excluded(recording)]


def times(name: str, factor: float) -> Callable[[dict[str, Any]], None]:
    """Return a change that multiplies a number of the writes; `lat.` before a name means a key of their latency."""

    def change(job: dict[str, Any]) -> None:
        of, key = (job["write"]["lat_ns"], name[4:]) if name.startswith("lat.") else (job["write"], name)
        of[key] = type(of[key])(of[key] * factor)

    return change


CONTRADICTIONS = {
    "mean above all": ("lat.mean", 1000, "mean latency of the writes", "largest"),
    "mean below all": ("lat.mean", 1e-6, "mean latency of the writes", "smallest"),
    "mean off the bins": ("lat.mean", 1.1, "mean latency of the writes", "by the latency bins"),
    "smallest": ("lat.min", 1.5, "smallest latency of the writes", "lowest bin"),
    "largest": ("lat.max", 2, "largest latency of the writes", "highest bin"),
    "rate": ("iops", 1.01, "IOPS of the writes", " are "),
    "bandwidth": ("bw_bytes", 2, "bandwidth of the writes", " are "),
    "duration": ("runtime", 0.5, "IOPS of the writes", " are "),
    "bytes": ("io_bytes", 256, "bandwidth of the writes", " are "),
    "count": ("total_ios", 3, "IOPS of the writes", " are "),
}


@pytest.mark.parametrize("case", CONTRADICTIONS)
def test_a_contradictory_cell_is_excluded_from_the_window(recording: Path, case: str) -> None:
    name, factor, first, second = CONTRADICTIONS[case]
    change_job(cell(recording, 3), times(name, factor))
    ((place, fault, words),) = excluded(recording)
    assert (place, fault) == ("round 3", "contradicts itself")
    assert first in words
    assert second in words
    assert not windows_table(collect(recording, reduced=False)["cells"], {0: UNTIL})["reached"].any()


def test_wrong_sizes_are_found_although_all_rates_agree(recording: Path) -> None:
    """All rates agree, but each 4 KiB I/O moved 1 MiB."""
    for name in ("io_bytes", "bw_bytes"):
        change_job(cell(recording, 3), times(name, 256))
    ((_, fault, words),) = excluded(recording)
    assert fault == "contradicts itself"
    assert "writes of 4096 bytes" in words


@pytest.mark.parametrize(
    ("factor", "words"),
    [(0.0, "threads waited for 100% of their time"), (1e-3, "threads waited for"), (4.0, "but the queue depth is 2")],
)
def test_latencies_that_the_rate_contradicts(recording: Path, factor: float, words: str) -> None:
    """Mean, extremes and bins agree, but Little's law does not: a fio that measures nothing, or in another unit."""

    def change(job: dict[str, Any]) -> None:
        for name in ("read", "write"):
            latencies = job[name]["lat_ns"]
            bins: Counter[str] = Counter()
            for latency_ns, count in latencies["bins"].items():
                bins[str(int(factor * int(latency_ns)))] += count
            scaled = {key: factor * latencies[key] for key in ("min", "max", "mean")}
            latencies |= {**scaled, "bins": dict(bins)}

    change_job(cell(recording, 3), change)

    def without_latency(lines: list[dict[str, Any]]) -> None:
        for line in lines:
            line.get("metrics", {}).pop("mean_latency_us", None)

    change_journal(recording, without_latency)
    ((place, fault, reason),) = excluded(recording)
    assert (place, fault) == ("round 3", "contradicts itself")
    assert "I/Os outstanding in each thread" in reason
    assert words in reason


@pytest.mark.parametrize("name", ["iops", "bandwidth_mib_s", "mean_latency_us"])
def test_a_journal_that_differs_from_fio_is_a_contradiction(recording: Path, name: str) -> None:
    def change(lines: list[dict[str, Any]]) -> None:
        (line,) = [entry for entry in lines if entry["event"] == "cell" and entry["round"] == 2]
        line["metrics"][name] *= 1.001

    change_journal(recording, change)
    ((place, fault, words),) = excluded(recording)
    assert (place, fault) == ("round 2", "contradicts itself")
    assert "the journal" in words


@pytest.mark.parametrize(
    ("journalled", "words"), [(float("nan"), "nan"), (float("inf"), "inf"), ("fast", '"fast"'), (None, "null")]
)
def test_an_invalid_number_in_the_journal_is_a_contradiction(recording: Path, journalled: object, words: str) -> None:
    def change(lines: list[dict[str, Any]]) -> None:
        (line,) = [entry for entry in lines if entry["event"] == "cell" and entry["round"] == 2]
        line["metrics"]["iops"] = journalled

    change_journal(recording, change)
    ((_, fault, why),) = excluded(recording)
    assert fault == "contradicts itself"
    assert why.endswith(f"IOPS, the journal {words}")


def test_evidence_of_another_drive_is_foreign(recording: Path) -> None:
    path = cell(recording, 4) / "job.fio"
    path.write_text(path.read_text().replace("filename=MINE-1", "filename=OTHER-2"))
    assert excluded(recording) == [("round 4", "foreign evidence", "job.fio is for OTHER-2, the drive is MINE-1")]


def test_a_soak_of_another_drive_is_foreign(recording: Path) -> None:
    path = recording / "cells/1-soak-part1/job.fio"
    path.write_text(path.read_text().replace("filename=MINE-1", "filename=OTHER-2"))
    assert set(faults(recording)) == {(f"slice {number}", "foreign evidence") for number in range(1, 11)}


def test_evidence_of_another_time_is_foreign(recording: Path) -> None:
    def change(found: list[dict[str, Any]]) -> None:
        found[0]["timestamp_ms"] += 60_000

    change_documents(cell(recording, 2), change)
    ((place, fault, words),) = excluded(recording)
    assert (place, fault) == ("round 2", "foreign evidence")
    assert "according to the journal at" in words


@pytest.mark.parametrize(("source", "target"), [(4, 5), (5, 4)])
def test_a_round_copied_over_another_counts_once(recording: Path, source: int, target: int) -> None:
    """The round counts whose time is in the journal, whichever was copied."""
    shutil.rmtree(cell(recording, target))
    shutil.copytree(cell(recording, source), cell(recording, target))
    ((place, fault, words),) = excluded(recording)
    assert (place, fault) == (f"round {target}", "duplicated round")
    assert words.endswith(f"cells/0-round0{source}-cell00")


def test_without_times_in_the_journal_the_first_copy_counts(recording: Path) -> None:
    def change(lines: list[dict[str, Any]]) -> None:
        for line in lines:
            for name in ("io_started_s", "metrics"):
                line.pop(name, None)

    change_journal(recording, change)
    shutil.copy(cell(recording, 1) / "fio.json", cell(recording, 3) / "fio.json")
    assert faults(recording) == [("round 3", "duplicated round")]


def test_a_missing_slice_also_excludes_the_slice_that_spans_it(recording: Path, made: Path) -> None:
    before = collect(made, reduced=False)["cells"].query("kind == 'soak'").set_index("round")
    change_documents(recording / "cells/1-soak-part1", lambda found: found.__delitem__(4))
    after = collect(recording, reduced=False)["cells"].query("kind == 'soak'").set_index("round")
    assert faults(recording) == [("slice 5", "missing slice"), ("slice 6", "missing slice")]
    assert list(after.index) == [1, 2, 3, 4, 6, 7, 8, 9, 10], "the other slices keep their numbers"
    kept = after.index[after["unsound"].isna()]
    assert after.loc[kept, "iops"].tolist() == before.loc[kept, "iops"].tolist()
    assert "the journal has 10 slices, fio's JSON 9" in split(after.loc[6, "unsound"])[1]


def test_the_first_slice_may_be_missing(recording: Path) -> None:
    change_documents(recording / "cells/1-soak-part1", lambda found: found.__delitem__(0))
    assert faults(recording) == [("slice 1", "missing slice"), ("slice 2", "missing slice")]


def test_a_soak_with_another_length_than_in_the_journal_is_a_contradiction(recording: Path) -> None:
    def change(lines: list[dict[str, Any]]) -> None:
        (line,) = [entry for entry in lines if entry["event"] == "soak"]
        line["bytes"] += 4096

    change_journal(recording, change)
    assert {fault for _, fault, _ in excluded(recording)} == {"contradicts itself"}


def test_a_contradictory_status_excludes_two_slices(recording: Path) -> None:
    def change(found: list[dict[str, Any]]) -> None:
        found[2]["jobs"][0]["write"]["lat_ns"]["mean"] *= 1000

    change_documents(recording / "cells/1-soak-part1", change)
    assert faults(recording) == [("slice 3", "contradicts itself"), ("slice 4", "negative latency")]


@pytest.mark.parametrize("name", ["mix", "soak"])
def test_genuine_fio_output_is_consistent(name: str) -> None:
    text = (DATA / name / "fio.json").read_text()
    results = [from_document(document) for document in documents(text[text.index("{") :])]
    of = Cell(pattern="random", read_share=50, block_size_bytes=4096, threads=4, queue_depth=32)
    assert contradiction(results[-1], of) is None
    parts = slices(results)
    result = [contradiction_of_slice(part, before, of) for before, part in zip([None, *parts], parts, strict=False)]
    assert result == [None] * len(parts)


def test_a_kernel_name_may_change_at_a_gap(tmp_path: Path) -> None:
    """Between two gaps it may not: a job with another name there is foreign evidence."""
    plan = Plan({"drive": {"serial": "S"}, "clock": "wall"}, {"drive": "mine"})
    devices = ["/dev/nvme0n1"] * 2 + ["/dev/nvme1n1", "/dev/sdx", "/dev/nvme1n1"]
    journal: list[dict[str, Any]] = []
    for number, device in enumerate(devices):
        (tmp_path / str(number)).mkdir()
        (tmp_path / str(number) / "job.fio").write_text(f"[cell]\nfilename={device}\n")
        journal += [{"event": "gap"}] if number == 2 else []
        journal.append({"event": "cell", "directory": str(number)})
    assert foreign_devices(tmp_path, plan, journal) == {
        "3": "foreign evidence: job.fio is for /dev/sdx, the drive is /dev/nvme1n1"
    }


def test_a_latency_log_is_read_without_a_rate_log(recording: Path) -> None:
    folder = cell(recording, 2)
    (folder / "series_iops.1.log").unlink()
    (folder / "series_lat.1.log").write_text("1000, -5, 0, 0, 0\n")
    assert faults(recording) == [("round 2", "negative latency")]


def test_an_unaltered_recording_is_sound(made: Path) -> None:
    result = collect(made, reduced=False)["cells"]
    assert result["unsound"].isna().all()
    assert len(result) == 15
