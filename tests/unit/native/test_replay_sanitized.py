"""The replay engine under the compiler's sanitizers: no schedule causes an invalid memory access or a data race."""

from __future__ import annotations

import random
import subprocess
from collections.abc import Sequence
from pathlib import Path

import numpy as np
import pytest
from replay_files import BLOCK, Engine, direct_io_trouble, make_records, write_schedule

from drivelab.native import ENGINE_COMPILER, ENGINE_LIBRARIES, ENGINE_SOURCES
from drivelab.plan.replay_choice import MOST_IN_FLIGHT
from drivelab.replay import native
from drivelab.replay.engine_records import SCHEDULE_HEADER, SCHEDULE_RECORD, Records, checksum
from drivelab.replay.native import EngineOptions

TARGET_BYTES = 1 << 20
FILES = 600
EXTREMES = (0, 1, 511, 512, 4095, 2**31, 2**32 - 1, 2**60, 2**60 + 1, 2**63 - 1, 2**63, 2**64 - 4096, 2**64 - 1)


def build(program: Path, *sources: Path, sanitizers: str = "address,undefined") -> Path:
    options = [option for option in ENGINE_COMPILER if option != "-O3"]
    subprocess.run(
        [*options, "-O1", "-g", f"-fsanitize={sanitizers}", "-fno-sanitize-recover=all", f"-I{ENGINE_SOURCES}",
         "-o", str(program), *map(str, sources), *ENGINE_LIBRARIES],
        check=True,
    )  # fmt: skip
    return program


@pytest.fixture(scope="module")
def reader(tmp_path_factory: pytest.TempPathFactory) -> Path:
    program = tmp_path_factory.mktemp("reader") / "reader"
    return build(
        program, Path(__file__).with_name("schedule_main.c"), ENGINE_SOURCES / "schedule.c", ENGINE_SOURCES / "files.c"
    )


def plausible(dice: random.Random, count: int) -> Records:
    rows, deadline_ns = [], 0
    for index in range(count):
        deadline_ns += dice.randint(0, 1000)
        rows.append({
            "operation": (operation := dice.choice(["read", "write", "flush", "discard", "write-zeroes"])),
            "deadline_ns": deadline_ns, "think_ns": dice.randint(0, 1000), "depth": dice.randint(0, 40),
            "after": dice.randint(0, index), "offset_bytes": dice.randint(0, 200) * BLOCK,
            "length_bytes": 0 if operation == "flush" else dice.randint(1, 8) * BLOCK,
            "flags": dice.randint(0, 1) if operation == "write" else 0,
        })  # fmt: skip
    return make_records(rows)


def mutated(dice: random.Random, whole: bytes) -> bytes:
    """Set fields to extreme values, change bytes, cut or extend the end; correct the checksum half of the time."""
    data = bytearray(whole)
    for _ in range(dice.randint(0, 3)):
        if dice.random() < 0.6 and len(data) > SCHEDULE_HEADER.itemsize:
            count = (len(data) - SCHEDULE_HEADER.itemsize) // SCHEDULE_RECORD.itemsize
            layout, base = (
                (SCHEDULE_HEADER, 0)
                if dice.random() < 0.4 or not count
                else (SCHEDULE_RECORD, SCHEDULE_HEADER.itemsize + dice.randrange(count) * SCHEDULE_RECORD.itemsize)
            )
            fields = layout.fields
            assert fields is not None
            kind, offset, *_ = fields[dice.choice(layout.names or ())]
            value = dice.choice(EXTREMES) % (1 << 8 * min(kind.itemsize, 8))
            data[base + offset : base + offset + min(kind.itemsize, 8)] = value.to_bytes(
                min(kind.itemsize, 8), "little"
            )
        elif data:
            data[dice.randrange(len(data))] = dice.randint(0, 255)
    if dice.random() < 0.15:
        data = data[: dice.randrange(len(data) + 1)]
    if dice.random() < 0.05:
        data += dice.randbytes(dice.randint(1, 100))
    content = bytes(data[SCHEDULE_HEADER.itemsize :])
    if dice.random() < 0.5 and content and len(content) % 8 == 0:
        correct = checksum(np.frombuffer(content, "<u8"))
        data[24:32] = correct.to_bytes(8, "little")
    return bytes(data)


