"""Applications: what config/applications.yaml says of them, their file systems, and the traced run of one."""

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

from drivelab.config.schema import ROOT
from drivelab.config.yaml_file import load_yaml
from drivelab.errors import UserError
from drivelab.plan.plan import Plan
from drivelab.trace import capture as capturing
from drivelab.trace.capturing import guardian, mounts
from drivelab.trace.capturing.mounts import checked, recover_mounts
from drivelab.units import format_size, parse_size

__all__ = ["Application", "from_mapping", "load", "recover_mounts", "run_captured"]

FILE_SYSTEMS = tuple(mounts.LEAST_BYTES)
PLACEHOLDERS = ("mount", "project", "python")
CACHES = ("cold", "warm")
_NAME = re.compile(r"[a-z0-9][a-z0-9_-]*")
_REQUIRED = {"title", "file_system", "size", "command"}
_KEYS = _REQUIRED | {"set_up", "tear_down", "cache", "requires"}


@dataclass(frozen=True)
class Application:
    """What to run on which file system; commands are lists of words, no shell reads them."""

    name: str
    title: str
    """What it is, for people."""
    file_system: str
    """Made at the start of the drive, whose data is lost."""
    size_bytes: int
    """Of the file system, which begins at the start of the drive."""
    command: tuple[str, ...]
    """The traced or timed one; `{mount}`, `{project}`, `{python}` are mount point, project folder, interpreter."""
    set_up: tuple[tuple[str, ...], ...] = ()
    """Commands before it, on the mounted file system, neither traced nor timed."""
    tear_down: tuple[tuple[str, ...], ...] = ()
    """Commands after it, likewise."""
    cache: str = "warm"
    """`cold`: between set-up and command the file system is mounted anew, so that nothing of it is in memory."""
    requires: Mapping[str, str] = field(default_factory=dict)
    """Programs that it needs, or patterns of files with a slash, and the Debian packages that have them."""

    def to_mapping(self) -> dict[str, Any]:
        """JSON-able and canonical: what the trace, or the duration, depends on."""
        body = {
            "name": self.name,
            "file_system": self.file_system,
            "size": format_size(self.size_bytes),
            "command": list(self.command),
            "set_up": [list(one) for one in self.set_up],
            "tear_down": [list(one) for one in self.tear_down],
        }
        return body if self.cache == "warm" else {**body, "cache": self.cache}


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
    if missing := sorted(_REQUIRED - body.keys()):
        raise UserError(f"{where}: key '{missing[0]}' is missing")
    cache = body.get("cache", "warm")
    for key, value, known in (("file_system", body["file_system"], FILE_SYSTEMS), ("cache", cache, CACHES)):
        if value not in known:
            raise UserError(f"{where}: {key} '{value}' is not one of {', '.join(known)}")
    size_bytes = parse_size(body["size"])
    mounts.refuse_size(body["file_system"], size_bytes, where)
    requires = body.get("requires", {})
    if not isinstance(requires, dict) or not all(isinstance(one, str) for pair in requires.items() for one in pair):
        raise UserError(f"{where}: key 'requires' is no mapping of programs to the packages that have them")
    return Application(
        name=name,
        title=str(body["title"]),
        file_system=body["file_system"],
        size_bytes=size_bytes,
        command=_words(body["command"], f"{where}: key 'command'"),
        set_up=_commands(body.get("set_up", []), f"{where}: key 'set_up'"),
        tear_down=_commands(body.get("tear_down", []), f"{where}: key 'tear_down'"),
        cache=cache,
        requires=requires,
    )


def of_plan(plan: Plan) -> Application:
    """The application that a plan measures with; its title and what it requires are in the plan's context."""
    body = {key: value for key, value in plan.subject["application"].items() if key != "name"}
    return from_mapping(plan.subject["application"]["name"], {**body, **plan.context["application"]}, "plan")


def refuse_missing(spec: Application) -> None:
    """Raise UserError naming every program that is not installed, with its package."""
    needed = {f"mkfs.{spec.file_system}": mounts.PACKAGES[spec.file_system], **spec.requires}
    missing = {what: package for what, package in needed.items() if not _installed(what)}
    if missing:
        raise UserError(
            f"application '{spec.name}' needs {', '.join(missing)}, not installed here; on Debian: "
            f"apt-get install {' '.join(dict.fromkeys(missing.values()))}. Nothing was written."
        )


