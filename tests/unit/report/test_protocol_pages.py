"""Pages of sweeps, points, HIR, XSR, percentiles and best runs; the procedure in words."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import pandas as pd
import protocol_frames as frames
import pytest

from drivelab.report import recording_facts
from drivelab.report.document import Table
from drivelab.report.header import fact_groups
from drivelab.report.inputs import Inputs
from drivelab.report.numbers import DASH, TIMES
from drivelab.report.sections.steps import RECOVERY_TABLES, demand_tables, point_table
from drivelab.report.sections.values import merit_table, nines_table

KEY = ("op7", "test")
POINT = {"name": "max", "step": 1, "threads": 4, "queue_depth": 8, "iops": 5000.0, "mean_latency_us": 6400.0,
         "response_time_us": 5000.0, "limit_met": False}  # fmt: skip


def inputs(plan: dict[str, Any] | None = None, **tables: pd.DataFrame) -> Inputs:
    full = {"drive": "op7", "measurement": "test", "recording": "op7/test/0123456789ab-run1", "run": 1, **(plan or {})}
    return Inputs.of(tables, {"basis": "op7"}, [full])


def summary(*rows: tuple[str, str, float]) -> pd.DataFrame:
    return pd.DataFrame([
        {"drive": "op7", "measurement": "test", "protocol": "test", "cell_label": label, "metric": metric,
         "kind": "speed", "unit": "IOPS", "value": value, "n": 3, "rse_pct": 1.0, "spread_low": value,
         "spread_high": value, "statistic": "median of 3 warm rounds", "verdict": "repeats agree", "taint_reason": None,
         "reduced": False, "virtual": False, "clock": "wall", "recordings": ["op7/test/0123456789ab-run1"]}
        for label, metric, value in rows
    ])  # fmt: skip


def texts(tables: Iterable[Table]) -> list[list[str]]:
    """Return the texts of the only table."""
    (table,) = tables
    return [[cell.text for cell in row] for row in table.rows]


def facts(of_test: Inputs, key: tuple[str, str] = KEY) -> dict[str, str]:
    return {fact.name: fact.value for facts in fact_groups(of_test, key).values() for fact in facts}


def test_a_sweep_is_threads_by_queue_depth() -> None:
    rows = summary(*((f"RND 4KiB 100/0 T{t}Q{q}", "iops", 1000.0 * t * q) for t in (4, 1) for q in (8, 1)))
    (table,) = demand_tables(inputs(summary=rows), KEY)
    assert [column.text for column in table.columns] == ["Threads", "Q1", "Q8"]
    assert texts([table]) == [["1", "1,000", "8,000"], ["4", "4,000", "32,000"]]


def test_two_queue_depths_are_not_a_sweep() -> None:
    rows = summary(("RND 4KiB 100/0 T1Q1", "iops", 1.0), ("RND 4KiB 100/0 T1Q32", "iops", 2.0))
    assert list(demand_tables(inputs(summary=rows), KEY)) == []


def test_a_point_beyond_the_limit_is_marked() -> None:
    (table,) = point_table(inputs({"points": [POINT]}), KEY)
    assert texts([table])[0] == ["MAX", "4", "8", "5,000", "6,400", "NO"]
    assert table.columns[-1].text == "Mean latency below 5\u00a0ms"
    assert not list(point_table(inputs({"points": []}), KEY))


def recoveries(cells: pd.DataFrame) -> list[Table]:
    return [table for declared in RECOVERY_TABLES for table in declared(inputs(cells=cells), KEY)]


def test_idle_recovery_by_wait() -> None:
    (table,) = recoveries(frames.idle((5, 50), 4))
    assert table.caption == "Host idle recovery (HIR)"
    assert texts([table])[1] == ["50\u00a0s", "3", "7,000", "7,000", "7,000", "2,000", "3.50"]


@pytest.mark.parametrize(("recovers", "note"), [(True, "within 11\u00a0s, in slice 11"), (False, "NOT recovered")])
def test_cross_stimulus_recovery(recovers: bool, note: str) -> None:
    (table,) = recoveries(frames.crossed(recovers))
    assert note in table.note
    assert texts([table])[0][3] == "200"


def test_percentiles_with_few_ios_above_are_marked() -> None:
    (table,) = nines_table(inputs(latency_bins=frames.bins(ios=1000)), KEY)
    assert [row[0] for row in texts([table])] == ["50 %", "90 %", "99 %"]
    assert [row[2].small for row in table.rows] == ["", "", "too few"]


def test_a_run_with_fewer_ios_has_fewer_percentiles() -> None:
    runs = pd.concat([frames.bins(ios=1000), frames.bins(ios=100_000, run=2)])
    rows = texts(nines_table(inputs(latency_bins=runs), KEY))
    assert [row[0] for row in rows][-2:] == ["99.9 %", "99.99 %"]
    assert (rows[-1][1], rows[-1][3]) == (DASH, DASH)
    assert DASH not in (rows[-1][2], rows[-1][4])


def test_a_figure_of_merit_has_a_warning() -> None:
    (table,) = merit_table(inputs(summary=summary(("figure of merit", "figure_of_merit", 1234.0))), KEY)
    assert texts([table])[0][1] == "1,234"
    assert "slower in the cell that matters" in table.note


def test_missing_facts_are_none_in_a_plan_and_unknown_in_an_import() -> None:
    cells = frames.repeated().assign(power_w=None, power_source=None)
    values = summary(("RND 4KiB 100/0", "iops", 1000.0))
    planned, imported = (facts(inputs(plan, cells=cells, summary=values)) for plan in ({"purge": None}, {}))
    assert planned["Preconditioning, workload-dependent"] == planned["Tracked"] == "none"
    assert planned["Reached"] == "no steady-state rule in this test"
    unknown = ("Purge", "Preconditioning, workload-independent", "Preconditioning, workload-dependent", "Tracked")
    assert {imported[name] for name in (*unknown, "Reached")} == {"not recorded"}
    assert "Power" not in imported


def test_the_header_names_the_power_source() -> None:
    def power(cells: pd.DataFrame) -> str:
        return facts(inputs({"purge": None}, cells=cells))["Power"]

    cells = frames.repeated().assign(power_w=None, power_source=None)
    assert power(cells) == "not measured"
    assert power(cells.assign(power_w=4.0, power_source="meter")) == "by the power meter"
    assert power(cells.assign(power_w=[4.0] + [None] * (len(cells) - 1), power_source="drive")) == (
        "by the drive's sensor; not in all cells"
    )


CLASS = {"threads": 2, "queue_depth": 16}


def loop(cells: list[dict[str, Any]], **fields: Any) -> tuple[str, dict[str, Any]]:
    return "loop", {"cells": cells, "until": {"rounds": 5}, **fields}


@pytest.mark.parametrize(("step", "demand"), [
    (loop([{"threads": 2, "queue_depth": 16}]), {"threads": 2, "queue_depth": 16}),
    (loop([{}]), CLASS),
    (loop([{"threads": 1, "queue_depth": 1}, {"threads": 8, "queue_depth": 1}]),
     {"threads": f"varies by cell, 1{DASH}8", "queue_depth": 1}),
    (("replay", {}), {"threads": 1, "queue_depth": "set by the replay"}),
])  # fmt: skip
def test_threads_and_queue_depth(step: tuple[str, dict[str, Any]], demand: dict[str, Any]) -> None:
    assert recording_facts.demand([step], CLASS) == demand


@pytest.mark.parametrize(("cells", "words"), [
    ([{}], "100\u00a0%"),
    ([{"range_bytes": 16 << 20, "segments": 64}], "16MiB in 64 segments"),
    ([{}, {"range_bytes": 16 << 20}], "100\u00a0%; 16MiB"),
])  # fmt: skip
def test_cells_may_set_the_active_range(cells: list[dict[str, Any]], words: str) -> None:
    assert recording_facts.active_range([loop(cells)], 1.0) == words


@pytest.mark.parametrize(("step", "rule"), [
    (loop([], until={"rounds": 1}), "loop: 1 round"),
    (loop([], until={"window": 5, "max_rounds": 25, "track": []}), "loop: 5 rounds in steady state, at most 25 rounds"),
    (loop([], until={"threshold": 0.05, "metric": "iops"}),
     "loop: 3, 5 or 7 warm rounds, until the relative standard error of IOPS is at most 5\u00a0%"),
    (("soak", {"until": {"capacity_multiple": 4, "time_s": 86400.0}}),
     "soak: 4 times the capacity written or 24\u00a0h"),
])  # fmt: skip
def test_stop_rules_in_words(step: tuple[str, dict[str, Any]], rule: str) -> None:
    kind, fields = step
    assert f"{kind}: {' or '.join(recording_facts.stop_rules(kind, fields['until']))}" == rule


def test_cold_rounds_and_pauses_in_words() -> None:
    steps = [loop([], cold_rounds=1, order="cells", pause_s=5.0), loop([], duty_cycle=0.25)]
    assert list(recording_facts.rounds(steps)) == [
        "1 cold round before the counted rounds",
        "all rounds of a cell before the next cell",
        "duty cycle 25\u00a0%: idle after each cell",
        "idle after each cell: 5\u00a0s",
    ]


def test_a_fill_of_several_passes_in_words() -> None:
    first = {"pattern": "sequential", "block_size_bytes": 131072, "capacity_multiple": 1, "range_share": 0.5}
    second = {"pattern": "random", "block_size_bytes": 4096, "raw_capacity_multiple": 1.2}
    assert recording_facts.fill([first, second]) == (
        f"1 {TIMES} 50\u00a0% of the range, sequential 128KiB writes; "
        f"then 1.200 {TIMES} the raw capacity, random 4KiB writes"
    )
    assert recording_facts.fill([]) == "none"


@pytest.mark.parametrize(("line", "words"), [
    ({"method": "auto", "title": "format", "verified": True}, "format; verified"),
    ({"method": "TRIM", "verified": "64 places read as zeros"}, "TRIM; verified: 64 places read as zeros"),
    ({"method": "TRIM", "verified": False}, "TRIM; not verified"),
    ({"method": "none", "verified": "the study sets purge: none"}, "none (the study sets purge: none)"),
])  # fmt: skip
def test_a_purge_in_words(line: dict[str, Any], words: str) -> None:
    assert recording_facts.purge([line]) == words


@pytest.mark.parametrize(("ended_by", "reached"), [("steady state", "YES"), ("time", "NO")])
def test_soaks_with_a_steady_state_rule_show_the_result(ended_by: str, reached: str) -> None:
    rows = [("a", "m", "r", "writes", number, ended_by, number > 2) for number in range(1, 6)]
    rows.append(("a", "m", "r", "writes, wait 3s", 1, None, False))
    columns = ["drive", "measurement", "recording", "cell_label", "round", "ended_by", "in_window"]
    values = pd.DataFrame(
        [("a", "m", "writes", "steady"), ("a", "m", "writes, wait 3s", "two runs")],
        columns=["drive", "measurement", "cell_label", "verdict"],
    )
    cells = pd.DataFrame(rows, columns=columns).assign(unsound=None)
    shown = facts(Inputs.of({"cells": cells, "summary": values}, {}, ()), ("a", "m"))
    assert shown["Reached"] == reached
    assert shown.get("Window") == ("slices 3 to 5 of 5" if reached == "YES" else None)
    assert (shown["Values: steady"], shown["Values: two runs"]) == ("writes", "writes, wait 3s")
