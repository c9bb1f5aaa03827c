"""What drivelab uses of Snakemake's inside is still there, and records count only if they describe the present files.

The truth table of reruns tests the consequences.
"""

from __future__ import annotations

import hashlib
import inspect
import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
import snakemake.api  # noqa: F401 - first, because of circular imports
from snakemake.benchmark import BenchmarkRecord
from snakemake.dag import DAG
from snakemake.exceptions import LockException
from snakemake.io import IOFile
from snakemake.iocontainers import Namedlist
from snakemake.persistence import RECORD_FORMAT_VERSION, MetadataRecord, PersistenceBase
from snakemake.persistence.file import FilePersistence
from snakemake.scheduling.job_scheduler import JobScheduler
from snakemake.script import PythonScript, ScriptBase
from snakemake.workflow import Workflow

from drivelab.core.forks import Forks
from drivelab.workflow.locks import held, place
from drivelab.workflow.snakemake_internals import Records, run_in_forks

CODE = {"code": "digest of the code"}
USED: list[tuple[Callable[..., Any], str]] = [
    (BenchmarkRecord.get_benchmarks, "df58bcb42ea7"),
    (DAG.update_needrun, "2cc7fc071416"),
    (FilePersistence.__init__, "2bfcbdfcbd1d"),
    (FilePersistence._write_locks, "0f786fb184b3"),
    (PersistenceBase.has_metadata, "4aab50f9421d"),
    (PersistenceBase.has_outdated_metadata, "eea761814d77"),
    (PersistenceBase.incomplete, "296794e1d856"),
    (PersistenceBase.input_changed, "da42b0227982"),
    (PersistenceBase.params_changed, "7f12dc9015f5"),
    (PersistenceBase.lock, "a0dd9daec26e"),
    (JobScheduler.__init__, "996627fdef14"),
    (JobScheduler._schedule_reevalutation, "bb09f100ea57"),
    (JobScheduler.exit_gracefully, "71dc8bb2df12"),
    (JobScheduler.job_selector, "11a654075403"),
    (PythonScript.execute_script, "f8f5d2f25a69"),
    (ScriptBase.evaluate, "bea24041e99f"),
    (Workflow.register_resource, "02c0cb662d30"),
]
"""Functions of Snakemake that snakemake_internals.py replaces, extends or relies on, with digests of their sources."""


@pytest.mark.parametrize(("function", "digest"), USED, ids=[function.__qualname__ for function, _ in USED])
def test_snakemake_is_inside_as_drivelab_knows_it(function: Callable[..., Any], digest: str) -> None:
    """After a change, read the function, adapt snakemake_internals.py, and enter the new digest above."""
    assert hashlib.sha256(inspect.getsource(function).encode()).hexdigest()[:12] == digest


def test_snakemake_takes_the_class_of_its_records_from_the_module() -> None:
    assert "persistence = FilePersistence\n" in inspect.getsource(inspect.getmodule(Workflow) or Workflow)


