"""The decoder against an independent slow one, and a simulated block layer."""

from __future__ import annotations

import random
import re
import shutil
import subprocess
import tempfile
from collections import Counter
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from block_layer import BlockLayer
from block_layer_parts import Setup
from hypothesis import given, settings
from hypothesis import strategies as st
from reference_decoder import decode_slowly
from trace_files import Record, by_cpu, write_records
from whole_traces import read_trace

from drivelab.core.errors import UserError
from drivelab.trace import records
from drivelab.trace.decode import decode

COMPARED = ("events", "events_by_action", "requests", "passthrough", "device_flushes", "unmatched", "lost")
NEIGHBOURHOOD = 32
"""Range of records in a CPU's file that may be out of time order."""
LETTERS = "QQQQQQDDDDDCCCCCMFXXRRGIPUSAB"
LETTERS_WITHOUT_QUEUE = "DDDDDDDCCCCCRGX"
DIRECTIONS = (records.READ, records.WRITE, records.WRITE, records.WRITE | records.DISCARD)
FLAGS = (records.SYNC, records.META, records.FUA, records.READAHEAD, records.FLUSH)
DEVICE_FLUSH = records.READ | records.FLUSH
ZEROES, ZONE_APPEND, ZONE_RESET = (1 << (16 + bit) for bit in (22, 16, 17))
CGROUP = 1 << 8
RARE = (
    records.NOTIFY, records.NOTIFY | 1, records.NOTIFY | 2, records.PASSTHROUGH | 7,
    0, 16, 1 << 30 | 17, 18, 19, 20, 21,
)  # fmt: skip
Outcome = tuple[list[dict[str, Any]], dict[str, Any]]


def decoded(folder: Path) -> Outcome:
    """Return rows and summary of the decoder."""
    with tempfile.TemporaryDirectory() as scratch:
        summary = decode(folder, Path(scratch) / "t.parquet")
        table, _ = read_trace(Path(scratch) / "t.parquet")
    return table.to_pylist(), {name: summary[name] for name in COMPARED}


def check_against_slow_decoder(folder: Path) -> None:
    rows, summary = decode_slowly(folder)
    if rows:
        assert decoded(folder) == (rows, summary)
    else:
        with pytest.raises(UserError, match=r"has no queued request|but no queue and no issue events"):
            decoded(folder)


def random_events(
    dice: random.Random, events: int, version: int, cpus: int, letters: str = LETTERS
) -> list[list[Record]]:
    """Return any events on few sectors; times may be equal or go back a little."""
    time_ns = dice.choice((0, dice.randrange(1 << 62)))
    made = []
    for _ in range(events):
        time_ns += dice.randrange(4)
        letter = dice.choice(letters)
        action = records.ACTIONS.index(letter) | dice.choice(DIRECTIONS)
        action |= sum(flag for flag in FLAGS if dice.random() < 0.15)
        sector, length, payload, kind = dice.randrange(7), 512 * dice.randrange(5), b"", dice.randrange(20)
        if kind == 0:
            action = dice.choice(RARE)
            payload = dice.choice((b"", b"fio\0", b"a name that is too long", b"\xc3\xa4\0junk"))
        elif kind <= 2:
            action, sector, length = action & 0xFF | DEVICE_FLUSH, 0, 0
        elif kind == 3 and version == 8:
            action |= dice.choice((ZEROES, ZEROES, ZONE_APPEND, ZONE_RESET))
            length = length or 512
        elif letter == "X":
            payload = (sector + dice.randrange(4)).to_bytes(8, "big")
        if dice.random() < 0.1:
            action, payload = action | CGROUP, b"cgroupid" + payload
        pid, cpu, error = dice.randint(1, 3), dice.randrange(cpus), dice.choice((0, 0, 0, 5, 121))
        lost = 2 if dice.random() < 0.05 else 0
        made.append(Record(time_ns, action, sector, length, pid, cpu, error, payload, lost))
    return [displaced(events, dice) for events in by_cpu(made, cpus)]


def displaced(events: list[Record], dice: random.Random) -> list[Record]:
    """Shuffle some neighbours out of time order."""
    result = []
    for start in range(0, len(events), NEIGHBOURHOOD):
        part = events[start : start + NEIGHBOURHOOD]
        if dice.random() < 0.5:
            dice.shuffle(part)
        result += part
    return result


