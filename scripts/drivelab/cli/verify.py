"""`drivelab verify`: whether recordings are as they were measured."""

from __future__ import annotations

import argparse
import json
from collections.abc import Iterable
from pathlib import Path
from typing import Any

from drivelab.errors import UserError
from drivelab.recording.checksums import CHECKSUMS, altered, checksummed
from drivelab.recording.writer import MANIFEST, UNFINISHED

_SIGNS = (MANIFEST, CHECKSUMS, "journal.jsonl")


def add_parser(commands: Any) -> None:
    """Register `verify`."""
    one = commands.add_parser(
        "verify",
        help="whether recordings are as they were measured, by their checksums",
        description="Compares every file of finished recordings with the SHA-256 that was taken when they were "
        "complete. Names what was altered, is missing or was added, and recordings in the place of others; ends with "
        "status 1 then.",
    )
    one.add_argument(
        "folders", nargs="+", type=Path, metavar="FOLDER", help="a recording, or any folder above recordings"
    )
    one.add_argument("--json", action="store_true", help="print what was found as JSON")
    one.set_defaults(handler=_verify)


def recordings_below(folders: Iterable[Path]) -> list[Path]:
    """Finished recordings in and below folders, sorted; raises UserError for a folder without any."""
    found: set[Path] = set()
    for folder in folders:
        places = {path.parent for name in _SIGNS for path in folder.rglob(name)}
        finished = {one for one in places if not UNFINISHED.search(one.name)}
        if not finished:
            raise UserError(f"{folder}: holds no finished recordings; name a recording or a folder above some")
        found |= finished
    return sorted(found)


def _verify(options: argparse.Namespace) -> int:
    recordings = recordings_below(options.folders)
    unknown = [str(one) for one in recordings if not checksummed(one)]
    changes = {str(one): found for one in recordings if (found := altered(one))}
    unknown = [one for one in unknown if one not in changes]
    sound = [one for one in recordings if str(one) not in {*changes, *unknown}]
    files = sum((one / CHECKSUMS).read_bytes().count(b"\n") for one in sound)
    if options.json:
        facts = {"as_measured": len(sound), "files": files, "altered": changes, "not_checksummed": unknown}
        print(json.dumps(facts, indent=1))
        return 1 if changes else 0
    for recording, found in changes.items():
        for name, what in found.items():
            print(f"{recording}/{name}: {what}")
    for recording in unknown:
        print(f"{recording}: not checksummed, it was made before recordings were")
    told = f"; of {len(unknown)} nobody can tell" if unknown else ""
    print(f"{len(sound)} of {len(recordings)} recordings are as they were measured, {files} files{told}")
    return 1 if changes else 0
