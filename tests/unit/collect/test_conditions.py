"""The conditions of recordings on the virtual clock."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import pandas as pd
import pytest
from made_plans import made_plan
from made_recordings import without_checksums
from stages import run_stages

from drivelab.collect.conditions import conditions
from drivelab.core.errors import UserError
from drivelab.plan.plan import Plan
from drivelab.tables import io

WRITE: dict[str, Any] = {"pattern": "random", "read_share": 0, "block_size_bytes": 4096, "threads": 1,
                         "queue_depth": 8, "runtime_s": 0.03}  # fmt: skip
CLASS = {"name": "client", "threads": 1, "queue_depth": 8, "active_range": 0.75}


def recorded(folder: Path, **changed: Any) -> Plan:
    folder.mkdir(exist_ok=True)
    cell = {**WRITE, **changed.pop("cell", {})}
    steps = [{"loop": {"cells": [cell], "until": {"rounds": 1}, "cold_rounds": 0}}]
    plan = made_plan(folder, steps, changed.pop("condition", {}), model=changed.pop("model", None),
                     **{"class": CLASS, **changed})  # fmt: skip
    run_stages(plan, folder)
    return plan


def facets(plan: Plan, **more: Any) -> dict[str, str]:
    table = conditions([plan.recording_path], more.pop("altered", {}), more.pop("cells", None))
    assert not table["facet"].duplicated().any()
    return dict(zip(table["facet"], table["value"], strict=True))


def test_the_file_system_of_a_platform_is_no_difference_of_the_drive(tmp_path: Path) -> None:
    plan = recorded(tmp_path)
    path = plan.recording_path / "identity.json"
    found = {"composition": "ext4, mounted with relatime; virtual drive"}
    path.write_text(json.dumps({**json.loads(path.read_text()), **found}))
    assert facets(plan)["composition"] == found["composition"], "a folder of the sheet"
    subject = {**plan.subject, "file_system": {"type": "ext4", "mkfs": [], "mount": [], "file_share": 0.4}}
    (plan.recording_path / "plan.json").write_text(Plan(subject, plan.context).to_json())
    assert facets(plan)["composition"] == "whole drive"


def test_every_facet_of_a_recording(tmp_path: Path) -> None:
    plan = recorded(tmp_path)
    table = conditions([plan.recording_path], {})
    io.write(table, tmp_path / "c", "conditions")
    assert set(table["kind"]) == {"drive", "host", "protocol", "time"}
    actual = facets(plan)
    expected = {
        "serial": "MINE-1", "capacity": "16,777,216 B", "over-provisioning": "28 %", "protocol": "made-up",
        "class": "client", "active range": "75 %", "fill": "none", "data pattern": "random", "clock": "virtual",
        "reduced": "no: full length", "scenario": "real-world", "traces": "none", "fio": "virtual clock",
        "virtual drive: slc cache": "0B", "temperature": "not recorded", "LBA format": "not recorded",
        "purge": "reset of the flash model",
    }  # fmt: skip
    assert {name: actual[name] for name in expected} == expected
    host = json.loads((plan.recording_path / "host.json").read_text())
    assert (actual["kernel"], actual["CPU"]) == (host["kernel"], host["cpu"])


def test_the_jobs_and_the_journal_say_how_io_reached_the_drive(tmp_path: Path) -> None:
    plan = recorded(tmp_path)
    assert facets(plan)["I/O path"] == "direct"
    (job,) = plan.recording_path.glob("cells/*/job.fio")
    buffered = job.read_text().replace("direct=1", "direct=0")
    job.write_text(buffered)
    assert facets(plan)["I/O path"] == "page cache"
    job.unlink()
    assert facets(plan)["I/O path"] == "not recorded"
    job.write_text(buffered.replace("direct=0", "direct=1"))
    with (plan.recording_path / "journal.jsonl").open("a") as journal:
        journal.write(json.dumps({"at": "2030-01-01", "event": "application", "step": 1, "application": "db"}) + "\n")
    assert facets(plan)["I/O path"] == "direct | file system"


def test_missing_checksums_are_a_facet_of_kind_time(tmp_path: Path) -> None:
    plan = recorded(tmp_path)
    assert facets(plan)["evidence"] == "checksummed"
    without_checksums(plan.recording_path)
    table = conditions([plan.recording_path], {}).set_index("facet")
    assert tuple(table.loc["evidence", ["kind", "value"]]) == ("time", "not checksummed")


def test_a_change_affects_only_its_facet(tmp_path: Path) -> None:
    basis = facets(recorded(tmp_path / "basis"))
    fill = {"fill": {"pattern": "sequential", "block_size_bytes": 131072, "queue_depth": 8, "capacity_multiple": 1}}
    for name, changed, differing in (
        ("fill", {"condition": fill}, {"fill", "steps"}),
        ("data", {"cell": {"entropy": 0.5}}, {"data pattern", "steps"}),
        ("cell", {"cell": {"queue_depth": 4}}, {"steps"}),
        ("submission", {"cell": {"registered": True, "batch": 4}}, {"I/O submission", "steps"}),
        ("flash", {"model": {"dies": 8}}, {"virtual drive: dies"}),
        ("scenario", {"scenario": "synthetic"}, {"scenario"}),
    ):
        actual = facets(recorded(tmp_path / name, **changed))
        assert {facet for facet in actual if actual[facet] != basis.get(facet)} == differing, name
    assert facets(recorded(tmp_path / "fill", condition=fill))["fill"] == "1 x capacity sequential 128KiB"


def test_an_altered_protocol_lists_its_changes(tmp_path: Path) -> None:
    plan = recorded(tmp_path)
    changes = ["scale demo", "loop: 1 round instead of 25"]
    assert facets(plan, altered={plan.recording: changes})["reduced"] == "; ".join(changes)


def test_temperatures_come_from_counted_cells(tmp_path: Path) -> None:
    plan = recorded(tmp_path)
    rows = [(True, 20.0, 22.0), (False, 31.0, 36.0), (False, 34.0, 40.0), (False, None, None)]
    cells = pd.DataFrame(rows, columns=["cold", "temperature_min_c", "temperature_max_c"])
    cells["recording"] = plan.recording
    assert facets(plan, cells=cells)["temperature"] == "30 to 45 °C"
    unknown = cells.assign(temperature_min_c=float("nan"))
    assert facets(plan, cells=unknown)["temperature"] == "not recorded"


def test_the_journal_identifies_a_trace_captured_on_this_host(tmp_path: Path) -> None:
    plan = recorded(tmp_path, traces=[{"name": "shipped", "sha256": "0123456789abcdef"}, {"name": "captured"},
                                      {"name": "unused"}])  # fmt: skip
    journal = plan.recording_path / "journal.jsonl"
    line = {"event": "replay", "at": "2026-01-01T00:00:00Z", "trace": "captured", "trace_sha256": "fedcba9876543210",
            "engine": "virtual-clock"}  # fmt: skip
    journal.write_text(journal.read_text() + json.dumps(line) + "\n")
    assert facets(plan)["traces"] == "shipped 01234567, captured fedcba98, unused not recorded"


def test_host_and_drive_settings_have_different_facets(tmp_path: Path) -> None:
    plan = recorded(tmp_path)
    rows = [{"name": "CPU governor", "scope": "host", "state": "performance"},
            {"name": "scheduler", "scope": "nvme0n1", "state": "none"}]  # fmt: skip
    (plan.recording_path / "settings.json").write_text(json.dumps(rows))
    actual = facets(plan)
    assert (actual["setting: CPU governor"], actual["drive setting: scheduler"]) == ("performance", "none")


@pytest.mark.parametrize(
    ("text", "lacking"),
    [
        ('[{"name": "CPU governor", "scope": "host"}]', "state"),
        ('[{"state": "performance"}]', "name, scope"),
        ('["CPU governor"]', "rows"),
        ("{", "rows"),
        ("7", "rows"),
    ],
)
def test_altered_settings_are_named(tmp_path: Path, text: str, lacking: str) -> None:
    plan = recorded(tmp_path)
    path = plan.recording_path / "settings.json"
    path.write_text(text)
    message = f"{path}: the file was altered and lacks {lacking}; restore the original file"
    with pytest.raises(UserError, match=re.escape(message)):
        facets(plan)
