from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pandas as pd
import pytest

from drivelab.analysis.replay_metrics import SCORE_FORMULA
from drivelab.analysis.verdict import BETTER, CANNOT_TELL, NOT_COMPARED, SAME, WORSE
from drivelab.errors import UserError
from drivelab.report.model import build
from drivelab.report.numbers import DASH, MISSING
from drivelab.report.view import Page, Report, Table

Tables = dict[str, pd.DataFrame]
Plans = list[dict[str, Any]]
REMARK = "the spread is within a recording"


@pytest.fixture
def report(tables: Tables, study: dict[str, Any], plans: Plans, figures: Any) -> Report:
    return build(tables, study, plans, figures, "2025-11-21T05:10:00+00:00")


def plain(text: str) -> str:
    return text.replace("\u00a0", " ")


def page(report: Report, drive: str, measurement: str) -> Page:
    return next(one for one in report.pages if (one.drive, one.measurement) == (drive, measurement))


def facts(of: Page) -> dict[str, str]:
    return {fact.name: plain(fact.value) for group in of.groups for fact in group.facts}


def rows(table: Table | None) -> dict[str, list[str]]:
    assert table is not None
    return {row[0].text: [plain(cell.text) for cell in row[1:]] for row in table.rows}


def test_headlines_are_the_tracked_variables_then_one_metric_for_each_other_test(report: Report) -> None:
    span = "; Δ +58 % to +66 %, 95 % confidence"
    assert [plain(one.sentence) for one in report.headlines] == [
        f"op28 beats op7 at RND 4KiB 0/100 by 62 % (2,310 against 1,428 IOPS{span}), within one recording.",
        f"op28 beats op7 at RND 64KiB 65/35 by 62 % (574.5 against 355.2 IOPS{span}), within one recording.",
        f"op28 beats op7 at RND 1024KiB 100/0 by 62 % (72.56 against 44.87 IOPS{span}), within one recording.",
        f"op28 beats op7 at RND 4KiB 0/100 by 62 % (2,403 against 1,486 IOPS{span}), within one recording.",
        "op28 beats op7 in access time of the replay sqlite, 1.20 times as fast (508.3 against 612.4 µs; "
        "Δ +16 % to +24 %, 95 % confidence), within one recording.",
    ]
    assert [plain(one) for one in report.lead] == [
        "op28 beats op7 in all 5 headline comparisons by a Δ of 20 to 62 %, within one recording."
    ]
    assert report.headlines[3].context == "pts-write-saturation; post-saturation average"


def test_the_words_of_the_verdict_are_explained_with_margin_and_number_of_values(report: Report) -> None:
    told = plain(report.verdict_terms)
    assert told.startswith(
        "Of all 14 comparisons: 13 better, 1 the same. IOPS, throughput and mean latency of a cell are one "
        "comparison, counted by the first of them; 34 values are compared."
    )
    assert "for the 14 comparisons tested in the pair" in told
    assert "the margin of ±5 %" in told
    assert "(95 % confidence)" in told


def test_a_loss_a_draw_and_what_cannot_be_told_are_each_told_as_such(
    tables: Tables, study: dict[str, Any], plans: Plans
) -> None:
    deltas = tables["deltas"]
    for place, row in deltas.iterrows():
        if row.cell_label == "RND 64KiB 65/35":
            deltas.at[place, "verdict"], deltas.at[place, "doubts"] = CANNOT_TELL, ["op7: tainted"]
        elif row.cell_label == "RND 1024KiB 100/0":
            deltas.at[place, "verdict"], deltas.at[place, "delta_pct"] = SAME, 1.2
        elif row.measurement == "trace-replay":
            deltas.at[place, "verdict"], deltas.at[place, "delta_pct"] = WORSE, -17.4
    report = build(tables, study, plans, {}, None)
    assert [plain(one) for one in report.lead] == [
        "op28 beats op7 in 2 (by 62 %) and trails op7 in 1 (by a Δ of 17 %) of 5 headline comparisons, "
        "within one recording; 1 the same, 1 cannot be told."
    ]
    told = [plain(one.sentence) for one in report.headlines]
    assert told[1].startswith("op28 against op7 at RND 64KiB 65/35: +62 % (574.5 against 355.2 IOPS; ")
    assert told[1].endswith("), cannot tell: op7: tainted.")
    assert told[2].startswith("op28 is the same as op7 at RND 1024KiB 100/0 within ±5 %: +1.2 % (72.56 against 44.87")
    assert told[4].startswith(
        "op28 trails op7 in access time of the replay sqlite, 1.21 times as long (508.3 against 612.4 µs"
    )
    assert [one.outcome for one in report.headlines] == [BETTER, CANNOT_TELL, SAME, BETTER, WORSE]


