from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pandas as pd
import pytest

from drivelab.analysis.deltas.doubts import too_few_recordings
from drivelab.analysis.verdict import CANNOT_TELL, FASTER_BEYOND, NOT_COMPARED, SAME, SLOWER_BEYOND
from drivelab.core.errors import UserError
from drivelab.report.content import build
from drivelab.report.document import Page, Report, Table
from drivelab.report.numbers import DASH, MINUS, MISSING, workload_words

Tables = dict[str, pd.DataFrame]
Plans = list[dict[str, Any]]
Reported = Callable[[Tables], Report]
Said = Callable[[Tables], list[str]]


def plain(text: str) -> str:
    return text.replace("\u00a0", " ")


def page(report: Report, drive: str, measurement: str) -> Page:
    return next(p for p in report.pages if (p.drive, p.measurement) == (drive, measurement))


def facts(page: Page) -> dict[str, str]:
    return {fact.name: plain(fact.value) for facts in page.groups.values() for fact in facts}


def rows(table: Table | None) -> dict[str, list[str]]:
    assert table is not None
    return {plain(row[0].text): [plain(cell.text) for cell in row[1:]] for row in table.rows}


@pytest.mark.parametrize(
    ("label", "words"),
    [
        ("RND 4KiB 0/100", "random write 4 KiB"),
        ("RND 1024KiB 65/35 T2Q8", "random 65/35 read/write 1 MiB, QD16 (2 threads \u00d7 8)"),
        ("SEQ 128KiB 100/0 T1Q32, wait 5s", "sequential read 128 KiB, QD32, wait 5s"),
        ("RND 4KiB-1024KiB 0/100, Zipf 1.2 T4Q32, MAX",
         "random write 4 KiB to 1 MiB, Zipf 1.2, QD128 (4 threads \u00d7 32), MAX"),
        ("RND 4KiB 0/100, beside RND 4KiB 100/0 T1Q4", "RND 4KiB 0/100, beside RND 4KiB 100/0 T1Q4"),
        ("replay sqlite", "replay sqlite"),
    ],
)  # fmt: skip
def test_workload_words(label: str, words: str) -> None:
    assert plain(workload_words(label)) == words


def test_worse_equal_and_undecided_headlines_say_so(tables: Tables, reported: Reported, said: Said) -> None:
    deltas = tables["deltas"]
    for place, row in deltas.iterrows():
        if row.cell_label == "RND 64KiB 65/35":
            deltas.at[place, "verdict"], deltas.at[place, "doubts"] = CANNOT_TELL, ["op7: tainted"]
        elif row.cell_label == "RND 1024KiB 100/0":
            deltas.at[place, "verdict"], deltas.at[place, "delta_pct"] = SAME, 1.2
        elif row.measurement == "trace-replay":
            deltas.at[place, "verdict"], deltas.at[place, "delta_pct"] = SLOWER_BEYOND, -17.4
    report = reported(tables)
    assert list(map(plain, report.lead)) == [
        f"op28 is 62 % faster than op7 in 2 of 5 headline tests, slower (Δ {MINUS}17 %) in 1, the same in "
        "1 and undecided in 1."
    ]
    result = said(tables)
    assert result[1].startswith(
        "No verdict on op28 against op7: random 65/35 read/write 64 KiB, Δ +62 %, 574 vs 355 IOPS ("
    )
    assert result[1].endswith(" Reason: op7: tainted.")
    assert result[2].startswith("op28 equals op7 within ±5 %: random read 1 MiB, Δ +1.2 %, 72.6 vs 44.9 IOPS")
    assert result[4].startswith("op28 takes 1.21 times as long as op7: replay sqlite, access time 508 vs 612 µs")
    assert report.verdict_table is not None
    assert [row[1].verdict.removesuffix(" *").removesuffix(" * [1]") for row in report.verdict_table.rows] == [
        FASTER_BEYOND, CANNOT_TELL, SAME, FASTER_BEYOND, SLOWER_BEYOND
    ]  # fmt: skip


