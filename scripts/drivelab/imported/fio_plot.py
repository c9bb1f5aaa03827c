"""The folder that bench-fio leaves behind, which belongs to fio-plot.

`OUTPUT/TARGET/BLOCK/MODE-IODEPTH-NUMJOBS.json`, of a mix `OUTPUT/TARGET/MODE+RWMIXREAD/BLOCK/…`, with a folder `run-N`
in the end where runs are repeated (bench_fio/benchlib/supporting.py and runfio.py); early versions had no folder for
the block size. The files are fio's JSON, whose options say the same as the names: what contradicts is refused.
"""

from __future__ import annotations

import re
from pathlib import Path

from drivelab.errors import UserError
from drivelab.imported.fio_json import PATTERNS, Run, read_run, recording, size_bytes
from drivelab.imported.tables import Recording

KIND = "fio-plot"
_MODES = "|".join(sorted(PATTERNS, key=len, reverse=True))
_NAME = re.compile(rf"({_MODES})-(\d+)-(\d+)\.json")
_MIX = re.compile(r"(?:randrw|readwrite|rw)(\d{1,3})")
_BLOCK = re.compile(r"\d+[kmg]?b?", re.IGNORECASE)


def read(path: Path, drive: str) -> list[Recording]:
    """All results below a folder as one recording of `drive`.

    Raises UserError for a folder without any, for one with several targets, and as `fio_json.read` does.
    """
    files = sorted(one for one in path.rglob("*.json") if _NAME.fullmatch(one.name))
    if not files:
        raise UserError(f"{path}: has no file such as randread-16-1.json; name the folder that bench-fio wrote")
    return [recording(KIND, "sweep", "Sweep, bench-fio", drive, path, [_run(path, one) for one in files])]


def _run(root: Path, path: Path) -> Run:
    """One file; its place must say what its options say."""
    run = read_run(path)
    match = _NAME.fullmatch(path.name)
    assert match is not None
    pattern, share = PATTERNS[match[1]]
    said = {"pattern": pattern, "queue_depth": int(match[2]), "threads": int(match[3])}
    if share is not None:
        said["read_share"] = share
    for folder in path.relative_to(root).parent.parts:
        if mix := _MIX.fullmatch(folder):
            said["read_share"] = int(mix[1])
        elif _BLOCK.fullmatch(folder):
            said["block_size_bytes"] = size_bytes(folder)
    for name, value in said.items():
        if (found := getattr(run.cell, name)) != value:
            words = name.replace("_", " ")
            raise UserError(
                f"{path}: its place says {words} {value}, its options say {found}; the file was moved or changed, put "
                "the right one there"
            )
    return run