def test_two_values_that_cannot_be_compared_are_not_said_to_be_missing(
    tables: Tables, study: dict[str, Any], plans: Plans
) -> None:
    deltas = tables["deltas"]
    deltas.loc[deltas.cell_label == "RND 4KiB 0/100", "delta_pct"] = float("nan")
    report = build(tables, study, plans, {}, None)
    assert report.headlines[0].delta == DASH
    assert report.verdict_table is not None
    assert report.verdict_table.rows[0][1].text == DASH
    of_iops = next(one for one in report.comparison_tables if one.id == "deltas-1")
    assert of_iops.rows[0][1].text == DASH
    assert ("Delta", "none: the two cannot be compared") in of_iops.rows[0][1].proof.facts  # type: ignore[union-attr]
    tables["deltas"].loc[deltas.cell_label == "RND 4KiB 0/100", "basis_value"] = float("nan")
    assert build(tables, study, plans, {}, None).headlines[0].delta == "not recorded"


def test_a_delta_of_many_hundreds_leaves_a_bar_to_the_others(
    tables: Tables, study: dict[str, Any], plans: Plans
) -> None:
    tables["deltas"].loc[0, "delta_pct"] = 711.0
    tables["deltas"].loc[1, "delta_pct"] = -5.0
    table = next(one for one in build(tables, study, plans, {}, None).comparison_tables if one.id == "deltas-1")
    bars = {row[1].value: row[1].bar for row in table.rows}
    assert bars[711.0] == 1
    assert bars[-5.0] == pytest.approx(-0.27, abs=0.01)


def test_without_a_doubt_the_reason_is_the_interval(tables: Tables, study: dict[str, Any], plans: Plans) -> None:
    tables["deltas"]["verdict"] = CANNOT_TELL
    report = build(tables, study, plans, {}, None)
    assert report.lead == ("op28 and op7 cannot be told apart in all 5 headline comparisons.",)
    assert plain(report.headlines[0].sentence).endswith("cannot tell: neither significant nor wholly within ±5 %.")


def test_where_the_host_was_disturbed_no_one_reads_that_the_drives_are_alike(
    tables: Tables, study: dict[str, Any], plans: Plans
) -> None:
    load = "others used {} % of the host's CPU time at worst, in 5 cells"
    doubts = [[f"op7: tainted (load: {load.format(n)})", f"op28: tainted (load: {load.format(90 - n)})"]
              for n in range(30, 30 + len(tables["deltas"]))]  # fmt: skip
    tables["deltas"] = tables["deltas"].assign(verdict=CANNOT_TELL, doubts=doubts, p_adjusted=None)
    report = build(tables, study, plans, {}, None)
    assert report.lead == (
        "No verdict on op28 against op7 in any of the 5 headline comparisons: the host was disturbed. "
        "Repeat the measurement on an idle host.",
    )
    assert report.verdict_terms.endswith("No verdict rests on a test: something speaks against each of them.")
    table = next(one for one in report.comparison_tables if one.id == "deltas-1")
    most = max(n for n, row in enumerate(tables["deltas"].itertuples(), start=30) if row.measurement == "pts-iops")
    worst = "others used {} % of the host's CPU time at worst"
    assert table.reasons == (f"op7: tainted (load: {worst.format(most)})", f"op28: tainted (load: {worst.format(60)})")
    assert {row[2].text.removesuffix(" *") for row in table.rows} <= {"cannot tell [1, 2]", "cannot tell * [1, 2]"}
    tables["deltas"].at[0, "doubts"] = ["op28: not steady"]
    assert (
        build(tables, study, plans, {}, None)
        .lead[0]
        .startswith(
            "No verdict on op28 against op7 in any of the 5 headline comparisons: the host was disturbed (in 4); "
            "op28: not steady (in 1). Repeat"
        )
    )


def test_what_the_study_forbids_is_not_compared(tables: Tables, study: dict[str, Any], plans: Plans) -> None:
    doubts = [["the kernel differs, which was not meant to"] for _ in range(len(tables["deltas"]))]
    tables["deltas"] = tables["deltas"].assign(verdict=NOT_COMPARED, doubts=doubts)
    report = build(tables, study, plans, {}, None)
    assert report.lead == ("op28 and op7 are not compared: something differs between them that the study forbids.",)
    assert report.headlines[0].sentence == (
        "op28 is not compared with op7 at RND 4KiB 0/100: the kernel differs, which was not meant to."
    )


