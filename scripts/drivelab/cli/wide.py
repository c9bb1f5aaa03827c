"""Tables on the terminal, and in full where nobody watches: what reads them must not find its lines cut."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING

from drivelab.terminal import console as visible_console

if TYPE_CHECKING:
    from rich.console import Console
    from rich.table import Table

_NO_LIMIT = 100_000


def wide_console() -> Console:
    """As wide as the terminal, or as the text where there is none."""
    return visible_console(highlight=False, width=None if sys.stdout.isatty() else _NO_LIMIT)


def print_table(table: Table, console: Console) -> None:
    """Print a table; without a terminal no line ends in the spaces that fill its last column."""
    if sys.stdout.isatty():
        console.print(table)
        return
    with console.capture() as captured:
        console.print(table, crop=False)
    for line in captured.get().splitlines():
        print(line.rstrip())
