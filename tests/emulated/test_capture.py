"""blktrace proper, which a locked-down host refuses: the project's back end and decoder against blkparse and fio."""

from __future__ import annotations

import json
import re
import subprocess
import tarfile
from collections import Counter
from pathlib import Path

import pytest
from emulation.machine import Machine

from drivelab.trace.decode import Decoded, decode

pytestmark = pytest.mark.emulated

DEVICE = "/dev/disk/by-id/nvme-QEMU_NVMe_Ctrl_EMU-NATIVE-4K"


@pytest.fixture(scope="module")
def captured(bench: Machine, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Base name of a whole trace: 600 reads and writes of fio, flushes, one discard."""
    directory = tmp_path_factory.mktemp("trace")
    assert bench.run(f"python3 /guest/trace.py {DEVICE}").json() == {}
    (directory / "trace.tar").write_bytes(bench.read("/tmp/trace.tar"))
    with tarfile.open(directory / "trace.tar") as archive:
        archive.extractall(directory, filter="data")
    return directory / "trace"


@pytest.fixture(scope="module")
def decoded(captured: Path) -> Decoded:
    return decode(captured)


def test_nothing_is_lost(decoded: Decoded) -> None:
    assert decoded.summary["lost"] == {}
    assert decoded.summary["unmatched"] == {}


def test_events_are_those_of_blkparse(decoded: Decoded, captured: Path) -> None:
    done = subprocess.run(
        ["blkparse", "-q", "-i", captured.name, "-f", "event %a\n"],
        cwd=captured.parent, capture_output=True, text=True, check=True,
    )  # fmt: skip
    by_blkparse = Counter(re.findall(r"^event (\S+)$", done.stdout, re.MULTILINE))
    ours = decoded.summary["events_by_action"]
    assert {action: ours.get(action, 0) for action in "QGDCM"} == {action: by_blkparse[action] for action in "QGDCM"}


def test_requests_are_those_of_fio_and_blkdiscard(decoded: Decoded, captured: Path) -> None:
    [job] = json.loads(captured.with_name("fio.json").read_text())["jobs"]
    table = decoded.requests.to_pandas()
    assert table["complete_ns"].notna().all()
    by_fio = table[table["process"] == "fio"]
    for operation in ("read", "write"):
        assert (by_fio["operation"] == operation).sum() == job[operation]["total_ios"]
    assert (by_fio["operation"] == "flush").sum() == job["sync"]["total_ios"] > 0
    discards = table[table["operation"] == "discard"]
    assert discards[["offset_bytes", "length_bytes"]].to_numpy().tolist() == [[8 << 20, 1 << 20]]
