"""Run drivelab's tests, in tiers: `./drivelab test`."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tempfile
from collections.abc import Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from drivelab.core.errors import UserError
from drivelab.core.programs import python, start
from drivelab.core.termination import end_in_order

ROOT = Path(__file__).resolve().parents[1]
NO_TESTS_COLLECTED = 5
"""pytest's exit status"""
KEPT = ROOT / ".pytest_cache"
"""Has the results of each part, PART.xml (JUnit), and its cache of pytest, which knows the failed tests."""
_PYTEST = python("-m", "pytest")
_WORKERS = os.cpu_count() or 1
_STEALING = ("--dist", "worksteal")  # keeps the tests of a file together, so that few workers make its fixtures
_SECOND_OF_WORK = """
import time
end = time.monotonic() + 1
done = 0
while time.monotonic() < end:
    done += len(repr([*range(100)]))
print(done)
"""
_WORK = 4.2e10
"""Work of the default tier, in the unit of _SECOND_OF_WORK."""
_ACCIDENTS = 10
"""Most failures of a part that the moment may explain; more do not run again."""
LEFT_OUT = "Not run: tests in real time (./drivelab test device, long, browser, cluster, emulated)."


@dataclass(frozen=True)
class Part:
    """Tests of a tier that one pytest runs."""

    name: str
    arguments: tuple[str, ...]
    nice: int = 0


@dataclass(frozen=True)
class Tier:
    """A named set of tests; its parts run beside each other."""

    summary: str
    parts: tuple[Part, ...]


def _of(folder: str, *arguments: str) -> tuple[Part, ...]:
    """Return the tests of a folder; they end with status 77, and the reason, without what they need."""
    return (Part(folder, (f"tests/{folder}", *arguments)),)


TIERS: Mapping[str, Tier] = {
    "default": Tier(
        "all but those in real time (8 minutes on two cores); further arguments go to pytest",
        # Here and in `long` one worker more than processors: some tests wait for programs.
        (Part("default", ("-n", str(_WORKERS + 1), *_STEALING, "-m", "not device and not long"), nice=5),),
    ),
    # One after another: in each part only one test uses the machine's loop devices, or what there is once.
    "device": Tier(
        "block devices, mounts and the kernel's tracer of this machine (root; ten minutes)",
        (Part("device", ("-m", "device and not single", "tests/drives")),
         Part("device-single", ("-m", "device and single", "tests/drives"))),
    ),
    "long": Tier(
        "long studies, repeated kills, all commands of the docs (ten minutes)",
        (Part("long", ("-n", str(_WORKERS + 1), *_STEALING, "-m", "long and not device"), nice=5),),
    ),
    "browser": Tier("report in a browser (Chromium; two minutes)", _of("browser")),
    "cluster": Tier("studies on a two-host Slurm on this machine (root; ten minutes)", _of("cluster")),
    "emulated": Tier("NVMe, SATA and SCSI drives of emulated machines (QEMU, root; 15 minutes)", _of("emulated")),
    "packages": Tier(
        "the wheel with the newest and the oldest packages of its bounds, without the lock (network; three minutes)",
        _of("packages", "-n", "2", "-rP"),
    ),
    "again": Tier("tests of a tier in real time that failed last, with nothing beside them: test again long", ()),
    "fresh": Tier("set-up, demo and tests in minimal Debian systems (root; takes half an hour)", ()),
}  # fmt: skip


def _default(arguments: Sequence[str]) -> int:
    """Run the default tier, after its expected time. Paths and markers replace the choice of tests."""
    if any(argument.startswith("-m") or _is_path(argument) for argument in arguments):
        return _run(*_PYTEST, *arguments)
    print(f"drivelab: this takes about {_expected_s() / 60:.0f} min on this machine now", flush=True)
    status = _tier(TIERS["default"], arguments)
    print(LEFT_OUT)
    return status


def _expected_s() -> float:
    """Return how long the default tier takes here now, from a second of work on all processors."""

    def pace(_: int) -> int:
        with _start(*python("-c", _SECOND_OF_WORK), stdout=subprocess.PIPE, text=True) as process:
            return int(process.communicate()[0])

    with ThreadPoolExecutor() as pool:
        return _WORK / sum(pool.map(pace, range(_WORKERS)))


def _tier(tier: Tier, arguments: Sequence[str]) -> int:
    """Run the parts of a tier beside each other; the output of the others follows that of the first."""
    with ExitStack() as running:
        outputs = [running.enter_context(tempfile.TemporaryFile("w+")) for _ in tier.parts[1:]]
        started = [running.enter_context(_start_part(part, arguments, **options)) for part, options in zip(
            tier.parts, [{}, *({"stdout": output, "stderr": output} for output in outputs)], strict=True
        )]  # fmt: skip
        statuses = [_end(process) for process in started]
        for part, output in zip(tier.parts[1:], outputs, strict=True):
            output.seek(0)
            print(f"\nTests '{part.name}':\n", output.read(), sep="")
    return _joined(statuses)