def test_two_recorded_values_without_a_delta_show_a_dash(tables: Tables, reported: Reported) -> None:
    deltas = tables["deltas"]
    deltas.loc[deltas.cell_label == "RND 4KiB 0/100", "delta_pct"] = float("nan")
    report = reported(tables)
    assert report.verdict_table is not None
    assert report.verdict_table.rows[0][1].text == DASH
    table = next(table for table in report.comparison_tables if table.id == "deltas-1")
    assert table.rows[0][1].text == DASH
    proof = table.rows[0][1].proof
    assert proof is not None
    assert ("Delta", "none: the two values cannot be compared") in proof.facts
    tables["deltas"].loc[deltas.cell_label == "RND 4KiB 0/100", "basis_value"] = float("nan")
    assert rows(reported(tables).verdict_table)["RND 4KiB 0/100"][0] == "not recorded"


def test_other_bars_stay_visible_next_to_a_very_large_delta(tables: Tables, reported: Reported) -> None:
    tables["deltas"].loc[0, "delta_pct"] = 711.0
    tables["deltas"].loc[4, "delta_pct"] = -5.0
    table = next(t for t in reported(tables).comparison_tables if t.id == "deltas-1")
    bars = {row[1].value: row[1].bar for row in table.rows}
    assert bars[711.0] == 1
    assert bars[-5.0] == pytest.approx(-0.27, abs=0.01)


NO_NUMBER = float("nan")
REASON = "the difference is neither significant nor wholly within ±5 %."


@pytest.mark.parametrize(
    ("changed", "doubt", "lead", "sentence"),
    [
        ({"verdict": CANNOT_TELL}, None, f"No verdict on op28 against op7 in any of the 5 headline tests: {REASON}",
         f" Reason: {REASON}"),
        ({"verdict": NOT_COMPARED}, "the kernel differs, which was not meant to",
         "op28 and op7 are not compared: they differ in something that the study forbids.",
         "op28 is not compared with op7: random write 4 KiB. Reason: the kernel differs, which was not meant to."),
        ({"verdict": CANNOT_TELL, "delta_pct": NO_NUMBER}, "op7 has no value",
         "No verdict on op28 against op7: no test is possible in 5 headline tests (op7 has no value).",
         "op28 and op7 cannot be compared: random write 4 KiB. Reason: op7 has no value."),
        ({"verdict": CANNOT_TELL, "p_value": NO_NUMBER, "p_adjusted": NO_NUMBER},
         "a printed value, without any word of its scatter",
         "No verdict on op28 against op7: 5 printed values with unknown scatter (Δ +20 % to +62 %).", ""),
    ],
    ids=["no doubt", "forbidden", "no value", "printed"],
)  # fmt: skip
def test_deltas_that_are_all_without_a_verdict(
    tables: Tables, reported: Reported, said: Said, changed: dict[str, Any], doubt: str | None, lead: str,
    sentence: str,
) -> None:  # fmt: skip
    doubts = {} if doubt is None else {"doubts": [[doubt] for _ in range(len(tables["deltas"]))]}
    tables["deltas"] = tables["deltas"].assign(**changed, **doubts)
    report = reported(tables)
    assert list(map(plain, report.lead)) == [lead]
    assert said(tables)[0].endswith(sentence)
    if "printed" in lead:
        assert "after adjustment" not in report.verdict_terms
        assert "14 not tested" in report.verdict_terms


def test_a_disturbed_host_gives_no_verdict(tables: Tables, reported: Reported) -> None:
    load = "others used {} % of the host's CPU time at worst, in 5 cells"
    doubts = [[f"op7: tainted (load: {load.format(n)})", f"op28: tainted (load: {load.format(90 - n)})"]
              for n in range(30, 30 + len(tables["deltas"]))]  # fmt: skip
    tables["deltas"] = tables["deltas"].assign(verdict=CANNOT_TELL, doubts=doubts, p_adjusted=None)
    tables["summary"] = tables["summary"].assign(taint_reason=f"load: {load.format(30)}")
    report = reported(tables)
    assert report.lead == (
        "No verdict on op28 against op7 in any of the 5 headline tests: the host was disturbed. "
        "Repeat the measurement on an idle host.",
    )
    assert report.verdict_terms.endswith("No verdict uses a statistical test: each comparison has a doubt.")
    table = next(table for table in report.comparison_tables if table.id == "deltas-1")
    reasons = [reason.partition("used")[0] for reason in table.reasons]
    assert reasons == ["op7: tainted (load: others ", "op28: tainted (load: others "]
    assert all(reason.endswith("at worst)") for reason in table.reasons)
    assert len(table.rows) == 9, "metrics that say the same have one row, although their disturbances differ in size"
    assert plain(report.sentence).startswith(
        "op28 reaches 2,310 IOPS and op7 1,430 IOPS at random write 4 KiB, QD16 (Δ +62 %), measured on a busy machine. "
        "No verdict on op28 against op7"
    )
    assert {row[2].text.removesuffix(" *") for row in table.rows} <= {"cannot tell [1, 2]", "cannot tell * [1, 2]"}
    tables["deltas"].at[0, "doubts"] = ["op28: not steady"]
    assert (
        reported(tables)
        .lead[0]
        .startswith(
            "No verdict on op28 against op7 in any of the 5 headline tests: the host was disturbed (in 4); "
            "op28: not steady (in 1). Repeat"
        )
    )


