"""Dependencies of requests on earlier completions."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from made_traces import Row, made_up, table

from drivelab.core.errors import UserError
from drivelab.replay.dependencies import NONE, Dependencies
from drivelab.replay.survey import survey
from drivelab.trace.statistics.batch import Batch

Waits = list[tuple[int, int]]


def waits(kind: str, rows: list[Row], size: int = 100) -> Waits:
    """Return each row's dependency and delay; record numbers are 2 x row + 1."""
    dependencies = Dependencies(kind, survey(table(rows).to_batches(), 512, None))
    dependent: Waits = []
    for at in range(0, len(rows), size):
        # Each batch has its own dictionary, like row groups of a file.
        (batch,) = table(rows[at : at + size]).combine_chunks().to_batches()
        record = 2 * np.arange(at, at + batch.num_rows) + 1
        dependent += zip(*(column.tolist() for column in dependencies.of(batch, Batch(batch), record)), strict=True)
    dependencies.finish()
    return dependent


def expected(rows: list[Row], streams: Sequence[object]) -> Waits:
    result = []
    for at, row in enumerate(rows):
        ended = [
            (earlier.complete_ns, index)
            for index, earlier in enumerate(rows[:at])
            if streams[index] == streams[at] is not None
            and earlier.complete_ns is not None
            and earlier.complete_ns <= row.queue_ns
        ]
        last = max(ended, default=None)
        result.append((NONE, 0) if last is None else (2 * last[1] + 1, row.queue_ns - last[0]))
    return result


def test_a_request_waits_for_the_last_completion_of_its_stream() -> None:
    rows = [
        Row(0, None, 100, process="db", pid=1), Row(10, None, 50, process="db", pid=1),
        Row(20, None, 40, process="db", pid=2), Row(60, None, 200, process="db", pid=1),
        Row(100, None, 300, process="db", pid=1), Row(150, None, None, process="db", pid=2),
        Row(400, None, 500, process="other", pid=1), Row(600, None, 700), Row(800, None, 900),
    ]  # fmt: skip
    assert waits("process", rows) == [
        (NONE, 0), (NONE, 0), (NONE, 0), (3, 10), (1, 0), (5, 110), (NONE, 0), (NONE, 0), (NONE, 0)
    ]  # fmt: skip
    assert waits("trace", rows) == [
        (NONE, 0), (NONE, 0), (NONE, 0), (3, 10), (1, 0), (1, 50), (9, 100), (13, 100), (15, 100)
    ]  # fmt: skip
    assert waits("none", rows) == [(NONE, 0)] * 9


@given(made_up(most=40, complete=True), st.sampled_from([1, 2, 5, 100]), st.data())
def test_dependencies_agree_with_a_simple_search(rows: list[Row], size: int, data: st.DataObject) -> None:
    if data.draw(st.booleans()):
        rows = [row._replace(complete_ns=None) if index % 5 == 4 else row for index, row in enumerate(rows)]
    streams = [(row.process, row.pid) if row.process or row.pid >= 0 else None for row in rows]
    if any(streams):
        assert waits("process", rows, size) == expected(rows, streams)
    assert waits("trace", rows, size) == expected(rows, [0] * len(rows))


def test_unknown_dependencies_are_refused() -> None:
    with pytest.raises(UserError, match="has no completions, so it does not show which request another waited for"):
        waits("trace", [Row(0)])
    with pytest.raises(UserError, match="does not record the process of any request"):
        waits("process", [Row(0, None, 5), Row(7, None, 9)])
