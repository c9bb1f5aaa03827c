"""Write a recording: a folder `….part/` with a journal, renamed when complete."""

from __future__ import annotations

import fcntl
import json
import os
import re
import shutil
from collections.abc import Iterable, Iterator, Mapping
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from drivelab.core.errors import UserError
from drivelab.core.files import open_regular, read_regular
from drivelab.core.units import counted, some
from drivelab.plan.plan import Plan, canonical
from drivelab.recording import checksums

VERSIONS = {
    "fio": "fio", "kernel": "kernel", "firmware": "firmware", "capacity_bytes": "capacity in bytes",
    "logical_block_bytes": "logical block in bytes", "over_provisioning_pct": "over-provisioning in %",
}  # fmt: skip
"""What must be equal in recordings that are pooled: columns of their facts, and names for messages."""

MANIFEST = checksums.MANIFEST
UNFINISHED = re.compile(r"\.(part|abandoned-\d+)\Z")
"""Name endings of folders that a measurement leaves beside its recording."""
_WITHOUT_EVIDENCE = ("idle", "prefill", "soak-begins", "failed")
"""Events whose folder may be empty or missing. Idle time and the prefill of a replay leave only the line. A soak is
recorded before its folder exists, and again at its end. Failed cells do not count."""
_STAGED = ".prepared"
"""Folder of a cell that may follow."""
_NAMED = 3
"""Maximum number of folder names in a sentence."""
RESUMPTIONS = ("gap", "resumed")
"""Events with which an interrupted measurement continues: on a drive that ran on, or that was reset with it."""


def now_iso() -> str:
    """Return the current time as ISO 8601 in UTC with milliseconds."""
    return datetime.now(UTC).isoformat(timespec="milliseconds")