def _joined(statuses: Sequence[int]) -> int:
    """Return one status of several: that of a pytest which did not end by itself, before that of failed tests (1)."""
    failures = [status for status in statuses if status not in (0, NO_TESTS_COLLECTED)]
    return min(failures, key=lambda status: status == 1) if failures else min(statuses)


def _start_part(part: Part, arguments: Sequence[str], **options: Any) -> subprocess.Popen[Any]:
    (KEPT / f"{part.name}.again.xml").unlink(missing_ok=True)
    kept = ("-o", f"cache_dir={KEPT / part.name}", "--cache-clear", "--junitxml", str(KEPT / f"{part.name}.xml"))
    return _start("nice", "-n", str(part.nice), *_PYTEST, *part.arguments, *kept, *arguments, **options)


def _again(names: Sequence[str]) -> int:
    """Run what failed last in these tiers once more, one after another; in each of them, something must have failed."""
    in_real_time = [name for name, tier in TIERS.items() if tier.parts and name != "default"]
    if not names or not set(names) <= set(in_real_time):
        raise UserError(f"test again: name tiers in real time: {', '.join(in_real_time)}")
    return _joined([_tier_again(name) for name in names])


def _tier_again(name: str) -> int:
    records = {part: KEPT / part.name / "v/cache/lastfailed" for part in TIERS[name].parts}
    failed = {part: json.loads(record.read_text()) for part, record in records.items() if record.exists()}
    if not any(failed.values()):
        raise UserError(f"test: no test of tier '{name}' has failed; run ./drivelab test {name}")
    return _joined([_part_again(part, len(tests)) for part, tests in failed.items() if tests])


def _part_again(part: Part, count: int) -> int:
    if count > _ACCIDENTS:
        print(f"\nTests '{part.name}': {count} failed. So many do not run again.", flush=True)
        return 1
    print(f"\nTests '{part.name}' again:", flush=True)
    kept = ("-o", f"cache_dir={KEPT / part.name}", "--junitxml", str(KEPT / f"{part.name}.again.xml"))
    once_more = ("--last-failed", "--last-failed-no-failures", "none", *kept)
    return _run(*_PYTEST, *part.arguments, "-n", "0", *once_more)


def _is_path(argument: str) -> bool:
    return not argument.startswith("-") and (ROOT / argument.partition("::")[0]).exists()


def _run(*command: str) -> int:
    with _start(*command) as process:
        return _end(process)


def _start(*command: str, **options: Any) -> subprocess.Popen[Any]:
    # Container images set this variable: each of the many processes would compile all modules again.
    environment = {name: value for name, value in os.environ.items() if name != "PYTHONDONTWRITEBYTECODE"}
    return start(command, signal="INT", cwd=ROOT, env=environment, **({"stdin": None} | options))


def _end(process: subprocess.Popen[Any]) -> int:
    while True:
        try:
            return process.wait()
        except KeyboardInterrupt:  # the terminal interrupts the process too; it cleans up
            continue


def split_tier(arguments: Sequence[str]) -> tuple[str, Sequence[str]]:
    """Return the tier's name and its arguments.

    Options and paths belong to the default tier, so that `test -k seal` and `test tests/unit` work.
    """
    first, *rest = arguments or ["default"]
    if first in TIERS:
        return first, rest
    if first.startswith("-") or _is_path(first):
        return "default", arguments
    raise UserError(f"test: there is no tier or path '{first}'. Tiers: {', '.join(TIERS)}.")


def main(arguments: Sequence[str]) -> int:
    """Run tests; return the status: that of pytest, or 2 for a user error."""
    end_in_order()
    if arguments[:1] in (["-h"], ["--help"]):
        print("usage: ./drivelab test [TIER] [ARGUMENT ...]\n\nRun drivelab's own tests.\n\ntiers:")
        print(*(f"  {name:<10}{tier.summary}" for name, tier in TIERS.items()), sep="\n")
        return 0
    try:
        tier, others = split_tier(arguments)
        if tier == "fresh":
            return _run("tests/fresh/run.sh", *others)
        runs = {"default": _default, "again": _again}
        return runs[tier](others) if tier in runs else _tier(TIERS[tier], others)
    except UserError as error:
        print(f"drivelab: {error}", file=sys.stderr)
        return 2
    except KeyboardInterrupt:
        return 130


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
