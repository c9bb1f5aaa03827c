"""`drivelab run` from the user's view: the result, a crash, a failure, and planted modules."""

from __future__ import annotations

import os
import shutil
import signal
import subprocess
import sys
import tarfile
import time
from pathlib import Path

import pyarrow.parquet as pq
import pytest
from mini_project import STUDY, Project

from drivelab.recording.writer import read_journal
from drivelab.tables import io


def test_a_missing_or_old_fio_is_refused_before_any_write(tmp_path: Path) -> None:
    project = Project(tmp_path / "project")
    project.edit("config/mini.yaml", "clock: virtual", "clock: auto")
    (tmp_path / "bin").mkdir()
    fake = tmp_path / "bin/fio"
    fake.write_text("#!/bin/sh\necho fio-3.10\n")
    fake.chmod(0o755)
    code = (
        "from pathlib import Path; from drivelab.cli.measure import runner; from drivelab.virtual import manage;"
        "manage.possible = lambda: None; runner.run_study(Path('config/mini.yaml'), 1, False)"
    )
    for path, words in ((str(tmp_path / "bin"), "fio is fio-3.10"), (str(tmp_path), "fio is not installed")):
        refused = subprocess.run(
            [sys.executable, "-c", code], cwd=project.folder, env={**project.environment, "PATH": path},
            capture_output=True, text=True, check=False,
        )  # fmt: skip
        assert refused.returncode != 0
        assert words in refused.stderr
        assert not (project.folder / "results").exists()


@pytest.mark.long
def test_after_a_kill_the_next_run_completes_and_measures_nothing_twice(tmp_path: Path) -> None:
    project = Project(tmp_path / "project")
    command = [sys.executable, "-c", "import sys; from drivelab.cli.main import main; sys.exit(main())", "run"]
    running = subprocess.Popen(
        [*command, "config/mini.yaml"], cwd=project.folder, env=project.environment, start_new_session=True,
        stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL,
    )  # fmt: skip
    while running.poll() is None and len(project.recordings()) < 2:
        time.sleep(0.01)
    os.killpg(running.pid, signal.SIGKILL)
    running.wait()
    kept = project.evidence()
    assert kept
    done = project.drivelab("run", "config/mini.yaml")
    assert done.returncode == 0, done.stderr
    assert project.evidence().items() >= kept.items()
    assert len(project.recordings()) == 6
    for manifest in project.recordings():
        cells = [
            line["directory"] for line in read_journal((project.folder / manifest).parent) if line["event"] == "cell"
        ]
        assert len(cells) == len(set(cells))


@pytest.mark.long
def test_the_study_as_shipped_runs_throughput_and_latency(tmp_path: Path) -> None:
    project = Project(tmp_path / "project")
    project.end_with_tables()
    done = project.drivelab("run")
    assert done.returncode == 0, done.stderr
    tables = project.folder / "results/first/tables"
    windows = io.read(sorted(tables.glob("*/*/*/steady_state.parquet")), "steady_state")
    assert sorted(set(windows["measurement"])) == ["pts-latency", "pts-throughput.1024KiB", "pts-throughput.128KiB"]
    assert set(windows["metric"]) == {"bandwidth_mib_s", "mean_latency_us"}
    assert windows["reached"].all()
    summary = io.read(tables / "summary.parquet", "summary")
    writes = summary[(summary["cell_label"] == "SEQ 1024KiB 0/100") & (summary["metric"] == "bandwidth_mib_s")]
    assert sorted(writes["drive"]) == ["op28", "op7"]


@pytest.mark.long
def test_what_was_measured_before_a_failure_is_reported(copy: Project) -> None:
    """The basis dies in its last measurement; everything else is analysed, and the next run completes the study."""
    lost = next(name for name in sorted(copy.recordings()) if "op7/trace-replay" in name)
    shutil.rmtree((copy.folder / lost).parent)
    place = "place(plan, progress, last=True), open_device(plan) as device:\n"
    dies = ("scripts/drivelab/run/measure.py", place, f"{place}        raise UserError('op7: the drive is gone')\n")
    copy.edit(*dies)
    failed = copy.drivelab("run", "config/mini.yaml")
    assert failed.returncode == 1
    assert "op7: the drive is gone" in failed.stderr
    assert "the study is not complete" in failed.stderr
    assert "Report of what was measured: results/report/index.html" in failed.stdout
    name = "/".join(Path(lost).parent.parts[-3:])
    assert f"1 item was excluded from the results (not measured 1), with the whole of {name}: see" in failed.stdout
    exclusions = io.read(copy.folder / "results/tables/exclusions.parquet", "exclusions")
    assert exclusions[["recording", "place", "fault", "words"]].values.tolist() == [
        [name, "recording", "not measured", "op7: the drive is gone"]
    ]
    report = (copy.folder / "results/report/index.html").read_text()
    assert f"{name}" in report
    assert "not measured" in report
    copy.edit(dies[0], dies[2], dies[1])
    done = copy.drivelab("run", "config/mini.yaml")
    assert done.returncode == 0, done.stderr
    assert done.stdout.splitlines()[-1] == "Nothing was excluded from the results."
    assert copy.to_do() == {}


NAMES = ("argparse", "contextlib", "json", "numpy", "pandas", "snakemake", "subprocess", "tempfile", "yaml")
USER = "zoe-user-name"


def _text(path: Path) -> bytes:
    """Return all text of a file: that of Parquet with its metadata and columns."""
    if path.suffix == ".parquet":
        table = pq.read_table(path)
        return f"{table.schema.metadata} {table.to_pydict()}".encode()
    return path.read_bytes()


@pytest.mark.long
def test_planted_modules_do_not_run_and_the_archive_names_nobody(tmp_path: Path) -> None:
    project = Project(tmp_path / USER / "project")
    text = STUDY.replace("[op7, op28]", "[op7]").replace("basis: op7\n", "")
    (project.folder / "config/mini.yaml").write_text(text)
    here = tmp_path / "here"
    here.mkdir()
    for name in NAMES:
        (here / f"{name}.py").write_text(
            "from pathlib import Path\nPath(__file__).with_suffix('.ran').touch()\nraise SystemExit('planted')\n"
        )
    names = {"HOME": str(tmp_path / USER), "USER": USER, "LOGNAME": USER}
    environment = {name: value for name, value in project.environment.items() if name != "PYTHONSAFEPATH"} | names
    archive = tmp_path / "study.tar.gz"
    for words in (["run", "config/mini.yaml"], ["archive", "create", "config/mini.yaml", "-o", str(archive)]):
        command = [str(Path(sys.executable).with_name("drivelab")), *words]
        done = subprocess.run(command, cwd=here, env=environment, capture_output=True, text=True, check=False)
        assert done.returncode == 0, done.stdout + done.stderr
    assert list(here.glob("*.ran")) == []

    with tarfile.open(archive) as packed:
        packed.extractall(tmp_path / "out", filter="data")
    files = [path for path in (tmp_path / "out").rglob("*") if path.is_file()]
    assert {".parquet", ".html", ".json", ".log"} <= {path.suffix for path in files}
    assert [str(path) for path in files if USER.encode() in _text(path) or USER in str(path)] == []
