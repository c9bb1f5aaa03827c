"""Kill the processes of a virtual-clock study at random and disturb its drives until the study is complete.

`python tests/support/chaos.py --kills 500 --seed 7` runs longer than the test.
"""

from __future__ import annotations

import argparse
import os
import random
import re
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from itertools import zip_longest
from pathlib import Path
from typing import Any

import pandas as pd
from chaos_results import essence, interrupted, unfinished
from faults import FaultStudy, Outcome
from leftovers import leftovers
from waits import DRIVELAB

from drivelab.recording.checksums import altered
from drivelab.run.progress import read_status, state_now
from drivelab.virtual.faults import Fault, set_faults

DRIVES = ("left", "right")
_MODELS = """\
left: &one
  serial: VIRTUAL-LEFT
  capacity: 8MiB
  over_provisioning: 12%
  pages_per_block: 16
  slc_cache: 1MiB
right:
  <<: *one
  serial: VIRTUAL-RIGHT
  over_provisioning: 28%
"""
_SHEET = "drive\tdevice\tserial\tdestructive\tnote\n" + "".join(
    f"{drive}\tvirtual:{drive}\tVIRTUAL-{drive.upper()}\tyes\t\n" for drive in DRIVES
)
_STUDY = """\
name: chaos
results: results/chaos
clock: virtual
basis: left
drives: [left, right]
traces: {sqlite: {shipped: sqlite-inserts}}
measurements:
  - protocol: pts-iops
    scale: demo
    set:
      settle: 2s
      loop:
        runtime: 300ms
        pause: 1500ms
        cells: {read_share: [100, 0], block_size: [4KiB]}
        until: {steady_state: {max_rounds: 8, track: [{read_share: 0, block_size: 4KiB, metric: iops}]}}
  - protocol: pts-idle-recovery
    scale: demo
    set:
      repeat: {over: {time: [3s, 8s]}, loop: {runtime: 500ms, until: {rounds: 2}}, soak: {until: {time: 2s}}}
      soak: {until: {time: 8s}}
  - protocol: trace-replay
    scale: demo
    trace: sqlite
    set: {replay: {until: {passes: 1}}}
"""
MEASUREMENTS = 3
KINDS = {
    "run": 1, "snakemake": 1, "measure": 3, "precondition": 1, "purge": 1, "script": 2, "any": 1, "all": 1,
}  # fmt: skip
"""Number of kills per kind of process in eleven: `all` is the whole tree at once, `any` a random process of it."""
_SIGNALS = ([signal.SIGKILL], [signal.SIGKILL], [signal.SIGKILL], [signal.SIGTERM], [signal.SIGINT],
            [signal.SIGHUP], [signal.SIGSTOP, signal.SIGKILL])  # fmt: skip
_FAULTS = (Fault("error", "write"), Fault("error", "read", 4 << 20, 1 << 20), Fault("hang"), Fault("gone"))
_WORDS = {"error": "Input/output error", "hang": "does not complete", "gone": "No such device"}
_GENEROUS_S = 1800.0
"""Time after which a process counts as hanging."""


@dataclass
class Tally:
    """Counts of what was done to the study."""

    kills: Counter[str] = field(default_factory=Counter)
    faults: int = 0
    runs: int = 0
    rounds: int = 0
    """Number of times that the study was completed."""
    interrupted: int = 0
    """Cells and fills that were measured again after a kill or a fault."""
    signals: Counter[str] = field(default_factory=Counter)

    @property
    def killed(self) -> int:
        return sum(self.kills.values())


