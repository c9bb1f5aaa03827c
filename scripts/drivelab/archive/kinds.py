"""The kinds of files that a restored study has. Whatever else an archive holds is not restored."""

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
"""Study, applications, models of drives, drive sheet; protocols; traces and their catalogue."""
_ELSEWHERE = re.compile(rf"{ELSEWHERE}/.+\.(yaml|yml|tsv|parquet)")
"""The same from outside of the project's folder."""
_RESULTS = re.compile(
    r"results/([^/]+/)*("
    r"(recordings|seals|virtual|logs|tables|traces|figures|report)/.+"
    r"|study\.txt|complete\.txt|outcome\.\d+\.json"
    r")"
)
_DATA = re.compile(
    r"[^.]+|.+\.(json|jsonl|log|txt|csv|fio|iolog|parquet|bin|schedule|state|before|user|flash|svg|png|pdf|html|md)"
)
"""Names of files in results: those of data, and without an ending as stdout and SHA256SUMS."""
_HOST_STATE = re.compile(rf"results/([^/]+/)*({CONSENT}|\.run\.lock|concurrency\.json|(plans|status|virtual)/.+)")
"""What says something of the host at the time, not of the study. It is left out without a word."""


def is_kept(name: str) -> bool:
    """Whether a name in an archive is of a kind that a restored study has; of Snakemake's records see `kept`."""
    parts = name.split("/")
    if any(part.startswith(".") for part in parts):
        return False
    if _RESULTS.fullmatch(name):
        return bool(_DATA.fullmatch(parts[-1])) and parts[-1] != CONSENT
    return bool(_CONFIGURATION.fullmatch(name) or _ELSEWHERE.fullmatch(name))


def kept(names: Iterable[str]) -> set[str]:
    """Names that are restored: files of the known kinds, and Snakemake's records of those among them."""
    names = list(names)
    files = {name for name in names if is_kept(name)}
    return files | {name for name in names if _output_of(name) in files}


def is_host_state(name: str) -> bool:
    """Whether a name that is not restored is one of those that every study has."""
    return bool(_HOST_STATE.fullmatch(name)) or name.startswith(f"{RECORDS}/")


def is_sheet(name: str) -> bool:
    """Whether it may be a drive sheet, which must not say that data may be destroyed."""
    return name.endswith(SHEET_SUFFIX)


def is_plain(name: str) -> bool:
    """Whether a name can be shown: no control characters, none that turn the direction of a text."""
    return name.isprintable()


def clashing(names: Collection[str]) -> list[str]:
    """Names that some file systems take for one, and names of files that others need as folders; sorted."""
    alike: dict[str, set[str]] = defaultdict(set)
    for name in names:
        alike[_folded(name)].add(name)
    folders = {str(folder) for folded in alike for folder in PurePosixPath(folded).parents}
    return sorted(name for folded, of in alike.items() if len(of) > 1 or folded in folders for name in of)


def _folded(name: str) -> str:
    return unicodedata.normalize("NFKC", unicodedata.normalize("NFKC", name).casefold())


def _output_of(name: str) -> str | None:
    """The output that a record of Snakemake's is of; None for a name that is no record."""
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
