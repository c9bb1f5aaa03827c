"""`drivelab test`: run drivelab's tests, in tiers."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from drivelab.errors import UserError
from drivelab.parent import start

ROOT = Path(__file__).resolve().parents[3]
# pytest's exit statuses
INTERRUPTED = 2
NO_TESTS_COLLECTED = 5


def run_default(arguments: Sequence[str]) -> int:
    """Run the tests of the default tier: first the device tests serially, then the rest in parallel."""
    if any(argument.startswith("-m") for argument in arguments):  # the user's markers replace the split below
        return _pytest(*arguments)
    device = _pytest("-m", "device", *arguments)
    if device == INTERRUPTED:
        return device
    parallel = _pytest("-n", "auto", "-m", "not device", *arguments)
    statuses = [status for status in (device, parallel) if status != NO_TESTS_COLLECTED]
    return next(filter(None, statuses), 0) if statuses else NO_TESTS_COLLECTED


def run_fresh(arguments: Sequence[str]) -> int:
    """Run set-up, demo and tests in new minimal systems; arguments name Debian releases (default: all)."""
    return _run("tests/fresh/run.sh", *arguments)


def run_emulated(arguments: Sequence[str]) -> int:
    """Run tests on drives of emulated machines; status 77, with the reason, without QEMU or a kernel."""
    return _pytest("tests/emulated", *arguments)


def run_cluster(arguments: Sequence[str]) -> int:
    """Run tests on a two-host Slurm on this machine; status 77, with the reason, if it is not available."""
    return _pytest("tests/cluster", *arguments)


def run_browser(arguments: Sequence[str]) -> int:
    """Run tests of the report in Chromium; status 77, with the reason, if it is not available."""
    return _pytest("tests/browser", *arguments)


def _pytest(*arguments: str) -> int:
    return _run(sys.executable, "-m", "pytest", *arguments)


def _run(*command: str) -> int:
    with start(command, signal="INT", cwd=ROOT, stdin=None) as process:
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
    "default": Tier("unit, workflow and device tests; further arguments go to pytest", run_default),
    "browser": Tier("report in a browser (Chromium; two minutes)", run_browser),
    "cluster": Tier("studies on a two-host Slurm on this machine (root; four minutes)", run_cluster),
    "emulated": Tier("NVMe, SATA and SCSI drives of emulated machines (QEMU, root; five minutes)", run_emulated),
    "fresh": Tier("set-up, demo and tests in minimal Debian systems (root; takes half an hour)", run_fresh),
}


def split_tier(arguments: Sequence[str]) -> tuple[str, Sequence[str]]:
    """Return the tier's name and its arguments.

    Options and paths belong to the default tier, so that `drivelab test -k seal` and `drivelab test tests/unit` work.
    """
    first, *rest = arguments or ["default"]
    if first in TIERS:
        return first, rest
    if first.startswith("-") or (ROOT / first.partition("::")[0]).exists():
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
    tier, arguments = split_tier(options.arguments)
    return TIERS[tier].run(arguments)
