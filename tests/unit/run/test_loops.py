"""Loops: order, stop rules, cold rounds, pauses and points, by the journal and by a drive model with known truth."""

from __future__ import annotations

import itertools
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from made_bench import PROGRESS, Bench, TimedBench
from made_plans import made_plan
from stages import lines, run_stages

from drivelab.core.errors import UserError
from drivelab.run.loop import run_loop
from drivelab.run.points import NAMES, Candidate, choose, demand, resolved

PLAIN = {"pattern": "random", "read_share": 0, "block_size_bytes": 4096, "threads": 1, "queue_depth": 1,
         "runtime_s": 5.0}  # fmt: skip
TWO = [PLAIN, {**PLAIN, "read_share": 100, "runtime_s": 2.0}]


def fields(cells: list[dict[str, Any]] | None = None, rounds: int = 2, **more: Any) -> dict[str, Any]:
    return {"cells": TWO if cells is None else cells, "until": {"rounds": rounds}, **more}


def run(bench: Any, wanted: dict[str, Any], step: int = 0) -> None:
    list(run_loop(bench, PROGRESS, step, wanted))  # type: ignore[arg-type]


class Stopped(Exception):  # noqa: N818 (an event)
    """Raised instead of a kill."""


def test_cold_rounds_come_first_and_are_marked() -> None:
    bench = Bench()
    run(bench, fields(cold_rounds=1))
    assert bench.places() == [(1, 0), (1, 1), (2, 0), (2, 1), (3, 0), (3, 1)]
    assert [line.get("cold", False) for line in bench.journal("cell")] == [True, True] + 4 * [False]
    assert bench.lines[-1] == {"event": "loop", "step": 0, "rounds": 2, "cold_rounds": 1}


def test_all_rounds_of_a_cell_may_come_before_the_next() -> None:
    bench = Bench()
    bench.iops = lambda number: 120.0 if number == 1 else 100.0
    run(bench, {"cells": TWO, "until": {"threshold": 0.05, "metric": "iops"}, "order": "cells"})
    assert bench.places() == [(number, 0) for number in range(1, 6)] + [(number, 1) for number in range(1, 4)]
    assert bench.lines[-1] == {"event": "loop", "step": 0, "rounds": 5, "agreed": True}
    assert bench.journal("cell")[5]["directory"] == "cells/0-round01-cell01"


def test_a_loop_without_a_pause_records_no_pause() -> None:
    bench = Bench()
    run(bench, fields())
    assert bench.idled == []
    assert not any({"pause_s", "idle_ms"} & line.keys() for line in bench.lines)


@pytest.mark.parametrize(
    ("pause", "after"), [({"pause_s": 3.0}, [3.0, 3.0]), ({"duty_cycle": 0.25}, [15.0, 6.0])], ids=["pause", "duty"]
)
def test_a_pause_follows_each_cell_and_the_last(pause: dict[str, Any], after: list[float]) -> None:
    bench = Bench()
    run(bench, fields(**pause))
    assert bench.idled == after * 2
    lines = bench.journal("cell")
    assert [line["pause_s"] for line in lines] == after * 2
    assert [line.get("idle_ms") for line in lines] == [None, *(1000 * seconds for seconds in (after * 2)[:-1])]
    assert bench.lines[-1]["idle_ms"] == 1000 * after[-1]


@given(at=st.integers(0, 11), order=st.sampled_from(["rounds", "cells"]), cold=st.integers(0, 1), idle=st.booleans())
def test_an_interrupted_loop_resumes(at: int, order: str, cold: int, idle: bool) -> None:
    """Stop before cell or pause number `at`: finished cells are kept, and an interrupted pause restarts."""
    wanted = fields(pause_s=3.0, order=order, cold_rounds=cold)
    whole = Bench()
    run(whole, wanted)

    bench = Bench()
    measured, idled, counts = bench.run_cell, bench.device.idle, {"cell": 0, "idle": 0}

    def stopping(kind: str) -> None:
        if (kind == "idle") == idle and counts[kind] == at:
            raise Stopped
        counts[kind] += 1

    def run_cell(*arguments: Any, **named: Any) -> Any:
        stopping("cell")
        return measured(*arguments, **named)

    def pass_time(seconds: float) -> None:
        stopping("idle")
        idled(seconds)

    bench.run_cell, bench.device.idle = run_cell, pass_time  # type: ignore[method-assign]
    try:
        run(bench, wanted)
    except Stopped:
        bench.append("gap", reason="interrupted")
        done = len(bench.cells)
        bench.run_cell, bench.device.idle = measured, idled  # type: ignore[method-assign]
        bench.idled.clear()
        run(bench, wanted)
        assert len(bench.idled) == len(whole.idled) - done + (done > 0), (
            "a pause for each later cell, and the interrupted one"
        )
    assert bench.places() == whole.places()
    paused_last = bench.lines[-2]["event"] == "gap"
    assert bench.lines[-1] == {k: v for k, v in whole.lines[-1].items() if k != "idle_ms" or not paused_last}
    for before, line in itertools.pairwise(bench.lines[:-1]):
        known = before["event"] == "cell" and line["event"] == "cell"
        assert line.get("idle_ms") == (3000.0 if known else None) if line["event"] == "cell" else True
    count = len(bench.lines)
    run(bench, wanted)
    assert len(bench.lines) == count, "a finished loop does nothing"


