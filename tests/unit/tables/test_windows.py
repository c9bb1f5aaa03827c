"""Windows of steady state, and labels that are unique in a recording and short."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from rows import key, loop, soak, table

from drivelab.criteria.steady_state import determine
from drivelab.tables import io
from drivelab.tables.labels import KINDS, UNITS, cell_labels
from drivelab.tables.windows import first_whole_round, windows_table

RND_4K_W = {"pattern": "random", "read_share": 0, "block_size_bytes": 4096, "metric": "iops"}
RND_64K_MIX = {"pattern": "random", "read_share": 65, "block_size_bytes": 65536, "metric": "bandwidth_mib_s"}
S4600 = [90000.0, 75000.0, 60546.0, 60013.0, 62932.0, 61774.0, 61061.0]


def criterion(*track: dict[str, Any]) -> dict[str, Any]:
    return {"window": 5, "max_rounds": 25, "data_excursion": 0.2, "slope_excursion": 0.1, "track": list(track)}


def two_cells(first: list[float], second: list[float], gaps: tuple[tuple[int, int], ...] = ()) -> pd.DataFrame:
    """Return a loop over both tracked cells; `gaps` are the (round, cell) just after an interruption."""
    rows = loop(first) + [row | {"cell": 1} for row in loop(second, read_share=65, size=65536)]
    for row in rows:
        row["after_gap"] = (row["round"], row.get("cell", 0)) in gaps
    return table("cells", rows)


def test_a_loop_of_one_tracked_variable(tmp_path: Path) -> None:
    cells = table("cells", loop(S4600) + loop([5.0] * 7, read_share=100))
    (row,) = windows_table(cells, {0: criterion(RND_4K_W)}).to_dict("records")
    assert (row["variable"], row["metric"], row["unit"]) == ("RND 4KiB 0/100", "iops", "IOPS")
    assert (row["reached"], row["rounds"], row["window_start"], row["window_end"]) == (True, 7, 3, 7)
    assert row["values"] == S4600[2:]
    assert row["average"] == pytest.approx(61265.2)
    assert row["intercept"] + 3 * row["slope"] == pytest.approx(determine(S4600[2:]).intercept + row["slope"])
    assert {name: row[name] for name in key()} == key() | {"run": 1}
    io.write(windows_table(cells, {0: criterion(RND_4K_W)}), tmp_path / "w", "steady_state")


def test_one_metric_may_be_tracked_beside_another_of_the_same_cell() -> None:
    latency = RND_4K_W | {"metric": "mean_latency_us"}
    result = windows_table(table("cells", loop(S4600)), {0: criterion(RND_4K_W, latency)})
    assert result["metric"].tolist() == ["iops", "mean_latency_us"]
    assert result["unit"].tolist() == ["IOPS", "us"]


@pytest.mark.parametrize(
    ("gaps", "first_whole"),
    [((), 1), (((1, 0),), 1), (((4, 0),), 4), (((4, 1),), 5), (((2, 1), (4, 0)), 4), (((2, 0), (4, 1)), 5)],
)
def test_the_window_lies_wholly_after_interruptions(gaps: tuple[tuple[int, int], ...], first_whole: int) -> None:
    cells = two_cells([100.0] * 9, [50.0] * 9, gaps)
    assert first_whole_round(cells) == first_whole
    result = windows_table(cells, {0: criterion(RND_4K_W, RND_64K_MIX)})
    assert result["window_start"].tolist() == [first_whole] * 2
    assert result["reached"].all()


def test_steps_and_recordings_are_separate() -> None:
    rows = loop(S4600, step=0) + loop([10.0] * 5, step=2) + soak([7.0] * 9, step=1) + loop(S4600, where=key("op28"))
    result = windows_table(table("cells", rows), {0: criterion(RND_4K_W), 2: criterion(RND_4K_W)})
    assert result[["drive", "step", "window_end"]].values.tolist() == [["op7", 0, 7], ["op28", 0, 7], ["op7", 2, 5]]


def test_a_recording_without_loops_has_no_windows(tmp_path: Path) -> None:
    result = windows_table(table("cells", soak([7.0] * 9)), {})
    assert result.empty
    io.write(result, tmp_path / "w", "steady_state")
    assert windows_table(table("cells", []), {0: criterion(RND_4K_W)}).empty


@pytest.mark.parametrize(
    "rows",
    [
        loop(S4600, read_share=100),  # the tracked cell is missing
        loop(S4600) + loop(S4600, threads=8),  # twice in a round
    ],
)
def test_a_tracked_variable_needs_exactly_one_cell_per_round(rows: list[dict[str, Any]]) -> None:
    with pytest.raises(ValueError, match=r"(4KiB 0/100.*|4096) must have exactly one cell in each round"):
        windows_table(table("cells", rows), {0: criterion(RND_4K_W)})


def test_a_missing_round_splits_the_loop() -> None:
    values = [100.0, 100.0, 50.0, 100.0, 100.0, 100.0, 100.0, 100.0, 100.0]
    rows = [row for row in loop(values) if row["round"] != 3]
    (result,) = windows_table(table("cells", rows), {0: criterion(RND_4K_W)}).to_dict("records")
    assert (result["reached"], result["window_start"], result["window_end"]) == (True, 4, 8)
    (result,) = windows_table(table("cells", rows[:6]), {0: criterion(RND_4K_W)}).to_dict("records")
    assert (result["reached"], result["rounds"], result["window_start"], result["window_end"]) == (False, 7, 4, 7)
    rough = [100.0, 10.0, 100.0, 10.0, 100.0, 10.0, 100.0, 10.0]
    rows = [row for row in loop(rough) if row["round"] != 7]
    (result,) = windows_table(table("cells", rows), {0: criterion(RND_4K_W)}).to_dict("records")
    assert (result["reached"], result["window_start"], result["window_end"]) == (False, 2, 6), (
        "the last stretch that is as long as a window"
    )


ALL = {"streams": "all", "metric": "iops"}


def test_every_stream_is_tracked_by_itself() -> None:
    cells = two_cells([100.0] * 5, [50.0, 50.0, 80.0, 50.0, 50.0])
    result = windows_table(cells, {0: criterion(ALL)})
    assert sorted(result["variable"]) == ["RND 4KiB 0/100", "RND 64KiB 65/35"]
    assert not result["reached"].any(), "one variable that is not steady prevents steady state"


def sweep() -> pd.DataFrame:
    steady = [row | {"threads": 4, "queue_depth": 8} for row in loop([100.0] * 5)]
    rough = [row | {"threads": 1, "queue_depth": 8, "cell": 1} for row in loop([9.0, 5.0, 9.0, 5.0, 9.0])]
    return table("cells", steady + rough)


def test_a_sweep_is_tracked_at_the_given_demand() -> None:
    (row,) = windows_table(sweep(), {0: criterion(ALL | {"threads": 4, "queue_depth": 8})}).to_dict("records")
    assert (row["variable"], row["reached"], row["values"]) == ("RND 4KiB 0/100 T4Q8", True, [100.0] * 5)


def test_a_sweep_may_be_tracked_as_a_whole() -> None:
    result = windows_table(sweep(), {0: criterion(ALL)})
    assert sorted(result["variable"]) == ["RND 4KiB 0/100 T1Q8", "RND 4KiB 0/100 T4Q8"]
    assert not result["reached"].any()


RANGE = {"workload": "RND 4KiB-64KiB 0/100", "block_size_max_bytes": 65536}


def test_a_range_of_sizes_differs_from_its_smallest_size() -> None:
    plain, range_ = loop([100.0] * 5), [row | {"cell": 1} for row in loop([7.0] * 5)]
    cells = table("cells", plain + [row | RANGE for row in range_])
    result = windows_table(cells, {0: criterion(RND_4K_W, RND_4K_W | {"block_size_max_bytes": 65536})})
    assert result["variable"].tolist() == ["RND 4KiB 0/100", "RND 4KiB-64KiB 0/100"]
    assert result["average"].tolist() == [100.0, 7.0]
    first = cells[cells["round"] == 1]
    assert cell_labels(first) == ["RND 4KiB 0/100", "RND 4KiB-64KiB 0/100"]


def test_other_stop_rules_have_no_window() -> None:
    cells = table("cells", loop(S4600) + loop(S4600, step=1))
    assert windows_table(cells, {0: {"rounds": 7}, 1: {"threshold": 0.05, "metric": "iops"}}).empty


def test_cold_rounds_are_excluded() -> None:
    """The window must begin after the cold round; rounds keep their numbers, also in the fit."""
    values = [9999.0, 100.0, 101.0, 102.0, 103.0, 104.0]
    rows = [row | {"cold": row["round"] == 1} for row in loop(values)]
    (result,) = windows_table(table("cells", rows), {0: criterion(RND_4K_W)}).to_dict("records")
    assert (result["reached"], result["rounds"], result["window_start"], result["window_end"]) == (True, 6, 2, 6)
    assert result["values"] == values[1:]
    assert [result["intercept"] + result["slope"] * number for number in range(2, 7)] == pytest.approx(values[1:])


def test_a_window_after_cold_rounds_and_an_interruption() -> None:
    rows = [row | {"cold": row["round"] <= 2, "after_gap": row["round"] == 5} for row in loop([100.0] * 9)]
    (result,) = windows_table(table("cells", rows), {0: criterion(RND_4K_W)}).to_dict("records")
    assert (result["reached"], result["window_start"], result["window_end"]) == (True, 5, 9)


def test_threads_and_queue_depth_select_cells_and_other_keys_match_any() -> None:
    rows = loop([100.0] * 5, threads=32, queue_depth=32)
    rows += [row | {"cell": 1} for row in loop([7.0] * 5, threads=1, queue_depth=32)]
    cells = table("cells", rows)
    for variable in ({"threads": 32, "queue_depth": 32}, {"threads": 32}, {"read_share": 0, "threads": 32}):
        (result,) = windows_table(cells, {0: criterion(variable | {"metric": "iops"})}).to_dict("records")
        assert (result["variable"], result["average"]) == ("RND 4KiB 0/100 T32Q32", 100.0)
    with pytest.raises(ValueError, match="T32Q32 and RND 4KiB 0/100 T1Q32 must have exactly one cell"):
        windows_table(cells, {0: criterion({"queue_depth": 32, "metric": "iops"})})
    with pytest.raises(ValueError, match="the cell with threads 2 must have exactly one cell in each round"):
        windows_table(cells, {0: criterion({"threads": 2, "metric": "iops"})})


def labels(rows: list[dict[str, Any]]) -> list[str]:
    result = table("cells", rows).sort_values("step", kind="stable")
    return list(dict.fromkeys(result["cell_label"]))


def turn(value: str, number: int, phase: str = "wait") -> dict[str, Any]:
    return {"phase": phase, "phase_value": value, "phase_pass": number}


def test_the_turn_of_a_repeated_step_is_named_where_it_varies() -> None:
    """Host idle recovery has a loop to steady state, then bursts and a baseline for each wait."""
    rows = loop([1.0])
    for number, wait in enumerate(("5s", "10s"), start=1):
        rows += loop([1.0], step=2 * number - 1, **turn(wait, number))
        rows += soak([1.0], step=2 * number, **turn(wait, number))
    assert labels(rows) == [
        "RND 4KiB 0/100", "RND 4KiB 0/100, wait 5s", "RND 4KiB 0/100, wait 5s soak", "RND 4KiB 0/100, wait 10s",
        "RND 4KiB 0/100, wait 10s soak",
    ]  # fmt: skip


def test_a_turn_visible_in_the_workload_is_not_named() -> None:
    rows = [row for number, share in enumerate((100, 0), start=1)
            for row in loop([1.0], step=number, read_share=share, **turn(f"{share}%", number, "reads"))]  # fmt: skip
    assert labels(rows) == ["RND 4KiB 100/0", "RND 4KiB 0/100"]


def test_turns_with_one_value_are_named_by_their_pass() -> None:
    rows = [row for number in (1, 2, 3)
            for row in loop([1.0], step=number, **turn("45min", number, "steady"))]  # fmt: skip
    assert labels(rows) == [f"RND 4KiB 0/100, steady {number}" for number in (1, 2, 3)]
    without = [row | {"phase_value": None} for row in rows]
    assert labels(without) == labels(rows)


def test_points_are_labelled_by_name_and_not_by_load() -> None:
    """The load of MAX differs between drives; only equal labels can be compared."""
    sweep = [row | {"cell": cell} for cell, threads in enumerate((8, 1))
             for row in loop([1.0], threads=threads, read_share=65)]  # fmt: skip
    points = [row for step, (point, threads) in enumerate((("max", 8), ("min", 1)), start=1)
              for row in soak([1.0], step=step, threads=threads, read_share=65, point=point,
                              **turn(point, step, "point"))]  # fmt: skip
    assert labels(sweep + points) == [
        "RND 4KiB 65/35 T8Q8", "RND 4KiB 65/35 T1Q8", "RND 4KiB 65/35, MAX", "RND 4KiB 65/35, MIN",
    ]  # fmt: skip
    assert labels(points) == ["RND 4KiB 65/35, MAX", "RND 4KiB 65/35, MIN"]


_PLACES = st.fixed_dictionaries(
    {
        "run": st.integers(1, 2), "step": st.integers(0, 3), "kind": st.sampled_from(["loop", "soak"]),
        "cell": st.integers(0, 2), "threads": st.integers(1, 2), "phase_pass": st.integers(1, 2),
        "phase": st.sampled_from([None, "wait"]), "phase_value": st.sampled_from(["5s", "10s"]),
        "point": st.sampled_from([None, "max", "min"]), "workload": st.sampled_from(["A", "B"]),
    }
)  # fmt: skip


@settings(max_examples=30, deadline=None)
@given(st.lists(_PLACES, max_size=12, unique_by=lambda place: (place["run"], place["step"])))
def test_labels_are_unique_except_for_continued_soaks(found: list[dict[str, Any]]) -> None:
    rows = [
        {**key(run=place["run"]), **place, **({} if place["phase"] else {"phase_value": None, "phase_pass": None})}
        for place in found
    ]
    places = table("cells", rows)
    labelled = dict(zip(zip(places["run"], places["step"], strict=True), places["cell_label"], strict=True))
    for (run, step), name in labelled.items():
        first = next(row for row in rows if (row["run"], row["step"]) == (run, step))
        assert name.startswith(first["workload"])
        alike = sorted(other for (of, other), label in labelled.items() if of == run and label == name)
        assert alike == list(range(min(alike), max(alike) + 1)), (
            "a continued soak has no step with another label in between"
        )
        assert len(alike) == 1 or first["kind"] == "soak"


def test_a_continued_soak_keeps_its_label_and_a_later_one_gets_another() -> None:
    """In PTS write saturation, a second soak of the workload records the full histogram."""
    going_on = soak([1.0], step=0) + soak([1.0], step=1)
    assert labels(going_on) == ["RND 4KiB 0/100"]
    coming_back = going_on + soak([1.0], step=2, read_share=100) + soak([1.0], step=3)
    assert labels(coming_back) == ["RND 4KiB 0/100", "RND 4KiB 100/0", "RND 4KiB 0/100 soak"]


def test_unsound_cells_are_labelled_like_sound_ones() -> None:
    lost = [row | {"cell": 1} for row in loop([1.0], threads=4, unsound="no I/O: none")]
    assert labels(loop([1.0], threads=1) + lost) == ["RND 4KiB 0/100 T1Q8", "RND 4KiB 0/100 T4Q8"]


def test_every_metric_has_a_kind_and_a_unit() -> None:
    assert KINDS.keys() == UNITS.keys()
    assert set(KINDS.values()) == {"speed", "time", "score"}
