"""From virtual drives with effects to findings: the study of docs/detectors.md, by its recordings alone."""

from __future__ import annotations

import math
import os
import re
import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pandas as pd
import pytest

from drivelab.analysis.detectors import findings_table
from drivelab.campaign.planning import Campaign, Planned
from drivelab.collect.collect import collect
from drivelab.figures.base import sheets
from drivelab.figures.of_recording import figure_kinds
from drivelab.plan.yaml_file import load_yaml
from drivelab.run.condition import precondition, purge
from drivelab.run.measure import measure
from drivelab.tables import io
from drivelab.telemetry.sampler import read_samples
from drivelab.virtual.effects import Throttle

ROOT = Path(__file__).resolve().parents[2]
pytestmark = pytest.mark.long

DISTURBANCES = {"thermal throttling", "neighbours", "outlier runs", "periodic dips", "drift"}
Tables = dict[str, pd.DataFrame]


@pytest.fixture(scope="module")
def measured(tmp_path_factory: pytest.TempPathFactory) -> Iterator[dict[str, tuple[Planned, Tables]]]:
    """Plan and tables, including `findings`, of each drive of the study in docs/detectors.md."""
    folder = tmp_path_factory.mktemp("disturbances")
    shutil.copytree(ROOT / "config", folder / "config")
    shown = re.search(r"```yaml\n(.*?)```", (ROOT / "docs/detectors.md").read_text(), re.S)
    assert shown is not None
    before = Path.cwd()
    os.chdir(folder)
    Path("config/disturbances.yaml").write_text(shown[1])
    by_drive = {}
    for planned in Campaign.load("config/disturbances.yaml").plans:
        purge(planned.plan, Path("purged.json"))
        precondition(planned.plan, Path("purged.json"), Path("conditioned.json"))
        measure(planned.plan, Path("conditioned.json"))
        tables = kept(collect(planned.plan.recording_path, reduced=True), Path("tables") / planned.plan.drive)
        by_drive[planned.plan.drive] = (
            planned,
            {**tables, **kept({"findings": findings_table(tables)}, Path("findings"))},
        )
    yield by_drive
    os.chdir(before)


def kept(tables: Tables, folder: Path) -> Tables:
    """Write and read tables like the rules of the workflow."""
    for name, table in tables.items():
        io.write(table, folder / f"{name}.parquet", name)
    return {name: io.read(folder / f"{name}.parquet", name) for name in tables}


def finding(tables: Tables, detector: str) -> dict[str, Any]:
    rows = tables["findings"]
    (row,) = rows[rows["found"] & (rows["detector"] == detector)].to_dict("records")
    return {str(name): value for name, value in row.items()}


def effect(drive: str, name: str) -> dict[str, float]:
    return dict(load_yaml(Path("config/virtual_drives.yaml"))[drive][name])


def test_an_undisturbed_drive_has_no_findings(measured: dict[str, tuple[Planned, Tables]]) -> None:
    planned, tables = measured["op7"]
    assert not tables["findings"]["found"].any()
    assert tables["telemetry"].empty
    assert not (planned.plan.recording_path / "telemetry.jsonl").exists()
    assert "telemetry" not in figure_kinds(planned.plan.subject)


