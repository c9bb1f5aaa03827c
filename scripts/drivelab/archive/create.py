"""Writing a study into an archive, or into a folder that is a crate."""

from __future__ import annotations

import hashlib
import io
import os
from collections.abc import Collection, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import BinaryIO, Protocol

import drivelab
from drivelab.archive.container import CHUNK_BYTES, DamagedError, Watch, Writer
from drivelab.archive.contents import REQUIREMENTS, Item, archived_name, changed, refuse_changes
from drivelab.archive.crate import METADATA, PREVIEW, crate
from drivelab.archive.part import whole_file, whole_folder
from drivelab.archive.preview import preview
from drivelab.archive.publication import Publication
from drivelab.config.study import Study
from drivelab.errors import UserError
from drivelab.files import real_path
from drivelab.recording.checksums import (
    ADDED,
    ALTERED,
    CHECKSUMS,
    MANIFEST,
    MISSING,
    lines_of,
    lost,
    misplaced,
    parse,
)
from drivelab.recording.writer import UNFINISHED

README = "README.txt"
OF_THE_ARCHIVE = (README, METADATA, PREVIEW, CHECKSUMS)
"""Files that an archive has beside those of the study."""
SIDE_FILE = ".sha256"
_VERSIONS = REQUIREMENTS.rpartition("/")[0] + "/"


class Sink(Protocol):
    """What takes files."""

    def add(self, name: str, source: BinaryIO, size: int, mtime_s: int) -> str:
        """Take a file; returns the SHA-256 of its content. Raises DamagedError if it is not of that size."""


@dataclass
class Written:
    """What came of it."""

    files: int = 0
    """Of the study; those that the archive has beside them are counted apart, here and in all that is told of it."""
    own_files: int = 0
    size_bytes: int = 0
    """Of all files of the study, before compression."""
    altered: dict[str, str] = field(default_factory=dict)
    """ALTERED, MISSING or ADDED by the name of a file of a recording that is not as it was measured."""
    digest: str = ""
    """SHA-256 of the archive; of a folder, of its checksums."""


def write_archive(
    study: Study,
    items: Sequence[Item],
    output: Path,
    publication: Publication,
    watch: Watch = lambda size: None,
    without: Collection[str] = (),
) -> Written:
    """Write an archive and `….sha256` beside it, whole or not at all; `items` are the `contents` but for `without`.

    Raises UserError if there is something already, for a place in the study's results, if the disk is full, and if a
    file changes, comes or goes meanwhile.
    """
    refuse_place(output, study)
    refuse_existing(output)
    with whole_file(output) as file:
        sink = Writer(file)
        written = _fill(_Below(sink, study.name), study, items, publication, watch, without)
        written.digest = sink.close()
    output.with_name(output.name + SIDE_FILE).write_text(f"{written.digest}  {output.name}\n")
    return written


def write_folder(
    study: Study,
    items: Sequence[Item],
    output: Path,
    publication: Publication,
    watch: Watch = lambda size: None,
    without: Collection[str] = (),
) -> Written:
    """Write a crate as a folder, whole or not at all; raises UserError as `write_archive`."""
    refuse_place(output, study)
    refuse_existing(output)
    with whole_folder(output) as part:
        written = _fill(_Folder(part), study, items, publication, watch, without)
        written.digest = hashlib.sha256((part / CHECKSUMS).read_bytes()).hexdigest()
    return written


def of_the_study(name: str) -> bool:
    """Whether a file of an archive is one of the study, not one that the archive has for itself."""
    return name not in OF_THE_ARCHIVE and not name.startswith(_VERSIONS)


def refuse_place(output: Path, study: Study) -> None:
    """Raise UserError for a place in the study's own results: the next archive would hold this one."""
    if real_path(output).is_relative_to(real_path(study.results)):
        raise UserError(
            f"{output}: is in the results of the study, {study.results}, and would become a part of them; name a place "
            "elsewhere"
        )


def refuse_existing(output: Path) -> None:
    """Raise UserError if there is something: nothing is ever overwritten."""
    for path in (output, output.with_name(output.name + SIDE_FILE)):
        if os.path.lexists(path):
            raise UserError(f"{path}: is there already, and nothing is overwritten; name another, or remove it")


@dataclass(frozen=True)
class _Below:
    """A folder in an archive: it is unpacked into one folder, not into many files."""

    sink: Sink
    folder: str

    def add(self, name: str, source: BinaryIO, size: int, mtime_s: int) -> str:
        return self.sink.add(f"{self.folder}/{name}", source, size, mtime_s)


@dataclass(frozen=True)
class _Folder:
    folder: Path

    def add(self, name: str, source: BinaryIO, size: int, mtime_s: int) -> str:
        path = self.folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        digest = hashlib.sha256()
        with path.open("xb") as file:
            while chunk := source.read(CHUNK_BYTES):
                digest.update(chunk)
                file.write(chunk)
        if path.stat().st_size != size:
            raise DamagedError(name)
        os.utime(path, (mtime_s, mtime_s))
        return digest.hexdigest()