def test_without_plan_drive_and_host_everything_is_not_recorded(tables: Tables, study: dict[str, Any]) -> None:
    bare = {"summary": tables["summary"]}
    report = build(bare, study, [], [], None)
    block = facts(page(report, "op28", "pts-iops"))
    assert {block[name] for name in ("Model", "Serial", "Capacity", "Host", "Purge", "Threads", "Data pattern")} == {
        MISSING
    }
    assert [fact.value for fact in page(report, "op28", "pts-iops").head] == [MISSING, MISSING, "2 of 6"]


def test_a_drive_does_not_get_another_hosts_platform(
    tables: Tables, study: dict[str, Any], plans: Plans, reported: Reported
) -> None:
    tables["hosts"] = pd.concat([tables["hosts"], tables["hosts"].assign(host="bench2", kernel="6.12.1")])
    assert facts(reported(tables).pages[0])["Kernel"] == MISSING
    placed = [{**plan, "host": "bench2"} for plan in plans]
    assert facts(build(tables, study, placed, [], None).pages[0])["Kernel"] == "6.12.1"


def test_an_excursion_beyond_the_allowed_one_is_marked(tables: Tables, reported: Reported) -> None:
    tables["steady_state"].loc[0, "measured_slope_excursion"] = 1e6
    table = page(reported(tables), "op7", "pts-iops").determination
    assert table is not None
    marks = {row[0].text: row[1].small for row in table.rows}
    assert marks["Measured maximum slope excursion"] == "exceeded"
    assert marks["Measured maximum data excursion"] == "within"


def test_latency_tests_print_mean_maximum_and_iops_of_the_window(tables: Tables, reported: Reported) -> None:
    tables["steady_state"]["metric"] = "mean_latency_us"
    cells = tables["cells"]
    at_4k_writes = (cells.drive == "op7") & (cells.read_share_pct == 0) & (cells.block_size_bytes == 4096)
    cells.loc[at_4k_writes & (cells["round"] == 2), "max_latency_us"] = 9e9
    cells.loc[at_4k_writes & (cells["round"] == 6), "max_latency_us"] = 777_777.0
    shown = page(reported(tables), "op7", "pts-iops").tables
    captions = [table.caption.partition(":")[0] for table in shown[:-1]]
    assert captions == ["IOPS", "Mean latency, ms", "Maximum latency, ms"]
    assert rows(shown[2])["4KiB"][0] == "777.8"


def test_unsteady_soaks_and_variables_are_named(tables: Tables, reported: Reported) -> None:
    windows, summary = tables["steady_state"], tables["summary"]
    windows.loc[windows.drive == "op7", "reached"] = False
    windows.loc[1, "measured_data_excursion"] = 1e6
    soaks = (summary.drive == "op28") & (summary.measurement == "pts-write-saturation")
    summary.loc[soaks, "verdict"] = "not steady"
    assert reported(tables).banners[0].reasons == (
        "op7/pts-iops/1a2b3c4d5e6f-run1: not steady after 8 rounds; "
        "outside the limits in the last window: RND 64KiB 65/35 (IOPS)",
        "op28 · pts-write-saturation: RND 4KiB 0/100 still changed at the end",
    )


def test_recordings_without_the_purge_of_their_protocol_are_labelled(
    tables: Tables, study: dict[str, Any], plans: Plans
) -> None:
    purge = "not purged (the study sets purge: none)"
    row = {name: plans[0][name] for name in ("recording", "drive", "measurement")}
    tables["conditions"] = pd.DataFrame([{**row, "facet": "purge", "kind": "drive", "value": "not purged"}])
    made = build(tables, study, [{**plans[0], "purge": purge}, *plans[1:]], [], None)
    assert [page.title for page in made.pages if "not purged" in page.labels] == [made.pages[0].title]
    assert facts(made.pages[0])["Purge"] == purge


