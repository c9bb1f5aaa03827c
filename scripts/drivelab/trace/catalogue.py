"""The shipped traces: traces/NAME.yaml says what traces/NAME.parquet is, and its checksum."""

from __future__ import annotations

import hashlib
from dataclasses import dataclass, fields
from pathlib import Path

from drivelab.config.schema import ROOT
from drivelab.config.yaml_file import load_yaml
from drivelab.errors import UserError

TRACES = ROOT / "traces"


@dataclass(frozen=True)
class Entry:
    """One trace of the catalogue."""

    name: str
    title: str
    source: str
    """How the trace was made and where."""
    licence: str
    application: str
    kernel: str
    capacity_bytes: int
    """Of the drive that the trace was captured on."""
    requests: int
    sha256: str
    """Of the Parquet file."""
    path: Path


def load(folder: Path = TRACES) -> dict[str, Entry]:
    """All entries of a catalogue by name; raises UserError naming the file when one lacks a key or has others."""
    return {path.stem: _entry(path) for path in sorted(folder.glob("*.yaml"))}


def entry(name: str, folder: Path = TRACES) -> Entry:
    """One entry; raises UserError listing the known names when there is none."""
    path = folder / f"{name}.yaml"
    if path.parent != folder or not path.is_file():
        known = ", ".join(sorted(p.stem for p in folder.glob("*.yaml"))) or "nothing"
        raise UserError(f"trace '{name}': the catalogue in {folder} has no such trace; it has: {known}")
    return _entry(path)


def path_of(name: str, folder: Path = TRACES) -> Path:
    """Parquet file of a trace of the catalogue, without a look at its content; raises UserError as `entry`."""
    return entry(name, folder).path


def verified_path(name: str, folder: Path = TRACES) -> Path:
    """Parquet file of a trace of the catalogue, after its checksum was verified.

    Raises UserError when the file is missing or is not the one that the catalogue describes.
    """
    found = entry(name, folder)
    if not found.path.is_file():
        raise UserError(f"trace '{name}': {found.path} is missing; restore it with 'git checkout -- {found.path}'")
    digest = sha256_of(found.path)
    if digest != found.sha256:
        raise UserError(
            f"trace '{name}': {found.path} has SHA-256 {digest[:12]}…, the catalogue says {found.sha256[:12]}…; "
            f"restore it with 'git checkout -- {found.path}'"
        )
    return found.path


def locate(text: str) -> Path:
    """A trace by its path, or by its name in the catalogue; raises UserError as `verified_path`."""
    path = Path(text)
    return path if path.suffix or path.exists() else verified_path(text)


def sha256_of(path: Path) -> str:
    """SHA-256 of a file in hexadecimal; raises UserError when it cannot be read."""
    try:
        with path.open("rb") as file:
            return hashlib.file_digest(file, "sha256").hexdigest()
    except OSError as error:
        raise UserError(f"{path}: cannot be read ({error.strerror}); check the name") from None


def _entry(path: Path) -> Entry:
    body = load_yaml(path)
    keys = {one.name for one in fields(Entry)} - {"path"}
    if wrong := sorted(keys ^ body.keys()):
        state = "unknown" if wrong[0] in body else "missing"
        raise UserError(f"{path}: key '{wrong[0]}' is {state}; the keys are {', '.join(sorted(keys))}")
    if body["name"] != path.stem:
        raise UserError(f"{path}: key 'name' is '{body['name']}'; it must be the file's name, '{path.stem}'")
    return Entry(**body, path=path.with_suffix(".parquet"))
