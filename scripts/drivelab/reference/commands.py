"""Describe every command in Markdown, independent of Python and terminal."""

from __future__ import annotations

import argparse
from collections.abc import Iterator

from drivelab.config.schema import ROOT
from drivelab.reference.markdown import code, table


def sections(parser: argparse.ArgumentParser) -> str:
    """Return the help's epilog, then a section for each listed command."""
    commands = (f"## {name}\n\n{_section(command, about)}" for name, command, about in _commands(parser))
    return "\n\n".join([*([parser.epilog] if parser.epilog else []), *commands])


def _commands(parser: argparse.ArgumentParser) -> Iterator[tuple[str, argparse.ArgumentParser, str]]:
    for group in parser._actions:
        if isinstance(group, argparse._SubParsersAction):
            abouts = {choice.dest: choice.help or "" for choice in group._choices_actions}
            for name, command in group.choices.items():
                if name in abouts:  # hidden commands are for the workflow
                    yield command.prog, command, abouts[name]
                    yield from _commands(command)


def _section(parser: argparse.ArgumentParser, about: str) -> str:
    visible = [action for action in parser._actions if action.help != argparse.SUPPRESS and action.dest != "help"]
    arguments = [action for action in visible if not isinstance(action, argparse._SubParsersAction)]
    parts = [f"{about[:1].upper()}{about[1:]}."]
    if parser.description and parser.description.rstrip(".").lower() != about.lower():
        parts.append(parser.description.strip())
    usage = parser.usage or " ".join([parser.prog, *map(_usage, arguments)])
    if len(arguments) == len(visible):
        parts.append(f"```text\n{usage}\n```")
    if arguments:
        parts.append(table(("argument", "meaning"), [(_name(argument), _help(argument)) for argument in arguments]))
    return "\n\n".join(parts)


def _metavar(action: argparse.Action) -> str:
    if action.nargs == 0:
        return ""
    if isinstance(action.metavar, tuple):
        return " ".join(action.metavar)
    if action.metavar is not None:
        return action.metavar
    if action.choices is not None:
        return "{" + ",".join(map(str, action.choices)) + "}"
    return action.dest.upper() if action.option_strings else action.dest


def _name(action: argparse.Action) -> str:
    value = _metavar(action)
    if not action.option_strings:
        return code(value)
    return ", ".join(code(f"{option} {value}".strip()) for option in action.option_strings)


def _usage(action: argparse.Action) -> str:
    value = _metavar(action)
    many = f"{value} ..." if action.nargs in ("+", "*", argparse.REMAINDER) else value
    if not action.option_strings:
        return f"[{many}]" if action.nargs in ("?", "*") else many
    text = f"{action.option_strings[-1]} {many}".strip()
    return text if action.required else f"[{text}]"


def _help(action: argparse.Action) -> str:
    return ((action.help or "") % {**vars(action), "prog": "drivelab"}).replace(f"{ROOT}/", "")