def _fill(
    sink: Sink, study: Study, items: Sequence[Item], publication: Publication, watch: Watch, without: Collection[str]
) -> Written:
    written, digests, sums, latest_s = Written(), {}, {}, 0
    sizes: dict[str, int] = {}
    with _none_gone(items):
        for item in items:
            with item.path.open("rb") as source:
                status = os.fstat(source.fileno())
                try:
                    digests[item.name] = sink.add(item.name, source, status.st_size, int(status.st_mtime))
                except DamagedError:
                    raise changed(item.path) from None
            if item.path.name == CHECKSUMS:
                sums[item.name.removesuffix(CHECKSUMS)] = item.path.read_bytes()
            sizes[item.name] = status.st_size
            latest_s = max(latest_s, int(status.st_mtime))
            watch(status.st_size)
        written.altered = dict(sorted([*_altered(digests, sums), *_of_manifests(items)]))
        graph = crate(study, items, digests, sizes, publication)
        refuse_changes(study, items, without)  # after the last look at any of them, or they may not fit together
    texts = {README: _readme(study), METADATA: graph, PREVIEW: preview(graph, _first(study))}
    for name, text in texts.items():
        digests[name] = _add(sink, name, text.encode(), latest_s)
    _add(sink, CHECKSUMS, lines_of(digests), latest_s)
    written.files = sum(map(of_the_study, digests))
    written.own_files = len(digests) + 1 - written.files
    written.size_bytes = sum(sizes.values())
    return written


@contextmanager
def _none_gone(items: Sequence[Item]) -> Iterator[None]:
    """Say so of a file of the study that has gone since it was listed."""
    try:
        yield
    except (FileNotFoundError, NotADirectoryError) as error:
        gone = next((one.path for one in items if str(one.path) == str(error.filename)), None)
        if gone is None:  # what is written, not what is read
            raise
        raise changed(gone) from None


def _first(study: Study) -> list[str]:
    """Names of the files to begin with."""
    results = archived_name(study.results)
    report = (f"{results}/report/index.html", f"{results}/report/pts-pages.pdf")
    return [*report, archived_name(study.path), archived_name(study.drives_sheet)]


def _add(sink: Sink, name: str, data: bytes, mtime_s: int) -> str:
    return sink.add(name, io.BytesIO(data), len(data), mtime_s)


def _altered(digests: Mapping[str, str], sums: Mapping[str, bytes]) -> Iterator[tuple[str, str]]:
    """Files of finished recordings that are not as their recordings' checksums have them, or not there."""
    of: dict[str, set[str]] = {prefix: set() for prefix in sums}
    for name in digests:
        if (prefix := _recording_of(name, sums)) is not None:
            of[prefix].add(name)
    for prefix, names in of.items():
        if UNFINISHED.search(prefix.rstrip("/")):
            continue
        wanted, sound = parse(sums[prefix])
        if not sound:
            yield prefix + CHECKSUMS, ALTERED
        expected = {prefix + name: digest for name, digest in wanted.items()}
        for name in {*expected, *names} - {prefix + CHECKSUMS}:
            if digests.get(name) != expected.get(name):
                yield name, MISSING if name not in digests else ADDED if name not in expected else ALTERED


def _of_manifests(items: Sequence[Item]) -> Iterator[tuple[str, str]]:
    """Finished recordings that are in the place of others, and checksums that their recording says there were."""
    for item in items:
        folder = item.path.parent
        if item.path.name == MANIFEST and not UNFINISHED.search(folder.name):
            if (words := misplaced(folder)) is not None:
                yield item.name, words
            if lost(folder):
                yield item.name.removesuffix(MANIFEST) + CHECKSUMS, MISSING


def _recording_of(name: str, prefixes: Collection[str]) -> str | None:
    parts = name.split("/")
    tops = ("/".join(parts[:end]) + "/" for end in range(1, len(parts)))
    return next((one for one in tops if one in prefixes), None)


def _readme(study: Study) -> str:
    return f"""{study.title}

This folder holds the whole of the study '{study.name}': a measurement of storage drives by drivelab. It was packed by
drivelab {drivelab.__version__}. Nothing but common tools is needed to read it.

    sha256sum --check --quiet {CHECKSUMS}      says whether all files are as they were; silence is yes

{PREVIEW}      what is here, for a browser
{METADATA}     the same for programs: RO-Crate 1.1, JSON-LD
{_places(study)}
"""


def _places(study: Study) -> str:
    """Where things are, in words."""
    results = archived_name(study.results)
    rows = {
        archived_name(study.path): "the study: drives, protocols, and what is compared",
        archived_name(study.drives_sheet): "the drives",
        "config/protocols/": "the procedures",
        f"{results}/recordings/": "raw evidence, a folder for each measurement: plan.json, journal.jsonl, the drive's "
        "identity.json, host.json,\n    and for each cell fio's job, JSON output and exit status",
        f"{results}/tables/": "the numbers, Parquet; summary.parquet has the results",
        f"{results}/report/index.html": "the report, one file",
        REQUIREMENTS: "versions of all Python packages",
    }
    return "\n".join(f"{name}\n    {words}" for name, words in rows.items())
