"""The stages in real time: fio on a virtual drive, real processes killed, real faults."""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest
from loops import mounted
from stages import conditioned, planned

from drivelab.core.errors import UserError
from drivelab.core.lock import Hold
from drivelab.drives import guard
from drivelab.plan.drive_sheet import load_sheet
from drivelab.plan.plan import Plan
from drivelab.recording.writer import read_journal
from drivelab.run.measure import measure
from drivelab.virtual import manage
from drivelab.virtual.kept_state import KEPT_DRIVES
from drivelab.virtual.model import DriveModel

pytestmark = pytest.mark.device

MEASUREMENTS = """\
  - protocol: pts-iops
    scale: demo
    set:
      fill: {capacity_multiple: 0.2}
      loop:
        runtime: 300ms
        cells: {read_share: [65], block_size: [4KiB]}
        until:
          steady_state:
            max_rounds: 6
            data_excursion: 500%
            slope_excursion: 500%
            track: [{read_share: 65, block_size: 4KiB, metric: iops}]
  - protocol: pts-write-saturation
    scale: demo
    set: {soak: [{slice: 1s, until: {time: 6s}}, {slice: 1s, until: {time: 1s}}]}
"""


@pytest.fixture
def plans(project: Path, run_directory: Path) -> list[Plan]:
    return planned(MEASUREMENTS)


def events(plan: Plan) -> list[str]:
    return [line["event"] for line in read_journal(plan.recording_path)]


def journal_of_part(plan: Plan) -> list[str]:
    return [line["event"] for line in read_journal(plan.recording_path.with_name(plan.recording_path.name + ".part"))]


def interrupt(plan: Plan, seal: Path) -> None:
    """Let the measurement fail in its first cell."""
    manage.set_fault("op7", manage.Fault("error", operation="write"))
    with pytest.raises(UserError, match="Input/output error"):
        measure(plan, seal)


def write_as_another(*amount: str) -> None:
    device = manage.status()[0].device
    subprocess.run(["dd", "if=/dev/zero", f"of={device}", "oflag=direct", *amount], check=True, capture_output=True)


def reason_for_restart(plan: Plan) -> str:
    (abandoned,) = plan.recording_path.parent.glob("*.abandoned-1")
    return next(str(line["reason"]) for line in read_journal(abandoned) if line["event"] == "abandoned")


def test_a_loop_and_a_soak_with_fio(plans: list[Plan]) -> None:
    loop, soak = plans
    measure(loop, conditioned(loop))
    cells = [line for line in read_journal(loop.recording_path) if line["event"] == "cell"]
    assert len(cells) == 5
    assert all(line["gap_ms"] > 0 for line in cells[1:])
    assert all(line["metrics"]["iops"] > 0 for line in cells)
    measure(soak, conditioned(soak))
    first, second = (line for line in read_journal(soak.recording_path) if line["event"] == "soak")
    assert first["slices"] > second["slices"] >= 1, "6 and 1 without a stall"
    assert "purge" in events(soak)
    assert "fill" not in events(soak)


@pytest.mark.usefixtures("impatient")
def test_a_drive_in_use_is_refused(plans: list[Plan], tmp_path: Path) -> None:
    row = load_sheet(Path("config/drives.tsv"))["op7"]
    model = DriveModel.from_mapping("op7", plans[0].subject["drive"]["virtual"])
    device = manage.start("op7", model).device
    assert guard.approve(row, device).device == device
    with guard.held(row, device) as (held, _):
        assert held.device == device
        with pytest.raises(UserError, match="holds it exclusively"):
            guard.approve(row, device)
        with pytest.raises(UserError, match="is in use by another command"):
            manage.stop("op7")
        with pytest.raises(UserError, match="cannot hold"):
            Hold(device, "op7", device)
        with pytest.raises(UserError, match="used by another drivelab process"), guard.held(row, device):
            pass
    with (
        mounted(device, tmp_path / "mount") as mount,
        pytest.raises(UserError, match=f"is mounted on {mount}.*Nothing was written"),
    ):
        measure(plans[0], Path("nothing"))


def test_foreign_writes_during_an_interruption_restart_it(plans: list[Plan]) -> None:
    plan = plans[0]
    seal = conditioned(plan)
    interrupt(plan, seal)
    manage.clear_faults("op7")
    write_as_another("bs=1M", "count=4")
    measure(plan, seal)
    assert reason_for_restart(plan) == "others wrote about 4 MiB in the meantime"
    assert events(plan).count("purge") == 1
    assert events(plan)[-1] == "complete"


def test_foreign_writes_between_stages_lead_to_a_new_purge(
    plans: list[Plan], capsys: pytest.CaptureFixture[str]
) -> None:
    plan = plans[0]
    seal = conditioned(plan)
    write_as_another("bs=64k", "count=1")
    measure(plan, seal)
    assert "programs wrote 64KiB and discarded 0B since the seal; purging and precondition" in capsys.readouterr().out
    assert events(plan).count("purge") == 2


def test_the_measurement_resumes_on_a_saved_drive(plans: list[Plan]) -> None:
    plan = plans[0]
    seal = conditioned(plan)
    interrupt(plan, seal)
    manage.clear_faults("op7")
    manage.stop("op7", keep=Path("results") / KEPT_DRIVES)
    measure(plan, seal)
    assert events(plan).count("gap") == 1
    assert events(plan).count("purge") == 1, "the drive was conditioned again without need"
    assert not list(plan.recording_path.parent.glob("*.abandoned-*"))


def test_the_measurement_restarts_on_a_drive_without_its_state(plans: list[Plan]) -> None:
    plan = plans[0]
    seal = conditioned(plan)
    interrupt(plan, seal)
    manage.stop("op7")
    measure(plan, seal)
    assert reason_for_restart(plan) == "the drive's write counter decreased"
