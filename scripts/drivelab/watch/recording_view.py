"""Follow one recording, unfinished or complete, and describe its journal as sentences."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path
from typing import Any

from drivelab.core.units import format_amount
from drivelab.criteria.taint import Limits, foreign_words, foreign_writes
from drivelab.plan.cell import Cell
from drivelab.recording.writer import MANIFEST, read_object
from drivelab.run.fill import FOLDER
from drivelab.telemetry.sampler import NAME
from drivelab.watch.follow import Follower
from drivelab.watch.rates import Point, Rates
from drivelab.watch.recording_progress import loop_progress


def at_s(line: Mapping[str, Any]) -> float:
    """Return the Unix time of a journal line."""
    return datetime.fromisoformat(line["at"]).timestamp()


_SENTENCES: Mapping[str, Callable[[Mapping[str, Any]], str | None]] = {
    "cell": lambda line: _cell_words(line) + _foreign(line),
    "tainted": lambda line: (f"replayed {line['trace']}, replayed again" if "trace" in line else
                             f"{_cell_words(line)}, measured again") + f": {'; '.join(line['reasons'])}",
    "purge": lambda line: (
        "not purged" if line.get("method") == "none" else f"purged: {line.get('title', line.get('method'))}"),
    "fill": lambda line: f"preconditioned: {format_amount(line['bytes'])} written, {_cell(line['cell'])}",
    "verdict": lambda line: None if line["intact"] else f"conditioned again: {line['reason']}",
    "measure": lambda line: "measurement begins",
    "gap": lambda line: str(line["reason"]),
    "soak-begins": lambda line: f"soak begins: {_cell(line['workload'])}",
    "soak": lambda line: f"soak {_soak_end(line)}: {format_amount(line['bytes'])} in {line['runtime_s']:.0f} s"
                         + _foreign(line),
    "loop": lambda line: f"loop ended after {line['rounds']} rounds" + _loop_end(line),
    "replay": lambda line: f"replayed {line.get('trace', 'the trace')}" + _foreign(line),
    "application": lambda line: "application run",
    "load": lambda line: f"load of {line['rate_iops']:,.0f} IOPS {line['outcome']}" + _foreign(line),
    "failed": lambda line: f"failed: {line['reason']}",
    "abandoned": lambda line: f"set aside: {line['reason']}",
    "complete": lambda line: "recording complete",
}  # fmt: skip


def sentence(line: Mapping[str, Any]) -> str | None:
    """Return a sentence for a journal line; None for a line that only programs need."""
    event = str(line.get("event"))
    return _SENTENCES[event](line) if event in _SENTENCES else None


def _cell_words(line: Mapping[str, Any]) -> str:
    """Return round, workload, IOPS, bandwidth and mean latency of a cell."""
    cold, metrics = "cold " if line.get("cold") else "", line["metrics"]
    rates = f"{metrics['iops']:,.0f} IOPS, {metrics['bandwidth_mib_s']:,.1f} MiB/s"
    return (
        f"{cold}round {line['round']}: {_cell(line['workload'])}, {rates}, {latency_words(metrics['mean_latency_us'])}"
    )


def latency_words(latency_us: float | None) -> str:
    """Return a latency with three digits, in a suitable unit."""
    if latency_us is None:
        return "-"
    if latency_us < 999.5:
        return f"{latency_us:.3g} µs"
    return f"{latency_us / 1e3:.3g} ms" if latency_us < 999.5e3 else f"{latency_us / 1e6:.3g} s"


def _foreign(line: Mapping[str, Any]) -> str:
    reason = foreign_words(foreign_writes(line))
    return f"; tainted: {reason}" if reason else ""


def _cell(workload: Mapping[str, Any]) -> str:
    return Cell(**workload).label


def _soak_end(line: Mapping[str, Any]) -> str:
    if not line["finished"]:
        return "interrupted"
    return f"ended by {line['ended_by']}" if "ended_by" in line else "ended"


def _loop_end(line: Mapping[str, Any]) -> str:
    for key, good, bad in (("steady", "steady", "not steady"), ("agreed", "rounds agree", "rounds do not agree")):
        if key in line:
            return f", {good if line[key] else bad}"
    return ""


_MOST = 1e30
"""Limit of a counter's value."""
SHOWN_S = 600
"""Seconds that are shown at most: a terminal has fewer columns."""
_SAMPLE_BYTES = 700
"""Generous length of a telemetry line."""
Line = tuple[float, str]
"""Unix time and sentence."""


