"""Protocols in real time, with fio on a virtual drive: cliff and recoveries have their known shapes.

The figures are kept in build/test-artefacts for inspection.
"""

from __future__ import annotations

import shutil
import subprocess
import sys
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pandas as pd
import pytest
import yaml

from drivelab.analysis.values.saturation_values import find_cliff
from drivelab.campaign.planning import Campaign, Planned
from drivelab.collect.collect import collect
from drivelab.core.units import parse_size
from drivelab.figures.base import sheets
from drivelab.plan.plan import Plan
from drivelab.tables.windows import windows_table
from drivelab.virtual import manage
from drivelab.workflow.figure_kinds import FIGURES_OF
from drivelab.workflow.figure_layout import kinds
from drivelab.workflow.layout import Layout

pytestmark = [pytest.mark.device, pytest.mark.long]

ROOT = Path(__file__).resolve().parents[2]
SLOWNESS = 8
"""The drives are op7-512e, so much slower and smaller: they change as fast, and need less of the processor."""
CAPACITY_BYTES = 64 * 2**20 // SLOWNESS
ARTEFACTS = ROOT / "build/test-artefacts"
PROTOCOLS: dict[str, dict[str, Any]] = {
    # One more round than a window: the shape is the same in every round.
    "pts-iops": {"loop": {"until": {"steady_state": {"max_rounds": 6}}}},
    "pts-write-saturation": {},
    "pts-idle-recovery": {"repeat": {"over": {"time": ["3s", "8s"]}}},
    "pts-cross-stimulus-recovery": {
        "soak": [{"slice": "1s", "until": {"time": time}} for time in ("25s", "6s", "12s")]
    },
}
"""Protocols, and settings that shorten them beyond their demo scale."""
STAGES = """\
import sys
from pathlib import Path
from drivelab.plan.plan import Plan
from drivelab.run.condition import precondition, purge
from drivelab.run.measure import measure
path = Path(sys.argv[1])
plan, purged, conditioned = Plan.read(path), path.with_suffix(".purged"), path.with_suffix(".conditioned")
purge(plan, purged)
precondition(plan, purged, conditioned)
measure(plan, conditioned)
"""

Tables = dict[str, pd.DataFrame]


@pytest.fixture(scope="module")
def measured(tmp_path_factory: pytest.TempPathFactory, _possible: str | None) -> Iterator[dict[str, Tables]]:
    """Return the tables of each protocol at its demo scale, and write its figures to the artefacts.

    All protocols run in parallel, each on its own drive, because they mostly wait.
    """
    if _possible is not None:
        pytest.skip(_possible)
    folder = tmp_path_factory.mktemp("shapes")
    for name in ("config", "traces"):
        shutil.copytree(ROOT / name, folder / name)
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("DRIVELAB_RUN_DIR", str(folder))
        patch.chdir(folder)
        try:
            plans = planned()
            with ThreadPoolExecutor(len(plans)) as each:
                list(each.map(measure, plans))
            yield {plan.plan.measurement: tables_and_figures(plan) for plan in plans}
        finally:
            manage.stop(force=True)


def planned() -> list[Planned]:
    """Plan each protocol on a drive like op7-512e, which has known shapes, with the protocol's name."""
    models, sheet = Path("config/virtual_drives.yaml"), Path("config/drives.tsv")
    op7 = yaml.safe_load(models.read_text())["op7-512e"]
    times = [name for name in op7 if name.endswith("_us") and name not in ("erase_us", "idle_after_us")]
    slower = {
        **{name: op7[name] * SLOWNESS for name in times},
        **{name: f"{parse_size(op7[name]) // SLOWNESS}B" for name in ("capacity", "slc_cache", "write_buffer")},
        "pages_per_block": op7["pages_per_block"] // SLOWNESS,  # so a page's share of an erase is as much slower
    }
    more = {name: {**op7, **slower, "serial": f"VIRTUAL-{name.upper()}"} for name in PROTOCOLS}
    models.write_text(models.read_text() + yaml.safe_dump(more))
    rows = (f"{name}\tvirtual:{name}\tVIRTUAL-{name.upper()}\tyes\t\n" for name in PROTOCOLS)
    sheet.write_text(sheet.read_text() + "".join(rows))
    measurements = [{"protocol": name, "scale": "demo", "set": settings} for name, settings in PROTOCOLS.items()]
    study = {"name": "shapes", "clock": "wall", "drives": list(PROTOCOLS), "measurements": measurements,
             "concurrency": len(PROTOCOLS)}  # fmt: skip
    Path("config/shapes.yaml").write_text(yaml.safe_dump(study))
    campaign = Campaign.load("config/shapes.yaml")
    Layout(campaign).claim()
    return [entry for entry in campaign.plans if entry.plan.drive == entry.plan.measurement]


def measure(entry: Planned) -> None:
    path = Path(f"{entry.plan.measurement}.json")
    path.write_text(entry.plan.to_json())
    subprocess.run([sys.executable, "-c", STAGES, path], check=True)


def tables_and_figures(entry: Planned) -> Tables:
    tables = collect(entry.plan.recording_path, reduced=True)
    tables["steady_state"] = windows_table(tables["cells"], criteria(entry.plan))
    tables["drives"] = pd.DataFrame({"drive": [entry.plan.drive], "capacity_bytes": [CAPACITY_BYTES]})
    ARTEFACTS.mkdir(parents=True, exist_ok=True)
    for kind in kinds(entry):
        stems = {figure: ARTEFACTS / f"{entry.plan.measurement}-{figure}" for figure in FIGURES_OF[kind]}
        sheets.draw(stems, tables, f"op7, {entry.plan.measurement}", png=False)
    return tables


def criteria(plan: Plan) -> dict[int, dict[str, object]]:
    steps = enumerate(plan.subject["measure"])
    return {
        number: step["loop"]["until"] for number, step in steps if "loop" in step and "track" in step["loop"]["until"]
    }


def test_reads_are_faster_than_writes_in_a_loop(measured: dict[str, Tables]) -> None:
    cells = measured["pts-iops"]["cells"]
    small = cells[cells["block_size_bytes"] == 4096].groupby("read_share_pct")["iops"].mean()
    assert small[100] > 1.5 * small[0]
    assert len(measured["pts-iops"]["steady_state"])


def test_random_writes_show_a_cliff(measured: dict[str, Tables]) -> None:
    cells = measured["pts-write-saturation"]["cells"]
    cliff = find_cliff(cells[cells["step"] == 0], CAPACITY_BYTES)
    assert cliff is not None
    assert cliff.iops_before > 1.5 * cliff.iops_after
    assert 0.3 < cliff.drive_fills < 3


def test_a_longer_pause_recovers_more(measured: dict[str, Tables]) -> None:
    cells = measured["pts-idle-recovery"]["cells"]
    bursts = cells[(cells["kind"] == "loop") & (cells["round"] > 1)].groupby("step")["iops"].mean()
    baseline = cells[(cells["kind"] == "soak") & (cells["step"] == 0)]["iops"].tail(3).mean()
    assert bursts.iloc[-1] > 1.5 * bursts.iloc[0]
    assert bursts.iloc[-1] > 2 * baseline


def test_sequential_writes_recover_from_random_ones(measured: dict[str, Tables]) -> None:
    cells = measured["pts-cross-stimulus-recovery"]["cells"]
    before, between, after = (part["bandwidth_mib_s"] for _, part in cells.groupby("step"))
    assert between.tail(3).mean() < 0.7 * before.mean()
    assert after.tail(3).mean() > 1.3 * between.tail(3).mean()
