"""Write small archives of made-up studies, as `drivelab archive create` would."""

from __future__ import annotations

import hashlib
import io as streams
import json
import tempfile
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import pandas as pd

from drivelab.archive.tar import Writer, plain_name
from drivelab.recording.checksums import CHECKSUMS, lines_of
from drivelab.tables import io
from drivelab.tables.schemas import SCHEMAS

VALUES = (("RND 4KiB 0/100", "iops", "speed", "IOPS", 50_000.0),
          ("RND 4KiB 0/100", "mean_latency_us", "time", "us", 640.0),
          ("RND 4KiB 100/0", "iops", "speed", "IOPS", 90_000.0))  # fmt: skip
MTIME_S = 1_700_000_000


@dataclass(frozen=True)
class Result:
    """A drive measured by a protocol."""

    drive: str = "a"
    model: str | None = "Maker M1"
    firmware: str = "F1"
    protocol: str = "pts-iops"
    speed: float = 1.0
    recordings: int = 1
    date: str = "2026-01-02"
    reduced: bool = False
    virtual: bool = False
    clock: str = "wall"
    steps: str = "0123abcd"
    verdict: str = "steady"
    conditions: Mapping[str, str] = field(default_factory=dict)
    """Further facets of the kind `host`, or other values of those below."""
    seed: str = ""
    """Makes the recordings different from those of another study."""


def summary_rows(result: Result) -> list[dict[str, Any]]:
    names = recording_names(result)
    rows = []
    for place, (label, metric, kind, unit, usual) in enumerate(VALUES):
        value = usual * (result.speed if kind == "speed" else 1 / result.speed)
        samples = [value * (1 + 0.002 * number) for number in range(result.recordings)]
        rows.append(
            {"drive": result.drive, "measurement": result.protocol, "protocol": result.protocol, "cell_label": label,
             "metric": metric, "kind": kind, "unit": unit, "value": value, "n": max(1, len(names)), "rse_pct": 0.2,
             "spread_low": min(samples), "spread_high": max(samples), "samples": samples, "scope": "recordings",
             "mad": None, "interval_low": None, "interval_high": None, "asymptote_pct": 0.0,
             "disturbance_pct": None,
             "statistic": f"window average, geometric mean of {len(names)} recordings" if len(names) > 1
             else "window average",
             "verdict": result.verdict if place == 0 else "in steady window", "taint_reason": None, "host_limit": None,
             "reduced": result.reduced, "virtual": result.virtual, "clock": result.clock,
             "recordings": names, "evidence": [f"{name}/cells/0-round01-cell0{place}" for name in names]}
        )  # fmt: skip
    return rows


def recording_names(result: Result) -> list[str]:
    return [f"{result.drive}/{result.protocol}/{'0' * 12}-run{run}" for run in range(1, result.recordings + 1)]


def condition_rows(result: Result) -> list[dict[str, Any]]:
    facets = {
        "firmware": ("drive", result.firmware), "serial": ("drive", f"S-{result.drive}"), "kernel": ("host", "6.1"),
        "host": ("host", "bench"), "protocol": ("protocol", result.protocol), "steps": ("protocol", result.steps),
        "reduced": ("protocol", "runtime: 1s instead of 60s" if result.reduced else "no: full length"),
        "class": ("protocol", "enterprise"), "active range": ("protocol", "100 %"), "purge": ("protocol", "format"),
        "fill": ("protocol", "2 x capacity"), "data pattern": ("protocol", "random"),
        "I/O path": ("protocol", "direct"), "traces": ("protocol", "none"),
        "clock": ("protocol", result.clock), "date": ("time", result.date),
    }  # fmt: skip
    for facet, value in result.conditions.items():
        facets[facet] = (facets.get(facet, ("host", ""))[0], value)
    return [
        {"recording": name, "drive": result.drive, "measurement": result.protocol, "facet": facet, "kind": kind,
         "value": value}
        for name in recording_names(result) for facet, (kind, value) in facets.items()
    ]  # fmt: skip


def drive_row(result: Result) -> dict[str, Any]:
    return {**dict.fromkeys(SCHEMAS["drives"].names), "drive": result.drive, "serial": f"S-{result.drive}",
            "model": result.model, "firmware": result.firmware, "virtual": result.virtual,
            "capacity_bytes": 960 * 10**9, "transport": "nvme", "device": f"/dev/{result.drive}"}  # fmt: skip


def study_files(results: Sequence[Result], title: str = "", report: str | None = None) -> dict[str, bytes]:
    """Return the files of a study that a site reads, by name in the archive."""
    tables = {
        "summary": [row for result in results for row in summary_rows(result)],
        "conditions": [row for result in results for row in condition_rows(result)],
        "drives": list({result.drive: drive_row(result) for result in results}.values()),
    }
    files = {}
    with tempfile.TemporaryDirectory() as folder:
        for name, rows in tables.items():
            path = Path(folder) / f"{name}.parquet"
            io.write(pd.DataFrame(rows, columns=SCHEMAS[name].names), path, name)
            files[f"results/tables/{name}.parquet"] = path.read_bytes()
    for result in results:
        for name in filter(plain_name, recording_names(result)):
            manifest = f"{name} {result.seed} {result}".encode()
            files[f"results/recordings/{name}/manifest.json"] = manifest
            sums = lines_of({"manifest.json": hashlib.sha256(manifest).hexdigest()})
            files[f"results/recordings/{name}/{CHECKSUMS}"] = sums
    root = {"@id": "./", "name": title, "license": {"@id": "https://spdx.org/licenses/CC-BY-4.0"}}
    files["ro-crate-metadata.json"] = json.dumps({"@graph": [root]}).encode()
    if report is not None:
        files["results/report/index.html"] = report.encode()
    return files


def write_archive(path: Path, files: Mapping[str, bytes], top: str = "study") -> str:
    """Write an archive with valid checksums; return its SHA-256."""
    digests = {}
    with path.open("wb") as file:
        writer = Writer(file)
        for name, data in files.items():
            digests[name] = writer.add(f"{top}/{name}", streams.BytesIO(data), len(data), MTIME_S)
        sums = lines_of(digests)
        writer.add(f"{top}/{CHECKSUMS}", streams.BytesIO(sums), len(sums), MTIME_S)
        writer.close()
    return hashlib.sha256(path.read_bytes()).hexdigest()


def made_archive(path: Path, *results: Result, title: str = "A study", report: str | None = None) -> str:
    """Write an archive of some results; return its SHA-256."""
    return write_archive(path, study_files(results, title, report), path.name.partition(".")[0])


def made_archives(folder: Path, *results: Result) -> list[Path]:
    """Write an archive of each result; recordings of equal results are different ones."""
    paths = []
    for number, result in enumerate(results):
        path = folder / f"{len(list(folder.glob('*.gz'))):02d}-{number:02d}.tar.gz"
        made_archive(path, replace(result, seed=path.name))
        paths.append(path)
    return paths


def over_dates(speeds: Sequence[float], **facts: Any) -> list[Result]:
    """Return a result for each day from 1 January 2026."""
    return [Result(date=f"2026-{1 + day // 28:02d}-{1 + day % 28:02d}", speed=speed, **facts)
            for day, speed in enumerate(speeds)]  # fmt: skip