def test_in_real_time_fios_start_is_part_of_the_pause() -> None:
    bench = TimedBench()
    run(bench, fields(rounds=3, pause_s=3.0))
    assert bench.idle_s() == pytest.approx([3.0] * 5)
    idle_ms = [line.get("idle_ms") for line in bench.journal("cell")]
    assert idle_ms[0] is None
    assert idle_ms[1:] == pytest.approx([3000.0] * 5)
    assert bench.now_s - bench.io[-1][1] == pytest.approx(3.0), "no process starts after the last cell"
    assert bench.lines[-1]["idle_ms"] == pytest.approx(3000.0)
    assert max(bench.idled) <= 1.0, "progress is reported during the pause"


def test_a_delayed_start_does_not_shorten_other_pauses() -> None:
    """Each cell has its own start-up time."""
    bench = TimedBench()
    original = bench.run_cell

    def run_cell(name: str, cell: Any, *more: Any, **named: Any) -> Any:
        bench.start_s = 0.2 if cell.read_share else 0.4
        if len(bench.cells) == 4:
            bench.start_s += 2.0
        return original(name, cell, *more, **named)

    bench.run_cell = run_cell  # type: ignore[method-assign]
    run(bench, fields(rounds=5, pause_s=3.0))
    assert bench.idle_s()[1:3] == pytest.approx([3.0, 3.0])
    assert bench.idle_s()[3] == pytest.approx(5.0)
    assert bench.idle_s()[4:] == pytest.approx([3.0] * 5)
    assert [line.get("idle_ms") for line in bench.journal("cell")][1:] == pytest.approx(
        [1000 * seconds for seconds in bench.idle_s()]
    )


def test_a_repeated_tainted_cell_has_its_pause() -> None:
    bench = TimedBench()
    original = bench.run_cell

    def run_cell(name: str, cell: Any, on_tick: Any, place: Any, before_again: Any, **named: Any) -> Any:
        result, facts = original(name, cell, on_tick, place)
        if len(bench.cells) == 2:
            before_again(facts)
            result, facts = original(f"{name}-again1", cell, on_tick, place)
        return result, facts

    bench.run_cell = run_cell  # type: ignore[assignment]
    run(bench, fields(rounds=2, pause_s=3.0))
    assert bench.idle_s() == pytest.approx([3.0] * 4)
    assert [line.get("idle_ms") for line in bench.journal("cell")][1:] == pytest.approx([3000.0] * 3)


def test_a_pause_shorter_than_a_start_is_recorded_as_measured() -> None:
    bench = TimedBench(start_s=0.5)
    run(bench, fields(pause_s=0.1))
    assert bench.idle_s() == pytest.approx([0.52] * 3)
    assert [line.get("idle_ms") for line in bench.journal("cell")][1:] == pytest.approx([520.0] * 3)


def test_setting_the_host_clock_does_not_lengthen_a_pause() -> None:
    """From the third cell on, fio's time of day is off by an hour."""
    bench = TimedBench()
    original = bench.run_cell

    def run_cell(*arguments: Any, **named: Any) -> Any:
        result, facts = original(*arguments, **named)
        shift = 3600.0 if len(bench.cells) > 2 else 0.0
        return result, {
            **facts,
            "io_started_s": facts["io_started_s"] + shift,
            "io_ended_s": facts["io_ended_s"] + shift,
        }

    bench.run_cell = run_cell  # type: ignore[method-assign]
    run(bench, fields(rounds=3, pause_s=3.0))
    assert bench.idle_s() == pytest.approx([3.0] * 5, abs=0.33)


