"""What the workflow computes for each plan of a study of many drives."""

from __future__ import annotations

from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from drivelab.campaign.planning import Campaign
from drivelab.workflow import figure_layout
from drivelab.workflow.layout import Layout

ROOT = Path(__file__).resolve().parents[3]
STUDY = """\
name: many
results: results
drives_sheet: many.tsv
drives: [{drives}]
measurements: [{{protocol: pts-iops}}, {{protocol: pts-throughput}}, {{protocol: qos-nines}}]
"""
DRIVES = [f"d{number}" for number in range(1, 21)]


def test_the_figures_of_each_plan_are_determined_once(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "config").symlink_to(ROOT / "config")
    monkeypatch.chdir(tmp_path)
    rows = [f"{name}\t/dev/disk/by-id/{name}\tS-{name}\tyes\t\n" for name in DRIVES]
    Path("many.tsv").write_text("drive\tdevice\tserial\tdestructive\tnote\n" + "".join(rows))
    Path("study.yaml").write_text(STUDY.format(drives=", ".join(DRIVES)))
    layout = Layout(Campaign.load("study.yaml"))
    count = 0
    original = figure_layout.figure_kinds

    def counted(subject: Any) -> set[str]:
        nonlocal count
        count += 1
        return original(subject)

    monkeypatch.setattr(figure_layout, "figure_kinds", counted)
    layout.targets()
    for kinds in layout.figure_sets():
        layout.with_figures(kinds)
    for kinds in set(layout.over_drives.values()):
        for paths in layout.tables_over_drives(kinds).values():
            for measurement in layout.over_drives:
                paths(SimpleNamespace(measurement=measurement))
    for paths in layout.tables_over_sizes().values():
        for measurement in layout.by_size:
            paths(SimpleNamespace(measurement=measurement))
    assert count == len(DRIVES) * 4, "pts-throughput has two plans per drive"
