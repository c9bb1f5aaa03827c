"""Invalid measurements are excluded and listed, from altered evidence to the tables."""

from __future__ import annotations

import json
import re
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from made_recordings import SOAK, another_run, change_documents, change_job, change_journal, copied, made_recording
from rows import key, loop, soak, table

from drivelab.analysis.deltas.deltas import deltas_table
from drivelab.analysis.exclusions import counted, exclusions_table, left_out, recording_facts, strangers
from drivelab.analysis.values.summary import summary_table
from drivelab.analysis.verdict import FASTER_BEYOND
from drivelab.collect.collect import collect
from drivelab.core.errors import UserError
from drivelab.criteria.soundness import MISSING_ROUND, because, missing_cells, sound, split, unsound_cells
from drivelab.tables import io
from drivelab.tables.windows import windows_table

READ = {"pattern": "random", "read_share": 100, "block_size_bytes": 4096, "threads": 1, "queue_depth": 1,
        "runtime_s": 0.3}  # fmt: skip
LARGER = {**READ, "block_size_bytes": 8192}
TRACK = {"pattern": "random", "read_share": 100, "block_size_bytes": 4096, "metric": "iops"}
UNTIL = {"window": 5, "max_rounds": 25, "data_excursion": 0.2, "slope_excursion": 0.1, "track": [TRACK]}
STEPS: list[dict[str, Any]] = [{"loop": {"cells": [READ, LARGER], "until": UNTIL}},
                               {"soak": {"cell": SOAK, "until": {"time_s": 0.5}}}]  # fmt: skip


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Make a recording on the virtual clock: a loop of two cells that is steady in rounds 1 to 5, then a soak."""
    return made_recording(tmp_path_factory.mktemp("made"), STEPS)


@pytest.fixture
def recording(made: Path, tmp_path: Path) -> Path:
    return copied(made, tmp_path)


def written(recording: Path, folder: Path) -> dict[str, pd.DataFrame]:
    """Write the tables of a recording and read them back."""
    result = {}
    for name, frame in collect(recording, reduced=False).items():
        io.write(frame, folder / f"{name}.parquet", name)
        result[name] = io.read(folder / f"{name}.parquet", name)
    return result


def excluded(recording: Path, cells: pd.DataFrame) -> list[tuple[str, str]]:
    result = exclusions_table(cells, recording_facts([recording]))
    return list(result[["place", "fault"]].itertuples(index=False, name=None))


BAD: dict[str, tuple[Callable[[dict[str, Any]], None], str]] = {
    "rate": (lambda job: job["read"].update(iops=float("nan")), "not a number"),
    "infinite rate": (lambda job: job["read"].update(bw_bytes=float("inf")), "not a number"),
    "mean latency": (lambda job: job["read"]["lat_ns"].update(mean=float("nan")), "not a number"),
    "runtime": (lambda job: job["read"].update(runtime=float("nan")), "not a number"),
    "count": (lambda job: job["read"].update(total_ios=float("nan")), "not a number"),
    "bytes": (lambda job: job["write"].update(io_bytes=float("nan"), total_ios=0), "not a number"),
    "negative mean": (lambda job: job["read"]["lat_ns"].update(mean=-1.0), "negative latency"),
    "negative bin": (lambda job: _move_bins(job["read"]["lat_ns"]), "negative latency"),
    "negative rate": (lambda job: job["read"].update(iops=-5.0), "negative rate"),
    "zero": (lambda job: job["read"].update(total_ios=0, lat_ns={"N": 0}), "no I/O"),
    "error": (lambda job: job.update(error=5), "damaged evidence"),
    "bins": (lambda job: job["read"]["lat_ns"].update(N=7), "damaged evidence"),
}


def _move_bins(latency: dict[str, Any]) -> None:
    latency["bins"] = {f"-{name}" if place == 0 else name: count
                       for place, (name, count) in enumerate(latency["bins"].items())}  # fmt: skip


@pytest.mark.parametrize("case", BAD)
def test_an_invalid_value_is_listed_and_excluded_everywhere(recording: Path, tmp_path: Path, case: str) -> None:
    change, fault = BAD[case]
    change_job(recording / "cells/0-round03-cell00", change)
    tables = written(recording, tmp_path)
    cells = tables["cells"]
    bad = cells[cells["unsound"].notna()]
    assert bad[["round", "cell"]].values.tolist() == [[3, 0]]
    assert excluded(recording, cells) == [("round 3, RND 4KiB 100/0 T1Q1", fault)]
    numbers = cells.select_dtypes("number").drop(columns=["run"])
    assert not (numbers == float("inf")).any(axis=None)
    for name in ("latency_bins", "series"):
        rows = tables[name]
        assert rows[(rows["kind"] == "loop") & (rows["round"] == 3) & (rows["cell"] == 0)].empty, name
    assert len(sound(cells)) == len(cells) - 1
    (window,) = windows_table(cells, {0: UNTIL}).to_dict("records")
    assert (window["reached"], window["rounds"], window["window_start"], window["window_end"]) == (False, 5, 4, 5)
    assert len(window["values"]) == 2, "only the rounds after the hole, and not steady"


def summary_of(tables: dict[str, pd.DataFrame]) -> pd.DataFrame:
    windows = windows_table(tables["cells"], {0: UNTIL})
    bins = tables["latency_bins"]
    soak_bins = bins[bins["kind"] == "soak"]
    return summary_table(tables["cells"], windows, tables["replays"], tables["replay_passes"], soak_bins=soak_bins)


def test_an_invalid_untracked_value_is_excluded_from_the_summary_alone(
    recording: Path, made: Path, tmp_path: Path
) -> None:
    change_job(recording / "cells/0-round02-cell01", lambda job: job["read"].update(iops=1e12, bw_bytes=float("nan")))
    unaltered = written(made, tmp_path / "before")
    assert unaltered["cells"]["unsound"].isna().all()
    assert missing_cells(unaltered["cells"]).empty
    assert excluded(made, unaltered["cells"]) == []
    before = summary_of(unaltered).set_index(["cell_label", "metric"])
    tables = written(recording, tmp_path / "after")
    assert excluded(recording, tables["cells"]) == [("round 2, RND 8KiB 100/0 T1Q1", "not a number")]
    for cells in (unaltered["cells"], tables["cells"]):
        windows = windows_table(cells, {0: UNTIL})
        assert windows[["reached", "window_start", "window_end"]].values.tolist() == [[True, 1, 5]], "it is not tracked"
    after = summary_of(tables).set_index(["cell_label", "metric"])
    assert set(before.index) == set(after.index)
    place = ("RND 8KiB 100/0 T1Q1", "iops")
    kept = sound(tables["cells"]).query("cell_label == 'RND 8KiB 100/0 T1Q1' and 1 <= round <= 5")
    assert sorted(kept["round"]) == [1, 3, 4, 5]
    assert after.loc[place, "value"] == pytest.approx(kept["iops"].mean())
    assert after.loc[place, "spread_high"] < 1e12
    assert len(after.loc[place, "samples"]) == 4
    assert after.loc[place, "verdict"] == "incomplete window"
    assert not any("0-round02-cell01" in path for row in after["evidence"] for path in row)
    others = [index for index in before.index if index[0] != place[0]]
    assert after.loc[others, ["value", "verdict"]].equals(before.loc[others, ["value", "verdict"]])


def test_an_incomplete_window_cannot_tell_a_difference() -> None:
    """The average would be of other rounds than the other drive's, although the tracked cell has all rounds."""
    rows = []
    for drive, iops, run in [(*of, run) for of in (("op7", 100.0), ("op28", 200.0)) for run in (1, 2, 3)]:
        where = key(drive, run=run)
        rows += loop([iops] * 5, where=where) + [
            row | {"cell": 1, "unsound": because("no I/O", "x") if drive == "op28" and row["round"] == 4 else None}
            for row in loop([iops] * 5, where=where, read_share=100)
        ]
    cells = table("cells", rows)
    windows = windows_table(cells, {0: UNTIL | {"track": [TRACK | {"read_share": 0}]}})
    nothing = [table(name, []) for name in ("replays", "replay_passes")]
    summary = summary_table(cells, windows, *nothing, scores={"pts-iops": {"figure_of_merit": "iops"}})
    verdicts = summary[summary["drive"] == "op28"].set_index(["cell_label", "metric"])["verdict"]
    assert verdicts["RND 4KiB 0/100", "iops"] == "steady"
    assert verdicts["RND 4KiB 100/0", "iops"] == "incomplete window"
    assert verdicts["figure of merit", "figure_of_merit"] == "incomplete window"
    assert set(summary.loc[summary["drive"] == "op7", "verdict"]) == {"steady", "in steady window"}
    result = deltas_table(summary, "op7").set_index(["cell_label", "metric"])
    assert result.loc[("RND 4KiB 0/100", "iops"), "verdict"] == FASTER_BEYOND
    lost = result.loc[("RND 4KiB 100/0", "iops")]
    assert (lost["verdict"], list(lost["doubts"])) == ("cannot tell", ["op28: incomplete window"])


