"""Damaged and endless captures: a summary or an error, in bounded memory."""

from __future__ import annotations

import random
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from block_layer import BlockLayer
from block_layer_parts import Setup
from hypothesis import given, settings
from hypothesis import strategies as st
from trace_files import HEADER, by_cpu, file_bytes
from whole_traces import read_trace

from drivelab.core.errors import UserError
from drivelab.trace import records
from drivelab.trace.decode import decode

BOUND_MB = 500
EXTREMES = (0, 1, 7, 8, 48, 64, 0xFF, 0xFFFF, 1 << 31, (1 << 32) - 1, 1 << 54, 1 << 55, 1 << 63, (1 << 64) - 1)


def attempt(*files: bytes) -> dict[str, Any] | str:
    """Decode a capture; return its summary or the error message."""
    with tempfile.TemporaryDirectory() as folder:
        for cpu, data in enumerate(files):
            (Path(folder) / f"trace.blktrace.{cpu}").write_bytes(data)
        trace = Path(folder) / "t.parquet"
        refusal = ""
        try:
            summary = decode(Path(folder), trace)
        except UserError as error:
            refusal = str(error)
        if refusal:
            left = sorted(path.name for path in Path(folder).iterdir())
            assert left == [f"trace.blktrace.{cpu}" for cpu in range(len(files))]
            assert "\n" not in refusal
            return refusal
        table, provenance = read_trace(trace)
        times = table["queue_ns"].to_numpy()
        assert (times[1:] >= times[:-1]).all()
        assert times.min() >= 0
        assert table["offset_bytes"].to_numpy().min() >= 0
        assert table.num_rows == summary["requests"]
        assert provenance["unmatched"] == summary["unmatched"]
        assert sum(summary["events_by_action"].values()) == summary["events"]
        return summary


@settings(max_examples=80, deadline=None)
@given(st.lists(st.binary(max_size=400), min_size=1, max_size=3))
def test_any_bytes(files: list[bytes]) -> None:
    attempt(*files)


@settings(max_examples=80, deadline=None)
@given(st.binary(min_size=1, max_size=2000), st.sampled_from((7, 8)))
def test_any_bytes_with_record_magic(data: bytes, version: int) -> None:
    """Put a magic number every 48 or 64 bytes, anything between."""
    size = {7: 48, 8: 64}[version]
    body = bytearray(data)
    for at in range(0, len(body), size):
        body[at : at + 4] = (records.MAGIC | version).to_bytes(4, "little")
        if at + size <= len(body):
            body[at + 46 if version == 7 else at + 50 :][:2] = b"\0\0"
    attempt(bytes(body))


@st.composite
def captures(draw: st.DrawFn) -> tuple[list[bytes], random.Random]:
    cpus = draw(st.integers(1, 3))
    setup = Setup(version=draw(st.sampled_from((7, 8))), cpus=cpus, bios=draw(st.integers(1, 30)), discard_ranges=True)
    machine = BlockLayer(setup, draw(st.integers(0, 1 << 32)))
    return [file_bytes(events, setup.version) for events in by_cpu(machine.records, cpus)], machine.dice


def mutated(data: bytes, dice: random.Random) -> bytes:
    """Flip bits, set extreme numbers, and remove, double, move or cut parts."""
    body = bytearray(data)
    for _ in range(dice.randint(1, 4)):
        if not body:
            break
        start = dice.randrange(len(body))
        end = min(len(body), start + dice.choice((1, 8, 48, 64, 200)))
        match dice.randrange(7):
            case 0:
                body[start] ^= 1 << dice.randrange(8)
            case 1:
                width = dice.choice((2, 4, 8))
                start -= start % width
                value = dice.choice(EXTREMES) & ((1 << 8 * width) - 1)
                body[start : start + width] = value.to_bytes(width, "little")[: len(body) - start]
            case 2:
                del body[start:end]
            case 3:
                body[start:start] = body[start:end]
            case 4:
                body = body[:start]
            case 5:
                step = dice.choice((48, 64))
                body[start - start % step : start - start % step] = body[: step * dice.randint(1, 5)]
            case 6:
                body[start:start] = dice.randbytes(dice.choice((1, 48, 300)))
    return bytes(body)


