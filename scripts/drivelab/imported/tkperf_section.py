"""Read and check the part of TKperf's XML file that belongs to one test."""

from __future__ import annotations

import json
import math
import re
import xml.etree.ElementTree as ElementTree
from collections import Counter
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from drivelab.core.errors import UserError

_WHOLE = re.compile(r"[0-9]{1,9}")
_SECTOR = re.compile(r"Device Logical Sector Size: (\d+)")
_SECTOR_WITHOUT_512 = 4096


class Section:
    """The element of a test, and the file around it."""

    def __init__(self, path: Path, root: ElementTree.Element, element: ElementTree.Element) -> None:
        self.path, self.root, self.element = path, root, element

    def error(self, reason: str) -> UserError:
        return UserError(f"{self.path}: <{self.element.tag}> {reason}; import a complete result of TKperf's SSD tests")

    def value(self, name: str, default: Any = None, *, of_file: bool = False) -> Any:
        """Return the JSON in the text of an element; `default` if it is missing, empty or null."""
        text = (self.root if of_file else self.element).findtext(name)
        if text is None or not text.strip():
            return default
        try:
            parsed = json.loads(text)
        except (ValueError, RecursionError):  # ValueError also for huge numbers, RecursionError for deep nesting
            raise self.error(f"has no valid JSON in <{name}>") from None
        return default if parsed is None else parsed

    @property
    def about(self) -> str:
        """TKperf's lines about the drive."""
        about = self.value("devinfo", "", of_file=True)
        return about if isinstance(about, str) else ""

    @property
    def sector_bytes(self) -> int | None:
        """Size of the drive's logical sectors, if TKperf recorded it."""
        match = _SECTOR.search(self.about)
        return int(match[1]) if match else None

    def whole(self, name: str, default: int | None = None) -> int:
        """Return a whole number above 0, which TKperf writes as a number or a string."""
        number = self.value(name, default)
        if isinstance(number, str) and _WHOLE.fullmatch(number):
            number = int(number)
        if isinstance(number, bool) or not isinstance(number, int):
            raise self.error(f"has no whole number in <{name}>" + ("" if number is None else f", but {number!r}"))
        if number < 1:
            raise self.error(f"has {number} in <{name}> instead of a number above 0")
        return number

    def number(self, value: Any, where: str) -> float:
        """Return a measured value, which must be a positive number."""
        if isinstance(value, bool) or not isinstance(value, int | float) or not math.isfinite(value) or value <= 0:
            raise self.error(f"has {value!r} for {where} instead of a positive number")
        return float(value)

    def parts(self, value: Any, count: int | None, where: str) -> list[Any]:
        """Return a list of length `count`, or of any length above 0 if `count` is None."""
        if not isinstance(value, list) or not value or len(value) != (count or len(value)):
            raise self.error(f"has {'the wrong number of values for' if count else 'no values for'} {where}")
        return value

    def blocks(self, rows: Mapping[str, Any], known: tuple[int, ...]) -> tuple[int, ...]:
        """Return the block sizes of a test; each of its `rows` must have one value per block size.

        TKperf leaves out 512 bytes, the last of `known`, on a drive with 4096-byte sectors, and never another size.
        """
        lengths = {where: len(row) if isinstance(row, list) else 0 for where, row in rows.items()}
        ((count, _),) = Counter(lengths.values()).most_common(1)
        if count not in (len(known), len(known) - 1):
            raise self.error(
                f"has {count} block sizes in <roundmat> instead of {len(known)}, or {len(known) - 1} without 512 bytes"
            )
        for where, length in lengths.items():
            if length != count:
                raise self.error(f"has {length} values for {where}, but {count} in the other rows of <roundmat>")
        if self.sector_bytes is not None and (self.sector_bytes == _SECTOR_WITHOUT_512) != (count < len(known)):
            raise self.error(
                f"has {count} block sizes in <roundmat>, which does not fit a drive with {self.sector_bytes}-byte "
                "sectors"
            )
        return known[:count]