def test_excluded_recordings_are_in_no_summary(recording: Path, tmp_path: Path) -> None:
    """The first of three runs has another kernel."""
    runs = [recording, another_run(recording, 2), another_run(recording, 3)]
    for number, run in enumerate(runs):
        new_times(run, 1000 * number)
    path = recording / "host.json"
    path.write_text(json.dumps({**json.loads(path.read_text()), "kernel": "1.0"}))
    by_run = [written(run, tmp_path / run.name) for run in runs]
    tables = {name: pd.concat([run_tables[name] for run_tables in by_run], ignore_index=True) for name in by_run[0]}
    exclusions = exclusions_table(tables["cells"], recording_facts(runs))
    assert exclusions["fault"].tolist() == ["mixed versions"]
    pooled, left = summary_of(tables), summary_of({name: counted(rows, exclusions) for name, rows in tables.items()})
    assert set(pooled["scope"]) == {"recordings"}
    assert f"mine/made-up/{recording.name}" in {name for row in pooled["recordings"] for name in row}
    assert {name for row in left["recordings"] for name in row} == {f"mine/made-up/{run.name}" for run in runs[1:]}


@pytest.mark.parametrize("tampering", ["cut off", "removed"])
def test_damaged_evidence_is_excluded(recording: Path, tmp_path: Path, tampering: str) -> None:
    path = recording / "cells/0-round05-cell00"
    if tampering == "removed":
        shutil.rmtree(path)
    else:
        (path / "fio.json").write_text((path / "fio.json").read_text()[:900])
    cells = written(recording, tmp_path)["cells"]
    assert excluded(recording, cells) == [("round 5, RND 4KiB 100/0 T1Q1", "damaged evidence")]
    assert windows_table(cells, {0: UNTIL})["window_end"].tolist() == [4]


