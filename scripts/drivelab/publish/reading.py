"""Read what a site shows of an archive: verified, in bounded memory, and as data only.

An archive is a file of somebody else. Its names, texts and tables are never trusted: every size has a limit, every file
gets a name of ours, and its report runs no script but that of this drivelab.
"""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq

from drivelab.archive.restore import refuse_names
from drivelab.archive.tar import DamagedError, Reader
from drivelab.archive.verify import Verdict, below_top, verify
from drivelab.core.errors import UserError
from drivelab.core.files import open_regular
from drivelab.recording.checksums import CHECKSUMS
from drivelab.report.html import report_policy
from drivelab.tables import io

METADATA = "ro-crate-metadata.json"
TABLES = ("summary", "conditions", "drives")
_TABLE = re.compile(rf"(?P<home>results(?:/[^/]+)*?)/tables/(?P<table>{'|'.join(TABLES)})\.parquet")
_REPORT = re.compile(r"(?P<home>results(?:/[^/]+)*?)/report/index\.html")
_SUMS = re.compile(rf"results/(?:[^/]+/)*?recordings/(?P<recording>[^/]+/[^/]+/[^/]+)/{CHECKSUMS}")
MOST_FILE_BYTES = 64 << 20
"""Size limit of each file that is read."""
MOST_TABLE_BYTES = 128 << 20
"""Size limit of a table when it is unpacked."""
MOST_ROWS = 200_000
"""Row limit of a table."""
MOST_VALUES = 2_000
"""Limit of the values of a drive in a measurement."""
_MOST_HOMES = 2_000
_OF_VALUE = ["drive", "measurement", "cell_label", "metric"]
_EQUIV = re.compile(r"http-equiv", re.IGNORECASE)
_POLICY = 'http-equiv="Content-Security-Policy"'


@dataclass(frozen=True)
class Archived:
    """What a site shows of one archive."""

    digest: str
    """SHA-256 of the archive."""
    size_bytes: int
    name: str
    about: Mapping[str, Any]
    """The root entity of its RO-Crate: title, license, authors."""
    homes: Mapping[str, Mapping[str, pd.DataFrame]]
    """The tables TABLES by results folder: one, or one for each drive of a fleet."""
    fingerprints: Mapping[str, str]
    """SHA-256 of each recording's checksum file, by the recording's name: equal for equal recordings only."""
    report: str
    """The study's report, confined by a policy of ours; empty without one."""
    without_report: str
    """Why there is no report."""


def digest_of(path: Path) -> str:
    """Return the SHA-256 of an archive; raises OSError for anything but a regular file."""
    with open_regular(path) as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def read_archive(path: Path) -> Archived:
    """Verify an archive and read its tables, title and report.

    Raises UserError if a byte was altered, a name leads out of the archive's folder, it holds no results, or a table
    cannot be read.
    """
    verdict = verify(path)
    if verdict.sizes_bytes:  # before damage is reported: such an archive is made on purpose
        refuse_names(path, [verdict.top, *verdict.sizes_bytes])
    if verdict.altered:
        name, what = next(iter(verdict.altered.items()))
        raise UserError(
            f"{path}: was altered ({_shown(name)}: {what}). Nothing of it was published. Run 'drivelab archive verify' "
            "and use another copy."
        )
    tables = {name: match for name in verdict.digests if (match := _TABLE.fullmatch(name))}
    homes = sorted({match["home"] for match in tables.values() if match["table"] == "summary"})
    if not homes:
        raise UserError(f"{path}: holds no table 'summary'. Run the study to its end, then archive it again.")
    if len(homes) > _MOST_HOMES:
        raise UserError(f"{path}: holds {len(homes)} results folders, more than {_MOST_HOMES}. Leave it out.")
    report = min((name for name in verdict.digests if _REPORT.fullmatch(name)), key=lambda name: (len(name), name),
                 default="")  # fmt: skip
    with TemporaryDirectory(prefix="drivelab-publish-") as folder:
        files = _extracted(path, verdict, {METADATA, *tables, *filter(None, [report])}, Path(folder))
        frames: dict[str, dict[str, pd.DataFrame]] = {home: {} for home in homes}
        for name, match in tables.items():
            if match["home"] in frames:
                frames[match["home"]][match["table"]] = _table(path, name, files.get(name), match["table"])
        html, why_not = _confined(files.get(report)) if report else ("", "the archive holds no report")
        about = _root(files.get(METADATA))
    for home, read in frames.items():
        if missing := [name for name in TABLES if name not in read]:
            raise UserError(f"{path}: {home} lacks the table '{missing[0]}'. Run the study again, then archive it.")
        _refuse_values(path, home, read["summary"])
    sums = {match["recording"]: digest for name, digest in verdict.digests.items() if (match := _SUMS.fullmatch(name))}
    return Archived(verdict.digest, path.stat().st_size, verdict.top, about, frames, sums, html, why_not)


