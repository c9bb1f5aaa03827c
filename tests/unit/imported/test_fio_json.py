"""Import of fio's JSON: values, sums of mixes, and refusals that name the file."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import import_origins as origins
import pytest
from bounded import bounded_memory
from import_origins import document, job, options

from drivelab.core.errors import UserError
from drivelab.fio.result import read_result
from drivelab.imported import fio_json
from drivelab.imported.tables import tables_of

OWN = Path(__file__).parents[1] / "fio" / "data"


def test_mix_is_reads_plus_writes(tmp_path: Path) -> None:
    path = origins.write(tmp_path / "a.json", document(job(700.0, 300.0, options("randrw", rwmixread="70"))))
    run = origins.run(path)
    assert run.cell.workload == "RND 4KiB 70/30"
    assert run.values["iops"] == 1000.0
    assert run.values["bandwidth_mib_s"] == pytest.approx(1000 * 4096 / 2**20)
    assert run.values["mean_latency_us"] == pytest.approx(0.7 * 80 + 0.3 * 20)
    assert (run.values["read_ios"], run.values["write_ios"]) == (7000, 3000)
    assert run.values["bytes_written"] == 3000 * 4096


def test_real_output_gives_the_same_values_as_the_harness(tmp_path: Path) -> None:
    """json+ of fio 3.33 has bins, which give percentiles of both directions together."""
    text = json.loads((OWN / "mix" / "fio.json").read_text())
    text["jobs"][0]["job options"] = options("randrw", 4, 2, rwmixread="65")  # missing in that file
    ours, theirs = origins.run(origins.write(tmp_path / "mix.json", text)).values, read_result(OWN / "mix")
    assert ours["iops"] == pytest.approx(theirs.iops)
    assert ours["mean_latency_us"] == pytest.approx(theirs.mean_latency_us)
    expected = theirs.percentiles_us(50, 99, 99.9999)
    assert [ours[f"p{n}_latency_us"] for n in ("50", "99", "999999")] == pytest.approx(list(expected))


def test_processes_reported_separately_are_summed(tmp_path: Path) -> None:
    jobs = [job(0.0, 500.0, options("write", 8, 3, "1m")) for _ in range(3)]
    run = origins.run(origins.write(tmp_path / "a.json", document(*jobs)))
    assert (run.cell.label, run.values["iops"]) == ("SEQ 1024KiB 0/100 T3Q8", 1500.0)


def test_early_fio_3_gives_only_kib_per_second(tmp_path: Path) -> None:
    early_job = job(1000.0, 0.0, options())
    for part in ("read", "write", "trim"):
        del early_job[part]["bw_bytes"]
    common = {"global options": early_job.pop("job options")}
    path = origins.write(tmp_path / "a.json", document(early_job, **common))
    assert origins.run(path).values["bandwidth_mib_s"] == pytest.approx(4000 / 1024)


def test_files_of_one_workload_are_rounds_in_time_order(tmp_path: Path) -> None:
    for second, iops in ((300, 1020.0), (100, 1000.0), (200, 1010.0)):
        origins.write(tmp_path / f"{iops}.json", document(job(iops, 0.0, options()), second=second))
    tables = tables_of(fio_json.read(tmp_path, "a"))
    assert list(tables["cells"]["iops"]) == [1000.0, 1010.0, 1020.0]
    assert list(tables["cells"]["round"]) == [1, 2, 3]
    assert list(tables["cells"]["elapsed_s"]) == [0.0, 100.0, 200.0]
    row = tables["summary"].query("metric == 'iops'").iloc[0]
    assert (row["value"], row["n"], row["statistic"]) == (1010.0, 3, "median of 3 warm rounds")
    assert (row["spread_low"], row["spread_high"]) == (1000.0, 1020.0)


BAD: list[tuple[dict[str, Any], str]] = [
    ({"read": {"iops": 1e9, "total_ios": 125, "io_bytes": 125 * 4096, "runtime": 800}},
     r"contradicts itself: IOPS of the reads 1e\+09, but 125 in 0.8 s are 156.25; leave the file out"),
    ({"read": {"bw_bytes": 8192000}},
     "contradicts itself: bandwidth of the reads 7.8125 MiB/s, but 40960000 bytes in 10 s are 3.90625 MiB/s"),
    ({"read": {"io_bytes": 10_000 << 20, "bw_bytes": 1000 << 20}}, "10000 reads of 4096 bytes, but 10485760000 bytes"),
    ({"read": {"lat_ns": {"mean": 8e7}}}, "mean latency of the reads 80000 us, largest 9000 us"),
    ({"read": {"lat_ns": {"min": 8_000_000}}}, "mean latency of the reads 80 us, smallest 8000 us"),
    ({"read": {"lat_ns": {"min": -5}}}, "has a negative value, the smallest latency of the reads"),
    ({"read": {"lat_ns": {"max": -1}}}, "negative value, max latency us"),
    ({"read": {"runtime": 0}, "write": {"runtime": 5}}, "10000 reads took no time"),
    ({"read": {"iops": float("nan")}}, "no number for iops"),
    ({"read": origins.direction(0.0)}, "has no I/O"),
    ({"error": 5}, "reports error 5"),
    ({"write": None}, "lacks 'write'"),
    ({"write": origins.direction(10.0)}, "10.*writes|writes"),
    ({"job options": {"bssplit": "4k/50:8k/50"}}, "bssplit"),
    ({"job options": {"rw": "randtrim"}}, "rw=randtrim"),
    ({"job options": {"gtod_reduce": "1"}}, "gtod_reduce=1, so it has no latencies; run fio without that option"),
    ({"read": None, "write": None, "trim": None, "mixed": origins.direction(1000.0)},
     "unified_rw_reporting=1, which adds .*; run fio without that option"),
]  # fmt: skip
"""Changes of a job, whose None removes a part, and the reason of the refusal."""


def spoil(part: dict[str, Any], change: Mapping[str, Any]) -> None:
    for name, value in change.items():
        if value is None:
            del part[name]
        elif isinstance(value, dict) and name in part:
            spoil(part[name], value)
        else:
            part[name] = value


@pytest.mark.parametrize(("change", "reason"), BAD)
def test_invalid_result_is_refused_by_name(tmp_path: Path, change: dict[str, Any], reason: str) -> None:
    body = document(job(1000.0, 0.0, options()))
    spoil(body["jobs"][0], change)
    with pytest.raises(UserError, match=reason) as error:
        origins.run(origins.write(tmp_path / "bad.json", body))
    assert "bad.json" in str(error.value)


@pytest.mark.parametrize(
    ("body", "reason"),
    [
        (document(job(1000.0, 0.0, options()), job(1.0, 0.0, options(block="8k"))),
         r"has several jobs \(test\), which differ in bs; run each by itself, such as fio --section=test "),
        ({"fio version": "fio-2.1", "jobs": [{"jobname": "a", "read": {"io_bytes": 1}}]},
         r"is from fio 2\.1, whose JSON has other units"),
    ],
)  # fmt: skip
def test_a_document_without_one_cell_is_refused(tmp_path: Path, body: dict[str, Any], reason: str) -> None:
    with pytest.raises(UserError, match=reason):
        origins.run(origins.write(tmp_path / "bad.json", body))


@pytest.mark.parametrize("job_runtime", [10_000, None])
def test_a_client_of_one_host_is_a_run_and_of_two_is_refused(tmp_path: Path, job_runtime: int | None) -> None:
    """`fio --client` adds the row "All clients" without options; fio before 3.8 had no `job_runtime`."""
    timed = {} if job_runtime is None else {"job_runtime": job_runtime}
    jobs = [job(500.0, 0.0, options("randread", 4, 2), hostname="lab", port=8765, **timed) for _ in range(2)]
    total = job(
        1000.0, 0.0, {}, jobname="All clients", hostname="lab", port=8765, **{k: 2 * v for k, v in timed.items()}
    )
    del total["job options"]
    body = document(client_stats=[*jobs, total], **{"global options": {}})
    del body["jobs"], body["timestamp_ms"]
    run = origins.run(origins.write(tmp_path / "client.json", body))
    assert (run.cell.label, run.values["iops"]) == ("RND 4KiB 100/0 T2Q4", 1000.0)
    body["client_stats"] = [jobs[0], {**jobs[1], "hostname": "other"}, total]
    with pytest.raises(UserError, match=r"is of several hosts \(lab, other\).* such as fio --client=lab JOBFILE"):
        origins.run(origins.write(tmp_path / "clients.json", body))


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        (
            "x: (g=0): rw=read\nfio-3.33\n",
            r"has no JSON; it begins with 'x: \(g=0\): rw=read'; run fio with --output-format",
        ),
        ("", "is empty"),
        ('{"jobs": [', "is truncated or damaged"),
        ('{"a": ' + "9" * 10_000 + "}", "is truncated or damaged"),
        ("{}", "lacks 'fio version'"),
        ("{}\n{}", "lacks 'fio version'"),
        ('{"client_stats": 5}', "is not valid output of fio"),
        ('{"client_stats": [5]}', "is not valid output of fio"),
        ('{"jobs": null}\n{"jobs": [7]}', "is not valid output of fio|lacks 'fio version'"),
        ('{"jobs": ' + "[" * 100_000, "is nested deeper than any output of fio"),
        ("\0" * (65 << 20), r"cannot be read \(has more than 64 MiB\)"),
    ],
)
def test_file_without_json_of_fio_is_refused(tmp_path: Path, text: str, reason: str) -> None:
    (tmp_path / "a.json").write_text(text)
    with bounded_memory(140 << 20), pytest.raises(UserError, match=rf"a\.json: ({reason})"):
        fio_json.read(tmp_path / "a.json", "a")


def test_text_around_the_json_is_left_out_and_messages_are_notes(tmp_path: Path) -> None:
    """As of `--output-format=normal,json`, and of a file system without O_DIRECT."""
    path = origins.write(tmp_path / "a.json", document(job(1000.0, 0.0, options())))
    message = "fio: looks like your file system does not support direct=1/buffered=0"
    path.write_text(f"x: (g=0): rw=randread\n<vm> {message}\n{path.read_text()}\n\nx: {{ groupid=0 }}\nnote: both\n")
    (recording,) = fio_json.read(path, "a")
    assert recording.cells[0]["iops"] == 1000.0
    assert {f"fio printed (1x): {text}" for text in (message, "note: both")} < {*recording.notes}


def test_result_after_a_message_about_a_mounted_device_is_refused() -> None:
    with pytest.raises(UserError, match=r"has the option rate_iops=400"):
        origins.run(OWN / "mounted_device" / "fio.json")


def test_refused_files_of_a_folder_are_left_out_by_name(tmp_path: Path) -> None:
    for n in range(12):
        (tmp_path / f"{n:02}.json").write_text("" if n else "{")
    with pytest.raises(UserError, match=r"00\.json: is truncated or damaged") as caught:
        fio_json.read(tmp_path, "a")
    origins.write(tmp_path / "good.json", document(job(1000.0, 0.0, options())))
    (recording,) = fio_json.read(tmp_path, "a")
    assert len(recording.cells) == 1
    assert recording.left_out[1].endswith("01.json: is empty; leave the file out")
    assert recording.left_out[10:] == ["and 2 more of 13 files"]
    assert f"Left out: {recording.left_out[1]}" in recording.notes
    assert str(caught.value).splitlines()[1] == recording.left_out[1]


def test_appended_runs_are_repeats(tmp_path: Path) -> None:
    runs = [document(job(iops, 0.0, options()), second=second) for second, iops in ((10, 1000.0), (21, 1010.0))]
    (tmp_path / "a.json").write_text("\n".join(map(json.dumps, runs)))
    (recording,) = fio_json.read(tmp_path / "a.json", "a")
    assert [(row["iops"], row["directory"]) for row in recording.cells] == [(1000.0, "a.json#1"), (1010.0, "a.json#2")]


@pytest.mark.parametrize("ramp_s", [0, 2])
def test_of_status_results_the_last_is_the_run(tmp_path: Path, ramp_s: int) -> None:
    """`--status-interval=1` in a run of 10 s that ends at second 0; during the ramp there is no I/O."""
    results = []
    for seconds in (*range(1 - ramp_s, 10, 3), 10):
        fio_job = job(1000.0, 0.0, options(), elapsed=seconds + ramp_s + 1)
        fio_job["read"] = origins.direction(1000.0 if seconds > 0 else 0.0, runtime_s=max(seconds, 0))
        results.append(json.dumps(document(fio_job, second=seconds - 10), indent=1))
    (tmp_path / "a.json").write_text("\n".join(results))
    assert origins.run(tmp_path / "a.json").values["read_ios"] == 10_000


def _of_virtual_clock(second: int = 0) -> dict[str, Any]:
    job_options = options(ioengine="virtual-clock", filename="VIRTUAL-OP7")
    return document(job(1000.0, 0.0, job_options), second=second, **{"fio version": "virtual-clock"})


def _run(number: int, changed: Mapping[str, Any] = {}, **more: Any) -> dict[str, Any]:
    return document(job(1000.0, 0.0, {**options(), **changed}), second=number, **more)


UNLIKE = {
    "a copy": ([_run(0), _run(0)], r"1\.json: is the same run as .*0\.json; leave one of the two files out"),
    "versions": ([_run(number, **{"fio version": f"fio-3.3{number // 2}"}) for number in range(3)],
                 r"fio version=3\.30 .* and fio version=3\.31 .*, which are never pooled; import"),
    "virtual": ([_of_virtual_clock()], r"0\.json: is of drivelab's virtual clock, not of fio; compare its study"),
    "targets": ([_run(number, {"filename": f"/dev/sd{number}"}) for number in range(2)], "/dev/sd0, /dev/sd1"),
    **{
        name: ([_run(0), _run(1, {name: value})],
               rf"repeats of RND 4KiB 100/0 T1Q1 whose options differ, {reason}.*; import")
        for name, value, reason in (
            ("ioengine", "io_uring", r"ioengine=libaio \(0\.json\) and ioengine=io_uring \(1\.json\)"),
            ("direct", "0", r"direct=1 .* and direct=0"),
            ("runtime", "5", r"without runtime \(0\.json\) and runtime=5 \(1\.json\)"),
            ("size", "1g", "without size .* and size=1g"),
        )
    },
}  # fmt: skip


@pytest.mark.parametrize("name", UNLIKE)
def test_runs_that_do_not_belong_together_are_refused(tmp_path: Path, name: str) -> None:
    bodies, reason = UNLIKE[name]
    for number, body in enumerate(bodies):
        origins.write(tmp_path / f"{number}.json", body)
    with pytest.raises(UserError, match=reason):
        fio_json.read(tmp_path, "a")


@pytest.mark.parametrize(
    ("common", "own"),
    [
        ("", '"filename": "/dev/sda", "filename": "/dev/sdb"'),
        ("", '"filename": "/dev/sda:/dev/sdb"'),
        ('"filename": "/dev/sda"', '"filename": "/dev/sdb"'),
        ("", '"directory": "/dev/sda:/dev/sdb"'),
    ],
)
def test_several_targets_of_one_run_are_refused(tmp_path: Path, common: str, own: str) -> None:
    """fio adds each `filename` to those before, also that of a job to that of `[global]`."""
    body = document(job(1000.0, 0.0, {"place": "own"}), **{"global options": {"rw": "randread", "place": "common"}})
    text = json.dumps(body).replace('"place": "own"', own)
    (tmp_path / "a.json").write_text(text.replace(', "place": "common"', f", {common}" if common else ""))
    reason = "has several targets, /dev/sda/? and /dev/sdb/?, whose I/Os .*; run fio for each target by itself, such as"
    with pytest.raises(UserError, match=reason):
        origins.run(tmp_path / "a.json")


def test_jobs_on_several_drives_are_refused_and_on_files_of_one_folder_read(tmp_path: Path) -> None:
    def read(*names: str) -> fio_json.Run:
        jobs = [job(500.0, 0.0, options(threads=2, filename=name)) for name in names]
        return origins.run(origins.write(tmp_path / "a.json", document(*jobs)))

    assert read("/mnt/x/1", "/mnt/x/2").targets == ["/mnt/x/1", "/mnt/x/2"]
    assert read(r"/dev/by-path/pci-0\:1", r"/dev/by-path/pci-0\:1").targets == ["/dev/by-path/pci-0:1"]
    with pytest.raises(UserError, match="several targets, /dev/sda and /dev/sdb"):
        read("/dev/sda", "/dev/sdb")


def test_a_folder_of_folders_is_a_sweep(tmp_path: Path) -> None:
    """In the layout of bench-fio."""
    for depth, threads in ((1, 1), (1, 4), (16, 1), (16, 4)):
        read_job = job(1000.0 * depth * threads, 0.0, options("randread", depth, threads))
        path = tmp_path / f"sdx/4k/randread-{depth}-{threads}.json"
        origins.write(path, document(read_job, second=60 * depth + threads))
    mixed = job(75.0, 25.0, options("rw", 1, 1, "64k", rwmixread="75"))
    origins.write(tmp_path / "sdx/rw75/64k/rw-1-1.json", document(mixed, second=6000))
    tables = tables_of(fio_json.read(tmp_path, "a"))
    values = tables["summary"].query("metric == 'iops'").set_index("cell_label")["value"].to_dict()
    assert values == {
        "RND 4KiB 100/0 T1Q1": 1000.0,
        "RND 4KiB 100/0 T4Q1": 4000.0,
        "RND 4KiB 100/0 T1Q16": 16000.0,
        "RND 4KiB 100/0 T4Q16": 64000.0,
        "SEQ 64KiB 75/25 T1Q1": 100.0,
    }
    assert set(tables["cells"]["directory"]) >= {"sdx/4k/randread-16-4.json", "sdx/rw75/64k/rw-1-1.json"}
