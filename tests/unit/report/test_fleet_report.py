"""The report of a fleet: verdict first, links to all drive reports, unreliable values marked."""

from __future__ import annotations

import base64
import gzip
import re
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pandas as pd
import pytest
from made_fleet import made_fleet

from drivelab.analysis.deltas.models import model_deltas
from drivelab.analysis.fleet_parts import by_measurement, fleet_tables
from drivelab.analysis.fleet_statistics import VALUE, deviations_table, drive_columns, spread_table
from drivelab.report import content, html
from drivelab.report.fleet_page import banners, build
from drivelab.report.fleet_sentences import lead
from drivelab.report.fleet_view import INTERVAL
from drivelab.report.sections.fleet_tables import drives_table
from drivelab.tables.schemas import SCHEMAS

STUDY: dict[str, Any] = {
    "name": "made", "title": "Made <fleet>", "basis": "d1", "clock_reason": None, "elsewhere": [],
    "comparison": {"margin_pct": 5.0}, "altered": ["pts-iops: <shorter>"],
}  # fmt: skip
NO_DELTAS = pd.DataFrame({"comparison": [], "verdict": []})
NO_INTERVALS = pd.DataFrame(columns=["drive", *VALUE, *INTERVAL])
NO_MODELS = pd.DataFrame(columns=SCHEMAS["model_deltas"].names)


@pytest.fixture(scope="module")
def frames(tmp_path_factory: pytest.TempPathFactory) -> dict[str, pd.DataFrame]:
    folder = tmp_path_factory.mktemp("fleet")
    failed = {"drive": "d13", "subjects": ["d13"], "state": "failed", "reasons": ["<it> hangs"], "recordings": 0,
              "planned": 30, "results": "none"}  # fmt: skip
    return {**fleet_tables([*made_fleet(folder, 12, cells=2), failed], 5.0), "model_deltas": NO_MODELS}


def render(frames: dict[str, pd.DataFrame], lossy: Sequence[str] = ()) -> str:
    return html.render(build(frames, NO_DELTAS, STUDY, NO_INTERVALS, lossy)).replace("\xa0", " ")


@pytest.fixture(scope="module")
def page(frames: dict[str, pd.DataFrame]) -> str:
    return render(frames)


def test_the_first_screen_has_a_sentence_the_ranked_drives_and_three_lines(page: str) -> None:
    first = page[page.index('id="verdict"') : page.index('id="all-drives"')]
    places = [first.index(part) for part in ('class="lead"', "drives in order", 'id="at-a-glance"', 'class="badges"')]
    assert places == sorted(places)
    sentence = re.search(r'<p class="lead">(.*?)</p>', first)
    assert sentence
    assert re.fullmatch(
        r"12 drives reach [\d,]+ to [\d,]+ IOPS at random write 4 KiB, median [\d,]+ IOPS; d\d+ is the best, "
        r"d7 \(\N{MINUS SIGN}\d+ %\) is an outlier\.", sentence[1],
    ), sentence[1]  # fmt: skip
    assert first.count("<tr>") == 1 + 3


def test_the_verdict_names_outliers(page: str) -> None:
    verdict = page[page.index('id="verdict"') :]
    assert "12 of 13 drives were measured; 12 of them are steady in every test. Not measured: d13." in verdict
    assert "1 drive is an outlier: d7 in 60 of 60 values." in verdict
    assert "No values are compared with the basis, d1" in verdict
    assert "d13: &lt;it&gt; hangs" in verdict
    assert "Made &lt;fleet&gt;" in page
    assert "<it>" not in page
    assert "&lt;shorter&gt;" in verdict


def test_every_drive_has_a_row_with_a_link_to_its_report(frames: dict[str, pd.DataFrame], page: str) -> None:
    table = page[page.index('<table id="drives"') :]
    links = re.findall(r'href="\.\./drives/(d\d+)/report/index\.html"', table[: table.index("</table>")])
    assert sorted(links) == sorted(frames["fleet_drives"]["drive"])
    assert links[-2:] == ["d7", "d13"]  # the slowest drive, and the drive without a place


