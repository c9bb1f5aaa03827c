"""What a study consists of: configuration, traces, all below its results folder, and Snakemake's records of it."""

from __future__ import annotations

import base64
import os
import re
from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from drivelab.config.restored import OUTSIDE
from drivelab.config.study import PARTS, Study
from drivelab.errors import UserError
from drivelab.recording.places import OWNER, RUN_LOCK, owner, refuse_other_owner
from drivelab.recording.writer import UNFINISHED
from drivelab.stages.consent import CONSENT
from drivelab.trace import catalogue

REQUIREMENTS = "versions/requirements.txt"
ELSEWHERE = OUTSIDE
"""Folder of an archive for what does not lie in the project's folder, by its whole path."""
RECORDS = ".snakemake/metadata"
"""Snakemake's records of how each output came about; without them it would not notice that parameters change."""
_CONFIGURATION = ("config/applications.yaml", "config/virtual_drives.yaml")
_PROTOCOLS = Path("config/protocols")
_TRACES = Path("traces")
_UNSAFE = re.compile(r"[\x00-\x1f\x7f\\\ud800-\udfff]")
"""In a name: what is no text, or not the same in checksums and on other systems."""


@dataclass(frozen=True)
class Item:
    """A file of a study as it was when it was listed, and its name in an archive of it."""

    name: str
    path: Path
    size_bytes: int
    mtime_ns: int
    """Last change, nanoseconds since 1970."""
    inode: int

    @classmethod
    def of(cls, name: str, path: Path) -> Item:
        """The file as it is now; raises FileNotFoundError."""
        status = path.stat()
        return cls(name, path, status.st_size, status.st_mtime_ns, status.st_ino)

    @property
    def state(self) -> tuple[int, int, int]:
        """Another one when the file was changed or replaced; the time of a lock tells of nothing."""
        return self.size_bytes, self.inode, 0 if self.path.name == RUN_LOCK else self.mtime_ns


def changed(path: Path | str) -> UserError:
    """What to raise of a file that was changed, added or removed meanwhile."""
    return UserError(f"{path}: changed while it was archived; wait until the study is at rest")


def contents(study: Study, without: Collection[str] = ()) -> list[Item]:
    """All files of a study in the current folder, sorted by name, but those of the kinds `without`.

    Raises UserError where there is nothing measured, or what another study measured, for a file of the configuration
    that is not there, for what is neither file nor folder, for what goes while it is listed, and for a name that not
    every system can have. Links below the results folder are refused as well: what they lead to may be anything, such
    as what nobody meant to publish.
    """
    try:
        return _contents(study, without)
    except (FileNotFoundError, NotADirectoryError) as error:
        raise changed(error.filename) from None


def refuse_changes(study: Study, items: Sequence[Item], without: Collection[str] = ()) -> None:
    """Raise UserError, naming the first file, unless the files of a study are still those that `contents` told."""
    for one in items:  # first, as without some of them there would be no study to list
        try:
            same = Item.of(one.name, one.path).state == one.state
        except (FileNotFoundError, NotADirectoryError):
            same = False
        if not same:
            raise changed(one.path)
    before = {one.name for one in items}
    now = {one.name: one.path for one in contents(study, without)}
    if differ := sorted(before ^ now.keys()):
        raise changed(now.get(differ[0], Path(differ[0])))


def _contents(study: Study, without: Collection[str]) -> list[Item]:
    refuse_other_owner(study)
    if not any(study.results.glob("recordings/*/*/*/plan.json")) and not any(study.results.glob("drives/*/recordings")):
        raise UserError(f"{study.path}: {study.results} holds no recordings; run the study first")
    traces = () if "traces" in without else (*_traces(study), *_stand_ins(study))
    paths = [*_configuration(study), *traces, *_results(study.results, study.name, without)]
    found = {archived_name(one): one for one in paths}
    found |= {archived_name(one): one for one in _records(found)}
    if Path("requirements.txt").is_file():
        found[REQUIREMENTS] = Path("requirements.txt")
    for path in found.values():
        if _UNSAFE.search(str(path)):
            raise UserError(f"{str(path)!r}: has a backslash or what is no text in its name; rename it")
    return [Item.of(name, path) for name, path in sorted(found.items())]


def archived_name(path: Path) -> str:
    """Name in an archive: the path from the project's folder, or below ELSEWHERE."""
    relative = os.path.relpath(path)
    return relative if not relative.startswith("../") else ELSEWHERE + os.path.abspath(path)  # noqa: PTH100 - no links


def _configuration(study: Study) -> Iterator[Path]:
    protocols = {_PROTOCOLS / f"{one.protocol}.yaml" for one in study.measurements}
    for path in [study.path, study.drives_sheet, *sorted(protocols)]:
        if not path.is_file():
            raise UserError(f"{study.path}: {path} is missing, which the study refers to; put it back")
        yield path
    yield from (Path(one) for one in _CONFIGURATION if Path(one).is_file())


def _traces(study: Study) -> Iterator[Path]:
    for name, source in study.traces.items():
        if source.shipped is not None:
            entry = catalogue.path_of(source.shipped, _TRACES)
            found = [entry, entry.with_suffix(".yaml")]
        else:
            found = [source.file] if source.file else []
        for path in found:
            if not path.is_file():
                raise UserError(f"{study.path}: key 'traces.{name}': {path} is missing; put it back")
            yield path


def _stand_ins(study: Study) -> Iterator[Path]:
    """Traces that stand in for applications on the virtual clock: plans hold their checksums."""
    wanted = {one.application for one in study.measurements if one.application is not None}
    for entry in catalogue.load(_TRACES).values() if wanted else ():
        if entry.application in wanted and entry.path.is_file():
            yield from (_TRACES / entry.path.name, _TRACES / f"{entry.name}.yaml")


def _results(home: Path, study: str, without: Collection[str]) -> Iterator[Path]:
    """All below a results folder, but what other studies have below it; the drives of a fleet have one each."""
    for path in sorted(home.iterdir()):
        if path.name == PARTS and path.is_dir() and not path.is_symlink():
            for part in sorted(path.iterdir()):
                if not part.is_dir() or part.is_symlink():
                    yield from _below(part, without)
                elif owner(part) in (None, study):
                    yield from _results(part, study, without)
        elif path.name not in without:
            yield from _below(path, without)


def _records(names: Collection[str]) -> Iterator[Path]:
    """Snakemake's records of outputs that are archived: named by the output in Base64, long names in folders."""
    tops = sorted(Path(RECORDS).iterdir()) if Path(RECORDS).is_dir() else []
    for path in (one for top in tops for one in _below(top, ())):
        name = "".join(part.removeprefix("@") for part in path.relative_to(RECORDS).parts)
        try:
            output = base64.urlsafe_b64decode(name).decode()
        except ValueError:
            continue  # none of Snakemake's
        if archived_name(Path(output)) in names:
            yield path


def _below(path: Path, without: Collection[str]) -> Iterator[Path]:
    """The file at a path, or all files below it but those of another study. Consent belongs to this host."""
    if path.is_symlink():
        raise UserError(f"{path}: is a link, and an archive has none; put what it leads to in its place, or remove it")
    if path.name == CONSENT:
        return
    if path.is_file():
        yield path
    elif not os.path.lexists(path):
        raise changed(path)
    elif not path.is_dir():
        raise UserError(f"{path}: is no file and no folder, and cannot be archived; remove it")
    elif not (path / OWNER).exists() and not ("unfinished" in without and UNFINISHED.search(path.name)):
        for one in sorted(path.iterdir()):
            yield from _below(one, without)
