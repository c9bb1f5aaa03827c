"""Ceilings of a host are kept, and measured again when a null_blk device says more."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from drivelab.fio.null_target import NullTarget
from drivelab.plan.cell import Cell
from drivelab.run import host_ceiling

READ = Cell("random", 100, 4096, 2, 16, 0.5)
WRITE = replace(READ, read_share=0)
ZRAM = NullTarget("zram0", "/dev/zram0", "", 4096)
NULL_BLK = NullTarget("nullb0", "/dev/nullb0", "", 512, queues=2)
OF_FIO = NullTarget("fio's null engine", "null", "", 512, engine="null")


def test_a_new_null_blk_device_is_used_for_known_loads(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("DRIVELAB_RUN_DIR", str(tmp_path))
    monkeypatch.setattr("os.cpu_count", lambda: 2)
    device: list[NullTarget] = []
    measured: list[tuple[int, str]] = []

    def measure(loads: Sequence[Cell], *_: object, **__: object) -> tuple[list[dict[str, Any]], list[str]]:
        measured.extend((load.read_share, (device or [ZRAM])[0].name) for load in loads)
        return [
            {"measured": [{"target": target.name, "bounds": list(target.bounds(load)), "iops": 1.0}
                          for target in (*(device or [ZRAM]), OF_FIO) if target.bounds(load)]}
            for load in loads
        ], []  # fmt: skip

    monkeypatch.setattr(host_ceiling, "measured_now", measure)
    monkeypatch.setattr(host_ceiling, "null_block_device", lambda besides: ((device or [None])[0], []))

    def targets() -> list[list[str]]:
        loads = host_ceiling.ceilings([READ, WRITE], "io_uring", {}, [])["loads"]
        return [[result["target"] for result in entry["measured"]] for entry in loads]

    for _ in range(2):
        assert targets() == [["zram0", OF_FIO.name], [OF_FIO.name]]
    assert measured == [(100, "zram0"), (0, "zram0")], "the second time, both are known"
    device.append(replace(NULL_BLK, queues=1))  # says at least this for reads, as zram; nothing for writes
    for _ in range(2):
        assert targets() == [["nullb0", OF_FIO.name], [OF_FIO.name]]
    device[0] = NULL_BLK
    for _ in range(2):
        assert targets() == [["nullb0", OF_FIO.name]] * 2
    assert measured[2:] == [(100, "nullb0"), (100, "nullb0"), (0, "nullb0")]
    device.clear()
    assert targets() == [["nullb0", OF_FIO.name]] * 2, "what is known stays when the device is gone"
