"""Write the pages of docs/reference."""

from __future__ import annotations

from drivelab.plan.places import SHIPPED
from drivelab.reference.pages import HEADER, pages


def main() -> None:
    """Write every page, and remove obsolete pages."""
    folder, texts = SHIPPED / "docs/reference", pages()
    for name, text in texts.items():
        (folder / name).write_text(text, encoding="utf-8")
    for old in folder.glob("*.md"):
        if old.name not in texts and old.read_text(encoding="utf-8").startswith(HEADER):
            old.unlink()


if __name__ == "__main__":
    main()