class ChaosStudy(FaultStudy):
    """A copy of the project with the study `chaos`, of all DRIVES or of some."""

    def __init__(self, folder: Path, drives: Sequence[str] = DRIVES) -> None:
        super().__init__(folder)
        self.drives = drives
        (folder / "config/virtual_drives.yaml").write_text(_MODELS)
        (folder / "config/drives.tsv").write_text(_SHEET)
        (folder / "config/chaos.yaml").write_text(_STUDY.replace(", ".join(DRIVES), ", ".join(drives)))
        self.results = folder / "results/chaos"
        self.undisturbed = folder / "undisturbed"

    def run(self, act: Callable[[Any], None] = lambda process: None) -> Outcome:
        """Run the study and call `act` with its process; fail unless all processes end soon afterwards."""
        log = self.folder / "chaos.log"
        with log.open("w") as output:
            process = self.start_in("run", "config/chaos.yaml", output=output)
            try:
                act(process)
                process.wait(_GENEROUS_S)
            finally:
                if process.poll() is None:
                    process.kill()
                    process.wait()
        self.wait_for_all_processes()
        return Outcome(process.returncode, log.read_text())

    def start_in(self, *arguments: str, output: Any) -> Any:
        environment = {**os.environ, "PYTHONPATH": str(self.folder / "scripts"),
                       "TMPDIR": str(self.folder / "tmp")}  # fmt: skip
        (self.folder / "tmp").mkdir(exist_ok=True)
        return subprocess.Popen(
            [*DRIVELAB, *arguments], cwd=self.folder, env=environment, stdin=subprocess.DEVNULL,
            stdout=output, stderr=subprocess.STDOUT,
        )  # fmt: skip

    def wait_for_all_processes(self) -> None:
        """Wait until all processes have ended by themselves."""
        deadline_s = time.monotonic() + _GENEROUS_S
        while result := leftovers():
            assert time.monotonic() < deadline_s, result
            time.sleep(0.02)

    def keep_as_undisturbed(self) -> None:
        done = self.run()
        assert done.status == 0, done.output
        assert unfinished(self.results) == []
        self.results.rename(self.undisturbed)

    def check_equal(self) -> list[str]:
        """Fail unless the complete study equals the undisturbed one; return the interrupted cells."""
        recordings = [path.parent for path in self.undisturbed.glob("recordings/*/*/*/recording.json")]
        assert len(recordings) == len(self.drives) * MEASUREMENTS
        lost: list[str] = []
        for recording in recordings:
            again = self.results / recording.relative_to(self.undisturbed)
            assert altered(again) == {}
            _assert_equal(essence(recording), essence(again), again)
            lost += (f"{recording.relative_to(self.undisturbed)}: {name}" for name in interrupted(again))
        expected, result = (
            {str(path.relative_to(top)): path for path in top.glob("tables/**/*.parquet")}
            for top in (self.undisturbed, self.results)
        )
        assert expected.keys() == result.keys()
        for name, path in expected.items():
            pd.testing.assert_frame_equal(_table(path), _table(result[name]), check_exact=True, obj=name)
        assert unfinished(self.results) == []
        assert list((self.folder / "tmp").glob("drivelab-*")) == []  # Snakemake leaves other folders
        assert "running" not in map(state_now, read_status(self.results))
        return lost

    def start_over(self) -> None:
        shutil.rmtree(self.results)
        shutil.rmtree(self.folder / ".snakemake")


def _assert_equal(expected: Mapping[str, Any], found: Mapping[str, Any], where: Path) -> None:
    for key in expected:
        pairs = zip_longest(expected[key], found[key])
        apart = [(value, other) for value, other in pairs if value != other]
        assert found[key] == expected[key], f"{where}: {key}: {apart[:3]}"


def _table(path: Path) -> pd.DataFrame:
    return pd.read_parquet(path).drop(columns=["recorded"], errors="ignore")


