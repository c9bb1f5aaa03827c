"""Pages of sweeps, points, idle time, other workloads, nines and best runs; the procedure in words."""

from __future__ import annotations

from typing import Any

import pandas as pd
import protocol_frames as frames
import pytest

from drivelab.report import procedure
from drivelab.report.demand_tables import demand_tables, point_table
from drivelab.report.header import fact_groups, fill
from drivelab.report.inputs import Inputs
from drivelab.report.numbers import DASH, TIMES
from drivelab.report.recovery_tables import recovery_tables
from drivelab.report.scores import best_runs_table, merit_table, nines_table
from drivelab.report.steadiness import steadiness
from drivelab.report.verdict import first_headlines_of_each
from drivelab.report.view import Headline, Table

KEY = ("op7", "test")
POINT = {"name": "max", "step": 1, "threads": 4, "queue_depth": 8, "iops": 5000.0, "mean_latency_us": 6400.0,
         "response_time_us": 5000.0, "limit_met": False}  # fmt: skip


def inputs(plan: dict[str, Any] | None = None, **tables: pd.DataFrame) -> Inputs:
    whole = {"drive": "op7", "measurement": "test", "recording": "op7/test/0123456789ab-run1", "run": 1, **(plan or {})}
    return Inputs.of(tables, {"basis": "op7"}, [whole])


def summary(*rows: tuple[str, str, float]) -> pd.DataFrame:
    return pd.DataFrame([
        {"drive": "op7", "measurement": "test", "protocol": "test", "cell_label": label, "metric": metric,
         "kind": "speed", "unit": "IOPS", "value": value, "n": 3, "rse_pct": 1.0, "spread_low": value,
         "spread_high": value, "statistic": "median of 3 warm rounds", "verdict": "repeats agree", "taint_reason": None,
         "reduced": False, "virtual": False, "clock": "wall", "recordings": ["op7/test/0123456789ab-run1"]}
        for label, metric, value in rows
    ])  # fmt: skip


def texts(table: Table | None) -> list[list[str]]:
    assert table is not None
    return [[cell.text for cell in row] for row in table.rows]


def test_a_sweep_is_threads_by_depth() -> None:
    found = summary(*((f"RND 4KiB 100/0 T{t}Q{q}", "iops", 1000.0 * t * q) for t in (4, 1) for q in (8, 1)))
    (table,) = demand_tables(inputs(summary=found), KEY)
    assert [column.text for column in table.columns] == ["Threads", "Q1", "Q8"]
    assert texts(table) == [["1", "1,000", "8,000"], ["4", "4,000", "32,000"]]


def test_two_depths_are_no_sweep() -> None:
    found = summary(("RND 4KiB 100/0 T1Q1", "iops", 1.0), ("RND 4KiB 100/0 T1Q32", "iops", 2.0))
    assert list(demand_tables(inputs(summary=found), KEY)) == []


def test_a_point_beyond_the_limit_says_so() -> None:
    table = point_table(inputs({"points": [POINT]}), KEY)
    assert texts(table)[0] == ["MAX", "4", "8", "5,000", "6,400", "NO"]
    assert table is not None
    assert table.columns[-1].text == "Mean latency below 5\u00a0ms"
    assert point_table(inputs({"points": []}), KEY) is None


def test_idle_recovery_by_wait() -> None:
    (table,) = recovery_tables(inputs(cells=frames.idle((5, 50), 4)), KEY)
    assert table.caption == "Recovery in idle time"
    assert texts(table)[1] == ["50\u00a0s", "3", "7,000", "7,000", "7,000", "2,000", "3.50"]


@pytest.mark.parametrize(("recovers", "said"), [(True, "within 11\u00a0s, in slice 11"), (False, "NOT recovered")])
def test_recovery_from_another_workload(recovers: bool, said: str) -> None:
    (table,) = recovery_tables(inputs(cells=frames.crossed(recovers)), KEY)
    assert said in table.note
    assert texts(table)[0][3] == "200"