def test_a_delta_without_a_value_is_not_a_tie(tables: Tables, study: dict[str, Any], plans: Plans) -> None:
    doubts = [["op7 has no value"] for _ in range(len(tables["deltas"]))]
    tables["deltas"] = tables["deltas"].assign(delta_pct=float("nan"), verdict=CANNOT_TELL, doubts=doubts)
    report = build(tables, study, plans, {}, None)
    assert report.headlines[0].sentence == "op28 and op7 cannot be compared at RND 4KiB 0/100: op7 has no value."
    assert report.lead == (
        "No verdict on op28 against op7: none of 5 headline comparisons could be tested (op7 has no value).",
    )


def test_printed_values_are_neither_alike_nor_adjusted_for(tables: Tables, study: dict[str, Any], plans: Plans) -> None:
    doubts = [["a printed value: its scatter is not known"] for _ in range(len(tables["deltas"]))]
    unknown = dict.fromkeys(("p_value", "p_adjusted"), float("nan"))
    tables["deltas"] = tables["deltas"].assign(verdict=CANNOT_TELL, doubts=doubts, **unknown)
    report = build(tables, study, plans, {}, None)
    assert report.lead == ("No verdict on op28 against op7: 5 printed values, whose scatter is not known.",)
    assert "after adjustment" not in report.verdict_terms
    assert "14 could not be tested" in report.verdict_terms


def test_a_study_of_one_drive_has_pages_and_no_comparison(tables: Tables, plans: Plans) -> None:
    one = {name: frame[frame.drive == "op7"] if "drive" in frame else frame for name, frame in tables.items()}
    one["deltas"] = tables["deltas"].iloc[:0]
    report = build(one, {"name": "single"}, [plan for plan in plans if plan["drive"] == "op7"], {}, None)
    assert report.lead == ("Only op7 was measured: there is nothing to compare.",)
    assert report.verdict_table is None
    assert len(report.pages) == 3


def test_header_block(report: Report) -> None:
    first = page(report, "op7", "pts-iops")
    assert [plain(fact.value) for fact in first.head] == [
        "2025-11-20 21:04 UTC to 2025-11-20 21:06 UTC", "2025-11-21 05:10 UTC", "1 of 6"
    ]  # fmt: skip
    told = facts(first)
    assert told["Capacity"] == "64 MiB (67,108,864 bytes)"
    assert told["CPU"] == "AMD EPYC 7B13 (2 cores)"
    assert told["Purge"] == "TRIM of the whole drive; verified: 64 random places read as zeros"
    assert told["Preconditioning, workload-independent"] == "2 \u00d7 the active range, sequential 128KiB writes"
    assert told["Active range"] == "100 %"
    assert told["Scenario"] == "synthetic"
    assert told["Queue depth"] == "8 per thread"
    assert told["Write cache"] == MISSING
    assert (told["Reached"], told["Window"]) == ("YES", "rounds 4 to 8 of 8")
    assert facts(page(report, "op7", "pts-write-saturation"))["Preconditioning, workload-independent"] == "none"


def test_without_plan_drive_and_host_everything_is_not_recorded(tables: Tables, study: dict[str, Any]) -> None:
    bare = {"summary": tables["summary"]}
    report = build(bare, study, [], {}, None)
    told = facts(page(report, "op28", "pts-iops"))
    assert {told[name] for name in ("Model", "Serial", "Capacity", "Host", "Purge", "Threads", "Data pattern")} == {
        MISSING
    }
    assert [fact.value for fact in page(report, "op28", "pts-iops").head] == [MISSING, MISSING, "2 of 6"]


def test_a_drive_is_not_given_another_hosts_platform(tables: Tables, study: dict[str, Any], plans: Plans) -> None:
    tables["hosts"] = pd.concat([tables["hosts"], tables["hosts"].assign(host="bench2", kernel="6.12.1")])
    assert facts(build(tables, study, plans, {}, None).pages[0])["Kernel"] == MISSING
    placed = [{**plan, "host": "bench2"} for plan in plans]
    assert facts(build(tables, study, placed, {}, None).pages[0])["Kernel"] == "6.12.1"