class Monkey:
    """Kills processes at random moments; the seed fixes the sequence, but the machine the timing."""

    def __init__(self, study: ChaosStudy, seed: int, kills: int) -> None:
        self.study, self._random = study, random.Random(seed)
        deck = [kind for kind, often in KINDS.items() for _ in range(often)]
        self._deck: list[str] = []
        self._signals: list[list[signal.Signals]] = []
        while len(self._deck) < kills:
            self._random.shuffle(deck)
            self._deck += deck
        del self._deck[kills:]
        self._faults = list(range(3, kills, 6))
        self.tally = Tally()

    def play(self) -> Tally:
        """Run the study repeatedly with kills until the deck is used up, then to its end."""
        killed_of_round = 0
        while True:
            before = self.tally.killed
            faulty = self._fault()
            done = self.study.run(self._kill_from_the_deck if faulty is None else lambda process: None)
            self.tally.runs += 1
            killed_of_round += self.tally.killed - before
            if faulty is not None:
                killed_of_round += self._judge(faulty, done)
            if done.status != 0:
                assert self.tally.killed > before or faulty is not None, done.output
                continue
            self.tally.rounds += 1
            lost = self.study.check_equal()
            assert len(lost) <= killed_of_round, (
                f"{killed_of_round} kills, but more cells were measured again: {', '.join(lost)}"
            )
            self.tally.interrupted += len(lost)
            if not self._deck:
                return self.tally
            self.study.start_over()
            killed_of_round = 0

    def _state(self, drive: str) -> Path:
        return self.study.results / f"virtual/VIRTUAL-{drive.upper()}.state"

    def _fault(self) -> Fault | None:
        """Disturb a drive in this run if a fault is due and a drive still has measurements to do."""
        measured = Counter(path.parts[-4] for path in self.study.results.glob("recordings/*/*/*/recording.json"))
        at_work = [drive for drive in DRIVES if self._state(drive).parent.exists() and measured[drive] < MEASUREMENTS]
        if not (self._faults and self._faults[0] <= self.tally.killed and at_work):
            return None
        del self._faults[0]
        fault, drive = self._random.choice(_FAULTS), self._random.choice(at_work)
        set_faults(self._state(drive), fault)
        return fault

    def _judge(self, fault: Fault, done: Outcome) -> int:
        for drive in DRIVES:
            set_faults(self._state(drive))
        hit = _WORDS[fault.kind] in done.output
        if hit:
            assert re.search(r"drivelab: drive '\w+'.*" + _WORDS[fault.kind] + ".*run again", done.output), done.output
        self.tally.faults += hit
        return done.output.count(_WORDS[fault.kind])

    def _kill_from_the_deck(self, process: Any) -> None:
        """Kill processes one after another until the run ends."""
        while self._deck and process.poll() is None:
            self._signals = self._signals or self._random.sample(_SIGNALS, len(_SIGNALS))
            kind, signals = self._deck[-1], self._signals.pop()
            if self._find_and_kill(kind, signals, process):
                self._deck.pop()
                self.tally.kills[kind] += 1
                self.tally.signals["+".join(number.name for number in signals)] += 1
                if kind in ("run", "snakemake", "all"):
                    return
            else:
                return

    def _find_and_kill(self, kind: str, signals: list[signal.Signals], process: Any) -> bool:
        moment = self._random.choice(["measure", "measure", "precondition", "script"])
        if kind in ("run", "snakemake", "any", "all") and self._await(moment, process) is None:
            return False
        victims = self._await(kind, process)
        if victims is None:
            return False
        if kind == "measure":
            self._await_lines(victims[0], self._random.randrange(12), process)
        delay_s = self._random.uniform(0, 0.05 if kind == "measure" else 0.4)
        end_s = time.monotonic() + delay_s
        while time.monotonic() < end_s and process.poll() is None:
            time.sleep(0.001)
        alive = [pid for pid in victims if Path(f"/proc/{pid}").exists()]
        if not alive:
            return False if process.poll() is not None else self._find_and_kill(kind, signals, process)
        for number in signals:
            for pid in alive:
                with suppress(ProcessLookupError):
                    os.kill(pid, number)
            if number == signal.SIGSTOP:
                time.sleep(0.05)
        return True

    def _await(self, kind: str, process: Any) -> list[int] | None:
        """Wait for processes of a kind and return them; None if the run ends first."""
        while process.poll() is None:
            if result := self._of_kind(kind, process.pid):
                return result
            time.sleep(0.01)
        return None

    def _of_kind(self, kind: str, run: int) -> list[int]:
        below = tree(run)
        if kind == "all":
            return list(below)
        if kind == "any":
            return [self._random.choice(list(below))] if below else []
        named = {pid: _kind(words) for pid, words in below.items() if pid != run}
        named[run] = "run"
        return [pid for pid, found_kind in named.items() if found_kind == kind][:1]

    def _await_lines(self, pid: int, lines: int, process: Any) -> None:
        """Wait until the journal of a measuring process has `lines` more lines, or the process ends."""
        words = _words(pid)
        plan = next((word for word in words if word.endswith(".json")), None)
        if plan is None:
            return
        _, drive, measurement, key = Path(plan).with_suffix("").parts[-4:]
        part = self.study.results / f"recordings/{drive}/{measurement}/{key}.part/journal.jsonl"
        begun = _count(part)
        while _count(part) < begun + lines and Path(f"/proc/{pid}").exists() and process.poll() is None:
            time.sleep(0.001)


def _count(path: Path) -> int:
    try:
        return path.read_bytes().count(b"\n")
    except FileNotFoundError:
        return 0


def _words(pid: int) -> list[str]:
    try:
        return Path(f"/proc/{pid}/cmdline").read_text(errors="replace").split("\0")[:-1]
    except OSError:
        return []


def tree(top: int) -> dict[int, list[str]]:
    """Return the command line of a process and of each process below it."""
    commands: dict[int, list[str]] = {}
    left = [top]
    while left:
        pid = left.pop()
        if words := _words(pid):
            commands[pid] = words
        tasks: list[Path] = []
        with suppress(OSError):  # the process may end meanwhile
            tasks += Path(f"/proc/{pid}/task").glob("*/children")
        for task in tasks:
            with suppress(OSError):
                left += map(int, task.read_text().split())
    return commands


def _kind(words: list[str]) -> str:
    if any("/.snakemake/scripts/" in word for word in words):
        return "script"
    if "snakemake" in words:
        return "snakemake"
    for stage in ("measure", "precondition", "purge"):
        if stage in words:
            return stage
    return "other"


def main() -> int:
    """Run the chaos test from the command line; return 0 if nothing failed."""
    options = argparse.ArgumentParser(description=__doc__)
    options.add_argument("--kills", type=int, default=500)
    options.add_argument("--seed", type=int, default=random.randrange(10**6))
    chosen = options.parse_args()
    print(f"seed {chosen.seed}", flush=True)
    with tempfile.TemporaryDirectory(prefix="drivelab-chaos-") as folder:
        os.environ["DRIVELAB_RUN_DIR"] = folder
        study = ChaosStudy(Path(folder) / "project")
        study.keep_as_undisturbed()
        print(Monkey(study, chosen.seed, chosen.kills).play())
    return 0


if __name__ == "__main__":
    sys.exit(main())