def test_throttling_is_found_with_its_onset_and_depth(measured: dict[str, tuple[Planned, Tables]]) -> None:
    planned, tables = measured["op7-hot"]
    throttling, hot = finding(tables, "thermal throttling"), Throttle(**effect("op7-hot", "throttle"))
    assert throttling["value"] == pytest.approx(100 * (1 - 1 / hot.slowdown), abs=2)
    first, *_ = samples = list(read_samples(planned.plan.recording_path))
    rate_mib_s = tables["cells"]["bandwidth_mib_s"].iloc[0]
    settles_c = hot.ambient_c + rate_mib_s * hot.heat_c_per_mib * hot.cooling_s
    onset_s = hot.cooling_s * math.log((settles_c - first["temperature_c"]) / (settles_c - hot.limit_c))
    assert throttling["begin_s"] == pytest.approx(onset_s, abs=2)
    after_s = [sample["at_s"] - first["at_s"] for sample in samples]
    began = next(place for place, at_s in enumerate(after_s) if at_s >= throttling["begin_s"])
    assert samples[began]["temperature_c"] == pytest.approx(hot.limit_c, abs=3)
    assert "the limit is 75 °C" in throttling["words"]
    cells, slowed_s = tables["cells"], samples[-1]["thermal_2_s"] - first["thermal_2_s"]
    events = f"{samples[-1]['thermal_2_transitions']:.0f} throttling events"
    assert f"{events}, {slowed_s:.0f} s in all" in throttling["words"]
    # commands take four times as long, so the missing transfers give the throttled time
    full = cells["iops"].max()
    lost_s = float(((1 - cells["iops"] / full) * cells["runtime_s"]).sum())
    assert slowed_s == pytest.approx(lost_s / (1 - 1 / hot.slowdown), abs=2)
    throttled = cells["throttled"].astype(bool)
    assert (cells["tainted"] == throttled).all()
    assert throttled[cells["iops"] < 0.9 * full].all()
    assert cells["temperature_max_c"].max() == pytest.approx(hot.limit_c, abs=1)
    (latency, rates) = [row for row in tables["findings"].to_dict("records") if row["detector"] == "bimodality"]
    assert (latency["found"], rates["found"]) == (True, True)


def test_housekeeping_is_found_with_its_period(measured: dict[str, tuple[Planned, Tables]]) -> None:
    _, tables = measured["op7-housekeeping"]
    dips, keeps = finding(tables, "periodic dips"), effect("op7-housekeeping", "housekeeping")
    assert dips["value"] == pytest.approx(keeps["every_s"], rel=0.02)
    depth = re.search(r"by (\d+) %", dips["words"])
    assert depth is not None
    assert float(depth[1]) == pytest.approx(100 * keeps["for_s"], abs=5)
    rows = tables["findings"]
    assert set(rows.loc[rows["found"], "detector"]) & DISTURBANCES == {"periodic dips"}


def test_a_neighbour_is_found_with_its_share(measured: dict[str, tuple[Planned, Tables]]) -> None:
    _, tables = measured["op7-disturbed"]
    neighbour, taken = finding(tables, "neighbours"), effect("op7-disturbed", "disturb")
    assert (neighbour["metric"], neighbour["value"]) == ("steal_pct", pytest.approx(taken["stolen_pct"], abs=2))
    assert f"at most {taken['stolen_pct']:g} %" in neighbour["words"]
    spells = finding(tables, "outlier runs")
    assert (spells["value"], spells["unit"]) == (pytest.approx(taken["for_s"], abs=1), "s")
    cells = tables["cells"]
    assert cells["steal_pct"].max() == pytest.approx(taken["stolen_pct"], abs=1)
    assert cells.loc[cells["tainted"], "taint_reason"].str.startswith("steal: ").all()
    assert 20 <= cells["tainted"].sum() <= 35  # a fifth of 100 s, plus the seconds at the edges
    rows = tables["findings"]
    assert set(rows.loc[rows["found"], "detector"]) & DISTURBANCES == {"neighbours", "outlier runs"}


@pytest.mark.parametrize(("drive", "words"), [("op7-hot", ["Temperature", "its limit", "throttled"]),
                                              ("op7-disturbed", ["Processor time", "hypervisor"])])  # fmt: skip
def test_the_telemetry_figure_shows_the_disturbance(
    drive: str, words: list[str], measured: dict[str, tuple[Planned, Tables]], tmp_path: Path
) -> None:
    planned, tables = measured[drive]
    assert "telemetry" in figure_kinds(planned.plan.subject)
    sheets.draw(["telemetry_strip"], tables, planned.plan.measurement, tmp_path)
    assert (tmp_path / "telemetry_strip.png").stat().st_size
    drawn = (tmp_path / "telemetry_strip.svg").read_text()
    assert [word for word in [*words, "VIRTUAL drive", "virtual clock"] if word not in drawn] == []
