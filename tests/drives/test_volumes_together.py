"""Two virtual drives that replay the volumes of one trace together, in real time."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest
from made_traces import Row, write_volumes
from partitions import MIB, UUID, Partitioned
from stages import measured_together

import drivelab
from drivelab.campaign.planning import Campaign
from drivelab.plan.plan import Plan
from drivelab.recording.writer import read_journal
from drivelab.replay import native
from drivelab.replay.evaluation.requests import Floats
from drivelab.replay.outcome import outcome_about, read_outcome
from drivelab.run import consent
from drivelab.trace.derive.one_volume import one_volume

pytestmark = [pytest.mark.device, pytest.mark.single]

MS = 1_000_000
GAP_NS = 20 * MS
COUNT = 100
VOLUMES = {"volume-a": "log", "volume-b": "data"}
STUDY = """\
name: mine
results: results
clock: wall
drives: [volume-a, volume-b]
traces: {log: {file: log.parquet}, data: {file: data.parquet}}
measurements:
  - {protocol: trace-replay, name: web, scale: demo, volumes: {volume-a: log, volume-b: data},
     set: {replay: {until: {passes: 2}}}}
"""


@pytest.fixture
def plans(project: Path, run_directory: Path, monkeypatch: pytest.MonkeyPatch) -> list[Plan]:
    """Plans for two drives and a trace whose requests alternate between its volumes."""
    if (reason := native.possible()) is not None:
        pytest.skip(reason)
    monkeypatch.setenv("PYTHONPATH", str(Path(drivelab.__file__).parents[1]))
    with Path("config/virtual_drives.yaml").open("a") as models, Path("config/drives.tsv").open("a") as sheet:
        for name in VOLUMES:
            models.write(f"{name}: {{serial: {name}, capacity: 16MiB, over_provisioning: 28%, slc_cache: 0B}}\n")
            sheet.write(f"{name}\tvirtual:{name}\t{name}\tyes\t\n")
    rows = [
        (("log", "data")[n % 2], Row(n * GAP_NS, None, n * GAP_NS + MS, ("write", "read")[n % 2], 8192 * n, 4096))
        for n in range(COUNT)
    ]
    whole = write_volumes(Path("trace.parquet"), rows)
    for name in VOLUMES.values():
        one_volume(whole, Path(f"{name}.parquet"), name)
    Path("config/mine.yaml").write_text(STUDY)
    return [planned.plan for planned in Campaign.load("config/mine.yaml").plans]


@pytest.fixture
def on_partition(plans: list[Plan], partitioned: Partitioned) -> Iterator[list[Plan]]:
    """Plans like `plans`, with a partition of the drive `test` instead of the second drive."""
    link = Path("/dev/disk/by-partuuid", UUID)
    made = [folder for folder in (link.parent, link.parent.parent) if not folder.exists()]
    link.parent.mkdir(parents=True, exist_ok=True)
    link.symlink_to(partitioned.part(2))
    Path("config/parts.tsv").write_text(
        "drive\tdevice\tserial\tdestructive\tnote\tkind\tmembers\n"
        "volume-a\tvirtual:volume-a\tvolume-a\tyes\t\t\t\n"
        f"volume-b\t{link}\t{UUID}\tyes\t\tpartition\tTEST-1\n"
    )
    Path("config/mine.yaml").write_text(f"{STUDY}drives_sheet: config/parts.tsv\nwrite_cache: unchanged\n")
    campaign = Campaign.load("config/mine.yaml")
    approved = campaign.approve_drives()["volume-b"]
    consent.require(campaign.study, [consent.Drive("volume-b", UUID, approved.identity)], yes=True)
    yield [planned.plan for planned in campaign.plans]
    link.unlink()
    for folder in made:
        folder.rmdir()


def test_a_volume_on_a_partition_leaves_the_rest_of_its_drive(
    on_partition: list[Plan], partitioned: Partitioned
) -> None:
    before = partitioned.content()
    measured_together(on_partition)
    after = partitioned.content()
    assert after[: 5 * MIB] == before[: 5 * MIB]
    assert after[11 * MIB :] == before[11 * MIB :]
    starts = []
    for plan in on_partition:
        lines = list(read_journal(plan.recording_path))
        starts.append([line["start_ns"] for line in lines if line["event"] == "replay"])
        assert [line["intact"] for line in lines if line["event"] == "verdict"] == [True, True]
    assert starts[0] == starts[1]
    stages = [line["stage"] for line in lines if line["event"] == "neighbours" and not line["changed"]]
    assert stages == ["purge", "precondition", "measure"]


def test_drives_replay_their_volumes_on_one_clock(plans: list[Plan]) -> None:
    measured_together(plans)
    journals = [list(read_journal(plan.recording_path)) for plan in plans]
    for plan, journal in zip(plans, journals, strict=True):
        assert [line["intact"] for line in journal if line["event"] == "verdict"] == [True, True], plan.drive
        assert json.loads((plan.recording_path / "identity.json").read_text())["serial"] == plan.drive
    replays = [[line for line in journal if line["event"] == "replay"] for journal in journals]
    assert len(replays[0]) == len(replays[1]) == 3
    for first, second in zip(*replays, strict=True):
        assert first["start_ns"] == second["start_ns"]
        due, issued = list[Floats](), list[Floats]()
        for plan, line in zip(plans, (first, second), strict=True):
            folder = plan.recording_path / line["directory"]
            assert outcome_about(folder / "outcome.parquet")["results"]["start_monotonic_ns"] == line["start_ns"]
            rows = read_outcome(folder / "outcome.parquet")
            due.append(line["start_ns"] + rows["deadline_ns"].to_numpy())
            issued.append(line["start_ns"] + rows["issue_ns"].to_numpy())
        expected_ns = first["start_ns"] + GAP_NS * np.arange(COUNT)
        assert [times.tolist() for times in due] == [expected_ns[0::2].tolist(), expected_ns[1::2].tolist()]
        assert all((at >= wanted).all() for at, wanted in zip(issued, due, strict=True))
        assert max(times.min() for times in issued) < min(times.max() for times in issued), "one after the other"
        kernel = [line["kernel_writes"]["written_bytes"] for line in (first, second)]
        assert kernel == [COUNT // 2 * 4096, 0], "each drive got the writes of its volume"
