"""Protocols in real time, fio on a virtual drive: cliff and recoveries have the shapes that they are known for.

The figures are kept in results/test-artefacts, to be looked at.
"""

from __future__ import annotations

from pathlib import Path

import pandas as pd
import pytest
import yaml

from drivelab.analysis.saturation import find_cliff
from drivelab.analysis.windows import windows_table
from drivelab.figures import sheets
from drivelab.plan.plan import Plan
from drivelab.stages.condition import precondition, purge
from drivelab.stages.figure_kinds import FIGURES_OF
from drivelab.stages.figure_layout import kinds
from drivelab.stages.measure import measure
from drivelab.stages.planning import Campaign
from drivelab.tables.collect import collect

pytestmark = pytest.mark.device

ARTEFACTS = Path(__file__).resolve().parents[2] / "results/test-artefacts"
DRIVES = pd.DataFrame({"drive": ["op7"], "capacity_bytes": [64 * 2**20]})


@pytest.fixture
def measured(project: Path, run_directory: Path, request: pytest.FixtureRequest) -> dict[str, pd.DataFrame]:
    """Tables of the protocol that the test asks for, at its demo scale, and its figures among the artefacts."""
    name: str = request.param
    study = {
        "name": "shapes",
        "clock": "wall",
        "drives": ["op7"],
        "measurements": [{"protocol": name, "scale": "demo"}],
    }
    Path("config/shapes.yaml").write_text(yaml.safe_dump(study))
    (one,) = Campaign.load("config/shapes.yaml").plans
    purge(one.plan, Path("purged"))
    precondition(one.plan, Path("purged"), Path("conditioned"))
    measure(one.plan, Path("conditioned"))
    tables = collect(one.plan.recording_path, reduced=True)
    tables["steady_state"] = windows_table(tables["cells"], criteria(one.plan))
    tables["drives"] = DRIVES
    ARTEFACTS.mkdir(parents=True, exist_ok=True)
    for kind in kinds(one):
        stems = {figure: ARTEFACTS / f"{name}-{figure}" for figure in FIGURES_OF[kind]}
        sheets.draw(stems, tables, f"op7, {name}")
    return tables


def criteria(plan: Plan) -> dict[int, dict[str, object]]:
    steps = enumerate(plan.subject["measure"])
    return {
        number: step["loop"]["until"] for number, step in steps if "loop" in step and "track" in step["loop"]["until"]
    }


@pytest.mark.parametrize("measured", ["pts-iops"], indirect=True)
def test_reads_outdo_writes_in_a_loop(measured: dict[str, pd.DataFrame]) -> None:
    cells = measured["cells"]
    small = cells[cells["block_size_bytes"] == 4096].groupby("read_share_pct")["iops"].mean()
    assert small[100] > 1.5 * small[0]
    assert len(measured["steady_state"])


@pytest.mark.parametrize("measured", ["pts-write-saturation"], indirect=True)
def test_random_writes_fall_off_a_cliff(measured: dict[str, pd.DataFrame]) -> None:
    slices = measured["cells"][measured["cells"]["step"] == 0]
    cliff = find_cliff(slices, 64 * 2**20)
    assert cliff is not None
    assert cliff.iops_before > 1.5 * cliff.iops_after
    assert 0.3 < cliff.drive_fills < 3


@pytest.mark.parametrize("measured", ["pts-idle-recovery"], indirect=True)
def test_a_longer_pause_gives_more_back(measured: dict[str, pd.DataFrame]) -> None:
    cells = measured["cells"]
    bursts = cells[(cells["kind"] == "loop") & (cells["round"] > 1)].groupby("step")["iops"].mean()
    baseline = cells[(cells["kind"] == "soak") & (cells["step"] == 0)]["iops"].tail(3).mean()
    assert bursts.iloc[-1] > 1.5 * bursts.iloc[0]
    assert bursts.iloc[-1] > 2 * baseline


@pytest.mark.parametrize("measured", ["pts-cross-stimulus-recovery"], indirect=True)
def test_sequential_writes_recover_from_random_ones(measured: dict[str, pd.DataFrame]) -> None:
    before, between, after = (part["bandwidth_mib_s"] for _, part in measured["cells"].groupby("step"))
    assert between.tail(3).mean() < 0.7 * before.mean()
    assert after.tail(3).mean() > 1.3 * between.tail(3).mean()
