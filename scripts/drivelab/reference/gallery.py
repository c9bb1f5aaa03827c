"""Show every kind of figure on a page of docs/reference.

`python -m drivelab.reference.gallery RESULTS...` takes new pictures from results folders.
"""

from __future__ import annotations

import re
import sys
from collections.abc import Sequence
from pathlib import Path

from PIL import Image  # matplotlib draws PNG files with it

from drivelab.core.errors import UserError
from drivelab.figures.registry import ALL
from drivelab.plan.places import SHIPPED

PICTURES = SHIPPED / "docs/images/figures"
_COVERAGE = SHIPPED / "docs/coverage.md"
_WIDTH_PX, _COLOURS = 860, 48


def text() -> str:
    """Return the page: title, caption, picture and origin of each figure, in the order of reports."""
    known = _known_from()
    parts = [
        "# Figures\n\nEvery kind of figure, with a picture of virtual drives at demo scale. The name is that of its "
        "files in `results/…/figures`. What they say: [report.md](../report.md#a-page)."
    ]
    for name, kind in ALL.items():
        origin = f" Known from: {'; '.join(known[name])}." if name in known else ""
        picture = f"![{kind.title}](../images/figures/{name}.png)"
        parts.append(f"## {kind.title}: {name}\n\n{kind.caption}{origin}\n\n{picture}")
    return "\n\n".join(parts)


def _known_from() -> dict[str, dict[str, set[str]]]:
    """Return the documents that ask for a figure, each with the protocols that draw it, by docs/coverage.md."""
    known: dict[str, dict[str, set[str]]] = {}
    document = ""
    for line in _COVERAGE.read_text(encoding="utf-8").splitlines():
        if line.startswith("## "):
            document = line.removeprefix("## ")
        words = re.findall(r"`([a-z0-9_-]+)`", line) if line.startswith("|") else []
        for name in words:
            if name in ALL:
                known.setdefault(name, {}).setdefault(document, set()).update(word for word in words if word not in ALL)
    return known


def collect(results: Sequence[Path]) -> None:
    """Copy pictures from results folders, smaller and with few colours.

    A kind that they lack keeps its picture; raises UserError if it has none. Protocols of docs/coverage.md are
    preferred.
    """
    PICTURES.mkdir(parents=True, exist_ok=True)
    known = _known_from()
    for name in ALL:
        paths = [path for folder in results for path in sorted(folder.glob(f"figures/**/{name}.png"))]
        wanted = set().union(*known.get(name, {}).values())
        best = [path for path in paths if wanted & {part.partition(".")[0] for part in path.parts}] or paths
        if best:
            _shrink(best[0], PICTURES / f"{name}.png")
    there = {path.stem for path in PICTURES.glob("*.png")}
    if missing := ALL.keys() - there:
        raise UserError(f"no picture of {', '.join(sorted(missing))}; name results that have one")
    for name in there - ALL.keys():
        (PICTURES / f"{name}.png").unlink()


def _shrink(source: Path, target: Path) -> None:
    with Image.open(source) as picture:
        height = round(picture.height * _WIDTH_PX / picture.width)
        small = picture.convert("RGB").resize((_WIDTH_PX, height), Image.Resampling.LANCZOS)
    small.quantize(_COLOURS).save(target, optimize=True)


if __name__ == "__main__":
    collect([Path(argument) for argument in sys.argv[1:]])
