"""Snakemake's records of how files were made, used only if they describe the present files.

Only the workflow imports this module, because it imports Snakemake. `drivelab run` runs it as a program to check
Snakemake's options before anything is touched.
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
"""Largest difference between the times of a file and of its record: archives may cut times to whole seconds."""


def require_file_backend(backend: PersistenceBackend) -> None:
    """Raise UserError unless Snakemake keeps its records in files, where `Records` replaces its own class."""
    if backend is not PersistenceBackend.FILE:
        raise UserError(
            f"Snakemake's persistence backend '{backend}' cannot be used. drivelab's study locks and its protection of "
            "finished measurements work with backend 'file' only. Remove --persistence-backend from the command line "
            "and from the Snakemake profile."
        )


class Records(FilePersistence):  # type: ignore[misc]  # Snakemake ships no type information
    """Records in `.snakemake`, trusted only if they describe the present file.

    Snakemake keeps a file that has no readable record, and assumes that a record describes whatever file is present.
    If `.snakemake` is lost, if the version differs, or if two checkouts share results, a table of other parameters or
    code would therefore stay. An analysis, whose rule carries a digest of its code, takes seconds, so it runs again.

    The locks belong to one study and lie in the folder `locks`.
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
        """Return False: `params_changed` handles records of another format."""
        return False

    def input_changed(self, job: Any, file: Any = None) -> Any:
        """Return Snakemake's result, but no change for a job that leads to a measurement."""
        return [] if _uses_drive(job) else super().input_changed(job, file)

    def params_changed(self, job: Any, file: Any = None) -> Any:
        """Return Snakemake's result, plus a change for an analysis output that no record describes.

        Return no change for a job that leads to a measurement.
        """
        if _uses_drive(job):
            return NO_PARAMS_CHANGE
        is_analysis = "code" in job.rule.params.keys()  # noqa: SIM118 - a list with names
        manifest = _Manifest(job.input.get("manifest"))
        changes = NO_PARAMS_CHANGE
        for path in job.output if file is None else [file]:  # one at a time, to keep few records in memory
            changes |= super().params_changed(job, path)
            if is_analysis and not _describes(self.metadata(path), path, manifest):
                changes |= ParamsChange(only_old={"no record of this file"}, files={path})
        return changes


class _Manifest:
    """The manifest of the recording that an analysis uses, if it uses one."""

    def __init__(self, path: str | None) -> None:
        self.path = path
        self._checksum: str | None = None

    def describes_input_of(self, record: MetadataRecord) -> bool:
        """Whether the output was made from this manifest; True if unknown."""
        known = (record.input_checksums or {}).get(self.path)
        if self.path is None or known is None:
            return True
        if self._checksum is None and Path(self.path).exists():
            self._checksum = "sha256:" + hashlib.sha256(Path(self.path).read_bytes()).hexdigest()
        return self._checksum in (None, known)


def _uses_drive(job: Any) -> bool:
    """Whether the job leads to a measurement, whose path holds a digest of everything that it depends on.

    A plan also holds settings that do not change the measurement, such as limits of taint and the path of the drive.
    Rewriting the plan for those would repeat the measurement.
    """
    return job.rule.name in ("plan", "capture") or not {"plan", "plans"}.isdisjoint(job.rule.input.keys())


def _describes(record: MetadataRecord | None, path: str, manifest: _Manifest) -> bool:
    """Whether a record describes the present output and the recording that the output was made from.

    A recording that is copied into place keeps its time, which may be older than the tables of the recording that it
    replaces. So the manifest is compared too.
    """
    if record is None or record.record_format_version != RECORD_FORMAT_VERSION or record.endtime is None:
        return False
    try:
        changed_s = Path(path).stat().st_mtime
    except FileNotFoundError:
        return True  # Snakemake sees that it is missing
    return abs(changed_s - record.endtime) < _ARCHIVED_S and manifest.describes_input_of(record)


def _main(arguments: list[str]) -> int:
    """Check the options of a Snakemake command, profiles included; return 2 and print the reason if refused.

    Snakemake itself reports other errors in the options.
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