def test_after_an_interruption_the_pause_restarts_and_the_idle_time_is_unknown() -> None:
    bench = TimedBench()
    run(bench, fields(pause_s=3.0))
    bench.lines = [*bench.lines[:2], {"event": "gap"}]
    bench.io.clear()
    began_s = bench.now_s
    run(bench, fields(pause_s=3.0))
    assert bench.io[0][0] - began_s >= 3.0
    assert [line.get("idle_ms") for line in bench.journal("cell")[2:]] == [None, pytest.approx(3000.0)]


def test_after_an_interrupted_last_pause_its_idle_time_is_unknown() -> None:
    bench = TimedBench()
    run(bench, fields(pause_s=3.0))
    assert bench.lines.pop()["idle_ms"] == pytest.approx(3000.0)
    bench.append("gap")
    began_s = bench.now_s
    run(bench, fields(pause_s=3.0))
    assert bench.now_s - began_s == pytest.approx(3.0)
    assert bench.lines[-1] == {"event": "loop", "step": 0, "rounds": 2}


def test_a_cell_repeated_after_an_interruption_has_an_idle_time() -> None:
    bench = TimedBench()
    run(bench, fields(pause_s=3.0))
    bench.lines = [*bench.lines[:3], {"event": "gap"}]
    original = bench.run_cell

    def run_cell(name: str, cell: Any, on_tick: Any, place: Any, before_again: Any, **named: Any) -> Any:
        before_again(original(name, cell, on_tick, place)[1])
        return original(f"{name}-again1", cell, on_tick, place)

    bench.run_cell = run_cell  # type: ignore[assignment]
    run(bench, fields(pause_s=3.0))
    assert bench.journal("cell")[-1]["idle_ms"] == pytest.approx(3000.0)


SURFACE = {(1, 1): (1000.0, 100.0), (1, 8): (5200.0, 900.0), (4, 8): (9000.0, 4000.0), (8, 8): (9900.0, 7000.0)}
POINT = {"name": "max", "step": 0, "of": {"read_share": 40}, "response_time_us": 5000.0}


def surveyed(until: dict[str, Any], cold: int = 0) -> Bench:
    """Return a bench after a loop over the surface; its first round is ten times as fast, other shares are faster."""
    bench = Bench()
    grid = [{**PLAIN, "read_share": 40, "threads": t, "queue_depth": q} for t, q in SURFACE]
    cells = [*grid, {**PLAIN, "read_share": 100, "threads": 32, "queue_depth": 32}]
    bench.plan.subject["measure"] = [{"loop": {"cells": cells, "until": until, "cold_rounds": cold}}]

    def of_cell(part: int) -> float:
        cell = bench.cells[-1]
        first = (len(bench.cells) - 1) // len(cells) < 1
        value = SURFACE.get((cell.threads, cell.queue_depth), (99999.0, 10.0))[part]
        return value * (10 if first and part == 0 else 1)

    bench.iops, bench.latency_us = lambda number: of_cell(0), lambda number: of_cell(1)
    run(bench, bench.plan.subject["measure"][0]["loop"])
    return bench


STEADY = {"window": 2, "max_rounds": 6, "data_excursion": 0.2, "slope_excursion": 0.1,
          "track": [{"pattern": "random", "read_share": 40, "block_size_bytes": 4096, "threads": 1, "queue_depth": 8,
                     "metric": "iops"}]}  # fmt: skip


@pytest.mark.parametrize(("until", "cold"), [(STEADY, 0), ({"rounds": 2}, 1)], ids=["steady", "cold"])
@pytest.mark.parametrize(("name", "at"), [("max", (4, 8)), ("mid", (1, 8)), ("min", (1, 1))])
def test_points_of_a_surface(until: dict[str, Any], cold: int, name: str, at: tuple[int, int]) -> None:
    """Rounds before the window, cold rounds and cells that do not match the point are ignored."""
    bench = surveyed(until, cold)
    chosen = demand(bench, {**POINT, "name": name})  # type: ignore[arg-type]
    assert chosen == {"threads": at[0], "queue_depth": at[1], "title": f"point {name.upper()}, T{at[0]}Q{at[1]}"}
    assert bench.lines[-1] == {
        "event": "point", "step": 0, "name": name, "of": {"read_share": 40}, "response_time_us": 5000.0,
        "threads": at[0], "queue_depth": at[1], "iops": SURFACE[at][0], "mean_latency_us": SURFACE[at][1],
        "limit_met": True,
    }  # fmt: skip