def test_unreliable_values_are_marked(frames: dict[str, pd.DataFrame]) -> None:
    deviations = frames["fleet_deviations"].copy()
    chosen = (deviations["drive"] == "d3") & deviations["is_key"]
    deviations.loc[chosen, "verdict"] = "not steady"
    deviations.loc[chosen, "place"] = None
    drives = frames["fleet_drives"].copy()
    drives.loc[drives["drive"] == "d3", "not_steady"] = 10
    html = render({**frames, "fleet_deviations": deviations.assign(virtual=True), "fleet_drives": drives}, ["sqlite"])
    row = html[html.index('href="../drives/d3/report', html.index('<table id="drives"')) :]
    assert "not steady" in row[: row.index("</tr>")]
    for banner_id in ("not-steady", "virtual", "reduced", "lossy", "excluded"):
        assert f'<details class="badge {banner_id}" id="{banner_id}">' in html


def test_the_html_loads_nothing(page: str) -> None:
    assert "default-src 'none'" in page
    assert not re.findall(r'(?:src|href)="(?!data:|#|\.\./drives/)[^"]*', page)


def test_a_fleet_without_a_result_has_a_report(tmp_path: Path) -> None:
    failed = {"drive": "d1", "subjects": ["d1"], "state": "failed", "reasons": [], "recordings": 0, "planned": 3,
              "results": str(tmp_path)}  # fmt: skip
    assert "0 of 1 drives were measured" in render({**fleet_tables([failed], 5.0), "model_deltas": NO_MODELS})


def grouped(**values: list[float]) -> dict[str, pd.DataFrame]:
    """Return tables of drives a, b, c …; each measurement has one value per drive."""
    rows = pd.DataFrame(
        [{"drive": "abcdefgh"[place], "measurement": name, "value": value} for name, by_drive in values.items()
         for place, value in enumerate(by_drive)]
    ).assign(protocol="p", cell_label="RND 4KiB 0/100", metric="iops", kind="speed", unit="IOPS", verdict="steady",
             taint_reason=None, reduced=False, virtual=False, clock="wall")  # fmt: skip
    deviations = deviations_table(rows, 5.0)
    drives = drive_columns(deviations).reset_index()
    drives = drives.assign(state="measured", reason=None, hosts="h", model="M", firmware="F", serial=drives["drive"],
                           excluded=0)  # fmt: skip
    return {"drives": drives, "spread": spread_table(deviations), "deviations": deviations}


def sentences(**values: list[float]) -> str:
    nothing = {"hosts": NO_DELTAS, "deltas": NO_DELTAS, "models": NO_MODELS}
    return "\n".join(lead(**grouped(**values), **nothing, basis="a", margin_pct=5.0))


def test_models_come_before_single_drives(tmp_path: Path) -> None:
    outcomes = made_fleet(tmp_path, 6, cells=2)
    models = {f"d{number}": "One" if number < 4 else "Two" for number in range(1, 7)}
    table = model_deltas(by_measurement(outcomes), models, "d1")
    whole = pd.concat(by_measurement(outcomes), ignore_index=True)
    pd.testing.assert_frame_equal(table, model_deltas([whole], models, "d1"))
    frames = fleet_tables(outcomes, 5.0) | {"model_deltas": table}
    verdict = render(frames)
    first, then = (
        verdict.index(f"As models: Two against One, 3 against 3 specimens, {len(table)} values:"),
        "From the lowest",
    )
    assert first < verdict.index(then)


def test_groups_of_drives_are_named_without_outliers() -> None:
    verdict = sentences(saturation=[1760.0, 3535, 1760, 3535, 1760], rate=[100.0, 101, 99, 100, 100])
    verdict = verdict.replace("\xa0", " ")
    assert "2.0 % in rate (99 to 101 IOPS over 5 drives" in verdict
    assert "101 % in saturation (1,760 to 3,535 IOPS over 5 drives, robust variation 0.00 %)" in verdict
    assert "No drive is an outlier. An outlier has a modified z above 3.5" in verdict
    assert (
        "In saturation, 2 drives are far from the median but not outliers by the rule: b and d, by +101 %." in verdict
    )
    assert "differs" not in verdict


def test_few_drives_have_a_range_but_no_outliers() -> None:
    verdict = sentences(rate=[100.0, 200, 100]).replace("\xa0", " ")
    assert "100 % in rate (100 to 200 IOPS over 3 drives" in verdict
    assert "the rule needs values of at least 5 drives" in verdict


