"""A whole study of a partition, a rebuilding array and a drive by NVMe commands on emulated NVMe drives, to the report.

The stages run in the emulated machine, by the commands of the workflow's rules. Snakemake would take minutes to start
there, so planning and everything after the recordings run on this host.
"""

from __future__ import annotations

import base64
import io
import json
import tarfile
from pathlib import Path
from typing import Any

import pandas as pd
import pytest
from emulation.machine import Machine
from mini_project import Project

from drivelab.recording.writer import read_journal
from drivelab.telemetry.sampler import read_samples

pytestmark = pytest.mark.emulated

DRIVE = "/dev/disk/by-id/nvme-QEMU_NVMe_Ctrl_EMU-A"
WHOLE = "/dev/disk/by-id/nvme-QEMU_NVMe_Ctrl_EMU-D"
PARTITION = "11111111-2222-4333-8444-555555555555"
ARRAY = "11111111:22222222:33333333:44444444"
SHEET = (
    "drive\tdevice\tserial\tdestructive\tnote\tkind\tmembers\n"
    f"part\t/dev/disk/by-partuuid/{PARTITION}\t{PARTITION}\tyes\t\tpartition\tEMU-A\n"
    f"array\t/dev/md/study\t{ARRAY}\tyes\t\tarray\tEMU-B EMU-C\n"
    f"whole\t{WHOLE}\tEMU-D\tyes\t\tdrive\t\n"
)
PROTOCOL = """\
name: writes
title: Random writes
source: a test
description: a test
class:
  enterprise: {threads: 1, queue_depth: 2, active_range: 100%}
  client: {threads: 1, queue_depth: 2, active_range: 100%}
condition:
  purge: required
  fill: {pattern: sequential, block_size: 128KiB, capacity_multiple: 1, queue_depth: 4}
measure:
  - loop:
      cells: {pattern: random, read_share: 0, block_size: 4KiB}
      runtime: 1s
      until: {rounds: 6}
sources: {class: a test, condition: a test, loop: a test}
"""
COMMANDS = (
    PROTOCOL.replace("name: writes", "name: commands")
    .replace(
        "cells: {pattern: random, read_share: 0, block_size: 4KiB}",
        "cells: {pattern: random, read_share: [0, 50], block_size: 4KiB, nvme: true}",
    )
    .replace("runtime: 1s", "runtime: 1500ms")
    .replace("rounds: 6", "rounds: 2")
)
STUDY = """\
name: subjects
results: results
drives: [part, array, whole]
measurements:
  - {protocol: writes, drives: [part]}
  - {protocol: writes, drives: [array], array_state: rebuilding}
  - {protocol: commands, drives: [whole]}
"""
PLAN = """
from pathlib import Path
from drivelab.campaign.planning import Campaign
for planned in Campaign.load("config/subjects.yaml").plans:
    Path(f"{planned.plan.drive}.json").write_text(planned.plan.to_json())
    print(planned.plan.recording_path)
"""


def put(machine: Machine, path: str, content: str) -> None:
    """Write a file in the guest, in pieces that its serial line takes."""
    text = base64.b64encode(content.encode()).decode()
    machine.run(f"mkdir -p $(dirname {path}) && : > {path}.b64")
    for begin in range(0, len(text), 1024):
        machine.run(f"printf %s {text[begin : begin + 1024]} >> {path}.b64")
    machine.run(f"base64 -d {path}.b64 > {path}")


@pytest.fixture(scope="module")
def project(tmp_path_factory: pytest.TempPathFactory) -> Project:
    project = Project(tmp_path_factory.mktemp("study") / "project")
    for name, content in (("drives.tsv", SHEET), ("protocols/writes.yaml", PROTOCOL),
                          ("protocols/commands.yaml", COMMANDS), ("subjects.yaml", STUDY)):  # fmt: skip
        (project.folder / "config" / name).write_text(content)
    return project


@pytest.fixture(scope="module")
def recordings(project: Project) -> dict[str, Path]:
    """The places of the recordings by drive; makes the plans."""
    done = project.python(PLAN)
    assert done.returncode == 0, done.stderr
    return {Path(line).parts[2]: project.folder / line for line in done.stdout.splitlines()}


