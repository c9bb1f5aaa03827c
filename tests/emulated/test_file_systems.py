"""Every file system that drivelab makes, on an emulated NVMe drive with Debian's kernel and programs."""

from __future__ import annotations

from typing import Any

import pytest
from emulation.machine import Machine

from drivelab.plan.file_system import LEAST_BYTES

pytestmark = pytest.mark.emulated

FILE_BYTES = 32 << 20
"""A tenth of the drive."""


@pytest.fixture(scope="module")
def observed(stacked: Machine) -> dict[str, Any]:
    """The facts by type; see guest/file_systems.py."""
    path = "/dev/disk/by-id/nvme-QEMU_NVMe_Ctrl_EMU-FORMATTED"
    command = f"python3 /guest/file_systems.py $(ls {path}_1 2>/dev/null || echo {path}) EMU-FORMATTED"
    result: dict[str, Any] = stacked.run(command, 300).json()
    return result


@pytest.mark.parametrize("kind", LEAST_BYTES)
def test_a_file_on_it_is_measured(observed: dict[str, Any], kind: str) -> None:
    facts = observed[kind]
    assert "error" not in facts, facts["error"]
    assert facts["file_system"] == kind
    assert "noatime" in facts["mount_options"].split(",")
    assert facts["fill"] == FILE_BYTES <= facts["fill_written"], "the fill reaches the drive"
    assert facts["read"] > 0
    assert 0 < facts["commit"] <= facts["commit_written"], "each commit reaches the drive"


def test_nothing_stays_mounted(observed: dict[str, Any]) -> None:
    assert observed["mounted"] == []