def log_of(recording: Path, pattern: str, kind: str = "iops") -> Path:
    return next((recording / "cells").glob(f"{pattern}/series_{kind}.1.log"))


BAD_LINES: dict[str, tuple[str, str, str]] = {
    "no number": ("iops", "1000, nan, 0, 0, 0", "not a number"),
    "infinite": ("bw", "1000, inf, 0, 0, 0", "not a number"),
    "garbage": ("iops", "\0\0\0\0", "not a number"),
    "text": ("lat", "1000, fast, 0, 0, 0", "not a number"),
    "half": ("iops", "1000", "not a number"),
    "no direction": ("iops", "1000, 5, up, 0, 0", "not a number"),
    "below zero": ("iops", "1000, -5, 0, 0, 0", "negative rate"),
    "a latency below zero": ("lat", "1000, -5, 0, 0, 0", "negative latency"),
}


def test_a_bad_line_of_a_log_makes_its_cell_unsound(recording: Path, tmp_path: Path) -> None:
    """Each case has a cell of its own."""
    places = [(number, cell) for number in range(1, 6) for cell in (0, 1)]
    for (number, cell), (kind, line, _) in zip(places, BAD_LINES.values(), strict=False):
        log_of(recording, f"0-round0{number}-cell0{cell}", kind).write_text(f"{line}\n")
    tables = written(recording, tmp_path)
    cells, series = (tables[name][tables[name]["kind"] == "loop"] for name in ("cells", "series"))
    for (number, cell), (kind, _, fault) in zip(places, BAD_LINES.values(), strict=False):
        reason = cells.set_index(["round", "cell"]).loc[(number, cell), "unsound"]
        assert reason.startswith(f"{fault}: "), (kind, reason)
        assert f"series_{kind}.1.log, line 1" in reason
        assert series[(series["round"] == number) & (series["cell"] == cell)].empty
    assert cells["unsound"].notna().sum() == len(excluded(recording, tables["cells"])) == len(BAD_LINES)


