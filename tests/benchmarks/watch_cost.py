"""Measure the cost of the live view: IOPS of a virtual drive with and without it.

Run as root: PYTHONPATH=scripts python tests/benchmarks/watch_cost.py [SECONDS]   (default: 4 s per run)

The virtual drive runs in real time. Telemetry samples both runs of a pair, as in a measurement. Beside one of them, in
alternating order, run the watcher's process and a client that receives its events. The result is the median ratio of
IOPS with the watcher to IOPS without, and its distribution-free 95 % confidence interval. The spread of the first pairs
determines how many pairs make each side of the interval half as wide as the bar (Stein, Annals of Mathematical
Statistics 16, 1945: by the spread alone, so that the result does not decide when to stop). The bar: less than 1 %. It
is shown when the whole interval is above 0.99, exceeded when all of it is below, and open otherwise.

A second measurement updates many times per second and divides the loss by that factor. This is more precise if the loss
grows with the number of updates.
"""

from __future__ import annotations

import json
import math
import os
import statistics
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, nullcontext
from pathlib import Path
from typing import IO

from telemetry_cost import median_interval

from drivelab.plan.yaml_file import load_yaml
from drivelab.telemetry.sampler import Sampler
from drivelab.telemetry.sources import sources_for
from drivelab.virtual import manage
from drivelab.virtual.model import DriveModel

ROOT = Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "tests/support"))
from watched import MadeDrive, facts  # noqa: E402 - needs the path above

NAME = "op7"
FACTOR = 20
"""The second measurement updates this many times as often as in normal use."""
BAR = 0.01
"""Bar for the loss of IOPS, as a share."""
FIRST_PAIRS, MOST_PAIRS = 20, 240
_MEDIAN_EFFICIENCY = math.sqrt(math.pi / 2)
"""Standard error of a normal sample's median, relative to that of its mean."""
_TICKS_PER_S = os.sysconf("SC_CLK_TCK")


def serve(results: Path, period_s: float) -> None:
    """Serve like `drivelab watch` until the input ends: the watcher's process."""
    from drivelab.watch.hub import Hub
    from drivelab.watch.study_view import StudyWatch
    from drivelab.watch.web_server import WatchServer

    os.nice(19)
    server = WatchServer(Hub([StudyWatch(facts(results, MadeDrive(results, NAME)))], period_s))
    server.start()
    print(server.url, flush=True)
    sys.stdin.read()
    server.stop()


def cpu_s(pid: int) -> float:
    fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / _TICKS_PER_S


class Watcher:
    """Server and client, with the server's usage."""

    def __init__(self, results: Path, period_s: float) -> None:
        self.results, self.period_s = results, period_s
        self.used_s = self.watched_s = self.events = 0.0

    @contextmanager
    def __call__(self) -> Iterator[None]:
        command = [sys.executable, __file__, "--serve", str(self.results), str(self.period_s)]
        server = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
        assert server.stdin is not None
        assert server.stdout is not None
        url = server.stdout.readline().strip()
        client = subprocess.Popen(["curl", "--silent", "--no-buffer", f"{url}events"], stdout=subprocess.PIPE)
        assert client.stdout is not None
        begun = threading.Event()
        reader = threading.Thread(target=self._read, args=(client.stdout, begun))
        reader.start()
        begun.wait()
        begin_s, used_s = time.monotonic(), cpu_s(server.pid)
        try:
            yield
        finally:
            self.watched_s += time.monotonic() - begin_s
            self.used_s += cpu_s(server.pid) - used_s
            server.stdin.close()
            server.wait()
            client.wait()
            reader.join()

    def _read(self, output: IO[bytes], begun: threading.Event) -> None:
        for line in output:
            if line.startswith(b"event:"):
                self.events += 1
                begun.set()


