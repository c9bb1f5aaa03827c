"""The shipped traces: traces/NAME.yaml describes traces/NAME.parquet."""

from __future__ import annotations

import hashlib
from dataclasses import dataclass, fields
from pathlib import Path

from drivelab.core.errors import UserError, suggestion
from drivelab.plan.places import ROOT
from drivelab.plan.yaml_file import load_yaml

TRACES = ROOT / "traces"


@dataclass(frozen=True)
class Entry:
    """One trace of the catalogue."""

    name: str
    title: str
    source: str
    """How and where the trace was made."""
    licence: str
    application: str
    kernel: str
    capacity_bytes: int
    """Capacity of the traced drive."""
    requests: int
    sha256: str
    """Checksum of the Parquet file."""
    path: Path


def load(folder: Path = TRACES) -> dict[str, Entry]:
    """Load all entries of a catalogue by name. Raises UserError, naming the file, for missing or unknown keys."""
    return {path.stem: _entry(path) for path in sorted(folder.glob("*.yaml"))}


def names(folder: Path = TRACES) -> list[str]:
    """Return the names of all traces in a catalogue."""
    return sorted(file.stem for file in folder.glob("*.yaml"))


def entry(name: str, folder: Path = TRACES) -> Entry:
    """Load one entry; raise UserError with the known names if it is missing."""
    path = folder / f"{name}.yaml"
    if path.parent != folder or not path.is_file():
        raise UserError(f"trace '{name}' is not in the catalogue {folder}; {suggestion(name, names(folder))}")
    return _entry(path)


def locate(text: str, folder: Path = TRACES) -> Path:
    """Return a trace's path, given its path or its name in a catalogue.

    Raises UserError when the catalogue has no such trace, its file is missing, or has another checksum.
    """
    path = Path(text)
    if path.suffix or path.exists():
        return path
    shipped = entry(text, folder)
    remedy = f"restore it with 'git checkout -- {shipped.path}'"
    if not shipped.path.is_file():
        raise UserError(f"trace '{text}': {shipped.path} is missing; {remedy}")
    digest = sha256_of(shipped.path)
    if digest != shipped.sha256:
        raise UserError(
            f"trace '{text}': {shipped.path} has SHA-256 {digest[:12]}…, the catalogue says {shipped.sha256[:12]}…; "
            f"{remedy}"
        )
    return shipped.path


def sha256_of(path: Path) -> str:
    """Return a file's SHA-256 in hexadecimal; raise UserError if unreadable."""
    try:
        with path.open("rb") as file:
            return hashlib.file_digest(file, "sha256").hexdigest()
    except OSError as error:
        raise UserError(f"{path}: cannot be read ({error.strerror}); check the name") from None


def _entry(path: Path) -> Entry:
    body = load_yaml(path)
    keys = {field.name for field in fields(Entry)} - {"path"}
    if wrong := sorted(keys ^ body.keys()):
        state = "unknown" if wrong[0] in body else "missing"
        raise UserError(f"{path}: key '{wrong[0]}' is {state}; the keys are {', '.join(sorted(keys))}")
    if body["name"] != path.stem:
        raise UserError(f"{path}: key 'name' is '{body['name']}'; write the file's name, '{path.stem}'")
    return Entry(**body, path=path.with_suffix(".parquet"))
