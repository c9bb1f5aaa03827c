from __future__ import annotations

import csv
from pathlib import Path
from typing import Any

import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st

from drivelab.analysis.deltas import delta, deltas_table
from drivelab.tables import io

from .rows import table

GOLDEN = Path(__file__).parents[2] / "golden/solidigm_p41_plus.csv"
positive = st.floats(1e-3, 1e6)


def row(drive: str, value: float, **changed: Any) -> dict[str, Any]:
    return {
        "drive": drive, "measurement": "pts-iops", "protocol": "pts-iops", "cell_label": "RND 4KiB 0/100",
        "metric": "iops", "kind": "speed", "unit": "IOPS", "value": value, "n": 3, "spread_low": 0.99 * value,
        "spread_high": 1.01 * value, "statistic": "window average", "verdict": "steady", "clock": "wall", **changed,
    }  # fmt: skip


def compare(*rows: dict[str, Any], basis: str = "a") -> list[dict[str, Any]]:
    found: list[dict[str, Any]] = deltas_table(table("summary", list(rows)), basis).to_dict("records")
    return found


def test_the_formulas_of_the_guide() -> None:
    assert delta(100, 80, "time") == pytest.approx(0.25)  # a fifth less time is a quarter more speed
    assert delta(80, 100, "time") == pytest.approx(-0.2)
    assert delta(100, 80, "speed") == pytest.approx(-0.2)
    assert delta(80, 100, "score") == pytest.approx(0.25)


@given(positive, positive)
def test_a_speed_and_the_time_it_takes_have_the_same_delta(basis: float, comparison: float) -> None:
    assert delta(1 / basis, 1 / comparison, "time") == pytest.approx(delta(basis, comparison, "speed"))


@pytest.mark.parametrize("values", [(0, 1), (1, 0), (-1, 1), (float("nan"), 1), (1, float("inf"))])
def test_no_delta_without_positive_numbers(values: tuple[float, float]) -> None:
    with pytest.raises(ValueError, match="positive"):
        delta(*values, kind="speed")


def test_unknown_kinds_are_refused() -> None:
    with pytest.raises(ValueError, match="'speeed' is no kind"):
        delta(1, 1, "speeed")


def test_printed_capacities_of_the_p41_plus() -> None:
    with GOLDEN.open(newline="") as file:
        lines = list(csv.DictReader(file))
    rows = [
        row(drive, float(line[drive]), cell_label=f"{line['parameter']} T{line['threads']}Q{line['queue_depth']}",
            measurement=line["table"], unit=line["unit"], kind="score" if line["unit"] == "score" else "speed")
        for line in lines for drive in ("512GB", "1TB", "2TB")
    ]  # fmt: skip
    found = deltas_table(table("summary", rows), "512GB")
    assert len(found) == 2 * len(lines)
    by_name = found.set_index(["cell_label", "comparison"])["delta_pct"]
    expected = {
        ("sequential read T1Q64", "1TB"): 17.857,
        ("sequential write T1Q64", "2TB"): 104.615,
        ("random read T4Q64", "1TB"): 95.652,
        ("random read T4Q64", "2TB"): 239.130,
        ("random write T4Q64", "2TB"): 38.462,
        ("sequential write T1Q1", "1TB"): 68.75,
        ("random read T1Q1", "2TB"): 0.0,
        ("full score TQ", "2TB"): 26.434,
        ("full bandwidth TQ", "1TB"): 18.987,
    }
    for name, percent in expected.items():
        assert by_name[name] == pytest.approx(percent, abs=0.001), name


def test_a_difference_outside_the_spreads_is_certain(tmp_path: Path) -> None:
    (found,) = compare(row("a", 100.0), row("b", 120.0))
    assert (found["basis"], found["comparison"], found["delta_pct"]) == ("a", "b", pytest.approx(20))
    assert (found["certain"], found["note"]) == (True, "")
    io.write(pd.DataFrame([found]), tmp_path / "d", "deltas")