def test_a_bad_second_of_a_soak_excludes_its_slice(tmp_path: Path) -> None:
    folder = tmp_path / "soak"
    folder.mkdir()
    soaked = made_recording(folder, [{"soak": {"cell": {**SOAK, "slice_s": 2}, "until": {"time_s": 6}}}])
    recording = copied(soaked, tmp_path)
    path = log_of(recording, "*")
    lines = path.read_text().splitlines()
    assert len(lines) == 6
    lines[2] = "3000, nan, 1, 0, 0"
    path.write_text("\n".join([*lines, "7000, 12"]))
    tables = written(recording, tmp_path)
    assert excluded(recording, tables["cells"]) == [("slice 2, RND 4KiB 0/100", "not a number")]
    assert tables["series"]["time_s"].tolist() == [1, 2, 5, 6], "no second of the bad slice and no truncated line"


def test_a_recording_without_evidence_has_tables_and_no_values(recording: Path, tmp_path: Path) -> None:
    for path in (recording / "cells").glob("*/fio.json"):
        path.write_text("")
    for path in (recording / "cells").glob("*/series_*"):
        path.unlink()
    tables = written(recording, tmp_path)
    assert set(tables["cells"]["unsound"].str.partition(": ")[0]) == {"damaged evidence"}
    assert tables["latency_bins"].empty
    assert windows_table(tables["cells"], {0: UNTIL}).empty
    assert summary_of(tables).empty


def journal_without(recording: Path, *directories: str) -> None:
    path = recording / "journal.jsonl"
    lines = path.read_text().splitlines(keepends=True)
    kept = [line for line in lines if not any(f'"directory":"cells/{directory}"' in line for directory in directories)]
    assert len(kept) == len(lines) - len(directories)
    path.write_text("".join(kept))


def test_a_cell_missing_in_the_journal_is_a_missing_round(recording: Path, tmp_path: Path) -> None:
    journal_without(recording, "0-round03-cell00")
    cells = written(recording, tmp_path)["cells"]
    assert cells["unsound"].isna().all()
    assert excluded(recording, cells) == [("round 3, RND 4KiB 100/0 T1Q1", "missing round")]
    assert not windows_table(cells, {0: UNTIL})["reached"].any()


def test_the_manifest_shows_a_last_round_missing_in_the_journal(recording: Path, tmp_path: Path) -> None:
    journal_without(recording, "0-round05-cell00", "0-round05-cell01")
    cells = written(recording, tmp_path)["cells"]
    assert excluded(recording, cells) == [("journal", "missing round")]
    assert not windows_table(cells, {0: UNTIL})["reached"].any()


def test_a_loop_without_a_whole_round_has_no_sound_cell(recording: Path, tmp_path: Path) -> None:
    for number in range(1, 6):
        change_job(recording / f"cells/0-round0{number}-cell00", lambda job: job.update(error=5))
    cells = written(recording, tmp_path)["cells"]
    assert sound(cells)["kind"].unique().tolist() == ["soak"]
    assert windows_table(cells, {0: UNTIL}).empty


