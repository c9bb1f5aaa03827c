"""What argparse knows of every command, as Markdown: alike with every Python, however wide the terminal."""

from __future__ import annotations

import argparse
from collections.abc import Iterator

from drivelab.config.schema import ROOT
from drivelab.reference.markdown import code, table


def sections(parser: argparse.ArgumentParser) -> str:
    """What the help ends with, then a section for each command that it lists, and for each of its actions."""
    each = (f"## {name}\n\n{_section(one, about)}" for name, one, about in _commands(parser))
    return "\n\n".join([*([parser.epilog] if parser.epilog else []), *each])


def _commands(parser: argparse.ArgumentParser) -> Iterator[tuple[str, argparse.ArgumentParser, str]]:
    for group in parser._actions:
        if isinstance(group, argparse._SubParsersAction):
            abouts = {one.dest: one.help or "" for one in group._choices_actions}
            for name, one in group.choices.items():
                if name in abouts:  # the others are not told of: the workflow's own
                    yield one.prog, one, abouts[name]
                    yield from _commands(one)


def _section(parser: argparse.ArgumentParser, about: str) -> str:
    told = [one for one in parser._actions if one.help != argparse.SUPPRESS and one.dest != "help"]
    arguments = [one for one in told if not isinstance(one, argparse._SubParsersAction)]
    parts = [f"{about[:1].upper()}{about[1:]}."]
    if parser.description and parser.description.rstrip(".").lower() != about.lower():
        parts.append(parser.description.strip())
    usage = parser.usage or " ".join([parser.prog, *map(_usage, arguments)])
    if len(arguments) == len(told):
        parts.append(f"```text\n{usage}\n```")
    if arguments:
        parts.append(table(("argument", "meaning"), [(_name(one), _help(one)) for one in arguments]))
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
    return ", ".join(code(f"{one} {value}".strip()) for one in action.option_strings)


def _usage(action: argparse.Action) -> str:
    value = _metavar(action)
    many = f"{value} ..." if action.nargs in ("+", "*", argparse.REMAINDER) else value
    if not action.option_strings:
        return f"[{many}]" if action.nargs in ("?", "*") else many
    text = f"{action.option_strings[-1]} {many}".strip()
    return text if action.required else f"[{text}]"


def _help(action: argparse.Action) -> str:
    return ((action.help or "") % {**vars(action), "prog": "drivelab"}).replace(f"{ROOT}/", "")
