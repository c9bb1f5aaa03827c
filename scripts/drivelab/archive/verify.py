"""Verify that an archive is unaltered, and list what is altered."""

from __future__ import annotations

import hashlib
import re
from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path

from drivelab.archive.create import SIDE_FILE, of_the_study
from drivelab.archive.tar import MOST_LIST_BYTES, DamagedError, Member, Reader, Watch, is_file
from drivelab.core.errors import UserError
from drivelab.core.files import open_regular
from drivelab.recording import checksums
from drivelab.recording.checksums import ADDED, ALTERED, CHECKSUMS, MISSING
from drivelab.recording.writer import UNFINISHED

ITSELF = "the archive itself"
"""Stands for the archive as a whole."""
_SHA256 = re.compile(r"[0-9a-f]{64}")


@dataclass
class Verdict:
    """Result of verifying an archive."""

    path: Path
    digest: str = ""
    """SHA-256 of the whole file."""
    compared: bool = False
    """Whether `digest` was compared with a given one."""
    beside: bool = False
    """Whether it was compared with the file beside the archive, which a person who changes the archive can change."""
    altered: dict[str, str] = field(default_factory=dict)
    """Alterations by name of the file below the archive's top folder, or ITSELF."""
    since_measured: dict[str, str] = field(default_factory=dict)
    """Files of recordings that had changed before they were archived, by name: no result counts them."""
    sizes_bytes: dict[str, int] = field(default_factory=dict)
    """Sizes of all readable files by name, including its metadata files."""
    top: str = ""
    """Name of the top folder of the archive."""
    digests: Mapping[str, str] = field(default_factory=dict)
    """Expected SHA-256 by name."""

    @property
    def files(self) -> int:
        """Number of study files."""
        return sum(map(of_the_study, self.digests))

    @property
    def own_files(self) -> int:
        """Number of metadata files, including the checksum file."""
        return len(self.digests) + 1 - self.files


def verify(path: Path, digest: str | None = None, watch: Watch = lambda size: None) -> Verdict:
    """Read an archive once, in bounded memory.

    It is compared with its own checksums, with `digest` if given, and with the file `….sha256` next to it if present;
    and each recording with the checksums from when it was measured. Tables, figures and report are not compared with
    the recordings. Somebody who alters the archive can also alter its checksums, so only a digest kept apart proves it
    unaltered.
    Raises UserError for a folder, and for a `digest` that is not a SHA-256.
    """
    if digest is not None and not _SHA256.fullmatch(digest.lower()):
        raise UserError(f"--digest '{digest}' is not a SHA-256; give the 64 hexadecimal digits that 'create' printed")
    if path.is_dir():
        raise UserError(
            f"{path}: is a folder, not an archive; check an unpacked one by: sha256sum --check --quiet {CHECKSUMS}"
        )
    verdict = _read(path, watch)
    side = path.with_name(path.name + SIDE_FILE)
    kept = [digest.lower()] if digest else []
    if side.exists():
        fields = side.read_text(errors="replace").split()
        if not fields or not _SHA256.fullmatch(fields[0]):
            verdict.altered[str(side)] = ALTERED
        kept += fields[:1]
    verdict.compared, verdict.beside = bool(digest), side.exists()
    if any(expected != verdict.digest for expected in kept):
        verdict.altered.setdefault(ITSELF, "its SHA-256 differs from the one kept apart")
    return verdict


def below_top(name: str) -> str:
    """Return a member's name below the archive's top folder."""
    return name.partition("/")[2]


def _read(path: Path, watch: Watch) -> Verdict:
    verdict, members, tops, data, unreadable = Verdict(path), {}, set(), b"", ""
    sums: dict[str, bytes] = {}
    with open_regular(path) as file:
        reader = Reader(file, watch)
        try:
            for member in reader.members():
                top, _, name = member.info.name.partition("/")
                tops.add(top)
                valid = is_file(member.info) and name not in members
                if name == CHECKSUMS and member.info.size <= MOST_LIST_BYTES:
                    data, digest = _content(member)
                elif (
                    name.endswith(f"/{CHECKSUMS}")
                    and sum(map(len, sums.values())) + member.info.size <= MOST_LIST_BYTES
                ):
                    sums[name.removesuffix(CHECKSUMS)], digest = _content(member)
                else:
                    digest = _digest(member)
                members[name] = digest if valid else None
                verdict.sizes_bytes[name] = member.info.size
        except DamagedError as error:
            unreadable = f"cannot be read behind {len(members)} files ({error}); do not trust this archive"
        verdict.digest = reader.digest()
    verdict.top = min(tops, default="")
    if unreadable:
        verdict.altered = {ITSELF: unreadable}
        return verdict
    verdict.digests, complete = checksums.parse(data)
    verdict.altered = _differences(verdict.digests, members, checked=bool(data) and complete)
    if len(tops) > 1:
        verdict.altered = {ITSELF: f"has {len(tops)} folders at its top instead of one", **verdict.altered}
    if not verdict.altered:
        verdict.since_measured = dict(sorted(_altered_recordings(verdict.digests, sums)))
    return verdict


def _altered_recordings(digests: Mapping[str, str], sums: Mapping[str, bytes]) -> Iterator[tuple[str, str]]:
    """Yield files of finished recordings that are missing or differ from the recording's checksums."""
    by_recording: dict[str, set[str]] = {prefix: set() for prefix in sums}
    for name in digests:
        if (prefix := _recording_of(name, sums)) is not None:
            by_recording[prefix].add(name)
    for prefix, names in by_recording.items():
        if UNFINISHED.search(prefix.rstrip("/")):
            continue
        known, valid = checksums.parse(sums[prefix])
        if not valid:
            yield prefix + CHECKSUMS, ALTERED
        expected = {prefix + name: digest for name, digest in known.items()}
        for name in {*expected, *names} - {prefix + CHECKSUMS}:
            if digests.get(name) != expected.get(name):
                yield name, MISSING if name not in digests else ADDED if name not in expected else ALTERED


def _recording_of(name: str, prefixes: Collection[str]) -> str | None:
    parts = name.split("/")
    tops = ("/".join(parts[:end]) + "/" for end in range(1, len(parts)))
    return next((top for top in tops if top in prefixes), None)


def _content(member: Member) -> tuple[bytes, str]:
    data = b"".join(member.chunks)
    return data, hashlib.sha256(data).hexdigest()


def _digest(member: Member) -> str:
    """Return the SHA-256 of a member's content."""
    digest = hashlib.sha256()
    for chunk in member.chunks:
        digest.update(chunk)
    return digest.hexdigest()


def _differences(expected: Mapping[str, str], members: Mapping[str, str | None], *, checked: bool) -> dict[str, str]:
    """Return alterations by name; `checked` says whether the checksums are complete."""
    altered = {} if checked else {CHECKSUMS: ALTERED if CHECKSUMS in members else MISSING}
    for name in sorted({*expected, *members} - {CHECKSUMS}):
        if name not in members:
            altered[name] = MISSING
        elif name not in expected and members[name] is not None and checked:
            altered[name] = ADDED
        elif members[name] is None or (name in expected and members[name] != expected[name]):
            altered[name] = ALTERED
    return altered