def valid(data: bytes) -> bool:
    """Return whether a schedule follows all rules, computed with unbounded integers."""
    if len(data) < SCHEDULE_HEADER.itemsize:
        return False
    header = np.frombuffer(data[: SCHEDULE_HEADER.itemsize], SCHEDULE_HEADER)[0]
    content = data[SCHEDULE_HEADER.itemsize :]
    block, longest, target = (int(header[name]) for name in ("block_bytes", "longest_bytes", "target_bytes"))
    if (
        header["magic"] != b"DLSCHED1"
        or (header["header_bytes"], header["record_bytes"]) != (SCHEDULE_HEADER.itemsize, SCHEDULE_RECORD.itemsize)
        or int(header["count"]) * SCHEDULE_RECORD.itemsize != len(content)
        or not (512 <= block <= 1 << 20 and block.bit_count() == 1 and longest <= 64 << 20)
    ):
        return False
    rows = np.frombuffer(content, SCHEDULE_RECORD)
    before = 0
    for index, row in enumerate(rows):
        deadline, offset, length, think, after, _, operation, flags = row.tolist()
        if (
            operation > 4
            or flags not in ((0, 1) if operation == 1 else (0,))
            or deadline < before
            or max(deadline, think) > 2**60
            or after > index
            or offset % block
            or length % block
            or offset + length > target
            or (length == 0) != (operation == 2)
            or (operation < 2 and length > longest)
        ):
            return False
        before = deadline
    return int(header["checksum"]) == checksum(rows)


def verdicts(reader: Path, paths: Sequence[Path]) -> list[str]:
    done = subprocess.run([reader, *paths], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    return done.stdout.splitlines()


def test_the_reader_accepts_only_valid_schedules(reader: Path, tmp_path: Path) -> None:
    paths, expected = [], []
    for seed in range(FILES):
        dice = random.Random(seed)
        records = plausible(dice, dice.choice([0, 1, 3, 30]))
        whole = write_schedule(tmp_path / "whole", records, TARGET_BYTES)
        data = mutated(dice, whole.read_bytes())
        paths.append(tmp_path / f"{seed}.schedule")
        paths[-1].write_bytes(data)
        expected.append(valid(data))
    answers = verdicts(reader, paths)
    assert [answer == "accepted" for answer in answers] == expected
    assert FILES / 10 < sum(expected) < FILES * 0.7, "one of the two verdicts is too rare"
    kinds = {answer.partition(": ")[2].partition(" has ")[0][:20] for answer in answers if answer != "accepted"}
    assert len(kinds) > 8, "too few kinds of refusal occurred"


def test_records_beyond_the_first_part_are_checked(reader: Path, tmp_path: Path) -> None:
    """The reader checks records in parts and drops each part from memory."""
    records = np.zeros(200_000, SCHEDULE_RECORD)
    records["length_bytes"] = BLOCK
    good = write_schedule(tmp_path / "good", records, TARGET_BYTES)
    records["operation"][150_000] = 9
    bad = write_schedule(tmp_path / "bad", records, TARGET_BYTES)
    first, second = verdicts(reader, [good, bad])
    assert first == "accepted"
    assert "record 150000 has an unknown operation" in second


@pytest.mark.parametrize(("sanitizers", "threads", "depths"), [
    ("address,undefined", 1, [MOST_IN_FLIGHT]), ("thread", 3, [16, MOST_IN_FLIGHT]),
])  # fmt: skip
def test_a_whole_replay(tmp_path: Path, sanitizers: str, threads: int, depths: list[int]) -> None:
    """Replay all operations, dependencies and more requests in flight than the buffers hold, on a file."""
    if (reason := native.possible() or direct_io_trouble(tmp_path)) is not None:
        pytest.skip(reason)
    target = tmp_path / "target"
    target.write_bytes(bytes(64 << 20))
    program = build(tmp_path / "engine", *ENGINE_SOURCES.glob("*.c"), sanitizers=sanitizers)
    records = plausible(random.Random(1), 3000)
    long = make_records({"operation": "write", "deadline_ns": 4_000_000, "length_bytes": 6 << 20} for _ in range(12))
    engine = Engine(tmp_path, target, program)
    for depth in depths:
        options = EngineOptions(watchdog_s=600, threads=threads, depth_limit=depth)
        ran = engine.run(np.concatenate([records, long]), options)
        assert (ran.status, ran.words, ran.report["state"]) == (0, "", "finished")
        assert (ran.report["completed"], ran.report["failed"]) == (3012, 0)
