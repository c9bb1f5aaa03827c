"""`drivelab verify`: check that recordings are unaltered since they were measured."""

from __future__ import annotations

import argparse
from collections.abc import Iterable
from pathlib import Path
from typing import Any

from drivelab.core.errors import UserError
from drivelab.core.terminal import print_json
from drivelab.recording.checksums import CHECKSUMS, altered, checksummed
from drivelab.recording.writer import MANIFEST, UNFINISHED

_SIGNS = (MANIFEST, CHECKSUMS, "journal.jsonl")


def add_parser(commands: Any) -> None:
    """Register `verify`."""
    parser = commands.add_parser(
        "verify",
        help="check by checksums that recordings are unaltered",
        description="Compares every file of finished recordings with the SHA-256 stored when the recording "
        "finished. Lists altered, missing and added files, and recordings that replace others. Exit status 1 if "
        "there are any.",
    )
    parser.add_argument(
        "folders", nargs="+", type=Path, metavar="FOLDER", help="a recording, or a folder above recordings"
    )
    parser.flag("--json", "print the result as JSON")
    parser.set_defaults(handler=_verify)


def recordings_below(folders: Iterable[Path]) -> list[Path]:
    """Return the finished recordings in and below folders, sorted; raises UserError for a folder without any."""
    recordings: set[Path] = set()
    for folder in folders:
        places = {path.parent for name in _SIGNS for path in folder.rglob(name)}
        finished = {place for place in places if not UNFINISHED.search(place.name)}
        if not finished:
            what = "holds no finished recordings" if folder.is_dir() else "is not a folder"
            raise UserError(f"{folder}: {what}; name a recording, or a folder above recordings")
        recordings |= finished
    return sorted(recordings)


def _verify(options: argparse.Namespace) -> int:
    recordings = recordings_below(options.folders)
    unknown = [str(recording) for recording in recordings if not checksummed(recording)]
    changes = {str(recording): alterations for recording in recordings if (alterations := altered(recording))}
    unknown = [path for path in unknown if path not in changes]
    sound = [recording for recording in recordings if str(recording) not in {*changes, *unknown}]
    files = sum((recording / CHECKSUMS).read_bytes().count(b"\n") for recording in sound)
    if options.json:
        print_json({"as_measured": len(sound), "files": files, "altered": changes, "not_checksummed": unknown})
        return 1 if changes else 0
    for recording, files_changed in changes.items():
        for name, what in files_changed.items():
            print(f"{recording}/{name}: {what}")
    for recording in unknown:
        print(f"{recording}: has no checksums, because an earlier version of drivelab made it")
    unchecked = f"; {len(unknown)} cannot be checked" if unknown else ""
    print(f"{len(sound)} of {len(recordings)} recordings are unaltered, {files} files{unchecked}")
    return 1 if changes else 0