def test_mid_keeps_the_limit_and_asks_no_more_than_max(monkeypatch: pytest.MonkeyPatch) -> None:
    """Without that, a drive whose IOPS barely grow has a MID far beyond its MAX."""
    flat = {(1, 1): (1000.0, 100.0), (1, 4): (9000.0, 1790.0), (8, 6): (5000.0, 20100.0), (2, 8): (5000.0, 4000.0)}
    monkeypatch.setitem(globals(), "SURFACE", flat)
    for name, at in (("max", (1, 4)), ("mid", (1, 1))):
        chosen = demand(surveyed({"rounds": 2}, cold=1), {**POINT, "name": name})  # type: ignore[arg-type]
        assert (chosen["threads"], chosen["queue_depth"]) == at
    slow = {at: (iops, 9000.0 + iops) for at, (iops, _) in flat.items()}
    monkeypatch.setitem(globals(), "SURFACE", slow)
    chosen = demand(surveyed({"rounds": 2}, cold=1), {**POINT, "name": "mid"})  # type: ignore[arg-type]
    assert (chosen["threads"], chosen["queue_depth"]) == (1, 1)


def test_without_a_window_all_counted_rounds_are_averaged() -> None:
    bench = surveyed({"rounds": 2})
    demand(bench, POINT)  # type: ignore[arg-type]
    assert bench.lines[-1]["iops"] == pytest.approx(9000.0 * 11 / 2)


def test_a_point_is_chosen_once() -> None:
    bench = surveyed({"rounds": 2}, cold=1)
    first = demand(bench, POINT)  # type: ignore[arg-type]
    for line in bench.journal("cell"):
        line["metrics"]["iops"] = 1e6 / line["workload"]["threads"]
    assert demand(bench, POINT) == first  # type: ignore[arg-type]
    assert len(bench.journal("point")) == 1
    assert demand(bench, {**POINT, "response_time_us": 50000.0}) != first, "another limit gives another point"  # type: ignore[arg-type]


def test_a_response_time_limit_that_no_cell_meets_is_recorded() -> None:
    bench = surveyed({"rounds": 1})
    assert demand(bench, {**POINT, "response_time_us": 50.0})["queue_depth"] == 1  # type: ignore[arg-type]
    assert bench.lines[-1]["limit_met"] is False


def test_a_point_that_matches_no_cell_is_refused() -> None:
    with pytest.raises(UserError, match=r"m: no cell of step 1 matches its point 'max' .*read_share 50.*change"):
        demand(surveyed({"rounds": 1}), {**POINT, "of": {"read_share": 50}})  # type: ignore[arg-type]


def test_fields_with_a_point_are_resolved() -> None:
    bench = surveyed({"rounds": 1})
    bare = {key: value for key, value in PLAIN.items() if key not in ("threads", "queue_depth")}
    loop = resolved(bench, {"cells": [bare, {**bare, "threads": 2}], "point": POINT})  # type: ignore[arg-type]
    assert [(cell["threads"], cell["queue_depth"]) for cell in loop["cells"]] == [(4, 8), (2, 8)]
    soak = resolved(bench, {"cell": bare, "point": POINT})  # type: ignore[arg-type]
    assert (soak["cell"]["threads"], soak["cell"]["queue_depth"]) == (4, 8)
    plain = {"cell": PLAIN}
    assert resolved(bench, plain) is plain  # type: ignore[arg-type]


def test_a_resumed_loop_keeps_its_point() -> None:
    bench = surveyed({"rounds": 1})
    bare = {key: value for key, value in PLAIN.items() if key not in ("threads", "queue_depth")}
    at_point = fields([bare], rounds=2, point=POINT)
    run(bench, at_point, step=1)
    assert [cell.label for cell in bench.cells[-2:]] == ["RND 4KiB 0/100 T4Q8"] * 2
    bench.lines = bench.lines[:-2]
    run(bench, at_point, step=1)
    assert len(bench.journal("point")) == 1
    assert bench.journal("cell")[-1]["round"] == 2