def test_nines_with_what_tells_them() -> None:
    table = nines_table(inputs(latency_bins=frames.bins(ios=1000)), KEY)
    assert [row[0] for row in texts(table)] == ["50 %", "90 %", "99 %"]
    assert table is not None
    assert [row[2].small for row in table.rows] == ["", "", "too few"]


def test_a_run_of_fewer_ios_has_fewer_nines() -> None:
    runs = pd.concat([frames.bins(ios=1000), frames.bins(ios=100_000, run=2)])
    found = texts(nines_table(inputs(latency_bins=runs), KEY))
    assert [row[0] for row in found][-2:] == ["99.9 %", "99.99 %"]
    assert (found[-1][1], found[-1][3]) == (DASH, DASH)
    assert DASH not in (found[-1][2], found[-1][4])


def test_the_best_run_stands_beside_the_median() -> None:
    found = summary(
        ("SEQ 1024KiB 100/0", "bandwidth_mib_s", 1000.0), ("SEQ 1024KiB 100/0", "best_bandwidth_mb_s", 1100.0)
    )
    assert texts(best_runs_table(inputs(summary=found), KEY)) == [["SEQ 1024KiB 100/0", "1,100", "1,049", DASH, DASH]]
    assert best_runs_table(inputs(summary=found.head(1)), KEY) is None


def test_a_figure_of_merit_warns_of_itself() -> None:
    table = merit_table(inputs(summary=summary(("figure of merit", "figure_of_merit", 1234.0))), KEY)
    assert texts(table)[0][1] == "1,234"
    assert table is not None
    assert "behind in the cell that matters" in table.note


def test_what_is_not_in_a_plan_was_not_done_but_of_an_import_it_is_not_known() -> None:
    def told(plan: dict[str, Any]) -> dict[str, str]:
        cells = frames.repeated().assign(power_w=None, power_source=None)
        found = inputs(plan, cells=cells, summary=summary(("RND 4KiB 100/0", "iops", 1000.0)))
        return {fact.name: fact.value for group in fact_groups(found, KEY) for fact in group.facts}

    planned, imported = told({"condition": {}}), told({})
    assert planned["Preconditioning, workload-dependent"] == planned["Tracked"] == "none"
    assert planned["Reached"] == "does not stop at steady state"
    unknown = ("Purge", "Preconditioning, workload-independent", "Preconditioning, workload-dependent", "Tracked")
    assert {imported[name] for name in (*unknown, "Reached")} == {"not recorded"}
    assert "Power" not in imported


def test_that_no_power_was_measured_is_said() -> None:
    def power(cells: pd.DataFrame) -> str:
        groups = fact_groups(inputs({"condition": {}}, cells=cells), KEY)
        return next(fact.value for group in groups for fact in group.facts if fact.name == "Power")

    cells = frames.repeated().assign(power_w=None, power_source=None)
    assert power(cells) == "no power was measured"
    assert power(cells.assign(power_w=4.0, power_source="meter")) == "by the power meter"
    assert power(cells.assign(power_w=[4.0] + [None] * (len(cells) - 1), power_source="drive")) == (
        "by the drive's own sensor; not in all cells"
    )


def subject(*steps: dict[str, Any]) -> dict[str, Any]:
    return {"class": {"threads": 2, "queue_depth": 16, "active_range": 1.0}, "measure": list(steps)}


def loop(cells: list[dict[str, Any]], **fields: Any) -> dict[str, Any]:
    return {"loop": {"cells": cells, "until": {"rounds": 5}, **fields}}


def test_threads_and_depth_where_they_vary() -> None:
    alike = subject(loop([{"threads": 2, "queue_depth": 16}]))
    assert procedure.demand(alike) == {"threads": 2, "queue_depth": 16}
    varied = subject(loop([{"threads": 1, "queue_depth": 1}, {"threads": 8, "queue_depth": 1}]))
    assert procedure.demand(varied) == {"threads": f"as in the cells, 1{DASH}8", "queue_depth": 1}
    assert procedure.demand(subject({"replay": {}}))["queue_depth"] == "as the replay has in flight"


