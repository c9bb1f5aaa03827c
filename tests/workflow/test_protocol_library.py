"""Every shipped protocol at demo scale on the virtual clock, from its file to tables, values and figures."""

from __future__ import annotations

import os
import shutil
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

import pandas as pd
import pytest
import yaml
from golden_study import entry

from drivelab.analysis.values.recording_tables import recording_tables
from drivelab.analysis.values.summary import summary_table
from drivelab.campaign.estimate import Estimate
from drivelab.campaign.outlook import outlook
from drivelab.campaign.planning import Campaign, Planned
from drivelab.figures.base import sheets
from drivelab.figures.of_recording import FIGURES_OF, OF_A_RECORDING, figure_kinds
from drivelab.recording.writer import read_journal
from drivelab.run.condition import precondition, purge
from drivelab.run.measure import measure
from drivelab.tables import io
from drivelab.virtual.kept_state import KEPT_DRIVES
from drivelab.virtual.model import DriveModel
from drivelab.virtual_clock.cells import VirtualClockDrive

ROOT = Path(__file__).resolve().parents[2]
NAMES = sorted(path.stem for path in (ROOT / "config/protocols").glob("*.yaml"))


HISTORY = {
    "protocol": "pts-iops-v1", "name": "history", "scale": "demo",
    "set": {"loop": {"cells": {"read_share": [0], "block_size": ["4KiB"]}, "until": {"rounds": 12}}},
}  # fmt: skip
"""A fixed number of rounds, as no shipped protocol has."""


@pytest.fixture(scope="module")
def campaign(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Campaign]:
    """A study of all protocols and a history, on one virtual drive with 512 B blocks, which some protocols need."""
    folder = tmp_path_factory.mktemp("library")
    for name in ("config", "traces"):
        shutil.copytree(ROOT / name, folder / name)
    study = {
        "name": "library", "results": "results", "clock": "virtual", "drives": ["op7-512e"],
        "traces": {"sqlite": {"shipped": "sqlite-inserts"}},
        "measurements": [*(entry(folder, name) | {"scale": "demo"} for name in NAMES), HISTORY],
    }  # fmt: skip
    before = Path.cwd()
    os.chdir(folder)
    Path("config/library.yaml").write_text(yaml.safe_dump(study))
    yield Campaign.load("config/library.yaml")
    os.chdir(before)


@pytest.fixture(scope="module")
def estimates(campaign: Campaign) -> dict[str, Estimate]:
    """The estimate of each measurement, before any is measured."""
    (drive,) = outlook(campaign)
    return {test.measurement: test.estimate for test in drive.tests}


def measured(planned: Planned) -> tuple[int, float]:
    """Measure a plan on a new drive; return the bytes written to it and the seconds that it took."""
    plan, seal = planned.plan, Path("seals") / planned.plan.recording
    seal.parent.mkdir(parents=True, exist_ok=True)
    model = DriveModel.from_mapping(plan.drive, plan.subject["drive"]["virtual"])
    state = Path(plan.context["results"]) / KEPT_DRIVES / f"{model.serial}.state"
    state.unlink(missing_ok=True)  # so that nothing depends on the protocols before
    purge(plan, seal.with_suffix(".purge"))
    precondition(plan, seal.with_suffix(".purge"), seal.with_suffix(".seal"))
    measure(plan, seal.with_suffix(".seal"))
    drive = VirtualClockDrive(model, state)
    return drive.counters()["host_write_bytes"], drive.now_us / 1e6


def tables_of(planned: Planned) -> dict[str, pd.DataFrame]:
    """Return the tables of a recording, written and read."""
    tables = recording_tables(planned.plan.recording_path, reduced=bool(planned.altered))
    tables["drives"] = pd.DataFrame([{"drive": planned.plan.drive, "capacity_bytes": 64 * 2**20}])
    folder = Path("tables") / planned.plan.recording
    for name in tables.keys() - {"drives"}:
        io.write(tables[name], folder / f"{name}.parquet", name)
        tables[name] = io.read(folder / f"{name}.parquet", name)
    return tables


def summary(planned: Planned, tables: dict[str, pd.DataFrame]) -> pd.DataFrame:
    names = ("cells", "steady_state", "replays", "replay_passes", "application_runs", "load_rates")
    bins = tables["latency_bins"]
    return summary_table(
        **{name: tables[name] for name in names},
        soak_bins=bins[bins["kind"] == "soak"],
        scores={planned.plan.measurement: planned.protocol.analysis},
    )


@pytest.fixture(scope="module")
def drawn(campaign: Campaign) -> dict[str, list[str]]:
    """The kinds of figures that are drawn for each measurement: the first one that has them."""
    measurements: dict[str, list[str]] = {}
    kinds = {planned.plan.measurement: figure_kinds(planned.plan.subject) for planned in campaign.plans}
    for kind in (kind for kind in OF_A_RECORDING if kind != "telemetry"):  # not on the virtual clock
        first = next(measurement for measurement, its_kinds in kinds.items() if kind in its_kinds)
        measurements.setdefault(first, []).append(kind)
    return measurements


@pytest.mark.parametrize("name", [*NAMES, HISTORY["name"]])
def test_a_protocol_runs_at_demo_scale_within_its_estimate_and_to_its_figures(
    campaign: Campaign, estimates: dict[str, Estimate], drawn: dict[str, list[str]], name: str, tmp_path: Path
) -> None:
    written, taken_s = Counter[str](), Counter[str]()
    for planned in campaign.plans:
        plan = planned.plan
        if name != (HISTORY["name"] if plan.measurement == HISTORY["name"] else planned.protocol.name):
            continue
        cost = measured(planned)
        written[plan.measurement] += cost[0]
        taken_s[plan.measurement] += cost[1]
        assert planned.altered, "the demo scale must shorten the protocol"
        tables = tables_of(planned)
        assert not {"failed", "gap"} & {line["event"] for line in read_journal(plan.recording_path)}
        warm = tables["cells"][~tables["cells"]["cold"]]
        assert len(warm) or any(not tables[kind].empty for kind in ("replays", "application_runs") if kind in tables)
        assert (warm["iops"] > 0).all()
        assert set(summary(planned, tables)["measurement"]) == {plan.measurement}
        for kind in drawn.get(plan.measurement, []):
            sheets.draw(FIGURES_OF[kind], tables, plan.measurement, tmp_path, png=False)
            assert all((tmp_path / f"{figure}.svg").stat().st_size for figure in FIGURES_OF[kind])
    assert written
    for measurement, estimate in estimates.items():
        if measurement in written:
            assert estimate.least_bytes <= written[measurement] <= estimate.most_bytes
            assert estimate.least_s <= taken_s[measurement] <= estimate.most_s
