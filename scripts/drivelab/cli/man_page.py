"""Make the man page from the parser (man-pages(7), groff_man(7))."""

from __future__ import annotations

import drivelab
from drivelab.cli.introspection import arguments_of, help_of, options_of, subcommands, usage_of
from drivelab.cli.parser import GROUPS, RootParser
from drivelab.report.numbers import capital

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
