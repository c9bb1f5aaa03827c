"""Write a study into an archive."""

from __future__ import annotations

import hashlib
import io
import os
from collections.abc import Collection, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import BinaryIO

import drivelab
from drivelab.archive.contents import REQUIREMENTS, Item, archived_name, changed, refuse_changes
from drivelab.archive.tar import LIST_LINE_BYTES, MOST_LIST_BYTES, DamagedError, Watch, Writer, too_long
from drivelab.core.errors import UserError
from drivelab.core.files import put_in_place, real_path
from drivelab.plan.study import Study
from drivelab.recording.checksums import CHECKSUMS, lines_of

README = "README.txt"
_OF_THE_ARCHIVE = (README, CHECKSUMS)
"""Metadata files of an archive, which are not part of the study."""
SIDE_FILE = ".sha256"
_VERSIONS = REQUIREMENTS.rpartition("/")[0] + "/"


@dataclass
class Written:
    """The result of archiving."""

    files: int = 0
    """Number of study files; `own_files` counts the metadata files, here and in all messages."""
    own_files: int = 0
    size_bytes: int = 0
    """Size of all study files, before compression."""
    digest: str = ""
    """SHA-256 of the archive."""


def write_archive(
    study: Study,
    items: Sequence[Item],
    output: Path,
    watch: Watch = lambda size: None,
    without: Collection[str] = (),
) -> Written:
    """Write an archive atomically, and `….sha256` next to it; `items` are the `contents` without `without`.

    Raises UserError if the output exists or is in the study's results, if the disk is full, and if a file is changed,
    added or removed meanwhile.
    """
    refuse_place(output, study)
    refuse_existing(output)
    _refuse_unreadable(study, items)
    with _whole_file(output) as file:
        writer = Writer(file)
        written = _fill(writer, study, items, watch, without)
        writer.close()
        file.seek(0)
        written.digest = hashlib.file_digest(file, "sha256").hexdigest()
        refuse_existing(output)
    output.with_name(output.name + SIDE_FILE).write_text(f"{written.digest}  {output.name}\n")
    return written


@contextmanager
def _whole_file(output: Path) -> Iterator[io.BufferedRandom]:
    """Open a new file that gets the name `output` when it is complete and on disk; name it if the disk is full."""
    part = output.with_name(f".{output.name}.{os.getpid()}.part")
    try:
        with part.open("x+b") as file:
            try:
                yield file
                put_in_place(part, output)
            except BaseException:
                part.unlink(missing_ok=True)
                raise
    except OSError as error:
        if error.filename is not None:
            raise
        raise UserError(
            f"{output}: cannot be written: {error.strerror}; the partial output is removed, free some space and start "
            "again"
        ) from None


def of_the_study(name: str) -> bool:
    """Whether a file of an archive belongs to the study, not to the archive's metadata."""
    return name not in _OF_THE_ARCHIVE and not name.startswith(_VERSIONS)


def refuse_place(output: Path, study: Study) -> None:
    """Raise UserError for an output in the study's results: the next archive would contain this one."""
    if real_path(output).is_relative_to(real_path(study.results)):
        raise UserError(
            f"{output}: is in the results of the study, {study.results}, and would become part of them; name another "
            "place"
        )


def refuse_existing(output: Path) -> None:
    """Raise UserError if the output exists: drivelab never overwrites an archive."""
    for path in (output, output.with_name(output.name + SIDE_FILE)):
        if os.path.lexists(path):
            raise UserError(f"{path}: exists already and is not overwritten; name another output, or remove it")


def _fill(writer: Writer, study: Study, items: Sequence[Item], watch: Watch, without: Collection[str]) -> Written:
    """Write all files below one folder, so that the archive unpacks into one folder; their checksums come last."""
    written, digests, latest_s = Written(), {}, 0
    with _report_missing(items):
        for item in items:
            with _opened(item.path) as (source, size, status):
                try:
                    digests[item.name] = writer.add(f"{study.name}/{item.name}", source, size, int(status.st_mtime))
                except DamagedError:
                    raise changed(item.path) from None
            written.size_bytes += size
            latest_s = max(latest_s, int(status.st_mtime))
            watch(status.st_size)
        refuse_changes(study, items, without)  # after the last file is read, so that all files fit together
    for name in (README, CHECKSUMS):
        data = _readme(study).encode() if name == README else lines_of(digests)
        digests[name] = writer.add(f"{study.name}/{name}", io.BytesIO(data), len(data), latest_s)
    written.files = sum(map(of_the_study, digests))
    written.own_files = len(digests) - written.files
    return written


def _refuse_unreadable(study: Study, items: Sequence[Item]) -> None:
    """Raise UserError for files beyond the limits of `archive verify`."""
    if (long := next((item for item in items if too_long(f"{study.name}/{item.name}")), None)) is not None:
        raise UserError(f"{long.path}: is in too many folders for an archive, or has too long a name; move it")
    listed_bytes = sum(len(study.name) + len(os.fsencode(item.name)) + LIST_LINE_BYTES for item in items)
    if listed_bytes > MOST_LIST_BYTES:
        raise UserError(
            f"{study.path}: has {len(items):,} files, too many for one archive: the list of their checksums would have "
            f"more than {MOST_LIST_BYTES >> 20} MiB. Leave some out with --without, or archive parts of the study."
        )


@contextmanager
def _opened(path: Path) -> Iterator[tuple[BinaryIO, int, os.stat_result]]:
    """Yield a file of the study, its size and its state.

    A log may hold a traceback, so the folders of this host that would name the user are replaced.
    """
    with path.open("rb") as source:
        status = os.fstat(source.fileno())
        if path.suffix != ".log" or "logs" not in path.parts:
            yield source, status.st_size, status
            return
        text = source.read()
        for folder, word in ((Path.cwd(), b"."), (Path.home(), b"~")):
            if len(folder.parts) > 1:
                text = text.replace(bytes(folder), word)
        yield io.BytesIO(text), len(text), status


@contextmanager
def _report_missing(items: Sequence[Item]) -> Iterator[None]:
    """Raise UserError for a file of the study that disappeared after it was listed."""
    try:
        yield
    except (FileNotFoundError, NotADirectoryError) as error:
        gone = next((item.path for item in items if str(item.path) == str(error.filename)), None)
        if gone is None:  # the missing file is not one of the study
            raise
        raise changed(gone) from None


def _readme(study: Study) -> str:
    return f"""{study.title}

This folder holds the whole study '{study.name}': measurements of storage drives by drivelab. drivelab
{drivelab.__version__} packed it. Common tools are enough to read it.

    sha256sum --check --quiet {CHECKSUMS}      checks that all files are unaltered; no output means yes

{archived_name(study.path)} is the study: drives, protocols and comparisons. Below {archived_name(study.results)}:

recordings/          raw evidence, a folder for each measurement: plan.json, journal.jsonl, identity.json, host.json,
                     and for each cell fio's job, JSON output and exit status
tables/              the numbers, in Parquet; summary.parquet has the results
report/index.html    the report, one file
"""
