"""fio's options of a run: loads, limits, repeats, and reporting options that omit values a cell needs."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import import_origins as origins
import pytest
from import_origins import document, job, options

from drivelab.core.errors import UserError
from drivelab.imported import fio_json, fio_plot
from drivelab.imported.fio_numbers import document as read_document
from drivelab.imported.tables import tables_of, write_tables


def read_run(folder: Path, *jobs: dict[str, Any], **changed: Any) -> fio_json.Run:
    return fio_json.read_run(origins.write(folder / "a.json", document(*jobs, **changed)))


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


@pytest.mark.parametrize(
    ("name", "neutral"), [("rate", "0"), ("rate", "0,0"), ("thinktime", "0"), ("zonemode", "none")]
)
def test_option_without_effect_is_accepted(tmp_path: Path, name: str, neutral: str) -> None:
    assert read_run(tmp_path, job(1000.0, 0.0, options(**{name: neutral}))).values["iops"] == 1000.0


DIFFERENT = {
    "ioengine": ("io_uring", r"ioengine=libaio \(0\.json\) and ioengine=io_uring \(1\.json\)"),
    "direct": ("0", r"direct=1 .* and direct=0"),
    "runtime": ("5", r"without runtime \(0\.json\) and runtime=5 \(1\.json\)"),
    "size": ("1g", "without size .* and size=1g"),
}


@pytest.mark.parametrize("name", DIFFERENT)
def test_repeats_with_different_options_are_refused(tmp_path: Path, name: str) -> None:
    value, reason = DIFFERENT[name]
    for second, changed in enumerate(({}, {name: value})):
        origins.write(tmp_path / f"{second}.json", document(job(1000.0, 0.0, options(**changed)), second=second))
    with pytest.raises(UserError, match=rf"repeats of RND 4KiB 100/0 T1Q1 whose options differ, {reason}.*; import"):
        fio_json.read(tmp_path, "a")


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


def test_sweep_by_a_synchronous_engine_keeps_the_requested_depths_in_its_paths(tmp_path: Path) -> None:
    for depth in (1, 16):
        fio_job = job(1000.0, 0.0, options(depth=depth, ioengine="psync"))
        origins.write(tmp_path / f"sdx/4k/randread-{depth}-1.json", document(fio_job, second=60 * depth))
    (recording,) = fio_plot.read(tmp_path, "a")
    assert [(row["queue_depth"], row["round"]) for row in recording.cells] == [(1, 1), (1, 2)]


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


def _unified(body: dict[str, Any]) -> None:
    first = body["jobs"][0]
    first["mixed"] = first.pop("read")
    del first["write"], first["trim"]


def _gtod(body: dict[str, Any]) -> None:
    body["jobs"][0]["job options"]["gtod_reduce"] = "1"


FORMS = {
    _unified: "unified_rw_reporting=1, which adds .*; run fio without that option",
    _gtod: "gtod_reduce=1, so it has no latencies; run fio without that option",
}


@pytest.mark.parametrize("spoil", FORMS)
def test_reporting_option_that_omits_values_is_refused(tmp_path: Path, spoil: Any) -> None:
    body = document(job(1000.0, 0.0, options()))
    spoil(body)
    with pytest.raises(UserError, match=FORMS[spoil]):
        fio_json.read_run(origins.write(tmp_path / "a.json", body))


def test_undefined_numbers_of_c_become_null(tmp_path: Path) -> None:
    """A steady state without a slope; strings are unchanged."""
    path = tmp_path / "a.json"
    path.write_text('{"slope" : -nan, "a": nan, "b": [inf, -inf], "criterion" : "-nan%", "text": "\\" nan, inf"}')
    assert read_document(path) == {
        "slope": None, "a": None, "b": [None, None], "criterion": "-nan%", "text": '" nan, inf',
    }  # fmt: skip


def test_byte_order_mark_is_accepted(tmp_path: Path) -> None:
    path = origins.write(tmp_path / "a.json", document(job(1000.0, 0.0, options())))
    path.write_bytes(b"\xef\xbb\xbf" + path.read_bytes())
    assert fio_json.read_run(path).values["iops"] == 1000.0


@pytest.mark.parametrize("text", ['{"a": ' + "[" * 100_000, '{"a": ' + "9" * 10_000 + "}"])
def test_unreadable_json_is_refused(tmp_path: Path, text: str) -> None:
    (tmp_path / "a.json").write_text(text)
    with pytest.raises(UserError, match=r"a\.json: is (nested deeper|truncated or damaged)"):
        fio_json.read_run(tmp_path / "a.json")
