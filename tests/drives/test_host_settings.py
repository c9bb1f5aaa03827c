"""Settings of a real block device are restored after a real kill -9."""

from __future__ import annotations

import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from drivelab.drives.undo import current_value
from drivelab.host.temporary import Temporary
from drivelab.virtual import fuse

pytestmark = pytest.mark.device

STUDY = """
import sys
from drivelab.host import settings
from drivelab.host.temporary import Temporary
# Change only two settings of the loop device, and nothing else on the real host.
chosen = tuple(entry for entry in settings.catalogue() if entry.name in ("Read-ahead", "I/O scheduler"))
settings.catalogue = lambda: chosen
temporary = Temporary("host")
with temporary.claim():
    print(*settings.apply("synthetic", [sys.argv[1]], temporary), sep="; ", flush=True)
    sys.stdin.readline()
"""


@pytest.fixture
def loop(run_directory: Path, tmp_path: Path) -> Iterator[Path]:
    """The queue folder of a loop device over a test file."""
    file = tmp_path / "file"
    with file.open("wb") as backing:
        backing.truncate(1 << 20)
    device = fuse.attach_loop(file)
    queue = Path("/sys/block") / Path(device).name / "queue"
    before = {path: current_value(path) for path in (queue / "read_ahead_kb", queue / "scheduler")}
    yield queue
    for path, value in before.items():
        path.write_text(value or "")
    assert fuse.detach_loop(device, file, timeout_s=120.0)


@pytest.mark.parametrize("by", [signal.SIGKILL, signal.SIGINT])
def test_settings_of_a_killed_study_are_restored(loop: Path, by: signal.Signals) -> None:
    (loop / "read_ahead_kb").write_text("256")
    (loop / "scheduler").write_text("mq-deadline")
    study = subprocess.Popen(
        [sys.executable, "-c", STUDY, loop.parent.name],
        stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True,
    )  # fmt: skip
    assert study.stdout is not None
    line = study.stdout.readline()
    assert f"Read-ahead of {loop.parent.name}: set to 0 (was 256)" in line
    assert f"I/O scheduler of {loop.parent.name}: set to none (was mq-deadline)" in line
    assert current_value(loop / "read_ahead_kb") == "0"
    study.send_signal(by)
    study.communicate()
    if by == signal.SIGKILL:
        assert current_value(loop / "scheduler") == "none"
        assert len(Temporary("host").recover()) == 2
    assert current_value(loop / "read_ahead_kb") == "256"
    assert current_value(loop / "scheduler") == "mq-deadline"
    assert Temporary("host").remembered() == []
