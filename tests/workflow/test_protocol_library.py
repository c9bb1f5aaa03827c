"""Every shipped protocol at demo scale on the virtual clock, from its file to tables, values and figures."""

from __future__ import annotations

import os
import shutil
from collections.abc import Iterator
from pathlib import Path

import pandas as pd
import pytest
import yaml
from golden_study import entry

from drivelab.analysis.values.summary import summary_table
from drivelab.campaign.planning import Campaign, Planned
from drivelab.collect.collect import collect
from drivelab.figures.base import sheets
from drivelab.recording.writer import read_journal
from drivelab.run.condition import precondition, purge
from drivelab.run.measure import measure
from drivelab.tables import io
from drivelab.tables.windows import windows_table
from drivelab.workflow.figure_kinds import FIGURES_OF, OF_A_RECORDING
from drivelab.workflow.figure_layout import kinds

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


def measured(planned: Planned) -> Planned:
    """Measure a plan unless it is recorded: tests may run in any order and separately."""
    if not (planned.plan.recording_path / "recording.json").exists():
        seal = Path("seals") / planned.plan.recording
        seal.parent.mkdir(parents=True, exist_ok=True)
        purge(planned.plan, seal.with_suffix(".purge"))
        precondition(planned.plan, seal.with_suffix(".purge"), seal.with_suffix(".seal"))
        measure(planned.plan, seal.with_suffix(".seal"))
    return planned


def tables_of(planned: Planned) -> dict[str, pd.DataFrame]:
    """Return the tables of a recording, written and read like the rules `tables` and `steady_state`."""
    tables = collect(planned.plan.recording_path, bool(planned.altered))
    steps = planned.plan.subject["measure"]
    criteria = {
        number: step["loop"]["until"]
        for number, step in enumerate(steps)
        if "loop" in step and "track" in step["loop"]["until"]
    }
    tables["steady_state"] = windows_table(tables["cells"], criteria)
    tables["drives"] = pd.DataFrame([{"drive": planned.plan.drive, "capacity_bytes": 64 * 2**20}])
    folder = Path("tables") / planned.plan.recording
    for name in tables.keys() - {"drives"}:
        io.write(tables[name], folder / f"{name}.parquet", name)
        tables[name] = io.read(folder / f"{name}.parquet", name)
    return tables


def plans_of(campaign: Campaign, name: str) -> list[Planned]:
    named = [planned for planned in campaign.plans if planned.protocol.name == name]
    return [planned for planned in named if planned.plan.measurement != HISTORY["name"]]


def summary(planned: Planned, tables: dict[str, pd.DataFrame]) -> pd.DataFrame:
    names = ("cells", "steady_state", "replays", "replay_passes", "application_runs", "load_rates")
    bins = tables["latency_bins"]
    return summary_table(
        **{name: tables[name] for name in names},
        soak_bins=bins[bins["kind"] == "soak"],
        scores={planned.plan.measurement: planned.protocol.analysis},
    )


@pytest.mark.parametrize("name", NAMES)
def test_a_protocol_runs_at_demo_scale(campaign: Campaign, name: str) -> None:
    for planned in plans_of(campaign, name):
        plan = measured(planned).plan
        assert planned.altered, "the demo scale must shorten the protocol"
        tables = tables_of(planned)
        events = [line["event"] for line in read_journal(plan.recording_path)]
        assert not {"failed", "gap"} & set(events)
        cells = tables["cells"]
        warm = cells[~cells["cold"]]
        replayed = [name for name in ("replays", "application_runs") if name in tables and not tables[name].empty]
        assert len(warm) or replayed
        assert (warm["iops"] > 0).all()
        assert set(summary(planned, tables)["measurement"]) == {plan.measurement}


OF_THE_HOST = ("telemetry", "demand_cpu")
"""Kinds without data on the virtual clock."""


@pytest.mark.parametrize("kind", [kind for kind in OF_A_RECORDING if kind not in OF_THE_HOST])
def test_each_kind_of_figure_is_drawn_for_a_protocol(campaign: Campaign, kind: str, tmp_path: Path) -> None:
    chosen = measured(next(planned for planned in campaign.plans if kind in kinds(planned)))
    sheets.draw({name: tmp_path / name for name in FIGURES_OF[kind]}, tables_of(chosen), chosen.plan.measurement)
    assert all((tmp_path / f"{name}.svg").stat().st_size for name in FIGURES_OF[kind])
