"""A parser whose help has the commands in groups, and which suggests what a mistyped word could mean."""

from __future__ import annotations

import argparse
import re
import shutil
import textwrap
from collections.abc import Mapping
from typing import Any, NoReturn

from drivelab.cli.completion import completed_by, studies
from drivelab.core.errors import suggestion
from drivelab.plan.study import DEFAULT_STUDY

GROUPS: Mapping[str, tuple[str, ...]] = {
    "start": ("quick", "init", "demo", "drives", "doctor"),
    "measure": ("protocol", "study", "plan", "run", "watch", "virtual"),
    "traces": ("capture", "trace", "replay"),
    "look": ("report", "compare", "query"),
    "share": ("archive", "import"),
    "maintain": ("verify", "completion"),
}
"""Commands by what users want. Others are stages that the workflow calls; `--help` does not list them."""
_CHOICE = re.compile(
    r"(?P<head>.*)invalid choice: (?P<wrong>'.*?'|\".*?\"|\S+) \(choose from (?P<known>.*)\)", re.DOTALL
)
_NAME, _WIDEST = 15, 80


class Parser(argparse.ArgumentParser):
    """Also the class of the parsers of all commands."""

    def error(self, message: str) -> NoReturn:
        """Print usage and message; for a mistyped word of a list, the closest word instead of the list."""
        if found := _CHOICE.fullmatch(message):
            known = [word.strip("'\"") for word in found["known"].split(", ")]
            wrong = found["wrong"].strip("'\"")
            place = re.sub(r"^argument (COMMAND|ACTION): ", "", found["head"])
            message = f"{place}'{wrong}' is unknown; {suggestion(wrong, known)}"
        super().error(message)

    def flag(self, name: str, about: str) -> None:
        """Add an option without a value."""
        self.add_argument(name, action="store_true", help=about)

    def study(self) -> None:
        """Add the study file as an argument that may be left out."""
        study = self.add_argument(
            "study", nargs="?", default=DEFAULT_STUDY, help=f"study file (default {DEFAULT_STUDY})"
        )
        completed_by(study, studies)

    def studies(self) -> None:
        """Add study files as arguments that may be left out."""
        about = f"study file (default {DEFAULT_STUDY})"
        self.add_argument("studies", nargs="*", default=[DEFAULT_STUDY], metavar="STUDY", help=about)


class RootParser(Parser):
    """The parser of `drivelab` itself."""

    def __init__(self, **settings: Any) -> None:
        super().__init__(**settings)
        self.commands = Commands(self)

    def format_help(self) -> str:
        """Return the help with the commands by group, in lines of at most 80 characters."""
        width = min(_WIDEST, shutil.get_terminal_size().columns)
        known = [name for name, about in self.commands.about.items() if about]
        parts = [self.format_usage().strip(), _filled(self.description or "", width)]
        for title, names in GROUPS.items():
            parts.append("\n".join([f"{title}:", *(_line(name, self.commands.about[name], width)
                                                   for name in names if name in known)]))  # fmt: skip
        parts.append(_filled("'drivelab COMMAND --help' explains a command and its options.", width))
        return "\n\n".join([*parts, _filled(self.epilog or "", width)]) + "\n"


class Commands:
    """Where each module registers its command; remembers their one-line descriptions."""

    def __init__(self, root: argparse.ArgumentParser) -> None:
        self._commands = root.add_subparsers(metavar="COMMAND", required=True, parser_class=Parser)
        self.about: dict[str, str] = {}

    def add_parser(self, name: str, **settings: Any) -> argparse.ArgumentParser:
        """Add a command; one without `help` is not listed."""
        self.about[name] = settings.get("help", "")
        return self._commands.add_parser(name, **settings)


def _line(name: str, about: str, width: int) -> str:
    lines = textwrap.wrap(about, width - _NAME - 2, break_long_words=False)
    return "\n".join(f"  {head:{_NAME}}{line}" for head, line in zip([name, *[""] * len(lines)], lines, strict=False))


def _filled(text: str, width: int) -> str:
    return textwrap.fill(text, width, break_long_words=False, break_on_hyphens=False)
