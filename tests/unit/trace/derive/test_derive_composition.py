"""Chains of derivations: the result is a valid trace with its history."""

from __future__ import annotations

import hashlib
from collections.abc import Callable
from pathlib import Path
from tempfile import TemporaryDirectory
from unittest.mock import patch

import numpy as np
import pyarrow.parquet as pq
from hypothesis import given
from hypothesis import strategies as st
from made_traces import Row, batches_of, made_up, read, table, unhurried, write

from drivelab.core.errors import UserError
from drivelab.trace.derive import groups
from drivelab.trace.derive.choice import Criteria, Filter
from drivelab.trace.derive.cut import Cut, DropIdle
from drivelab.trace.derive.groups import DispatchGroups
from drivelab.trace.derive.output import Step, derive
from drivelab.trace.derive.repeat import repeat
from drivelab.trace.parquet_schema import BATCH_ROWS
from drivelab.trace.statistics.batch import Batch

STEPS: dict[str, Callable[[], Step]] = {
    "cut": lambda: Cut(10, 200),
    "drop-idle": lambda: DropIdle(8, 2),
    "filter": lambda: Filter(Criteria(operations=("flush",)), inverted=True),
}


@unhurried
@given(made_up(least=4), st.lists(st.sampled_from([*STEPS, "repeat"]), min_size=1, max_size=4))
def test_any_chain_of_steps_gives_a_valid_trace(rows: list[Row], chain: list[str]) -> None:
    with TemporaryDirectory() as name, batches_of(3):
        path = write(Path(name) / "0.parquet", rows, {"lost": {"overrun": 1}, "capacity_bytes": 1 << 20})
        history = []
        for number, step in enumerate(chain, 1):
            output = Path(name) / f"{number}.parquet"
            try:
                if step == "repeat":
                    repeat(path, output, times=2, written_bytes=None)
                else:
                    derive(path, output, STEPS[step]())
            except UserError as error:
                assert "no request is left" in str(error)  # noqa: PT017 - some chains leave nothing
                return
            digest, path = hashlib.sha256(path.read_bytes()).hexdigest(), output
            history.append(step)
            derived_rows, provenance = read(output)
            assert derived_rows
            assert [row.queue_ns for row in derived_rows] == sorted(row.queue_ns for row in derived_rows)
            for row in derived_rows:
                assert (
                    0
                    <= row.queue_ns
                    <= min(
                        row.dispatch_ns if row.dispatch_ns is not None else row.queue_ns,
                        row.complete_ns if row.complete_ns is not None else row.queue_ns,
                    )
                )
                assert 0 <= row.offset_bytes <= row.offset_bytes + row.length_bytes <= provenance["capacity_bytes"]
            assert [entry["step"] for entry in provenance["derived"]] == history
            last = provenance["derived"][-1]
            assert last["requests"] == len(derived_rows)
            assert last["source"]["sha256"] == digest
            assert provenance["lost"] == {"overrun": 1}
            assert provenance["format"] == 2


def test_few_rows_of_many_batches_fill_row_groups(tmp_path: Path) -> None:
    rows = [Row(time, process="a" if time % 100 else "b") for time in range(3000)]
    with batches_of(100):
        source = write(tmp_path / "a.parquet", rows)
        derive(source, tmp_path / "b.parquet", Filter(Criteria(processes=("b",))))
    assert pq.ParquetFile(source).num_row_groups == 30
    assert pq.ParquetFile(tmp_path / "b.parquet").num_row_groups == 1
    assert BATCH_ROWS > 100


def test_groups_are_followed_in_bounded_memory() -> None:
    with patch.object(groups, "REMEMBERED", 4):
        followed = DispatchGroups()
        for first in range(0, 40, 2):
            rows = [Row(first, dispatch_id=first), Row(first, dispatch_id=first), Row(first, dispatch_id=first + 1)]
            (batch,) = table(rows).combine_chunks().to_batches()
            followed.add(Batch(batch), np.array([True, False, True]))
            assert followed._ids.size <= 4
        assert followed.cut_apart == 20
