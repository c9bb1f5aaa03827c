"""Restore an archive into a separate folder: overwrites no file, writes no unverified one."""

from __future__ import annotations

import csv
import hashlib
import json
import os
import re
import shutil
from collections.abc import Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

from drivelab.archive import kinds
from drivelab.archive.container import CHUNK_BYTES, DamagedError, Member, Reader, Watch, plain_name
from drivelab.archive.contents import ELSEWHERE, RECORDS
from drivelab.archive.create import of_the_study
from drivelab.archive.folder import Folder
from drivelab.archive.verify import Verdict, below_top, verify
from drivelab.config.drives_sheet import COLUMNS
from drivelab.config.restored import MARKER
from drivelab.config.schema import ROOT
from drivelab.errors import UserError
from drivelab.recording.writer import now_iso
from drivelab.words import some

RESTORED = ROOT / "restored"
"""Where studies are restored to, each in a folder of its name. It is the one place in the project for them."""
_FEW = 5
_MOST_SHEET_BYTES = 1 << 22
_STUDY = re.compile(r"[a-z0-9][a-z0-9-]{0,40}")


@dataclass(frozen=True)
class Restored:
    """Result of a restore: the folder and the numbers of files."""

    folder: Path
    written: int
    there: int
    """Files that were there already, as they are in the archive."""
    elsewhere: int
    """Files that were outside the project's folder, and are below ELSEWHERE now."""
    left_out: tuple[str, ...]
    """Names of files that were not written, because no study has files of that kind."""


def restore(path: Path, to: Path | None, digest: str | None = None, watch: Watch = lambda size: None) -> Restored:
    """Write the files of an archive that a study consists of, with their times, into a folder of their own.

    The folder is `to`, or RESTORED and the study's name; it is new, empty, or one that this archive was restored to
    before. In drive sheets `destructive` is no. The whole archive is verified before anything is written, and each file
    again while it is; `watch` is told the bytes of both. Raises UserError for an archive that was altered, for names
    that lead out of the folder or are not plain, for another folder, and if a file is there with another content.
    """
    if path.is_dir():
        raise UserError(f"{path}: is a folder, which needs no restoring; copy it")
    _refuse_place(to)
    verdict = verify(path, digest, watch)
    if verdict.altered:
        raise UserError(
            f"{path}: is not as it was written ({some(list(map(_shown, verdict.altered)), _FEW)}), nothing was "
            "restored; see 'drivelab archive verify', and take another copy"
        )
    if to is None and not _STUDY.fullmatch(verdict.top):
        raise UserError(
            f"{path}: its folder {_shown(verdict.top)} does not have a valid name of a study. Nothing was restored. "
            "Name a new folder with --to."
        )
    home = (RESTORED / verdict.top if to is None else to).absolute()
    names = {name for name in verdict.digests if of_the_study(name)}
    _refuse_names(path, names)
    kept = kinds.kept(names)
    _refuse_clashes(path, kept)
    _refuse_other(home, verdict)
    there = _there(verdict, kept, home)
    _refuse_full(home, sum(verdict.sizes_bytes[name] for name in kept - there))
    written = _write_all(path, verdict, kept, there, home, watch)
    left_out = sorted(name for name in names - kept if not kinds.is_host_state(name))
    outside = sum(name.startswith(f"{ELSEWHERE}/") for name in kept)
    return Restored(home, written, len(there), outside, tuple(map(_shown, left_out)))


def _refuse_place(to: Path | None) -> None:
    """Raise UserError for a place that holds code: this project, but for its folder for restored studies."""
    if to is None:
        return
    if os.path.lexists(to) and not to.is_dir():
        raise UserError(f"{to}: is not a folder. Nothing was restored. Name a new folder with --to.")
    place, restored = to.resolve(), RESTORED.resolve()
    if place == restored or (place.is_relative_to(ROOT) and not place.is_relative_to(restored)):
        raise UserError(
            f"{to}: is in the project's own folder. drivelab never restores an archive among its code. Leave out --to "
            f"to restore into {RESTORED}/NAME, or name a new folder elsewhere."
        )


def _refuse_names(path: Path, names: set[str]) -> None:
    for name in sorted(names):
        if not plain_name(name):
            raise UserError(f"{path}: has a file {_shown(name)}, which leads out of its folder; do not trust it")
        if not kinds.is_plain(name):
            raise UserError(f"{path}: has a file {_shown(name)}, with hidden characters in its name; do not trust it")


def _refuse_clashes(path: Path, names: set[str]) -> None:
    if clashing := kinds.clashing(names):
        raise UserError(
            f"{path}: has names that some systems treat as the same, or a file in the place of a folder: "
            f"{some(list(map(_shown, clashing)), _FEW)}. Nothing was restored. Do not trust this archive."
        )


def _refuse_other(home: Path, verdict: Verdict) -> None:
    """Raise UserError for a folder that is neither empty nor one that this archive was restored to."""
    if not home.is_dir() or not any(home.iterdir()):
        return
    with suppress(OSError, ValueError, KeyError, TypeError, RecursionError):
        if json.loads((home / MARKER).read_bytes())["sha256"] == verdict.digest:
            return
    raise UserError(
        f"{home}: is not empty, and this archive was not restored to it before. Nothing was restored. Name a new "
        "folder with --to, or remove that one."
    )


