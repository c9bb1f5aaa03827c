"""Snakemake's records of what files were made with, which must be of these very files.

Nothing else of the library imports this module, as it imports Snakemake: the workflow does. `drivelab run` runs it as a
program to judge the options of Snakemake before anything is touched.
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
"""What the time of a file may differ by from that of its record: archives may cut it to whole seconds."""


def require_file_backend(backend: PersistenceBackend) -> None:
    """Raise UserError unless Snakemake keeps its records in files, where `Records` takes the place of its own class."""
    if backend is not PersistenceBackend.FILE:
        raise UserError(
            f"Snakemake's persistence backend '{backend}' cannot be used. drivelab's study locks and its protection of "
            "finished measurements work with backend 'file' only. Remove --persistence-backend from the command line "
            "and from the Snakemake profile."
        )


class Records(FilePersistence):  # type: ignore[misc]  # Snakemake ships no type information
    """Records in `.snakemake`, believed only where they speak of the file that is there.

    Snakemake leaves a file alone of which it has no record, or none that it can read, and takes any file for the one
    that the record speaks of. After the loss of `.snakemake`, under another version, or where two checkouts share
    results, a table of other parameters or code would stay. An analysis, whose rule carries a digest of its code,
    costs seconds: it is made again.

    Its locks are those of one study, in the folder `locks`.
    """

    locks: Path

    def __init__(self, *arguments: Any, **options: Any) -> None:
        super().__init__(*arguments, **options)
        self._lockdir = str(self.locks)

    def _write_locks(self, lock_type: str, keys: Iterable[str]) -> None:
        Path(self._lockdir).mkdir(parents=True, exist_ok=True)
        super()._write_locks(lock_type, keys)

    def has_metadata(self, job: Any) -> bool:
        """True: `params_changed` judges what there is no record of."""
        return True

    def has_outdated_metadata(self, job: Any) -> bool:
        """False: `params_changed` judges what a record in another format is of."""
        return False

    def input_changed(self, job: Any, file: Any = None) -> Any:
        """As Snakemake has it, but nothing for what leads to a measurement."""
        return [] if _uses_drive(job) else super().input_changed(job, file)

    def params_changed(self, job: Any, file: Any = None) -> Any:
        """As Snakemake has it, and a change for an analysis with an output that no record speaks of.

        No change for what leads to a measurement.
        """
        if _uses_drive(job):
            return NO_PARAMS_CHANGE
        is_judged = "code" in job.rule.params.keys()  # noqa: SIM118 - a list with names
        manifest = _Manifest(job.input.get("manifest"))
        changes = NO_PARAMS_CHANGE
        for path in job.output if file is None else [file]:  # one by one: of many records few are kept in memory
            changes |= super().params_changed(job, path)
            if is_judged and not _speaks_of(self.metadata(path), path, manifest):
                changes |= ParamsChange(only_old={"no record of this file"}, files={path})
        return changes


class _Manifest:
    """The manifest of the recording that an analysis is of, if it is of one."""

    def __init__(self, path: str | None) -> None:
        self.path = path
        self._checksum: str | None = None

    def is_the_one_of(self, record: MetadataRecord) -> bool:
        """Whether it is the one that the output was made from; True where nobody can tell."""
        known = (record.input_checksums or {}).get(self.path)
        if self.path is None or known is None:
            return True
        if self._checksum is None and Path(self.path).exists():
            self._checksum = "sha256:" + hashlib.sha256(Path(self.path).read_bytes()).hexdigest()
        return self._checksum in (None, known)


def _uses_drive(job: Any) -> bool:
    """Whether it leads to a measurement: what that depends on is in the digest of its path.

    A plan also says what changes no measurement, such as limits of taint and the path of the drive. Written anew
    because of those, it would have the drive measured anew.
    """
    return job.rule.name in ("plan", "capture") or not {"plan", "plans"}.isdisjoint(job.rule.input.keys())


def _speaks_of(record: MetadataRecord | None, path: str, manifest: _Manifest) -> bool:
    """Whether the record of an output is of the file that is there, and of the recording that it was made from.

    A recording that is copied there keeps the time of its making, which may be before that of tables of the one that
    it replaces, so the manifest is compared as well.
    """
    if record is None or record.record_format_version != RECORD_FORMAT_VERSION or record.endtime is None:
        return False
    try:
        changed_s = Path(path).stat().st_mtime
    except FileNotFoundError:
        return True  # Snakemake sees that it is missing
    return abs(changed_s - record.endtime) < _ARCHIVED_S and manifest.is_the_one_of(record)


def _main(arguments: list[str]) -> int:
    """Judge the options of a Snakemake command, profiles included; returns 2 and prints the reason if they are refused.

    Other faults of the options are left to Snakemake itself.
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