@pytest.mark.parametrize(
    ("most", "letters", "examples"), [(80, LETTERS, 150), (600, LETTERS, 30), (300, LETTERS_WITHOUT_QUEUE, 60)]
)
def test_events_of_any_kind(most: int, letters: str, examples: int) -> None:
    @settings(max_examples=examples, deadline=None)
    @given(st.randoms(use_true_random=True), st.integers(1, most), st.sampled_from((7, 8)), st.integers(1, 4))
    def check(dice: random.Random, events: int, version: int, cpus: int) -> None:
        made = random_events(dice, events, version, cpus, letters)
        with tempfile.TemporaryDirectory() as folder:
            check_against_slow_decoder(write_records(Path(folder), *made, version=version))

    check()


@st.composite
def setups(draw: st.DrawFn) -> Setup:
    has_queue = draw(st.sampled_from((True, True, True, False)))
    switches = ("device_fua", "merges", "flushes", "requeues", "partial", "errors", "discard_ranges", "refusals")
    return Setup(
        version=draw(st.sampled_from((7, 8))), cpus=draw(st.integers(1, 4)), processes=draw(st.integers(1, 4)),
        bios=draw(st.integers(1, 60)), depth=draw(st.integers(1, 16)), split_sectors=draw(st.integers(8, 40)),
        has_queue=has_queue, **{name: draw(st.booleans()) for name in switches},
    )  # fmt: skip


def check_truth(machine: BlockLayer, folder: Path) -> None:
    setup = machine.setup
    files = [displaced(events, machine.dice) for events in by_cpu(machine.records, setup.cpus)]
    write_records(folder, *files, version=setup.version)
    for rows, summary in (decode_slowly(folder), decoded(folder)):
        assert rows == machine.rows
        assert summary["unmatched"] == {}
        assert summary["lost"] == {}
        assert summary["events"] == len(machine.records)
        assert summary["device_flushes"] == machine.device_flushes


@settings(max_examples=200, deadline=None)
@given(setups(), st.integers(0, 1 << 32))
def test_both_decoders_reproduce_a_block_layer(setup: Setup, seed: int) -> None:
    machine = BlockLayer(setup, seed)
    with tempfile.TemporaryDirectory() as folder:
        if machine.rows:
            check_truth(machine, Path(folder))


@settings(max_examples=50, deadline=None)
@given(setups(), st.integers(0, 1 << 32))
def test_repeated_sectors_are_matched_in_order(setup: Setup, seed: int) -> None:
    machine = BlockLayer(replace(setup, repeats=True, flushes=False, refusals=False), seed)
    with tempfile.TemporaryDirectory() as folder:
        check_truth(machine, Path(folder))


@settings(max_examples=30, deadline=None)
@given(setups(), st.integers(0, 1 << 32), st.integers(1, 9))
def test_the_split_into_cpu_files_does_not_matter(setup: Setup, seed: int, files: int) -> None:
    machine = BlockLayer(setup, seed)
    if not machine.rows:
        return
    outcomes = []
    for cpus in (1, files):
        spread: list[list[Record]] = [[] for _ in range(cpus)]
        for event in machine.records:
            machine.dice.choice(spread).append(event)
        with tempfile.TemporaryDirectory() as folder:
            outcomes.append(decoded(write_records(Path(folder), *spread, version=setup.version)))
    assert outcomes[0] == outcomes[1]


@pytest.mark.skipif(shutil.which("blkparse") is None, reason="blkparse is not installed")
@settings(max_examples=20, deadline=None)
@given(setups(), st.integers(0, 1 << 32))
def test_blkparse_counts_the_same_events(setup: Setup, seed: int) -> None:
    machine = BlockLayer(replace(setup, version=7, cgroups=False), seed)
    if not machine.rows:
        return
    with tempfile.TemporaryDirectory() as folder:
        write_records(Path(folder), *by_cpu(machine.records, setup.cpus))
        text = subprocess.run(
            ["blkparse", "-q", "-i", "trace", "-f", "event %a\n"],
            cwd=folder, capture_output=True, text=True, check=True,
        ).stdout  # fmt: skip
        counted = Counter(re.findall(r"^event\s+(\w+)$", text, re.MULTILINE))
        ours = decoded(Path(folder))[1]["events_by_action"]
    assert {letter: ours.get(letter, 0) for letter in "QGDCMFXR"} == {letter: counted[letter] for letter in "QGDCMFXR"}
