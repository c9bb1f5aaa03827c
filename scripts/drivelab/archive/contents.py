"""List the files of a study: configuration, traces, and its results folder."""

from __future__ import annotations

import os
import re
from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from drivelab.core.errors import UserError
from drivelab.plan.places import OUTSIDE
from drivelab.plan.study import Study
from drivelab.recording.folders import OWNER, RUN_LOCK, refuse_other_owner
from drivelab.recording.writer import UNFINISHED
from drivelab.run.consent import CONSENT
from drivelab.tables import datasets
from drivelab.trace import trace_catalogue

REQUIREMENTS = "versions/requirements.txt"
ELSEWHERE = OUTSIDE
"""Folder of an archive for files from outside the project's folder, by their whole path."""
_CONFIGURATION = ("config/applications.yaml", "config/virtual_drives.yaml")
_PROTOCOLS = Path("config/protocols")
_TRACES = Path("traces")
_OF_THIS_HOST = (CONSENT, RUN_LOCK, "snakemake.log", "snakemake_existing.log")
"""Files that are never archived: consent, and what names a user, process or folder of this host."""
_UNSAFE = re.compile(r"[\x00-\x1f\x7f\\\ud800-\udfff]")
"""Characters in names that are not text, or that differ in checksums or on other systems."""


@dataclass(frozen=True)
class Item:
    """A file of a study with its state when it was listed, and its name in the archive."""

    name: str
    path: Path
    size_bytes: int
    mtime_ns: int
    """Last change, nanoseconds since 1970."""
    inode: int

    @classmethod
    def of(cls, name: str, path: Path) -> Item:
        """Return the file in its present state; raises FileNotFoundError."""
        status = path.stat()
        return cls(name, path, status.st_size, status.st_mtime_ns, status.st_ino)

    @property
    def state(self) -> tuple[int, int, int]:
        """Value that changes when the file is changed or replaced."""
        return self.size_bytes, self.inode, self.mtime_ns


def changed(path: Path | str) -> UserError:
    """Return the error for a file that was changed, added or removed during archiving."""
    return UserError(f"{path}: changed while it was archived; wait until nothing works on the study")


def contents(study: Study, without: Collection[str] = ()) -> list[Item]:
    """Return all files of a study in the current folder, sorted by name, without the kinds `without`.

    Raises UserError if the study has no recordings, or those of another study; if a file of the configuration is
    missing; for anything that is neither file nor folder; for a file that disappears meanwhile; and for a name that is
    invalid on other systems. Links below the results folder are refused too, because they could lead to files that
    must not be published.
    """
    try:
        return _contents(study, without)
    except (FileNotFoundError, NotADirectoryError) as error:
        raise changed(error.filename) from None


def refuse_changes(study: Study, items: Sequence[Item], without: Collection[str] = ()) -> None:
    """Raise UserError, naming the first difference, unless the study's files still equal `items`."""
    for item in items:  # before `contents`, which needs some of these files
        try:
            same = Item.of(item.name, item.path).state == item.state
        except (FileNotFoundError, NotADirectoryError):
            same = False
        if not same:
            raise changed(item.path)
    before = {item.name for item in items}
    now = {item.name: item.path for item in contents(study, without)}
    if differ := sorted(before ^ now.keys()):
        raise changed(now.get(differ[0], Path(differ[0])))


def _contents(study: Study, without: Collection[str]) -> list[Item]:
    refuse_other_owner(study)
    if not any(study.results.glob("recordings/*/*/*/plan.json")):
        raise UserError(f"{study.path}: {study.results} holds no recordings; run the study first")
    traces = () if "traces" in without else (*_traces(study), *_stand_ins(study))
    paths = [*_configuration(study), *traces, *_results(study.results, without)]
    by_name = {archived_name(path): path for path in paths}
    if Path("requirements.txt").is_file():
        by_name[REQUIREMENTS] = Path("requirements.txt")
    for path in by_name.values():
        if _UNSAFE.search(str(path)):
            raise UserError(f"{str(path)!r}: has a backslash or an invalid character in its name; rename it")
    return [Item.of(name, path) for name, path in sorted(by_name.items())]


def archived_name(path: Path) -> str:
    """Return the name in an archive: the path from the project's folder, or below ELSEWHERE."""
    relative = os.path.relpath(path)
    return relative if not relative.startswith("../") else ELSEWHERE + os.path.abspath(path)  # noqa: PTH100 - no links


def _configuration(study: Study) -> Iterator[Path]:
    protocols = {_PROTOCOLS / f"{measurement.protocol}.yaml" for measurement in study.measurements}
    for path in [study.path, study.drives_sheet, *sorted(protocols)]:
        if not path.is_file():
            raise UserError(f"{study.path}: {path} is missing, but the study uses it; restore the file")
        yield path
    yield from (Path(name) for name in _CONFIGURATION if Path(name).is_file())


def _traces(study: Study) -> Iterator[Path]:
    for name, source in study.traces.items():
        if source.shipped is not None:
            entry = trace_catalogue.entry(source.shipped, _TRACES).path
            files = [entry, entry.with_suffix(".yaml")]
        else:
            files = [source.file] if source.file else []
        for path in files:
            if not path.is_file():
                raise UserError(f"{study.path}: key 'traces.{name}': {path} is missing; restore the file")
            yield path


def _stand_ins(study: Study) -> Iterator[Path]:
    """Yield traces that replace applications on the virtual clock: plans hold their checksums."""
    applications = {row.application for row in study.measurements if row.application is not None}
    for entry in trace_catalogue.load(_TRACES).values() if applications else ():
        if entry.application in applications and entry.path.is_file():
            yield from (_TRACES / entry.path.name, _TRACES / f"{entry.name}.yaml")


def _results(results: Path, without: Collection[str]) -> Iterator[Path]:
    """Yield all files below a results folder except those of other studies, and datasets, which repeat the tables."""
    for path in sorted(results.iterdir()):
        if path.name not in {*without, datasets.FOLDER}:
            yield from _below(path, without)


def _below(path: Path, without: Collection[str]) -> Iterator[Path]:
    """Yield the file at a path, or all files below it, without other studies and what is only for this host."""
    if path.is_symlink():
        raise UserError(f"{path}: is a link, and an archive cannot hold links; replace it by its target, or remove it")
    if path.name in _OF_THIS_HOST:
        return
    if path.is_file():
        yield path
    elif not os.path.lexists(path):
        raise changed(path)
    elif not path.is_dir():
        raise UserError(f"{path}: is neither a file nor a folder, and cannot be archived; remove it")
    elif not (path / OWNER).exists() and not ("unfinished" in without and UNFINISHED.search(path.name)):
        for entry in sorted(path.iterdir()):
            yield from _below(entry, without)