def test_similar_drives_are_not_called_far() -> None:
    assert "far from the median" not in sentences(rate=[100.0, 100, 100, 101, 104, 97])


def test_the_largest_deviation_names_its_measurement() -> None:
    frames = grouped(saturation=[1760.0, 3535, 1760, 3535, 1760], rate=[100.0, 99, 101, 100, 100])
    table = drives_table(frames["drives"], frames["deviations"], {}, {})
    place = [column.text for column in table.columns].index("Largest deviation")
    fields = {row[0].text: row[place] for row in table.rows}
    assert (fields["b"].text.replace("\xa0", " "), fields["b"].small) == ("+101 %", "saturation")
    assert fields["c"].small == "rate"


def test_shared_facts_are_in_the_note() -> None:
    frames = grouped(rate=[100.0, 99, 101, 100, 100])
    table = drives_table(frames["drives"], frames["deviations"], {}, {})
    assert [column.text for column in table.columns][-1] == "Serial"
    assert "All drives: Host h, Model M, Firmware F." in table.note


@pytest.mark.parametrize(
    ("hot", "title", "named"),
    [(["b"], "1 drive has values that are tainted", "b (1 value)"),
     (["b", "d"], "2 drives have values that are tainted", "b (1 value) and d (1 value)")],
)  # fmt: skip
def test_a_hot_drive_is_not_blamed_on_the_host(hot: list[str], title: str, named: str) -> None:
    frames = grouped(rate=[100.0, 99, 101, 100, 100])
    deviations = frames["deviations"]
    deviations["taint_reason"] = [
        "throttled: the drive reached 110 °C, it warns from 75 °C" if drive in hot else None
        for drive in deviations["drive"]
    ]
    drives = frames["drives"].assign(tainted=frames["drives"]["drive"].isin(hot).astype(int))
    (banner,) = banners(drives, deviations, STUDY | {"altered": []}, [])
    assert banner.title == title
    assert "the drive or its host" in banner.meaning
    assert named in banner.meaning
    assert banner.reasons == tuple(
        f"{drive}: throttled: the drive reached 110 °C, it warns from 75 °C" for drive in hot
    )


def test_a_study_of_many_drives_has_the_view_of_a_fleet(tmp_path: Path) -> None:
    """The same tables give it: the pages of the drives are in the report, and open on demand."""
    summary = pd.concat(by_measurement(made_fleet(tmp_path, 9, cells=1)), ignore_index=True)
    summary = summary[summary["measurement"].isin(("pts-iops", "pts-latency"))]
    study = {"name": "many", "title": "Many", "basis": "d1", "margin_pct": 5.0}
    report = content.build({"summary": summary}, study, [], [], None)
    assert report.sentence.endswith("d7 (\N{MINUS SIGN}18\u00a0%) is an outlier.")
    assert "95\u00a0% interval: " in report.sentence
    page = html.render(report)
    assert page.index('id="at-a-glance"') < page.index('id="all-drives"') < page.index('id="pages"')
    table = page[page.index('<table id="drives"') :]
    links = re.findall(r'href="#(d\d-pts-iops)"', table[: table.index("</table>")])
    holds = re.findall(r'data-holds="(d\d-pts-iops) d\d-pts-latency"', page)
    assert (len(links), links[-1], sorted(links)) == (9, "d7-pts-iops", sorted(holds))
    assert 'id="d1-pts-iops"' not in page
    packed = re.findall(r'class="packed">([^<]*)<', page)
    assert any('id="d1-pts-iops"' in gzip.decompress(base64.b64decode(text)).decode() for text in packed)
    stranger = pd.DataFrame([{"drive": "old", "measurement": "pts-iops", "words": "its drive 'old' is not in the study",
                              "recording": "old/pts-iops/1", "place": "the whole recording",
                              "fault": "foreign recording"}])  # fmt: skip
    page = html.render(content.build({"summary": summary, "exclusions": stranger}, study, [], [], None))
    assert "9 of 9 drives were measured" in page
    few = content.build({"summary": summary[summary["drive"].isin(("d1", "d7"))]}, study, [], [], None)
    assert few.many_drives is None
