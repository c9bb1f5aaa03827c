"""The report of a fleet: verdict first, every drive leads to its own report, what cannot be relied on is marked."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import pandas as pd
import pytest
from made_fleet import made_fleet

from drivelab.report.fleet import render
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
    assert "1 drive differs from the fleet: d7 in 60 of 60 values." in verdict
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