def test_ranges_of_the_cells_own() -> None:
    assert procedure.active_range(subject(loop([{}]))) == 1.0
    own = subject(loop([{"range_bytes": 16 << 20, "segments": 64}]))
    assert procedure.active_range(own) == "16MiB in 64 segments"


@pytest.mark.parametrize(("step", "words"), [
    (loop([], until={"rounds": 1}), "loop: 1 round"),
    (loop([], until={"window": 5, "max_rounds": 25, "track": []}), "loop: 5 rounds in steady state, at most 25 rounds"),
    (loop([], until={"threshold": 0.05, "metric": "iops"}),
     "loop: 3, 5 or 7 warm rounds, until the relative standard error of IOPS is at most 5\u00a0%"),
    ({"soak": {"until": {"capacity_multiple": 4, "time_s": 86400.0}}},
     "soak: 4 times the capacity written or 24\u00a0h 00\u00a0min"),
])  # fmt: skip
def test_stop_rules_in_words(step: dict[str, Any], words: str) -> None:
    assert procedure.stop_rules(subject(step)) == [words]


def test_rounds_that_do_not_count_and_pauses() -> None:
    told = procedure.rounds(subject(loop([], cold_rounds=1, order="cells", pause_s=5.0), loop([], duty_cycle=0.25)))
    assert told == [
        "1 cold round before those that count",
        "all rounds of a cell before the next cell",
        "duty cycle 25\u00a0%: idle after each cell",
        "idle after each cell: 5\u00a0s",
    ]


def test_fills_of_several_passes_and_past_the_raw_capacity() -> None:
    one = {"pattern": "sequential", "block_size_bytes": 131072, "capacity_multiple": 1, "range_share": 0.5}
    two = {"pattern": "random", "block_size_bytes": 4096, "raw_capacity_multiple": 1.2}
    assert fill({"fill": [one, two]}) == (
        f"1 {TIMES} 50\u00a0% of the range, sequential 128KiB writes; "
        f"then 1.200 {TIMES} the raw capacity, random 4KiB writes"
    )


def test_a_sweep_does_not_flood_the_headlines() -> None:
    found = tuple(
        Headline("+1 %", 1.0, str(number), "better" if number == 8 else "same", "test", place)
        for place in ("a", "b")
        for number in range(9)
    )
    kept, rest = first_headlines_of_each(found)
    assert [one.sentence for one in kept] == ["0", "1", "2", "3", "8"] * 2, "what is better is not left out"
    assert [one.sentence for one in rest] == ["4", "5", "6", "7"] * 2


def test_soaks_that_look_for_steady_state_say_whether_they_found_it() -> None:
    columns = ["drive", "measurement", "recording", "cell_label", "round", "ended_by", "in_window"]

    def told(reason: str) -> dict[str, str]:
        rows = [("a", "m", "r", "writes", number, reason, number > 2) for number in range(1, 6)]
        rows.append(("a", "m", "r", "writes, wait 3s", 1, None, False))
        summary = pd.DataFrame(
            [("a", "m", "writes", "steady"), ("a", "m", "writes, wait 3s", "two runs")],
            columns=["drive", "measurement", "cell_label", "verdict"],
        )
        inputs = Inputs.of(
            {"cells": pd.DataFrame(rows, columns=columns).assign(unsound=None), "summary": summary}, {}, ()
        )
        return {fact.name: fact.value for fact in steadiness(inputs, ("a", "m"))}

    assert told("steady state") == {
        "Reached": "YES", "Window": "slices 3 to 5 of 5",
        "Values: steady": "writes", "Values: two runs": "writes, wait 3s",
    }  # fmt: skip
    assert told("time")["Reached"] == "NO"
