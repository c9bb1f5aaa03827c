"""A part of TKperf's XML file, and what is wrong with it."""

from __future__ import annotations

import json
import math
import re
import xml.etree.ElementTree as ElementTree
from collections import Counter
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from drivelab.errors import UserError

_WHOLE = re.compile(r"[0-9]{1,9}")
_SECTOR = re.compile(r"Device Logical Sector Size: (\d+)")
_SECTOR_WITHOUT_512 = 4096


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
        except (ValueError, RecursionError):  # also numbers of thousands of digits, and lists in lists without end
            raise self.error(f"has no JSON in <{name}>") from None
        return default if found is None else found

    @property
    def about(self) -> str:
        """What TKperf noted of the drive, in lines."""
        about = self.value("devinfo", "", of_file=True)
        return about if isinstance(about, str) else ""

    @property
    def sector_bytes(self) -> int | None:
        """Of the drive's logical sectors, where TKperf noted it."""
        match = _SECTOR.search(self.about)
        return int(match[1]) if match else None

    def whole(self, name: str, default: int | None = None) -> int:
        """A whole number above 0, which TKperf writes as a number or as a string."""
        found = self.value(name, default)
        if isinstance(found, str) and _WHOLE.fullmatch(found):
            found = int(found)
        if isinstance(found, bool) or not isinstance(found, int):
            raise self.error(f"has no whole number in <{name}>" + ("" if found is None else f", but {found!r}"))
        if found < 1:
            raise self.error(f"has {found} in <{name}>, where a number above 0 should be")
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

    def blocks(self, rows: Mapping[str, Any], known: tuple[int, ...]) -> tuple[int, ...]:
        """Block sizes of a test, whose `rows` (by what they are of) have a value for each: all of them the same ones.

        TKperf leaves out 512 bytes, the last of `known`, on a drive of 4096-byte sectors, and never any other.
        """
        lengths = {where: len(row) if isinstance(row, list) else 0 for where, row in rows.items()}
        ((count, _),) = Counter(lengths.values()).most_common(1)
        if count not in (len(known), len(known) - 1):
            raise self.error(f"has not {len(known)} block sizes in <roundmat>, nor all but 512 bytes, but {count}")
        for where, length in lengths.items():
            if length != count:
                raise self.error(f"has {length} values for {where}, where the other rows of <roundmat> have {count}")
        if self.sector_bytes is not None and (self.sector_bytes == _SECTOR_WITHOUT_512) != (count < len(known)):
            raise self.error(
                f"has {count} block sizes in <roundmat>, which is not what a drive of {self.sector_bytes}-byte sectors "
                "is tested with"
            )
        return known[:count]
