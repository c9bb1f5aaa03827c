"""The decoder under the compiler's sanitizers: no byte sequence causes an invalid memory access."""

from __future__ import annotations

import os
import random
import struct
import subprocess
from pathlib import Path

import numpy as np
import pytest
from trace_files import HEADER

from drivelab.native import COMPILER, SOURCES
from drivelab.trace import records

CAPTURES = 150
KINDS = (1, 1, 1, 2, 3, 4, 6, 7, 7, 7, 8, 8, 8, 13, 15, 0, 99, 1 | 256, 8 | 256)
READ, WRITE, FLUSH, PASSTHROUGH, NOTIFY, DISCARD, FUA = (1 << (16 + bit) for bit in (0, 1, 2, 9, 10, 13, 15))
CATEGORIES = (READ, WRITE, WRITE, WRITE | FLUSH, READ | FLUSH, WRITE | FUA, WRITE | DISCARD, NOTIFY, PASSTHROUGH)


@pytest.fixture(scope="module")
def program(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Build the decoder as a program that ends with a message at the first invalid access or leak."""
    path = tmp_path_factory.mktemp("native") / "decode"
    options = [option for option in COMPILER if option not in ("-fPIC", "-shared", "-O3")]
    sources = [str(source) for source in SOURCES.glob("*.c")]
    subprocess.run(
        [*options, "-O1", "-g", "-fsanitize=address,undefined", "-fno-sanitize-recover=all", f"-I{SOURCES}",
         "-o", str(path), str(Path(__file__).with_name("decode_main.c")), *sources],
        check=True,
    )  # fmt: skip
    return path


def record(dice: random.Random, time_ns: int) -> bytes:
    """Make a mostly plausible record: few places, all kinds of events, sometimes nonsense."""
    version = dice.choice([7, 7, 8])
    sector = dice.getrandbits(64) if dice.random() < 0.02 else dice.choice([8, dice.randint(0, 40)])
    length = dice.getrandbits(32) if dice.random() < 0.02 else dice.choice([0, 512, 1024, 4096, 8192, 65536])
    action = dice.choice(KINDS) | (dice.getrandbits(48) << 16 if dice.random() < 0.03 else dice.choice(CATEGORIES))
    cut = struct.pack(">Q", (sector + dice.randint(0, 9)) % (1 << 64))
    payload = dice.choice([b"", b"", b"", cut, b"fio\0", dice.randbytes(dice.randint(0, 300))])
    pid = dice.randint(0, 20)
    head = struct.pack("<IIQQI", 0x65617400 | version, dice.randint(0, 5), time_ns, sector, length)
    if version == 7:
        tail = struct.pack("<IIIIHH", action & 0xFFFFFFFF, pid, 1 << 20, 0, dice.choice([0, 5]), len(payload))
    else:
        tail = struct.pack("<IQIIHH12x", pid, action, 1 << 20, 0, dice.choice([0, 5]), len(payload))
    return head + tail + payload


def cpu_file(dice: random.Random) -> bytes:
    time_ns, data = dice.randint(0, 100), bytearray()
    for _ in range(dice.choice([1, 5, 50, 400])):
        time_ns = max(0, time_ns + (dice.randint(0, 20) if dice.random() < 0.98 else dice.randint(-50, 10**6)))
        data += record(dice, time_ns)
    if dice.random() < 0.3:
        for _ in range(dice.randint(1, 10)):
            data[dice.randrange(len(data))] = dice.randint(0, 255)
    return bytes(data[: dice.randrange(len(data))] if dice.random() < 0.2 else data)


def test_the_decoder_survives_every_capture(program: Path, tmp_path: Path) -> None:
    decoded = 0
    for seed in range(CAPTURES):
        dice = random.Random(seed)
        paths = [tmp_path / f"{seed}.blktrace.{cpu}" for cpu in range(dice.randint(1, 3))]
        for path in paths:
            path.write_bytes(cpu_file(dice))
        alone = {"FROM_DISPATCH": "1"} if seed % 2 else {}
        done = subprocess.run([program, *paths], env=os.environ | alone, capture_output=True, text=True, check=False)
        assert done.returncode == 0, f"seed {seed}: {done.stderr}"
        decoded += "then no record" not in done.stdout
    assert decoded > CAPTURES / 4, "too few captures get past the first record"


def test_more_requests_than_the_memory_limits(program: Path, tmp_path: Path) -> None:
    """The trace has requests without dispatch, dispatches without completion and flushes without end."""
    number = np.repeat(np.arange(700_000), np.arange(700_000) % 2 + 1)
    flush = number % 7 == 0
    events = np.zeros(len(number), HEADER)
    events["magic"], events["device"], events["pid"] = records.MAGIC | 7, 1 << 20, 1
    events["time_ns"], events["sector"], events["bytes"] = number, number * 8, np.where(flush, 0, 4096)
    kind = np.where(np.diff(number, prepend=-1) > 0, 1, 7)
    events["action"] = kind | np.where(flush, FLUSH | WRITE, READ)
    path = tmp_path / "waiting.blktrace.0"
    path.write_bytes(events.tobytes())
    done = subprocess.run([program, path], capture_output=True, text=True, check=False)
    assert (done.returncode, done.stderr) == (0, "")
    assert done.stdout.startswith("700000 requests")
