"""Find the figures of a job that are up to date: made by the same code from the same tables.

One job draws all figures of a recording, as starting a process for each figure takes longer than drawing it. So that
a change of one figure does not redraw the others, Snakemake keeps the files (`update`), and each SVG, the file written
last, records what it was made from.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable, Iterable, Mapping, Sequence
from pathlib import Path

from drivelab.figures.base.svg import values_of


def origins(
    code: Mapping[str, str], tables: Mapping[str, str | Sequence[str]], needed: Callable[[str], Iterable[str]]
) -> dict[str, str]:
    """Return for each figure a digest of its code and of the bytes of its tables.

    `code` has the digest of each figure's code, `tables` the file or files of each table. `needed` returns the tables
    that a figure may use; tables without files are ignored.
    """
    content = {name: _digest(_bytes([paths] if isinstance(paths, str) else paths)) for name, paths in tables.items()}
    return {
        figure: _digest([digest, *(f"{name} {content[name]}" for name in sorted({*needed(figure)} & content.keys()))])
        for figure, digest in code.items()
    }


def not_right(files: Iterable[Path], made_from: Mapping[str, str]) -> dict[str, Path]:
    """Return the paths, without ending, of the figures whose `files` are missing or outdated.

    Their SVG files are removed, so that an interrupted drawing does not look complete.
    """
    outdated = {}
    for path in files:
        if not path.exists() or _made_from(path.with_suffix(".svg")) != made_from[path.stem]:
            outdated[path.stem] = path.with_suffix("")
    for stem in outdated.values():
        stem.with_suffix(".svg").unlink(missing_ok=True)
    return outdated


def _made_from(picture: Path) -> str | None:
    try:
        origin: str | None = json.loads(values_of(picture.read_text(encoding="utf-8"))).get("made_from")
    except (FileNotFoundError, ValueError):
        return None
    return origin


def _bytes(paths: Sequence[str]) -> list[str]:
    return [hashlib.sha256(Path(path).read_bytes()).hexdigest() for path in paths]


def _digest(parts: Iterable[str]) -> str:
    return hashlib.sha256("\n".join(parts).encode()).hexdigest()[:16]