def test_an_invalid_slice_leaves_the_others(recording: Path, tmp_path: Path) -> None:
    path = recording / "cells/1-soak-part1/fio.json"
    text = path.read_text()
    third = list(re.finditer(r'"lat_ns": \{[^{}]*?"mean": ([1-9][\d.]*)', text))[2]
    path.write_text(text[: third.start(1)] + "NaN" + text[third.end(1) :])
    tables = written(recording, tmp_path)
    assert excluded(recording, tables["cells"]) == [
        ("slice 3, RND 4KiB 0/100 T1Q4", "not a number"), ("slice 4, RND 4KiB 0/100 T1Q4", "not a number"),
    ]  # fmt: skip
    soak_bins = tables["latency_bins"][tables["latency_bins"]["kind"] == "soak"]
    assert sorted(soak_bins["round"].unique()) == [1, 2, 5]


def test_a_soak_with_falling_counts_is_unsound(recording: Path, tmp_path: Path) -> None:
    def change(found: list[dict[str, Any]]) -> None:
        found[2]["jobs"][0]["write"]["lat_ns"]["N"] = 1

    change_documents(recording / "cells/1-soak-part1", change)
    tables = written(recording, tmp_path)
    assert excluded(recording, tables["cells"]) == [("slice 1, RND 4KiB 0/100 T1Q4", "damaged evidence")]
    assert tables["series"][tables["series"]["kind"] == "soak"].empty


def test_a_recording_in_the_folder_of_another_is_refused(recording: Path) -> None:
    other = recording.with_name("0123456789ab-run1")
    recording.rename(other)
    with pytest.raises(UserError, match=r"0123456789ab-run1: holds the recording mine/made-up/.*copied or moved there"):
        collect(other, reduced=False)


def test_a_copied_run_counts_once(recording: Path, tmp_path: Path) -> None:
    again = another_run(recording, 2)
    cells = pd.concat([collect(path, reduced=False)["cells"] for path in (recording, again)])
    result = exclusions_table(cells, recording_facts([recording, again]))
    io.write(result, tmp_path / "exclusions.parquet", "exclusions")
    assert result["fault"].tolist() == ["duplicated run"]
    assert left_out(result) == {f"mine/made-up/{again.name}"}
    assert counted(cells, result)["run"].unique().tolist() == [1]


def new_times(recording: Path, later_s: int) -> None:
    def change(lines: list[dict[str, Any]]) -> None:
        for line in lines:
            line["at"] = (pd.Timestamp(line["at"]) + pd.Timedelta(seconds=later_s)).isoformat()

    change_journal(recording, change)


_VERSIONS = [
    ("host.json", "fio", "fio"), ("host.json", "kernel", "kernel"), ("identity.json", "firmware", "firmware"),
    ("identity.json", "capacity_bytes", "capacity in bytes"),
    ("identity.json", "logical_block_bytes", "logical block in bytes"),
    ("identity.json", "over_provisioning_pct", "over-provisioning in %"),
]  # fmt: skip


@pytest.mark.parametrize(("file", "name", "words"), _VERSIONS)
def test_runs_with_other_versions_are_not_pooled_with_the_latest(
    recording: Path, file: str, name: str, words: str
) -> None:
    runs = [recording, another_run(recording, 2), another_run(recording, 3)]
    for number, run in enumerate(runs[1:], start=1):
        new_times(run, 1000 * number)
    for run in runs[1:]:
        facts = json.loads((run / file).read_text())
        (run / file).write_text(json.dumps({**facts, name: "9.9"}))
    result = exclusions_table(table("cells", []), recording_facts(runs))
    assert result[["recording", "place", "fault"]].values.tolist() == [
        [f"mine/made-up/{recording.name}", "recording", "mixed versions"]
    ]
    assert f"{words} " in result["words"].iloc[0]
    assert "instead of 9.9; not pooled with the latest" in result["words"].iloc[0]


def test_foreign_recordings_are_listed(recording: Path, tmp_path: Path) -> None:
    copied = recording.with_name(f"{recording.name} (copy)")
    shutil.copytree(recording, copied)
    edited = recording.with_name("edited")
    shutil.copytree(recording, edited)
    (edited / "plan.json").write_text((edited / "plan.json").read_text().replace("made-up", "made-down"))
    shutil.copytree(recording, recording.with_name("0123456789ab-run1.part"))
    folders = sorted(recording.parent.iterdir())
    words = {row["recording"].rpartition("/")[2]: row["words"] for row in strangers(folders, {"mine"}, {"made-up"})}
    assert words.keys() == {copied.name, "edited"}, "older plans of the study and unfinished recordings are not foreign"
    assert "under another name" in words[copied.name]
    assert "was edited after drivelab wrote it" in words["edited"]
    rows = list(strangers([recording], {"other"}, {"made-up"}))
    assert [row["words"] for row in rows] == ["its drive 'mine' is not in the study"]
    result = exclusions_table(table("cells", []), recording_facts([]), rows)
    io.write(result, tmp_path / "e.parquet", "exclusions")
    assert result["fault"].tolist() == ["foreign recording"]


