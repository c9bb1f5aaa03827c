"""Consent to lose the data of a real drive: for one drive, in one results folder of a project, on one host.

The drive is bound by serial number, model, capacity and world-wide name together, because others may report the same
serial number.

The consent file lies next to the results and is never archived. A copy of the results on another host or in another
project gives no consent.
"""

from __future__ import annotations

import hashlib
import hmac
import json
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NamedTuple

from drivelab.core.errors import UserError
from drivelab.drives.identified import Identity
from drivelab.plan.hosts import this_host
from drivelab.plan.places import ROOT, restored_folder
from drivelab.plan.plan import Plan
from drivelab.plan.study import ANY_HOST, Study
from drivelab.recording.writer import now_iso, write_json
from drivelab.trace.capturing import applications
from drivelab.trace.capturing.applications import APPLICATIONS, Application

CONSENT = "consent.json"
_MACHINE_ID = (Path("/etc/machine-id"), Path("/var/lib/dbus/machine-id"), Path("/proc/sys/kernel/random/boot_id"))
"""A container may lack the first two files; there, consent ends when the host reboots."""


@dataclass(frozen=True)
class Drive:
    """A real drive whose data a study would destroy."""

    name: str
    serial: str
    identity: Identity | None
    """None if only other hosts hold the drive."""
    hosts: tuple[str, ...] = ()
    """Names of the hosts that measure the drive; ANY_HOST is this host."""

    @property
    def others(self) -> list[str]:
        """Return the hosts other than this one: nodes of a cluster."""
        return [host for host in self.hosts if host not in (ANY_HOST, this_host())]


def require(study: Study, drives: Sequence[Drive], yes: bool) -> None:
    """Ensure that the user agreed to lose the data of `drives`, and record that.

    `yes`, or the study's `consent`, holds for later runs of this results folder on this host, until another drive
    joins or a drive changes. The `consent` of a study that was restored from an archive does not count, because its
    publisher wrote it; nor does a study's for a drive that has changed, because it names only the serial number.
    `yes` lets other hosts bind their drives again. Raises UserError when consent is missing, before drivelab writes to
    any drive.
    """
    path = study.results / CONSENT
    entries = _entries(path)
    faults = {drive: _fault(entries.get(drive.serial), path, drive.identity, drive.others) for drive in drives}
    unconfirmed = [drive for drive in drives if faults[drive] is not None or (yes and drive.others)]
    changed = {drive for drive, fault in faults.items() if fault is not None and fault.changed}
    restored = restored_folder(study.path) is not None
    counts = {drive for drive in drives if drive.serial in study.consent and not restored} - changed
    missing = [drive for drive in unconfirmed if not yes and drive not in counts]
    if missing:
        names = ", ".join(f"'{drive.name}' ({drive.serial})" for drive in missing)
        remedy = (
            "The study came from an archive, whose 'consent' does not count: run again with --yes."
            if restored
            else "Run again with --yes if this is the drive that you mean."
            if changed.issuperset(missing)
            else "Run again with --yes, or enter the serials under 'consent' in the study."
        )
        raise UserError(
            f"study '{study.name}' would destroy the data on {names} for the first time here. "
            f"{_earlier(path, [faults[drive] for drive in missing])}Read the above. {remedy} Nothing was written."
        )
    if unconfirmed:
        now = {"at": now_iso(), "by": "--yes" if yes else "the study's 'consent'", "results": _place(path)}
        given = {
            drive.serial: {
                **now,
                "machine": machine(),
                "drive": drive.identity.to_mapping() if drive.identity is not None else None,
                "hosts": {host: None if yes else _bound_on(host, entries.get(drive.serial)) for host in drive.others},
            }
            for drive in unconfirmed
        }
        write_json(path, {**entries, **given})


def check(results: Path, drive: str, identity: Identity) -> None:
    """Raise UserError without consent to lose the data of exactly this drive; a stage may run without `drivelab run`.

    The host that started a study does not see the drives of other hosts: there, the first stage binds the consent to
    the drive.
    """
    serial = identity.serial
    path = results / CONSENT
    entries = _entries(path)
    fault = _fault(entries.get(serial), path, identity)
    if fault is not None:
        raise UserError(
            f"drive '{drive}' ({serial}): there is no consent to lose its data in this study on this host. "
            f"{_earlier(path, [fault])}Start the study with 'drivelab run STUDY --yes'. Nothing was written."
        )
    if entries[serial]["hosts"].get(this_host(), identity) is None:
        entries[serial]["hosts"][this_host()] = identity.to_mapping()
        write_json(path, entries)