def test_determination_block(report: Report) -> None:
    table = page(report, "op7", "pts-iops").determination
    assert table is not None
    assert [column.text for column in table.columns][1:] == [
        "RND 4KiB 0/100: IOPS", "RND 64KiB 65/35: IOPS", "RND 1024KiB 100/0: IOPS"
    ]  # fmt: skip
    block = rows(table)
    assert [values[0] for values in block.values()] == [
        "YES", "4\u20138 of 8", "1,457 · 1,414 · 1,443 · 1,407 · 1,421", "1,428", "285.7", "49.99", "142.8", "31.42",
        "\u22127.856 · R + 1,476", "\u22122.2 %",
    ]  # fmt: skip
    assert table.sources == ("op7/pts-iops/1a2b3c4d5e6f-run1 (results/recordings/op7/pts-iops/1a2b3c4d5e6f-run1)",)


def test_an_excursion_beyond_the_allowed_one_is_marked(tables: Tables, study: dict[str, Any], plans: Plans) -> None:
    tables["steady_state"].loc[0, "measured_slope_excursion"] = 1e6
    table = page(build(tables, study, plans, {}, None), "op7", "pts-iops").determination
    assert table is not None
    marks = {row[0].text: row[1].small for row in table.rows}
    assert marks["Measured maximum slope excursion"] == "exceeded"
    assert marks["Measured maximum data excursion"] == "within"


def test_block_size_by_mix_as_the_pts_prints_it(report: Report) -> None:
    first, *_, last = page(report, "op7", "pts-iops").tables
    assert first.caption == "IOPS: block size by R/W mix %, random access (window average)"
    assert [column.text for column in first.columns] == ["Block size", "0/100", "65/35", "100/0"]
    assert rows(first) == {
        "4KiB": ["1,428", "3,750", "4,999"], "64KiB": ["135.3", "355.2", "473.6"],
        "1024KiB": ["12.82", "33.65", "44.87"],
    }  # fmt: skip
    assert last.caption == "All numbers of this test"
    assert len(last.rows) == 9


def test_latency_tests_print_mean_maximum_and_iops(tables: Tables, study: dict[str, Any], plans: Plans) -> None:
    tables["steady_state"]["metric"] = "mean_latency_us"
    captions = [table.caption for table in page(build(tables, study, plans, {}, None), "op7", "pts-iops").tables]
    assert [caption.partition(":")[0] for caption in captions[:-1]] == [
        "IOPS",
        "Mean latency, µs",
        "Maximum latency, µs",
    ]


def test_maximum_latency_is_that_of_the_window(tables: Tables, study: dict[str, Any], plans: Plans) -> None:
    tables["steady_state"]["metric"] = "mean_latency_us"
    cells = tables["cells"]
    at_4k_writes = (cells.drive == "op7") & (cells.read_share_pct == 0) & (cells.block_size_bytes == 4096)
    cells.loc[at_4k_writes & (cells["round"] == 2), "max_latency_us"] = 9e9
    cells.loc[at_4k_writes & (cells["round"] == 6), "max_latency_us"] = 777_777.0
    table = page(build(tables, study, plans, {}, None), "op7", "pts-iops").tables[2]
    assert rows(table)["4KiB"][0] == "777,777"


def test_unsteady_soaks_and_the_variable_at_fault_are_named(
    tables: Tables, study: dict[str, Any], plans: Plans
) -> None:
    windows, of = tables["steady_state"], tables["summary"]
    windows.loc[windows.drive == "op7", "reached"] = False
    windows.loc[1, "measured_data_excursion"] = 1e6
    of.loc[(of.drive == "op28") & (of.measurement == "pts-write-saturation"), "verdict"] = "not steady"
    assert build(tables, study, plans, {}, None).banners[0].reasons == (
        "op7/pts-iops/1a2b3c4d5e6f-run1: not steady after 8 rounds; "
        "outside the limits in the last window: RND 64KiB 65/35 (IOPS)",
        "op28 · pts-write-saturation: RND 4KiB 0/100 still changed at its end",
    )


def test_a_host_whose_versions_changed_shows_both(tables: Tables, study: dict[str, Any], plans: Plans) -> None:
    tables["hosts"] = pd.concat([tables["hosts"], tables["hosts"].assign(fio="virtual clock")])
    told = facts(build(tables, study, plans, {}, None).pages[0])
    assert (told["fio"], told["Kernel"]) == ("fio-3.33 or virtual clock", "6.1.0-28-amd64")


def test_write_saturation_counts_drive_fills(report: Report) -> None:
    table = page(report, "op7", "pts-write-saturation").tables[0]
    written = sum(int(1428.4 * (9 if n < 9 else 1 + 8 / (n - 7) ** 1.5)) * 4096 for n in range(1, 41))
    part = rows(table)["Part 1"]
    assert part[:2] == ["40", "40 s"]
    assert float(part[3]) == pytest.approx(written / (64 << 20), abs=0.01)
    assert part[4] == "12,856"