def iops(device: str, seconds: float, drive: MadeDrive) -> float:
    """Return fio's IOPS of random reads 4 KiB, while this process samples."""
    command = ["fio", "--name=cost", f"--filename={device}", "--direct=1", "--ioengine=libaio", "--rw=randread",
               "--bs=4k", "--iodepth=32", f"--runtime={seconds}", "--time_based", "--thread",
               "--output-format=json"]  # fmt: skip
    drive.status()
    with Sampler(sources_for(Path(device).name), drive.part):
        done = subprocess.run(command, capture_output=True, text=True, check=True)
    return float(json.loads(done.stdout)["jobs"][0]["read"]["iops"])


def ratios(device: str, numbers: range, seconds: float, drive: MadeDrive, watcher: Watcher) -> list[float]:
    """Return each pair's ratio of IOPS with the watcher to without; < 1 is slower."""
    pair_ratios = []
    for number in numbers:
        rates = {}
        for watched in (True, False) if number % 2 else (False, True):
            with watcher() if watched else nullcontext():
                rates[watched] = iops(device, seconds, drive)
        pair_ratios.append(rates[True] / rates[False])
    return pair_ratios


def pairs_needed(first: Sequence[float]) -> int:
    """Return the even number of pairs that the spread of the first pairs requires.

    Each side of the interval is then half as wide as the bar.
    """
    low, _, high = statistics.quantiles(first, n=4)
    spread = (high - low) / 1.349  # normal distribution from quartiles: robust against a single disturbed pair
    needed = (1.96 * _MEDIAN_EFFICIENCY * spread / (BAR / 2)) ** 2
    return min(max(2 * math.ceil(needed / 2), len(first)), MOST_PAIRS)


def verdict(pair_ratios: Sequence[float]) -> str:
    """Return `shown`, `exceeded` or `open` from the interval of the median ratio."""
    low, high = median_interval(list(pair_ratios))
    return "shown" if low > 1 - BAR else "exceeded" if high <= 1 - BAR else "open"


def print_result(name: str, pair_ratios: Sequence[float], watcher: Watcher) -> None:
    low, high = median_interval(list(pair_ratios))
    print(f"{name}: IOPS with the watcher relative to without: {statistics.median(pair_ratios):.4f} (median of "
          f"{len(pair_ratios)} pairs; 95 %: {low:.4f} to {high:.4f}); "
          f"loss of less than {BAR:.0%}: {verdict(pair_ratios)}")  # fmt: skip
    print(f"  the watcher used {60 * watcher.used_s / watcher.watched_s:.2f} s of CPU time per minute, "
          f"{watcher.events / watcher.watched_s:.1f} events per second")  # fmt: skip


def main() -> int:
    if sys.argv[1:2] == ["--serve"]:
        serve(Path(sys.argv[2]), float(sys.argv[3]))
        return 0
    seconds = float(sys.argv[1]) if len(sys.argv) > 1 else 4.0
    print("processors:", os.cpu_count(), "load:", *os.getloadavg())
    model = DriveModel.from_mapping(NAME, load_yaml(ROOT / "config/virtual_drives.yaml")[NAME])
    drive = manage.start(NAME, model)
    try:
        fill = ["fio", "--name=fill", f"--filename={drive.device}", "--direct=1", "--rw=write", "--bs=128k"]
        subprocess.run(fill, capture_output=True, check=True)
        with tempfile.TemporaryDirectory(prefix="watch-cost-") as folder:
            study_drive = MadeDrive(Path(folder), NAME).begin()
            watcher = Watcher(Path(folder), 1.0)
            pair_ratios = ratios(drive.device, range(FIRST_PAIRS), seconds, study_drive, watcher)
            needed = pairs_needed(pair_ratios)
            pair_ratios += ratios(drive.device, range(FIRST_PAIRS, needed), seconds, study_drive, watcher)
            print_result("at one update per second", pair_ratios, watcher)
            watcher = Watcher(Path(folder), 1 / FACTOR)
            often = ratios(drive.device, range(FIRST_PAIRS), seconds, study_drive, watcher)
            divided = [1 - (1 - ratio) / FACTOR for ratio in often]
            print_result(f"at {FACTOR} per second, divided by {FACTOR}", divided, watcher)
    finally:
        manage.stop(NAME)
    return 0 if verdict(pair_ratios) == "shown" else 1


if __name__ == "__main__":
    sys.exit(main())
