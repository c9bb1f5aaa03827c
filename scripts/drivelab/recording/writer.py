"""A recording while it is made: a folder `….part/` with a journal, renamed when complete."""

from __future__ import annotations

import fcntl
import json
import os
import re
from collections.abc import Iterable, Iterator, Mapping
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from drivelab.errors import UserError
from drivelab.files import open_regular, read_regular
from drivelab.plan.plan import Plan, canonical
from drivelab.recording import checksums
from drivelab.words import counted, some

MANIFEST = checksums.MANIFEST
UNFINISHED = re.compile(r"\.(part|abandoned-\d+)$")
"""Names of what a measurement leaves beside its recording."""
_WITHOUT_EVIDENCE = ("idle", "prefill", "soak-begins", "failed")
"""Events with a folder that may be empty or not there: of idle time and of what was written before a replay there is
nothing but the line; a soak is entered before it has a folder, and once more when it has ended; what has failed does
not count."""
_NAMED = 3
"""Folders that are named in a sentence."""
RESUMPTIONS = ("gap", "resumed")
"""Events that an interrupted measurement goes on with: on a drive that went on too, or was set back with it."""


def now_iso() -> str:
    """The present, ISO 8601 in UTC with milliseconds."""
    return datetime.now(UTC).isoformat(timespec="milliseconds")


class Recording:
    """Evidence of one plan on its way to completion; every journal line is on disk before `append` returns."""

    def __init__(self, plan: Plan) -> None:
        self.plan = plan
        self.final = plan.recording_path
        self.part = self.final.with_name(self.final.name + ".part")

    @property
    def complete(self) -> bool:
        """Whether the finished recording is there; its manifest may have been deleted and is written anew then."""
        return any(line["event"] == "complete" for line in read_journal(self.final))

    @property
    def measured(self) -> bool:
        """Whether all is in the unfinished recording, and only `finish` is left to be done."""
        return any(line["event"] == "complete" for line in self.journal())

    @property
    def interrupted(self) -> bool:
        """Whether measuring has begun and not come to its end: `measure` finds out whether it can go on."""
        return any(line["event"] == "measure" for line in self.journal())

    def open(self) -> None:
        """Go on with the recording, or begin it."""
        if any(line["event"] == "abandoned" for line in self.journal()):  # killed before it was aside
            self.part.rename(self._aside())
        self.part.mkdir(parents=True, exist_ok=True)
        drop_half_line(self.part / "journal.jsonl")
        self.write("plan.json", json.loads(self.plan.to_json()))

    def journal(self) -> list[dict[str, Any]]:
        """Lines so far, oldest first."""
        return list(read_journal(self.part))

    def lines_of_use(self) -> int:
        """Number of lines so far but those of failures: what has failed left nothing that counts."""
        try:
            text = (self.part / "journal.jsonl").read_bytes()
        except FileNotFoundError:
            return 0
        return text.count(b"\n") - text.count(b'"event":"failed"')

    def append(self, event: str, **fields: Any) -> None:
        """Add one line to the journal and force it to disk."""
        line = canonical({"event": event, "at": now_iso(), **fields}) + "\n"
        with (self.part / "journal.jsonl").open("a", encoding="utf-8") as file:
            file.write(line)
            file.flush()
            os.fsync(file.fileno())

    def write(self, name: str, value: Any) -> None:
        """A JSON file in the recording, written whole or not at all."""
        write_json(self.part / name, value)

    def directory(self, name: str) -> Path:
        """A new empty folder for one cell; one that an interrupted cell left is set aside, not overwritten."""
        path = self.part / name
        if path.exists():
            number = 1
            while (aside := path.with_name(f"{path.name}.interrupted-{number}")).exists():
                number += 1
            path.rename(aside)
        path.mkdir(parents=True)
        return path

    def set_aside(self, reason: str) -> None:
        """Begin anew: what was measured so far stays beside the recording, with the reason in its journal."""
        if not self.part.exists():
            return
        drop_half_line(self.part / "journal.jsonl")
        self.append("abandoned", reason=reason)
        self.part.rename(self._aside())

    def _aside(self) -> Path:
        number = 1
        while (aside := self.final.with_name(f"{self.final.name}.abandoned-{number}")).exists():
            number += 1
        return aside

    def finish(self) -> None:
        """Write the manifest, which the workflow waits for, take the checksums of all and rename to the final place.

        Killed before the name is there, it is done once more; afterwards nothing is missing. Raises UserError where
        the journal tells of evidence that is not there, as in a copy that was made while it was measured.
        """
        journal = self.journal()
        self._refuse_missing(journal)
        if not any(line["event"] == "complete" for line in journal):
            self.append("complete")
        self._write_manifest(self.part, is_checksummed=True)
        checksums.write_checksums(self.part)
        if self.final.exists():  # the workflow makes it, and somebody may have put something there
            (self.final / MANIFEST).unlink(missing_ok=True)
            if any(self.final.iterdir()):
                self.final.rename(self._aside())
            else:
                self.final.rmdir()
        self.part.rename(self.final)
        directory = os.open(self.final.parent, os.O_RDONLY)
        os.fsync(directory)
        os.close(directory)

    def _refuse_missing(self, journal: Iterable[Mapping[str, Any]]) -> None:
        """Raises UserError where folders that the journal's lines tell of are not there, or have nothing in them."""
        folders = dict.fromkeys(str(line["directory"]) for line in journal if _has_evidence(line))
        missing = [name for name in folders if not _holds_any(self.part / name)]
        if missing:
            raise UserError(
                f"{self.plan.recording}: cannot be finished, its journal tells of {counted(len(missing), 'folder')} "
                f"with evidence of which nothing is there ({some(missing, _NAMED)}); restore {self.part} from a copy, "
                "or remove it, and run again: without it all is measured again"
            )

    def write_manifest(self) -> None:
        """Write the manifest of a finished recording anew: Snakemake removes the output of a job before it runs it.

        It is derived from the recording alone and always the same, as its checksum is taken.
        """
        self._write_manifest(self.final, is_checksummed=checksums.checksummed(self.final))

    def _write_manifest(self, folder: Path, *, is_checksummed: bool) -> None:
        lines = list(read_journal(folder))
        write_json(
            folder / MANIFEST,
            {
                "recording": self.plan.recording,
                "digest": self.plan.digest,
                "started": lines[0]["at"],
                "finished": lines[-1]["at"],
                "cells": sum(line["event"] == "cell" for line in lines),
                "gaps": [line["reason"] for line in lines if line["event"] == "gap"],
                **({"checksums": checksums.CHECKSUMS} if is_checksummed else {}),
            },
        )