def _refuse_full(home: Path, size_bytes: int) -> None:
    place = next(one for one in (home, *home.parents) if one.is_dir())
    if size_bytes > (free := shutil.disk_usage(place).free):
        raise UserError(
            f"{home}: the archive needs {size_bytes:,} bytes there, and {free:,} are free. Nothing was restored. Make "
            "room, or name another folder with --to."
        )


def _there(verdict: Verdict, kept: set[str], home: Path) -> set[str]:
    """Names of files that are there already and the same; raises UserError for any other, before any is written."""
    found: set[str] = set()
    others: list[str] = []
    for name in sorted(kept):
        target = home / name
        blocked = next((one for one in _parents(target, home) if os.path.lexists(one) and not _is_folder(one)), None)
        if blocked is not None:
            others.append(str(blocked.relative_to(home)))
        elif os.path.lexists(target):
            # Of a record and of a sheet the one that is there is as good: it is of the same output, or it was changed.
            as_good = name.startswith(f"{RECORDS}/") or kinds.is_sheet(name)
            same = (
                not target.is_symlink() and target.is_file() and (as_good or _digest(target) == verdict.digests[name])
            )
            (found.add if same else others.append)(name)
    if others:
        raise UserError(
            f"{home}: has {len(others)} file{'s' * (len(others) > 1)} of the study with another content "
            f"({some(list(map(_shown, others)), _FEW)}), and nothing is overwritten; restore with --to another folder"
        )
    return found


def _parents(target: Path, home: Path) -> Iterator[Path]:
    """Folders from below `home` down to a file."""
    yield from (home / one for one in reversed(target.relative_to(home).parents[:-1]))


def _is_folder(path: Path) -> bool:
    return path.is_dir() and not path.is_symlink()


def _write_all(path: Path, verdict: Verdict, kept: set[str], there: set[str], home: Path, watch: Watch) -> int:
    home.mkdir(parents=True, exist_ok=True)
    written = 0
    with Folder(home) as folder, path.open("rb") as file:
        if not (home / MARKER).exists():
            about = {"archive": path.name, "sha256": verdict.digest, "study": verdict.top, "at": now_iso()}
            folder.write(MARKER, [json.dumps(about, indent=1).encode() + b"\n"], None)
        for member in Reader(file, watch).members():
            name = below_top(member.info.name)
            if name in kept and name not in there:
                _write(folder, home, name, member, verdict.digests)
                written += 1
    return written


def _write(folder: Folder, home: Path, name: str, member: Member, digests: Mapping[str, str]) -> None:
    try:
        chunks = _verified(member, digests[name])
        folder.write(name, _harmless(chunks) if kinds.is_sheet(name) else chunks, int(member.info.mtime))
    except (DamagedError, OSError) as error:
        why = error.strerror if isinstance(error, OSError) else str(error)
        raise UserError(
            f"{home / name}: cannot be restored: {why}. The files restored so far are kept. Fix the cause, then run "
            "the same command again to continue."
        ) from None


def _verified(member: Member, wanted: str) -> Iterator[bytes]:
    """The content of a member; raises DamagedError at its end if it is not the one that was verified."""
    digest = hashlib.sha256()
    for chunk in member.chunks:
        digest.update(chunk)
        yield chunk
    if digest.hexdigest() != wanted:
        raise DamagedError("the archive changed while it was read")


def _harmless(chunks: Iterator[bytes]) -> list[bytes]:
    """A drive sheet in which no drive may be destroyed, read as `drivelab.config.drives_sheet` does.

    Raises DamagedError for what is no text or too large to be a sheet.
    """
    data = b""
    for chunk in chunks:
        data += chunk
        if len(data) > _MOST_SHEET_BYTES:
            raise DamagedError("it is too large for a drive sheet")
    column = COLUMNS.index("destructive")
    try:
        rows = list(csv.reader(_lines(data.decode("utf-8-sig")), delimiter="\t", quoting=csv.QUOTE_NONE))
    except (UnicodeDecodeError, csv.Error) as error:
        raise DamagedError(f"it is no drive sheet ({error})") from None
    for row in rows:
        if len(row) > column and row[column].strip() == "yes":
            row[column] = "no"
    return ["".join("\t".join(row) + "\n" for row in rows).encode()]


def _lines(text: str) -> list[str]:
    """As a file that is opened with newline='' yields them."""
    return re.findall(r"[^\r\n]*(?:\r\n|\r|\n)|[^\r\n]+", text)


def _shown(name: str) -> str:
    """A name of an archive as Python writes it where it is not plain: it goes to a terminal."""
    return name if name.isascii() and name.isprintable() else ascii(name)


def _digest(path: Path) -> str:
    digest = hashlib.sha256()
    with path.open("rb") as file:
        while chunk := file.read(CHUNK_BYTES):
            digest.update(chunk)
    return digest.hexdigest()