def test_the_drives_are_told_by_what_they_are(tables: Tables, study: dict[str, Any], plans: Plans) -> None:
    changed = tables["drives"][tables["drives"]["drive"] == "op28"].assign(firmware="2")
    drives = pd.concat([tables["drives"], changed], ignore_index=True)
    told = {one.name: one.value.replace("\u00a0", " ") for one in
            build({**tables, "drives": drives}, study, plans, {}, None).identities}  # fmt: skip
    of_both = "drivelab virtual drive, 64 MiB, 512 B blocks, {} % over-provisioning, firmware {}"
    assert told == {"op7": f"{of_both.format('7', '1')}, the basis", "op28": of_both.format("28", "1 or 2")}
    unknown = build({**tables, "drives": drives.iloc[:0]}, study, plans, {}, None)
    assert [one.value for one in unknown.identities] == ["not recorded, the basis", "not recorded"]


def test_of_a_drive_or_host_that_changed_all_that_it_was_is_told(
    tables: Tables, study: dict[str, Any], plans: Plans, figures: Any
) -> None:
    changed = (
        tables["drives"].iloc[[0]].assign(capacity_bytes=32 << 20, logical_block_bytes=4096, over_provisioning_pct=28.0)
    )
    host = tables["hosts"].iloc[[0]].assign(memory_bytes=2 << 30, cores=64)
    tables["drives"] = pd.concat([tables["drives"], changed], ignore_index=True)
    tables["hosts"] = pd.concat([tables["hosts"], host], ignore_index=True)
    report = build(tables, study, plans, figures, None)
    told = facts(page(report, "op7", "pts-write-saturation"))
    assert told["Capacity"] == "64 MiB (67,108,864 bytes) or 32 MiB (33,554,432 bytes)"
    assert told["Logical block"] == "512 B or 4 KiB"
    assert told["Over-provisioning"].endswith(" or 28 %")
    assert told["Memory"].endswith(" or 2 GiB")
    assert told["CPU"].endswith(" or 64 cores)")
    assert "64 MiB or 32 MiB" in plain(next(one.value for one in report.identities if one.name == "op7"))
    written = sum(int(1428.4 * (9 if n < 9 else 1 + 8 / (n - 7) ** 1.5)) * 4096 for n in range(1, 41))
    fills = rows(page(report, "op7", "pts-write-saturation").tables[0])["Part 1"][3]
    assert [float(one) for one in fills.split(" or ")] == pytest.approx(
        [written / (64 << 20), written / (32 << 20)], rel=1e-3
    )


def test_the_header_says_whether_the_evidence_has_checksums(
    tables: Tables, study: dict[str, Any], plans: Plans
) -> None:
    told = [{**one, "evidence": "checksummed"} if one["drive"] == "op7" else one for one in plans]
    report = build(tables, study, told, {}, None)
    assert facts(page(report, "op7", "pts-iops"))["Evidence"] == "checksummed"
    assert "Evidence" not in facts(page(report, "op28", "pts-iops"))


def test_every_replay_shows_what_was_not_issued(tables: Tables, study: dict[str, Any], plans: Plans) -> None:
    tables["replays"].loc[1, ["planned_write_ios", "dropped"]] = [5230, "41 of operation flush"]
    report = build(tables, study, plans, {}, None)
    table = next(one for one in page(report, "op7", "trace-replay").tables if one.id.endswith("-replays"))
    assert [row[0].text for row in table.rows] == ["1, cold", "2, warm", "3, warm", "4, warm"]
    assert [row[1].text for row in table.rows] == ["no", "yes", "yes", "yes"]
    assert (table.rows[0][3].small, table.rows[1][3].small) == ("as planned", "5,230 planned")
    assert [row[-1].text for row in table.rows[:2]] == ["none", "not replayed: 41 of operation flush"]


def test_what_differs_is_marked_and_identity_is_not(report: Report) -> None:
    drives = next(table for table in report.comparison_tables if table.id == "differences-drives")
    marks = {row[0].text: row[-1].text for row in drives.rows}
    assert [name for name, mark in marks.items() if mark == "differs"] == ["Over-provisioning"]
    assert marks["Serial"] == "identity"
    settings = next(table for table in report.comparison_tables if table.id == "differences-settings")
    assert rows(settings) == {"All settings of all measurements": ["same", "same"]}