def impossible(data: bytes, dice: random.Random) -> bytes:
    """Set any time, sector, length, payload length and process in valid records."""
    body, at = bytearray(data), 0
    while at < len(body):
        is_v7 = body[at] == 7
        size, pdu = (48, 46) if is_v7 else (64, 50)
        length = size + int.from_bytes(body[at + pdu : at + pdu + 2], "little")
        for offset, width in ((8, 8), (16, 8), (24, 4), (28, 4), (pdu - 2, 2)):
            if dice.random() < 0.1:
                value = dice.choice((*EXTREMES, dice.getrandbits(64))) & ((1 << 8 * width) - 1)
                body[at + offset : at + offset + width] = value.to_bytes(width, "little")
        at += length
    return bytes(body)


@settings(max_examples=120, deadline=None)
@given(captures())
def test_damaged_captures_and_impossible_numbers(capture: tuple[list[bytes], random.Random]) -> None:
    """First one file of a simulated capture is damaged, then each file has impossible numbers."""
    files, dice = capture
    victim = dice.randrange(len(files))
    attempt(*files[:victim], mutated(files[victim], dice), *files[victim + 1 :])
    attempt(*(impossible(data, dice) for data in files))


@pytest.mark.parametrize("payload_bytes", [0, 1, 7, 8, 15, 16, 17, 4096, 65535])
def test_payloads_of_any_length(payload_bytes: int) -> None:
    machine = BlockLayer(Setup(cpus=1), 1)
    for action in (records.NOTIFY, records.NOTIFY | 1 << 8, 13 | records.READ, 13 | records.READ | 1 << 8):
        odd = [type(event)(event.time_ns, action, 8, 512, payload=b"\xff" * payload_bytes) for event in machine.records]
        mixed = [event for pair in zip(machine.records, odd, strict=True) for event in pair]
        summary = attempt(file_bytes(mixed, 7))
        assert isinstance(summary, dict)
        assert summary["events"] == len(mixed)


def endless(folder: Path, requests: int, pattern: str) -> None:
    """Write requests that never complete; `pattern` says where and up to which event."""
    numbers = np.arange(requests)
    data = np.zeros(2 * requests, HEADER)
    data["magic"] = records.MAGIC | records.VERSIONS[0]
    data["sequence"] = np.arange(2 * requests)
    data["time_ns"] = np.arange(2 * requests)
    data["bytes"] = 4096
    data["action"][0::2] = 1 | records.READ
    data["action"][1::2] = 7 | records.READ
    data["pid"] = 7
    for step in (0, 1):
        data["sector"][step::2] = 8 * numbers if pattern == "everywhere" else 8
    if pattern == "queued":
        data["action"] = 1 | records.WRITE | records.FUA
    if pattern == "merged":  # a hundred requests per dispatch, as without traced completions
        data["action"] = 1 | records.WRITE
        data["action"][99::100] = 7 | records.WRITE
        data["sector"] = 8 * np.arange(2 * requests)
        data["sector"][99::100] -= 8 * 99
        data["bytes"][99::100] = 99 * 4096
    (folder / "trace.blktrace.0").write_bytes(data.tobytes())


PROGRAM = """
import re, sys
from pathlib import Path
from drivelab.trace.decode import decode
summary = decode(Path(sys.argv[1]), Path(sys.argv[1]) / "t.parquet")
peak_kb = re.search(r"VmHWM:\\s*(\\d+)", Path("/proc/self/status").read_text())[1]
print(summary["requests"], int(peak_kb) // 1024)
"""
"""Prints its own peak memory: getrusage would include the parent's."""


@pytest.mark.parametrize("pattern", ["everywhere", "one place", "queued", "merged"])
def test_requests_that_never_end_fit_into_memory(tmp_path: Path, pattern: str) -> None:
    requests = 3_000_000 if pattern == "merged" else 1_000_000
    endless(tmp_path, requests, pattern)
    done = subprocess.run([sys.executable, "-c", PROGRAM, str(tmp_path)], capture_output=True, text=True, check=True)
    decoded, peak_mb = map(int, done.stdout.split())
    assert decoded == {"queued": 2 * requests, "merged": 2 * requests * 99 // 100}.get(pattern, requests)
    assert peak_mb < BOUND_MB
