"""Pages of sweeps, points, HIR, XSR, percentiles and best runs; the procedure in words."""

from __future__ import annotations

from typing import Any

import pandas as pd
import protocol_frames as frames
import pytest

from drivelab.analysis.verdict import FASTER, SAME
from drivelab.report import study_facts
from drivelab.report.header import fact_groups, fill
from drivelab.report.inputs import Inputs
from drivelab.report.numbers import DASH, TIMES
from drivelab.report.sections.demand_tables import demand_tables, point_table, recovery_tables
from drivelab.report.sections.scores import best_runs_table, merit_table, nines_table
from drivelab.report.sections.steadiness import steadiness
from drivelab.report.verdict import first_headlines_of_each
from drivelab.report.view import Headline, Table

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


def texts(table: Table | None) -> list[list[str]]:
    assert table is not None
    return [[cell.text for cell in row] for row in table.rows]


def test_a_sweep_is_threads_by_queue_depth() -> None:
    rows = summary(*((f"RND 4KiB 100/0 T{t}Q{q}", "iops", 1000.0 * t * q) for t in (4, 1) for q in (8, 1)))
    (table,) = demand_tables(inputs(summary=rows), KEY)
    assert [column.text for column in table.columns] == ["Threads", "Q1", "Q8"]
    assert texts(table) == [["1", "1,000", "8,000"], ["4", "4,000", "32,000"]]


def test_two_queue_depths_are_not_a_sweep() -> None:
    rows = summary(("RND 4KiB 100/0 T1Q1", "iops", 1.0), ("RND 4KiB 100/0 T1Q32", "iops", 2.0))
    assert list(demand_tables(inputs(summary=rows), KEY)) == []


def test_a_point_beyond_the_limit_is_marked() -> None:
    table = point_table(inputs({"points": [POINT]}), KEY)
    assert texts(table)[0] == ["MAX", "4", "8", "5,000", "6,400", "NO"]
    assert table is not None
    assert table.columns[-1].text == "Mean latency below 5\u00a0ms"
    assert point_table(inputs({"points": []}), KEY) is None


def test_idle_recovery_by_wait() -> None:
    (table,) = recovery_tables(inputs(cells=frames.idle((5, 50), 4)), KEY)
    assert table.caption == "Host idle recovery (HIR)"
    assert texts(table)[1] == ["50\u00a0s", "3", "7,000", "7,000", "7,000", "2,000", "3.50"]


@pytest.mark.parametrize(("recovers", "note"), [(True, "within 11\u00a0s, in slice 11"), (False, "NOT recovered")])
def test_cross_stimulus_recovery(recovers: bool, note: str) -> None:
    (table,) = recovery_tables(inputs(cells=frames.crossed(recovers)), KEY)
    assert note in table.note
    assert texts(table)[0][3] == "200"


def test_percentiles_with_few_ios_above_are_marked() -> None:
    table = nines_table(inputs(latency_bins=frames.bins(ios=1000)), KEY)
    assert [row[0] for row in texts(table)] == ["50 %", "90 %", "99 %"]
    assert table is not None
    assert [row[2].small for row in table.rows] == ["", "", "too few"]


def test_a_run_with_fewer_ios_has_fewer_percentiles() -> None:
    runs = pd.concat([frames.bins(ios=1000), frames.bins(ios=100_000, run=2)])
    rows = texts(nines_table(inputs(latency_bins=runs), KEY))
    assert [row[0] for row in rows][-2:] == ["99.9 %", "99.99 %"]
    assert (rows[-1][1], rows[-1][3]) == (DASH, DASH)
    assert DASH not in (rows[-1][2], rows[-1][4])


def test_the_best_run_is_next_to_the_median() -> None:
    rows = summary(
        ("SEQ 1024KiB 100/0", "bandwidth_mib_s", 1000.0), ("SEQ 1024KiB 100/0", "best_bandwidth_mb_s", 1100.0)
    )
    assert texts(best_runs_table(inputs(summary=rows), KEY)) == [["SEQ 1024KiB 100/0", "1,100", "1,049", DASH, DASH]]
    assert best_runs_table(inputs(summary=rows.head(1)), KEY) is None


def test_a_figure_of_merit_has_a_warning() -> None:
    table = merit_table(inputs(summary=summary(("figure of merit", "figure_of_merit", 1234.0))), KEY)
    assert texts(table)[0][1] == "1,234"
    assert table is not None
    assert "slower in the cell that matters" in table.note


def test_missing_facts_are_none_in_a_plan_and_unknown_in_an_import() -> None:
    def facts(plan: dict[str, Any]) -> dict[str, str]:
        cells = frames.repeated().assign(power_w=None, power_source=None)
        of_test = inputs(plan, cells=cells, summary=summary(("RND 4KiB 100/0", "iops", 1000.0)))
        return {fact.name: fact.value for group in fact_groups(of_test, KEY) for fact in group.facts}

    planned, imported = facts({"condition": {}}), facts({})
    assert planned["Preconditioning, workload-dependent"] == planned["Tracked"] == "none"
    assert planned["Reached"] == "no steady-state rule in this test"
    unknown = ("Purge", "Preconditioning, workload-independent", "Preconditioning, workload-dependent", "Tracked")
    assert {imported[name] for name in (*unknown, "Reached")} == {"not recorded"}
    assert "Power" not in imported


