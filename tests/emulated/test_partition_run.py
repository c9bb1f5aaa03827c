"""A whole study of one partition of an emulated NVMe drive, from purge to report.

The stages run in the emulated machine, by the commands of the workflow's rules. Snakemake would take minutes to start
there, so planning and everything after the recording run on this host.
"""

from __future__ import annotations

import base64
import io
import json
import tarfile
from pathlib import Path
from typing import Any

import pytest
from emulation.machine import Machine
from mini_project import Project

from drivelab.recording.writer import read_journal

pytestmark = pytest.mark.emulated

DRIVE = "/dev/disk/by-id/nvme-QEMU_NVMe_Ctrl_EMU-A"
UUID = "11111111-2222-4333-8444-555555555555"
SHEET = (
    "drive\tdevice\tserial\tdestructive\tnote\tkind\tmembers\n"
    f"part\t/dev/disk/by-partuuid/{UUID}\t{UUID}\tyes\t\tpartition\tEMU-A\n"
)
STUDY = """\
name: partition
results: results
drives: [part]
measurements:
  - protocol: pts-iops
    scale: demo
    set:
      loop:
        runtime: 500ms
        cells: {read_share: [100, 0], block_size: [4KiB]}
        until: {steady_state: {max_rounds: 5, track: [{read_share: 0, block_size: 4KiB, metric: iops}]}}
"""
PLAN = """
from pathlib import Path
from drivelab.campaign.planning import Campaign
(planned,) = Campaign.load("config/partition.yaml").plans
Path("plan.json").write_text(planned.plan.to_json())
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
    (project.folder / "config/drives.tsv").write_text(SHEET)
    (project.folder / "config/partition.yaml").write_text(STUDY)
    return project


@pytest.fixture(scope="module")
def recording(stacked: Machine, project: Project) -> Path:
    """The recording, measured in the guest and brought into the project's results; with siblings.json of the guest."""
    done = project.python(PLAN)
    place = Path(done.stdout.strip())
    for name, content in (("plan.json", (project.folder / "plan.json").read_text()), ("config/drives.tsv", SHEET)):
        put(stacked, f"/root/study/{name}", content)
    stacked.run(f"cd /root/study && python3 /guest/partition_run.py {DRIVE} {UUID}", 240)
    with tarfile.open(fileobj=io.BytesIO(stacked.read("/root/study/recording.tar"))) as archive:
        archive.extractall(project.folder, filter="data")
    (project.folder / "siblings.json").write_bytes(stacked.read("/root/study/siblings.json"))
    return project.folder / place


def test_everything_beside_the_partition_is_intact(recording: Path, project: Project) -> None:
    siblings = json.loads((project.folder / "siblings.json").read_text())
    assert siblings["before"] == siblings["after"]
    lines: list[dict[str, Any]] = [line for line in read_journal(recording) if line["event"] == "neighbours"]
    assert [(line["stage"], line["changed"]) for line in lines] == [
        ("purge", []), ("precondition", []), ("measure", []),
    ]  # fmt: skip


def test_the_recording_describes_the_partition(recording: Path) -> None:
    identity = json.loads((recording / "identity.json").read_text())
    assert (identity["kind"], identity["serial"]) == ("partition", UUID)
    assert [member["serial"] for member in identity["members"]] == ["EMU-A"]
    assert identity["drive_write_cache"] in ("on", "off")
    (purged,) = [line for line in read_journal(recording) if line["event"] == "purge"]
    assert (purged["method"], purged["title"]) == ("trim", "TRIM of the whole partition")
    assert all(line["intact"] for line in read_journal(recording) if line["event"] == "verdict")


def test_the_report_is_made(recording: Path, project: Project) -> None:
    done = project.drivelab("run", "config/partition.yaml")
    assert done.returncode == 0, done.stdout + done.stderr
    report = (project.folder / "results/report/index.html").read_text()
    assert "TRIM of the whole partition" in report
