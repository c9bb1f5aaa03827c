"""What reads of a verified replay may return, against a model that looks at one block of one read at a time."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from drivelab.replay.verify import read_check
from drivelab.replay.verify.data_requests import DISCARD, FLUSH, NEVER, PENDING, READ, WRITE, ZEROES, Requests
from drivelab.replay.verify.read_check import READ_FAULTS, judge_reads
from drivelab.replay.verify.read_origins import FOREIGN, MIXED, UNSEEN
from drivelab.replay.verify.read_origins import ZEROES as ONLY_ZEROES
from drivelab.replay.verify.written_data import BLOCK_BITS

BLOCK = 512
BLOCKS = 6
Row = tuple[int, int, int, int, int]
"""Operation, first block, blocks, issue and completion; the times may be NEVER and PENDING."""


def requests_of(rows: list[Row]) -> Requests:
    operation, first, count, issue_ns, complete_ns = (np.array(column, np.int64) for column in zip(*rows, strict=True))
    return Requests(operation, first * BLOCK, (first + count) * BLOCK, issue_ns, complete_ns,
                    np.zeros(len(rows), np.bool_), np.ones(len(rows), np.bool_))  # fmt: skip


def word_of(request: int, number: int) -> int:
    return 1 + (request << BLOCK_BITS | number)


def judged(rows: list[Row], *words: int) -> dict[str, Any]:
    return judge_reads(requests_of(rows), np.array(words, np.uint64), BLOCK)


def faults(result: dict[str, Any]) -> dict[str, int]:
    return {fault: result[fault] for fault in READ_FAULTS if result[fault]}


def fault_of(rows: list[Row], read: Row, block: int, word: int) -> tuple[str | None, bool]:
    """Return the fault of one block that a read returned, and whether it had to have certain data."""
    _, _, _, issued, completed = read
    changes = [
        (index, row) for index, row in enumerate(rows)
        if row[0] in (WRITE, DISCARD, ZEROES) and row[3] != NEVER and row[1] <= block < row[1] + row[2]
    ]  # fmt: skip
    before = [row for _, row in changes if row[0] != DISCARD and row[4] <= issued]

    def followed(change: Row) -> bool:
        return any(change[4] < other[3] for other in before)

    begun = [(index, row) for index, row in changes if row[3] <= completed]
    if any(row[0] == DISCARD and not followed(row) for _, row in begun):
        return None, False
    known = 0 < word < FOREIGN
    index, number = (word - 1) >> BLOCK_BITS, (word - 1) & ((1 << BLOCK_BITS) - 1)
    if known and index < len(rows):
        operation, first, count, issue, _ = rows[index]
        if operation == WRITE and issue != NEVER and number < count and first + number != block:
            return "misdirected", bool(before)
    if not before:
        return None, False
    if word == MIXED:
        return (None if any(row[4] > issued for _, row in begun) else "torn"), True
    right = {word_of(index, block - row[1]) for index, row in changes if row[0] == WRITE and not followed(row)}
    if any(row[0] == ZEROES and not followed(row) for _, row in begun):
        right.add(int(ONLY_ZEROES))
    return (None if word in right else "lost"), True


@st.composite
def replays(draw: st.DrawFn) -> tuple[list[Row], list[int]]:
    """Draw requests with small times, so that many are equal, and what each read block returned."""
    rows: list[Row] = []
    for _ in range(draw(st.integers(1, 14))):
        first = draw(st.integers(0, BLOCKS - 1))
        issue = draw(st.one_of(st.just(NEVER), st.integers(0, 12), st.integers(0, 12)))
        taken = draw(st.one_of(st.none(), st.integers(0, 5), st.integers(0, 5)))
        rows.append(
            (
                draw(st.sampled_from([READ, READ, WRITE, WRITE, DISCARD, ZEROES, FLUSH])),
                first,
                draw(st.integers(1, BLOCKS - first)),
                int(issue),
                int(PENDING if taken is None or issue == NEVER else issue + taken),
            )
        )
    written = [word_of(index, number) for index, row in enumerate(rows) for number in range(row[2] + 1)]
    special = [int(code) for code in (UNSEEN, FOREIGN, ONLY_ZEROES, MIXED)]
    blocks = sum(row[2] for row in rows if row[0] == READ)
    return rows, draw(st.lists(st.sampled_from(written + special), min_size=blocks, max_size=blocks))


@settings(deadline=None, max_examples=400)
@given(replays(), st.sampled_from([1, 7, 1 << 21]))
def test_reads_are_judged_as_by_the_model(replay: tuple[list[Row], list[int]], most_pairs: int) -> None:
    rows, words = replay
    expected = dict.fromkeys(("checked_blocks", "required_blocks", "unseen_blocks", *READ_FAULTS), 0)
    place = 0
    for row in rows:
        if row[0] != READ:
            continue
        for block in range(row[1], row[1] + row[2]):
            word, place = words[place], place + 1
            if row[4] == PENDING:
                continue
            if word == UNSEEN:
                expected["unseen_blocks"] += 1
                continue
            fault, required = fault_of(rows, row, block, word)
            expected["checked_blocks"] += 1
            expected["required_blocks"] += required
            if fault is not None:
                expected[fault] += 1
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(read_check, "_MOST_PAIRS", most_pairs)
        result = judged(rows, *words)
    examples = result.pop("examples")
    assert result == expected
    assert len(examples) == sum(min(expected[fault], 3) for fault in READ_FAULTS)


@pytest.mark.parametrize(
    ("word", "words"),
    [
        (word_of(0, 2), "lost: block at 1024 B, read at 0.000007 s (request 3): expected the write of 0.000003 s "
         "(request 1) or newer data, returned the write of 0.000001 s (request 0)"),
        (int(ONLY_ZEROES), "returned zeroes"),
        (int(FOREIGN), "returned no data of the replay"),
        (int(MIXED), "torn: block at 1024 B"),
        (word_of(0, 1), "returned the write of 0.000001 s (request 0) to the block at 512 B"),
    ],
)  # fmt: skip
def test_a_fault_says_where_when_and_what(word: int, words: str) -> None:
    rows = [(WRITE, 0, 4, 1000, 2000), (WRITE, 2, 1, 3000, 4000), (WRITE, 5, 1, 3000, 4000), (READ, 2, 1, 7000, 8000)]
    (example,) = judged(rows, word)["examples"]
    assert words in example


def test_a_read_beside_a_write_may_return_both_states_and_parts_of_them() -> None:
    rows = [(WRITE, 0, 1, 1, 2), (WRITE, 0, 1, 5, 20), (READ, 0, 1, 10, 12), (READ, 0, 1, 21, 22)]
    for first in (word_of(0, 0), word_of(1, 0), int(MIXED)):
        assert faults(judged(rows, first, word_of(1, 0))) == {}
    assert faults(judged(rows, word_of(0, 0), word_of(0, 0))) == {"lost": 1}
    assert faults(judged(rows, word_of(0, 0), int(MIXED))) == {"torn": 1}
    assert faults(judged(rows, int(ONLY_ZEROES), word_of(1, 0))) == {"lost": 1}