def measured(machine: Machine, project: Project, drive: str, command: str) -> dict[str, Any]:
    """Run the stages in the guest, and bring the recording into the project; return facts.json of the guest."""
    folder = f"/root/{drive}"
    for name, content in (("plan.json", (project.folder / f"{drive}.json").read_text()), ("config/drives.tsv", SHEET)):
        put(machine, f"{folder}/{name}", content)
    machine.run(f"cd {folder} && python3 /guest/{command}", 600)
    with tarfile.open(fileobj=io.BytesIO(machine.read(f"{folder}/recording.tar"))) as archive:
        archive.extractall(project.folder, filter="data")
    facts: dict[str, Any] = json.loads(machine.read(f"{folder}/facts.json"))
    return facts


@pytest.fixture(scope="module")
def part(recordings: dict[str, Path], project: Project, stacked: Machine) -> dict[str, Any]:
    return measured(stacked, project, "part", f"partition_run.py {DRIVE} {PARTITION}")


@pytest.fixture(scope="module")
def array(recordings: dict[str, Path], project: Project, stacked: Machine) -> dict[str, Any]:
    return measured(stacked, project, "array", f"array_run.py {ARRAY}")


@pytest.fixture(scope="module")
def whole(recordings: dict[str, Path], project: Project, stacked: Machine) -> dict[str, Any]:
    return measured(stacked, project, "whole", f"drive_run.py {WHOLE}")


@pytest.fixture(scope="module")
def report(part: dict[str, Any], array: dict[str, Any], whole: dict[str, Any], project: Project) -> str:
    done = project.drivelab("run", "config/subjects.yaml")
    assert done.returncode == 0, done.stdout + done.stderr
    return (project.folder / "results/report/index.html").read_text()


def lines(recording: Path, event: str) -> list[dict[str, Any]]:
    return [line for line in read_journal(recording) if line["event"] == event]


def test_cells_reach_the_drive_as_nvme_commands(
    whole: dict[str, Any], recordings: dict[str, Path], report: str
) -> None:
    cells = lines(recordings["whole"], "cell")
    assert [cell["workload"]["nvme"] for cell in cells] == [True] * 4
    assert all("kernel_writes" not in cell for cell in cells), "the kernel counts no commands"
    for cell in cells:
        (job,) = json.loads((recordings["whole"] / cell["directory"] / "fio.json").read_text())["jobs"]
        assert (job["job options"]["ioengine"], job["error"]) == ("io_uring_cmd", 0)
        assert job["write"]["total_ios"] > 0
    assert whole["commands_node"].startswith("ng")
    assert "RND 4KiB 0/100, as NVMe commands" in report


def test_the_array_and_everything_beside_it_are_as_left(array: dict[str, Any]) -> None:
    before, after = array["beside"]
    assert before == after
    assert array["members"], "the array has the same members"
    assert array["state"] == "clean", "the rebuild has ended"


def test_a_rebuild_between_the_stages_breaks_no_seal(array: dict[str, Any], recordings: dict[str, Path]) -> None:
    recording = recordings["array"]
    assert (recording / "recording.json").exists()
    assert len(lines(recording, "purge")) == len(lines(recording, "fill")) == 1
    assert [line["intact"] for line in lines(recording, "verdict")] == [True, True]
    states = [(line["state"], line["missing"]) for line in lines(recording, "array")]
    assert states == [("rebuilding", 1), ("clean", 0)]


def test_cells_after_the_end_of_the_rebuild_are_tainted(
    array: dict[str, Any], recordings: dict[str, Path], project: Project, report: str
) -> None:
    cells = lines(recordings["array"], "cell")
    table = pd.read_parquet(next(project.folder.glob("results/tables/array/writes/*/cells.parquet")))
    assert len(cells) == len(table) == 6
    last_s, first_s = array["recovered_s"]
    # The first sample after a cell is the last one that can taint it.
    read_s = [sample["at_s"] for sample in read_samples(recordings["array"]) if "array_other" in sample]
    during = [next(at_s for at_s in read_s if at_s >= cell["ended_s"]) < last_s for cell in cells]
    after = [cell["started_s"] > first_s for cell in cells]
    assert any(during)
    assert any(after)
    tainted = ["array: " in str(reason) for reason in table.sort_values("round")["taint_reason"]]
    assert not any(t for t, clean in zip(tainted, during, strict=True) if clean), "the array was rebuilding"
    assert all(t for t, other in zip(tainted, after, strict=True) if other), "the array was clean"


def test_report_and_comparison_say_in_which_state_the_array_was(report: str, project: Project) -> None:
    assert "TRIM of the whole partition" in report
    assert "rebuilding, then clean" in report
    compared = project.drivelab("compare", "part", "array", "--study", "config/subjects.yaml")
    assert compared.returncode == 0, compared.stdout + compared.stderr
    assert "array state (no array / rebuilding, then clean)" in " ".join(compared.stdout.split())
