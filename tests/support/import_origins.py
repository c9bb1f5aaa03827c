"""Write files in the formats of other tools, with known values."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any
from xml.etree import ElementTree

from drivelab.imported.fio_json import Run, read_runs
from drivelab.imported.fio_options import size_bytes

IOPS_BLOCKS = (1048576, 131072, 65536, 32768, 16384, 8192, 4096, 512)
IOPS_MIXES = (100, 95, 65, 50, 35, 5, 0)
LATENCY_BLOCKS, LATENCY_MIXES = (8192, 4096, 512), (100, 65, 0)
WRITES_4K = (50000, 60546, 60013, 62932, 61774, 61061)
"""IOPS of RND 4KiB 0/100 in six rounds; the last five are TKperf's values of an Intel DC S4600."""
WRITES_1024K_KIB_S = (494806, 498438, 499426, 499299, 495838)
LATENCIES_US = (59.369444, 54.656462, 56.09315, 55.853424, 57.411154)
ABOUT = (
    "\tModel Number:       INTEL SSDSC2KG960G7\n\tSerial Number:      PHYM1\n\tFirmware Revision:  SCV10100\n"
    "\tdevice size with M = 1000*1000:      960197 MBytes (960 GB)\n\twrite-caching =  1 (on)\n"
)


def iops(value: float, share: int, block: int) -> float:
    """Return the IOPS of the simulated drive for a cell, if it has `value` at RND 4KiB 0/100."""
    return value * (100 + share) / 100 * 4096 / max(block, 4096)


def tkperf(path: Path, tests: tuple[str, ...] = ("iops", "tp", "lat", "writesat"), **changed: Any) -> Path:
    """Write TKperf's XML; `changed` sets elements by `TEST_NAME` (or `NAME` at the top), None omits one."""
    root = ElementTree.Element("intel-dc-s4600")
    about = {"testdate": "2017-10-12", "devinfo": ABOUT, "kernel": "4.4.0-96-generic\n", "ioperfversion": "2.1"}
    _fill(root, {**about, "lsb": "Description:\tUbuntu 16.04.3 LTS\n"}, "", changed)
    for tag in tests:
        matrix, tracked = _matrix(tag)
        load = (1, 1) if tag == "lat" else ("2", "16")
        facts = {"fioversion": "fio-2.2.10\n", "numjobs": load[0], "iodepth": load[1], "runtime": 60}
        facts["roundmat"] = matrix
        if tracked:
            window = list(range(len(tracked) - 5, len(tracked)))
            facts |= {"stdyrounds": window, "stdyvalues": tracked[-5:], "stdyavg": sum(tracked[-5:]) / 5}
            facts |= {"reachstdystate": True, "rndnr": window[-1]}
        _fill(ElementTree.SubElement(root, tag), facts, f"{tag}_", changed)
    ElementTree.ElementTree(root).write(path)
    return path


def _fill(element: ElementTree.Element, facts: Mapping[str, Any], prefix: str, changed: Mapping[str, Any]) -> None:
    for name, value in {name: changed.get(prefix + name, value) for name, value in facts.items()}.items():
        if value is not None:
            ElementTree.SubElement(element, name).text = json.dumps(value)


def _matrix(tag: str) -> tuple[list[Any], list[float]]:
    if tag == "iops":
        rounds = [[[iops(v, share, b) for b in IOPS_BLOCKS] for share in IOPS_MIXES] for v in WRITES_4K]
        return rounds, list(WRITES_4K)
    if tag == "tp":
        by_block = [
            [[2 * v // n for v in WRITES_1024K_KIB_S], [v // n for v in WRITES_1024K_KIB_S]] for n in range(1, 6)
        ]
        return by_block, list(WRITES_1024K_KIB_S)
    if tag == "lat":
        rounds = [
            [
                [[10.0, 1000.0 * number, v * (1 + share / 100) * 4096 / b] for b in LATENCY_BLOCKS]
                for share in LATENCY_MIXES
            ]
            for number, v in enumerate(LATENCIES_US, 1)
        ]
        return rounds, list(LATENCIES_US)
    rates = [90000] * 20 + [20000] * 80
    return [rates, [[10.0, 5000.0, 32e6 / rate] for rate in rates]], []


def direction(iops: float, block: int = 4096, runtime_s: float = 10.0, mean_us: float = 80.0) -> dict[str, Any]:
    """Return one direction of a job, in the format of fio 3."""
    ios = round(iops * runtime_s)
    latency = {"min": 1000, "max": 9_000_000 if ios else 0, "mean": 1000.0 * mean_us if ios else 0.0, "stddev": 1.0}
    return {
        "io_bytes": ios * block, "bw": int(iops * block / 1024), "bw_bytes": int(iops * block), "iops": iops,
        "runtime": int(1000 * runtime_s) if ios else 0, "total_ios": ios, "drop_ios": 0, "lat_ns": latency,
    }  # fmt: skip


def job(read: float, write: float, options: Mapping[str, str], **changed: Any) -> dict[str, Any]:
    """Return a job with these IOPS of reads and writes."""
    block = size_bytes(options.get("bs", "4k"))
    return {
        "jobname": "test", "groupid": 0, "error": 0, "job options": dict(options), "read": direction(read, block),
        "write": direction(write, block, mean_us=20.0), "trim": direction(0.0), "usr_cpu": 5.0, "sys_cpu": 10.0,
        **changed,
    }  # fmt: skip


def document(*jobs: Mapping[str, Any], second: int = 0, **changed: Any) -> dict[str, Any]:
    """Return fio's JSON, printed `second` seconds after 2026-01-01."""
    ended_s = 1767225600 + second
    return {
        "fio version": "fio-3.36", "timestamp": ended_s, "timestamp_ms": 1000 * ended_s, "jobs": list(jobs), **changed
    }  # fmt: skip


def write(path: Path, value: Mapping[str, Any]) -> Path:
    """Write a document to a file."""
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(json.dumps(value, indent=2), encoding="utf-8")
    return path


def options(rw: str = "randread", depth: int = 1, threads: int = 1, block: str = "4k", **more: str) -> dict[str, str]:
    """Return the options of a job."""
    return {
        "rw": rw, "bs": block, "iodepth": str(depth), "numjobs": str(threads), "direct": "1", "ioengine": "libaio",
        "group_reporting": "1", "filename": "/dev/sdx", **more,
    }  # fmt: skip


def run(path: Path) -> Run:
    """Return the only run of a file."""
    (only,) = read_runs(path)
    return only
