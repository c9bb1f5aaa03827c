"""The report of a fleet: verdict first, every drive leads to its own report, what cannot be relied on is marked."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import pandas as pd
import pytest
from made_fleet import made_fleet

from drivelab.analysis.fleet import deviations_table, drive_columns, spread_table
from drivelab.report.fleet import banners, lead, render
from drivelab.report.fleet_tables import drives_table
from drivelab.tables.fleet import fleet_tables

STUDY: dict[str, Any] = {
    "name": "made", "title": "Made <fleet>", "basis": "d1", "clock_reason": None, "elsewhere": [],
    "comparison": {"margin_pct": 5.0}, "altered": ["pts-iops: <shorter>"],
}  # fmt: skip
NO_DELTAS = pd.DataFrame({"comparison": [], "verdict": []})


@pytest.fixture(scope="module")
def frames(tmp_path_factory: pytest.TempPathFactory) -> dict[str, pd.DataFrame]:
    folder = tmp_path_factory.mktemp("fleet")
    failed = {"drive": "d13", "subjects": ["d13"], "state": "failed", "reasons": ["<it> hangs"], "recordings": 0,
              "planned": 30, "results": "none"}  # fmt: skip
    return fleet_tables([*made_fleet(folder, 12, cells=2), failed], 5.0)


def test_the_verdict_comes_first_and_names_what_differs(frames: dict[str, pd.DataFrame]) -> None:
    html = render(frames, NO_DELTAS, STUDY)
    verdict = html[html.index('id="verdict"') : html.index("<nav")]
    assert "12 of 13 drives were measured, 12 of them steady in every test. Not measured: d13." in verdict
    assert "1 drive is an outlier: d7 in 60 of 60 values." in verdict
    assert "Nothing is compared with the basis, d1" in verdict
    assert "d13: &lt;it&gt; hangs" in verdict
    assert "Made &lt;fleet&gt;" in html
    assert "<it>" not in html
    assert "&lt;shorter&gt;" in verdict


def test_every_drive_has_a_row_that_leads_to_its_report(frames: dict[str, pd.DataFrame]) -> None:
    html = render(frames, NO_DELTAS, STUDY)
    table = html[html.index('<table id="drives"') :]
    links = re.findall(r'href="\.\./drives/(d\d+)/report/index\.html"', table[: table.index("</table>")])
    assert sorted(links) == sorted(frames["fleet_drives"]["drive"])
    assert links[-2:] == ["d7", "d13"]  # the slowest, and the one without a place


def test_what_cannot_be_relied_on_is_marked(frames: dict[str, pd.DataFrame]) -> None:
    deviations = frames["fleet_deviations"].copy()
    chosen = (deviations["drive"] == "d3") & deviations["is_key"]
    deviations.loc[chosen, "verdict"] = "not steady"
    deviations.loc[chosen, "place"] = None
    drives = frames["fleet_drives"].copy()
    drives.loc[drives["drive"] == "d3", "not_steady"] = 10
    html = render({**frames, "fleet_deviations": deviations.assign(virtual=True), "fleet_drives": drives}, NO_DELTAS,
                  STUDY, ["sqlite"])  # fmt: skip
    row = html[html.index('href="../drives/d3/report', html.index('<table id="drives"')) :]
    assert "not steady" in row[: row.index("</tr>")]
    for one in ("not-steady", "virtual", "reduced", "lossy", "excluded"):
        assert f'class="chip" href="#{one}"' in html
        assert f'id="{one}"' in html


def test_nothing_is_fetched(frames: dict[str, pd.DataFrame]) -> None:
    html = render(frames, NO_DELTAS, STUDY)
    assert "default-src 'none'" in html
    assert not re.findall(r'(?:src|href)="(?!data:|#|\.\./drives/)[^"]*', html)


def test_a_fleet_without_a_result_has_a_report(tmp_path: Path) -> None:
    failed = {"drive": "d1", "subjects": ["d1"], "state": "failed", "reasons": [], "recordings": 0, "planned": 3,
              "results": str(tmp_path)}  # fmt: skip
    assert "0 of 1 drives were measured" in render(fleet_tables([failed], 5.0), NO_DELTAS, STUDY)


def grouped(**values: list[float]) -> dict[str, pd.DataFrame]:
    """Tables of drives a, b, c … by measurement, of which each has one value."""
    rows = pd.DataFrame(
        [{"drive": "abcdefgh"[place], "measurement": name, "value": value} for name, of in values.items()
         for place, value in enumerate(of)]
    ).assign(protocol="p", cell_label="RND 4KiB 0/100", metric="iops", kind="speed", unit="IOPS", verdict="steady",
             taint_reason=None, reduced=False, virtual=False, clock="wall")  # fmt: skip
    deviations = deviations_table(rows, 5.0)
    drives = drive_columns(deviations).reset_index()
    drives = drives.assign(state="measured", reason=None, hosts="h", model="M", firmware="F", serial=drives["drive"],
                           excluded=0)  # fmt: skip
    return {"drives": drives, "spread": spread_table(deviations), "deviations": deviations}


def sentences(**values: list[float]) -> str:
    return "\n".join(lead(**grouped(**values), hosts=NO_DELTAS, deltas=NO_DELTAS, basis="a", margin_pct=5.0))


def test_drives_in_groups_are_not_said_to_be_alike() -> None:
    said = sentences(saturation=[1760.0, 3535, 1760, 3535, 1760], rate=[100.0, 101, 99, 100, 100]).replace("\xa0", " ")
    assert "2.0 % in rate (99 to 101 IOPS over 5 drives" in said
    assert "101 % in saturation (1,760 to 3,535 IOPS over 5 drives, robust variation 0.00 %)" in said
    assert "No drive is an outlier by the rule: modified z above 3.5" in said
    assert "In saturation 2 drives are far from the median, though no outlier by the rule: b and d, by +101 %." in said
    assert "differs" not in said


def test_of_few_drives_the_range_is_told_and_none_is_called_an_outlier() -> None:
    said = sentences(rate=[100.0, 200, 100]).replace("\xa0", " ")
    assert "100 % in rate (100 to 200 IOPS over 3 drives" in said
    assert "that takes a value of 5 drives or more" in said


def test_drives_that_are_alike_are_not_called_far() -> None:
    assert "far from the median" not in sentences(rate=[100.0, 100, 100, 101, 104, 97])


def test_the_largest_deviation_names_its_measurement() -> None:
    frames = grouped(saturation=[1760.0, 3535, 1760, 3535, 1760], rate=[100.0, 99, 101, 100, 100])
    table = drives_table(frames["drives"], frames["deviations"], {})
    place = [column.text for column in table.columns].index("Largest deviation")
    fields = {row[0].text: row[place] for row in table.rows}
    assert (fields["b"].text.replace("\xa0", " "), fields["b"].small) == ("+101 %", "saturation")
    assert fields["c"].small == "rate"


def test_what_all_drives_share_needs_no_column() -> None:
    frames = grouped(rate=[100.0, 99, 101, 100, 100])
    table = drives_table(frames["drives"], frames["deviations"], {})
    assert [column.text for column in table.columns][-1] == "Serial"
    assert "All drives: Host h, Model M, Firmware F." in table.note


@pytest.mark.parametrize(
    ("hot", "title", "named"),
    [(["b"], "1 drive has values that are tainted", "b (1 value)"),
     (["b", "d"], "2 drives have values that are tainted", "b (1 value) and d (1 value)")],
)  # fmt: skip
def test_what_tainted_a_drive_is_not_put_on_the_host(hot: list[str], title: str, named: str) -> None:
    frames = grouped(rate=[100.0, 99, 101, 100, 100])
    deviations = frames["deviations"]
    deviations["taint_reason"] = [
        "throttled: the drive reached 110 °C, it warns from 75 °C" if one in hot else None
        for one in deviations["drive"]
    ]
    drives = frames["drives"].assign(tainted=frames["drives"]["drive"].isin(hot).astype(int))
    (banner,) = banners(drives, deviations, STUDY | {"altered": []}, [])
    assert banner.title == title
    assert "the drive or its host" in banner.meaning
    assert named in banner.meaning
    assert banner.reasons == tuple(f"{one}: throttled: the drive reached 110 °C, it warns from 75 °C" for one in hot)
