"""Archives of made-up files, also of members that drivelab does not write."""

from __future__ import annotations

import gzip
import hashlib
import io
import tarfile
from collections.abc import Mapping
from pathlib import Path

from drivelab.archive.tar import Writer
from drivelab.recording.checksums import CHECKSUMS, lines_of

MTIME_S = 1_700_000_000


def sha256(data: bytes) -> str:
    return hashlib.sha256(data).hexdigest()


def archived(
    files: Mapping[str, bytes], top: str = "study", *, listed: Mapping[str, bytes] | None = None, mtime_s: int = MTIME_S
) -> bytes:
    """Return an archive of files, with checksums of the `listed` ones, by default of all."""
    file = io.BytesIO()
    writer = Writer(file)
    digests = {name: writer.add(f"{top}/{name}", io.BytesIO(data), len(data), mtime_s) for name, data in files.items()}
    if listed is not None:
        digests = {name: sha256(data) for name, data in listed.items()}
    sums = lines_of(digests)
    writer.add(f"{top}/{CHECKSUMS}", io.BytesIO(sums), len(sums), mtime_s)
    writer.close()
    return file.getvalue()


def archive(folder: Path, files: Mapping[str, bytes], top: str = "study") -> Path:
    path = folder / "archive.tar.gz"
    path.write_bytes(archived(files, top))
    return path


def packed(folder: Path, members: list[tuple[tarfile.TarInfo, bytes]], sums: dict[str, str]) -> Path:
    """Return an archive of arbitrary members, with valid checksums."""
    lines = lines_of(sums)
    plain = tarfile.TarInfo(f"study/{CHECKSUMS}")
    plain.size = len(lines)
    raw = b"".join(info.tobuf() + data + bytes(-len(data) % 512) for info, data in [*members, (plain, lines)])
    return compressed(folder, raw + bytes(1024))


def compressed(folder: Path, tar: bytes) -> Path:
    path = folder / "archive.tar.gz"
    path.write_bytes(gzip.compress(tar))
    return path