def _extracted(path: Path, verdict: Verdict, wanted: set[str], folder: Path) -> dict[str, Path]:
    """Write the wanted members into numbered files; a member above MOST_FILE_BYTES is left out."""
    files: dict[str, Path] = {}
    with open_regular(path) as file:
        for member in Reader(file).members():
            name = below_top(member.info.name)
            if name not in wanted or name in files or verdict.sizes_bytes.get(name, 0) > MOST_FILE_BYTES:
                continue
            digest, target = hashlib.sha256(), folder / str(len(files))
            try:
                with target.open("wb") as out:
                    for chunk in member.chunks:
                        digest.update(chunk)
                        out.write(chunk)
            except DamagedError:
                digest = hashlib.sha256()
            if digest.hexdigest() != verdict.digests.get(name):
                raise UserError(f"{path}: changed while it was read. Publish it again.")
            files[name] = target
    return files


def _table(path: Path, name: str, file: Path | None, table: str) -> pd.DataFrame:
    if file is None:
        raise UserError(f"{path}: {_shown(name)} has more than {MOST_FILE_BYTES >> 20} MiB. Leave this archive out.")
    with _as_refusal(path, name):
        about = pq.ParquetFile(file).metadata
        unpacked = sum(about.row_group(number).total_byte_size for number in range(about.num_row_groups))
        if about.num_rows > MOST_ROWS or unpacked > MOST_TABLE_BYTES:
            raise UserError(f"it has {about.num_rows:,} rows and {unpacked >> 20:,} MiB, too much for a site")
        return io.read(file, table)


def _refuse_values(path: Path, home: str, summary: pd.DataFrame) -> None:
    """Raise UserError for values that no study has: twice, or too many."""
    if summary.duplicated(_OF_VALUE).any():
        raise UserError(f"{path}: {home} holds a value twice. Leave this archive out.")
    most = int(summary.groupby(_OF_VALUE[:2]).size().max()) if len(summary) else 0
    if most > MOST_VALUES:
        raise UserError(f"{path}: {home} holds a measurement with {most:,} values, too many. Leave this archive out.")


@contextmanager
def _as_refusal(path: Path, name: str) -> Iterator[None]:
    """Raise UserError, naming archive and file, for whatever an invalid table causes."""
    try:
        yield
    except (UserError, pa.ArrowException, OSError, ValueError, KeyError, TypeError, AttributeError) as error:
        words = re.sub(r"^.*?/drivelab-publish-[^:]*: ", "", str(error)).partition("; ")[0]
        raise UserError(
            f"{path}: {_shown(name)} cannot be published: {words[:300]}. Restore the archive, run the study with this "
            "drivelab, and archive it again."
        ) from None


def _root(file: Path | None) -> Mapping[str, Any]:
    """Return the root entity of an RO-Crate, or nothing."""
    try:
        graph = json.loads(file.read_bytes())["@graph"] if file else []
        return next((entity for entity in graph if entity.get("@id") == "./"), {})
    except (ValueError, KeyError, TypeError, AttributeError, RecursionError):
        return {}


def _confined(file: Path | None) -> tuple[str, str]:
    """Return a report behind our policy, or why it is left out.

    The policy comes before every byte of the report, so it applies to all of it: no request, no form, and no script but
    that of this drivelab's reports. A refresh is the one thing that a policy cannot forbid: a report with one is left
    out.
    """
    if file is None:
        return "", f"the report has more than {MOST_FILE_BYTES >> 20} MiB"
    try:
        text = file.read_bytes().decode()
    except UnicodeDecodeError:
        return "", "the report is not UTF-8 text"
    if len(_EQUIV.findall(text)) != text.count(_POLICY):
        return "", "the report sets a header itself"
    head = f'<!DOCTYPE html><meta charset="utf-8"><meta {_POLICY} content="{report_policy()}">\n'
    return head + text, ""


def _shown(name: str) -> str:
    return name if name.isascii() and name.isprintable() else ascii(name)
