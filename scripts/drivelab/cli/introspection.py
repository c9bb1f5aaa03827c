"""Read a parser's commands and arguments, for the reference.

argparse has no public way to do that; this module is the only one that looks inside.
"""

from __future__ import annotations

import argparse
from collections.abc import Iterator

from drivelab.plan.places import ROOT


def subcommands(parser: argparse.ArgumentParser) -> Iterator[tuple[str, argparse.ArgumentParser, str]]:
    """Yield name, parser and description of each listed command, and of those below it."""
    for group in parser._actions:
        if isinstance(group, argparse._SubParsersAction):
            abouts = {choice.dest: choice.help or "" for choice in group._choices_actions}
            for name, command in group.choices.items():
                if name in abouts:  # hidden commands are for the workflow
                    yield command.prog, command, abouts[name]
                    yield from subcommands(command)


def arguments_of(parser: argparse.ArgumentParser) -> tuple[list[argparse.Action], bool]:
    """Return the visible arguments of a command, and whether it only has commands below it."""
    visible = [action for action in parser._actions if action.help != argparse.SUPPRESS and action.dest != "help"]
    arguments = [action for action in visible if not isinstance(action, argparse._SubParsersAction)]
    return arguments, len(arguments) < len(visible)


def metavar_of(action: argparse.Action) -> str:
    """Return the placeholder of an argument's value; empty for a switch."""
    if action.nargs == 0:
        return ""
    if isinstance(action.metavar, tuple):
        return " ".join(action.metavar)
    if action.metavar is not None:
        return action.metavar
    if action.choices is not None:
        return "{" + ",".join(map(str, action.choices)) + "}"
    return action.dest.upper() if action.option_strings else action.dest


def help_of(action: argparse.Action) -> str:
    """Return the help of an argument, with its default value."""
    return ((action.help or "") % {**vars(action), "prog": "drivelab"}).replace(f"{ROOT}/", "")
