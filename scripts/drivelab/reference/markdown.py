"""Write the Markdown elements of the reference pages."""

from __future__ import annotations

from collections.abc import Iterable, Sequence


def cell(text: str) -> str:
    """Return text escaped for a table cell."""
    return " ".join(text.split()).replace("|", "\\|")


def code(text: object) -> str:
    return f"`{text}`"


def table(head: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    """Return a table without its empty columns."""
    body = [[cell(text) for text in row] for row in rows]
    kept = [i for i in range(len(head)) if i == 0 or any(row[i] for row in body)]
    lines = [[head[i] for i in kept], ["---"] * len(kept), *([row[i] for i in kept] for row in body)]
    return (
        "\n".join("| " + " | ".join(line) + " |" for line in lines).replace("| --- ", "|---").replace("--- |", "---|")
    )


def anchor(heading: str) -> str:
    """Return GitHub's anchor of a heading."""
    kept = (letter for letter in heading.lower().replace(" ", "-") if letter.isalnum() or letter in "-_")
    return "".join(kept)
