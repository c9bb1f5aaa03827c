"""Represent a plan as canonical JSON with a digest, and its context."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

from drivelab.core.errors import UserError
from drivelab.core.files import read_regular
from drivelab.plan.file_system import FileSystem
from drivelab.plan.subject_kinds import DRIVE, KINDS

FORMAT = 1


def canonical(value: Any) -> str:
    """Return the canonical JSON of a value: sorted keys, no spaces."""
    return json.dumps(value, sort_keys=True, separators=(",", ":"), ensure_ascii=False)


def drive_in_sheet(subject: str) -> str:
    """Return the drive of DRIVE or DRIVE@PLATFORM; neither name may contain @."""
    return subject.partition("@")[0]


@dataclass(frozen=True)
class Plan:
    """One measurement of one drive."""

    subject: Mapping[str, Any]
    """All that the result depends on: drive, clock, class, condition, measure, trace. The digest covers this."""
    context: Mapping[str, Any]
    """Where and under which names it runs: drive, device, measurement, run, results, trace."""

    @cached_property
    def digest(self) -> str:
        """Return the first 12 hexadecimal digits of the canonical subject's SHA-256."""
        return hashlib.sha256(canonical(self.subject).encode()).hexdigest()[:12]

    @property
    def drive(self) -> str:
        """Return the subject's name, which is the drive or DRIVE@PLATFORM."""
        return str(self.context["drive"])

    @property
    def sheet_drive(self) -> str:
        """Return the drive's name in the sheet, without the platform."""
        return drive_in_sheet(self.drive)

    @property
    def measurement(self) -> str:
        return str(self.context["measurement"])

    @property
    def run(self) -> int:
        return int(self.context["run"])

    @property
    def recording(self) -> str:
        """Return `drive/measurement/digest-runN`, the path below recordings/."""
        return f"{self.drive}/{self.measurement}/{self.digest}-run{self.run}"

    @property
    def recording_path(self) -> Path:
        return Path(self.context["results"]) / "recordings" / self.recording

    def seed(self, name: str) -> int:
        """Return fio's seed, different per cell and equal in repetitions of the plan."""
        text = f"{self.digest}/{self.run}/{name}"
        return int.from_bytes(hashlib.sha256(text.encode()).digest()[:4], "big")

    @property
    def kind(self) -> str:
        """Return the subject's kind, a key of `drivelab.plan.subject_kinds.KINDS`."""
        return str(self.subject["drive"].get("kind", DRIVE.name))

    @property
    def destroys(self) -> bool:
        """Return whether the measurement destroys data of a user: on any subject but a virtual drive or a file."""
        return not self.virtual and KINDS[self.kind].destroyed

    @property
    def file_system(self) -> FileSystem | None:
        """Return the file system on which a file is measured, or None."""
        body = self.subject.get("file_system")
        return None if body is None else FileSystem.from_mapping(body)

    @property
    def lasts(self) -> bool:
        """Return whether a stage can hand over what it prepared; a temporary file ends with its process."""
        return KINDS[self.kind].destroyed and "file_system" not in self.subject

    @property
    def virtual(self) -> bool:
        return self.subject["drive"].get("virtual") is not None

    @property
    def clock(self) -> str:
        """Return `wall` or `virtual`."""
        return str(self.subject["clock"])

    def to_json(self) -> str:
        return canonical({"format": FORMAT, "digest": self.digest, "subject": self.subject, "context": self.context})

    @classmethod
    def read(cls, path: Path) -> Plan:
        """Return the plan in a file. Raises UserError if it is missing, edited or of another format."""
        try:
            body = json.loads(read_regular(path))
            plan = cls(body["subject"], body["context"])
            digest, version = body["digest"], body["format"]
        except FileNotFoundError:
            raise UserError(f"{path}: the plan does not exist; {_remedy(path)}") from None
        except (ValueError, KeyError, TypeError, RecursionError):
            raise UserError(f"{path}: is not a plan; {_remedy(path)}") from None
        if version != FORMAT:
            raise UserError(f"{path}: has format {version}, but this drivelab reads format {FORMAT}; {_remedy(path)}")
        if digest != plan.digest:
            raise UserError(f"{path}: was edited after drivelab wrote it; change the study or the protocol instead")
        return plan


def _remedy(path: Path) -> str:
    """Return what to do about an unreadable plan. One in a recording is evidence and is never written again."""
    if not (path.parent / "journal.jsonl").exists():
        return "'drivelab run' writes plans: remove the file and run the command again"
    return (
        f"it is part of a recording: restore it from an archive ('drivelab verify {path.parent}' lists every altered "
        "file), or remove the recording's folder to measure again"
    )
