"""Read the pages of the docs: fenced blocks, commands, links, headings."""

from __future__ import annotations

import re
import textwrap
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
_FENCE = re.compile(r"^( *)```(\S*)[^\n]*\n(.*?)^\1```$", re.M | re.S)
_DIRECTIVE = re.compile(r"<!-- test: (.*?) -->\s*\Z")
_INLINE = re.compile(r"(?<!`)`((?:\./)?drivelab [^`\n]+)`(?!`)")
_LINK = re.compile(r"(!?)\[[^\]]*\]\(([^)\s]+)\)")
_HEADING = re.compile(r"^#+ +(.*)$", re.M)


def pages() -> list[str]:
    """Return the pages of the project's folder and all below docs, relative to the project's folder."""
    return [
        "README.md",
        "CONTRIBUTING.md",
        "SECURITY.md",
        *sorted(str(path.relative_to(ROOT)) for path in (ROOT / "docs").rglob("*.md")),
    ]


@dataclass(frozen=True)
class Block:
    """A fenced block, with the text of the comment `<!-- test: … -->` directly before it."""

    page: str
    line: int
    language: str
    text: str
    directive: str

    @property
    def place(self) -> str:
        return f"{self.page}:{self.line}"

    def commands(self) -> list[str]:
        """Return the lines of a block of sh, with continuation lines joined and without comments."""
        lines = self.text.replace("\\\n", " ").splitlines()
        return [line.strip() for line in lines if line.strip() and not line.lstrip().startswith("#")]


@cache
def text(page: str) -> str:
    return (ROOT / page).read_text(encoding="utf-8")


@cache
def blocks(page: str) -> tuple[Block, ...]:
    page_text = text(page)
    result = []
    for match in _FENCE.finditer(page_text):
        before = _DIRECTIVE.search(page_text[: match.start()])
        line = page_text.count("\n", 0, match.start()) + 1
        result.append(Block(page, line, match[2], textwrap.dedent(match[3]), before[1] if before else ""))
    assert page_text.count("```") == 2 * len(result), f"{page}: a fence has no counterpart"
    return tuple(result)


def prose(page: str) -> str:
    """Return the page without its fenced blocks."""
    return _FENCE.sub("", text(page))


def mentions(page: str) -> list[str]:
    """Return the commands within sentences."""
    return [match[1] for match in _INLINE.finditer(prose(page))]


def links(page: str) -> Iterator[tuple[str, bool]]:
    """Yield the targets of links, and of pictures (True)."""
    for match in _LINK.finditer(re.sub(r"`[^`\n]*`", "", prose(page))):
        yield match[2], bool(match[1])


@cache
def anchors(page: str) -> frozenset[str]:
    """Return the anchors of the page's headings, as GitHub makes them."""
    found: list[str] = []
    for heading in _HEADING.findall(prose(page)):
        plain = re.sub(r"\[([^\]]*)\]\([^)]*\)", r"\1", heading).replace("`", "").lower().strip()
        name = "".join(character for character in plain.replace(" ", "-") if character.isalnum() or character in "-_")
        found.append(f"{name}-{found.count(name)}" if name in found else name)
    return frozenset(found)
