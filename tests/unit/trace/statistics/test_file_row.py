"""The row of the table `traces`, from a file that need not fit into memory."""

from __future__ import annotations

from pathlib import Path

import pandas as pd
import pytest

from drivelab.trace import catalogue, schema
from drivelab.trace.characterise import characterise, characterise_file


@pytest.mark.parametrize("batch_rows", [2, 1 << 18])
def test_a_file_gives_the_same_row_in_any_batches(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, batch_rows: int
) -> None:
    requests, provenance = schema.read_trace(catalogue.path_of("sqlite-inserts"))
    part = requests.slice(0, 300) if batch_rows == 2 else requests
    monkeypatch.setattr(schema, "BATCH_ROWS", batch_rows)
    path = tmp_path / "t.parquet"
    schema.write_trace(part, provenance, path)
    wanted = characterise(part.to_pandas(), provenance, "t")
    pd.testing.assert_frame_equal(characterise_file(path, "t"), wanted)


def test_a_file_without_requests_has_a_row_of_zeros(tmp_path: Path) -> None:
    schema.write_trace(schema.REQUESTS.empty_table(), {}, tmp_path / "t.parquet")
    row = characterise_file(tmp_path / "t.parquet", "t").iloc[0]
    assert (row["requests"], row["footprint_bytes"], row["duration_s"]) == (0, 0, 0)