SLC = {
    "capacity": "16MiB", "over_provisioning": "28%", "slc_cache": "2MiB", "write_buffer": "64KiB", "dies": 4,
    "command_us": 85, "program_us": 680, "slc_program_us": 150, "copy_us": 230, "idle_after_us": 50_000,
}  # fmt: skip
CACHED_IOPS = 1e6 / 85
"""Limit of the controller; programming the cache is faster: 4 dies in 150 us."""
FULL_IOPS = 4e6 / (680 + 230)
"""Rate with a full cache: each written page requires moving a page out of the cache."""
MAIN_IOPS = 4e6 / 680
"""Rate with a cache that is emptied but not erased (that needs idle time), on a drive with free blocks."""
BURST = {**PLAIN, "queue_depth": 32, "runtime_s": 0.03}
BUFFER_PAGES = 16
BURST_PAGES = 0.03 * CACHED_IOPS
"""353 of the 512 pages of the cache."""


def measured(
    folder: Path, steps: list[dict[str, Any]], condition: dict[str, Any], **model: Any
) -> list[dict[str, Any]]:
    """Measure on the virtual clock and return the journal."""
    return lines(run_stages(made_plan(folder, steps, condition, model={**SLC, **model}), folder))


def bursts(folder: Path, rounds: int = 8, **pause: float) -> list[float]:
    """Return the IOPS of bursts of random writes to a purged drive."""
    journal = measured(folder, [{"loop": fields([BURST], rounds, **pause)}], {})
    return [line["metrics"]["iops"] for line in journal if line["event"] == "cell"]


def test_a_pause_that_empties_the_cache_makes_every_burst_fast(tmp_path: Path) -> None:
    fold_s = BURST_PAGES * 230e-6 / 4
    assert bursts(tmp_path, pause_s=0.05 + 1.5 * fold_s) == pytest.approx([CACHED_IOPS] * 8, rel=0.02)


def test_without_a_pause_bursts_slow_to_the_rate_without_a_cache(tmp_path: Path) -> None:
    """Pages that are overwritten in the cache need no move."""
    iops = bursts(tmp_path)
    assert iops[0] == pytest.approx(CACHED_IOPS, rel=0.02)
    assert iops[1] < 0.95 * CACHED_IOPS, "the cache fills up in the second burst"
    assert iops[2] == pytest.approx(FULL_IOPS, rel=0.06)
    assert iops[-1] == pytest.approx(MAIN_IOPS, rel=0.02)


def test_a_duty_cycle_is_a_pause(tmp_path: Path) -> None:
    """30 ms of 120 ms: of the 90 ms pause, 40 ms follow the drive's idle delay, enough for twice 353 pages."""
    assert bursts(tmp_path, duty_cycle=0.25) == pytest.approx([CACHED_IOPS] * 8, rel=0.02)


def test_longer_waits_recover_more(tmp_path: Path) -> None:
    """Host idle recovery: none before the drive's idle delay, then 4 pages in 230 us, then complete."""
    last = []
    for number, wait_s in enumerate((0.03, 0.055, 0.06, 0.065, 0.1)):
        folder = tmp_path / str(number)
        folder.mkdir()
        last.append(bursts(folder, rounds=12, pause_s=wait_s)[-1])
    assert last[0] == pytest.approx(MAIN_IOPS + BUFFER_PAGES / 0.03, rel=0.05), "only the write buffer is emptied"
    assert last[-1] == pytest.approx(CACHED_IOPS, rel=0.02)
    assert last == sorted(last)
    steps = [(after - before) / CACHED_IOPS for before, after in itertools.pairwise(last)]
    assert all(step > 0.05 for step in steps[:3])


READS = {
    "slc_cache": "0B", "dies": 4, "read_us": 100, "command_us": 10, "transfer_us": 5,
}  # fmt: skip
CEILING_IOPS = 4e6 / 100
FILL = {"fill": {"pattern": "sequential", "block_size_bytes": 131072, "capacity_multiple": 1.0, "queue_depth": 8},
        "rest_s": 1.0}  # fmt: skip


