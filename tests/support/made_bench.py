"""A bench that measures nothing: it keeps a journal, and the test sets each cell's result."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace
from typing import Any

PROGRESS = SimpleNamespace(say=lambda text, fraction: None, note=lambda **facts: None)


class Bench:
    """Replaces `drivelab.run.fio_cell.Bench`; `iops` gives the result of a cell by its number, from 1."""

    def __init__(self, clock: str = "virtual", trace: Path | None = None) -> None:
        self.lines: list[dict[str, Any]] = []
        self.idled: list[float] = []
        self.cells: list[Any] = []
        self.iops: Callable[[int], float] = lambda number: 100.0
        self.latency_us: Callable[[int], float] = lambda number: 100.0
        subject = {"traces": [{"name": "t"}], "measure": []}
        context = {"trace_paths": [str(trace)]}
        self.plan = SimpleNamespace(
            clock=clock, subject=subject, context=context, recording="a/m/0-run1", measurement="m"
        )
        self.device = SimpleNamespace(
            idle=self.idled.append, logical_block_bytes=4096, undoes=False, can_prepare=lambda: False
        )
        self.recording = SimpleNamespace(
            journal=lambda: list(self.lines), append=self.append, part=Path("a.part"), plan=self.plan
        )

    def append(self, event: str, **fields: Any) -> None:
        self.lines.append({"event": event, **fields})

    def journal(self, event: str) -> list[dict[str, Any]]:
        """Return the lines of an event."""
        return [line for line in self.lines if line["event"] == event]

    def places(self) -> list[tuple[int, int]]:
        """Return round and cell of the measured cells, in order."""
        return [(line["round"], line["cell"]) for line in self.journal("cell")]

    has_prepared = False

    def forget(self) -> None: ...

    def run(self, name: str, act: Callable[[Path], Any]) -> tuple[Path, dict[str, Any]]:
        timing = act(Path(name))
        return Path(name), {"directory": name} | ({} if timing is None else {"started_s": timing.started_s})

    def run_cell(
        self, name: str, cell: Any, on_tick: Any, place: dict[str, int], *more: Any, alike: bool = False
    ) -> tuple[Any, dict[str, Any]]:
        self.cells.append(cell)
        number = len(self.cells)
        value = self.iops(number)
        result = SimpleNamespace(iops=value, bandwidth_mib_s=value, mean_latency_us=self.latency_us(number))
        return result, {"directory": name}


class TimedBench(Bench):
    """A bench in real time, whose clock advances only by waits and by fio's run and start times."""

    def __init__(self, start_s: float = 0.3, end_s: float = 0.02) -> None:
        """`start_s` is fio's time before its first I/O, `end_s` after its last."""
        super().__init__("wall")
        self.now_s, self.start_s, self._end_s = 1000.0, start_s, end_s
        self.io: list[tuple[float, float]] = []
        self.telemetry = SimpleNamespace(now_s=lambda: self.now_s)
        self.device.idle = self._pass

    def _pass(self, seconds: float) -> None:
        self.idled.append(seconds)
        self.now_s += seconds

    def run_cell(
        self, name: str, cell: Any, on_tick: Any, place: dict[str, int], *more: Any, alike: bool = False
    ) -> tuple[Any, dict[str, Any]]:
        result, facts = super().run_cell(name, cell, on_tick, place)
        started_s = self.now_s
        self.io.append((started_s + self.start_s, started_s + self.start_s + cell.runtime_s))
        self.now_s = self.io[-1][1] + self._end_s
        times = {"started_s": started_s, "ended_s": self.now_s}
        return result, {**facts, **times, "io_started_s": self.io[-1][0], "io_ended_s": self.io[-1][1]}

    def idle_s(self) -> list[float]:
        """Return the idle times between the I/O of consecutive cells."""
        return [after[0] - before[1] for before, after in zip(self.io, self.io[1:], strict=False)]
