"""Replays as NVMe commands and with polling, on emulated NVMe drives."""

from __future__ import annotations

import base64
import zlib
from collections.abc import Mapping
from itertools import product
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from emulation.machine import Machine, Result
from replay_files import make_records

from drivelab.native import built_engine_path
from drivelab.replay.engine_records import COMPLETED, Records, ScheduleWriter, make_results, open_results, open_schedule

pytestmark = pytest.mark.emulated

BLOCK, MIB = 4096, 1 << 20
RESULTS = "/tmp/results.bin"
MIXED = make_records([
    {"operation": "write", "offset_bytes": 2 * BLOCK, "length_bytes": 3 * BLOCK},
    {"operation": "write", "offset_bytes": MIB, "length_bytes": 32 * BLOCK, "flags": 1, "after": 1},
    {"operation": "flush", "after": 2},
    {"operation": "discard", "offset_bytes": MIB, "length_bytes": 4 * BLOCK, "after": 3},
    {"operation": "write-zeroes", "offset_bytes": MIB + 8 * BLOCK, "length_bytes": 4 * BLOCK, "after": 4},
    {"operation": "read", "offset_bytes": 7 * MIB, "length_bytes": 16 * BLOCK, "after": 5},
    *({"operation": ("read", "write")[i % 2], "offset_bytes": (2 * MIB) + i * BLOCK, "length_bytes": BLOCK, "after": 6}
      for i in range(200)),
])  # fmt: skip
MOVED = [3 * BLOCK, 32 * BLOCK, 0, 0, 0, 16 * BLOCK, *[BLOCK] * 200]


def block_device(machine: Machine, serial: str) -> str:
    path = f"/dev/disk/by-id/nvme-QEMU_NVMe_Ctrl_{serial}"
    return Path(machine.run(f"readlink -f {path}").stdout.strip()).name


def send(machine: Machine, path: str, content: bytes) -> None:
    packed = base64.b64encode(zlib.compress(content)).decode()
    machine.run(f"python3 -c \"import base64, zlib; open('{path}', 'wb').write(zlib.decompress(base64.b64decode('"
                f"{packed}')))\"")  # fmt: skip


def replay(machine: Machine, folder: Path, name: str, made: Records, *more: str, nvme: str | None = None) -> Result:
    """Replay in the guest on the block device `name`; results are in RESULTS there."""
    with ScheduleWriter(folder / "s.schedule", 64 * MIB, BLOCK) as writer:
        writer.write(made)
    header = open_schedule(folder / "s.schedule").header
    make_results(folder / "results.bin", header["count"], header["checksum"])
    send(machine, "/tmp/s.schedule", (folder / "s.schedule").read_bytes())
    send(machine, RESULTS, (folder / "results.bin").read_bytes())
    numbers, sequence = (machine.read(f"/sys/block/{name}/{file}").decode().strip() for file in ("dev", "diskseq"))
    words = [str(built_engine_path()), "--schedule", "/tmp/s.schedule", "--results", RESULTS, "--target",
             f"/dev/{name}", "--identity", f"'block {numbers} {sequence}'", "--depth", "32", "--watchdog-s", "60",
             *more, *(["--nvme", nvme] if nvme else [])]  # fmt: skip
    return machine.run(" ".join(words), check=False)


def results(machine: Machine, folder: Path) -> tuple[Mapping[str, Any], Records]:
    (folder / "back.bin").write_bytes(machine.read(RESULTS))
    opened = open_results(folder / "back.bin")
    return opened.header, np.array(opened.records)


def content(machine: Machine, name: str, offset: int, length: int) -> bytes:
    machine.run(
        f"dd if=/dev/{name} of=/tmp/part bs={BLOCK} skip={offset // BLOCK} count={length // BLOCK} iflag=direct"
    )
    return machine.read("/tmp/part")


def is_written(blocks: bytes) -> list[bool]:
    return [any(blocks[at : at + BLOCK]) for at in range(0, len(blocks), BLOCK)]


UNPOLLED = ((), ("--kernel-thread",), ("--threads", "2"))
POLLED = (("--polled",), ("--polled", "--threads", "2"))
"""Not as NVMe commands: the guest's kernel, 6.1, can crash (drivelab.drives.nvme.can_crash)."""


@pytest.mark.parametrize(("nvme", "more"), [*product((True, False), UNPOLLED), *((False, polled) for polled in POLLED)])
def test_operations_have_the_right_effect(bench: Machine, tmp_path: Path, nvme: bool, more: tuple[str, ...]) -> None:
    name = block_device(bench, "EMU-NATIVE-4K")
    bench.run(f"blkdiscard -z /dev/{name}")
    node = f"/dev/ng{name.removeprefix('nvme')}" if nvme else None
    done = replay(bench, tmp_path, name, MIXED, *more, nvme=node)
    assert (done.status, done.stderr) == (0, "")
    header, requests = results(bench, tmp_path)
    assert (requests["state"] == COMPLETED).all(), requests[:3]
    assert requests["result"].tolist() == MOVED
    assert (header["failed"], header["nvme"], header["polled"]) == (0, nvme, "--polled" in more)
    assert is_written(content(bench, name, 0, 8 * BLOCK)) == [False] * 2 + [True] * 3 + [False] * 3
    expected = [False] * 4 + [True] * 4 + [False] * 4 + [True] * 20 + [False] * 8
    assert is_written(content(bench, name, MIB, 40 * BLOCK)) == expected
    assert is_written(content(bench, name, 2 * MIB, 202 * BLOCK)) == [False, True] * 100 + [False] * 2


def test_another_namespace_is_refused(bench: Machine, tmp_path: Path) -> None:
    name = block_device(bench, "EMU-NATIVE-4K")
    bench.run(f"blkdiscard -z /dev/{name}")
    other = block_device(bench, "EMU-FLASH")
    done = replay(bench, tmp_path, name, MIXED, nvme=f"/dev/ng{other.removeprefix('nvme')}")
    assert done.status == 4
    assert "is not the NVMe character device of the approved target; nothing was written" in done.stderr
    assert not any(is_written(content(bench, name, 0, 8 * BLOCK)))


def test_a_request_beyond_one_command_is_refused(bench: Machine, tmp_path: Path) -> None:
    name = block_device(bench, "EMU-NATIVE-4K")
    long = make_records([{"operation": "write", "offset_bytes": 0, "length_bytes": 4 * MIB}])
    done = replay(bench, tmp_path, name, long, nvme=f"/dev/ng{name.removeprefix('nvme')}")
    assert done.status == 4
    assert "writes of 4194304 bytes, but one NVMe command of this drive has at most" in done.stderr
