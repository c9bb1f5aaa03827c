"""Whether a recording is as it was when it was completed: the SHA-256 of every file of it, in a file of its own.

That file is as `sha256sum` writes it, so `sha256sum --check SHA256SUMS` in the recording's folder says the same, but
for files that were added. Times and owners of files do not matter: a copy is as good.
"""

from __future__ import annotations

import hashlib
import json
import os
import re
import stat
from collections.abc import Mapping
from pathlib import Path

CHECKSUMS = "SHA256SUMS"
MANIFEST = "recording.json"
"""Says whether there are checksums, should they be gone; one of the files that they are of."""
ALTERED, MISSING, ADDED, UNREADABLE = "altered", "missing", "added", "unreadable"
REPLACED = "replaced by a link"
"""Of a file: its content is that of another place now, which may change at any time."""
_JOURNAL = "journal.jsonl"
_INTERRUPTED = re.compile(r"\.interrupted-\d+/")
_LINE = re.compile(r"([0-9a-f]{64})  (.+)", re.DOTALL)


def digests(folder: Path) -> dict[str, str]:
    """SHA-256 in hexadecimal of every file below a folder but CHECKSUMS, by its path relative to it, sorted.

    Files are read as streams. Raises OSError for one that cannot be read.
    """
    return {name: _digest(path) for name, path in _files(folder)[0].items()}


def write_checksums(folder: Path) -> None:
    """Write CHECKSUMS of all files as they are now, whole or not at all."""
    temporary = folder.with_name(f".{folder.name}.{CHECKSUMS}")  # not in the folder, which it is about
    temporary.write_bytes(lines_of(digests(folder)))
    temporary.replace(folder / CHECKSUMS)


def lines_of(digests: Mapping[str, str]) -> bytes:
    """Checksums by name as `sha256sum` writes them, sorted."""
    return b"".join(os.fsencode(f"{digests[name]}  {name}\n") for name in sorted(digests))


def parse(data: bytes) -> tuple[dict[str, str], bool]:
    """Checksums by name as `lines_of` wrote them, and whether nothing else is there."""
    *lines, rest = os.fsdecode(data).split("\n")
    matches = [_LINE.fullmatch(line) for line in lines]
    return {match[2]: match[1] for match in matches if match is not None}, not rest and None not in matches


def checksummed(folder: Path) -> bool:
    """Whether there are checksums of a recording; those of before there was such a thing have none."""
    return (folder / CHECKSUMS).exists()


def misplaced(folder: Path) -> str | None:
    """What is said of the manifest of a recording that lies in the place of another one, or None.

    Places are below a folder `recordings`: DRIVE/MEASUREMENT/KEY; a copy elsewhere is as good. None also where the
    manifest tells nothing.
    """
    *_, top, drive, measurement, key = ("", "", "", "", *Path(os.path.abspath(folder)).parts)  # noqa: PTH100 - no links
    try:
        held = json.loads((folder / MANIFEST).read_bytes())["recording"]
    except (OSError, ValueError, LookupError, TypeError):
        return None
    if top != "recordings" or held == f"{drive}/{measurement}/{key}":
        return None
    return f"that of {held}, copied or moved here"


def altered(folder: Path) -> dict[str, str]:
    """What is not as it was when the checksums were taken: ALTERED, MISSING, ADDED, UNREADABLE or REPLACED by path.

    Of a recording in the place of another the manifest is named. Links are not followed: one that was added is
    named, wherever it leads to, and so are empty folders, with a slash at the end of the name, but for those that a
    measurement leaves. Empty where all is as it was, and of a recording of before there were checksums.
    """
    words = misplaced(folder)
    found = {} if words is None else {MANIFEST: words}
    if not checksummed(folder):
        return found | ({CHECKSUMS: MISSING} if lost(folder) else {})
    wanted, sound = parse((folder / CHECKSUMS).read_bytes())
    present, others = _files(folder)
    journal = _bytes(folder / _JOURNAL)
    others = {name for name in others if not _left_empty(name, journal)}
    found |= {name: ADDED if name not in wanted else ALTERED for name in others}
    if not sound:
        found[CHECKSUMS] = ALTERED
    found |= {name: REPLACED for name in (*others & wanted.keys(), CHECKSUMS) if (folder / name).is_symlink()}
    for name in {*wanted, *present} - found.keys():
        if name not in present:
            found[name] = MISSING
        elif name not in wanted:
            found[name] = ADDED
        else:
            try:
                if _digest(present[name]) != wanted[name]:
                    found[name] = ALTERED
            except OSError:
                found[name] = UNREADABLE
    return dict(sorted(found.items()))


def lost(folder: Path) -> bool:
    """Whether a recording was given checksums, as its manifest says, and has none any more."""
    manifest = folder / MANIFEST
    return not checksummed(folder) and manifest.is_file() and CHECKSUMS.encode() in manifest.read_bytes()


def _files(folder: Path) -> tuple[dict[str, str], set[str]]:
    """Paths of regular files by what they are relative to the folder, and the names of what is none and no folder with
    files: links, pipes and devices, and empty folders with a slash at the end."""
    top, found, others = len(f"{folder}/"), {}, set()
    for place, folders, names in os.walk(folder):
        for name in (*folders, *names):
            path = f"{place}/{name}"
            kind = os.lstat(path).st_mode
            if stat.S_ISREG(kind):
                found[path[top:]] = path
            elif not stat.S_ISDIR(kind):
                others.add(path[top:])
        if not folders and not names and (below := place[top:]):
            others.add(f"{below}/")
    own = {CHECKSUMS}
    return {name: found[name] for name in sorted(found.keys() - own)}, others - own


def _left_empty(name: str, journal: bytes) -> bool:
    """Whether a measurement leaves this folder empty, which no checksum can tell: of idle time there is nothing but the
    line in the journal, and a cell that was killed at once has not even that."""
    return bool(_INTERRUPTED.search(name)) or f'"directory":"{name.removesuffix("/")}"'.encode() in journal


def _bytes(path: Path) -> bytes:
    return path.read_bytes() if path.is_file() else b""


def _digest(path: str) -> str:
    with Path(path).open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()
