"""Host settings as data: what a file may say, how the example becomes a setting, and what the doctor prints."""

from __future__ import annotations

import json
import os
import re
import shutil
from pathlib import Path

import pytest
import yaml
from case_kinds import SETTING
from doors import example
from made_up_hosts import LAPTOP, SERVER, VM, Build

from drivelab.cli.main import main
from drivelab.cli.start import doctor
from drivelab.core.errors import UserError
from drivelab.drives import identity
from drivelab.host import settings
from drivelab.host.catalogue import ENTRIES, catalogue
from drivelab.host.temporary import Temporary


def test_two_settings_cannot_have_the_same_name(tmp_path: Path) -> None:
    for name in ("a.yaml", "b.yaml"):
        (tmp_path / name).write_text(yaml.safe_dump({"settings": [SETTING]}))
    with pytest.raises(UserError, match=r"b\.yaml: setting 'A': another setting has the same name"):
        catalogue(tmp_path)


def test_a_timer_that_a_setting_names_is_not_among_the_others(tmp_path: Path) -> None:
    timers = {**SETTING, "name": "T", "read": {"timers": ["b*"]}}
    others = {**SETTING, "name": "O", "read": "other_timers"}
    (tmp_path / "a.yaml").write_text(yaml.safe_dump({"settings": [others, timers]}))
    other, named = catalogue(tmp_path)

    class Host:
        def timers(self) -> list[str]:
            return ["a.timer", "b.timer"]

    assert [part.name for part in other.read(Host(), "") or []] == ["a.timer"]  # type: ignore[arg-type]
    assert [part.name for part in named.read(Host(), "") or []] == ["b.timer"]  # type: ignore[arg-type]


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


@pytest.fixture
def server(build: Build, run_folder: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Let the command read a simulated server with the drive nvme0n1; return its folder."""
    machine = build(SERVER, "apt-daily.timer")
    monkeypatch.setattr(settings, "Machine", lambda: machine)
    monkeypatch.setattr(os, "geteuid", lambda: 0)
    monkeypatch.setattr(identity, "attached", lambda: ["nvme0n1"])
    monkeypatch.setattr(doctor, "_pinned", lambda: ["nvme0n1"])
    return machine.sys_root.parent


def governor(server: Path) -> str:
    return (server / "sys/devices/system/cpu/cpufreq/policy1/scaling_governor").read_text().strip()


def test_json_is_a_list_of_rows(server: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["doctor", "--json", "--scenario", "real-world"]) == 0
    rows = json.loads(capsys.readouterr().out)
    assert {"name": "SMT", "scope": "host", "state": "off", "wanted": "on", "deviation": True}.items() <= rows[
        0
    ].items()
    assert {row["scope"] for row in rows} == {"host", "nvme0n1"}
    assert all(row["deviation"] in (True, False, None) and isinstance(row["settable"], bool) for row in rows)


@pytest.mark.parametrize("host", [VM, LAPTOP, SERVER])
@pytest.mark.parametrize("scenario", ["real-world", "synthetic"])
def test_report_is_sorted_complete_and_narrow(build: Build, host: dict[str, str], scenario: str) -> None:
    rows = settings.snapshot(["nvme0n1"], scenario, build(host))
    lines = doctor.report(rows, scenario)
    assert max(map(len, lines)) <= 100
    text = re.sub(r"\s+", " ", " ".join(lines))
    assert all(row["name"] in text for row in rows)
    count = len(settings.deviations(rows))
    assert lines[0].startswith(f"Scenario {scenario}: {count} deviate, ")
    titles = [line for line in lines if line in ("Deviates", "Unknown", "As wanted", "Not available here")]
    assert titles == [title for title in ("Deviates", "Unknown", "As wanted", "Not available here")
                      if title in titles]  # fmt: skip
    assert ("Deviates" in titles) == (count > 0)


def test_a_report_changes_nothing(server: Path, run_folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["doctor"]) == 0
    assert governor(server) == "powersave"
    assert not run_folder.exists()
    assert "--apply changes" in capsys.readouterr().out


def test_apply_lasts_until_restore(server: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["doctor", "--apply"]) == 0
    assert "CPU governor: set to performance" in capsys.readouterr().out
    assert governor(server) == "performance"
    assert main(["doctor"]) == 0
    assert "settings are changed for a study now" in re.sub(r"\s+", " ", capsys.readouterr().out)
    assert main(["doctor", "--restore"]) == 0
    assert "CPU governor: put back (3 places)" in capsys.readouterr().out
    assert governor(server) == "powersave"
    assert (server / "timers").read_text() == "apt-daily.timer\n"
    assert main(["doctor", "--restore"]) == 0
    assert "nothing to restore" in capsys.readouterr().out


def test_apply_without_root_is_refused(
    server: Path, run_folder: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(os, "geteuid", lambda: 1000)
    assert main(["doctor", "--apply"]) == 2
    assert "only root can change host settings" in capsys.readouterr().err
    assert governor(server) == "powersave"
    assert not run_folder.exists()


def test_unknown_device_is_refused(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["doctor", "nosuchdrive"]) == 2
    assert "there is no block device nosuchdrive" in capsys.readouterr().err
