"""Detect changes to a completed recording by the SHA-256 of every file.

The checksum file has the format of `sha256sum`, so `sha256sum --check SHA256SUMS` in the recording's folder gives the
same result, except for added files. Times and owners of files do not matter, so a copy is equally valid.
"""

from __future__ import annotations

import hashlib
import json
import os
import re
import stat
from collections.abc import Mapping
from pathlib import Path

from drivelab.core.files import write_atomic

CHECKSUMS = "SHA256SUMS"
MANIFEST = "recording.json"
"""Says whether checksums were written, so that their loss is detected; the checksums cover it too."""
ALTERED, MISSING, ADDED, UNREADABLE = "altered", "missing", "added", "unreadable"
REPLACED = "replaced by a link"
"""A file became a link: its content is now elsewhere and may change at any time."""
_JOURNAL = "journal.jsonl"
_INTERRUPTED = re.compile(r"\.interrupted-\d+/")
_EMPTY = hashlib.sha256().hexdigest()
_LINE = re.compile(r"([0-9a-f]{64})  (.+)", re.DOTALL)


def digests(folder: Path) -> dict[str, str]:
    """Return the hexadecimal SHA-256 of every file but CHECKSUMS, by relative path.

    Files are read as streams. Raises OSError for an unreadable file.
    """
    return {name: _digest(path) for name, path in _files(folder)[0].items()}


def write_checksums(folder: Path) -> None:
    """Write CHECKSUMS of all current files, atomically."""
    (folder / f".{CHECKSUMS}.part").unlink(missing_ok=True)  # of a killed writer; it is no evidence
    write_atomic(folder / CHECKSUMS, lines_of(digests(folder)))


def lines_of(digests: Mapping[str, str]) -> bytes:
    """Return checksums as `sha256sum` writes them, sorted by name."""
    return b"".join(os.fsencode(f"{digests[name]}  {name}\n") for name in sorted(digests))


def parse(data: bytes) -> tuple[dict[str, str], bool]:
    """Return checksums by name, and whether every line is valid."""
    *lines, rest = os.fsdecode(data).split("\n")
    matches = [_LINE.fullmatch(line) for line in lines]
    return {match[2]: match[1] for match in matches if match is not None}, not rest and None not in matches


def checksummed(folder: Path) -> bool:
    """Return whether a recording has checksums. Recordings of early versions have none."""
    return (folder / CHECKSUMS).exists()


def misplaced(folder: Path) -> str | None:
    """Return a description if a recording lies at another recording's path, or None.

    The path is DRIVE/MEASUREMENT/KEY below a folder `recordings`. Copies elsewhere are valid. None also if the manifest
    is unreadable.
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
    """Return the kinds of changes since the checksums were written, by path.

    Kinds are ALTERED, MISSING, ADDED, UNREADABLE and REPLACED. For a recording at another recording's path the manifest
    is listed. Links are not followed; an added link is listed, whatever its target. Empty folders are listed with a
    slash at the end, except those that a measurement leaves. The result is empty for an unchanged recording, and for
    one of an early version without checksums.
    """
    misplacement = misplaced(folder)
    changes = {} if misplacement is None else {MANIFEST: misplacement}
    if not checksummed(folder):
        return changes | ({CHECKSUMS: MISSING} if lost(folder) else {})
    expected, valid = parse((folder / CHECKSUMS).read_bytes())
    present, others = _files(folder)
    journal = _bytes(folder / _JOURNAL)
    others = {name for name in others if not _left_empty(name, journal)}
    changes |= {name: ADDED if name not in expected else ALTERED for name in others}
    if not valid:
        changes[CHECKSUMS] = ALTERED
    changes |= {name: REPLACED for name in (*others & expected.keys(), CHECKSUMS) if (folder / name).is_symlink()}
    for name in {*expected, *present} - changes.keys():
        if name not in present:
            changes[name] = MISSING
        elif name not in expected:
            changes[name] = ADDED
        else:
            try:
                if _digest(present[name]) != expected[name]:
                    changes[name] = ALTERED
            except OSError:
                changes[name] = UNREADABLE
    return dict(sorted(changes.items()))


def lost(folder: Path) -> bool:
    """Return whether a recording has lost its checksums, according to its manifest."""
    manifest = folder / MANIFEST
    return not checksummed(folder) and manifest.is_file() and CHECKSUMS.encode() in manifest.read_bytes()


def torn(folder: Path) -> str | None:
    """Return what a finished recording lost although no person changed it, or None; only sizes are read.

    After a loss of power, a disk that did not keep its word has files without content, or lacks them. Such a recording
    is not finished, while one with other content is altered. The manifest may be missing: Snakemake removes it.
    """
    if (folder / MANIFEST).is_file() and not _bytes(folder / MANIFEST).strip(b"\0"):
        return f"{MANIFEST} is empty"
    if not checksummed(folder):
        return f"{CHECKSUMS} is missing" if lost(folder) else None
    expected, _ = parse(_bytes(folder / CHECKSUMS))
    if not expected:
        return f"{CHECKSUMS} is empty"
    for name, digest in expected.items():
        try:
            size = (folder / name).lstat().st_size
        except (OSError, ValueError):
            if name == MANIFEST:
                continue
            return f"{name} is missing"
        if size == 0 and digest != _EMPTY:
            return f"{name} is empty"
    return None


def _files(folder: Path) -> tuple[dict[str, str], set[str]]:
    """Return regular files by relative path, and the relative paths of other entries.

    Other entries are links, pipes, devices, and empty folders with a slash at the end. CHECKSUMS is in neither.
    """
    top, regular, others = len(f"{folder}/"), {}, set()
    for parent, folders, names in os.walk(folder):
        for name in (*folders, *names):
            path = f"{parent}/{name}"
            mode = os.lstat(path).st_mode
            if stat.S_ISREG(mode):
                regular[path[top:]] = path
            elif not stat.S_ISDIR(mode):
                others.add(path[top:])
        if not folders and not names and (below := parent[top:]):
            others.add(f"{below}/")
    own = {CHECKSUMS}
    return {name: regular[name] for name in sorted(regular.keys() - own)}, others - own


def _left_empty(name: str, journal: bytes) -> bool:
    """Return whether a measurement leaves this folder empty.

    Checksums do not cover folders. Idle time leaves only a line in the journal. A cell that was killed at once leaves
    not even that.
    """
    return bool(_INTERRUPTED.search(name)) or f'"directory":"{name.removesuffix("/")}"'.encode() in journal


def _bytes(path: Path) -> bytes:
    return path.read_bytes() if path.is_file() else b""


def _digest(path: str) -> str:
    with Path(path).open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()