class Recording:
    """The evidence of one plan until completion.

    Every journal line is on disk before `append` returns. A line of `append_soon` outlives this process, but not a loss
    of power before the next `append` or `sync`.
    """

    def __init__(self, plan: Plan) -> None:
        self.plan = plan
        self.final = plan.recording_path
        self.part = self.final.with_name(self.final.name + ".part")

    @property
    def complete(self) -> bool:
        """Return whether the finished recording exists. A deleted manifest is then written again."""
        return any(line["event"] == "complete" for line in read_journal(self.final))

    @property
    def measured(self) -> bool:
        """Return whether all evidence is recorded and only `finish` remains."""
        return any(line["event"] == "complete" for line in self.journal())

    @property
    def interrupted(self) -> bool:
        """Return whether the measurement has begun and not ended. `measure` decides whether it can continue."""
        return any(line["event"] == "measure" for line in self.journal())

    def open(self) -> None:
        """Begin or continue the recording."""
        if any(line["event"] == "abandoned" for line in self.journal()):  # killed before the folder was set aside
            self.part.rename(self._aside())
        self.part.mkdir(parents=True, exist_ok=True)
        self.unstage()
        drop_half_line(self.part / "journal.jsonl")
        self.write("plan.json", json.loads(self.plan.to_json()))

    def journal(self) -> list[dict[str, Any]]:
        """Return the lines so far, oldest first."""
        return list(read_journal(self.part))

    def lines_of_use(self) -> int:
        """Return the number of lines without failures, which leave no evidence."""
        try:
            text = (self.part / "journal.jsonl").read_bytes()
        except FileNotFoundError:
            return 0
        return text.count(b"\n") - text.count(b'"event":"failed"')

    def append(self, event: str, **fields: Any) -> None:
        """Add one line to the journal and force it to disk."""
        self.append_soon(event, **fields)
        self.sync()

    def append_soon(self, event: str, **fields: Any) -> None:
        """Add one line to the journal, which a later `append` or `sync` forces to disk."""
        line = canonical({"event": event, "at": now_iso(), **fields}) + "\n"
        with (self.part / "journal.jsonl").open("a", encoding="utf-8") as file:
            file.write(line)

    def sync(self) -> None:
        """Force the journal to disk."""
        with (self.part / "journal.jsonl").open("rb") as file:
            os.fsync(file.fileno())

    def write(self, name: str, value: Any) -> None:
        """Write a JSON file in the recording atomically."""
        write_json(self.part / name, value)

    def directory(self, name: str, *, staged: bool = False) -> Path:
        """Return a new empty folder for one cell, or with `staged` the staged folder under its name.

        The folder of an interrupted cell is set aside.
        """
        path = self.part / name
        if path.exists():
            number = 1
            while (aside := path.with_name(f"{path.name}.interrupted-{number}")).exists():
                number += 1
            path.rename(aside)
        if staged:
            path.parent.mkdir(parents=True, exist_ok=True)
            (self.part / _STAGED).rename(path)
        else:
            path.mkdir(parents=True)
        return path

    def stage(self) -> Path:
        """Return a new empty folder for a cell that may follow; it becomes evidence only by `directory`."""
        self.unstage()
        (self.part / _STAGED).mkdir()
        return self.part / _STAGED

    def unstage(self) -> None:
        """Remove the folder of a cell that does not follow."""
        if (self.part / _STAGED).exists():
            shutil.rmtree(self.part / _STAGED)

    def set_aside(self, reason: str) -> None:
        """Restart, and keep the evidence so far beside the recording with the reason."""
        if not self.part.exists():
            return
        self.unstage()
        drop_half_line(self.part / "journal.jsonl")
        self.append("abandoned", reason=reason)
        self.part.rename(self._aside())

    def _aside(self) -> Path:
        number = 1
        while (aside := self.final.with_name(f"{self.final.name}.abandoned-{number}")).exists():
            number += 1
        return aside

    def finish(self) -> None:
        """Write manifest and checksums, then rename to the final path.

        The workflow waits for the manifest. If killed before the rename, it runs again; after the rename the recording
        is complete. Raises UserError if the journal lists evidence that is missing, as in a copy made during the
        measurement.
        """
        self.unstage()
        journal = self.journal()
        self._refuse_missing(journal)
        if not any(line["event"] == "complete" for line in journal):
            self.append("complete")
        self._write_manifest(self.part, is_checksummed=True)
        checksums.write_checksums(self.part)
        if self.final.exists():  # the workflow creates it, and users may have added files
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
        """Raise UserError if folders in the journal are missing or empty."""
        folders = dict.fromkeys(str(line["directory"]) for line in journal if _has_evidence(line))
        missing = [name for name in folders if not _holds_any(self.part / name)]
        if missing:
            raise UserError(
                f"{self.plan.recording}: cannot be finished: its journal lists {counted(len(missing), 'folder')} "
                f"without evidence ({some(missing, _NAMED)}); restore {self.part} from a copy, or remove it to measure "
                "again, and run the command again"
            )

    def write_manifest(self) -> None:
        """Write the manifest of a finished recording again.

        Snakemake removes a job's output before the job. The manifest depends only on the recording and is always the
        same, because the checksums cover it.
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
    """Return whether a journal line refers to a folder with evidence."""
    if "directory" not in line or line["event"] in _WITHOUT_EVIDENCE:
        return False
    # A soak that was killed at once leaves no evidence.
    return bool(line.get("finished", True)) or int(line["slices"]) > 0


def _holds_any(folder: Path) -> bool:
    try:
        with os.scandir(folder) as entries:
            return any(entries)
    except (FileNotFoundError, NotADirectoryError):
        return False


def read_journal(directory: Path) -> Iterator[dict[str, Any]]:
    """Yield the lines of a journal, without an incomplete last line."""
    try:
        with open_regular(directory / "journal.jsonl") as file:
            text = file.read().decode()
    except FileNotFoundError:
        return
    for line in text.splitlines(keepends=True):
        if line.endswith("\n"):
            yield json.loads(line)


def drop_half_line(path: Path) -> None:
    """Remove an incomplete last line after a crash. Otherwise the next line would be joined to it."""
    if path.exists():
        text = path.read_bytes()
        if not text.endswith(b"\n"):
            os.truncate(path, text.rfind(b"\n") + 1)


def read_object(path: Path) -> dict[str, Any]:
    """Return the JSON object in a file; empty if the file is missing or invalid."""
    try:
        body = json.loads(read_regular(path))
    except (OSError, ValueError, RecursionError):
        return {}
    return body if isinstance(body, dict) else {}


def write_json(path: Path, value: Mapping[str, Any] | list[Any]) -> None:
    """Write a JSON file atomically.

    Writers wait for each other; a writer reuses the temporary file that a killed writer left.
    """
    path.parent.mkdir(parents=True, exist_ok=True)
    part = path.with_name(f".{path.name}.part")
    text = json.dumps(value, indent=1, sort_keys=True, ensure_ascii=False) + "\n"
    while True:
        with part.open("a", encoding="utf-8") as file:
            fcntl.flock(file, fcntl.LOCK_EX)
            if not part.exists() or not os.path.samestat(os.fstat(file.fileno()), part.stat()):
                continue  # another writer has replaced it meanwhile
            try:
                file.truncate(0)
                file.write(text)
                file.flush()
                part.replace(path)
            except BaseException:
                part.unlink(missing_ok=True)
                raise
            return
