"""Whether an archive is as it was written, to the byte, and what of it is not."""

from __future__ import annotations

import hashlib
import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path

from drivelab.archive.container import DamagedError, Member, Reader, Watch, is_file
from drivelab.archive.create import SIDE_FILE, of_the_study
from drivelab.errors import UserError
from drivelab.files import open_regular
from drivelab.recording import checksums
from drivelab.recording.checksums import ADDED, ALTERED, CHECKSUMS, MISSING, UNREADABLE

ITSELF = "the archive itself"
"""In the place of a file's name: what is in no file, such as order, headers and the end."""
_MOST_SUMS_BYTES = 1 << 26
"""Of the checksums, which are read whole: those of half a million files."""
_SHA256 = re.compile(r"[0-9a-f]{64}")


@dataclass
class Verdict:
    """What was found of an archive, or of a crate in a folder."""

    path: Path
    digest: str = ""
    """SHA-256 of the whole file; of a folder, of its checksums."""
    compared: bool = False
    """Whether that was compared with one that was kept apart."""
    altered: dict[str, str] = field(default_factory=dict)
    """What is not as it was, by the name of the file below the archive's own folder, or ITSELF."""
    sizes_bytes: dict[str, int] = field(default_factory=dict)
    """By name, of all that could be read, those OF_THE_ARCHIVE too."""
    top: str = ""
    """Name of the folder that all files of an archive are in."""
    digests: Mapping[str, str] = field(default_factory=dict)
    """SHA-256 by name that the files should have."""

    @property
    def files(self) -> int:
        """Number of files of the study."""
        return sum(map(of_the_study, self.digests))

    @property
    def own_files(self) -> int:
        """Number of those that the archive has for itself, with the one that has the checksums."""
        return len(self.digests) + 1 - self.files


def verify(path: Path, digest: str | None = None, watch: Watch = lambda size: None) -> Verdict:
    """Read an archive, or a crate in a folder, once, in bounded memory.

    It is compared with its own checksums, with `digest` if there is one, and with the file `….sha256` beside it if
    that is there: who alters all of the former can be found out by the latter alone. Raises UserError for a folder
    without checksums, and for a `digest` that is no SHA-256.
    """
    if digest is not None and not _SHA256.fullmatch(digest.lower()):
        raise UserError(f"--digest '{digest}' is no SHA-256; give the 64 hexadecimal digits that 'create' printed")
    verdict = _folder(path) if path.is_dir() else _file(path, watch)
    side = path.with_name(path.name + SIDE_FILE)
    kept = [digest.lower()] if digest else []
    if not path.is_dir() and side.exists():
        words = side.read_text(errors="replace").split()
        if not words or not _SHA256.fullmatch(words[0]):
            verdict.altered[str(side)] = ALTERED
        kept += words[:1]
    verdict.compared = bool(kept)
    if any(one != verdict.digest for one in kept):
        verdict.altered.setdefault(ITSELF, "is another one than its SHA-256 was taken of")
    return verdict


def below_top(name: str) -> str:
    """A member's name below the one folder that all are in."""
    return name.partition("/")[2]


def _folder(path: Path) -> Verdict:
    if not checksums.checksummed(path):
        raise UserError(f"{path}: holds no {CHECKSUMS}; name an archive, or a folder that 'archive crate' made")
    data = (path / CHECKSUMS).read_bytes()
    digests, _ = checksums.parse(data)
    return Verdict(path, hashlib.sha256(data).hexdigest(), altered=checksums.altered(path), digests=digests)


def _file(path: Path, watch: Watch) -> Verdict:
    verdict, found, tops, data = Verdict(path), {}, set(), b""
    with open_regular(path) as file:
        reader = Reader(file, watch)
        for member in reader.members():
            top, _, name = member.info.name.partition("/")
            tops.add(top)
            sound = is_file(member.info) and name not in found
            if name == CHECKSUMS and member.info.size <= _MOST_SUMS_BYTES:
                data, digest = _content(member)
            else:
                digest = _digest(member)
            found[name] = digest if sound else None
            verdict.sizes_bytes[name] = member.info.size
        verdict.digest, sealed = reader.digest()
    verdict.top = min(tops, default="")
    verdict.digests, whole = checksums.parse(data)
    lost = UNREADABLE if reader.damaged else MISSING
    verdict.altered = _differences(verdict.digests, found, lost, checked=bool(data) and whole)
    if not sealed or reader.damaged or len(tops) > 1:
        verdict.altered = {ITSELF: _words(found, verdict.altered), **verdict.altered}
    return verdict


def _words(found: Mapping[str, str | None], altered: Mapping[str, str]) -> str:
    if not found:
        return "nothing in it can be read: no archive of drivelab, or damaged from end to end"
    return ALTERED if altered else "altered in headers, padding, order or end; all files are as they were"


def _content(member: Member) -> tuple[bytes, str | None]:
    try:
        data = b"".join(member.chunks)
    except DamagedError:
        return b"", None
    return data, hashlib.sha256(data).hexdigest()


def _digest(member: Member) -> str | None:
    """None of what cannot be read."""
    digest = hashlib.sha256()
    try:
        for chunk in member.chunks:
            digest.update(chunk)
    except DamagedError:
        return None
    return digest.hexdigest()


def _differences(
    wanted: Mapping[str, str], found: Mapping[str, str | None], lost: str, *, checked: bool
) -> dict[str, str]:
    """`lost` is what is told of a file that was not found; `checked`, whether all checksums were."""
    altered = {} if checked else {CHECKSUMS: ALTERED if CHECKSUMS in found else lost}
    for name in sorted({*wanted, *found} - {CHECKSUMS}):
        if name not in found:
            altered[name] = lost
        elif name not in wanted and found[name] is not None and checked:
            altered[name] = ADDED
        elif found[name] is None or (name in wanted and found[name] != wanted[name]):
            altered[name] = ALTERED
    return altered