def test_a_host_whose_versions_changed_shows_both(tables: Tables, reported: Reported) -> None:
    tables["hosts"] = pd.concat([tables["hosts"], tables["hosts"].assign(fio="virtual clock")])
    block = facts(reported(tables).pages[0])
    assert (block["fio"], block["Kernel"]) == ("fio-3.33 or not used (virtual clock)", "6.1.0-28-amd64")


def test_the_title_identifies_each_drive(tables: Tables, reported: Reported) -> None:
    changed = tables["drives"][tables["drives"]["drive"] == "op28"].assign(firmware="2")
    drives = pd.concat([tables["drives"], changed], ignore_index=True)
    identities = {drive.name: plain(drive.value) for drive in
                  reported({**tables, "drives": drives}).identities}  # fmt: skip
    text = "drivelab virtual drive, 64 MiB, 512 B blocks, {} % over-provisioning, firmware {}"
    assert identities == {"op7": f"{text.format('7', '1')}, the basis", "op28": text.format("28", "1 or 2")}
    unknown = reported({**tables, "drives": drives.iloc[:0]})
    assert [drive.value for drive in unknown.identities] == ["not recorded, the basis", "not recorded"]


def test_a_changed_drive_or_host_shows_all_values(
    tables: Tables, study: dict[str, Any], plans: Plans, figures: Any
) -> None:
    changed = (
        tables["drives"].iloc[[0]].assign(capacity_bytes=32 << 20, logical_block_bytes=4096, over_provisioning_pct=28.0)
    )
    host = tables["hosts"].iloc[[0]].assign(memory_bytes=2 << 30, cores=64)
    tables["drives"] = pd.concat([tables["drives"], changed], ignore_index=True)
    tables["hosts"] = pd.concat([tables["hosts"], host], ignore_index=True)
    report = build(tables, study, plans, figures, None)
    block = facts(page(report, "op7", "pts-write-saturation"))
    assert block["Capacity"] == "64 MiB (67,108,864 bytes) or 32 MiB (33,554,432 bytes)"
    assert block["Logical block"] == "512 B or 4 KiB"
    assert block["Over-provisioning"].endswith(" or 28 %")
    assert block["Memory"].endswith(" or 2 GiB")
    assert block["CPU"].endswith(" or 64 cores)")
    assert "64 MiB or 32 MiB" in plain(next(drive.value for drive in report.identities if drive.name == "op7"))
    written = sum(int(1428.4 * (9 if n < 9 else 1 + 8 / (n - 7) ** 1.5)) * 4096 for n in range(1, 41))
    fills = rows(page(report, "op7", "pts-write-saturation").tables[0])["Part 1"][3]
    assert list(map(float, fills.split(" or "))) == pytest.approx(
        [written / (64 << 20), written / (32 << 20)], rel=1e-3
    )


def test_every_replay_shows_requests_not_issued(tables: Tables, reported: Reported) -> None:
    tables["replays"].loc[1, "planned_write_ios"] = 5230
    report = reported(tables)
    table = next(table for table in page(report, "op7", "trace-replay").tables if table.id.endswith("-replays"))
    assert [row[0].text for row in table.rows] == ["1, cold", "2, warm", "3, warm", "4, warm"]
    assert [row[1].text for row in table.rows] == ["no", "yes", "yes", "yes"]
    assert (table.rows[0][3].small, table.rows[1][3].small) == ("as planned", "5,230 planned")


def test_banners_appear_exactly_when_they_apply(study: dict[str, Any], full_length: tuple[Tables, Plans]) -> None:
    def banners(tables: Tables, plans: Plans) -> list[str]:
        return [banner.id for banner in build(tables, study, plans, [], None).banners]

    quiet, plans = full_length
    assert banners(quiet, plans) == []
    assert banners(quiet, [{**plans[0], "reduced": True}, *plans[1:]]) == ["reduced"]
    assert banners(quiet, [{**plan, "virtual": True} for plan in plans]) == ["virtual"]
    assert banners({**quiet, "traces": quiet["traces"].assign(lossy=True, lost=7)}, plans) == ["lossy"]
    assert banners({**quiet, "cells": quiet["cells"].assign(tainted=True)}, plans) == ["tainted"]
    unsteady = quiet["steady_state"].assign(reached=[True] * 5 + [False])
    assert banners({**quiet, "steady_state": unsteady}, plans) == ["not-steady"]
    noisy = quiet["summary"].assign(verdict="repeats do not agree")
    assert banners({**quiet, "summary": noisy}, plans) == ["not-repeatable"]


