"""Read a parser's commands and arguments, for the reference and the man page.

argparse has no public way to do that; this module is the only one that looks inside.
"""

from __future__ import annotations

import argparse
from collections.abc import Iterator

import drivelab
from drivelab.cli.parser import GROUPS, RootParser
from drivelab.plan.places import ROOT
from drivelab.report.numbers import capital


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


def options_of(action: argparse.Action) -> list[str]:
    """Return all forms of an argument on the command line: `-o FILE`, `--output FILE`."""
    value = metavar_of(action)
    return [f"{option} {value}".strip() for option in action.option_strings] or [value]


def usage_of(action: argparse.Action) -> str:
    """Return an argument for a line of usage: `[--output FILE]`, `PLACE ...`."""
    value = metavar_of(action)
    many = f"{value} ..." if action.nargs in ("+", "*", argparse.REMAINDER) else value
    if not action.option_strings:
        return f"[{many}]" if action.nargs in ("?", "*") else many
    text = f"{action.option_strings[-1]} {many}".strip()
    return text if action.required else f"[{text}]"


def help_of(action: argparse.Action) -> str:
    """Return the help of an argument, with its default value."""
    return ((action.help or "") % {**vars(action), "prog": "drivelab"}).replace(f"{ROOT}/", "")


_ESCAPES = str.maketrans({"\\": r"\e", "-": r"\-", "'": r"\(aq"})


def man_page(parser: RootParser) -> str:
    """Return drivelab(1) in roff: the commands by group, then each with its arguments."""
    about = (drivelab.__doc__ or "").strip().rstrip(".")
    lines = [f'.TH DRIVELAB 1 "" "drivelab {drivelab.__version__}" "User Commands"', ".SH NAME"]
    lines += [_text(f"drivelab - {about}"), ".SH SYNOPSIS", r".B drivelab \fICOMMAND\fR \&...", ".SH COMMANDS"]
    for title, names in GROUPS.items():
        lines.append(f'.SS "{title}"')
        for name in names:
            lines += [".TP", f".B {_text(name)}", _text(capital(parser.commands.about[name]) + ".")]
    lines += [".SH DETAILS"]
    for name, command, about in subcommands(parser):
        arguments, is_group = arguments_of(command)
        if is_group:
            continue
        usage = " ".join([name, *map(usage_of, arguments)])
        words = command.description if command.description and "\n" not in command.description else f"{capital(about)}."
        lines += [f'.SS "{_text(name)}"', ".B", _text(usage), ".PP", _text(words)]
        for argument in arguments:
            lines += [".TP", f".B {_text(', '.join(options_of(argument)))}", _text(f"{capital(help_of(argument))}.")]
    lines += [".SH NOTES", _text(parser.epilog or "")]
    return "\n".join(lines) + "\n"


def _text(text: str) -> str:
    """Return text as one line of roff; a period at its beginning would be a request."""
    line = " ".join(text.split()).translate(_ESCAPES)
    line = "".join(sign if sign.isascii() else rf"\[u{ord(sign):04X}]" for sign in line)
    return rf"\&{line}" if line.startswith(".") else line
