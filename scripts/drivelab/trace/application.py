"""Applications to trace: what config/applications.yaml says of them, and the run of one on a drive."""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from drivelab.config.schema import ROOT
from drivelab.config.yaml_file import load_yaml
from drivelab.errors import UserError
from drivelab.trace import capture as capturing
from drivelab.trace.decode import decode
from drivelab.trace.ftrace import RUN
from drivelab.units import format_size, parse_size

FILE_SYSTEMS = ("ext4",)
PLACEHOLDERS = ("mount", "project", "python")
_NAME = re.compile(r"[a-z0-9][a-z0-9_-]*")
_KEYS = {"title", "file_system", "size", "set_up", "command", "tear_down"}


@dataclass(frozen=True)
class Application:
    """What to run on which file system; commands are lists of words, no shell reads them."""

    name: str
    title: str
    file_system: str
    size_bytes: int
    """Of the file system, which begins at the start of the drive."""
    command: tuple[str, ...]
    """The traced one; `{mount}`, `{project}` and `{python}` stand for mount point, project folder, interpreter."""
    set_up: tuple[tuple[str, ...], ...] = ()
    """Commands before it, on the mounted file system, not traced."""
    tear_down: tuple[tuple[str, ...], ...] = ()
    """Commands after it, not traced."""

    def to_mapping(self) -> dict[str, Any]:
        """JSON-able and canonical."""
        return {
            "name": self.name,
            "file_system": self.file_system,
            "size": format_size(self.size_bytes),
            "command": list(self.command),
            "set_up": [list(one) for one in self.set_up],
            "tear_down": [list(one) for one in self.tear_down],
        }


def load(path: Path, name: str) -> Application:
    """One application of a file; raises UserError with file and key for an unknown name and anything ill-formed."""
    body = load_yaml(path)
    if name not in body:
        raise UserError(f"{path}: there is no application '{name}'; it has: {', '.join(sorted(body)) or 'none'}")
    return from_mapping(name, body[name], str(path))


def from_mapping(name: str, body: Any, source: str) -> Application:
    """Check one entry; raises UserError with `source` and key."""
    where = f"{source}: application '{name}'"
    if not _NAME.fullmatch(name):
        raise UserError(f"{where}: name it with lower-case letters, digits, - and _ only")
    if not isinstance(body, dict):
        raise UserError(f"{where}: is no mapping; its keys are {', '.join(sorted(_KEYS))}")
    if unknown := sorted(body.keys() - _KEYS):
        raise UserError(f"{where}: unknown key '{unknown[0]}'; known are {', '.join(sorted(_KEYS))}")
    if missing := sorted({"title", "file_system", "size", "command"} - body.keys()):
        raise UserError(f"{where}: key '{missing[0]}' is missing")
    if body["file_system"] not in FILE_SYSTEMS:
        raise UserError(f"{where}: file_system '{body['file_system']}' is not one of {', '.join(FILE_SYSTEMS)}")
    return Application(
        name=name,
        title=str(body["title"]),
        file_system=body["file_system"],
        size_bytes=parse_size(body["size"]),
        command=_words(body["command"], f"{where}: key 'command'"),
        set_up=_commands(body.get("set_up", []), f"{where}: key 'set_up'"),
        tear_down=_commands(body.get("tear_down", []), f"{where}: key 'tear_down'"),
    )


def run_captured(name: str, spec: Application, device: str, out_parquet: Path) -> dict[str, Any]:
    """Trace an application on a fresh file system on a drive and write the trace to `out_parquet` as `name`.

    Returns the summary of drivelab.trace.decode.decode.

    All data on `device` is lost: the caller has made sure that it may be. The raw capture lies beside `out_parquet`
    meanwhile and is kept when something fails. Nothing is left mounted, after kill -9 the next call sees to that.

    Raises UserError when the drive is too small, and when a command fails.
    """
    recover_mounts()
    capacity_bytes = int(_checked(["blockdev", "--getsize64", device], "the size of the drive"))
    if capacity_bytes < spec.size_bytes:
        raise UserError(
            f"application '{spec.name}': {device} has {format_size(capacity_bytes)}, its file system needs "
            f"{format_size(spec.size_bytes)}; use a larger drive"
        )
    out_parquet.parent.mkdir(parents=True, exist_ok=True)
    raw = Path(tempfile.mkdtemp(prefix=f"{out_parquet.stem}.capture.", dir=out_parquet.parent))
    _make_file_system(spec, device)
    with _mounted(device) as mount:
        _run_all(spec.set_up, mount)
        _checked(["sync", "--file-system", str(mount)], "sync of the file system")
        report = capturing.capture(device, _resolve(spec.command, mount), raw, cwd=mount)
        _run_all(spec.tear_down, mount)
    if report.exit_status:
        raise UserError(
            f"application '{spec.name}': ended with status {report.exit_status}: {_last_line(raw / 'stderr')}; "
            f"its output is in {raw}"
        )
    summary = decode(
        raw,
        out_parquet,
        about={
            "name": name, "application": spec.name, "title": spec.title, "command": list(spec.command),
            "file_system": spec.file_system, "file_system_bytes": spec.size_bytes,
        },
    )  # fmt: skip
    shutil.rmtree(raw)
    return summary


