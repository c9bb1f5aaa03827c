"""`drivelab drives --hosts`: an inventory over ssh or Slurm, with programs instead of ssh and srun."""

from __future__ import annotations

import json
import os
from pathlib import Path

import pytest

from drivelab.cli.main import main
from drivelab.cli.start.inventory import Host, command, hosts_in
from drivelab.core.errors import UserError
from drivelab.plan.drive_sheet import load_sheet

_FAKE = """\
#!/bin/sh
case "$*" in
*bench-a*) cat '{folder}/bench-a.json' ;;
*bench-b*) cat '{folder}/bench-b.json' ;;
*) echo "ssh: connect to host: No route to host" >&2; exit 255 ;;
esac
"""


def drive(serial: str, **more: object) -> dict[str, object]:
    facts = {
        "device": "/dev/nvme0n1", "testable": True, "reason": None, "sheet": "yes", "sheet_name": "x",
        "pin": f"/dev/disk/by-id/nvme-{serial}", "serial": serial, "model": "MODEL X", "kind": "drive", "members": [],
        "capacity_bytes": 1 << 40, "virtual": False,
    }  # fmt: skip
    return {**facts, **more}


@pytest.fixture
def hosts(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Two hosts that answer, behind programs named ssh and srun."""
    for program in ("ssh", "srun"):
        (tmp_path / program).write_text(_FAKE.format(folder=tmp_path))
        (tmp_path / program).chmod(0o755)
    monkeypatch.setenv("PATH", f"{tmp_path}:{os.environ['PATH']}")
    (tmp_path / "bench-a.json").write_text(json.dumps([drive("S0001"), drive("S0002")]))
    held = drive("S0003", testable=False, reason="nvme0n1 contains / of the running system", pin=None)
    (tmp_path / "bench-b.json").write_text(json.dumps([drive("S1001"), held]))
    path = tmp_path / "hosts.txt"
    path.write_text("# the lab\nbench-a\nbench-b /opt/drivelab   # elsewhere\n")
    return path


@pytest.mark.parametrize("via", ["ssh", "slurm"])
def test_the_drives_of_all_hosts_are_added_to_a_sheet(via: str, hosts: Path, tmp_path: Path) -> None:
    sheet = tmp_path / "drives.tsv"
    sheet.write_text("drive\tdevice\tserial\tdestructive\tnote\nold\t/dev/disk/by-id/nvme-S0001\tS0001\tyes\tmine\n")
    arguments = ["drives", "--hosts", str(hosts), "--via", via, "--sheet", str(sheet), "-o", str(sheet)]
    for _ in ("first", "again"):
        assert main(arguments) == 0
        rows = load_sheet(sheet)
        assert {row.serial: (row.host, row.destructive) for row in rows.values()} == {
            "S0001": (None, True), "S0002": ("bench-a", False), "S1001": ("bench-b", False),
        }  # fmt: skip
    assert "# /dev/nvme0n1 of bench-b: MODEL X, 1 TiB; not testable" in sheet.read_text()


def test_a_silent_host_is_named_and_the_others_are_kept(
    hosts: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    hosts.write_text("bench-a\nbench-c\n")
    assert main(["drives", "--hosts", str(hosts), "--sheet", str(tmp_path / "none.tsv"), "--json"]) == 1
    printed = capsys.readouterr()
    assert [(drive["serial"], drive["host"]) for drive in json.loads(printed.out)] == [
        ("S0001", "bench-a"), ("S0002", "bench-a"),
    ]  # fmt: skip
    assert printed.err == "drivelab: host bench-c is left out: ssh: connect to host: No route to host\n"


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("-oProxyCommand=x\n", "cannot be the name of a host"),
        ("a;reboot\n", "cannot be the name of a host"),
        ("a\na /other\n", "host 'a' is listed twice"),
        ("# none\n", "has no hosts"),
    ],
)
def test_an_invalid_list_is_refused(text: str, words: str, tmp_path: Path) -> None:
    path = tmp_path / "hosts.txt"
    path.write_text(text)
    with pytest.raises(UserError, match=words):
        hosts_in(path)


def test_a_folder_is_quoted_for_the_remote_shell() -> None:
    assert command(Host("a", "/x y;z"), "ssh")[-1] == "cd '/x y;z' && ./drivelab drives --json"
