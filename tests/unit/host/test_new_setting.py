"""The worked example of docs/how-to/host-setting.md: one file makes a host setting."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest
from doors import example
from made_up_hosts import VM, Build

from drivelab.host import settings
from drivelab.host.catalogue import ENTRIES, catalogue
from drivelab.host.temporary import Temporary

NAME = "NMI watchdog"


def test_the_example_is_a_setting_that_is_set_and_restored(
    build: Build, run_folder: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    name, content = example("host-setting.md")
    assert name == "scripts/drivelab/host/entries/50_site.yaml"
    folder = tmp_path / "entries"
    shutil.copytree(ENTRIES, folder)
    (folder / Path(name).name).write_text(content, encoding="utf-8")
    known = catalogue(folder)
    assert [setting.name for setting in known] == [*(setting.name for setting in catalogue()), NAME]
    monkeypatch.setattr(settings, "catalogue", lambda: known)
    machine = build({**VM, "proc/sys/kernel/nmi_watchdog": "1"})
    rows = {scenario: settings.snapshot([], scenario, machine)[-1] for scenario in ("real-world", "synthetic")}
    assert [row["deviation"] for row in rows.values()] == [False, True]
    assert (rows["synthetic"]["name"], rows["synthetic"]["wanted"]) == (NAME, "off (0)")
    file = machine.proc_root / "sys/kernel/nmi_watchdog"
    with Temporary("host").claim() as temporary:
        assert "NMI watchdog: set to 0 (was 1)" in settings.apply("synthetic", [], temporary, machine)
        assert file.read_text() == "0\n"
    assert file.read_text() == "1\n"
    missing = settings.snapshot([], "synthetic", build(VM))[-1]
    assert (missing["name"], missing["state"], missing["deviation"]) == (NAME, settings.NOT_AVAILABLE, None)