def test_the_header_names_the_power_source() -> None:
    def power(cells: pd.DataFrame) -> str:
        groups = fact_groups(inputs({"condition": {}}, cells=cells), KEY)
        return next(fact.value for group in groups for fact in group.facts if fact.name == "Power")

    cells = frames.repeated().assign(power_w=None, power_source=None)
    assert power(cells) == "not measured"
    assert power(cells.assign(power_w=4.0, power_source="meter")) == "by the power meter"
    assert power(cells.assign(power_w=[4.0] + [None] * (len(cells) - 1), power_source="drive")) == (
        "by the drive's sensor; not in all cells"
    )


def subject(*steps: dict[str, Any]) -> dict[str, Any]:
    return {"class": {"threads": 2, "queue_depth": 16, "active_range": 1.0}, "measure": list(steps)}


def loop(cells: list[dict[str, Any]], **fields: Any) -> dict[str, Any]:
    return {"loop": {"cells": cells, "until": {"rounds": 5}, **fields}}


def test_varying_threads_and_queue_depth() -> None:
    constant = subject(loop([{"threads": 2, "queue_depth": 16}]))
    assert study_facts.demand(constant) == {"threads": 2, "queue_depth": 16}
    varied = subject(loop([{"threads": 1, "queue_depth": 1}, {"threads": 8, "queue_depth": 1}]))
    assert study_facts.demand(varied) == {"threads": f"varies by cell, 1{DASH}8", "queue_depth": 1}
    assert study_facts.demand(subject({"replay": {}}))["queue_depth"] == "set by the replay"


def test_cells_may_set_the_active_range() -> None:
    assert study_facts.active_range(subject(loop([{}]))) == 1.0
    ranged = subject(loop([{"range_bytes": 16 << 20, "segments": 64}]))
    assert study_facts.active_range(ranged) == "16MiB in 64 segments"
    mixed = subject(loop([{}, {"range_bytes": 16 << 20}]))
    assert study_facts.active_range(mixed) == "100\u00a0%; 16MiB"


@pytest.mark.parametrize(("step", "rule"), [
    (loop([], until={"rounds": 1}), "loop: 1 round"),
    (loop([], until={"window": 5, "max_rounds": 25, "track": []}), "loop: 5 rounds in steady state, at most 25 rounds"),
    (loop([], until={"threshold": 0.05, "metric": "iops"}),
     "loop: 3, 5 or 7 warm rounds, until the relative standard error of IOPS is at most 5\u00a0%"),
    ({"soak": {"until": {"capacity_multiple": 4, "time_s": 86400.0}}},
     "soak: 4 times the capacity written or 24\u00a0h"),
])  # fmt: skip
def test_stop_rules_in_words(step: dict[str, Any], rule: str) -> None:
    assert study_facts.stop_rules(subject(step)) == [rule]


def test_cold_rounds_and_pauses_in_words() -> None:
    notes = study_facts.rounds(subject(loop([], cold_rounds=1, order="cells", pause_s=5.0), loop([], duty_cycle=0.25)))
    assert notes == [
        "1 cold round before the counted rounds",
        "all rounds of a cell before the next cell",
        "duty cycle 25\u00a0%: idle after each cell",
        "idle after each cell: 5\u00a0s",
    ]


def test_a_fill_of_several_passes_in_words() -> None:
    first = {"pattern": "sequential", "block_size_bytes": 131072, "capacity_multiple": 1, "range_share": 0.5}
    second = {"pattern": "random", "block_size_bytes": 4096, "raw_capacity_multiple": 1.2}
    assert fill({"fill": [first, second]}) == (
        f"1 {TIMES} 50\u00a0% of the range, sequential 128KiB writes; "
        f"then 1.200 {TIMES} the raw capacity, random 4KiB writes"
    )


def test_a_sweep_does_not_flood_the_headlines() -> None:
    headlines = tuple(
        Headline("+1 %", 1.0, str(number), FASTER if number == 8 else SAME, "test", place)
        for place in ("a", "b")
        for number in range(9)
    )
    kept, rest = first_headlines_of_each(headlines)
    assert [headline.sentence for headline in kept] == ["0", "1", "2", "3", "8"] * 2, "differences are kept"
    assert [headline.sentence for headline in rest] == ["4", "5", "6", "7"] * 2


def test_soaks_with_a_steady_state_rule_show_the_result() -> None:
    columns = ["drive", "measurement", "recording", "cell_label", "round", "ended_by", "in_window"]

    def facts(reason: str) -> dict[str, str]:
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

    assert facts("steady state") == {
        "Reached": "YES", "Window": "slices 3 to 5 of 5",
        "Values: steady": "writes", "Values: two runs": "writes, wait 3s",
    }  # fmt: skip
    assert facts("time")["Reached"] == "NO"
