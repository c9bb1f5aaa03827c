"""A part of TKperf's XML file, and what is wrong with it."""

from __future__ import annotations

import json
import math
import xml.etree.ElementTree as ElementTree
from pathlib import Path
from typing import Any

from drivelab.errors import UserError


class Section:
    """The element of a test, and the file around it."""

    def __init__(self, path: Path, root: ElementTree.Element, element: ElementTree.Element) -> None:
        self.path, self.root, self.element = path, root, element

    def error(self, reason: str) -> UserError:
        return UserError(f"{self.path}: <{self.element.tag}> {reason}; import a whole result of TKperf's tests of SSDs")

    def value(self, name: str, default: Any = None, *, of_file: bool = False) -> Any:
        """JSON in the text of an element; `default` where it is missing, empty or null."""
        text = (self.root if of_file else self.element).findtext(name)
        if text is None or not text.strip():
            return default
        try:
            found = json.loads(text)
        except json.JSONDecodeError:
            raise self.error(f"has no JSON in <{name}>") from None
        return default if found is None else found

    def whole(self, name: str) -> int:
        """A whole number above 0, which TKperf writes as a number or as a string."""
        try:
            found = int(self.value(name))
        except (TypeError, ValueError):
            raise self.error(f"has no number in <{name}>") from None
        if found < 1:
            raise self.error(f"has {found} in <{name}>")
        return found

    def number(self, value: Any, where: str) -> float:
        """A measured value, which is a positive number."""
        if isinstance(value, bool) or not isinstance(value, int | float) or not math.isfinite(value) or value <= 0:
            raise self.error(f"has {value!r} for {where}, which no drive can do")
        return float(value)

    def parts(self, value: Any, count: int | None, where: str) -> list[Any]:
        """A list of a length, of any but 0 where `count` is None."""
        if not isinstance(value, list) or not value or len(value) != (count or len(value)):
            raise self.error(f"has {'another number of values than' if count else 'no values for'} {where}")
        return value

    def blocks(self, row: Any, known: tuple[int, ...]) -> tuple[int, ...]:
        """Block sizes of a row; TKperf leaves out 512 bytes on a drive of 4096-byte sectors."""
        if not isinstance(row, list) or len(row) not in (len(known), len(known) - 1):
            raise self.error(f"has not {len(known)} block sizes in <roundmat>")
        return known[: len(row)]
