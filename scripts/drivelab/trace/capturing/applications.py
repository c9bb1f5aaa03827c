"""Applications of config/applications.yaml: definition, file system, traced run."""

from __future__ import annotations

import os
import re
import shutil
import sys
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from drivelab.core import programs
from drivelab.core.errors import UserError, suggestion
from drivelab.core.programs import packages
from drivelab.core.units import format_size, parse_size
from drivelab.plan.places import ROOT
from drivelab.plan.plan import Plan
from drivelab.plan.yaml_file import load_yaml
from drivelab.trace.capturing import capture as capturing
from drivelab.trace.capturing import guardian, mounts
from drivelab.trace.capturing.mounts import checked

APPLICATIONS = Path("config/applications.yaml")
FILE_SYSTEMS = tuple(mounts.LEAST_BYTES)
PLACEHOLDERS = ("mount", "project", "python")
CACHES = ("cold", "warm")
_NAME = re.compile(r"[a-z0-9][a-z0-9_-]*")
_REQUIRED = {"title", "file_system", "size", "command"}
_KEYS = _REQUIRED | {"set_up", "tear_down", "cache", "requires"}


@dataclass(frozen=True)
class Application:
    """What to run on which file system; no shell reads the commands."""

    name: str
    title: str
    """Description for readers."""
    file_system: str
    """Created at the start of the drive, whose data is lost."""
    size_bytes: int
    """Size of the file system, which begins at the start of the drive."""
    command: tuple[str, ...]
    """The traced or timed command; `{mount}`, `{project}`, `{python}`: mount point, project folder, interpreter."""
    set_up: tuple[tuple[str, ...], ...] = ()
    """Commands before `command` on the mounted file system, neither traced nor timed."""
    tear_down: tuple[tuple[str, ...], ...] = ()
    """Commands after `command`, neither traced nor timed."""
    cache: str = "warm"
    """`cold`: the file system is remounted between set-up and command, so nothing of it is in memory."""
    requires: Mapping[str, str] = field(default_factory=dict)
    """Required programs, or file patterns with a slash, and the Debian packages that contain them."""

    def to_mapping(self) -> dict[str, Any]:
        """Return what the trace or duration depends on, JSON-able and canonical."""
        body = {
            "name": self.name,
            "file_system": self.file_system,
            "size": format_size(self.size_bytes),
            "command": list(self.command),
            "set_up": [list(command) for command in self.set_up],
            "tear_down": [list(command) for command in self.tear_down],
        }
        return body if self.cache == "warm" else {**body, "cache": self.cache}


def load(path: Path, name: str) -> Application:
    """Load one application from a file. Raises UserError with file and key for an unknown name or an invalid entry."""
    body = load_yaml(path)
    if name not in body:
        raise UserError(f"{path}: application '{name}' is unknown; {suggestion(name, sorted(body))}")
    return from_mapping(name, body[name], str(path))


def from_mapping(name: str, body: Any, source: str) -> Application:
    """Check one entry and build it; raise UserError with `source` and key."""
    where = f"{source}: application '{name}'"
    if not _NAME.fullmatch(name):
        raise UserError(f"{where}: use only lower-case letters, digits, - and _ in the name")
    if not isinstance(body, dict):
        raise UserError(f"{where}: is not a mapping; write a mapping with the keys {', '.join(sorted(_KEYS))}")
    if unknown := sorted(body.keys() - _KEYS):
        raise UserError(f"{where}: unknown key '{unknown[0]}'; the keys are {', '.join(sorted(_KEYS))}")
    if missing := sorted(_REQUIRED - body.keys()):
        raise UserError(f"{where}: key '{missing[0]}' is missing; add it")
    cache = body.get("cache", "warm")
    for key, value, known in (("file_system", body["file_system"], FILE_SYSTEMS), ("cache", cache, CACHES)):
        if value not in known:
            raise UserError(f"{where}: {key} '{value}' is not one of {', '.join(known)}")
    size_bytes = parse_size(body["size"])
    least_bytes = mounts.LEAST_BYTES[body["file_system"]]
    if size_bytes < least_bytes:
        raise UserError(
            f"{where}: key 'size' is {format_size(size_bytes)}; {body['file_system']} needs at least "
            f"{format_size(least_bytes)}"
        )
    requires = body.get("requires", {})
    if not isinstance(requires, dict) or not all(isinstance(text, str) for pair in requires.items() for text in pair):
        raise UserError(f"{where}: key 'requires' is not a mapping; map each program to its Debian package")
    return Application(
        name=name,
        title=str(body["title"]),
        file_system=body["file_system"],
        size_bytes=size_bytes,
        command=_arguments(body["command"], f"{where}: key 'command'"),
        set_up=_commands(body.get("set_up", []), f"{where}: key 'set_up'"),
        tear_down=_commands(body.get("tear_down", []), f"{where}: key 'tear_down'"),
        cache=cache,
        requires=requires,
    )


def of_plan(plan: Plan) -> Application:
    """Return a plan's application. Its title and requirements are in the plan's context."""
    body = {key: value for key, value in plan.subject["application"].items() if key != "name"}
    return from_mapping(plan.subject["application"]["name"], {**body, **plan.context["application"]}, "plan")


def refuse_missing(spec: Application) -> None:
    """Raise UserError naming every program that is not installed, with its package."""
    mkfs = f"mkfs.{spec.file_system}"
    needed = {mkfs: packages()[mkfs], **spec.requires}
    missing = {what: package for what, package in needed.items() if not _installed(what)}
    if missing:
        raise UserError(
            f"application '{spec.name}' needs {', '.join(missing)}, not installed here. On Debian: "
            f"apt-get install {' '.join(dict.fromkeys(missing.values()))}. Nothing was written."
        )