def machine() -> str:
    """Return a name that is unique to this host.

    The name is derived from the machine ID, which must not be published itself (machine-id(5)).
    """
    for path in _MACHINE_ID:
        try:
            if text := path.read_text(encoding="ascii").strip():
                return hmac.new(text.encode(), b"drivelab consent", hashlib.sha256).hexdigest()[:32]
        except (OSError, UnicodeDecodeError):
            continue
    raise UserError(f"{_MACHINE_ID[0]}: cannot be read, and consent must name this host; run systemd-machine-id-setup")


def _place(path: Path) -> str:
    return str(path.parent.resolve())


class _Fault(NamedTuple):
    """Why an entry gives no consent."""

    words: str
    changed: bool = False
    """Whether it was given here, for another drive with this serial number."""


_NONE = _Fault("")
"""The fault of a missing entry, which messages do not mention."""
_EARLIER = _Fault(
    "an earlier version of drivelab wrote it, and it does not say for which drive, host and project", changed=True
)


def _fault(entry: object, path: Path, identity: Identity | None, others: Sequence[str] = ()) -> _Fault | None:
    """Return why an entry gives no consent here; None if it does, for the hosts `others` as well.

    `identity` is None for a drive that this host does not hold.
    """
    if entry is None:
        return _NONE
    if not isinstance(entry, dict) or not {"at", "results", "machine", "drive"} <= entry.keys():
        return _EARLIER
    if not isinstance(hosts := entry.get("hosts"), dict):
        return _EARLIER
    try:
        bound = {
            host: None if body is None else Identity.from_mapping(body)
            for host, body in {"": entry["drive"], **hosts}.items()
        }
    except (TypeError, KeyError):
        return _EARLIER
    given = bound[this_host() if this_host() in hosts else ""]
    if given is not None and identity is not None and (changes := given.changes(identity)):
        return _Fault(f"it is for another drive with this serial number ({'; '.join(changes)})", changed=True)
    if entry["results"] != _place(path):
        return _Fault(f"it is for the results in {entry['results']!a}")
    if entry["machine"] != machine() and this_host() not in hosts:
        return _Fault("it was given on another host")
    if not set(others) <= set(hosts):
        return _Fault(f"it is not for the host {', '.join(others)}")
    if identity is not None and given is None and this_host() not in hosts:
        return _Fault(f"it is only for the host {', '.join(hosts)}")
    return None


def _bound_on(host: str, entry: object) -> object:
    """Return the identity that a host has bound to an entry, or None."""
    hosts = entry.get("hosts") if isinstance(entry, dict) else None
    return hosts.get(host) if isinstance(hosts, dict) else None


def _earlier(path: Path, faults: Sequence[_Fault | None]) -> str:
    """Return sentences about an existing consent that does not count."""
    reasons = dict.fromkeys(fault.words for fault in faults if fault is not None and fault.words)
    return "".join(f"The consent in {path} does not count: {reason}. " for reason in reasons)


def _entries(path: Path) -> dict[str, Any]:
    try:
        return dict(json.loads(path.read_text(encoding="utf-8")))
    except FileNotFoundError:
        return {}
    except (OSError, ValueError, TypeError, RecursionError):
        raise UserError(f"{path}: this is not a valid consent file; delete it and run again with --yes") from None


def snakemake_arguments() -> list[str]:
    """Return the arguments that point Snakemake from a restored folder to this project; empty elsewhere."""
    if restored_folder(Path.cwd()) is None:
        return []
    return ["--snakefile", str(ROOT / "Snakefile"), "--workflow-profile", str(ROOT / "profiles/default")]


def refuse_foreign_commands(plan: Plan) -> None:
    """Raise UserError if a plan of a restored study would run a command that this project lacks."""
    folder = restored_folder(Path(plan.context["results"]))
    if folder is None or plan.clock == "virtual":
        return
    if command := plan.context.get("meter", {}).get("command"):
        raise UserError(
            f"{folder}: the restored study reads its power meter with the command {_quoted(command)}. A command from "
            "an archive is not run. Remove the key 'meter' from the study, or copy the study into your own project."
        )
    if "application" in plan.subject:
        refuse_foreign_application(applications.of_plan(plan), folder)


def refuse_foreign_application(spec: Application, place: Path) -> None:
    """Raise UserError if `place` is in a restored folder and the project has no application with the same commands."""
    folder = restored_folder(place)
    if folder is None:
        return
    try:
        own = applications.load(ROOT / APPLICATIONS, spec.name).to_mapping()
    except UserError:
        own = {}
    if own != spec.to_mapping():
        commands = "; ".join(_quoted(words) for words in (*spec.set_up, spec.command, *spec.tear_down))
        raise UserError(
            f"{folder}: application '{spec.name}' of the restored study would run {commands}. A command from an "
            f"archive is not run. If you trust it, copy its entry into {ROOT / APPLICATIONS}."
        )


def _quoted(words: Iterable[Any]) -> str:
    """Return a command in Python notation, without control characters."""
    return ascii([str(word) for word in words])
