"""The little of Markdown that the pages are made of."""

from __future__ import annotations

from collections.abc import Iterable, Sequence


def cell(text: str) -> str:
    """Text as it may stand in a cell of a table."""
    return " ".join(text.split()).replace("|", "\\|")


def code(text: object) -> str:
    return f"`{text}`"


def table(head: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    """A table; columns without any text are left out."""
    body = [[cell(one) for one in row] for row in rows]
    kept = [i for i in range(len(head)) if i == 0 or any(row[i] for row in body)]
    lines = [[head[i] for i in kept], ["---"] * len(kept), *([row[i] for i in kept] for row in body)]
    return (
        "\n".join("| " + " | ".join(line) + " |" for line in lines).replace("| --- ", "|---").replace("--- |", "---|")
    )


def anchor(heading: str) -> str:
    """The name that GitHub gives a heading: lower case, spaces to hyphens, no other punctuation."""
    kept = (one for one in heading.lower().replace(" ", "-") if one.isalnum() or one in "-_")
    return "".join(kept)
