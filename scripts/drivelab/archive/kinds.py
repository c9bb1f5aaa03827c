"""Decide by name which files of an archive are restored: only kinds of files that a study has."""

from __future__ import annotations

import re
import unicodedata
from collections import defaultdict
from collections.abc import Collection
from pathlib import PurePosixPath

from drivelab.archive.contents import ELSEWHERE
from drivelab.run.consent import CONSENT

_CONFIGURATION = re.compile(
    r"config/[^/]+\.(yaml|yml|tsv)|config/protocols/[^/]+\.yaml|traces/(.+/)?[^/]+\.(yaml|parquet)"
)
"""Study, applications, drive models, drive sheet; protocols; traces and their catalogue."""
_ELSEWHERE = re.compile(rf"{ELSEWHERE}/.+\.(yaml|yml|tsv|parquet)")
"""The same, from outside the project's folder."""
_RESULTS = re.compile(
    r"results/([^/]+/)*("
    r"(recordings|seals|virtual|logs|traces)/.+"
    r"|study\.txt|(looks|judged)\.json"
    r")"
)
_COMPUTED = ("tables", "dataset", "figures", "report", "facts")
_FOLDERS = (*_COMPUTED, "recordings", "seals", "virtual", "logs", "traces")
_DATA = re.compile(
    r"[^.]+|.+\.(json|jsonl|log|txt|csv|fio|iolog|parquet|bin|schedule|state|before|user|flash|svg|png|pdf|html|md)"
)
"""Names of files in results: data, and names without a suffix, such as stdout and SHA256SUMS."""
_HOST_STATE = re.compile(
    rf"results/([^/]+/)*({CONSENT}|\.run\.lock|concurrency\.json|(plans|status|virtual|logs/benchmarks)/.+)"
)
"""State of the host at the time, not of the study. It is left out silently."""


def is_computed(name: str) -> bool:
    """Whether a name is that of a table, figure or report, which this drivelab computes again from the recordings.

    Those of an archive are somebody else's word: they may have any number, and no checksum ties them to a recording.
    """
    parts = name.split("/")
    first = next((folder for folder in parts[1:-1] if folder in _FOLDERS), None)
    return parts[0] == "results" and first in _COMPUTED


def is_kept(name: str) -> bool:
    """Whether a name in an archive is of a kind to restore."""
    parts = name.split("/")
    if any(part.startswith(".") for part in parts) or is_computed(name):
        return False
    if _RESULTS.fullmatch(name):
        return bool(_DATA.fullmatch(parts[-1])) and parts[-1] != CONSENT
    return bool(_CONFIGURATION.fullmatch(name) or _ELSEWHERE.fullmatch(name))


def is_host_state(name: str) -> bool:
    """Whether a name that is not restored is normal for a study."""
    return bool(_HOST_STATE.fullmatch(name)) or name.startswith(".snakemake/metadata/")  # archives of drivelab 0.1


def clashing(names: Collection[str]) -> list[str]:
    """Return, sorted, names that some file systems treat as equal, and files that others need as folders."""
    alike: dict[str, set[str]] = defaultdict(set)
    for name in names:
        alike[_folded(name)].add(name)
    parents = (str(folder) for folded in alike for folder in PurePosixPath(folded).parents)
    folders = {folder for folder in parents if folder in alike}  # not all folders: there may be millions
    return sorted(
        name for folded, originals in alike.items() if len(originals) > 1 or folded in folders for name in originals
    )


def _folded(name: str) -> str:
    return unicodedata.normalize("NFKC", unicodedata.normalize("NFKC", name).casefold())
