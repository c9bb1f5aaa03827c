"""The plan: all that a measurement depends on as canonical JSON with a digest, and where it is carried out."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

from drivelab.errors import UserError
from drivelab.files import read_regular

FORMAT = 1


def canonical(value: Any) -> str:
    """JSON in one form for one value: sorted keys, no spaces."""
    return json.dumps(value, sort_keys=True, separators=(",", ":"), ensure_ascii=False)


def drive_in_sheet(subject: str) -> str:
    """The drive of what may be DRIVE@PLATFORM; neither name has an @ of its own."""
    return subject.partition("@")[0]


@dataclass(frozen=True)
class Plan:
    """One measurement of one drive."""

    subject: Mapping[str, Any]
    """What the result depends on: drive, clock, class, condition, measure, trace. The digest is made of this."""
    context: Mapping[str, Any]
    """Where and as what it is carried out: drive, device, measurement, run, results, trace."""

    @cached_property
    def digest(self) -> str:
        """First 12 hexadecimal digits of the SHA-256 of the canonical subject."""
        return hashlib.sha256(canonical(self.subject).encode()).hexdigest()[:12]

    @property
    def drive(self) -> str:
        """What results are told of: the drive's name in the sheet, or DRIVE@PLATFORM in a study of platforms."""
        return str(self.context["drive"])

    @property
    def sheet_drive(self) -> str:
        """The drive's name in the sheet, on whatever platform."""
        return drive_in_sheet(self.drive)

    @property
    def measurement(self) -> str:
        return str(self.context["measurement"])

    @property
    def run(self) -> int:
        return int(self.context["run"])

    @property
    def recording(self) -> str:
        """Identity of the recording, `drive/measurement/digest-runN`; also its path below recordings/."""
        return f"{self.drive}/{self.measurement}/{self.digest}-run{self.run}"

    @property
    def recording_path(self) -> Path:
        return Path(self.context["results"]) / "recordings" / self.recording

    def seed(self, name: str) -> int:
        """Seed of fio's random numbers: another one for each cell, the same for each repetition of the plan."""
        text = f"{self.digest}/{self.run}/{name}"
        return int.from_bytes(hashlib.sha256(text.encode()).digest()[:4], "big")

    @property
    def virtual(self) -> bool:
        return self.subject["drive"].get("virtual") is not None

    @property
    def clock(self) -> str:
        """`wall` or `virtual`."""
        return str(self.subject["clock"])

    def to_json(self) -> str:
        return canonical({"format": FORMAT, "digest": self.digest, "subject": self.subject, "context": self.context})

    @classmethod
    def read(cls, path: Path) -> Plan:
        """The plan in a file; raises UserError when it is missing, of another format, or was edited."""
        try:
            body = json.loads(read_regular(path))
            plan = cls(body["subject"], body["context"])
            digest, version = body["digest"], body["format"]
        except FileNotFoundError:
            raise UserError(f"{path}: there is no such plan; {_remedy(path)}") from None
        except (ValueError, KeyError, TypeError, RecursionError):
            raise UserError(f"{path}: is no plan; {_remedy(path)}") from None
        if version != FORMAT:
            raise UserError(f"{path}: is of format {version}, this drivelab reads {FORMAT}; {_remedy(path)}")
        if digest != plan.digest:
            raise UserError(f"{path}: was changed after it was made; change the study or the protocol instead")
        return plan


def _remedy(path: Path) -> str:
    """The workflow writes plans that are to be carried out; one in a recording is evidence that nobody writes again."""
    if not (path.parent / "journal.jsonl").exists():
        return "plans are written by 'drivelab run': remove what is there, and run again"
    return (
        f"it is a part of a recording: put it back from an archive ('drivelab verify {path.parent}' tells what else "
        "was altered), or remove the recording's folder, and it is measured again"
    )