def recover_mounts(run: Path = RUN) -> None:
    """Unmount what a killed process left mounted."""
    for journal in sorted(run.glob("mount-*.json")):
        body = json.loads(journal.read_text())
        if _alive(body["pid"], body["started"]):
            continue
        mount = Path(body["mount"])
        if os.path.ismount(mount):
            _checked(["umount", str(mount)], f"unmounting {mount}")
        if mount.is_dir():
            mount.rmdir()
        journal.unlink()


def _make_file_system(spec: Application, device: str) -> None:
    # Lazy initialisation would go on in the background and be traced with the application.
    _checked(
        ["mkfs.ext4", "-q", "-F", "-b", "4096", "-E", "lazy_itable_init=0,lazy_journal_init=0",
         device, f"{spec.size_bytes // 1024}k"],
        f"making an ext4 file system on {device}",
    )  # fmt: skip


@contextmanager
def _mounted(device: str) -> Iterator[Path]:
    """Mount on a new directory; the journal is written first, so that nothing is mounted that nobody knows of."""
    RUN.mkdir(parents=True, exist_ok=True)
    mount = Path(tempfile.mkdtemp(prefix="mount.", dir=RUN))
    journal = RUN / f"mount-{os.getpid()}-{mount.suffix[1:]}.json"
    journal.write_text(json.dumps({"pid": os.getpid(), "started": _started(os.getpid()), "mount": str(mount)}))
    try:
        _checked(["mount", "-t", "ext4", device, str(mount)], f"mounting {device}")
        yield mount
    finally:
        if os.path.ismount(mount):
            _checked(["umount", str(mount)], f"unmounting {mount}")
        mount.rmdir()
        journal.unlink()


def _run_all(commands: Sequence[Sequence[str]], mount: Path) -> None:
    for command in commands:
        _checked(_resolve(command, mount), f"'{' '.join(command)}'", cwd=mount)


def _resolve(command: Sequence[str], mount: Path) -> list[str]:
    values = {"mount": str(mount), "project": str(ROOT), "python": sys.executable}
    return [re.sub(r"\{(\w+)\}", lambda match: values[match[1]], word) for word in command]


def _checked(command: Sequence[str], what: str, cwd: Path | None = None) -> str:
    """Output of a command; raises UserError with its last word when it fails."""
    try:
        done = subprocess.run(command, cwd=cwd, stdin=subprocess.DEVNULL, capture_output=True, text=True, check=False)
    except FileNotFoundError:
        raise UserError(f"{what} failed: there is no program '{command[0]}'; install it") from None
    if done.returncode:
        lines = done.stderr.strip().splitlines()
        raise UserError(f"{what} failed with status {done.returncode}: {lines[-1] if lines else 'no message'}")
    return done.stdout


def _commands(value: Any, where: str) -> tuple[tuple[str, ...], ...]:
    if not isinstance(value, list):
        raise UserError(f"{where}: is no list of commands")
    return tuple(_words(one, f"{where}[{index}]") for index, one in enumerate(value))


def _words(value: Any, where: str) -> tuple[str, ...]:
    if not isinstance(value, list) or not value or not all(isinstance(word, str) for word in value):
        raise UserError(f"{where}: is no list of words; write a command as [program, argument, …], no shell reads it")
    for word in value:
        for placeholder in re.findall(r"\{(\w+)\}", word):
            if placeholder not in PLACEHOLDERS:
                raise UserError(f"{where}: '{{{placeholder}}}' is unknown; there are {', '.join(PLACEHOLDERS)}")
    return tuple(value)


def _last_line(path: Path) -> str:
    lines = path.read_text(errors="replace").strip().splitlines()
    return lines[-1] if lines else "it said nothing"


def _started(pid: int) -> str:
    """Start time of a process in clock ticks since boot, field 22 of proc_pid_stat(5): PIDs come again."""
    return Path(f"/proc/{pid}/stat").read_text().rsplit(")", 1)[1].split()[19]


def _alive(pid: int, started: str) -> bool:
    try:
        return _started(pid) == started
    except FileNotFoundError:
        return False
