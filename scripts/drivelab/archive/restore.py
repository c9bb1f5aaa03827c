"""Putting the files of an archive back where they were: nothing is overwritten, nothing unverified written."""

from __future__ import annotations

import hashlib
import os
import tarfile
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from drivelab.archive.container import CHUNK_BYTES, DamagedError, Member, Reader, Watch, plain_name
from drivelab.archive.contents import ELSEWHERE, RECORDS
from drivelab.archive.create import of_the_study
from drivelab.archive.verify import Verdict, below_top, verify
from drivelab.errors import UserError
from drivelab.words import some

_FEW = 5


@dataclass(frozen=True)
class Restored:
    """What came of it: numbers of files."""

    written: int
    there: int
    """Files that were there already, as they are in the archive."""
    elsewhere: int
    """Files that were outside the project's folder, and are below ELSEWHERE now."""


def restore(path: Path, folder: Path, digest: str | None = None, watch: Watch = lambda size: None) -> Restored:
    """Write the files of an archive below a folder, with their times; those that are there already may be the same.

    The whole archive is verified before anything is written, and each file again while it is; `watch` is told the
    bytes of both. Raises UserError for an archive that was altered, if a file is there with another content, and if
    `folder` is no folder.
    """
    if path.is_dir():
        raise UserError(f"{path}: is a folder, which needs no restoring; copy it")
    if os.path.lexists(folder) and not folder.is_dir():
        raise UserError(f"{folder}: is no folder, and files cannot be restored into it; name another with --to")
    verdict = verify(path, digest, watch)
    if verdict.altered:
        raise UserError(
            f"{path}: is not as it was written ({some(list(verdict.altered), _FEW)}), nothing was restored; see "
            "'drivelab archive verify', and take another copy"
        )
    there = _there(verdict, folder)
    written = 0
    with path.open("rb") as file:
        for member in Reader(file, watch).members():
            name = below_top(member.info.name)
            if not of_the_study(name):
                continue
            if name in there:
                _age(folder / name, member.info.mtime)
            else:
                _write(member, folder / name, verdict.digests)
                written += 1
    outside = sum(name.startswith(f"{ELSEWHERE}/") for name in verdict.digests)
    return Restored(written, len(there), outside)


def _there(verdict: Verdict, folder: Path) -> set[str]:
    """Names of files that are there already and the same; raises UserError for any other, before any is written."""
    found: set[str] = set()
    others: list[str] = []
    for name, digest in verdict.digests.items():
        if not of_the_study(name):
            continue
        if not plain_name(name):
            raise UserError(f"{verdict.path}: has a file '{name}', which leads out of its folder; do not trust it")
        target = folder / name
        if os.path.lexists(target):
            if name.startswith(RECORDS):
                found.add(name)  # of the same output: its own is as good
                continue
            same = target.is_file() and target.stat().st_size == verdict.sizes_bytes[name]
            (found.add if same and _digest(target) == digest else others.append)(name)
        elif blocked := next((one for one in target.relative_to(folder).parents if (folder / one).is_file()), None):
            others.append(str(blocked))
    if others:
        raise UserError(
            f"{folder}: has {len(others)} file{'s' * (len(others) > 1)} of the study with another content "
            f"({some(others, _FEW)}), and nothing is overwritten; restore with --to another folder"
        )
    return found


def _write(member: Member, target: Path, digests: Mapping[str, str]) -> None:
    """A file gets its name when it is complete."""
    tarfile.data_filter(member.info, str(target.parent))  # refuses what is not below, links, and devices
    target.parent.mkdir(parents=True, exist_ok=True)
    part = target.with_name(f".{target.name}.{os.getpid()}.part")
    digest = hashlib.sha256()
    try:
        with part.open("xb") as file:
            for chunk in member.chunks:
                digest.update(chunk)
                file.write(chunk)
        if digest.hexdigest() != digests[below_top(member.info.name)]:
            raise DamagedError(member.info.name)
        os.utime(part, (member.info.mtime, member.info.mtime))
        part.rename(target)
    except (DamagedError, OSError) as error:
        why = error.strerror if isinstance(error, OSError) else "the archive changed while it was read"
        raise UserError(
            f"{target}: cannot be restored: {why}; what is restored is kept, mend that and restore again to go on"
        ) from None
    finally:
        part.unlink(missing_ok=True)


def _age(target: Path, mtime_s: float) -> None:
    """A file that is the same but newer, as after a checkout, gets its time in the archive: nothing follows from it
    that was not there then."""
    if target.stat().st_mtime > mtime_s:
        os.utime(target, (mtime_s, mtime_s))


def _digest(path: Path) -> str:
    digest = hashlib.sha256()
    with path.open("rb") as file:
        while chunk := file.read(CHUNK_BYTES):
            digest.update(chunk)
    return digest.hexdigest()
