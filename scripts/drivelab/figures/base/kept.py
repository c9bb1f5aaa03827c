"""Which figures of a job are still right: those that the same code made from the same tables.

One job draws all figures of a recording, as starting a process for each would take longer than drawing it. So that a
change of one figure draws no others anew, Snakemake leaves the files there (`update`), and each figure says in its
SVG, the file that is written last, what it was made from.
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
    """By figure, a digest of what it is made from: of its code, and of the bytes of its tables.

    `code` has the digest of each figure's code, `tables` the file or files of each table; `needed` tells the tables of
    a figure, of which some may not be among them.
    """
    content = {name: _digest(_bytes([paths] if isinstance(paths, str) else paths)) for name, paths in tables.items()}
    return {
        figure: _digest([digest, *(f"{name} {content[name]}" for name in sorted({*needed(figure)} & content.keys()))])
        for figure, digest in code.items()
    }


def not_right(files: Iterable[Path], made_from: Mapping[str, str]) -> dict[str, Path]:
    """Paths without ending of the figures that must be drawn: of the `files` some are missing or made from others.

    Their SVG files are removed, so that a figure whose drawing is broken off is not taken for a whole one.
    """
    found = {}
    for path in files:
        if not path.exists() or _made_from(path.with_suffix(".svg")) != made_from[path.stem]:
            found[path.stem] = path.with_suffix("")
    for stem in found.values():
        stem.with_suffix(".svg").unlink(missing_ok=True)
    return found


def _made_from(picture: Path) -> str | None:
    try:
        found: str | None = json.loads(values_of(picture.read_text(encoding="utf-8"))).get("made_from")
    except (FileNotFoundError, ValueError):
        return None
    return found


def _bytes(paths: Sequence[str]) -> list[str]:
    return [hashlib.sha256(Path(path).read_bytes()).hexdigest() for path in paths]


def _digest(parts: Iterable[str]) -> str:
    return hashlib.sha256("\n".join(parts).encode()).hexdigest()[:16]
