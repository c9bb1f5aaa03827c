"""The engine's issuing threads share its state without data races."""

from __future__ import annotations

import random
import subprocess
from pathlib import Path

import pytest
from replay_files import Engine, direct_io_trouble, make_records

from drivelab.native import ENGINE_COMPILER, ENGINE_LIBRARIES, ENGINE_SOURCES
from drivelab.replay import native
from drivelab.replay.native import EngineOptions

BLOCK, MIB = 4096, 1 << 20


def test_there_are_no_data_races(tmp_path: Path) -> None:
    """ThreadSanitizer (Serebryany and Iskhodzhanov, WBIA 2009) watches a schedule of all kinds of requests."""
    if (reason := native.possible() or direct_io_trouble(tmp_path)) is not None:
        pytest.skip(reason)
    program, dice, rows, deadline_ns = tmp_path / "engine", random.Random(1), list[dict[str, int | str]](), 0
    sources = map(str, sorted(ENGINE_SOURCES.glob("*.c")))
    command = [*ENGINE_COMPILER, "-g", "-fsanitize=thread", "-o", str(program), *sources, *ENGINE_LIBRARIES]
    subprocess.run(command, check=True)
    for index in range(3000):
        deadline_ns += dice.choice([0, 0, 0, 1000, 50_000])
        operation = dice.choice(["read", "write", "flush", "discard"])
        moves = operation != "flush"
        depends = index and dice.random() < 0.4
        rows.append({
            "operation": operation, "deadline_ns": deadline_ns, "depth": dice.choice([0, 0, 1, 3]),
            "length_bytes": dice.choice([BLOCK, 16 * BLOCK]) if moves else 0,
            "offset_bytes": dice.randint(0, 63) * BLOCK if moves else 0,
            "after": dice.randint(max(1, index - 20), index) if depends else 0,
            "think_ns": dice.choice([0, 20_000]) if depends else 0,
        })  # fmt: skip
    (tmp_path / "target").write_bytes(bytes(8 * MIB))
    engine = Engine(tmp_path, tmp_path / "target", program)
    ran = engine.run(make_records(rows), EngineOptions(watchdog_s=600, threads=3, depth_limit=16))
    assert (ran.status, ran.words, ran.report["state"]) == (0, "", "finished")
    assert ran.report["completed"] == len(rows)
