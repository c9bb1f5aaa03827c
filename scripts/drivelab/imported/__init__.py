"""Import results of other tools, and printed results, as the tables of a study.

An importer is one module of this package with `KIND`, `READS` and `read`, see docs/how-to/importer.md.
"""

from __future__ import annotations

import inspect
import re
from collections.abc import Mapping
from functools import cache
from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from drivelab.imported.tables import Recording

IMPORTED = "imported.json"
"""File that marks the results folder of an import."""
_DECLARED = re.compile(r'^KIND = "(.+)"\nREADS = "(.+)"$', re.MULTILINE)


@cache
def importers() -> dict[str, tuple[str, str]]:
    """Return module and meaning of each kind of import; the modules are only read, because they load pandas.

    Raises ValueError for a kind that two modules declare.
    """
    importers: dict[str, tuple[str, str]] = {}
    for path in sorted(Path(__file__).parent.glob("*.py")):
        if declared := _DECLARED.search(path.read_text(encoding="utf-8")):
            if declared[1] in importers:
                raise ValueError(f"{path}: {importers[declared[1]][0]} also imports '{declared[1]}'")
            importers[declared[1]] = (path.stem, declared[2])
    return importers


def read(kind: str, path: Path, drive: str, options: Mapping[str, Any]) -> list[Recording]:
    """Return the recordings in a file or folder; the importer gets those of the `options` that its `read` takes."""
    reader = import_module(f"{__name__}.{importers()[kind][0]}").read
    taken = {name: value for name, value in options.items() if name in inspect.signature(reader).parameters}
    recordings: list[Recording] = reader(path, drive, **taken)
    return recordings
