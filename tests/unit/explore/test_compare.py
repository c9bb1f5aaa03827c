"""Compare recordings of drives of known speed on the virtual clock, from the recordings to the printed text."""

from __future__ import annotations

import json
import re
import shutil
from dataclasses import replace
from datetime import UTC, datetime, timedelta, timezone
from itertools import product
from pathlib import Path
from typing import Any
from xml.etree import ElementTree

import import_origins
import pandas as pd
import pytest
from made_plans import made_plan
from made_recordings import FILL, another_run, change_journal
from scipy.stats import false_discovery_control

from drivelab.analysis.study_tables import study_tables
from drivelab.analysis.verdict import FASTER_BEYOND, SLOWER, SLOWER_BEYOND
from drivelab.cli.look.compare import headline
from drivelab.cli.main import main
from drivelab.collect.collect import collect
from drivelab.collect.conditions import conditions
from drivelab.core.errors import UserError
from drivelab.explore.compare import WITHIN_DATES, Comparison, Terms, compare, meant_to_differ
from drivelab.explore.comparison_lines import failing, interval, junit, markdown
from drivelab.explore.row_selection import IMPORTED, catalogue, parse, select
from drivelab.plan.plan import Plan
from drivelab.recording.writer import read_journal
from drivelab.run.condition import precondition, purge
from drivelab.run.measure import measure
from drivelab.tables import io
from drivelab.tables.windows import windows_table

READ = {"pattern": "random", "read_share": 100, "block_size_bytes": 4096, "threads": 1, "queue_depth": 1,
        "runtime_s": 0.6}  # fmt: skip
LOOP = {"loop": {"cells": [READ], "until": {"rounds": 5}, "cold_rounds": 1}}
READ_US = {"slow": 400, "fast": 100}


def tables(recording: Path, results: Path) -> None:
    plan = Plan.read(recording / "plan.json")
    made = collect(recording, reduced=False)
    criteria = {n: step["loop"]["until"] for n, step in enumerate(plan.subject["measure"]) if "loop" in step}
    for name, table in {**made, "steady_state": windows_table(made["cells"], criteria)}.items():
        io.write(table, results / "tables" / plan.recording / f"{name}.parquet", name)


def made(folder: Path, drive: str, run: int = 1, **more: Any) -> Path:
    """Record a drive with its known speed in FOLDER/results, with tables."""
    folder.mkdir(parents=True, exist_ok=True)
    plan = made_plan(folder, [LOOP], {"fill": FILL}, model={"read_us": READ_US[drive], "seed": run}, **more)
    plan = Plan({**plan.subject, "class": {**plan.subject["class"], "name": "client"}}, plan.context)
    sheet = Path(plan.context["drives_sheet"])
    sheet.write_text(sheet.read_text().replace("\nmine\t", f"\n{drive}\t"))
    plan = Plan(plan.subject, {**plan.context, "drive": drive, "run": run, "measurement": "reads"})
    purge(plan, folder / "purged.json")
    precondition(plan, folder / "purged.json", folder / "conditioned.json")
    measure(plan, folder / "conditioned.json")
    tables(plan.recording_path, folder / "results")
    return plan.recording_path


