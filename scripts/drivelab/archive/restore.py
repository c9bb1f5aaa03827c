"""Restore an archive into a new folder, without writing unverified files."""

from __future__ import annotations

import csv
import hashlib
import json
import os
import re
import shutil
import tempfile
from collections.abc import Collection, Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path

from drivelab.archive import kinds
from drivelab.archive.contents import ELSEWHERE
from drivelab.archive.create import of_the_study
from drivelab.archive.tar import DamagedError, Member, Reader, Watch, plain_name
from drivelab.archive.verify import Verdict, below_top, verify
from drivelab.core.errors import UserError
from drivelab.core.files import sync_file_system
from drivelab.core.units import some
from drivelab.plan.drive_sheet import COLUMNS
from drivelab.plan.places import RESTORED_MARKER, ROOT, SHEET_SUFFIX, require_project
from drivelab.recording.writer import now_iso

RESTORED = ROOT / "restored"
"""Folder for restored studies, each in a folder of its name; the only place for them in the project."""
_FEW = 5
_MOST_SHEET_BYTES = 1 << 22
_STUDY = re.compile(r"[a-z0-9][a-z0-9-]{0,40}")


@dataclass(frozen=True)
class Restored:
    """Result of a restore: the folder and the numbers of files."""

    folder: Path
    written: int
    elsewhere: int
    """Files from outside the publisher's project folder, restored below ELSEWHERE."""
    left_out: tuple[str, ...]
    """Names of files that were skipped, because a study has no files of their kind."""


def restore(path: Path, to: Path | None, digest: str | None = None, watch: Watch = lambda size: None) -> Restored:
    """Write the study files of an archive, with their times, into a separate folder, but no tables, figures or reports.

    The folder is `to`, or RESTORED/NAME for a study NAME; it must be new or empty, and is whole or not made. Drive
    sheets get `destructive: no`. The whole archive is verified before anything is written, and each file again while it
    is written; `watch` counts the bytes of both. Raises UserError for an altered archive, for names that lead out of
    the folder or are not plain, and for any other folder.
    """
    if path.is_dir():
        raise UserError(
            f"{path}: is a folder, not an archive. Copy it instead, without results/tables, results/figures and "
            "results/report: drivelab computes them again from the recordings."
        )
    _refuse_place(to)
    verdict = verify(path, digest, watch)
    if verdict.altered:
        raise UserError(
            f"{path}: was altered since it was written ({some(list(map(_shown, verdict.altered)), _FEW)}), nothing was "
            "restored; see 'drivelab archive verify', and use another copy"
        )
    if to is None and not _STUDY.fullmatch(verdict.top):
        raise UserError(
            f"{path}: its folder {_shown(verdict.top)} does not have a valid name of a study. Nothing was restored. "
            "Name a new folder with --to."
        )
    home = (RESTORED / verdict.top if to is None else to).absolute()
    names = {name for name in verdict.digests if of_the_study(name)}
    _refuse_names(path, names)
    kept = set(filter(kinds.is_kept, names))
    _refuse_clashes(path, kept)
    if home.is_dir() and any(home.iterdir()):
        raise UserError(f"{home}: is not empty. Nothing was restored. Name a new folder with --to, or remove that one.")
    _refuse_full(home, sum(verdict.sizes_bytes[name] for name in kept))
    _write_all(path, verdict, kept, home, watch)
    left_out = sorted(name for name in names - kept if not (kinds.is_host_state(name) or kinds.is_computed(name)))
    outside = sum(name.startswith(f"{ELSEWHERE}/") for name in kept)
    return Restored(home, len(kept), outside, tuple(map(_shown, left_out)))


def _refuse_place(to: Path | None) -> None:
    """Raise UserError for a folder in this project, except its folder for restored studies."""
    if to is None:
        require_project()
        return
    if os.path.lexists(to) and not to.is_dir():
        raise UserError(f"{to}: is not a folder. Nothing was restored. Name a new folder with --to.")
    place, restored = to.resolve(), RESTORED.resolve()
    if place == restored or (place.is_relative_to(ROOT) and not place.is_relative_to(restored)):
        raise UserError(
            f"{to}: is in the project's own folder. drivelab never restores an archive among its code. Leave out --to "
            f"to restore into {RESTORED}/NAME, or name a new folder elsewhere."
        )