def run_captured(
    name: str, spec: Application, device: str, out_parquet: Path, *, virtual: bool = False, backend: str | None = None
) -> dict[str, Any]:
    """Trace an application on a fresh file system and write the trace.

    Returns the summary of drivelab.trace.decode.decode and `application_duration_s`, the seconds of the command alone.
    This duration is the result of an application-based benchmark: lower is better.

    `virtual` marks the trace as captured on a virtual drive. All data on `device` is lost; the caller must have checked
    that this is allowed. The raw capture is beside `out_parquet` and is kept only on failure. Nothing stays mounted: a
    guardian unmounts after kill -9.

    Raises UserError when a program is not installed, the drive is too small, or a command fails.
    """
    from drivelab.trace.decode import decode  # imports pyarrow, which would slow down planning

    refuse_missing(spec)
    mounts.recover_mounts()
    refuse_small_drive(spec, int(checked(["blockdev", "--getsize64", device], "the size of the drive")), device)
    out_parquet.parent.mkdir(parents=True, exist_ok=True)
    raw = Path(tempfile.mkdtemp(prefix=f"{out_parquet.stem}.capture.", dir=out_parquet.parent))
    with guardian.watch() as guard, prepared(spec, device) as mount:
        report = capturing.capture(device, resolve(spec.command, mount), raw, cwd=mount, backend=backend, guard=guard)
    if report.exit_status:
        raise UserError(
            f"application '{spec.name}' ended with status {report.exit_status}: {last_line(raw / 'stderr')}; "
            f"its output is in {raw}"
        )
    duration = {"application_duration_s": report.duration_s, "application_traced": True}
    summary = decode(
        raw,
        out_parquet,
        about={
            "name": name, "application": spec.name, "title": spec.title, "command": list(spec.command),
            "file_system": spec.file_system, "file_system_bytes": spec.size_bytes, "cache": spec.cache,
            "virtual": virtual, **duration,
        },
    )  # fmt: skip
    shutil.rmtree(raw)
    return {**summary, **duration}


def refuse_unready(spec: Application) -> None:
    """Raise UserError if this process is not root, or a program is not installed."""
    if os.geteuid() != 0:
        raise UserError(
            f"application '{spec.name}' needs root to mount its file system; run drivelab with sudo. "
            "Nothing was written."
        )
    refuse_missing(spec)


def refuse_small_drive(spec: Application, capacity_bytes: int, where: str) -> None:
    """Raise UserError if the file system does not fit the drive, named `where`."""
    if capacity_bytes < spec.size_bytes:
        raise UserError(
            f"application '{spec.name}': {where} has {format_size(capacity_bytes)}, its file system needs "
            f"{format_size(spec.size_bytes)}; use a larger drive"
        )


@contextmanager
def prepared(spec: Application, device: str, *, discard: bool = True) -> Iterator[Path]:
    """Make, mount and set up a fresh file system; yield its mount point.

    The file system is always unmounted.

    The cache is cold or warm as the application requires. The `tear_down` commands run at the end if nothing failed.
    Without `discard`, neither mkfs nor the file system discards free space; otherwise their defaults apply. Raises
    UserError when a command fails.
    """
    options = [] if discard else ["nodiscard"]
    mounts.make(spec.file_system, spec.size_bytes, device, discard=discard)
    with mounts.mounted(spec.file_system, device, options) as mount:
        _run_all(spec.set_up, mount)
        checked(["sync", "--file-system", str(mount)], "sync of the file system")
        if spec.cache == "cold":
            mounts.remount_cold(spec.file_system, device, mount, options)
        yield mount
        _run_all(spec.tear_down, mount)


def _installed(program: str) -> bool:
    if "/" in program:
        return any(Path("/").glob(program.lstrip("/")))
    return shutil.which(mounts.program(program)) is not None


def _run_all(commands: Sequence[Sequence[str]], mount: Path) -> None:
    for command in commands:
        checked(resolve(command, mount), f"'{' '.join(command)}'", cwd=mount)


def resolve(command: Sequence[str], mount: Path) -> list[str]:
    """Return a command's arguments with the placeholders replaced."""
    values = {"mount": str(mount), "project": str(ROOT), "python": sys.executable}
    words = [re.sub(r"\{(\w+)\}", lambda match: values[match[1]], argument) for argument in command]
    return programs.python(*words[1:]) if command[0] == "{python}" else words


def _commands(value: Any, where: str) -> tuple[tuple[str, ...], ...]:
    if not isinstance(value, list):
        raise UserError(f"{where}: is not a list of commands; write [[program, argument, …], …]")
    return tuple(_arguments(command, f"{where}[{index}]") for index, command in enumerate(value))


def _arguments(value: Any, where: str) -> tuple[str, ...]:
    if not isinstance(value, list) or not value or not all(isinstance(argument, str) for argument in value):
        raise UserError(f"{where}: is not a list of strings; write [program, argument, …], as no shell splits it")
    for argument in value:
        for placeholder in re.findall(r"\{(\w+)\}", argument):
            if placeholder not in PLACEHOLDERS:
                raise UserError(f"{where}: '{{{placeholder}}}' is unknown; choose one of {', '.join(PLACEHOLDERS)}")
    return tuple(value)


def last_line(path: Path) -> str:
    """Return the last line of a command's output."""
    lines = path.read_text(errors="replace").strip().splitlines()
    return lines[-1] if lines else "it printed no message"
