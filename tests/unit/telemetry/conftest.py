"""A simulated host: files like those of sysfs and proc."""

from __future__ import annotations

from pathlib import Path

import pytest


class Host:
    """Roots of a fake sysfs and proc, with methods to fill them."""

    def __init__(self, folder: Path) -> None:
        self.sys, self.proc = folder / "sys", folder / "proc"
        self.sys.mkdir()
        self.proc.mkdir()

    def write(self, path: str, content: str | float) -> Path:
        file = (self.sys if not path.startswith("proc/") else self.proc.parent) / path
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(f"{content}\n")
        return file

    def block(self, name: str, device: str) -> Path:
        """Create a drive whose `device` is a folder below devices/; return that folder."""
        folder = self.sys / "devices" / device
        (folder / name).mkdir(parents=True)
        (folder / name / "stat").write_text("1 2 3 4 5 6 7000 8 9 10 11 12 13 1400 15 16 17\n")
        (folder / name / "device").symlink_to(folder)
        (self.sys / "class/block").mkdir(parents=True, exist_ok=True)
        (self.sys / "class/block" / name).symlink_to(folder / name)
        return folder

    def cpu(self, user: int = 0, system: int = 0, idle: int = 0, softirq: int = 0, steal: int = 0) -> None:
        """Write the ticks of all CPUs together."""
        self.write(
            "proc/stat", f"cpu  {user} 0 {system} {idle} 0 0 {softirq} {steal} 0 0\ncpu0 1\nintr 1234 0 9\nctxt 5"
        )

    def process(self, pid: str, user: int, system: int, ended_user: int = 0, ended_system: int = 0) -> None:
        """Create a process whose name has all permitted special characters."""
        fields = ["S", *["0"] * 10, user, system, ended_user, ended_system, "20"]
        self.write(f"proc/{pid}/stat", f"7 (a ) b) {' '.join(map(str, fields))}")


@pytest.fixture
def host(tmp_path: Path) -> Host:
    return Host(tmp_path)
