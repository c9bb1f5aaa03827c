"""The text of a file that fio wrote, as a document; what is none, or of a form without jobs, is refused by name."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from drivelab.imported.fio_numbers import refused

_NO_NUMBERS = re.compile(r'("(?:[^"\\]|\\.)*")|-?\b(?:nan|inf)\b')
"""A text, which stays as it is, or what C prints for a number that is none: fio writes `"slope" : -nan`."""
_WITHOUT_LATENCY = ("gtod_reduce", "disable_lat")


def document(path: Path) -> Mapping[str, Any]:
    """The one JSON object in a file; raises UserError for anything else, and for what fio writes without jobs."""
    try:
        text = path.read_text(encoding="utf-8-sig", errors="replace").strip()
    except OSError as error:
        raise refused(path, f"cannot be read ({error.strerror})", "check the name") from None
    if not text.startswith("{"):
        line = text.partition("\n")[0][:120] or "nothing"
        raise refused(path, f"begins with '{line}' where JSON should be", "leave the file out, or look what fio said")
    text = _NO_NUMBERS.sub(lambda match: match[1] or "null", text)
    try:
        found, end = json.JSONDecoder().raw_decode(text)
    except ValueError as error:
        raise refused(path, f"is cut off or damaged ({error})", "leave the file out") from None
    except RecursionError:
        raise refused(path, "is nested deeper than anything that fio writes", "leave the file out") from None
    if text[end:].strip():
        raise refused(path, "has more than one result, or text after it", "import a file for each result")
    if "client_stats" in found and "jobs" not in found:
        raise refused(
            path,
            "is of fio's client/server form (client_stats, of --client), which has the sums over machines",
            "run fio on the machine itself, without --client",
        )
    return dict(found)


def refuse_forms(path: Path, jobs: Sequence[Mapping[str, Any]], options: Sequence[Mapping[str, str]]) -> None:
    """Raises UserError for options of fio's reporting under which a result lacks what a cell needs."""
    if any("mixed" in job and "read" not in job for job in jobs):
        raise refused(
            path,
            "was written with unified_rw_reporting=1, which throws reads and writes together",
            "run fio without that option",
        )
    for name in _WITHOUT_LATENCY:
        if any(one.get(name, "0") != "0" for one in options):
            raise refused(
                path, f"was measured with {name}=1, so that no latency is known", "run fio without that option"
            )
