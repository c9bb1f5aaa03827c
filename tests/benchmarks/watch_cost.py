"""What the live view costs a measurement: IOPS of a virtual drive in real time with and without it, in pairs.

Run as root: PYTHONPATH=scripts python tests/benchmarks/watch_cost.py [PAIRS [SECONDS]]   (default 20 pairs of 4 s)

Both runs of a pair are sampled by telemetry, as a measurement is; beside one of them, in alternating order, there are
the watcher's process and a client that takes its events. The figure is the median of the relative differences of IOPS
with its distribution-free 95 % confidence interval. As one look a second is too little to be seen above the noise of a
shared machine, the same is done with many looks a second too, and its figure divided by that factor.
The bar: less than 1 %.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager, nullcontext
from pathlib import Path
from typing import IO

from telemetry_cost import told

from drivelab.config.yaml_file import load_yaml
from drivelab.telemetry.sampler import Sampler
from drivelab.telemetry.sources import sources_for
from drivelab.virtual import manage
from drivelab.virtual.model import DriveModel

ROOT = Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "tests/support"))
from watched import MadeDrive, facts  # noqa: E402 - by the path above

NAME = "op7"
FACTOR = 20
"""How many times more often than in real life the watcher looks for the second figure."""
BAR_PCT = 1.0
_TICKS_PER_S = os.sysconf("SC_CLK_TCK")


def serve(results: Path, period_s: float) -> None:
    """The watcher's process: as `drivelab watch` serves, until its input ends."""
    from drivelab.watch.hub import Hub
    from drivelab.watch.server import WatchServer
    from drivelab.watch.study import StudyWatch

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
    """Server and client; counts what the server uses."""

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


def iops(device: str, seconds: float, made: MadeDrive) -> float:
    """Random reads of 4 KiB by fio, while this process samples as a measuring process does."""
    command = ["fio", "--name=cost", f"--filename={device}", "--direct=1", "--ioengine=libaio", "--rw=randread",
               "--bs=4k", "--iodepth=32", f"--runtime={seconds}", "--time_based", "--thread",
               "--output-format=json"]  # fmt: skip
    made.status()
    with Sampler(sources_for(Path(device).name), made.part):
        done = subprocess.run(command, capture_output=True, text=True, check=True)
    return float(json.loads(done.stdout)["jobs"][0]["read"]["iops"])


def differences_pct(device: str, pairs: int, seconds: float, made: MadeDrive, watcher: Watcher) -> list[float]:
    """Of each pair: IOPS with the watcher against those without it; negative is slower."""
    found = []
    for number in range(pairs):
        rates = {}
        for watched in (True, False) if number % 2 else (False, True):
            with watcher() if watched else nullcontext():
                rates[watched] = iops(device, seconds, made)
        found.append(100 * (rates[True] / rates[False] - 1))
    return found


def main() -> int:
    if sys.argv[1:2] == ["--serve"]:
        serve(Path(sys.argv[2]), float(sys.argv[3]))
        return 0
    pairs = int(sys.argv[1]) if len(sys.argv) > 1 else 20
    seconds = float(sys.argv[2]) if len(sys.argv) > 2 else 4.0
    print("processors:", os.cpu_count(), "load:", *os.getloadavg())
    model = DriveModel.from_mapping(NAME, load_yaml(ROOT / "config/virtual_drives.yaml")[NAME])
    drive = manage.start(NAME, model)
    try:
        fill = ["fio", "--name=fill", f"--filename={drive.device}", "--direct=1", "--rw=write", "--bs=128k"]
        subprocess.run(fill, capture_output=True, check=True)
        with tempfile.TemporaryDirectory(prefix="watch-cost-") as folder:
            made = MadeDrive(Path(folder), NAME).begin()
            worst = 0.0
            for factor in (1, FACTOR):
                watcher = Watcher(Path(folder), 1 / factor)
                name = "at one look a second" if factor == 1 else f"at {factor} a second, by {factor}"
                worst = told(name, differences_pct(drive.device, pairs, seconds, made, watcher), factor)
                print(f"  the watcher used {60 * watcher.used_s / watcher.watched_s:.2f} s of CPU time a minute, "
                      f"{watcher.events / watcher.watched_s:.1f} events a second")  # fmt: skip
    finally:
        manage.stop(NAME)
    print(f"less than {BAR_PCT:g} %: {'yes' if worst < BAR_PCT else 'NO'}")
    return 0 if worst < BAR_PCT else 1


if __name__ == "__main__":
    sys.exit(main())
