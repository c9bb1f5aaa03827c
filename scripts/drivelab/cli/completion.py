"""`drivelab completion`: completion for a shell, made from the parser."""

from __future__ import annotations

import argparse
import os
from collections.abc import Callable, Iterable
from typing import Any, TypeVar

from drivelab.core.errors import UserError

_SHELLS = ("bash", "zsh", "fish")
_Names = Callable[[], Iterable[str]]
_Action = TypeVar("_Action", bound=argparse.Action)


def add_parser(commands: Any) -> None:
    """Register `completion`."""
    parser = commands.add_parser(
        "completion",
        help="print completion for a shell",
        description='Prints what a shell needs to complete commands, options and names: eval "$(drivelab completion '
        'bash)" in ~/.bashrc, the same with zsh in ~/.zshrc, drivelab completion fish | source in config.fish.',
    )
    parser.add_argument("shell", metavar="SHELL", choices=_SHELLS, help="bash, zsh or fish")
    parser.set_defaults(handler=_print)


def _print(options: argparse.Namespace) -> int:
    from argcomplete import shellcode  # type: ignore[attr-defined]

    print(shellcode(["drivelab"], shell=options.shell))
    return 0


def complete(parser: argparse.ArgumentParser) -> None:
    """Answer the shell and exit, if it asks for completions."""
    if "_ARGCOMPLETE" in os.environ:
        from argcomplete import autocomplete

        autocomplete(parser, always_complete_options=False)


def completed_by(action: _Action, names: _Names) -> _Action:
    """Let the shell complete an argument with the names that `names` returns."""

    def completer(**_: Any) -> list[str]:
        try:
            return list(names())
        except (UserError, OSError):
            return []  # the command itself says what is wrong

    action.completer = completer  # type: ignore[attr-defined]
    return action


def protocols() -> Iterable[str]:
    """Return the names of the protocols."""
    from drivelab.plan.grammar import PROTOCOLS, protocol_names
    from drivelab.plan.places import ROOT

    return protocol_names(ROOT / PROTOCOLS)


def drives() -> Iterable[str]:
    """Return the drives of config/drives.tsv."""
    from drivelab.plan.drive_sheet import load_sheet
    from drivelab.plan.places import ROOT

    return load_sheet(ROOT / "config/drives.tsv")


def traces() -> Iterable[str]:
    """Return the traces of the catalogue."""
    from drivelab.campaign.traces import TRACES
    from drivelab.plan.places import ROOT
    from drivelab.trace.trace_catalogue import names

    return names(ROOT / TRACES)


def studies() -> Iterable[str]:
    """Return the study files in config/."""
    from drivelab.plan.places import ROOT

    other = ("applications.yaml", "config.yaml", "virtual_drives.yaml")
    return sorted(f"config/{path.name}" for path in (ROOT / "config").glob("*.yaml") if path.name not in other)