def test_threads_and_depths_drive_the_dies(tmp_path: Path) -> None:
    """Random reads: QD1 is limited by the sum of the times, high QD by the dies; threads and depth are equivalent."""
    grid = [(1, 1), (1, 2), (2, 2), (4, 2), (4, 4), (4, 8), (1, 32), (32, 1)]
    cells = [{**PLAIN, "read_share": 100, "threads": t, "queue_depth": q, "runtime_s": 0.1} for t, q in grid]
    journal = measured(tmp_path, [{"loop": fields(cells, 1)}], FILL, **READS)
    iops = [line["metrics"]["iops"] for line in journal if line["event"] == "cell"]
    assert iops[0] == pytest.approx(1e6 / (10 + 100 + 5), rel=0.01)
    assert iops[:6] == sorted(iops[:6])
    assert 0.88 * CEILING_IOPS < iops[5] <= CEILING_IOPS * 1.01
    assert iops[6:] == pytest.approx([iops[5]] * 2, rel=0.03)


def test_a_soak_runs_at_the_chosen_point(tmp_path: Path) -> None:
    """By Little's law, 32 outstanding reads at the dies' ceiling take 0.8 ms, above the limit of the point."""
    grid = [(1, 1), (1, 4), (4, 4), (4, 8)]
    cells = [{**PLAIN, "read_share": 100, "threads": t, "queue_depth": q, "runtime_s": 0.1} for t, q in grid]
    bare = {key: value for key, value in PLAIN.items() if key not in ("threads", "queue_depth", "runtime_s")}
    soak = {"cell": {**bare, "read_share": 100, "slice_s": 0.05}, "until": {"time_s": 0.2}}
    points = [{**POINT, "of": {"read_share": 100}, "name": name, "response_time_us": 700.0} for name in ("max", "min")]
    steps = [{"loop": fields(cells, 3)}, *({"soak": {**soak, "point": point}} for point in points)]
    journal = measured(tmp_path, steps, FILL, **READS)
    chosen = [line for line in journal if line["event"] == "point"]
    assert [(line["name"], line["threads"], line["queue_depth"]) for line in chosen] == [("max", 4, 4), ("min", 1, 1)]
    assert chosen[0]["mean_latency_us"] == pytest.approx(16e6 / chosen[0]["iops"], rel=0.02)
    soaks = [line["workload"] for line in journal if line["event"] == "soak"]
    assert [(line["threads"], line["queue_depth"]) for line in soaks] == [(4, 4), (1, 1)]


CANDIDATES = [
    Candidate(1, 1, 1000.0, 100.0),
    Candidate(1, 8, 5200.0, 900.0),
    Candidate(4, 8, 9000.0, 4999.0),
    Candidate(8, 8, 9900.0, 5000.0),
]
"""The last candidate has the most IOPS, but its latency is not below 5 ms."""


def test_max_mid_and_min_of_a_surface() -> None:
    assert [choose(name, CANDIDATES, 5000.0) for name in NAMES] == [CANDIDATES[2], CANDIDATES[1], CANDIDATES[0]]
    assert choose("max", CANDIDATES, 5000.1) == CANDIDATES[3], "a longer response time gives a higher max"
    assert choose("max", CANDIDATES[1:], 100.0) == CANDIDATES[1], "if none is fast enough, the fastest"


def test_of_equal_candidates_the_lower_demand_wins() -> None:
    alike = [Candidate(threads, depth, 1000.0, 100.0) for threads, depth in ((4, 1), (2, 2), (8, 8), (1, 4))]
    assert {choose(name, alike, 5000.0) for name in NAMES} == {alike[3]}


def test_an_unknown_point_is_refused() -> None:
    with pytest.raises(ValueError, match="use one of max, mid, min"):
        choose("best", CANDIDATES, 5000.0)
    with pytest.raises(ValueError, match="no candidates"):
        choose("max", [], 5000.0)


candidate = st.builds(Candidate, st.integers(1, 32), st.integers(1, 32), st.floats(1.0, 1e6), st.floats(10.0, 1e4))


@given(st.lists(candidate, min_size=1, max_size=12), st.floats(10.0, 1e4), st.randoms())
def test_the_choice_does_not_depend_on_the_order(found: list[Candidate], limit_us: float, random: object) -> None:
    shuffled = list(found)
    random.shuffle(shuffled)  # type: ignore[attr-defined]
    for name in NAMES:
        assert choose(name, shuffled, limit_us) == choose(name, found, limit_us)
    most, least = choose("max", found, limit_us), choose("min", found, limit_us)
    assert all(cell.iops <= most.iops for cell in found if cell.mean_latency_us < limit_us)
    assert all(cell.outstanding >= least.outstanding for cell in found)