@pytest.fixture(scope="module")
def measured(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("compare")
    for drive in READ_US:
        made(folder, drive)
    return folder / "results"


@pytest.fixture
def results(measured: Path, tmp_path: Path) -> Path:
    """Return a copy of the results that a test may change."""
    return Path(shutil.copytree(measured, tmp_path / "results"))


def copied(recording: Path, results: Path, *, run: int, **changed: dict[str, str]) -> Path:
    """Copy a recording as a later run, with changed facts of `host` or `identity`."""
    place = another_run(recording, run)

    def change(lines: list[dict[str, Any]]) -> None:
        for line in lines:
            line["at"] = f"{2030 + run}{line['at'][4:]}"

    change_journal(place, change)
    for name, facts in {"recording": {"started": next(read_journal(place))["at"]}, **changed}.items():
        body = json.loads((place / f"{name}.json").read_text())
        (place / f"{name}.json").write_text(json.dumps({**body, **facts}))
    tables(place, results)
    return place


@pytest.fixture(scope="module")
def three_each(measured: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return results with three equal recordings of each drive, which no test changes."""
    results = Path(shutil.copytree(measured, tmp_path_factory.mktemp("three") / "results"))
    for drive in READ_US:
        for run in (2, 3):
            copied(recording_of(results, drive), results, run=run)
    return results


@pytest.fixture
def repeated(three_each: Path, tmp_path: Path) -> Path:
    """Return a copy of three recordings of each drive that a test may change."""
    return Path(shutil.copytree(three_each, tmp_path / "results"))


@pytest.fixture(scope="module")
def of_dates(three_each: Path, tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, tuple[str, ...]]:
    """Return results and selectors of three recordings each: slow, fast, and slow in 2034 to 2036."""
    results = Path(shutil.copytree(three_each, tmp_path_factory.mktemp("dates") / "results"))
    for run in (4, 5, 6):
        copied(recording_of(results, "slow"), results, run=run)
    return results, ("slow,until=2033-12-31", "fast", "slow,since=2034-01-01")


def against(results: Path, basis: str, comparison: str, **terms: Any) -> Comparison:
    return compare([parse(basis), parse(comparison)], results, Terms(**terms))[0]


def one_of(deltas: pd.DataFrame, metric: str) -> pd.DataFrame:
    return deltas[deltas["metric"] == metric]


def recording_of(results: Path, drive: str, run: int = 1) -> Path:
    return next((results / "recordings" / drive / "reads").glob(f"*-run{run}"))


def test_a_faster_drive_is_faster_by_its_true_ratio(three_each: Path) -> None:
    result = against(three_each, "slow", "fast")
    assert set(result.deltas["verdict"]) == {FASTER_BEYOND}
    latency = result.deltas.set_index("metric").loc["mean_latency_us"]
    way_us = latency["basis_value"] - READ_US["slow"]
    assert latency["comparison_value"] == pytest.approx(READ_US["fast"] + way_us), "only the flash is faster"
    assert latency["delta_pct"] == pytest.approx(100 * ((400 + way_us) / (100 + way_us) - 1))
    back = against(three_each, "fast", "slow")
    assert set(back.deltas["verdict"]) == {SLOWER_BEYOND}
    assert len(result.deltas) == 6
    assert result.counts == {FASTER_BEYOND: 4}, "IOPS and its twins count once"
    assert result.tested == 4 == back.counts[SLOWER_BEYOND]


def test_intended_and_other_differences_are_separated(results: Path) -> None:
    path = recording_of(results, "fast") / "host.json"
    path.write_text(json.dumps({**json.loads(path.read_text()), "kernel": "9.9"}))
    result = against(results, "slow", "fast")
    meant = result.differences[result.differences["intended"]]
    assert "virtual drive: read, µs" in set(meant["facet"])
    assert result.unintended["facet"].tolist() == ["kernel"]
    forbidden = against(results, "slow", "fast", forbid=True)
    assert set(forbidden.deltas["verdict"]) == {"not compared"}
    stated = against(results, "slow", "fast,kernel=9.9")
    assert stated.unintended.empty


@pytest.mark.parametrize(
    ("basis", "comparison", "meant"),
    [
        ("op7", "op28", ("drive",)),
        ("op7", "drive=op7", ()),
        ("op7@a", "op7@b", ("host", "setting", "scenario", "write cache", "file system")),
        ("op7@a", "op28@a", ("drive",)),
        ("op7,firmware=1", "op7,firmware=2", ("firmware",)),
        ("op7,kernel=6.1", "op7,kernel=6.2,host=b", ("host", "setting", "kernel")),
        ("op7,until=2026-01-01", "op7,since=2026-01-01", ("time",)),
        ("old:op7", "new:op7", ()),
    ],
)
def test_the_selectors_say_what_is_meant_to_differ(basis: str, comparison: str, meant: tuple[str, ...]) -> None:
    assert meant_to_differ(parse(basis), parse(comparison)) == meant


def test_a_side_has_all_its_recordings(three_each: Path) -> None:
    result = against(three_each, "slow,run=1", "fast,until=2031-01-01")
    assert set(result.deltas["basis_n"]) == {1}, "one recording, however many rounds"
    pooled = against(three_each, "fast", "slow")
    assert set(pooled.deltas["comparison_n"]) == {3}
    assert len(pooled.recordings["slow"]) == 3
    unequal = against(three_each, "fast,run=1", "slow")
    assert set(unequal.deltas["verdict"]) == {"cannot tell"}
    assert unequal.deltas["doubts"].tolist() == [["too few recordings (1 and 3 a side; a verdict needs 3)"]] * 6
    assert unequal.deltas["delta_pct"].notna().all()
    assert unequal.tested == 0


def test_values_at_different_loads_are_not_judged(results: Path) -> None:
    """The labels are equal, because a label has the load only if it varies within a recording."""
    path = next((results / "tables/fast/reads").glob("*/cells.parquet"))
    io.write(io.read(path, "cells").assign(threads=2, queue_depth=8), path, "cells")
    result = against(results, "slow", "fast")
    assert set(result.deltas["verdict"]) == {"cannot tell"}
    assert {doubts[0] for doubts in result.deltas["doubts"]} == {"at different loads: T1Q1 and T2Q8"}
    (load,) = result.differences[result.differences["facet"] == "load"].to_dict("records")
    assert (load["basis_value"], load["comparison_value"]) == ("T1Q1", "T2Q8")


def test_a_zero_has_no_sign() -> None:
    assert interval(-0.001, 0.001) == "0.00 to 0.00 %"
    assert interval(-0.006, 1.0) == "\N{MINUS SIGN}0.01 to +1.0 %"


def test_recordings_with_other_versions_are_listed_as_excluded(results: Path) -> None:
    for run in (2, 3):
        copied(recording_of(results, "slow"), results, run=run, identity={"firmware": "NEW"})
    result = against(results, "fast", "slow")
    assert result.exclusions["fault"].tolist() == ["mixed versions"]
    assert result.exclusions["recording"].tolist()[0].endswith("-run1")
    assert all("-run1" not in name for name in result.recordings["slow"])


def test_recordings_by_another_plan_are_listed_as_excluded(results: Path, tmp_path: Path) -> None:
    """Another seed makes another drive, and so another plan."""
    later = made(tmp_path / "again", "slow", scenario="synthetic")
    plan = Plan.read(later / "plan.json")
    shutil.copytree(later, results / "recordings" / plan.recording)
    shutil.copytree(tmp_path / "again/results/tables" / plan.recording, results / "tables" / plan.recording)
    result = against(results, "fast", "slow")
    assert result.recordings["slow"] == (plan.recording,)
    assert "another plan" in result.exclusions["words"].iloc[0]


def test_an_imported_folder_is_compared_by_its_tables(results: Path, tmp_path: Path) -> None:
    """An import has a summary and conditions, but no recordings."""
    from drivelab.analysis.values.summary import summary_table

    recording = recording_of(results, "slow")
    read = {name: io.read(results / "tables/slow/reads" / recording.name / f"{name}.parquet", name)
            for name in ("cells", "steady_state", "replays", "replay_passes")}  # fmt: skip
    other = tmp_path / "imported"
    io.write(summary_table(**read).assign(measurement="imported"), other / "tables/summary.parquet", "summary")
    of = conditions([recording], {}, read["cells"]).assign(measurement="imported")
    io.write(of[of["facet"] != "kernel"], other / "tables/conditions.parquet", "conditions")
    (other / IMPORTED).write_text("{}")
    result = against(results, f"{other}:slow", "fast")
    assert all(
        f"the load of {other}:slow is not known and may differ" in remarks for remarks in result.deltas["remarks"]
    )
    assert result.not_recorded.set_index("facet").loc["kernel", "basis_value"] == "not recorded"
    assert "kernel" not in set(result.unintended["facet"])
    of.loc[of["facet"] == "fill", "value"] = "none"
    io.write(of, other / "tables/conditions.parquet", "conditions")
    filled = against(results, f"{other}:slow", "fast")
    assert set(filled.deltas["verdict"]) == {"cannot tell"}
    assert all(doubts[0].startswith("fill differs: none and ") for doubts in filled.deltas["doubts"])


def own_iops(folder: Path) -> Path:
    """Record TKperf's mixes and block sizes as pts-iops on the virtual clock; return the results folder."""
    mixes, blocks = (100, 65, 0), (4096, 65536)
    cells = [{**READ, "read_share": share, "block_size_bytes": block, "threads": 2, "queue_depth": 16}
             for block in blocks for share in mixes]  # fmt: skip
    track = {"pattern": "random", "read_share": 0, "block_size_bytes": 4096, "metric": "iops"}
    until = {"window": 5, "max_rounds": 25, "data_excursion": 0.2, "slope_excursion": 0.1, "track": [track]}
    plan = made_plan(folder, [{"loop": {"cells": cells, "until": until}}], {"fill": FILL}, protocol="pts-iops")
    plan = Plan(plan.subject, {**plan.context, "measurement": "pts-iops"})
    plan = Plan({**plan.subject, "class": {**plan.subject["class"], "name": "client"}}, plan.context)
    purge(plan, folder / "purged.json")
    precondition(plan, folder / "purged.json", folder / "conditioned.json")
    measure(plan, folder / "conditioned.json")
    tables(plan.recording_path, folder / "results")
    return folder / "results"


def test_an_imported_tkperf_result_is_compared_cell_by_cell(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    source, imported = import_origins.tkperf(tmp_path / "s4600.xml", tests=("iops",)), tmp_path / "imported"
    assert main(["import", "tkperf", str(source), "--drive", "s4600", "-o", str(imported)]) == 0
    own = own_iops(tmp_path)
    basis = f"{imported}:s4600"
    result = against(own, basis, "mine")
    assert result.measurements == {basis: "imported-tkperf-iops", "mine": "pts-iops"}
    cells = result.deltas[result.deltas["metric"] == "iops"].set_index("cell_label")
    assert set(cells.index) == {f"RND {block}KiB {mix}" for block in (4, 64) for mix in ("100/0", "65/35", "0/100")}
    rounds = import_origins.WRITES_4K[1:]
    for label, share, block in (("RND 4KiB 0/100", 0, 4096), ("RND 64KiB 65/35", 65, 65536)):
        expected = sum(import_origins.iops(level, share, block) for level in rounds) / 5
        assert cells.loc[label, "basis_value"] == pytest.approx(expected)
    assert set(result.deltas["verdict"]) == {"cannot tell"}, "one side was measured, the other is virtual"
    assert set(result.deltas["outcome"]) == {"in these recordings"}
    assert result.deltas["delta_pct"].notna().all()
    assert all("one ran on the wall clock, one on the virtual clock" in doubts for doubts in result.deltas["doubts"])
    capsys.readouterr()
    assert main(["compare", basis, "mine", "--results", str(own)]) == 0
    lines = capsys.readouterr().out.splitlines()
    assert lines[1:3] == [f"A: {basis} (basis)", "B: mine"]
    words = f"Different measurements, compared cell by cell: imported-tkperf-iops of {basis} with pts-iops of mine"
    assert words in lines
    assert sum(line.startswith("Random 65/35 read/write 64 KiB") for line in lines) == 1


def imported(folder: Path, kind: str, source: Path, name: str) -> str:
    """Import a source and return its selector."""
    assert main(["import", kind, str(source), "--drive", "s4600", "-o", str(folder / name)]) == 0
    return f"{folder / name}:s4600"


def test_facets_recorded_by_neither_import_are_one_count_that_unfolds(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    source = import_origins.tkperf(tmp_path / "s4600.xml", tests=("iops",))
    sides = [imported(tmp_path, "tkperf", source, name) for name in ("old", "new")]
    result = compare(list(map(parse, sides)), tmp_path, Terms())[0]
    assert result.unintended.empty
    unknown = list(result.not_recorded["facet"])
    assert {"purge", "CPU", "temperature"} <= set(unknown)
    assert not {"model", "kernel", "protocol"} & set(unknown)
    capsys.readouterr()
    assert main(["compare", *sides]) == 0
    lines = capsys.readouterr().out.splitlines()
    count = f"{len(unknown)} conditions are not recorded on one or both sides and may differ; --conditions lists them"
    assert lines[4:6] == ["Differs too: nothing that was recorded", count]
    assert not any("purge" in line for line in lines), "folded"
    assert main(["compare", *sides, "--conditions"]) == 0
    table = capsys.readouterr().out.splitlines()[-len(unknown) :]
    assert [line.partition("  ")[0] for line in table] == unknown
    assert all(line.endswith("may differ") for line in table)
    assert main(["compare", *sides, "--json"]) == 0
    assert [row["facet"] for row in json.loads(capsys.readouterr().out)["not_recorded"]] == unknown


def fio_run(folder: Path, iops: float, *, second: int = 0, **options: str) -> Path:
    """Write fio's JSON output of random reads of 4 KiB, T1Q1."""
    folder.mkdir()
    wanted = import_origins.options(**{"ioengine": "libaio", "direct": "1", **options})
    document = import_origins.document(import_origins.job(iops, 0.0, wanted), second=second)
    return import_origins.write(folder / "fio.json", document)


def test_two_fio_results_give_the_difference_and_why_it_is_no_verdict(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    sides = [imported(tmp_path, "fio-json", fio_run(tmp_path / f"run{iops}", iops), f"of{iops}") for iops in (100, 120)]
    result = compare(list(map(parse, sides)), tmp_path, Terms())[0]
    speed = result.deltas.set_index("metric").loc["iops"]
    assert (speed["basis_value"], speed["comparison_value"]) == (100, 120)
    assert speed["delta_pct"] == pytest.approx(20)
    assert list(speed["doubts"]) == ["too few recordings (1 a side; a verdict needs 3)"]
    assert set(result.deltas["outcome"]) == {"in these recordings"}
    assert set(result.deltas["verdict"]) == {"cannot tell"}
    capsys.readouterr()
    assert main(["compare", *sides]) == 0
    (line,) = [line for line in capsys.readouterr().out.splitlines() if line.startswith("Random read 4 KiB, QD1 ")]
    assert line.split()[-5:] == ["100", "120", "IOPS", "+20", "%"]


@pytest.mark.parametrize("swapped", [False, True])
def test_a_workload_at_several_loads_on_one_side_only_is_matched_by_its_load(tmp_path: Path, swapped: bool) -> None:
    several = tmp_path / "several"
    several.mkdir()
    for second, (depth, iops) in enumerate((("1", 100), ("32", 900))):
        fio_run(several / depth, iops, second=second, iodepth=depth)
    sides = [imported(tmp_path, "fio-json", several, "old")]
    sides.append(imported(tmp_path, "fio-json", fio_run(tmp_path / "one", 1000, iodepth="32"), "new"))
    result = compare([parse(side) for side in sorted(sides, reverse=swapped)], tmp_path, Terms())[0]
    rows = result.deltas.set_index("metric").loc[["iops"]]
    assert list(rows["cell_label"]) == ["RND 4KiB 100/0 T1Q32"]
    assert {*rows["basis_value"], *rows["comparison_value"]} == {900, 1000}
    assert result.unintended.empty, "the load is the same"
    assert not result.alone[sides[1]]


def test_sides_without_a_common_workload_are_named_with_what_they_have(tmp_path: Path) -> None:
    old = imported(tmp_path, "fio-json", fio_run(tmp_path / "run1", 100), "old")
    new = imported(tmp_path, "fio-json", fio_run(tmp_path / "run2", 100, rw="read", bs="1m"), "new")
    with pytest.raises(UserError, match=rf"'{old}' has RND 4KiB 100/0 iops.*'{new}' has SEQ 1024KiB 100/0 iops"):
        compare([parse(old), parse(new)], tmp_path, Terms())


def test_imports_that_cannot_be_compared_are_refused_with_a_hint(tmp_path: Path, measured: Path) -> None:
    """The error must not claim that two window averages have different statistics."""
    source = import_origins.tkperf(tmp_path / "s4600.xml", tests=("iops", "lat"))
    sides = [imported(tmp_path, "tkperf", source, name) for name in ("old", "new")]
    with pytest.raises(UserError, match="or one on each side to compare them cell by cell"):
        against(measured, sides[0], "slow")
    path = tmp_path / "new/tables/summary.parquet"
    io.write(io.read(path, "summary").assign(protocol="another"), path, "summary")
    with pytest.raises(UserError, match="by different protocols, imported tkperf and another; choose one measurement"):
        compare(list(map(parse, sides)), tmp_path, Terms())


def printed(results: Path, capsys: pytest.CaptureFixture[str], *arguments: str) -> list[str]:
    assert main(["compare", *arguments, "--results", str(results)]) == 0
    return capsys.readouterr().out.splitlines()


def test_read_ahead_does_not_prevent_a_comparison_of_direct_io(
    repeated: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    for drive, kib in (("slow", "128"), ("fast", "4096")):
        for run in (1, 2, 3):
            rows = [{"name": "Read-ahead", "scope": drive, "state": kib}]
            (recording_of(repeated, drive, run) / "settings.json").write_text(json.dumps(rows))
    lines = printed(repeated, capsys, "slow", "fast", "--forbid-differences")
    assert "4 faster beyond the margin" in lines[0]
    assert lines[2] == "Differs too: nothing that was recorded"
    assert lines[3] == (
        "Differs, but cannot act: drive setting: Read-ahead (128 / 4096): direct I/O bypasses read-ahead"
    )


@pytest.mark.parametrize(
    ("file", "fact", "new"),
    [("identity", "firmware", "NEW"), ("host", "host", "bench-2"), ("host", "kernel", "9.9"), ("host", "fio", "fio-9")],
)
def test_one_drive_before_and_after_a_change(
    of_dates: tuple[Path, tuple[str, ...]], tmp_path: Path, capsys: pytest.CaptureFixture[str], file: str, fact: str,
    new: str,
) -> None:  # fmt: skip
    """Recordings are compared with copies with one changed fact: only this fact differs."""
    results = Path(shutil.copytree(of_dates[0], tmp_path / "results"))
    old = catalogue(results).set_index("drive").loc["slow"].iloc[0][fact]
    for run in (4, 5, 6):
        path = recording_of(results, "slow", run) / f"{file}.json"
        path.write_text(json.dumps({**json.loads(path.read_text()), fact: new}))
    lines = printed(results, capsys, f"slow,{fact}={old}", f"slow,{fact}={new}")
    assert lines[0].startswith(f"slow,{fact}={new} against slow,{fact}={old}: 4 same within the margin (")
    (meant,) = (line.partition(": ")[2] for line in lines if line.startswith("Meant to differ: "))
    assert f"{fact} ({old} / {new})" in meant
    assert "Differs too: nothing that was recorded" in lines


@pytest.mark.parametrize(
    ("basis", "comparison", "words"),
    [
        ("slow", "slow", "is on both sides"),
        ("slow", "drive=slow", "both have the recording slow/reads"),
        ("slow", "missing", "no recording has drive missing; there is fast, slow"),
        ("slow", "fast,run=7", "no recording has run 7; there is 1"),
        ("slow", "fast,since=2999-01-01", r"no recording has since 2999-01-01; there is \S+Z? to \S+$"),
        ("slow", "measurement=reads", "recordings of several drives: fast, slow; their values are never pooled"),
        ("slow", "colour=red", "'colour=red' in 'colour=red' is not a valid selector"),
        ("slow", "fast,fast", "is not a valid selector"),
        ("slow", "fast,since=yesterdayish", "is not a date"),
        ("slow", "fast,since=01/01/2030", "'01/01/2030' in .* is not a date; write it as 2026-05-01"),
        ("slow", "fast,until=NaT", "is not a date"),
        ("slow", "fast,date=2999-01", r"no recording has date 2999-01; there is \S+Z? to \S+$"),
        ("slow", "fast,date=5/2026", "'5/2026' in .* is not a date; write a year, month or day"),
        ("slow", "", "the selector is empty"),
        ("slow", "nowhere:fast", "nowhere does not exist"),
    ],
)
def test_an_invalid_selector_is_refused(measured: Path, basis: str, comparison: str, words: str) -> None:
    with pytest.raises(UserError, match=words):
        against(measured, basis, comparison)


def test_a_comparison_within_a_study_gives_the_verdicts_of_the_study(
    results: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """What shifts a run of both drives cancels, and margin and confidence are the study's."""
    recordings = []
    for run, block in zip(range(2, 8), (0.2, 3, 1, 0.5, 5, 2), strict=True):
        for drive in READ_US:
            recordings.append(place := copied(recording_of(results, drive), results, run=run))
            path = results / "tables" / drive / "reads" / place.name / "cells.parquet"
            cells = io.read(path, "cells")
            for name in ("iops", "bandwidth_mib_s", *(name for name in cells if name.endswith("latency_us"))):
                cells[name] *= (block + run * len(drive) % 5 / 1000) ** (1 if name.endswith("_us") else -1)
            io.write(cells, path, "cells")
    for drive in READ_US:
        shutil.rmtree(recording_of(results, drive))
    study = {**dict.fromkeys(("others", "missing"), ()), "scores": {}, "score_sets": {}, "models": {}, "altered": {},
             "drives": [*READ_US], "measurements": ["reads"], "rse_threshold_pct": 5.0, "basis": "slow",
             "pairs": [("slow", "fast")], "intended": None, "level": "the level is lost",
             "comparison": {"margin_pct": 3.0, "confidence_pct": 98.75, "unintended": "show"}}  # fmt: skip
    of_study = study_tables(recordings, study)["deltas"].set_index("metric")
    assert of_study.loc["mean_latency_us", "verdict"] == FASTER_BEYOND
    (results / "facts").mkdir()
    (results / "facts/analysis-0.json").write_text(json.dumps(study))
    assert main(["compare", "slow", "fast", "--results", str(results), "--json"]) == 0
    body = json.loads(capsys.readouterr().out)
    assert all(remarks == body["labels"][:1] == ["the level is lost"] for remarks in of_study["remarks"])
    rows, numbers = pd.DataFrame(body["deltas"]).set_index("metric"), ["interval_low_pct", "p_adjusted", "freedom"]
    pd.testing.assert_frame_equal(rows[["verdict", *numbers]], of_study[["verdict", *numbers]], check_dtype=False)
    assert "margin 4 %, confidence 98.75 %" in printed(results, capsys, "slow", "fast", "--margin", "4%")[0]
    line = printed(results, capsys, "slow", f"{shutil.copytree(results, tmp_path / 'moved')}:fast")[0]
    assert re.search("4 cannot tell.*margin 5 %, confidence 95 %", line), "runs of two folders are not paired"


@pytest.mark.parametrize("days", [(1, 1, 1), (1, 2, 3)])
def test_a_comparison_between_dates_says_what_is_not_known(
    of_dates: tuple[Path, tuple[str, ...]], tmp_path: Path, capsys: pytest.CaptureFixture[str], days: tuple[int, ...]
) -> None:
    """Three recordings of each of two days say nothing of other days; three of a day each scatter as days do."""
    results, junit_file = Path(shutil.copytree(of_dates[0], tmp_path / "results")), tmp_path / "results.xml"
    for run, (month, day) in enumerate(product((5, 6), days), start=1):
        at = f"2031-0{month}-0{day}T0{run}:00:00.000+00:00"
        recording = recording_of(results, "slow", run)
        change_journal(recording, lambda lines, at=at: lines[0].update(at=at))
        path = results / "tables/slow/reads" / recording.name / "cells.parquet"
        cells = io.read(path, "cells")
        io.write(cells.assign(p99_latency_us=cells["p99_latency_us"] * (month - 4)), path, "cells")
    sides = ["compare", "slow,date=2031-05", "slow,date=2031-06", "--results", str(results)]
    assert main([*sides, "--fail-on", "slower", "--junit", str(junit_file)]) == 4
    out, error = capsys.readouterr()
    assert main([*sides, "--markdown"]) == main([*sides, "--json"]) == 0
    more = capsys.readouterr().out
    (failure,) = (case.get("message", "") for case in ElementTree.parse(junit_file).getroot().iter("failure"))
    for text in (out, error, failure, more.partition("{")[0].replace("\\", ""), more.partition("{")[2]):
        assert (WITHIN_DATES in text) == (days == (1, 1, 1))
    assert WITHIN_DATES not in against(of_dates[0], "fast", "slow,until=2033-12-31").labels, "they have a day in common"


def test_times_are_compared_in_utc_and_a_day_includes_its_end(measured: Path) -> None:
    recordings = catalogue(measured)
    day = recordings["started"].iloc[0][:10]
    assert len(select(recordings, parse(f"slow,until={day}"))) == 1
    assert len(select(recordings, parse(f"slow,since={day}"))) == 1
    begun = datetime.fromisoformat(recordings.loc[recordings["drive"] == "slow", "started"].min())
    for zone in (UTC, timezone(timedelta(hours=1)), timezone(timedelta(hours=-9))):
        moment = begun.astimezone(zone)
        for key in ("since", "until"):
            assert len(select(recordings, parse(f"slow,{key}={moment.isoformat()}"))) == 1, "the given time is included"
        later = moment + timedelta(milliseconds=1)
        with pytest.raises(UserError, match="selects nothing"):
            select(recordings, parse(f"slow,since={later.isoformat()}"))


def test_each_reason_is_printed_once_and_numbers_are_readable(
    results: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """All values of a tainted recording are in doubt; lines refer to the reason by number."""
    for path in (results / "tables/slow").rglob("cells.parquet"):
        load = "load: others used 40 % of the host's CPU time"
        io.write(io.read(path, "cells").assign(tainted=True, taint_reason=load), path, "cells")
    lines = printed(results, capsys, "slow", "fast")
    rows = [line for line in lines if line.startswith(("Random read 4 KiB, QD1", "  "))][1:]
    assert [line[:24].strip() for line in rows] == [
        "Random read 4 KiB, QD1", "median latency", "90 % latency", "99 % latency",
    ]  # fmt: skip
    assert all(line.endswith(" %") for line in rows)
    reason, few = [line for line in lines if line.startswith("All values: ")]
    assert few == "All values: too few recordings (1 a side; a verdict needs 3)"
    assert reason.startswith("All values: slow: tainted (load: others used 40 % of the host's CPU time at worst")
    assert max(map(len, rows)) < 80
    assert not any("_us" in line or "e+" in line for line in rows)


@pytest.mark.parametrize(
    ("refused", "swapped", "status", "words"),
    [
        ("slower", True, 4, "4 tests slower"),
        ("slower", False, 0, ""),
        ("different", False, 5, "tests different"),
        ("slower,different", True, 4, "tests different"),
        ("undecided", False, 0, ""),
    ],
)
def test_a_check_fails_on_what_the_user_refuses(
    three_each: Path, refused: str, swapped: bool, status: int, words: str, capsys: pytest.CaptureFixture[str]
) -> None:
    sides = ("fast", "slow") if swapped else ("slow", "fast")
    assert main(["compare", *sides, "--results", str(three_each), "--fail-on", refused]) == status
    error = capsys.readouterr().err
    assert words in error
    assert bool(error) == bool(status)


def test_a_check_refuses_no_difference_that_may_be_within_the_margin(three_each: Path) -> None:
    comparison = against(three_each, "fast", "slow")
    unsure = replace(comparison, deltas=comparison.deltas.assign(outcome=SLOWER))
    assert failing([comparison], ["slower"]) == {"slower": 4}
    assert failing([unsure], ["slower", "different", "undecided"]) == {}


def test_markdown_and_junit_have_every_value_and_escape_names(
    three_each: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = tmp_path / "results.xml"
    options = ("--markdown", "--junit", str(path), "--fail-on", "slower")
    assert main(["compare", "fast", "slow", "--results", str(three_each), *options]) == 4
    text = capsys.readouterr().out
    assert "| Random read 4 KiB, QD1: 99 % latency |" in text
    suite = ElementTree.parse(path).getroot()
    assert (suite.get("tests"), suite.get("failures")) == ("4", "4")
    comparison = against(three_each, "slow", "fast")
    hostile = replace(comparison, basis="<b>|x_y\x1b")
    assert r"\<b\>\|x\_y\x1b" in markdown([hostile], [headline(hostile)])
    assert ElementTree.fromstring(junit([hostile], ())).get("name", "").endswith(r"<b>|x_y\x1b")


def test_the_command_prints_everything_and_its_exit_status(repeated: Path, capsys: pytest.CaptureFixture[str]) -> None:
    arguments = ["compare", "slow", "fast", "--results", str(repeated)]
    assert main(arguments) == 0
    lines = capsys.readouterr().out.splitlines()
    assert lines[0].startswith("fast against slow: 4 faster beyond the margin; largest: Random read 4 KiB, QD1")
    assert lines[1].startswith("Meant to differ: ")
    assert lines[2] == "Differs too: nothing that was recorded"
    assert "Labels: virtual clock, virtual drive" in lines
    assert main([*arguments, "--json", "--margin", "3%"]) == 0
    result = json.loads(capsys.readouterr().out)
    assert result["margin_pct"] == 3
    assert {row["verdict"] for row in result["deltas"]} == {FASTER_BEYOND}
    for run in (1, 2, 3):
        path = recording_of(repeated, "fast", run) / "host.json"
        path.write_text(json.dumps({**json.loads(path.read_text()), "kernel": "9.9"}))
    assert main([*arguments, "--forbid-differences"]) == 3
    out = capsys.readouterr().out
    assert "4 not compared" in out
    assert "kernel (" in out
    assert main([*arguments, "--margin", "120%"]) == 2
    assert "--margin" in capsys.readouterr().err


def test_several_sides_are_compared_with_the_first(of_dates: tuple[Path, tuple[str, ...]]) -> None:
    results, sides = of_dates
    fast, later = compare(list(map(parse, sides)), results, Terms())
    assert (fast.comparison, later.comparison) == sides[1:]
    assert set(fast.deltas["verdict"]) == {FASTER_BEYOND}
    assert not {FASTER_BEYOND, SLOWER_BEYOND} & set(later.deltas["verdict"])
    assert (later.deltas["delta_pct"] == 0).all()
    alone = [against(results, sides[0], side) for side in sides[1:]]
    assert fast.tested == later.tested == sum(comparison.tested for comparison in alone)
    for together, pair in zip((fast, later), alone, strict=True):
        assert together.meant == pair.meant
        same = ["measurement", "cell_label", "metric", "basis_value", "comparison_value", "delta_pct", "p_value"]
        pd.testing.assert_frame_equal(together.deltas[same], pair.deltas[same])


def test_p_values_of_several_sides_are_adjusted_together(of_dates: tuple[Path, tuple[str, ...]]) -> None:
    results, sides = of_dates
    both = compare(list(map(parse, sides)), results, Terms())
    rows = pd.concat([one_of(comparison.deltas, "iops") for comparison in both])
    p = sorted(rows["p_value"])
    assert sorted(rows["p_adjusted"]) == pytest.approx(false_discovery_control(p)), "one workload, so two comparisons"


def test_several_sides_have_a_line_each(
    of_dates: tuple[Path, tuple[str, ...]], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    results, sides = of_dates
    arguments = ["compare", *sides, "--results", str(results)]
    path = tmp_path / "results.xml"
    assert main([*arguments, "--junit", str(path)]) == 0
    lines = capsys.readouterr().out.splitlines()
    headlines = [f"{side} against {sides[0]}" for side in sides[1:]]
    assert [line.partition(":")[0] for line in lines[:5]] == [*headlines, "A", "B", "C"]
    head = next(place for place, line in enumerate(lines) if line.startswith("workload"))
    assert lines[head].split()[1:5] == ["A", "compared", "value", "unit"]
    assert re.match(r"Random read 4 KiB, QD1 +\S+ +B +", lines[head + 1])
    assert re.match(r" +\S+ +C +", lines[head + 2])
    assert lines.count("B") == lines.count("C") == 1, "what differs is listed for each side"
    assert [suite.get("tests") for suite in ElementTree.parse(path).getroot()] == ["4", "4"]
    assert main([*arguments, "--json", "--origin"]) == 0
    bodies = json.loads(capsys.readouterr().out)
    assert [(body["basis"], body["comparison"]) for body in bodies] == [(sides[0], side) for side in sides[1:]]
    assert all(row["recordings"] for body in bodies for row in body["origin"])
    assert main([*arguments, "--markdown"]) == 0
    assert capsys.readouterr().out.count("| Random read 4 KiB, QD1 |") == 2


def test_a_date_selects_a_year_month_or_day(three_each: Path) -> None:
    recordings = catalogue(three_each)
    for drive, date, runs in (("slow", "2032", [2]), ("fast", "2033", [3])):
        chosen = select(recordings, parse(f"{drive},date={date}"))
        assert list(chosen["run"]) == runs
        day = chosen["started"].iloc[0][:10]
        for part in (day, day[:7]):
            assert list(select(recordings, parse(f"{drive},date={part}"))["run"]) == runs


def test_a_data_sheet_is_compared_with_each_selector(
    three_each: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    sheet = tmp_path / "rated.yaml"
    reads = "pattern: random, read_share: 100, block_size: 4KiB, queue_depth: 1"
    sheet.write_text(f"model: '*'\nsource: made up\nvalues:\n  - {{mean_latency: 300us, {reads}}}\n")
    rated = ["--datasheet", str(sheet), "--results", str(three_each)]
    assert main(["compare", "fast", *rated]) == 0
    assert re.match(r"fast \(.*\): 1 pass, 0 fail, 0 cannot tell; virtual\n", capsys.readouterr().out)
    assert main(["compare", "fast", "slow,run=1", *rated, "--json"]) == 4
    rows = json.loads(capsys.readouterr().out)
    assert [(row["drive"], row["verdict"]) for row in rows] == [("fast", "pass"), ("slow,run=1", "cannot tell")]
    assert main(["compare", "fast", "slow", *rated]) == 3
    assert main(["compare", "fast", *rated, "--fail-on", "slower"]) == 2
    assert "--fail-on is not for --datasheet" in capsys.readouterr().err
    sheet.write_text(sheet.read_text().replace("'*'", "other"))
    assert main(["compare", "fast", *rated]) == 2
    assert "rates the model 'other', but 'fast' is of the model" in capsys.readouterr().err
    assert main(["compare", "fast", "--results", str(three_each)]) == 2
    assert "give two selectors or more" in capsys.readouterr().err