def test_a_setting_that_differs_unintended_is_shown(tables: Tables, study: dict[str, Any], plans: Plans) -> None:
    plans[1]["engine"] = "libaio"
    tables_of = build(tables, study, plans, {}, None).comparison_tables
    settings = next(table for table in tables_of if table.id == "differences-settings")
    assert rows(settings) == {"pts-iops: engine": ["io_uring", "libaio"]}


def test_banners_appear_exactly_when_they_apply(
    tables: Tables, study: dict[str, Any], full_length: Callable[[], tuple[Tables, Plans]]
) -> None:
    def banners(of: Tables, plans: Plans) -> list[str]:
        return [one.id for one in build(of, study, plans, {}, None).banners]

    quiet, plans = full_length()
    assert banners(quiet, plans) == []
    assert banners(quiet, [{**plans[0], "reduced": True}, *plans[1:]]) == ["reduced"]
    assert banners(quiet, [{**plan, "virtual": True} for plan in plans]) == ["virtual"]
    assert banners({**quiet, "traces": quiet["traces"].assign(lossy=True, lost=7)}, plans) == ["lossy"]
    assert banners({**quiet, "cells": quiet["cells"].assign(tainted=True)}, plans) == ["tainted"]
    unsteady = quiet["steady_state"].assign(reached=[True] * 5 + [False])
    assert banners({**quiet, "steady_state": unsteady}, plans) == ["not-steady"]
    noisy = quiet["summary"].assign(verdict="repeats do not agree")
    assert banners({**quiet, "summary": noisy}, plans) == ["not-repeatable"]


def test_what_rests_on_one_recording_is_said_until_there_are_several(
    tables: Tables, study: dict[str, Any], full_length: Callable[[], tuple[Tables, Plans]]
) -> None:
    quiet, plans = full_length()
    scopes = quiet["deltas"]["scope"].where(quiet["deltas"]["measurement"] != "pts-iops", "rounds")
    report = build({**quiet, "deltas": quiet["deltas"].assign(scope=scopes)}, study, plans, {}, None)
    (banner,) = report.banners
    assert (banner.label, banner.reasons) == ("one recording per drive", ("op28 against op7: pts-iops",))
    assert [link.text for link in banner.affected] == ["op7 · pts-iops", "op28 · pts-iops"]
    assert [plain(one) for one in report.lead] == [
        "op28 beats op7 in all 5 headline comparisons by a Δ of 20 to 62 % (3 of the 5 verdicts within one recording)."
    ]
    narrow = [one.sentence.endswith(", within one recording.") for one in report.headlines]
    assert narrow == [True, True, True, False, False]
    doubtful = {**quiet, "deltas": quiet["deltas"].assign(scope=scopes, verdict=CANNOT_TELL)}
    assert not build(doubtful, study, plans, {}, None).banners


def test_metrics_of_one_comparison_count_once(tables: Tables, study: dict[str, Any], plans: Plans) -> None:
    windows = tables["steady_state"]
    tables["steady_state"] = pd.concat([windows, windows.assign(metric="mean_latency_us")], ignore_index=True)
    report = build(tables, study, plans, {}, None)
    assert len(report.headlines) == 7  # two more of pts-iops, of which the first five stand here
    assert [plain(one) for one in report.lead] == [
        "op28 beats op7 in all 5 headline comparisons by a Δ of 20 to 62 %, within one recording."
    ]


LOAD, STEAL = "load: others used {} % of the host's CPU time", "steal: {} % of the CPU time was stolen"