def run_captured(
    name: str, spec: Application, device: str, out_parquet: Path, *, virtual: bool = False, backend: str | None = None
) -> dict[str, Any]:
    """Trace an application on a fresh file system on a drive and write the trace to `out_parquet` as `name`.

    Returns the summary of drivelab.trace.decode.decode and `application_duration_s`, the seconds of the command
    alone, which is the result of an application-based benchmark: lower is better.

    `virtual` says in the trace that the drive was no real one. All data on `device` is lost: the caller has made sure
    that it may be. The raw capture lies beside `out_parquet` meanwhile and is kept when something fails. Nothing is
    left mounted: a guardian sees to that after kill -9.

    Raises UserError when a program is not installed, when the drive is too small, and when a command fails.
    """
    from drivelab.trace.decode import decode  # with pyarrow, which a mere plan must not wait for

    refuse_missing(spec)
    recover_mounts()
    refuse_small_drive(spec, int(checked(["blockdev", "--getsize64", device], "the size of the drive")), device)
    out_parquet.parent.mkdir(parents=True, exist_ok=True)
    raw = Path(tempfile.mkdtemp(prefix=f"{out_parquet.stem}.capture.", dir=out_parquet.parent))
    with guardian.watch() as guard, prepared(spec, device) as mount:
        report = capturing.capture(device, resolve(spec.command, mount), raw, cwd=mount, backend=backend, guard=guard)
    if report.exit_status:
        raise UserError(
            f"application '{spec.name}': ended with status {report.exit_status}: {last_line(raw / 'stderr')}; "
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
    """Raise UserError where this process cannot run it: it may not mount, or a program is not installed."""
    if os.geteuid() != 0:
        raise UserError(
            f"application '{spec.name}' needs root, which alone may mount its file system; run it with sudo. "
            "Nothing was written."
        )
    refuse_missing(spec)


def refuse_small_drive(spec: Application, capacity_bytes: int, where: str) -> None:
    """Raise UserError when the file system does not fit the drive; `where` names it in the sentence."""
    if capacity_bytes < spec.size_bytes:
        raise UserError(
            f"application '{spec.name}': {where} has {format_size(capacity_bytes)}, its file system needs "
            f"{format_size(spec.size_bytes)}; use a larger drive"
        )


@contextmanager
def prepared(spec: Application, device: str, *, discard: bool = True) -> Iterator[Path]:
    """A fresh file system, mounted and set up, its cache as the application wants it; unmounted whatever happens.

    Yields the mount point. The commands of `tear_down` run at the end if nothing failed. `discard` as in `mounts`.
    Raises UserError when one of all the commands fails.
    """
    mounts.make(spec.file_system, spec.size_bytes, device, discard=discard)
    with mounts.mounted(spec.file_system, device, discard=discard) as mount:
        _run_all(spec.set_up, mount)
        checked(["sync", "--file-system", str(mount)], "sync of the file system")
        if spec.cache == "cold":
            mounts.remount_cold(spec.file_system, device, mount, discard=discard)
        yield mount
        _run_all(spec.tear_down, mount)


def _installed(what: str) -> bool:
    if "/" in what:
        return any(Path("/").glob(what.lstrip("/")))
    return shutil.which(mounts.program(what)) is not None


def _run_all(commands: Sequence[Sequence[str]], mount: Path) -> None:
    for command in commands:
        checked(resolve(command, mount), f"'{' '.join(command)}'", cwd=mount)


def resolve(command: Sequence[str], mount: Path) -> list[str]:
    """Words of a command with the placeholders' values."""
    values = {"mount": str(mount), "project": str(ROOT), "python": sys.executable}
    return [re.sub(r"\{(\w+)\}", lambda match: values[match[1]], word) for word in command]


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


def last_line(path: Path) -> str:
    """What a command said last."""
    lines = path.read_text(errors="replace").strip().splitlines()
    return lines[-1] if lines else "it said nothing"
