"""Write the reference pages to a folder, by default docs/reference."""

from __future__ import annotations

import sys
from pathlib import Path

from drivelab.plan.schema import ROOT
from drivelab.reference.pages import pages


def main(folder: Path) -> None:
    """Write every page, and remove obsolete pages."""
    folder.mkdir(parents=True, exist_ok=True)
    texts = pages()
    for name, text in texts.items():
        (folder / name).write_text(text, encoding="utf-8")
    for old in folder.glob("*.md"):
        if old.name not in texts:
            old.unlink()


if __name__ == "__main__":
    main(Path(sys.argv[1]) if len(sys.argv) > 1 else ROOT / "docs/reference")
