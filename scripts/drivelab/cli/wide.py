"""Print tables as wide as the terminal, and in full width to pipes, so that programs read whole lines."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING

from drivelab.terminal import console as visible_console

if TYPE_CHECKING:
    from rich.console import Console
    from rich.table import Table

_NO_LIMIT = 100_000


def wide_console() -> Console:
    """Return a console as wide as the terminal, or without a limit if there is no terminal."""
    return visible_console(highlight=False, width=None if sys.stdout.isatty() else _NO_LIMIT)


def print_table(table: Table, console: Console) -> None:
    """Print a table; without a terminal, strip trailing spaces from each line."""
    if sys.stdout.isatty():
        console.print(table)
        return
    with console.capture() as captured:
        console.print(table, crop=False)
    for line in captured.get().splitlines():
        print(line.rstrip())
