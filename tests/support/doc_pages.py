"""The documentation's pages as tests read them: fenced blocks, commands, links, headings."""

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
    """README and everything below docs, as paths from the project's folder."""
    return ["README.md", *sorted(str(one.relative_to(ROOT)) for one in (ROOT / "docs").rglob("*.md"))]


@dataclass(frozen=True)
class Block:
    """A fenced block, with the word of the comment `<!-- test: … -->` just before it."""

    page: str
    line: int
    language: str
    text: str
    directive: str

    @property
    def place(self) -> str:
        return f"{self.page}:{self.line}"

    def commands(self) -> list[str]:
        """Of a block of sh: its lines, those that end with a backslash joined, without comments."""
        lines = self.text.replace("\\\n", " ").splitlines()
        return [one.strip() for one in lines if one.strip() and not one.lstrip().startswith("#")]


@cache
def text(page: str) -> str:
    return (ROOT / page).read_text(encoding="utf-8")


@cache
def blocks(page: str) -> tuple[Block, ...]:
    whole = text(page)
    found = []
    for match in _FENCE.finditer(whole):
        before = _DIRECTIVE.search(whole[: match.start()])
        line = whole.count("\n", 0, match.start()) + 1
        found.append(Block(page, line, match[2], textwrap.dedent(match[3]), before[1] if before else ""))
    assert whole.count("```") == 2 * len(found), f"{page}: a fence of a block does not fit another one"
    return tuple(found)


def prose(page: str) -> str:
    """The page without its fenced blocks."""
    return _FENCE.sub("", text(page))


def mentions(page: str) -> list[str]:
    """Commands that stand within a sentence."""
    return [match[1] for match in _INLINE.finditer(prose(page))]


def links(page: str) -> Iterator[tuple[str, bool]]:
    """Targets of links and of pictures (True)."""
    for match in _LINK.finditer(re.sub(r"`[^`\n]*`", "", prose(page))):
        yield match[2], bool(match[1])


@cache
def anchors(page: str) -> frozenset[str]:
    """Names of the page's headings, as GitHub makes them."""
    found: list[str] = []
    for heading in _HEADING.findall(prose(page)):
        plain = re.sub(r"\[([^\]]*)\]\([^)]*\)", r"\1", heading).replace("`", "").lower().strip()
        name = "".join(one for one in plain.replace(" ", "-") if one.isalnum() or one in "-_")
        found.append(f"{name}-{found.count(name)}" if name in found else name)
    return frozenset(found)
