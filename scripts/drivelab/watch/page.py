"""The live view as a web page that reloads itself: a file, so a browser needs no server."""

from __future__ import annotations

import time
from io import StringIO
from pathlib import Path

from rich.console import Group, RenderableType
from rich.text import Text

from drivelab.core.files import write_atomic
from drivelab.core.terminal import console

COLUMNS = 120
"""Width of the page in characters."""
_RELOAD_S = 5
_PAGE = """<!DOCTYPE html>
<html lang="en">
<head>
<meta charset="UTF-8">
<title>drivelab watch</title>
<style>
{stylesheet}
body {{ color: {foreground}; background-color: {background}; }}
pre {{ font-family: monospace; }}
</style>
</head>
<body>
<pre>{code}</pre>
</body>
</html>
"""
_RELOAD = f'<meta http-equiv="refresh" content="{_RELOAD_S}">\n'


def write_page(view: RenderableType, path: Path, *, reloads: bool) -> None:
    """Write the view to `path`; a reader finds the page before or this one, whole. The last one does not reload."""
    note = f"{time.strftime('%Y-%m-%d %H:%M:%S')}, {f'reloads every {_RELOAD_S} s' if reloads else 'watch ended'}"
    recorder = console(file=StringIO(), record=True, width=COLUMNS)
    recorder.print(Group(view, Text(note, style="dim")))
    page = _PAGE.replace("<title>", f"{_RELOAD}<title>") if reloads else _PAGE
    write_atomic(path, recorder.export_html(code_format=page), lasting=False)
