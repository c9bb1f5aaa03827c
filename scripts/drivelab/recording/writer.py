"""Write a recording: a folder `….part/` with a journal, renamed when complete."""

from __future__ import annotations

import json
import os
import re
import shutil
from collections.abc import Iterable, Iterator, Mapping
from concurrent.futures import Future, ThreadPoolExecutor
from datetime import UTC, datetime
from functools import cached_property
from pathlib import Path
from typing import Any

from drivelab.core.errors import UserError
from drivelab.core.files import open_regular, read_regular, sync_file_system, write_atomic
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

    A journal line is written only when everything before it is on disk: the evidence that it speaks of, the telemetry,
    and the state of a drive on the virtual clock. So after a loss of power, what the journal calls finished is whole.
    The line is on disk itself before `append` returns.
    """

    def __init__(self, plan: Plan) -> None:
        self.plan = plan
        self.final = plan.recording_path
        self.part = self.final.with_name(self.final.name + ".part")
        self._soon: Future[None] | None = None

    @property
    def complete(self) -> bool:
        """Return whether the finished recording exists, whole. A deleted manifest is then written again."""
        ended = any(line["event"] == "complete" for line in read_journal(self.final))
        return ended and checksums.torn(self.final) is None

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
        self._await()
        return list(read_journal(self.part))

    def lines_of_use(self) -> int:
        """Return the number of lines without failures, which leave no evidence."""
        self._await()
        try:
            text = (self.part / "journal.jsonl").read_bytes()
        except FileNotFoundError:
            return 0
        return text.count(b"\n") - text.count(b'"event":"failed"')

    def append(self, event: str, **fields: Any) -> None:
        """Force all evidence to disk, then add one line to the journal, and force that to disk."""
        self._await()
        self._put(_line(event, fields))

    def append_soon(self, event: str, **fields: Any) -> None:
        """Do what `append` does beside the caller, so that a cell that is prepared need not wait for the disk.

        The next use of the journal waits, and raises what failed. Until then, a kill loses the line, and the evidence
        is measured again; this lasts as long as the disk takes, usually milliseconds. The results are normally not on
        the drive under test, and the little that is written is in both cases written while the next cell runs: without
        this, by the kernel, at a moment of its choice.
        """
        self._await()
        self._soon = self._worker.submit(self._put, _line(event, fields))

    def _put(self, line: str) -> None:
        sync_file_system(self.part)
        with (self.part / "journal.jsonl").open("a", encoding="utf-8") as file:
            file.write(line)
            file.flush()
            os.fsync(file.fileno())

    @cached_property
    def _worker(self) -> ThreadPoolExecutor:
        """One thread, because a new one for each line would lengthen the gap until it has a CPU."""
        return ThreadPoolExecutor(1, "journal")

    def _await(self) -> None:
        """Wait for a line of `append_soon`."""
        if self._soon is not None:
            soon, self._soon = self._soon, None
            soon.result()

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
        self._await()
        if not self.part.exists():
            return
        self.unstage()
        drop_half_line(self.part / "journal.jsonl")
        self.append("abandoned", reason=reason)
        self.part.rename(self._aside())

    def set_final_aside(self) -> Path:
        """Move what is at the final path beside it, and return its new place."""
        aside = self._aside()
        self.final.rename(aside)
        return aside

    def _aside(self) -> Path:
        number = 1
        while (aside := self.final.with_name(f"{self.final.name}.abandoned-{number}")).exists():
            number += 1
        return aside

    def finish(self) -> None:
        """Write manifest and checksums, force all to disk, then rename to the final path.

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
        sync_file_system(self.part)
        if self.final.exists():  # the workflow creates it, and users may have added files
            (self.final / MANIFEST).unlink(missing_ok=True)
            if any(self.final.iterdir()):
                self.set_final_aside()
            else:
                self.final.rmdir()
        self.part.rename(self.final)
        sync_file_system(self.final)

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


def _line(event: str, fields: Mapping[str, Any]) -> str:
    return canonical({"event": event, "at": now_iso(), **fields}) + "\n"


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


def write_json(path: Path, value: Mapping[str, Any] | list[Any], *, lasting: bool = True) -> None:
    """Write a JSON file as `write_atomic` does."""
    text = json.dumps(value, indent=1, sort_keys=True, ensure_ascii=False) + "\n"
    write_atomic(path, text, lasting=lasting)
