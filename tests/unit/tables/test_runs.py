"""Replays and application runs with invalid numbers, telemetry of cells, and the example of a detector."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pandas as pd
import pytest
import replay_frames
from detector_tables import rounds_table
from doors import carried_out

from drivelab.analysis.exclusions import exclusions_table, recording_facts
from drivelab.analysis.values.summary import summary_table
from drivelab.collect.replays import replay_tables
from drivelab.collect.soundness_of_runs import application_runs
from drivelab.collect.telemetry_table import cell_columns, telemetry_table
from drivelab.criteria.taint import DEFAULT
from drivelab.plan.replay_choice import ReplayChoice
from drivelab.tables import io
from drivelab.tables.labels import cell_labels
from drivelab.tables.schemas import SCHEMAS
from drivelab.telemetry.sampler import NAME

CHOICE = ReplayChoice()
NAN = float("nan")
EMPTY = {name: pd.DataFrame(columns=SCHEMAS[name].names) for name in ("cells", "steady_state", "replays",
                                                                      "replay_passes")}  # fmt: skip
STEPS = [{"application": {"until": {}}}]


def replayed(folder: Path, change: Callable[[dict[str, Any]], None], bad: int = 2) -> dict[str, pd.DataFrame]:
    """Return tables, as read from disk, of three replays; `change` alters the report of replay `bad`."""
    lines = []
    for repeat in (1, 2, 3):
        body = replay_frames.cell(folder / f"{repeat}", replay_frames.outcome(300, slowness=1 + repeat / 10),
                                  choice=CHOICE)  # fmt: skip
        if repeat == bad:
            change(body)
            (folder / f"{repeat}/report.json").write_text(json.dumps(body))
        lines.append({"step": 0, "repeat": repeat, "warm": True, "trace": "sqlite", "directory": f"{repeat}",
                      "choice": CHOICE.to_mapping()})  # fmt: skip
    tables = replay_tables(folder, lines, [], replay_frames.key(), lambda line: replay_frames.NO_TELEMETRY)
    for name, frame in tables.items():
        io.write(frame, folder / f"{name}.parquet", name)
    return {name: io.read(folder / f"{name}.parquet", name) for name in tables}


def excluded(**runs: pd.DataFrame) -> list[tuple[str, str]]:
    exclusions = exclusions_table(EMPTY["cells"], recording_facts([]), **runs)
    return list(exclusions[["place", "fault"]].itertuples(index=False, name=None))


REPORTS: dict[str, tuple[Callable[[dict[str, Any]], None], str]] = {
    "duration": (lambda body: body.update(duration_s=NAN), "not a number"),
    "text": (lambda body: body.update(bandwidth_mib_s="fast"), "not a number"),
    "percentile": (lambda body: body["latency_us"].update(p99=float("inf")), "not a number"),
    "count": (lambda body: body["issued"]["read"].update(requests=NAN), "not a number"),
    "of an operation": (lambda body: body["operations"][0].update(issued_requests=NAN), "not a number"),
    "negative duration": (lambda body: body.update(duration_s=-1.0), "no duration"),
    "no duration": (lambda body: body.update(duration_s=0.0), "no duration"),
    "nothing moved": (lambda body: body.update(bandwidth_mib_s=0.0), "no I/O"),
    "negative rate": (lambda body: body.update(bandwidth_mib_s=-3.0), "negative rate"),
    "negative latency": (lambda body: body["latency_us"].update(p99=-3.0), "negative latency"),
    "negative access time": (lambda body: body.update(access_time_us=-3.0), "negative latency"),
}


@pytest.mark.parametrize("case", REPORTS)
def test_an_invalid_replay_is_named_and_in_no_median(tmp_path: Path, case: str) -> None:
    change, fault = REPORTS[case]
    tables = replayed(tmp_path, change)
    replays, passes = tables["replays"], tables["replay_passes"]
    assert replays["counted"].tolist() == passes["counted"].tolist() == [True, False, True]
    assert not tables["replay_latency"].query("repeat == 2")["counted"].any()
    assert excluded(replays=replays) == [("run 2, trace sqlite", fault)]
    summary = summary_table(EMPTY["cells"], EMPTY["steady_state"], replays, passes)
    assert len(summary)
    for row in summary.to_dict("records"):
        others = replays.loc[replays["repeat"] != 2, row["metric"]].tolist()
        assert set(row["samples"]) <= set(others), row["metric"]
        assert row["verdict"] == "too few runs", "two of three runs remain"


def test_sound_and_partial_replays_are_not_excluded(tmp_path: Path) -> None:
    assert excluded(replays=replayed(tmp_path / "a", lambda body: None)["replays"]) == []
    partial = replayed(tmp_path / "b", lambda body: body.update(state="failed", partial=True, bandwidth_mib_s=0.0))
    assert excluded(replays=partial["replays"]) == []


def test_without_sound_replays_there_is_no_value(tmp_path: Path) -> None:
    tables = replayed(tmp_path, lambda body: body.update(duration_s=NAN))
    bad = {name: tables[name].query("repeat == 2") for name in ("replays", "replay_passes")}
    assert summary_table(EMPTY["cells"], EMPTY["steady_state"], **bad).empty


def ran(folder: Path, change: dict[str, Any], bad: int = 3) -> pd.DataFrame:
    """Return the table, as read from disk, of one cold and four warm runs; `change` alters run `bad`."""
    lines = [{"event": "application", "step": 0, "application": "build", "cold": run == 1, "run": run,
              "duration_s": 10.0 + run, "command_s": 9.0, "sync_s": 1.0, "exit_status": 0, "read_ios": 5,
              "write_ios": 5, "read_bytes": 4096, "write_bytes": 4096, "user_s": 1.0, "system_s": 1.0,
              "max_rss_bytes": 1000, **(change if run == bad else {})} for run in range(1, 6)]  # fmt: skip
    runs = application_runs(lines, STEPS, replay_frames.key(), lambda line: replay_frames.NO_TELEMETRY)
    io.write(runs, folder / "runs.parquet", "application_runs")
    return io.read(folder / "runs.parquet", "application_runs")


@pytest.mark.parametrize(
    ("change", "fault"),
    [
        ({"duration_s": NAN}, "not a number"),
        ({"duration_s": "soon"}, "not a number"),
        ({"sync_s": float("inf")}, "not a number"),
        ({"write_ios": NAN}, "not a number"),
        ({"duration_s": 0.0}, "no duration"),
        ({"duration_s": -4.0}, "no duration"),
        ({"command_s": -4.0}, "no duration"),
        ({"read_bytes": -4096}, "negative rate"),
    ],
)
def test_an_invalid_application_run_is_named_and_in_no_median(
    tmp_path: Path, change: dict[str, Any], fault: str
) -> None:
    runs = ran(tmp_path, change)
    assert runs["counted"].tolist() == [False, True, False, True, True]
    assert excluded(application_runs=runs) == [("run 3, application build", fault)]
    (row,) = summary_table(**EMPTY, application_runs=runs).to_dict("records")
    assert (row["value"], list(row["samples"]), row["taint_reason"]) == (14, [12, 14, 15], None)


def test_unaltered_runs_are_sound(tmp_path: Path) -> None:
    runs = ran(tmp_path, {})
    assert excluded(application_runs=runs) == []
    assert not runs["tainted"].any()
    unsound = ran(tmp_path, {"duration_s": 0.0}).query("run == 3 or repeat == 3")
    assert summary_table(**EMPTY, application_runs=unsound).empty


AT_S = 1_700_000_000.0
ROW_KEY: dict[str, Any] = {
    "recording": "a/b/c-run1", "drive": "a", "serial": "S", "protocol": "b", "measurement": "b", "run": 1,
    "reduced": False, "virtual": False, "clock": "wall",
}  # fmt: skip


def sample(second: float, **more: float) -> dict[str, float]:
    return {"at_s": AT_S + second, "cpu_total_s": 2 * second, "cpu_busy_s": second, "own_cpu_s": 0.5 * second,
            "interrupts": 100 * second, "processor_energy_j": 30 * second, **more}  # fmt: skip


def samples_written(folder: Path, *lines: dict[str, Any]) -> pd.DataFrame:
    (folder / NAME).write_text("".join(json.dumps(line) + "\n" for line in lines))
    table = telemetry_table(folder, ROW_KEY)
    io.write(table, folder / "t.parquet", "telemetry")
    return io.read(folder / "t.parquet", "telemetry")


def test_samples_are_rows_with_rates_since_the_previous_sample(tmp_path: Path) -> None:
    table = samples_written(
        tmp_path,
        {"at_s": AT_S, "event": "begin", "sources": []},
        sample(10.0, sectors_written=8.0, temperature_c=41.0),
        sample(10.1),
        {"at_s": AT_S + 10.5, "smart_bytes_written": 512e3, "thermal_1_s": 3.0, "power_state": 2.0},
        sample(12.0, meter_power_w=5.5),
        {"at_s": AT_S + 12.5, "event": "end"},
    )
    assert [round(time.timestamp() - AT_S, 4) for time in table["time"]] == [10, 10.1, 10.5, 12]
    assert table["bytes_written"][0] == 4096
    assert table["load_pct"].isna().tolist() == [True, True, True, False], "shares need half a second"
    last = table.iloc[-1]
    assert (last["cpu_pct"], last["load_pct"], last["interrupts_per_s"], last["processor_power_w"]) == (50, 25, 100, 30)
    assert (table["smart_bytes_written"][2], table["thermal_1_s"][2], table["power_state"][2]) == (512_000, 3, 2.0)
    assert set(table["drive"]) == {"a"}


def test_rates_do_not_span_an_interruption(tmp_path: Path) -> None:
    table = samples_written(tmp_path, sample(10.0), {"at_s": AT_S + 99, "event": "begin"}, sample(100.0), sample(101.0))
    assert table["load_pct"].isna().tolist() == [True, True, False]


def test_columns_of_a_cell() -> None:
    known = cell_columns({"load_pct": 43.0, "temperature_max_c": 50.0, "temperature_limit_c": 70.0}, DEFAULT)
    assert (known["load_pct"], known["temperature_max_c"], known["power_w"]) == (43.0, 50.0, None)
    assert (known["tainted"], known["throttled"]) == (True, False)
    assert known["taint_reason"] == "load: others used 43 % of the host's CPU time"
    unknown = cell_columns({}, DEFAULT)
    assert unknown.pop("tainted") is False
    assert set(unknown.values()) == {None}


@pytest.mark.parametrize("name", ["cells", "replays"])
def test_cells_and_replays_have_the_same_columns(name: str) -> None:
    assert set(cell_columns({}, DEFAULT)) <= set(SCHEMAS[name].names)


EXAMPLE = """
import sys
import pandas as pd
from drivelab.analysis.detectors import DETECTORS, findings_table
assert list(DETECTORS)[-1] == "warm-up"
found = findings_table({"cells": pd.read_pickle(sys.argv[1])})
print(found[found["detector"] == "warm-up"][["found", "value", "words"]].to_json(orient="records"))
"""


def test_the_example_finds_a_slow_first_round(tmp_path: Path) -> None:
    """In one recording each: a slow first round, one like the others, and too few rounds."""
    courses = ([80.0, 100, 101, 102, 100], [97.0, 100, 101, 102, 100], [50.0, 100, 100])
    parts = [rounds_table({"RND 4KiB 100/0": iops}).assign(recording=f"r{n}") for n, iops in enumerate(courses)]
    labelled = [cells.assign(cell_label=cell_labels(cells)) for cells in parts]
    pd.concat(labelled, ignore_index=True).to_pickle(tmp_path / "cells")
    result = json.loads(carried_out("detector.md", tmp_path, EXAMPLE, tmp_path / "cells"))
    assert [(row["found"], row["value"]) for row in result] == [(True, pytest.approx(20)), (False, None)]
    slow, alike = (row["words"] for row in result)
    assert slow.startswith("the first of 5 rounds is 20 % slower than the slowest")
    assert alike.startswith("no slow first round in 1 cells")