def test_a_slice_may_have_no_io_and_a_cell_may_not() -> None:
    cells = table("cells", loop([100.0] * 3) + soak([100.0] * 3, step=1))
    cells.loc[[1, 4], ["read_ios", "write_ios", "iops", "bandwidth_mib_s"]] = 0
    cells.loc[[1, 4], "mean_latency_us"] = float("nan")
    cells["max_latency_us"] = cells["mean_latency_us"]
    for nines in ("50", "90", "99", "999", "9999", "99999", "999999"):
        cells[f"p{nines}_latency_us"] = cells["mean_latency_us"]
    cells["write_mean_latency_us"] = cells["mean_latency_us"]
    assert [reason is None for reason in unsound_cells(cells)] == [True, False, True, True, True, True]


def test_a_cell_with_ios_at_no_rate_contradicts_itself() -> None:
    cells = table("cells", loop([100.0] * 5))
    cells.loc[2, "iops"] = 0.0
    reasons = unsound_cells(cells)
    assert reasons[2] == "contradicts itself: fio did I/Os, but none a second"
    assert reasons.str.startswith("contradicts").sum() == 1
    windows_table(cells.assign(unsound=reasons), {0: UNTIL | {"track": [TRACK | {"read_share": 0}]}})


def _other_fio(found: list[dict[str, Any]]) -> None:
    found[0]["fio version"] = "fio-3.99"


def _other_job(name: str, value: str) -> Callable[[list[dict[str, Any]]], None]:
    return lambda found: found[0]["jobs"][0]["job options"].update({name: value})


def _least(value: float) -> Callable[[list[dict[str, Any]]], None]:
    return lambda found: found[0]["jobs"][0]["read"]["lat_ns"].update(min=value)


OF_CELLS: dict[str, tuple[Callable[[list[dict[str, Any]]], None], str, str]] = {
    "fio": (_other_fio, "mixed versions", "fio version 3.99, but the recording's host.json has"),
    "depth": (_other_job("iodepth", "32"), "foreign evidence", "fio ran with iodepth=32, but job.fio has 1"),
    "pattern": (_other_job("rw", "write"), "foreign evidence", "fio ran with rw=write, but job.fio has randread"),
    "drive": (_other_job("filename", "/dev/other"), "foreign evidence", "fio ran with filename=/dev/other, but"),
    "block": (_other_job("bs", "512"), "foreign evidence", "fio ran with bs=512, but job.fio has 8192"),
    "least": (_least(-5), "negative latency", "smallest latency of the reads -0.005 us"),
}


def test_a_cell_with_another_fio_or_job_or_a_negative_time_is_excluded(recording: Path) -> None:
    """Each case has a cell of its own; the last one has a changed job file."""
    job = recording / "cells/0-round05-cell01/job.fio"
    job.write_text(job.read_text().replace("bs=8192", "bs=4096"))
    folders = [f"cells/0-round0{number}-cell0{cell}" for number in range(1, 5) for cell in (1, 0)]
    for folder, (change, _, _) in zip(folders, OF_CELLS.values(), strict=False):
        change_documents(recording / folder, change)
    cells = collect(recording, reduced=False)["cells"]
    reasons = cells[cells["unsound"].notna()].set_index("directory")["unsound"]
    for folder, (_, fault, words) in zip(folders, OF_CELLS.values(), strict=False):
        assert reasons[folder].startswith(f"{fault}: ")
        assert words in reasons[folder]
    assert reasons["cells/0-round05-cell01"].startswith("foreign evidence: ")
    assert len(reasons) == len(excluded(recording, cells)) == len(OF_CELLS) + 1