def test_forked_scripts_are_benchmarked(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(PythonScript, "execute_script", None)
    run_in_forks(forks := Forks([]))
    (tmp_path / "script.py").write_text("import time; time.sleep(0.2)")
    record = BenchmarkRecord()
    for bench_record in (record, None):
        PythonScript.execute_script(SimpleNamespace(bench_record=bench_record), str(tmp_path / "script.py"))
    forks.end()
    values = dict(zip(record.get_header(), record.get_benchmarks(), strict=True))
    assert values["s"] > 0.2
    assert 1 < values["max_rss"] < 1000
    assert 0 < values["cpu_time"] < 10


@pytest.fixture
def records(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Records:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(Records, "locks", tmp_path / "locks", raising=False)
    return Records()


class Job:
    """The parts of a job that Records reads: a rule and existing files."""

    def __init__(self, rule: str, output: list[str], params: dict[str, Any], **files: str) -> None:
        for path in (*output, *files.values()):
            Path(path).write_text(path)
        self.output = [IOFile(path) for path in output]
        self.input = Namedlist(fromdict=files)
        self.params = Namedlist(fromdict=params)
        self.non_derived_params = list(params.values())
        self.rule = SimpleNamespace(name=rule, params=self.params, input=self.input)


def note(records: Records, job: Job, **facts: Any) -> None:
    """Write records of a job that has just made its files, with some facts changed."""
    for path in job.output:
        record = MetadataRecord(
            record_format_version=RECORD_FORMAT_VERSION, endtime=Path(path).stat().st_mtime,
            params=records._params(job), input=[], input_checksums={},
        )  # fmt: skip
        for name, value in facts.items():
            setattr(record, name, value)
        records._write_record(str(path), record)
    records._clear_cache()


def table(records: Records, **facts: Any) -> Job:
    job = Job("tables", ["cells", "series"], CODE, manifest="recording.json")
    note(records, job, **facts)
    return job


def test_analysis_with_matching_records_is_kept(records: Records) -> None:
    assert not records.params_changed(table(records))


def test_analysis_without_a_record_runs_again(records: Records) -> None:
    job = table(records)
    records._delete_record("series")
    records._clear_cache()
    assert set(records.params_changed(job)) == {"series"}
    assert not records.params_changed(job, file=job.output[0])


@pytest.mark.parametrize("version", [RECORD_FORMAT_VERSION - 1, RECORD_FORMAT_VERSION + 1])
def test_record_in_another_format_does_not_count(records: Records, version: int) -> None:
    assert records.params_changed(table(records, record_format_version=version))


def test_record_without_a_time_does_not_count(records: Records) -> None:
    assert records.params_changed(table(records, endtime=None))


@pytest.mark.parametrize(("by_s", "changed"), [(0.9, False), (1.5, True), (-1.5, True)])
def test_record_of_another_file_does_not_count(records: Records, by_s: float, changed: bool) -> None:
    job = table(records)
    at_s = Path("cells").stat().st_mtime + by_s
    os.utime("cells", (at_s, at_s))
    assert bool(records.params_changed(job)) is changed


def test_table_of_another_recording_is_rebuilt(records: Records) -> None:
    assert records.params_changed(table(records, input_checksums={"recording.json": "sha256:another"}))


def test_missing_file_is_left_to_snakemake(records: Records) -> None:
    job = table(records)
    Path("cells").unlink()
    assert not records.params_changed(job)
    for name in ("cells", "series"):
        records._delete_record(name)
        Path(name).unlink(missing_ok=True)
    records._clear_cache()
    assert not records.params_changed(job), "a file that was never made has no earlier parameters"


@pytest.mark.parametrize(
    "job", [("plan", {}), ("purge", {"plan": "plan.json"}), ("measure_together_1", {"plans": "a"})]
)
def test_jobs_that_lead_to_a_measurement_never_change(records: Records, job: tuple[str, dict[str, str]]) -> None:
    name, files = job
    changed_job = Job(name, ["out"], {"plan": "one"}, **files)
    note(records, changed_job, params=["another"], input=["another"])
    assert not records.params_changed(changed_job)
    assert not any(records.input_changed(changed_job))


def test_manifest_is_read_once_per_job(records: Records, monkeypatch: pytest.MonkeyPatch) -> None:
    job = table(records)
    right = hashlib.sha256(b"recording.json").hexdigest()
    note(records, job, input_checksums={"recording.json": f"sha256:{right}"})
    read: list[Path] = []
    reading = Path.read_bytes
    monkeypatch.setattr(Path, "read_bytes", lambda path: read.append(path) or reading(path))
    assert not records.params_changed(job)
    assert read == [Path("recording.json")]


def test_the_command_does_not_import_snakemake() -> None:
    code = "import sys, drivelab.cli.main; sys.exit('snakemake' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0


def test_studies_have_separate_locks(records: Records, monkeypatch: pytest.MonkeyPatch) -> None:
    def of_study(name: str) -> Records:
        job = Job("tables", [f"{name}-cells"], CODE, manifest=f"{name}.json")
        monkeypatch.setattr(Records, "locks", place(Path("results") / name))
        study_records = Records()
        study_records.dag = SimpleNamespace(jobs=[job], needrun_jobs=lambda: [job])
        return study_records

    one, same, two = of_study("one"), of_study("one"), of_study("two")
    with one.lock():
        with two.lock():
            assert held(Path("results/one"))
            assert held(Path("results/two"))
        assert not held(Path("results/two"))
        with pytest.raises(LockException), same.lock():
            pass
    assert not held(Path("results/one"))
    with two.lock():
        assert held(Path("results/two"))
