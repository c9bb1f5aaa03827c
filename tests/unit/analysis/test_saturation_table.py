from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
from rows import cell, key, table

from drivelab.analysis.values.saturation_table import saturation_table
from drivelab.tables import io

MIB = 1 << 20


def soak(iops: list[float], slice_s: float = 2.0, **more: Any) -> pd.DataFrame:
    """Return slices of random 4 KiB writes; the first begins 30 s after the measurement."""
    rows, written = [], 0
    for number, rate in enumerate(iops, 1):
        bytes_written = round(rate * slice_s) * 4096
        written += bytes_written
        rows.append({
            **key(), "kind": "soak", "round": number, **cell(rate, runtime_s=slice_s), "range_start": 0.0,
            "range_share": 1.0,
            "elapsed_s": 30 + slice_s * (number - 1), "bytes_written": bytes_written, "bytes_written_total": written,
            **more,
        })  # fmt: skip
    return table("cells", rows)


def test_cliff_level_and_fills_of_a_known_course(tmp_path: Path) -> None:
    cells = soak([8000.0] * 10 + [2000.0] * 30)
    result = saturation_table(cells, {"op7": 256 * MIB})
    io.write(result, tmp_path / "saturation.parquet", "saturation")
    row = result.iloc[0]
    before = 10 * 2 * 8000 * 4096
    assert (row["cliff"], row["slices"], row["step"]) == (True, 40, 0)
    assert row["cliff_time_s"] == pytest.approx(20)
    assert row["cliff_bytes"] == before
    assert row["cliff_drive_fills"] == pytest.approx(before / (256 * MIB))
    assert (row["iops_before"], row["iops_after"]) == pytest.approx((8000, 2000))
    assert (row["level_iops"], row["level_variation_pct"], row["level_steady"]) == (2000, 0, True)
    assert row["level_drift_pct"] == pytest.approx(0)
    assert row["level_from_s"] == pytest.approx(64)  # the last fifth of 80 s
    assert row["level_from_drive_fills"] == pytest.approx((before + 22 * 2 * 2000 * 4096) / (256 * MIB))
    assert row["bytes_written"] == cells["bytes_written"].sum()


def test_a_level_that_falls_drifts_and_varies() -> None:
    tail = np.linspace(1000, 900, 20)
    row = saturation_table(soak([4000.0] * 80 + tail.tolist()), {"op7": MIB}).iloc[0]
    assert row["level_drift_pct"] == pytest.approx(100 * (900 - 1000) / 950)
    assert row["level_variation_pct"] == pytest.approx(100 * tail.std(ddof=1) / 950)


@pytest.mark.parametrize(
    ("tail", "steady"),
    [
        ([1000.0, 985, 970, 955, 940], False),  # within the PTS limits, but 6 % lower at its end
        ([1000.0, 995, 990, 985, 980], True),  # falls throughout, but by less than the threshold
        ([1000.0, 940, 985, 955, 970], True),  # scatters as much as the first, without a trend
    ],
)
def test_a_drifting_level_is_not_steady(tail: list[float], steady: bool) -> None:
    (row,) = saturation_table(soak([4000.0] * 20 + tail), {"op7": MIB}).to_dict("records")
    assert row["level_from_s"] == 40
    assert row["level_steady"] is steady


def test_without_a_cliff_its_columns_are_null(tmp_path: Path) -> None:
    result = saturation_table(soak([1000.0] * 20), {"op7": MIB})
    io.write(result, tmp_path / "saturation.parquet", "saturation")
    again = io.read(tmp_path / "saturation.parquet", "saturation").iloc[0]
    assert not again["cliff"]
    assert again[["cliff_time_s", "cliff_bytes", "cliff_drive_fills", "iops_before", "iops_after"]].isna().all()


def test_only_saturating_soaks_have_rows() -> None:
    filled, reads = soak([1000.0] * 9, filled=True), soak([1000.0] * 9, read_share_pct=100)
    assert saturation_table(filled, {"op7": MIB}).empty
    assert saturation_table(reads, {"op7": MIB}).empty
    assert saturation_table(table("cells", []), {}).empty


def test_an_unsound_slice_is_excluded() -> None:
    cells = soak([4000.0] * 10 + [1000.0] * 20)
    cells.loc[25, ["iops", "unsound"]] = [1e9, "not a number: iops is not a finite number"]
    row = saturation_table(cells, {"op7": MIB}).iloc[0]
    assert (row["slices"], row["level_iops"]) == (29, 1000)


def test_an_unknown_capacity_is_refused_with_the_name_of_the_drive() -> None:
    with pytest.raises(ValueError, match="drive 'op7'"):
        saturation_table(soak([1000.0] * 9), {"op28": MIB})