def _has_evidence(line: Mapping[str, Any]) -> bool:
    """Whether a line of the journal tells of a folder with evidence."""
    if "directory" not in line or line["event"] in _WITHOUT_EVIDENCE:
        return False
    return (
        bool(line.get("finished", True)) or int(line["slices"]) > 0
    )  # of a soak that was killed at once there is nothing


def _holds_any(folder: Path) -> bool:
    try:
        with os.scandir(folder) as found:
            return any(found)
    except (FileNotFoundError, NotADirectoryError):
        return False


def read_journal(directory: Path) -> Iterator[dict[str, Any]]:
    """Lines of a journal; a last line that a power cut left incomplete never happened."""
    try:
        with open_regular(directory / "journal.jsonl") as file:
            text = file.read().decode()
    except FileNotFoundError:
        return
    for line in text.splitlines(keepends=True):
        if line.endswith("\n"):
            yield json.loads(line)


def drop_half_line(path: Path) -> None:
    """Cut off what a crash left of a line, or the next line would be joined to it."""
    if path.exists():
        text = path.read_bytes()
        if not text.endswith(b"\n"):
            os.truncate(path, text.rfind(b"\n") + 1)


def read_object(path: Path) -> dict[str, Any]:
    """A file that is one JSON object; empty where there is none, or none yet."""
    try:
        body = json.loads(read_regular(path))
    except (OSError, ValueError, RecursionError):
        return {}
    return body if isinstance(body, dict) else {}


def worked_s(recording: Path, until_s: float | None = None) -> float:
    """Seconds from the first line of a recording to its last, or to `until_s`, Unix time, if it is at work still.

    Without the pauses before it was gone on with. 0 where there is no journal, or it is damaged.
    """
    worked_s, last_s = 0.0, None
    try:
        for line in read_journal(recording):
            at_s = datetime.fromisoformat(line["at"]).timestamp()
            if last_s is not None and line["event"] not in RESUMPTIONS:
                worked_s += at_s - last_s
            last_s = at_s
    except (OSError, ValueError, TypeError, KeyError, RecursionError):
        return 0.0
    return worked_s + (max(until_s - last_s, 0.0) if until_s is not None and last_s is not None else 0.0)


def write_json(path: Path, value: Mapping[str, Any] | list[Any]) -> None:
    """Write a JSON file atomically.

    Writers wait for one another; what one that was killed has left, the next takes up.
    """
    path.parent.mkdir(parents=True, exist_ok=True)
    part = path.with_name(f".{path.name}.part")
    text = json.dumps(value, indent=1, sort_keys=True, ensure_ascii=False) + "\n"
    while True:
        with part.open("a", encoding="utf-8") as file:
            fcntl.flock(file, fcntl.LOCK_EX)
            if not part.exists() or not os.path.samestat(os.fstat(file.fileno()), part.stat()):
                continue  # another writer had it meanwhile
            try:
                file.truncate(0)
                file.write(text)
                file.flush()
                part.replace(path)
            except BaseException:
                part.unlink(missing_ok=True)
                raise
            return