def test_less_time_is_better() -> None:
    (found,) = compare(row("a", 100.0, kind="time"), row("b", 80.0, kind="time"))
    assert found["delta_pct"] == pytest.approx(25)


@pytest.mark.parametrize("other", [101.9, 98.1, 100.0])
def test_spreads_that_overlap_are_not_certain(other: float) -> None:
    (found,) = compare(row("a", 100.0), row("b", other))
    assert (found["certain"], found["note"]) == (False, "the spreads overlap")


def test_a_spread_within_the_other_overlaps() -> None:
    (found,) = compare(row("a", 100.0, spread_low=50.0, spread_high=200.0), row("b", 150.0))
    assert not found["certain"]


@pytest.mark.parametrize("verdict", ["not steady", "tainted", "too few runs", "repeats do not agree", "anything else"])
@pytest.mark.parametrize("side", ["a", "b"])
def test_a_value_that_cannot_be_relied_on_is_not_certain(verdict: str, side: str) -> None:
    rows = [row("a", 100.0), row("b", 200.0)]
    rows["ab".index(side)]["verdict"] = verdict
    (found,) = compare(*rows)
    assert (found["certain"], found["note"]) == (False, f"{side}: {verdict}")


@pytest.mark.parametrize(
    ("changed", "words"),
    [({"reduced": True}, "only one of them is reduced"), ({"virtual": True}, "only one of the drives is virtual"),
     ({"clock": "virtual"}, "one ran on the wall clock, one on the virtual clock")],
)  # fmt: skip
def test_other_conditions_are_not_certain(changed: dict[str, Any], words: str) -> None:
    (found,) = compare(row("a", 100.0), row("b", 200.0, **changed))
    assert (found["certain"], found["note"]) == (False, words)


def test_a_single_recording_says_what_its_spread_is() -> None:
    (found,) = compare(row("a", 100.0, n=1), row("b", 200.0))
    assert found["certain"]
    assert found["note"] == "the spread is that within a recording, not between recordings"


def test_all_doubts_are_named() -> None:
    (found,) = compare(row("a", 100.0, verdict="not steady"), row("b", 100.0, verdict="tainted"))
    assert found["note"] == "a: not steady; b: tainted; the spreads overlap"


def test_a_tainted_value_tells_why() -> None:
    (found,) = compare(row("a", 100.0), row("b", 200.0, verdict="tainted", taint_reason="load: others; steal: 9 %"))
    assert found["note"] == "b: tainted (load: others, steal: 9 %)"


def test_only_the_same_things_are_compared() -> None:
    rows = [
        row("a", 100.0),
        row("a", 10.0, metric="mean_latency_us", kind="time", unit="us"),
        row("b", 120.0, cell_label="RND 8KiB 0/100"),
        row("b", 8.0, metric="mean_latency_us", kind="time", unit="us"),
        row("c", 50.0),
    ]
    found = compare(*rows)
    assert [(one["comparison"], one["metric"], round(one["delta_pct"], 6)) for one in found] == [
        ("b", "mean_latency_us", 25.0),
        ("c", "iops", -50.0),
    ]


def test_the_basis_must_have_been_measured() -> None:
    with pytest.raises(ValueError, match="'z' is not among the drives"):
        compare(row("a", 100.0), basis="z")
    assert compare(basis="a") == []


@pytest.mark.parametrize(
    ("n", "verdict", "note"),
    [
        (2, "in a phase", "too few passes (2, 3 are needed)"),
        (1, "single run", "too few passes (1, 3 are needed)"),
        (1, "too few runs", "b: too few runs"),
        (8, "in a changing phase", "its passes differ by design, so that their spread is a trend: "
                                   "compare them pass by pass"),
        (3, "in a phase", ""),
    ],
)  # fmt: skip
def test_spreads_of_replays_tell_something_from_three_like_passes_on(n: int, verdict: str, note: str) -> None:
    basis = row("a", 100.0, cell_label="replay x")
    (found,) = compare(basis, row("b", 200.0, cell_label="replay x", n=n, verdict=verdict))
    assert (found["certain"], found["note"]) == (not note, note)