@dataclass
class _Telemetry:
    """Telemetry of preconditioning, or of the measurement."""

    place: str
    """Path in the recording."""
    follower: Follower
    rates: Rates

    def points(self, recording: Path) -> Iterator[Point]:
        for sample in self.follower.objects(recording / self.place):
            if sample.get("event") == "begin":
                self.rates.restart()
            elif "event" not in sample and (point := self.rates.add(_numbers(sample))) is not None:
                yield point


class RecordingWatch:
    """Reads what is new in a recording, which may be renamed when complete, resumed, or set aside and restarted."""

    def __init__(self, root: Path, name: str) -> None:
        """Start; `root` is the results folder, `name` the recording's name, DRIVE/MEASUREMENT/DIGEST-runN."""
        self.name = name
        _, self.measurement, _ = name.split("/")
        self._final = root / "recordings" / name
        self._part = self._final.with_name(self._final.name + ".part")
        self._planned = root / "plans" / f"{name}.json"
        self.beginnings = 0
        """Number of starts; points and lines from before the last start are obsolete."""
        self._restart()

    def _restart(self) -> None:
        self.beginnings += 1
        self._journal_follower = Follower()
        self._journal: list[dict[str, Any]] = []
        self._plan: dict[str, Any] = {}
        self._telemetry: list[_Telemetry] = []
        """In the order of time; empty until the plan is read, which has the limits."""
        self._progress: dict[str, Any] | None = None

    @property
    def folder(self) -> Path:
        return self._part if self._part.is_dir() else self._final

    @property
    def is_complete(self) -> bool:
        return (self._final / MANIFEST).is_file()

    @property
    def subject(self) -> Mapping[str, Any]:
        """The plan's subject; empty until the plan is written."""
        subject: Mapping[str, Any] = self._plan.get("subject", {})
        return subject

    @property
    def is_simulated(self) -> bool:
        """Whether time is simulated."""
        return self.subject.get("clock") == "virtual"

    def poll(self) -> tuple[list[Point], list[Line]]:
        """Return new points and new journal lines, in their order."""
        folder = self.folder
        lines = self._journal_follower.objects(folder / "journal.jsonl")
        if self._journal_follower.replaced:
            self._restart()
            return self.poll()
        self._plan = self._plan or read_object(folder / "plan.json") or read_object(self._planned)
        if lines:
            self._journal += lines
            self._progress = loop_progress(self.subject, self._journal)
        return list(self._points(folder, lines)), [(at_s(line), text) for line in lines if (text := sentence(line))]

    def _points(self, folder: Path, lines: list[dict[str, Any]]) -> Iterator[Point]:
        if not self._telemetry and self._plan:
            limits = Limits.from_mapping(self._plan.get("context", {}).get("taint", {}))
            self._telemetry = [
                _Telemetry(place, Follower(tail_bytes=SHOWN_S * _SAMPLE_BYTES), Rates(limits, conditioning))
                for place, conditioning in ((f"{FOLDER}/{NAME}", True), (NAME, False))
            ]
        if self.is_simulated:  # its seconds have passed when a cell ends
            for metrics in (line["metrics"] for line in lines if line.get("event") == "cell"):
                yield Point(metrics["iops"], metrics["bandwidth_mib_s"], metrics["mean_latency_us"])
        else:
            for telemetry in self._telemetry:
                yield from telemetry.points(folder)

    def drive_facts(self) -> dict[str, Any]:
        """Return the known facts of the drive, which its other recordings share."""
        if not self.subject:
            return {}
        return {"simulated": self.is_simulated, "virtual": "virtual" in self.subject.get("drive", {})}

    def state(self) -> dict[str, Any]:
        """Return the recording's present state."""
        last = self._journal[-1] if self._journal else {}
        rates = next((telemetry.rates for telemetry in reversed(self._telemetry) if telemetry.rates.latest), None)
        return {
            "recording": self.name,
            "measurement": self.measurement,
            "progress": self._progress,
            "taints": rates.taints if rates is not None else [],
            "failure": str(last.get("reason")) if last.get("event") == "failed" else None,  # unless it has resumed
        }


def _numbers(sample: Mapping[str, Any]) -> dict[str, float]:
    """Return the numeric fields of a telemetry line: a drive or a file may contain any value."""
    return {
        name: value
        for name, value in sample.items()
        if isinstance(value, int | float) and abs(value) < _MOST and not isinstance(value, bool)
    }
