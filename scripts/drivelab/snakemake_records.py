"""Snakemake's records of how files were made.

Each record must match the present file. Only the workflow imports this module, because it imports Snakemake. `drivelab
run` runs it as a program to check the options of Snakemake before the study starts.
"""

from __future__ import annotations

import hashlib
import sys
from collections.abc import Iterable
from contextlib import redirect_stderr
from io import StringIO
from pathlib import Path
from typing import Any

from snakemake.cli import parse_args
from snakemake.exceptions import CliException
from snakemake.persistence import NO_PARAMS_CHANGE, RECORD_FORMAT_VERSION, MetadataRecord, ParamsChange
from snakemake.persistence.file import FilePersistence
from snakemake.settings.enums import PersistenceBackend

from drivelab.errors import UserError

_ARCHIVED_S = 1.0
"""Largest difference between the times of a file and its record: archives may truncate times to whole seconds."""


def require_file_backend(backend: PersistenceBackend) -> None:
    """Raise UserError unless Snakemake keeps its records in files, as `Records` replaces only that class."""
    if backend is not PersistenceBackend.FILE:
        raise UserError(
            f"Snakemake's persistence backend '{backend}' cannot be used. drivelab's study locks and its protection of "
            "finished measurements work with backend 'file' only. Remove --persistence-backend from the command line "
            "and from the Snakemake profile."
        )


class Records(FilePersistence):  # type: ignore[misc]  # Snakemake ships no type information
    """Records in `.snakemake`, used only if they match the present file.

    Snakemake keeps a file without a readable record, and takes any present file for the recorded one. So a table made
    with other parameters or code would stay if `.snakemake` was lost, if the version of Snakemake changed, or if two
    checkouts share results. This class makes such a file again if its rule carries a digest of its code (an analysis,
    which takes seconds).

    The locks are those of one study, in the folder `locks`.
    """

    locks: Path

    def __init__(self, *arguments: Any, **options: Any) -> None:
        super().__init__(*arguments, **options)
        self._lockdir = str(self.locks)

    def _write_locks(self, lock_type: str, keys: Iterable[str]) -> None:
        Path(self._lockdir).mkdir(parents=True, exist_ok=True)
        super()._write_locks(lock_type, keys)

    def has_metadata(self, job: Any) -> bool:
        """Return True: `params_changed` handles files without a record."""
        return True

    def has_outdated_metadata(self, job: Any) -> bool:
        """Return False: `params_changed` handles records in another format."""
        return False

    def input_changed(self, job: Any, file: Any = None) -> Any:
        """Return Snakemake's changes, but none for a job that leads to a measurement."""
        return [] if _uses_drive(job) else super().input_changed(job, file)

    def params_changed(self, job: Any, file: Any = None) -> Any:
        """Return Snakemake's changes, plus a change for each analysis output without a matching record.

        A job that leads to a measurement has no change.
        """
        if _uses_drive(job):
            return NO_PARAMS_CHANGE
        is_judged = "code" in job.rule.params.keys()  # noqa: SIM118 - a list with names
        manifest = _Manifest(job.input.get("manifest"))
        changes = NO_PARAMS_CHANGE
        for path in job.output if file is None else [file]:  # one by one: Snakemake keeps few records in memory
            changes |= super().params_changed(job, path)
            if is_judged and not _matches(self.metadata(path), path, manifest):
                changes |= ParamsChange(only_old={"no record of this file"}, files={path})
        return changes


class _Manifest:
    """The manifest of the analysed recording, if the analysis has only one."""

    def __init__(self, path: str | None) -> None:
        self.path = path
        self._checksum: str | None = None

    def matches(self, record: MetadataRecord) -> bool:
        """Return whether the output was made from this manifest; True if that is unknown."""
        known = (record.input_checksums or {}).get(self.path)
        if self.path is None or known is None:
            return True
        if self._checksum is None and Path(self.path).exists():
            self._checksum = "sha256:" + hashlib.sha256(Path(self.path).read_bytes()).hexdigest()
        return self._checksum in (None, known)


def _uses_drive(job: Any) -> bool:
    """Return whether a job leads to a measurement, which depends only on the digest in its path.

    A plan also contains facts that do not affect a measurement, such as taint limits and the drive's path. If a change
    of these rewrote the plan, Snakemake would measure the drive again.
    """
    return job.rule.name in ("plan", "capture") or not {"plan", "plans"}.isdisjoint(job.rule.input.keys())


def _matches(record: MetadataRecord | None, path: str, manifest: _Manifest) -> bool:
    """Return whether the record of an output matches the present file and the present recording.

    A copied recording keeps its modification time, which may be earlier than the tables of the recording that it
    replaces. So the manifest is compared as well.
    """
    if record is None or record.record_format_version != RECORD_FORMAT_VERSION or record.endtime is None:
        return False
    try:
        changed_s = Path(path).stat().st_mtime
    except FileNotFoundError:
        return True  # Snakemake sees that it is missing
    return abs(changed_s - record.endtime) < _ARCHIVED_S and manifest.matches(record)


def _main(arguments: list[str]) -> int:
    """Check the options of a Snakemake command, profiles included.

    If they are refused, print why and return 2. Snakemake itself reports other errors in the options.
    """
    with redirect_stderr(StringIO()):
        try:
            backend = parse_args(arguments)[1].persistence_backend
        except (SystemExit, CliException):
            return 0
    try:
        require_file_backend(backend)
    except UserError as error:
        print(error)
        return 2
    return 0


if __name__ == "__main__":
    sys.exit(_main(sys.argv[1:]))
