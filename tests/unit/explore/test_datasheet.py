"""Compare values of known intervals with ratings."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pandas as pd
import pytest

from drivelab.core.errors import UserError
from drivelab.explore.datasheet import CANNOT_TELL, FAIL, PASS, check
from drivelab.explore.side import Side
from drivelab.plan.places import ROOT
from drivelab.plan.ratings import DataSheet, Rating, load_data_sheet

READS = {"pattern": "random", "read_share": 100, "block_size": "4KiB", "queue_depth": 1}
PLAIN = {"alignment_offset_bytes": 0, "block_size_max_bytes": None, "rate_iops": None, "entropy": None, "beside": None,
         "segments": None}  # fmt: skip


def rating(tmp_path: Path, **entry: Any) -> Rating:
    return sheet(tmp_path, **entry).ratings[0]


def sheet(tmp_path: Path, **entry: Any) -> DataSheet:
    import yaml

    path = tmp_path / "ratings.yaml"
    path.write_text(yaml.safe_dump({"model": "M*", "source": "sheet", "values": [{**READS, **entry}]}))
    return load_data_sheet(path)


def side(metric: str = "iops", low: float = 90, high: float = 110, runs: int = 3, **value: Any) -> Side:
    recordings = [f"r{run}" for run in range(runs)]
    place = {"measurement": "m", "cell_label": "RND 4KiB 100/0"}
    row = {**place, "metric": metric, "value": (low + high) / 2, "interval_low": low, "interval_high": high,
           "verdict": "steady", "reduced": False, "virtual": True, "recordings": recordings} | value  # fmt: skip
    cell = {**place, "protocol": "p", "pattern": "random", "read_share_pct": 100, "block_size_bytes": 4096,
            "threads": 1, "queue_depth": 1, **PLAIN}  # fmt: skip
    others = [{**cell, "queue_depth": 2}, {**cell, "cell_label": "other", "entropy": 0.5}]
    facets = [{"recording": name, "facet": "write cache", "value": "on"} for name in recordings]
    return Side("d", pd.DataFrame([row]), pd.DataFrame(facets), pd.DataFrame(), pd.DataFrame(),
                pd.DataFrame([cell, *others]), Path())  # fmt: skip


@pytest.mark.parametrize(
    ("rated", "verdict"),
    [
        ({"iops": 90}, PASS),
        ({"iops": 91}, CANNOT_TELL),
        ({"iops": 110}, CANNOT_TELL),
        ({"iops": 111}, FAIL),
        ({"iops": 100, "tolerance": "10%"}, PASS),
        ({"iops": 130, "tolerance": "10%"}, FAIL),
    ],
)
def test_a_speed_reaches_its_rating_with_its_whole_interval(
    tmp_path: Path, rated: dict[str, Any], verdict: str
) -> None:
    assert [row["verdict"] for row in check(side(), sheet(tmp_path, **rated))] == [verdict]


@pytest.mark.parametrize(
    ("rated", "verdict"),
    [("110us", PASS), ("109us", CANNOT_TELL), ("90us", CANNOT_TELL), ("89us", FAIL), ("0.11ms", PASS)],
)
def test_a_latency_stays_below_its_rating(tmp_path: Path, rated: str, verdict: str) -> None:
    made = side("p999_latency_us")
    assert [row["verdict"] for row in check(made, sheet(tmp_path, p999_latency=rated))] == [verdict]


def test_a_bandwidth_is_rated_in_powers_of_ten(tmp_path: Path) -> None:
    assert rating(tmp_path, bandwidth="104.8576MB/s").rated == pytest.approx(100)
    assert rating(tmp_path, bandwidth="1GiB/s").rated == 1024


@pytest.mark.parametrize(
    ("value", "rated", "reason"),
    [
        ({"runs": 2}, {}, "2 of at least 3 recordings, so the interval is unknown; raise 'runs'"),
        ({"verdict": "not steady"}, {}, "the value is unreliable: not steady"),
        ({"low": float("nan"), "high": float("nan")}, {}, "the value has no interval"),
        ({}, {"conditions": {"write cache": "off"}}, "write cache is on, not off"),
        ({}, {"conditions": {"link": "16 GT/s"}}, "link is not recorded, not 16 GT/s"),
        ({}, {"queue_depth": 3}, "not measured: no cell has this workload"),
        ({}, {"protocol": "q"}, "not measured: no cell by the protocol q has this workload"),
        ({"metric": "mean_latency_us"}, {}, "not measured: no cell gives this IOPS"),
    ],
)
def test_what_cannot_be_told_has_a_reason(
    tmp_path: Path, value: dict[str, Any], rated: dict[str, Any], reason: str
) -> None:
    (row,) = check(side(**value), sheet(tmp_path, iops=50, **rated))
    assert (row["verdict"], row["reason"]) == (CANNOT_TELL, reason)


@pytest.mark.parametrize(
    ("entry", "words"),
    [
        ({}, "values[0]"),
        ({"iops": 1, "mean_latency": "1us"}, "values[0]"),
        ({"iops": 0}, "values[0].iops"),
        ({"bandwidth": "5"}, "values[0].bandwidth"),
        ({"iops": 1, "tolerance": "100%"}, "values[0].tolerance' is 100%; give less than 100%"),
    ],
)
def test_a_mistake_is_named_with_its_key(tmp_path: Path, entry: dict[str, Any], words: str) -> None:
    with pytest.raises(UserError) as error:
        sheet(tmp_path, **entry)
    assert words in str(error.value)


def test_the_shipped_ratings_are_readable() -> None:
    sheets = [load_data_sheet(path) for path in sorted((ROOT / "config/ratings").glob("*.yaml"))]
    assert sheets
    assert all(rating.limit <= rating.rated for made in sheets for rating in made.ratings if rating.is_minimum)