def test_reasons_stand_wherever_a_tainted_number_is_shown(tables: Tables, study: dict[str, Any], plans: Plans) -> None:
    cells, summary, replays = (tables[name].copy() for name in ("cells", "summary", "replays"))
    spoilt = (cells.drive == "op7") & (cells.block_size_bytes == 4096) & (cells.read_share_pct == 0)
    for number, round_ in enumerate((2, 5, 6)):
        row = spoilt & (cells["round"] == round_)
        cells.loc[row & (cells.kind == "loop"), ["tainted", "taint_reason"]] = [True, LOAD.format(30 + number)]
    cells.loc[spoilt & (cells.kind == "soak") & (cells["round"] == 9), ["tainted", "taint_reason"]] = [
        True, f"{LOAD.format(90)}; {STEAL.format(7)}"
    ]  # fmt: skip
    row = (summary.drive == "op7") & (summary.cell_label == "RND 4KiB 0/100") & (summary.measurement == "pts-iops")
    summary.loc[row, ["verdict", "taint_reason"]] = ["tainted", LOAD.format(32)]
    replays.loc[(replays.drive == "op7") & (replays.repeat == 3), ["tainted", "taint_reason"]] = [True, STEAL.format(9)]
    report = build({**tables, "cells": cells, "summary": summary, "replays": replays}, study, plans, {}, None)

    (banner,) = (one for one in report.banners if one.id == "tainted")
    assert banner.reasons == (
        f"op7 · pts-iops: 3 of 72 cells and replays: {LOAD.format(32)} at worst, in 3 cells",
        f"op7 · pts-write-saturation: 1 of 40 cells and replays: {LOAD.format(90)}; {STEAL.format(7)}",
        f"op7 · trace-replay: 1 of 4 cells and replays: {STEAL.format(9)}",
    )
    iops = page(report, "op7", "pts-iops")
    assert iops.determination is not None
    assert iops.determination.note == f"2 tainted: {LOAD.format(32)} at worst, in 2 cells.", "round 2 is in no window"
    matrix = iops.tables[0]
    marks = [cell.small for row in matrix.rows for cell in row[1:] if cell.small]
    assert marks == ["tainted: load"]
    assert matrix.note == f"Tainted: {LOAD.format(32)}."
    verdicts = {row[0].text: row[-1] for row in iops.tables[-1].rows}
    assert verdicts["RND 4KiB 0/100"].text == "tainted [1]"
    assert iops.tables[-1].reasons == (f"tainted ({LOAD.format(32)})",)
    assert not any("[" in cell.text for name, cell in verdicts.items() if name != "RND 4KiB 0/100")
    soak = page(report, "op7", "pts-write-saturation").tables
    assert any(table.note.endswith(f"1 tainted: {LOAD.format(90)}; {STEAL.format(7)}.") for table in soak)
    replay = next(table for table in page(report, "op7", "trace-replay").tables if table.id.endswith("-replays"))
    assert [row[1].small for row in replay.rows] == ["", "", "tainted: steal", ""]
    assert replay.note.endswith(f"1 tainted: {STEAL.format(9)}.")
    assert not any(cell.small for row in page(report, "op28", "pts-iops").tables[0].rows for cell in row)


def test_banner_of_the_virtual_clock_tells_why(
    tables: Tables, study: dict[str, Any], full_length: Callable[[], tuple[Tables, Plans]]
) -> None:
    quiet, plans = full_length()
    ticking = [{**plan, "clock": "virtual", "clock_reason": "there is no /dev/fuse"} for plan in plans]
    (banner,) = build(quiet, study, ticking, {}, None).banners
    assert (banner.id, banner.reasons) == ("virtual-clock", ("Why: there is no /dev/fuse",))


def test_labels_mark_only_the_pages_that_they_concern(tables: Tables, study: dict[str, Any], plans: Plans) -> None:
    tables["steady_state"].loc[5, "reached"] = False
    report = build(tables, study, plans, {}, None)
    assert [one.drive for one in report.pages if "not steady" in one.labels] == ["op28"]
    assert all("reduced" in one.labels for one in report.pages)
    assert report.banners[0].reasons == ("op28/pts-iops/1a2b3c4d5e6f-run1: not steady after 8 rounds",)


def test_several_runs_share_a_page_and_keep_their_own_windows(
    tables: Tables, study: dict[str, Any], plans: Plans
) -> None:
    again = tables["steady_state"].assign(run=2, recording=lambda frame: frame.recording.str.replace("run1", "run2"))
    tables["steady_state"] = pd.concat([tables["steady_state"], again])
    plans += [{**plan, "recording": plan["recording"].replace("run1", "run2"), "notes": ["resumed"]} for plan in plans]
    report = build(tables, study, plans, {}, None)
    assert len(report.pages) == 6
    table = page(report, "op7", "pts-iops").determination
    assert table is not None
    assert len(table.columns) == 7
    assert page(report, "op7", "pts-iops").notes == ("resumed",)


def test_figures_stand_on_their_page(report: Report) -> None:
    assert [len(one.figures) for one in report.pages] == [2, 2, 0, 0, 0, 0]
    figure = report.pages[0].figures[0]
    assert figure.alt == "The convergence plot (op7, pts-iops). What convergence shows"
    assert (figure.width, figure.height) == (640, 400)
    assert [one.title for one in report.comparison_figures] == ["The comparison plot, pts-iops"]