def test_few_recordings_show_differences_but_no_verdict(
    study: dict[str, Any], full_length: tuple[Tables, Plans], said: Said
) -> None:
    quiet, plans = full_length
    deltas = quiet["deltas"]
    few = deltas["measurement"] == "pts-iops"
    doubts = [[too_few_recordings(1, 1)] if row else [] for row in few]
    changed = deltas.assign(
        verdict=deltas["verdict"].where(~few, CANNOT_TELL), doubts=doubts,
        recordings_needed=[3 if row else None for row in few],
        **{name: deltas[name].where(~few, 1) for name in ("basis_n", "comparison_n")},
    )  # fmt: skip
    report = build({**quiet, "deltas": changed}, study, plans, [], None)
    (banner,) = report.banners
    assert (banner.label, banner.reasons) == ("too few recordings", ("op28 against op7: pts-iops",))
    assert list(banner.affected.values()) == ["op7 · pts-iops", "op28 · pts-iops"]
    assert list(map(plain, report.lead)) == [
        f"op28 is 20{DASH}62 % faster than op7 in 2 of 5 headline tests and undecided in 3."
    ]
    first = said({**quiet, "deltas": changed})[0]
    assert first.startswith(
        "In these recordings, op28 is 62 % faster than op7: random write 4 KiB, 2,310 vs 1,430 IOPS"
    )
    assert "For a verdict: 2 more recordings of each drive, about " in first
    alone = build({**quiet, "deltas": changed[few]}, study, plans, [], None)
    assert [plain(sentence).partition(", about")[0] for sentence in alone.lead] == [
        "In these recordings, op28 is 62 % faster than op7 in all 3 headline tests. For a verdict: "
        "2 more recordings of each drive"
    ]
    tainted = changed.assign(doubts=[[*row, "op7: tainted"] for row in doubts])
    assert not build({**quiet, "deltas": tainted}, study, plans, [], None).banners


def test_metrics_of_one_comparison_count_once(tables: Tables, reported: Reported) -> None:
    windows = tables["steady_state"]
    tables["steady_state"] = pd.concat([windows, windows.assign(metric="mean_latency_us")], ignore_index=True)
    report = reported(tables)
    assert report.verdict_table is not None
    assert len(report.verdict_table.rows) == 8
    assert list(map(plain, report.lead)) == [f"op28 is 20{DASH}62 % faster than op7 in all 5 headline tests."]


LOAD, STEAL = "load: others used {} % of the host's CPU time", "steal: {} % of the CPU time was stolen"


def test_every_tainted_number_has_its_reason(tables: Tables, reported: Reported) -> None:
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
    report = reported({**tables, "cells": cells, "summary": summary, "replays": replays})

    (banner,) = (banner for banner in report.banners if banner.id == "busy")
    assert banner.reasons == (
        f"op7 · pts-iops: 3 of 72 cells and replays: {LOAD.format(32)} at worst, in 3 cells",
        f"op7 · pts-write-saturation: 1 of 40 cells and replays: {LOAD.format(90)}; {STEAL.format(7)}",
        f"op7 · trace-replay: 1 of 4 cells and replays: {STEAL.format(9)}",
    )
    iops = page(report, "op7", "pts-iops")
    assert iops.determination is not None
    assert iops.determination.note == f"2 tainted: {LOAD.format(32)} at worst, in 2 cells.", (
        "round 2 is outside the window"
    )
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


