"""One recording while it is made, or after."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from drivelab.analysis.taint import Limits
from drivelab.fio.series import read_series
from drivelab.recording.writer import MANIFEST
from drivelab.telemetry.log import NAME
from drivelab.watch.follow import Follower, read_object
from drivelab.watch.progress import loop_progress
from drivelab.watch.rates import Point, Rates
from drivelab.watch.words import at_s, sentence

_SAMPLE_BYTES = 700
"""Of a line of telemetry, rather more than it takes."""
Line = tuple[float, str]
"""Unix time and sentence."""


class RecordingWatch:
    """Reads what is new in a recording; it may be renamed when complete, resumed, or set aside and begun anew."""

    def __init__(self, root: Path, name: str, history_s: float) -> None:
        """`root` is the results folder, `name` the recording's, DRIVE/MEASUREMENT/DIGEST-runN."""
        self.name = name
        self.drive, self.measurement, _ = name.split("/")
        self._final = root / "recordings" / name
        self._part = self._final.with_name(self._final.name + ".part")
        self._history_s = history_s
        self.beginnings = 0
        """How often it has begun; what was told before the last of them is of it no more."""
        self._begin_anew()

    def _begin_anew(self) -> None:
        self.beginnings += 1
        self._journal_follower = Follower()
        self._telemetry_follower = Follower(tail_bytes=int(self._history_s * _SAMPLE_BYTES))
        self._journal: list[dict[str, Any]] = []
        self._plan: dict[str, Any] = {}
        self._identity: dict[str, Any] = {}
        self._rates: Rates | None = None
        self._simulated_s = 0.0
        self._progress: dict[str, Any] | None = None

    @property
    def folder(self) -> Path:
        return self._part if self._part.is_dir() else self._final

    @property
    def is_complete(self) -> bool:
        return (self._final / MANIFEST).is_file()

    @property
    def subject(self) -> Mapping[str, Any]:
        """As in the plan; empty until it has been written."""
        subject: Mapping[str, Any] = self._plan.get("subject", {})
        return subject

    @property
    def is_simulated(self) -> bool:
        """Whether time is simulated."""
        return self.subject.get("clock") == "virtual"

    def poll(self) -> tuple[list[Point], list[Line]]:
        """What is new: points and lines of the journal, in their order."""
        folder = self.folder
        lines = self._journal_follower.objects(folder / "journal.jsonl")
        if self._journal_follower.replaced:
            self._begin_anew()
            return self.poll()
        self._plan = self._plan or read_object(folder / "plan.json")
        self._identity = self._identity or read_object(folder / "identity.json")
        if lines:
            self._journal += lines
            self._progress = loop_progress(self.subject, self._journal)
        return list(self._points(folder, lines)), [(at_s(line), text) for line in lines if (text := sentence(line))]

    def _points(self, folder: Path, lines: list[dict[str, Any]]) -> Iterator[Point]:
        context = self._plan.get("context", {})
        if self._rates is None and self._plan:
            self._rates = Rates(Limits.from_mapping(context.get("taint", {})))
        if self._rates is not None and not self.is_simulated:
            yield from self._told(self._rates, folder)
        if self.is_simulated:
            for line in lines:
                yield from self._simulated(folder, line)

    def _told(self, rates: Rates, folder: Path) -> Iterator[Point]:
        samples = self._telemetry_follower.objects(folder / NAME)
        if samples and rates.began_s is None:
            rates.began_s = _first_s(folder / NAME)
        for sample in samples:
            if sample.get("event") == "begin":
                rates.restart()
            elif "event" not in sample and (point := rates.add(sample)) is not None:
                yield point

    def _simulated(self, folder: Path, line: Mapping[str, Any]) -> Iterator[Point]:
        """Seconds of simulated time, one run of I/O after another, when the journal says that it is done."""
        if "directory" not in line or line.get("event") == "soak-begins":
            return
        seconds: dict[float, list[Mapping[str, Any]]] = {}
        for row in read_series(folder / line["directory"]).rows:
            seconds.setdefault(row["time_s"], []).append(row)
        for time_s, rows in sorted(seconds.items()):
            iops = sum(row["iops"] for row in rows)
            told = [(row["iops"], row["mean_latency_us"]) for row in rows if row["mean_latency_us"] is not None]
            weight = sum(rate for rate, _ in told)
            yield Point(
                at_s=at_s(line),
                since_s=self._simulated_s + time_s,
                iops=iops,
                bandwidth_mib_s=sum(row["bandwidth_mib_s"] for row in rows),
                latency_us=sum(rate * latency for rate, latency in told) / weight if weight else None,
            )
        whole_s = max(seconds, default=0.0)
        if not seconds and line.get("event") == "cell":  # shorter than a second
            whole_s = line["io_ended_s"] - line["io_started_s"]
            metrics = line["metrics"]
            yield Point(at_s(line), self._simulated_s + whole_s, metrics["iops"], metrics["bandwidth_mib_s"],
                        metrics["mean_latency_us"])  # fmt: skip
        self._simulated_s += whole_s

    def state(self) -> dict[str, Any]:
        """What there is to say of it now, JSON-able."""
        latest = self._rates.latest if self._rates is not None else {}
        keys = ("temperature_c", "temperature_limit_c", "load_pct", "steal_pct", "cpu_pct", "in_flight",
                "drive_power_w", "meter_power_w", "percentage_used_pct")  # fmt: skip
        return {
            "recording": self.name,
            "measurement": self.measurement,
            "run": self._plan.get("context", {}).get("run"),
            "protocol": self.subject.get("protocol"),
            "simulated": self.is_simulated,
            "virtual": "virtual" in self.subject.get("drive", {}),
            "model": self._identity.get("model"),
            "firmware": self._identity.get("firmware"),
            "progress": self._progress,
            "telemetry": {key: round(latest[key], 2) for key in keys if key in latest},
            "taints": self._rates.taints if self._rates is not None else [],
            "failure": self._failure(),
        }

    def _failure(self) -> str | None:
        """Why it failed, unless it has gone on since."""
        last = self._journal[-1] if self._journal else {}
        return str(last["reason"]) if last.get("event") == "failed" else None


def _first_s(telemetry: Path) -> float | None:
    """When a recording's telemetry began."""
    with telemetry.open(encoding="utf-8") as file:
        first = json.loads(file.readline())
    return float(first["at_s"])