def test_the_comparison_goes_measurement_by_measurement(report: Report) -> None:
    found = {one.measurement: one for one in report.comparisons}
    assert list(found) == list(dict.fromkeys(one.measurement for one in report.pages))
    assert [one.title for one in found["pts-iops"].figures] == ["The comparison plot, pts-iops"]
    assert all(table.caption.startswith(name) for name, one in found.items() for table in one.tables)
    of_study = [one.id for one in report.comparison_tables if not one.group]
    assert "differences-drives" in of_study
    assert not [one for one in of_study if one.startswith(("deltas-", "scores-"))]


def test_a_figure_of_another_study_or_no_svg_is_refused(
    tables: Tables, study: dict[str, Any], plans: Plans, figures: Any, tmp_path: Any
) -> None:
    stray = {**figures["drives"][0], "drive": "op9"}
    with pytest.raises(UserError, match="op9/pts-iops"):
        build(tables, study, plans, [stray], None)
    missing = {**figures["drives"][0], "svg": str(tmp_path / "gone.svg")}
    with pytest.raises(UserError, match=r"gone\.svg"):
        build(tables, study, plans, [missing], None)


def test_figures_can_be_files(tables: Tables, study: dict[str, Any], plans: Plans, figures: Any, tmp_path: Any) -> None:
    one = figures["drives"][0]
    (tmp_path / "f.svg").write_text(one["svg"])
    by_path = build(tables, study, plans, [{**one, "svg": tmp_path / "f.svg"}], None).pages[0].figures[0]
    assert by_path == build(tables, study, plans, [one], None).pages[0].figures[0]


def test_names_that_look_alike_get_places_of_their_own(tables: Tables, study: dict[str, Any], plans: Plans) -> None:
    twin = [{**plan, "drive": "op7-pts", "measurement": "iops", "recording": "x"} for plan in plans[:1]]
    anchors = [one.id for one in build(tables, study, [*plans, *twin], {}, None).pages]
    assert len(set(anchors)) == len(anchors)


def test_headlines_come_in_the_order_of_the_tracked_variables(
    tables: Tables, study: dict[str, Any], plans: Plans
) -> None:
    tables["deltas"] = tables["deltas"].iloc[::-1]
    told = [one.sentence for one in build(tables, study, plans, {}, None).headlines]
    assert [sentence.split(" by ")[0].split(" at ")[1] for sentence in told[:3]] == [
        "RND 4KiB 0/100",
        "RND 64KiB 65/35",
        "RND 1024KiB 100/0",
    ]


def test_a_remark_is_a_footnote_and_a_doubt_is_not(tables: Tables, study: dict[str, Any], plans: Plans) -> None:
    deltas = tables["deltas"]
    for place in deltas.index[deltas.cell_label == "RND 4KiB 0/100"]:
        deltas.at[place, "verdict"], deltas.at[place, "doubts"] = CANNOT_TELL, ["op7: tainted"]
    report = build(tables, study, plans, {}, None)
    assert report.headlines[0].sentence.endswith(", cannot tell: op7: tainted.")
    assert not any(REMARK in one.sentence for one in report.headlines)
    table = report.verdict_table
    assert table is not None
    assert table.note.endswith(f"* {REMARK}.")
    assert [row[1].verdict for row in table.rows] == [
        "cannot tell * [1]",
        "better *",
        "better *",
        "cannot tell * [1]",
        "better",
    ]
    assert table.reasons == ("op7: tainted",)
    replay = next(one for one in report.comparison_tables if one.caption.startswith("trace-replay: op28"))
    assert replay.note == f"Bars grow with the logarithm of Δ. {SCORE_FORMULA[0].upper()}{SCORE_FORMULA[1:]}."


def test_the_direction_of_an_uncertain_delta_is_undecided(tables: Tables, study: dict[str, Any], plans: Plans) -> None:
    tables["deltas"].loc[0, "verdict"] = CANNOT_TELL
    found = build(tables, study, plans, {}, None).comparison_tables
    table = next(one for one in found if one.id == "deltas-1")
    assert [row[-1].text for row in table.rows].count("undecided") == 1
    assert {row[-1].text for row in table.rows} == {"undecided", "op28 faster", "op28 quicker"}


def test_a_delta_has_its_interval_and_its_full_value(report: Report) -> None:
    assert report.verdict_table is not None
    delta = report.verdict_table.rows[0][1]
    assert (plain(delta.text), plain(delta.small)) == ("+62 %", "+58 % to +66 %")
    assert delta.value == pytest.approx(61.73340800896)
    assert delta.proof is not None
    told = dict(delta.proof.facts)
    assert plain(told["Margin"]) == "±5 %"
    assert told["Verdict"] == BETTER
    assert [part.title.partition(",")[0] for part in delta.proof.parts] == ["op7", "op28"]
