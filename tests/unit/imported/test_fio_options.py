"""fio's options of a run: loads, limits, repeats, and reporting options that omit values a cell needs."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import import_origins as origins
import pytest
from import_origins import document, job, options

from drivelab.analysis.deltas.differences import differences_table, known_differences
from drivelab.core.errors import UserError
from drivelab.imported import fio_json
from drivelab.imported.tables import tables_of, write_tables


def read_run(folder: Path, *jobs: dict[str, Any], **changed: Any) -> fio_json.Run:
    return origins.run(origins.write(folder / "a.json", document(*jobs, **changed)))


def assert_refused(folder: Path, reason: str, *jobs: dict[str, Any], **changed: Any) -> None:
    with pytest.raises(UserError, match=reason) as error:
        read_run(folder, *jobs, **changed)
    assert "a.json" in str(error.value)


@pytest.mark.parametrize(("threads", "processes"), [(1, 2), (2, 4), (1, 1.05), (16, 17), (4, 3.4), (2, 1)])
def test_sections_reported_as_one_group_are_refused(tmp_path: Path, threads: int, processes: float) -> None:
    """fio stores the options of one section only; the jobs take 10 s."""
    fio_job = job(1000.0, 0.0, options("randread", 4, threads), job_runtime=round(10_000 * processes))
    assert_refused(
        tmp_path, f"the run time of {processes:.3g} processes, but options for {threads}: job_runtime is", fio_job
    )


@pytest.mark.parametrize("job_runtime", [39_996, 40_190, 37_000, 0])
def test_run_time_of_the_processes_may_differ_a_little(tmp_path: Path, job_runtime: int) -> None:
    """0 is the value of a run that has not ended."""
    run = read_run(tmp_path, job(700.0, 300.0, options("randrw", 4, 4, rwmixread="70"), job_runtime=job_runtime))
    assert run.cell.label == "RND 4KiB 70/30 T4Q4"


def test_processes_reported_separately_have_their_own_run_time(tmp_path: Path) -> None:
    fio_job = job(1000.0, 0.0, options("randread", 4, 2), job_runtime=10_000)
    assert read_run(tmp_path, fio_job, fio_job).cell.threads == 2
    assert_refused(
        tmp_path, "the run time of 2 processes, but options for 1", fio_job, {**fio_job, "job_runtime": 20_000}
    )


LIMITS = {
    "rate": "1m", "rate_min": "1m", "rate_iops": "100", "rate_iops_min": "10", "rate_process": "poisson",
    "thinktime": "10", "latency_target": "50", "flow": "5", "percentage_random": "50", "read_iolog": "a.log",
    "random_distribution": "zipf", "zonemode": "strided", "zonesize": "1m",
}  # fmt: skip


@pytest.mark.parametrize("name", LIMITS)
def test_limits_and_unsupported_options_are_refused(tmp_path: Path, name: str) -> None:
    assert_refused(
        tmp_path,
        f"has the option {name}={LIMITS[name]}, .*leave the file out",
        job(1000.0, 0.0, options(**{name: LIMITS[name]})),
    )


def test_repeats_may_differ_in_names_logs_seeds_and_size_notation(tmp_path: Path) -> None:
    changes = ({"name": "a", "ioengine": "psync"}, {"bs": "4096", "write_lat_log": "b", "log_avg_msec": "500",
             "randseed": "7", "description": "again"})  # fmt: skip
    for second, changed in enumerate(changes):
        job_options = {**options(), **changed}
        job_options = {name: value for name, value in job_options.items() if (name, value) != ("ioengine", "libaio")}
        origins.write(tmp_path / f"{second}.json", document(job(1000.0, 0.0, job_options), second=second))
    assert len(fio_json.read(tmp_path, "a")[0].cells) == 2


def test_the_options_of_every_run_are_kept(tmp_path: Path) -> None:
    for second in (1, 2):
        fio_job = job(1000.0, 0.0, options(name=f"run{second}", norandommap="1"))
        origins.write(tmp_path / f"in/{second}.json", document(fio_job, second=second))
    recordings = fio_json.read(tmp_path / "in", "a")
    tables = tables_of(recordings)
    write_tables(tables, recordings, tmp_path / "in", tmp_path / "out")
    kept = json.loads((tmp_path / "out/imported.json").read_text())["recordings"][0]["facts"]["runs"]
    assert kept == {f"{n}.json": [options(name=f"run{n}", norandommap="1")] for n in (1, 2)}
    assert set(kept) == set(tables["cells"]["directory"])
    assert "runs" not in set(tables["conditions"]["facet"])


@pytest.mark.parametrize(
    ("engine", "levels", "depth"),
    [
        ("psync", {"1": 100.0, "32": 0.0}, 1),
        ("mmap", None, 1),
        ("vsync", {"1": 0.1, "32": 99.0}, 32),
        ("libaio", {"1": 100.0}, 32),
    ],
)
def test_synchronous_engine_has_queue_depth_1(
    tmp_path: Path, engine: str, levels: dict[str, float] | None, depth: int
) -> None:
    counted = {} if levels is None else {"iodepth_level": levels}
    body = document(job(1000.0, 0.0, options(depth=32, ioengine=engine), **counted))
    (recording,) = fio_json.read(origins.write(tmp_path / "a.json", body), "a")
    assert recording.cells[0]["queue_depth"] == depth
    note = f"1 runs by fio's engine {engine} with iodepth=32 have queue depth 1: the engine waits for each I/O"
    assert any(text.startswith(note) for text in recording.notes) == (depth == 1)


@pytest.mark.parametrize(
    ("changed", "reason"),
    [
        ({"numjobs": "0"}, "numjobs=0, which is not a whole number of 1 or more"),
        ({"iodepth": "0"}, "iodepth=0"),
        ({"iodepth": "-1"}, "iodepth=-1"),
        ({"iodepth": "1_6"}, "iodepth=1_6"),
        ({"rw": "randrw", "rwmixread": "200"}, "rwmixread=200, which is not a whole number from 0 to 100"),
    ],
)
def test_impossible_loads_are_refused(tmp_path: Path, changed: dict[str, str], reason: str) -> None:
    assert_refused(tmp_path, reason, job(1000.0, 0.0, {**options(), **changed}))


def test_job_without_options_is_refused(tmp_path: Path) -> None:
    fio_job = job(1000.0, 0.0, {})
    del fio_job["job options"]
    assert_refused(
        tmp_path, "has no rw in its job options", fio_job, **{"global options": {"direct": "1", "size": "1g"}}
    )


@pytest.mark.parametrize("printed_ms", [1e20, float("inf"), -1e20, float("nan")])
def test_invalid_timestamp_is_refused(tmp_path: Path, printed_ms: float) -> None:
    assert_refused(tmp_path, "has an invalid timestamp", job(1000.0, 0.0, options()), timestamp_ms=printed_ms)


def test_options_that_act_are_conditions_and_differ_from_fio_defaults(tmp_path: Path) -> None:
    changes = {"a": {"fdatasync": "1", "shiny": "7", "sync": "0", "write_lat_log": "x"}, "b": {"iodepth_batch": "8"}}
    recordings = [
        fio_json.read(
            origins.write(tmp_path / f"{drive}.json", document(job(0.0, 170.0, options("write", **given)))), drive
        )[0]
        for drive, given in changes.items()
    ]
    conditions = tables_of(recordings)["conditions"]
    known = conditions[conditions["drive"] == "a"].set_index("facet")["value"]
    assert {facet: value for facet, value in known.items() if facet.startswith("fio: ")} == {
        "fio: fdatasync": "1", "fio: shiny": "7 (unknown to drivelab)", "fio: other options": "fio's default",
        "fio: options without a value": "not recorded",
    }  # fmt: skip
    differences = known_differences(differences_table(conditions, [("a", "b")])).set_index("facet")
    assert list(differences.loc["fio: fdatasync", ["basis_value", "comparison_value"]]) == ["1", "fio's default"]
    assert list(differences.loc["fio: iodepth_batch", ["basis_value", "comparison_value"]]) == ["fio's default", "8"]


@pytest.mark.parametrize(
    ("given", "share"), [({"rwmixwrite": "30"}, 70), ({"rwmixread": "10", "rwmixwrite": "30"}, 70), ({}, 50)]
)
def test_rwmixwrite_is_the_rest_of_rwmixread(tmp_path: Path, given: dict[str, str], share: int) -> None:
    assert read_run(tmp_path, job(700.0, 300.0, options("randrw", **given))).cell.read_share == share


@pytest.mark.parametrize(("buffered", "io_path"), [("0", "direct"), ("1", "page cache")])
def test_buffered_is_the_opposite_of_direct(tmp_path: Path, buffered: str, io_path: str) -> None:
    given = {name: value for name, value in options(buffered=buffered).items() if name != "direct"}
    (recording,) = fio_json.read(origins.write(tmp_path / "a.json", document(job(1000.0, 0.0, given))), "a")
    assert recording.facts["test"]["I/O path"] == io_path


def test_reads_that_verify_are_refused(tmp_path: Path) -> None:
    verifying = options("randwrite", verify="crc32c")
    assert_refused(
        tmp_path, "verify=crc32c: fio read back what it wrote.*; run fio with --do_verify=0", job(1.0, 1.0, verifying)
    )
    assert read_run(tmp_path, job(0.0, 100.0, {**verifying, "do_verify": "0"})).values["iops"] == 100.0


@pytest.mark.parametrize(("block", "size"), [("4KiB", 4000), ("4k,8k", 4096), ("4kb", 4096)])
def test_block_sizes_as_fio_reads_them(tmp_path: Path, block: str, size: int) -> None:
    """fio 3.33 reads `4KiB` as 4000 B, because `kb_base` is 1024."""
    read_job = job(1000.0, 0.0, options(block=str(size)))
    read_job["job options"]["bs"] = block
    assert read_run(tmp_path, read_job).cell.block_size_bytes == size
    read_job["job options"]["kb_base"] = "1000"
    assert_refused(tmp_path, "with kb_base=1000, so its unit depends on the order", read_job)


def test_stonewalled_jobs_are_refused_with_what_to_type(tmp_path: Path) -> None:
    jobs = [job(9.0, 0.0, options(), jobname="r"), job(0.0, 9.0, options("randwrite"), jobname="w", groupid=1)]
    reason = r"has several jobs \(r, w\), which differ in rw, in 2 groups; fio does not say which ran at the same time;"
    assert_refused(tmp_path, f"{reason} run each by itself, such as fio --section=r --output-format=json", *jobs)


@pytest.mark.parametrize(("spare", "accepted"), [(16, True), (17, False)])
def test_bytes_of_ios_in_flight_at_the_end_of_the_ramp(tmp_path: Path, spare: int, accepted: bool) -> None:
    """fio 3.33 with 2 threads at depth 8: 142,516 reads, but the bytes of 142,530."""
    fio_job = job(1000.0, 0.0, options("randread", 8, 2, ramp_time="1"))
    fio_job["read"] |= {"io_bytes": (10_000 + spare) * 4096, "bw_bytes": (10_000 + spare) * 4096 // 10}
    if accepted:
        assert read_run(tmp_path, fio_job).values["read_ios"] == 10_000
        del fio_job["job options"]["ramp_time"]
    assert_refused(tmp_path, "contradicts itself: 10000 reads of 4096 bytes", fio_job)


@pytest.mark.parametrize("given", [{"ioengine": "psync", "iodepth": "32"}, {"fsync": "1"}, {"iodepth_batch": "16"}])
@pytest.mark.parametrize("timed", [{"job_runtime": 10_000}, {}])
def test_time_without_an_io_outstanding_is_no_contradiction(
    tmp_path: Path, given: dict[str, str], timed: dict[str, int]
) -> None:
    """10 I/Os of 20 us in 10 s, in a thread that needed no CPU time: it waited for something else."""
    honest = job(0.0, 1.0, {**options("randwrite"), **given}, **timed, usr_cpu=0.0, sys_cpu=0.0)
    assert read_run(tmp_path, honest).values["write_ios"] == 10


def test_undefined_numbers_of_c_become_null(tmp_path: Path) -> None:
    """A steady state without a slope; strings are unchanged."""
    path = tmp_path / "a.json"
    path.write_text('{"slope" : -nan, "a": nan, "b": [inf, -inf], "criterion" : "-nan%", "text": "\\" nan, inf"}')
    assert fio_json.documents(path)[0][0] == {
        "slope": None, "a": None, "b": [None, None], "criterion": "-nan%", "text": '" nan, inf',
    }  # fmt: skip
