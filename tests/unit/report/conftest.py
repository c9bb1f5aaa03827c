"""Tables of a study of two drives: loop, write saturation and replay."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pandas as pd
import pytest
import replay_frames
from said import headline_sentences

from drivelab.analysis.verdict import FASTER_BEYOND, SAME, SLOWER_BEYOND
from drivelab.report.content import build
from drivelab.report.document import Report
from drivelab.report.numbers import TIMES
from drivelab.tables.labels import KINDS
from drivelab.tables.schemas import SHAPE

SVG = '<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 640 400"><rect width="640" height="400" fill="#eee"/></svg>'
MIXES, BLOCKS = (0, 65, 100), (4096, 65536, 1048576)
TRACKED = (("RND 4KiB 0/100", 0, 4096), ("RND 64KiB 65/35", 65, 65536), ("RND 1024KiB 100/0", 100, 1048576))
UNITS = {"iops": "IOPS", "bandwidth_mib_s": "MiB/s", "mean_latency_us": "us"}
REMARK = "the spread is within a recording"
SPEED = {"op7": 1428.4, "op28": 2310.2}
PROTOCOLS = {
    "pts-iops": "IOPS, random access, after SNIA PTS 2.0",
    "pts-write-saturation": "Write saturation, RND 4K 0/100, after SNIA PTS 2.0",
    "trace-replay": "Replay of an application's trace",
}


def recording(drive: str, measurement: str) -> str:
    return f"{drive}/{measurement}/1a2b3c4d5e6f-run1"


def key(drive: str, measurement: str) -> dict[str, Any]:
    return {
        "recording": recording(drive, measurement), "drive": drive, "serial": f"VD-{drive}", "protocol": measurement,
        "measurement": measurement, "run": 1, "reduced": True, "virtual": True, "clock": "wall",
    }  # fmt: skip


NO_TELEMETRY = dict.fromkeys(
    ("temperature_min_c", "temperature_mean_c", "temperature_max_c", "throttled", "load_pct", "steal_pct", "cpu_pct",
     "waited_pct", "cpu_frequency_mhz", "power_w", "energy_j", "host_power_w", "taint_reason")
) | {"tainted": False}  # fmt: skip


def label(read: int, block: int) -> str:
    return f"RND {block // 1024}KiB {read}/{100 - read}"


def workload(read: int, block: int) -> dict[str, Any]:
    """Return the workload columns of a counted cell without a phase."""
    turn = dict.fromkeys(("phase", "phase_value", "phase_pass", "point", "pause_s"))
    return {"workload": label(read, block), "cell_label": label(read, block), **turn, "cold": False}


def loop_value(drive: str, read: int, block: int, metric: str) -> float:
    iops = SPEED[drive] * (1 + read / 40) * (4096 / block) ** 0.85
    return {"iops": iops, "bandwidth_mib_s": iops * block / 2**20, "mean_latency_us": 16e6 / iops}[metric]


def summary_row(drive: str, measurement: str, cell: str, metric: str, value: float, **other: Any) -> dict[str, Any]:
    return {
        "drive": drive, "measurement": measurement, "protocol": measurement, "cell_label": cell, "metric": metric,
        "kind": KINDS[metric], "unit": UNITS.get(metric, "us"), "value": value,
        "n": 5, "rse_pct": None, "spread_low": value * 0.97, "spread_high": value * 1.03, "statistic": "window average",
        "samples": [value * factor for factor in (0.97, 0.99, 1.0, 1.01, 1.03)], "scope": "rounds", "mad": value * 0.01,
        "interval_low": value * 0.98, "interval_high": value * 1.02, "asymptote_pct": None,
        "disturbance_pct": None,
        "evidence": [f"{recording(drive, measurement)}/cells/0-round{round_:02d}-cell00" for round_ in range(4, 9)],
        "verdict": "steady", "taint_reason": None, "host_limit": None, "reduced": True, "virtual": True,
        "clock": "wall", "recordings": [recording(drive, measurement)], **dict.fromkeys(SHAPE), **other,
    }  # fmt: skip


def summary() -> pd.DataFrame:
    rows = []
    for drive in SPEED:
        for read in MIXES:
            for block in BLOCKS:
                rows += [
                    summary_row(drive, "pts-iops", label(read, block), metric, loop_value(drive, read, block, metric))
                    for metric in UNITS
                ]
        soak = {"statistic": "post-saturation average"}
        for metric in UNITS:
            value = loop_value(drive, 0, 4096, metric) * 1.04
            rows.append(summary_row(drive, "pts-write-saturation", "RND 4KiB 0/100", metric, value, **soak))
        warm = {
            "n": 3,
            "scope": "runs",
            "statistic": "median of warm runs",
            "verdict": "repeats agree",
            "rse_pct": 1.83,
        }
        values = {"bandwidth_mib_s": 12.91, "access_time_us": 612.4, "score": 145.19, "p99_latency_us": 3120.0}
        for metric, value in values.items():
            factor = 1.0 if drive == "op7" or metric == "bandwidth_mib_s" else 1.1 if metric == "score" else 0.83
            rows.append(summary_row(drive, "trace-replay", "replay sqlite", metric, value * factor, **warm))
    return pd.DataFrame(rows)


def deltas(summary: pd.DataFrame) -> pd.DataFrame:
    rows = []
    for name, pair in summary.groupby(["measurement", "cell_label", "metric"], sort=False):
        basis, other = (pair[pair.drive == drive].iloc[0] for drive in ("op7", "op28"))
        ratio = basis.value / other.value if basis.kind == "time" else other.value / basis.value
        apart = basis.spread_high < other.spread_low or other.spread_high < basis.spread_low
        delta_pct = 100 * (ratio - 1)
        verdict = (FASTER_BEYOND if delta_pct > 0 else SLOWER_BEYOND) if apart else SAME
        rows.append({
            "measurement": name[0], "protocol": name[0], "cell_label": name[1], "metric": name[2], "kind": basis.kind,
            "unit": basis.unit, "basis": "op7", "comparison": "op28", "basis_value": basis.value,
            "comparison_value": other.value, "basis_n": basis.n, "comparison_n": other.n, "delta_pct": delta_pct,
            **dict.fromkeys((*SHAPE, "asymptote_delta_pct", "disturbance_pct")), "interval_low_pct": delta_pct - 4,
            "interval_high_pct": delta_pct + 4, "p_value": 0.001 if apart else 0.9,
            "p_adjusted": 0.002 if apart else 0.95, "equivalence_p": 0.99 if apart else 0.01,
            "equivalence_p_adjusted": 0.99 if apart else 0.02, "margin_pct": 5.0, "verdict": verdict,
            "log_error": 0.01, "freedom": 4.0, "recordings_needed": None, "reduced": True, "virtual": True,
            "clock": "wall", "doubts": [], "remarks": [REMARK] if basis.scope == "rounds" else [],
        })  # fmt: skip
    return pd.DataFrame(rows)


def steady_state() -> pd.DataFrame:
    rows = []
    for drive in SPEED:
        for variable, read, block in TRACKED:
            average = loop_value(drive, read, block, "iops")
            rows.append({
                **key(drive, "pts-iops"), "step": 0, "variable": variable, "metric": "iops", "unit": "IOPS",
                "reached": True, "rounds": 8, "window_start": 4, "window_end": 8,
                "values": [average * f for f in (1.02, 0.99, 1.01, 0.985, 0.995)], "average": average,
                "allowed_data_excursion": 0.2 * average, "measured_data_excursion": 0.035 * average,
                "allowed_slope_excursion": 0.1 * average, "measured_slope_excursion": 0.022 * average,
                "slope": -0.0055 * average, "intercept": 1.033 * average, "residual_drift_pct": -2.2,
                "asymptote_pct": -3.4,
            })  # fmt: skip
    return pd.DataFrame(rows)


def cell(drive: str, kind: str, round_: int, iops: float, read: int = 0, block: int = 4096) -> dict[str, Any]:
    is_loop = kind == "loop"
    return {
        **key(drive, "pts-iops" if is_loop else "pts-write-saturation"), "step": 0, "kind": kind, "round": round_,
        "cell": 0, **workload(read, block), "pattern": "random", "read_share_pct": read, "block_size_bytes": block,
        "threads": 2, "queue_depth": 8, "runtime_s": 1.0, "iops": iops, "mean_latency_us": 16e6 / iops,
        "max_latency_us": 90e6 / iops, "bytes_written": 0 if is_loop else int(iops) * 4096, "tainted": False,
        "taint_reason": None, "host_limit": None, "directory": f"cells/0-round{round_ if is_loop else 1:02d}-cell00",
        "unsound": None,
    }  # fmt: skip


def cells() -> pd.DataFrame:
    rows = [
        cell(drive, "loop", round_, loop_value(drive, read, block, "iops") * (1 + 1 / round_**2), read, block)
        for drive in SPEED
        for round_ in range(1, 9)
        for read in MIXES
        for block in BLOCKS
    ]
    for drive, speed in SPEED.items():
        for number in range(1, 41):
            rows.append(cell(drive, "soak", number, speed * (9.0 if number < 9 else 1.0 + 8 / (number - 7) ** 1.5)))
    return pd.DataFrame(rows)


def replayed() -> dict[str, pd.DataFrame]:
    """Return the replay tables of both drives; op28 is faster."""
    tables = replay_frames.together(
        *(
            replay_frames.tables(drive, traces=("sqlite",), slowness=slowness, requests=1000)
            for drive, slowness in (("op7", 1.0), ("op28", 0.83))
        )
    )
    tables["replays"] = tables["replays"].assign(marks=list(map(list, tables["replays"]["marks"])))
    return {
        name: frame.assign(
            recording=[recording(drive, "trace-replay") for drive in frame["drive"]], reduced=True, virtual=True
        )
        for name, frame in tables.items()
    }


def drives() -> pd.DataFrame:
    return pd.DataFrame(
        {
            "drive": drive, "serial": f"VD-{drive}", "model": "drivelab virtual drive", "firmware": "1",
            "capacity_bytes": 64 << 20, "logical_block_bytes": 512, "transport": "loop", "link": None, "link_max": None,
            "controller": None,
            "manufacturer": None, "rotational": None, "zoned": None, "kind": "drive", "composition": None,
            "lba_format": "512e", "virtual": True,
            "over_provisioning_pct": share, "device": f"virtual:{drive}",
        }
        for drive, share in (("op7", 7.0), ("op28", 28.0))
    )  # fmt: skip


def hosts() -> pd.DataFrame:
    return pd.DataFrame([{
        "host": "bench1", "kernel": "6.1.0-28-amd64", "cpu": "AMD EPYC 7B13", "cores": 2, "memory_bytes": 8 << 30,
        "os": "Debian GNU/Linux 12 (bookworm)", "fio": "fio-3.33", "drivelab": "0.1.0", "python": "3.11.2",
        "board": "Supermicro H12SSL-i", "system": None, "bios": "American Megatrends 2.4 12/21/2022",
        "memory_modules": "8 x 16 GiB DDR4 at 3200 MT/s", "base_clock_mhz": 2450.0, "max_clock_mhz": 3500.0,
        "package_power_limit_w": None, "note": None,
    }])  # fmt: skip


def traces() -> pd.DataFrame:
    return pd.DataFrame([{
        "trace": "sqlite", "source": "captured with blktrace", "application": "sqlite 3.40, 2,000 inserts",
        "requests": 6460, "reads": 812, "writes": 5230, "flushes": 418, "discards": 0, "read_bytes": 13303808,
        "write_bytes": 94707712, "footprint_bytes": 9437184, "duration_s": 7.98, "lossy": False, "lost": 0,
    }])  # fmt: skip


def plan(drive: str, measurement: str) -> dict[str, Any]:
    return {
        "recording": recording(drive, measurement), "path": f"results/recordings/{recording(drive, measurement)}",
        "drive": drive, "measurement": measurement,
        "protocol": {"name": measurement, "title": PROTOCOLS[measurement], "source": f"source of {measurement}"},
        "purge": "TRIM of the whole drive; verified: 64 random places read as zeros",
        "fill": "none" if "saturation" in measurement else f"2 {TIMES} the active range, sequential 128KiB writes",
        "class": "enterprise", "threads": 2, "queue_depth": 8, "active_range": "100 %",
        "reduced": True, "reduced_why": ["loop runtime: 1s instead of 60s", "class enterprise threads: 2 instead of 4"],
        "virtual": True, "clock": "wall", "clock_reason": None, "started": "2025-11-20T21:04:11.120+00:00",
        "finished": "2025-11-20T21:06:40.007+00:00", "data_pattern": "random, incompressible", "engine": "io_uring",
        "scenario": "synthetic", "notes": [],
    }  # fmt: skip


STUDY = {"name": "demo", "title": "Does over-provisioning pay? Two virtual drives, 7 % against 28 %", "basis": "op7",
         "rse_threshold_pct": 5.0, "confidence_pct": 95.0}  # fmt: skip


def made_tables() -> dict[str, pd.DataFrame]:
    values = summary()
    return {
        "summary": values, "deltas": deltas(values), "steady_state": steady_state(), "cells": cells(), **replayed(),
        "drives": drives(), "hosts": hosts(), "traces": traces(),
    }  # fmt: skip


def made_plans() -> list[dict[str, Any]]:
    return [plan(drive, measurement) for measurement in PROTOCOLS for drive in SPEED]


def made_figures() -> list[dict[str, Any]]:
    def figure(drive: str | None, measurement: str, name: str) -> dict[str, Any]:
        return {"drive": drive, "measurement": measurement, "name": name, "title": f"The {name} plot",
                "caption": f"What {name} shows.", "svg": SVG}  # fmt: skip

    of_drives = [figure(drive, "pts-iops", name) for drive in SPEED for name in ("convergence", "window")]
    return [*of_drives, figure(None, "pts-iops", "comparison")]


@pytest.fixture
def tables() -> dict[str, pd.DataFrame]:
    return made_tables()


@pytest.fixture
def plans() -> list[dict[str, Any]]:
    return made_plans()


@pytest.fixture
def study() -> dict[str, Any]:
    return dict(STUDY)


@pytest.fixture
def figures() -> list[dict[str, Any]]:
    return made_figures()


@pytest.fixture(scope="session")
def report() -> Report:
    """Return the report of the study with its figures, which no test can change."""
    return build(made_tables(), STUDY, made_plans(), made_figures(), "2025-11-21T05:10:00+00:00")


@pytest.fixture
def reported(study: dict[str, Any], plans: list[dict[str, Any]]) -> Callable[[dict[str, pd.DataFrame]], Report]:
    """Return a function that makes the report of tables, without figures."""
    return lambda tables: build(tables, study, plans, [], None)


@pytest.fixture
def said(study: dict[str, Any], plans: list[dict[str, Any]]) -> Callable[[dict[str, pd.DataFrame]], list[str]]:
    """Return a function that makes the sentences on the headline tests of tables, as the terminal prints them."""
    return lambda tables: headline_sentences(tables, study, plans)


@pytest.fixture
def full_length(
    tables: dict[str, pd.DataFrame], plans: list[dict[str, Any]]
) -> tuple[dict[str, pd.DataFrame], list[dict[str, Any]]]:
    """Return the study at full length on real drives with several recordings: no banner applies."""
    quiet = {name: frame.assign(**{c: False for c in ("reduced", "virtual") if c in frame})
             for name, frame in tables.items()}  # fmt: skip
    return quiet, [{**plan, "reduced": False, "reduced_why": [], "virtual": False} for plan in plans]