def test_a_host_limited_number_is_a_bound_wherever_it_shows(tables: Tables, reported: Reported) -> None:
    words = "fio's threads used 97 % of a CPU each, so the drive may be faster"
    summary, deltas = tables["summary"].copy(), tables["deltas"].copy()
    row = (summary.drive == "op28") & (summary.cell_label == "RND 4KiB 0/100") & (summary.measurement == "pts-iops")
    summary.loc[row, ["verdict", "host_limit"]] = ["host-limited", words]
    deltas["doubts"] = [[f"op28: host-limited ({words})"] for _ in range(len(deltas))]
    deltas = deltas.assign(verdict=CANNOT_TELL, p_adjusted=None)
    report = reported({**tables, "summary": summary, "deltas": deltas})
    (banner,) = (banner for banner in report.banners if banner.id == "host-limited")
    assert banner.reasons == (f"op28 · pts-iops: RND 4KiB 0/100: {words}",)
    assert ", limited by the host." in plain(report.sentence)
    shown = page(report, "op28", "pts-iops").tables
    assert [cell.small for cells in shown[0].rows for cell in cells[1:] if cell.small] == ["at least: host-limited"]
    assert shown[0].note == f"Host-limited: {words}."
    verdicts = {cells[0].text: cells for cells in shown[-1].rows}
    limited = verdicts["RND 4KiB 0/100"]
    assert (limited[-1].text, limited[-1].tone) == ("host-limited [1]", "bad")
    assert shown[-1].reasons == (f"host-limited ({words})",)
    assert {cell.small.partition(":")[0] for cell in limited[1:-2]} == {"at least", "at most"}, "a time is at most"
    table = next(table for table in report.comparison_tables if table.id == "deltas-1")
    assert f"op28: host-limited ({words})" in table.reasons


def test_figures_are_on_their_page(report: Report) -> None:
    assert [len(page.figures) for page in report.pages] == [2, 2, 0, 0, 0, 0]
    figure = report.pages[0].figures[0]
    assert figure.alt == "The convergence plot (op7, pts-iops)"
    assert (figure.width, figure.height) == (640, 400)
    assert [figure.title for figure in report.comparison_figures] == ["The comparison plot, pts-iops"]


@pytest.mark.parametrize(("changed", "refusal"), [({"drive": "op9"}, "op9/pts-iops"), ({"svg": "<p>"}, "not an SVG")])
def test_a_figure_of_another_study_or_no_figure_is_refused(
    tables: Tables, study: dict[str, Any], plans: Plans, figures: Any, changed: dict[str, str], refusal: str
) -> None:
    with pytest.raises(UserError, match=refusal):
        build(tables, study, plans, [{**figures[0], **changed}], None)


def test_similar_names_get_different_anchors(tables: Tables, study: dict[str, Any], plans: Plans) -> None:
    twin = [{**plan, "drive": "op7-pts", "measurement": "iops", "recording": "x"} for plan in plans[:1]]
    anchors = [page.id for page in build(tables, study, [*plans, *twin], [], None).pages]
    assert len(set(anchors)) == len(anchors)


def test_headlines_follow_the_order_of_the_tracked_variables(tables: Tables, said: Said) -> None:
    tables["deltas"] = tables["deltas"].iloc[::-1]
    result = said(tables)
    assert [sentence.split(": ")[1].split(", ")[0] for sentence in result[:3]] == [
        "random write 4 KiB",
        "random 65/35 read/write 64 KiB",
        "random read 1 MiB",
    ]


def test_the_first_screen_of_few_recordings_calls_nothing_faster(tables: Tables, reported: Reported) -> None:
    doubts = [[too_few_recordings(1, 1)] for _ in range(len(tables["deltas"]))]
    unknown = dict.fromkeys(("interval_low_pct", "interval_high_pct"), float("nan"))
    tables["deltas"] = tables["deltas"].assign(verdict=CANNOT_TELL, doubts=doubts, basis_n=1, comparison_n=1, **unknown)
    report = reported(tables)
    assert plain(report.sentence).startswith("In these recordings, op28 is 20")
    assert "; at random write 4 KiB, QD16, 2,310 vs 1,430 IOPS. For a verdict: " in plain(report.sentence)
    assert report.glance is not None
    assert {row[1].small.partition(", ")[2] for row in report.glance.rows} == {"in these recordings"}


def test_a_study_of_one_drive_has_its_values_and_no_comparison(tables: Tables, plans: Plans) -> None:
    single = {name: frame[frame.drive == "op7"] if "drive" in frame else frame for name, frame in tables.items()}
    single["deltas"] = tables["deltas"].iloc[:0]
    study = {"name": "single", "level": "the level is lost"}
    report = build(single, study, [plan for plan in plans if plan["drive"] == "op7"], [], None)
    assert report.lead == ("Only op7 was measured, so there is no comparison.",)
    assert report.verdict_table is None
    assert len(report.pages) == 3
    assert plain(report.sentence).startswith(
        "op7 reaches 1,430 IOPS at random write 4 KiB, QD16 (95 % interval: 1,400 to"
    )
    assert report.sentence.endswith(" The level is lost.")
    assert report.chart() is not None
