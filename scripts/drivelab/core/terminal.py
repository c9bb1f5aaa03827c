"""Print safely: control characters from files are shown as escapes, not sent to the terminal.

A name, a serial number or a message may come from an untrusted file. Its escape sequences could change the window's
title, erase lines, or hide text. So drivelab prints only through the streams and consoles of this module.
"""

from __future__ import annotations

import io
import json
import re
import shutil
import sys
import textwrap
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any, TextIO, cast

if TYPE_CHECKING:
    from rich.console import Console, ConsoleOptions, RenderableType
    from rich.live import Live
    from rich.segment import Segment
    from rich.text import Text

_CONTROLS = re.compile("[\x00-\x08\x0b-\x1f\x7f-\x9f\u061c\u200e\u200f\u2028-\u202e\u2066-\u2069\ud800-\udfff]")
"""C0 but tab and line feed, DEL, C1 (ECMA-48); controls of text direction (Unicode TR9, section 2), line and
paragraph separators; surrogates, which represent bytes that are not UTF-8 and cannot be printed."""

NO_REDIRECTION: Mapping[str, Any] = {"redirect_stdout": False, "redirect_stderr": False}
"""For Rich's live displays, which would otherwise interpret colours and links in text printed meanwhile."""


def visible(text: str) -> str:
    r"""Return text with control characters as escapes: `\x1b`, or `\u202e` from DEL upwards.

    Tab and line feed stay. JSON text keeps its values, because JSON strings hold no C0 characters.
    """
    return _CONTROLS.sub(lambda match: _escape(ord(match[0])), text)


def _escape(code: int) -> str:
    return f"\\x{code:02x}" if code < 0x20 else f"\\u{code:04x}"


class VisibleStream(io.TextIOBase):
    """A text stream that writes `visible` text to another stream and delegates everything else to it."""

    def __init__(self, stream: TextIO) -> None:
        self.unescaped = stream

    def write(self, text: str, /) -> int:
        self.unescaped.write(visible(text))
        return len(text)

    def flush(self) -> None:
        self.unescaped.flush()

    def fileno(self) -> int:
        return self.unescaped.fileno()

    def isatty(self) -> bool:
        return self.unescaped.isatty()

    def writable(self) -> bool:
        return True

    def close(self) -> None:
        """Leave the other stream open: it belongs to the process."""

    @property
    def encoding(self) -> str:  # type: ignore[override]
        return self.unescaped.encoding

    def __getattr__(self, name: str) -> Any:
        return getattr(self.unescaped, name)


def escape_output() -> None:
    """Make `sys.stdout` and `sys.stderr` visible streams for this process, tracebacks included."""
    sys.stdout = cast(TextIO, VisibleStream(unescaped(sys.stdout)))
    sys.stderr = cast(TextIO, VisibleStream(unescaped(sys.stderr)))


def unescaped(stream: TextIO) -> TextIO:
    """Return the stream behind a visible stream, for data that a program reads; return others unchanged."""
    return stream.unescaped if isinstance(stream, VisibleStream) else stream


def console(*, stderr: bool = False, file: TextIO | None = None, **options: Any) -> Console:
    """Return a Rich console, by default on stdout, that sends its own control sequences and escapes those in texts.

    Names such as `:new:` in texts stay unchanged: a selector FOLDER:DRIVE may end in a colon.
    """
    from rich.console import Console
    from rich.segment import Segment

    class VisibleConsole(Console):
        def render(self, renderable: RenderableType, options: ConsoleOptions | None = None) -> Iterable[Segment]:
            for segment in super().render(renderable, options):
                yield segment if segment.control else Segment(visible(segment.text), segment.style)

    file = file or unescaped(sys.stderr if stderr else sys.stdout)
    return VisibleConsole(file=file, stderr=stderr, emoji=False, **options)


def say(*texts: str, stderr: bool = False) -> None:
    """Print texts; on a terminal, break their lines between words, never within, at the terminal's width.

    Continued lines are two spaces further in. Words longer than a line, such as paths, stay whole.
    """
    stream = sys.stderr if stderr else sys.stdout
    for text in texts:
        if stream.isatty():
            width = shutil.get_terminal_size().columns
            text = "\n".join("\n".join(broken(line, width)) for line in text.split("\n"))
        print(text, file=stream, flush=True)


def broken(line: str, width: int) -> list[str]:
    """Return the lines of `say` for a terminal of this width."""
    indent = " " * (len(line) - len(line.lstrip(" ")) + 2)
    return textwrap.wrap(line, width, subsequent_indent=indent, break_long_words=False, break_on_hyphens=False)


@contextmanager
def live_display(*, stderr: bool = False) -> Iterator[Live | None]:
    """Show a display that is updated in place and vanishes at the end; yield None without a terminal."""
    if not (sys.stderr if stderr else sys.stdout).isatty():
        yield None
        return
    from rich.live import Live

    with Live(console=console(stderr=stderr), refresh_per_second=4, transient=True, **NO_REDIRECTION) as display:
        yield display


@contextmanager
def progress_line() -> Iterator[Callable[[str], None]]:
    """Yield a function that shows a text in the same line of stderr each time, and nothing without a terminal."""
    from rich.text import Text

    with live_display(stderr=True) as display:
        yield lambda text: display.update(Text(text, no_wrap=True, overflow="ellipsis")) if display else None


_BLOCKS = " ▁▂▃▄▅▆▇█"
_FLAT = 1.002
"""Largest ratio of the maximum to the minimum of a flat strip without zero."""


def strip(values: Sequence[float], width: int, *, from_zero: bool = True) -> str:
    """Return a strip chart of values, which are at least 0, at most `width` characters wide.

    Each character is the mean of neighbouring values. Heights reach from 0, or else from the minimum, to the maximum.
    Only a mean of 0 has no height.
    """
    number = min(len(values), width)
    parts = [values[len(values) * n // number : len(values) * (n + 1) // number] for n in range(number)]
    means = [sum(part) / len(part) for part in parts]
    low, high = 0.0 if from_zero else min(means, default=0.0), max(means, default=0.0)
    if high <= _FLAT * low or not high:
        return ("▄" if high else " ") * number
    return "".join(_BLOCKS[max(round(8 * (mean - low) / (high - low)), 1 if mean else 0)] for mean in means)


_NO_LIMIT = 100_000


def wide_console(*, stderr: bool = False) -> Console:
    """Return a console as wide as the terminal, or without a limit if there is no terminal."""
    return console(stderr=stderr, highlight=False, width=None if sys.stdout.isatty() else _NO_LIMIT)


def print_table(columns: Sequence[str], rows: Iterable[Sequence[str | Text]], right: Collection[str] = ()) -> None:
    """Print texts as a table as wide as the terminal; without one, unlimited and without trailing spaces.

    `right` names the columns that are aligned at the right. If no column has a name, there is no heading.
    """
    from rich.table import Table
    from rich.text import Text

    table, screen = Table(box=None, pad_edge=False, show_header=any(columns)), wide_console()
    for column in columns:
        table.add_column(Text(column), justify="right" if column in right else "left")
    for row in rows:
        table.add_row(*(Text(field) if isinstance(field, str) else field for field in row))
    if sys.stdout.isatty():
        screen.print(table)
        return
    with screen.capture() as captured:
        screen.print(table, crop=False)
    for line in captured.get().splitlines():
        print(line.rstrip())


def print_json(value: object) -> None:
    """Print a value as JSON."""
    print(json.dumps(value, indent=1, ensure_ascii=False))