def _refuse_names(path: Path, names: Collection[str]) -> None:
    """Raise UserError if a name leads out of the folder or has hidden characters."""
    for name in sorted(names):
        if not plain_name(name) or not name.isprintable():
            why = "with hidden characters in its name" if plain_name(name) else "that leads out of its folder"
            raise UserError(f"{path}: has a file {_shown(name)} {why}; do not trust this archive")


def _refuse_clashes(path: Path, names: set[str]) -> None:
    if clashing := kinds.clashing(names):
        raise UserError(
            f"{path}: has names that some systems treat as the same, or a file in place of a folder: "
            f"{some(list(map(_shown, clashing)), _FEW)}. Nothing was restored. Do not trust this archive."
        )


def _refuse_full(home: Path, size_bytes: int) -> None:
    place = next(folder for folder in (home, *home.parents) if folder.is_dir())
    if size_bytes > (free := shutil.disk_usage(place).free):
        raise UserError(
            f"{home}: the archive needs {size_bytes:,} bytes there, and {free:,} are free. Nothing was restored. Free "
            "some space, or name another folder with --to."
        )


def _write_all(path: Path, verdict: Verdict, kept: set[str], home: Path, watch: Watch) -> None:
    """Write the files into a folder that only this user may enter, and that gets its name when it is whole."""
    home.parent.mkdir(parents=True, exist_ok=True)
    part = Path(tempfile.mkdtemp(prefix=f".{home.name}.", dir=home.parent))
    try:
        about = {"archive": path.name, "sha256": verdict.digest, "study": verdict.top, "at": now_iso()}
        _write(part / RESTORED_MARKER, [json.dumps(about, indent=1).encode() + b"\n"])
        with path.open("rb") as file:
            for member in Reader(file, watch).members():
                name = below_top(member.info.name)
                if name in kept:
                    chunks = _verified(member, verdict.digests[name])
                    _write(part / name, _harmless(chunks) if name.endswith(SHEET_SUFFIX) else chunks)
                    os.utime(part / name, (int(member.info.mtime),) * 2)
        sync_file_system(part)
        part.chmod(0o755)
        part.rename(home)
    except DamagedError as error:
        raise UserError(f"{path}: cannot be restored: {error}. Nothing was restored.") from None
    except OSError as error:
        raise UserError(f"{home}: cannot be written: {error.strerror}. Nothing was restored.") from None
    finally:
        shutil.rmtree(part, ignore_errors=True)


def _write(target: Path, chunks: Iterable[bytes]) -> None:
    """Write a new file, readable by all users and not executable, whatever the umask."""
    for folder in reversed(target.parents):
        if not folder.exists():
            folder.mkdir(0o755)
    with os.fdopen(os.open(target, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o644), "wb") as file:
        file.writelines(chunks)


def _verified(member: Member, expected: str) -> Iterator[bytes]:
    """Yield the content of a member; raises DamagedError at its end if it differs from the verified content."""
    digest = hashlib.sha256()
    for chunk in member.chunks:
        digest.update(chunk)
        yield chunk
    if digest.hexdigest() != expected:
        raise DamagedError("the archive changed while it was read")


def _harmless(chunks: Iterator[bytes]) -> list[bytes]:
    """Return a drive sheet with `destructive: no` for every drive, parsed as in `drivelab.plan.drive_sheet`.

    Raises DamagedError for a sheet that is not text or is too large.
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
        raise DamagedError(f"it is not a drive sheet ({error})") from None
    for row in rows:
        if len(row) > column and row[column].strip() == "yes":
            row[column] = "no"
    return ["".join("\t".join(row) + "\n" for row in rows).encode()]


def _lines(text: str) -> list[str]:
    """Return lines as a file opened with newline='' yields them."""
    return re.findall(r"[^\r\n]*(?:\r\n|\r|\n)|[^\r\n]+", text)


def _shown(name: str) -> str:
    """Return a name of an archive, escaped for the terminal if it is not plain."""
    return name if name.isascii() and name.isprintable() else ascii(name)
