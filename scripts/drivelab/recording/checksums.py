"""Whether a recording is as it was when it was completed: the SHA-256 of every file of it, in a file of its own.

That file is as `sha256sum` writes it, so `sha256sum --check SHA256SUMS` in the recording's folder says the same, but
for files that were added. Times and owners of files do not matter: a copy is as good.
"""

from __future__ import annotations

import hashlib
import os
import re
from collections.abc import Mapping
from pathlib import Path

CHECKSUMS = "SHA256SUMS"
MANIFEST = "recording.json"
"""Says whether there are checksums, should they be gone; one of the files that they are of."""
ALTERED, MISSING, ADDED, UNREADABLE = "altered", "missing", "added", "unreadable"
_LINE = re.compile(r"([0-9a-f]{64})  (.+)", re.DOTALL)


def digests(folder: Path) -> dict[str, str]:
    """SHA-256 in hexadecimal of every file below a folder but CHECKSUMS, by its path relative to it, sorted.

    Files are read as streams. Raises OSError for one that cannot be read.
    """
    return {name: _digest(path) for name, path in _files(folder).items()}


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


def altered(folder: Path) -> dict[str, str]:
    """What is not as it was when the checksums were taken: ALTERED, MISSING, ADDED or UNREADABLE by the file's path.

    Empty where all is as it was, and of a recording of before there were checksums.
    """
    if not checksummed(folder):
        manifest = folder / MANIFEST
        return {CHECKSUMS: MISSING} if manifest.exists() and CHECKSUMS.encode() in manifest.read_bytes() else {}
    wanted, sound = parse((folder / CHECKSUMS).read_bytes())
    found = {} if sound else {CHECKSUMS: ALTERED}
    present = _files(folder)
    for name in sorted({*wanted, *present}):
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
    return found


def _files(folder: Path) -> dict[str, str]:
    """Paths by what they are relative to the folder."""
    top = len(f"{folder}/")
    found = [f"{place}/{name}" for place, _, names in os.walk(folder) for name in names]
    return {path[top:]: path for path in sorted(found) if path[top:] != CHECKSUMS}


def _digest(path: str) -> str:
    with Path(path).open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()
