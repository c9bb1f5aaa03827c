"""What a study consists of: configuration, traces, all below its results folder, and Snakemake's records of it."""

from __future__ import annotations

import base64
import os
from collections.abc import Collection, Iterator
from dataclasses import dataclass
from pathlib import Path

from drivelab.config.study import Study
from drivelab.errors import UserError
from drivelab.recording.writer import UNFINISHED
from drivelab.trace import catalogue

_OWNER = "study.txt"
REQUIREMENTS = "versions/requirements.txt"
ELSEWHERE = "elsewhere"
"""Folder of an archive for what does not lie in the project's folder, by its whole path."""
RECORDS = ".snakemake/metadata"
"""Snakemake's records of how each output came about; without them it would not notice that parameters change."""
_CONFIGURATION = ("config/applications.yaml", "config/virtual_drives.yaml")
_PROTOCOLS = Path("config/protocols")
_TRACES = Path("traces")


@dataclass(frozen=True)
class Item:
    """A file of a study, and its name in an archive of it."""

    name: str
    path: Path


def contents(study: Study, without: Collection[str] = ()) -> list[Item]:
    """All files of a study in the current folder, sorted by name, but those of the kinds `without`.

    Raises UserError where there is nothing measured, for a file of the configuration that is not there, and for what
    is neither file nor folder.
    """
    if not any(study.results.glob("recordings/*/*/*/plan.json")) and not any(study.results.glob("drives/*/recordings")):
        raise UserError(f"{study.path}: {study.results} holds no recordings; run the study first")
    traces = () if "traces" in without else _traces(study)
    paths = [*_configuration(study), *traces, *_results(study, without)]
    found = {archived_name(one): one for one in paths}
    found |= {archived_name(one): one for one in _records(found)}
    if Path("requirements.txt").is_file():
        found[REQUIREMENTS] = Path("requirements.txt")
    return [Item(name, path) for name, path in sorted(found.items())]


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


def _results(study: Study, without: Collection[str]) -> Iterator[Path]:
    """All below the results folder, but what other studies have below it."""
    for path in sorted(study.results.iterdir()):
        if path.is_file():
            yield path
        elif path.name not in without and not (path / _OWNER).exists():
            yield from _below(path, set(), without)


def _records(names: Collection[str]) -> Iterator[Path]:
    """Snakemake's records of outputs that are archived: named by the output in Base64, long names in folders."""
    for path in _below(Path(RECORDS), set(), ()) if Path(RECORDS).is_dir() else ():
        name = "".join(part.removeprefix("@") for part in path.relative_to(RECORDS).parts)
        try:
            output = base64.urlsafe_b64decode(name).decode()
        except ValueError:
            continue  # none of Snakemake's
        if archived_name(Path(output)) in names:
            yield path


def _below(folder: Path, seen: set[str], without: Collection[str]) -> Iterator[Path]:
    """Files below a folder; links are followed, once each."""
    real = os.path.realpath(folder)
    if real in seen:
        return
    for path in sorted(folder.iterdir()):
        if path.is_dir():
            if not ("unfinished" in without and UNFINISHED.search(path.name)):
                yield from _below(path, {*seen, real}, without)
        elif path.is_file():
            yield path
        else:
            raise UserError(f"{path}: is no file and no folder, and cannot be archived; remove it")