OF_STATUSES: dict[str, tuple[Callable[[dict[str, Any]], None], str]] = {
    "rate": (lambda job: job["write"].update(iops=float("nan")), "not a number"),
    "bandwidth": (lambda job: job["write"].update(bw_bytes=float("inf")), "not a number"),
    "count": (lambda job: job["write"].update(total_ios=float("nan")), "not a number"),
    "fewer": (lambda job: job["write"].update(total_ios=0), "contradicts itself"),
    "least": (lambda job: job["write"]["lat_ns"].update(min=-5), "negative latency"),
}


@pytest.mark.parametrize("case", OF_STATUSES)
def test_a_bad_status_of_a_soak_excludes_the_two_slices_around_it(recording: Path, case: str) -> None:
    change, fault = OF_STATUSES[case]
    change_documents(recording / "cells/1-soak-part1", lambda found: change(found[2]["jobs"][0]))
    cells = collect(recording, reduced=False)["cells"]
    assert excluded(recording, cells) == [(f"slice {number}, RND 4KiB 0/100 T1Q4", fault) for number in (3, 4)]


def test_a_status_by_another_fio_in_a_soak_is_excluded(recording: Path) -> None:
    change_documents(recording / "cells/1-soak-part1", lambda found: found[2].update({"fio version": "fio-3.99"}))
    cells = collect(recording, reduced=False)["cells"]
    assert excluded(recording, cells) == [("slice 3, RND 4KiB 0/100 T1Q4", "mixed versions")]


def test_an_empty_journal_is_refused(recording: Path) -> None:
    (recording / "journal.jsonl").write_text("")
    for read in (lambda: collect(recording, reduced=False), lambda: recording_facts([recording])):
        with pytest.raises(UserError, match="its journal is empty; restore it from a copy, or delete the folder"):
            read()


def test_a_cell_twice_in_the_journal_counts_once() -> None:
    cells = table("cells", [row | _LATENCIES for row in loop([100.0, 50.0]) + loop([70.0])])
    assert [reason is None for reason in unsound_cells(cells)] == [True, True, False]


_LATENCIES = {"write_mean_latency_us": 5.0, "max_latency_us": 9.0} | {
    f"p{nines}_latency_us": 8.0 for nines in ("50", "90", "99", "999", "9999", "99999", "999999")
}


@settings(deadline=None)
@given(st.sets(st.integers(1, 12)), st.integers(5, 12))
def test_a_window_never_contains_an_unsound_round(bad: set[int], rounds: int) -> None:
    rows = [row | {"unsound": because("no I/O", "x") if row["round"] in bad else None} for row in loop([9.0] * rounds)]
    result = windows_table(table("cells", rows), {0: UNTIL | {"track": [TRACK | {"read_share": 0}]}})
    whole = [number for number in range(1, rounds + 1) if number not in bad]
    firsts = [number for number in whole if set(range(number, number + 5)) <= set(whole)]
    assert result.empty == (not whole)
    for window in result.to_dict("records"):
        inside = range(window["window_start"], window["window_end"] + 1)
        assert set(inside) <= set(whole)
        assert len(window["values"]) == len(inside)
        assert window["reached"] == bool(firsts)
        if firsts:
            assert window["window_start"] == firsts[0]


def test_labels_do_not_depend_on_unsound_cells() -> None:
    rows = loop([9.0], queue_depth=1) + [row | {"cell": 1} for row in loop([9.0], queue_depth=32)]
    rows[0]["unsound"] = because("no I/O", "x")
    cells = table("cells", rows)
    assert sound(cells)["cell_label"].tolist() == ["RND 4KiB 0/100 T2Q32"]
    assert sound(cells.drop(columns="unsound")).equals(cells.drop(columns="unsound"))


def test_faults_are_a_closed_list() -> None:
    assert split(because(MISSING_ROUND, "a: b")) == (MISSING_ROUND, "a: b")
    with pytest.raises(ValueError, match="unknown fault"):
        because("bad weather", "rain")
    assert key()["recording"]
