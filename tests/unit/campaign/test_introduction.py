"""What a plan says of its traces."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from made_traces import Row, write

from drivelab.campaign.introduction import trace_limits


@pytest.mark.parametrize(
    ("provenance", "limits"),
    [
        ({}, []),
        ({"lost": {"overrun": 2}}, ["LOSSY, 2 events are missing from it"]),
        ({"begins": "issue"}, ["replayed from issue times, not queue times"]),
    ],
)
def test_the_plan_says_what_a_trace_lacks(tmp_path: Path, provenance: dict[str, Any], limits: list[str]) -> None:
    assert trace_limits(write(tmp_path / "t.parquet", [Row(0)], provenance)) == limits
