"""Find the results in a file that fio wrote, beside its messages and its output for people."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from drivelab.core.errors import UserError
from drivelab.core.files import read_regular
from drivelab.imported.fio_numbers import RefusalError

MOST_RESULT_BYTES = 64 << 20
"""Size limit of fio's JSON, which is parsed whole: that of 100 jobs with all bins has about 20 MiB."""
_HEAD_BYTES = 64 << 10
_MARK = b'"fio version"'
_START = re.compile(r"^[ \t]*(?=\{)", re.MULTILINE)
_MESSAGE = re.compile(r"^(?:<[^>]*> )?((?:fio|note|warning): .+)$", re.MULTILINE | re.IGNORECASE)
_NO_NUMBERS = re.compile(r'("(?:[^"\\]|\\.)*")|-?\b(?:nan|inf)\b')
"""A JSON string, which stays unchanged, or C's text for an undefined number: fio writes `"slope" : -nan`."""
_SUM_OF_CLIENTS = "All clients"
"""Row that `fio --client` adds to those of the jobs (client.c); it has no options."""
_JSON = "run fio with --output-format=json+ --output=FILE"


def files_of(folder: Path) -> list[Path]:
    """Return the files in and below a folder that are named NAME.json or hold fio's JSON.

    Raises UserError if there are none.
    """
    if files := [file for file in sorted(folder.rglob("*")) if not file.is_dir() and _is_output(file)]:
        return files
    raise UserError(f"{folder}: has no file with fio's JSON; name another folder, or {_JSON}")


def _is_output(file: Path) -> bool:
    if file.suffix == ".json" or not file.is_file():
        return file.suffix == ".json"
    try:
        with file.open("rb") as stream:
            return _MARK in stream.read(_HEAD_BYTES)
    except OSError:
        return False


def documents(path: Path) -> tuple[list[Mapping[str, Any]], list[str]]:
    """Return the results in a file, and fio's messages around them.

    Other text, such as that of `--output-format=normal,json`, repeats the results. Raises RefusalError for a file
    without results, with a damaged one, and with results of several hosts.
    """
    try:
        text = read_regular(path, MOST_RESULT_BYTES).decode("utf-8-sig", errors="replace")
    except OSError as error:
        raise RefusalError(f"cannot be read ({error.strerror})", "check the name") from None
    if not text.strip():
        raise RefusalError("is empty", "leave the file out")
    start = _START.search(text)
    if start is None:
        line = text.strip().partition("\n")[0][:120]
        raise RefusalError(f"has no JSON; it begins with '{line}'", _JSON)
    around = [text[: start.end()]]
    text = _NO_NUMBERS.sub(lambda match: match[1] or "null", text[start.end() :])
    bodies: list[Mapping[str, Any]] = []
    position = 0
    while True:
        try:
            body, end = json.JSONDecoder(object_pairs_hook=_object).raw_decode(text, position)
        except ValueError as error:
            raise RefusalError(f"is truncated or damaged ({error})", "leave the file out") from None
        except RecursionError:
            raise RefusalError("is nested deeper than any output of fio", "leave the file out") from None
        bodies.append(_of_one_host(body))
        start = _START.search(text, end)
        around.append(text[end : start.end() if start else None])
        if start is None:
            return bodies, [message.strip() for part in around for message in _MESSAGE.findall(part)]
        position = start.end()


def _object(pairs: Sequence[tuple[str, Any]]) -> dict[str, Any]:
    """Return a JSON object. An option given twice is there twice: `filename` adds a target, others override."""
    names = [str(value) for name, value in pairs if name == "filename"]
    return {**dict(pairs), **({"filename": ":".join(names)} if names else {})}


def _of_one_host(body: dict[str, Any]) -> dict[str, Any]:
    """Return a document with `jobs`, also that of `fio --client`, which has `client_stats` instead."""
    if "client_stats" not in body or "jobs" in body:
        return body
    jobs = [job for job in body["client_stats"] if job.get("jobname") != _SUM_OF_CLIENTS or "job options" in job]
    hosts = sorted({str(job.get("hostname")) for job in jobs})
    if len(hosts) > 1:
        raise RefusalError(
            f"is of several hosts ({', '.join(hosts)}), whose drives differ",
            f"run fio for each host by itself, such as fio --client={hosts[0]} JOBFILE",
        )
    return {**body, "jobs": jobs}
