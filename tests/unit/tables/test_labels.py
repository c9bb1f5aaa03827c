"""Labels of cells are unique in a recording and short."""

from __future__ import annotations

from typing import Any

from hypothesis import given, settings
from hypothesis import strategies as st
from rows import key, loop, soak, table

from drivelab.tables.labels import KINDS, UNITS


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
