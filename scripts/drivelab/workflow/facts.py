"""What the analyses need to know of a study, as small files whose names are digests of that and of the code.

An analysis has its file of facts as an input, so changed facts or code are a new file, and Snakemake makes the output
again by its plain rules, also without its records. Snakemake sees no imports of a script.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from functools import cache
from importlib.metadata import version
from pathlib import Path
from typing import Any

from drivelab.core.files import write_atomic
from drivelab.plan.places import SHIPPED

LIBRARIES = ("duckdb", "jinja2", "matplotlib", "numpy", "pandas", "pyarrow", "scipy", "seaborn")
ALWAYS = ("core", "criteria", "plan", "recording", "tables", "workflow.facts")
"""Packages and modules that each analysis uses."""
_LIBRARY = Path(__file__).resolve().parents[1]


class Facts:
    """The files of facts of one study."""

    def __init__(self, results: str, *, in_job: bool = False) -> None:
        """A job on another host (`in_job`) takes the files that exist: it may see another state of the study."""
        self._results, self._in_job = results, in_job
        self._texts: dict[str, str] = {}
        self.paths: list[str] = []
        """All files, as targets: Snakemake makes a missing input only if something else needs it."""

    def of(self, name: str, values: Mapping[str, Any], sources: str) -> str:
        """Return the path of the facts `values` for an analysis whose scripts and packages are `sources`.

        Sources are those of `digest`, separated by spaces. Values must be of JSON.
        """
        if self._in_job and (there := next(Path(self._results).glob(f"facts/{name}-*.json"), None)) is not None:
            return str(there)
        text = json.dumps(values, ensure_ascii=False)
        whole = hashlib.sha256(f"{digest(*sources.split())}\n{text}".encode()).hexdigest()[:16]
        self._texts[f"{name}-{whole}"] = text
        self.paths.append(path := f"{self._results}/facts/{name}-{whole}.json")
        return path

    def text(self, wildcards: Any) -> str:
        """Return the content of the file with the wildcards `analysis` and `digest`."""
        return self._texts[f"{wildcards.analysis}-{wildcards.digest}"]


def write(text: str, path: Path) -> None:
    """Write facts, and remove those of the same analysis before: a file that comes back is newer than its outputs."""
    name = path.name.rpartition("-")[0]
    for old in path.parent.glob(f"{name}-*.json"):
        old.unlink()
    write_atomic(path, text + "\n")


def read(path: Path | str) -> dict[str, Any]:
    """Return the facts of a file that `write` has written."""
    return dict(json.loads(Path(path).read_text(encoding="utf-8")))


def digest(*sources: str) -> str:
    """Return a digest of a script, such as `tables.py`, and packages or modules, such as `collect`, `analysis.verdict`.

    It also covers the packages ALWAYS and the versions of LIBRARIES, and is the same for every version of Python.
    Raises ValueError for an unknown name.
    """
    parts = (*_versions(), *map(_of, (*ALWAYS, *sources)))
    return hashlib.sha256("\n".join(parts).encode()).hexdigest()[:16]


@cache
def _versions() -> tuple[str, ...]:
    return tuple(f"{name} {version(name)}" for name in LIBRARIES)


@cache
def _of(name: str) -> str:
    path = SHIPPED / "scripts" / name if name.endswith(".py") else _LIBRARY.joinpath(*name.split("."))
    files = sorted(path.rglob("*")) if path.is_dir() else [path.with_suffix(".py")]
    if not path.is_dir() and not files[0].is_file():
        raise ValueError(f"drivelab has no package or module '{name}'")
    result = hashlib.sha256()
    for file in files:
        if file.is_file() and file.suffix != ".pyc":
            result.update(f"{file.relative_to(path.parent)}\0".encode() + file.read_bytes())
    return result.hexdigest()
