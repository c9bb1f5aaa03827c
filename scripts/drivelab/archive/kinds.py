"""Decide by name which files of an archive are restored: only kinds of files that a study has."""

from __future__ import annotations

import base64
import re
import unicodedata
from collections import defaultdict
from collections.abc import Collection, Iterable
from pathlib import PurePosixPath

from drivelab.archive.contents import ELSEWHERE, RECORDS
from drivelab.config.restored import SHEET_SUFFIX
from drivelab.stages.consent import CONSENT

_CONFIGURATION = re.compile(
    r"config/[^/]+\.(yaml|yml|tsv)|config/protocols/[^/]+\.yaml|traces/(.+/)?[^/]+\.(yaml|parquet)"
)
"""Study, applications, drive models, drive sheet; protocols; traces and their catalogue."""
_ELSEWHERE = re.compile(rf"{ELSEWHERE}/.+\.(yaml|yml|tsv|parquet)")
"""The same, from outside the project's folder."""
_RESULTS = re.compile(
    r"results/([^/]+/)*("
    r"(recordings|seals|virtual|logs|tables|traces|figures|report)/.+"
    r"|study\.txt|complete\.txt|outcome\.\d+\.json"
    r")"
)
_DATA = re.compile(
    r"[^.]+|.+\.(json|jsonl|log|txt|csv|fio|iolog|parquet|bin|schedule|state|before|user|flash|svg|png|pdf|html|md)"
)
"""Names of files in results: data, and names without a suffix, such as stdout and SHA256SUMS."""
_HOST_STATE = re.compile(rf"results/([^/]+/)*({CONSENT}|\.run\.lock|concurrency\.json|(plans|status|virtual)/.+)")
"""State of the host at the time, not of the study. It is left out silently."""


def is_kept(name: str) -> bool:
    """Whether a name in an archive is of a kind to restore; see `kept` for Snakemake's records."""
    parts = name.split("/")
    if any(part.startswith(".") for part in parts):
        return False
    if _RESULTS.fullmatch(name):
        return bool(_DATA.fullmatch(parts[-1])) and parts[-1] != CONSENT
    return bool(_CONFIGURATION.fullmatch(name) or _ELSEWHERE.fullmatch(name))


def kept(names: Iterable[str]) -> set[str]:
    """Return the names to restore: files of the known kinds, and Snakemake's records of these files."""
    names = list(names)
    files = {name for name in names if is_kept(name)}
    return files | {name for name in names if _output_of(name) in files}


def is_host_state(name: str) -> bool:
    """Whether a name that is not restored is normal for a study."""
    return bool(_HOST_STATE.fullmatch(name)) or name.startswith(f"{RECORDS}/")


def is_sheet(name: str) -> bool:
    """Whether a name may be a drive sheet, in which no drive may stay marked as destructive."""
    return name.endswith(SHEET_SUFFIX)


def is_plain(name: str) -> bool:
    """Whether a name is safe to print: no control characters, none that change the text direction."""
    return name.isprintable()


def clashing(names: Collection[str]) -> list[str]:
    """Return, sorted, names that some file systems treat as equal, and files that others need as folders."""
    alike: dict[str, set[str]] = defaultdict(set)
    for name in names:
        alike[_folded(name)].add(name)
    folders = {str(folder) for folded in alike for folder in PurePosixPath(folded).parents}
    return sorted(
        name for folded, originals in alike.items() if len(originals) > 1 or folded in folders for name in originals
    )


def _folded(name: str) -> str:
    return unicodedata.normalize("NFKC", unicodedata.normalize("NFKC", name).casefold())


def _output_of(name: str) -> str | None:
    """Return the output that a record of Snakemake describes; None for other names."""
    if not name.startswith(f"{RECORDS}/"):
        return None
    *folders, last = name.removeprefix(f"{RECORDS}/").split("/")
    if last.startswith("@") or not all(folder.startswith("@") for folder in folders):
        return None
    text = "".join(folder.removeprefix("@") for folder in folders) + last
    try:
        return base64.b64decode(text, altchars=b"-_", validate=True).decode()
    except ValueError:
        return None
