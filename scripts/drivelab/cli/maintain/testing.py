"""`drivelab test`: run drivelab's tests, in tiers."""

from __future__ import annotations

import argparse
import os
import subprocess
import tempfile
from collections.abc import Callable, Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from drivelab.core.errors import UserError
from drivelab.core.programs import python, start

ROOT = Path(__file__).resolve().parents[4]
NO_TESTS_COLLECTED = 5
"""pytest's exit status"""
DEVICES = ("device and not single", "device and single")
"""Markers of the device tests that run beside each other."""
_PYTEST = python("-m", "pytest")
LEFT_OUT = """\
Not run: the long tests of the same folders (./drivelab test long),
and the report in a browser, a Slurm cluster, emulated drives (./drivelab test browser, cluster, emulated)."""


def run_default(arguments: Sequence[str]) -> int:
    """Run all tests but the long ones, and say what was left out.

    Paths and markers in the arguments replace this choice: the tests that they name run, long ones too.
    """
    if any(argument.startswith("-m") for argument in arguments):
        return _pytest(*arguments)
    if any(_is_path(argument) for argument in arguments):
        return _beside("", *arguments)
    status = _beside("not long and ", *arguments)
    print(LEFT_OUT)
    return status


def _beside(marker: str, *arguments: str, waiting: int = 0) -> int:
    """Run the device tests beside the others: they mostly wait. Their output follows that of the others.

    The others have a worker for each CPU, and `waiting` more.
    The device tests run in two processes, in each one after another. One has those that use what this machine has once.
    """
    places = [] if any(map(_is_path, arguments)) else ["tests/drives"]
    with ExitStack() as running:
        outputs = [running.enter_context(tempfile.TemporaryFile("w+")) for _ in DEVICES]
        devices = [
            running.enter_context(
                _start(*_PYTEST, "-m", f"{marker}{which}", *places, *arguments, stdout=output, stderr=output)
            )
            for which, output in zip(DEVICES, outputs, strict=True)
        ]  # fmt: skip
        # Stealing keeps the tests of a file together, so that few workers make its fixtures. Device tests run in real
        # time, so they take precedence (nice).
        workers = str((os.cpu_count() or 1) + waiting)
        others = (*_PYTEST, "-n", workers, "--dist", "worksteal", "-m", f"{marker}not device", *arguments)
        statuses = [_run("nice", "-n", "5", *others), *map(_end, devices)]
        for which, output in zip(DEVICES, outputs, strict=True):
            output.seek(0)
            print(f"\nTests '{which}':\n", output.read(), sep="")
    failures = [status for status in statuses if status not in (0, NO_TESTS_COLLECTED)]
    return failures[0] if failures else min(statuses)


def _is_path(argument: str) -> bool:
    return not argument.startswith("-") and (ROOT / argument.partition("::")[0]).exists()


def _of(folder: str) -> Callable[[Sequence[str]], int]:
    """Return what runs the tests of a folder; they end with status 77, and the reason, without what they need."""
    return lambda arguments: _pytest(folder, *arguments)


def _pytest(*arguments: str) -> int:
    return _run(*_PYTEST, *arguments)


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


@dataclass(frozen=True)
class Tier:
    """A named set of tests; `run` takes the remaining arguments and returns the exit status."""

    summary: str
    run: Callable[[Sequence[str]], int]


TIERS = {
    "default": Tier("all but the long tests (ten minutes on two cores); further arguments go to pytest", run_default),
    "long": Tier(
        "long studies, repeated kills, drive faults, all commands of the docs (twelve minutes)",
        lambda more: _beside("long and ", *more, waiting=1),  # three of them run studies in real time
    ),
    "browser": Tier("report in a browser (Chromium; four minutes)", _of("tests/browser")),
    "cluster": Tier("studies on a two-host Slurm on this machine (root; ten minutes)", _of("tests/cluster")),
    "emulated": Tier("NVMe, SATA and SCSI drives of emulated machines (QEMU, root; 15 minutes)", _of("tests/emulated")),
    "packages": Tier(
        "the wheel with the newest and the oldest packages of its bounds, without the lock (network; three minutes)",
        lambda more: _pytest("tests/packages", "-n", "2", "-rP", *more),
    ),
    "fresh": Tier(
        "set-up, demo and tests in minimal Debian systems (root; takes half an hour)",
        lambda releases: _run("tests/fresh/run.sh", *releases),
    ),
}


def split_tier(arguments: Sequence[str]) -> tuple[str, Sequence[str]]:
    """Return the tier's name and its arguments.

    Options and paths belong to the default tier, so that `drivelab test -k seal` and `drivelab test tests/unit` work.
    """
    first, *rest = arguments or ["default"]
    if first in TIERS:
        return first, rest
    if first.startswith("-") or _is_path(first):
        return "default", arguments
    raise UserError(f"test: there is no tier or path '{first}'. Tiers: {', '.join(TIERS)}.")


def add_parser(commands: Any) -> None:
    """Register `drivelab test [TIER] [ARGUMENT ...]`."""
    tiers = "\n".join(f"  {name:<10}{tier.summary}" for name, tier in TIERS.items())
    parser = commands.add_parser(
        "test",
        help="run drivelab's own tests",
        usage="drivelab test [TIER] [ARGUMENT ...]",
        description=f"Run drivelab's own tests.\n\ntiers:\n{tiers}",
        formatter_class=argparse.RawDescriptionHelpFormatter,
        # Options belong to pytest: without a real prefix character, argparse takes everything as an argument.
        prefix_chars="\0",
        add_help=False,
    )
    parser.add_argument("arguments", nargs="*", help=argparse.SUPPRESS)
    parser.set_defaults(handler=_test, show_help=parser.print_help)


def _test(options: argparse.Namespace) -> int:
    if options.arguments[:1] in (["-h"], ["--help"]):
        options.show_help()
        return 0
    if not (ROOT / "tests/conftest.py").is_file():
        raise UserError("test: the tests are in the source of drivelab, not in the installed package. Get the source, "
                        "and run ./drivelab test in its folder.")  # fmt: skip
    tier, arguments = split_tier(options.arguments)
    return TIERS[tier].run(arguments)
