"""Check that fio's output belongs to its job and to this run.

fio repeats the options of its job in every JSON document. Another program called fio can end with status 0 and leave
valid JSON of another job. A stale output file can look the same.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from datetime import UTC, datetime
from pathlib import Path

from drivelab.fio.document import CellFailed, FioResult, documents, from_document, output_text

_SECTION = re.compile(r"^\[(.*)\]$", re.MULTILINE)
_ROUNDING_S = 1.0


def sections_of_job(directory: Path) -> list[Mapping[str, str]]:
    """Return the options of each job in a folder's job.fio, including `[global]`.

    The result is empty without the file.
    """
    try:
        text = (directory / "job.fio").read_text(encoding="utf-8", errors="replace")
    except OSError:
        return []
    common: dict[str, str] = {}
    jobs: list[Mapping[str, str]] = []
    parts = _SECTION.split(text)
    for section, body in zip(parts[1::2], parts[2::2], strict=True):
        pairs = (line.partition("=") for line in body.splitlines())
        options = {**common, **{name: value for name, equals, value in pairs if equals}}
        if section == "global":
            common = options
        else:
            jobs.append(options)
    return jobs


def foreign_option(result: FioResult, sections: Sequence[Mapping[str, str]]) -> str | None:
    """Return a difference between the options of fio and of the job, or None.

    For a job of several sections fio repeats the options of one section only.
    """
    differences = [
        next((f"fio ran with {name}={value}, but job.fio has {section[name]}" for name, value in result.options.items()
              if _plain(section.get(name, value)) != _plain(value)), None)
        for section in sections
    ]  # fmt: skip
    return differences[0] if differences and all(differences) else None


def require_own(directory: Path, began_s: float) -> None:
    """Raise CellFailed if fio's output is from another job or before `began_s` (Unix).

    One fio process writes the whole file, so the first document is enough. drivelab.fio.result reports unreadable
    output.
    """
    try:
        document = next(documents(output_text(directory)))
        result = from_document(document)
    except CellFailed:
        return
    sections = sections_of_job(directory)
    difference = foreign_option(result, sections) or _missing_option(result, sections)
    if difference is not None:
        raise CellFailed(f"fio's JSON is from another job: {difference}")
    printed_s = document["timestamp_ms"] / 1000
    if printed_s < began_s - _ROUNDING_S:
        raise CellFailed(
            f"fio's JSON is from another run: fio printed it at {_time(printed_s)}, but started at {_time(began_s)}"
        )


def _missing_option(result: FioResult, sections: Sequence[Mapping[str, str]]) -> str | None:
    """Return an option of a one-section job that fio does not repeat, or None."""
    if len(sections) != 1:
        return None
    return next((f"it does not repeat {name}={value}" for name, value in sections[0].items()
                 if name not in result.options), None)  # fmt: skip


def _plain(value: object) -> str:
    """Remove the escapes before colons in device names of a job."""
    return str(value).replace("\\", "").strip()


def _time(unix_s: float) -> str:
    return datetime.fromtimestamp(unix_s, UTC).isoformat(timespec="milliseconds")
