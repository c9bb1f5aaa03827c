"""Read a JSON file of fio as a document; refuse files of other content or without jobs."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from drivelab.imported.fio_numbers import refused

_NO_NUMBERS = re.compile(r'("(?:[^"\\]|\\.)*")|-?\b(?:nan|inf)\b')
"""A JSON string, which stays unchanged, or C's text for an undefined number: fio writes `"slope" : -nan`."""
_WITHOUT_LATENCY = ("gtod_reduce", "disable_lat")


def document(path: Path) -> Mapping[str, Any]:
    """Return the only JSON object of a file; raises UserError for anything else, and for results without jobs."""
    try:
        text = path.read_text(encoding="utf-8-sig", errors="replace").strip()
    except OSError as error:
        raise refused(path, f"cannot be read ({error.strerror})", "check the name") from None
    if not text.startswith("{"):
        line = text.partition("\n")[0][:120] or "nothing"
        raise refused(path, f"begins with '{line}' instead of JSON", "leave the file out, or check fio's output")
    text = _NO_NUMBERS.sub(lambda match: match[1] or "null", text)
    try:
        body, end = json.JSONDecoder().raw_decode(text)
    except ValueError as error:
        raise refused(path, f"is truncated or damaged ({error})", "leave the file out") from None
    except RecursionError:
        raise refused(path, "is nested deeper than any output of fio", "leave the file out") from None
    if text[end:].strip():
        raise refused(path, "has more than one result, or text after the result", "give each result its own file")
    if "client_stats" in body and "jobs" not in body:
        raise refused(
            path,
            "has fio's client/server form (client_stats, from --client), which holds sums over machines",
            "run fio on the machine itself, without --client",
        )
    return dict(body)


def refuse_forms(path: Path, jobs: Sequence[Mapping[str, Any]], options: Sequence[Mapping[str, str]]) -> None:
    """Raise UserError for reporting options of fio that omit values a cell needs."""
    if any("mixed" in job and "read" not in job for job in jobs):
        raise refused(
            path,
            "was written with unified_rw_reporting=1, which adds reads and writes together",
            "run fio without that option",
        )
    for name in _WITHOUT_LATENCY:
        if any(job_options.get(name, "0") != "0" for job_options in options):
            raise refused(path, f"was measured with {name}=1, so it has no latencies", "run fio without that option")
