"""Carry out the worked example of a page of docs/how-to: write its file into a copy of the library."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

from doc_pages import ROOT


def example(page: str) -> tuple[str, str]:
    """Return the path and the text of the one file that a page says to save."""
    text = (ROOT / "docs/how-to" / page).read_text(encoding="utf-8")
    (name,) = re.findall(r"Save this as `(scripts/\S+?)`", text)
    (content,) = re.findall(r"```(?:python|yaml)\n(.*?)```", text, re.DOTALL)
    return name, content


def with_example(page: str, folder: Path) -> Path:
    """Return a copy of the library in `folder` that has the file of a page."""
    name, content = example(page)
    shutil.copytree(ROOT / "scripts", folder / "scripts", ignore=shutil.ignore_patterns("__pycache__"))
    for part in ("workflow", "config"):
        (folder / part).symlink_to(ROOT / part)
    assert not (folder / name).exists(), f"{page}: {name} exists"
    (folder / name).write_text(content, encoding="utf-8")
    return folder / "scripts"


def carried_out(page: str, folder: Path, steps: str, *arguments: str | Path) -> str:
    """Run the statements `steps` in a process with that copy of the library; return what they print."""
    library = with_example(page, folder)
    command = [sys.executable, "-c", steps, *map(str, arguments)]
    environment = {**os.environ, "PYTHONPATH": str(library)}
    done = subprocess.run(command, cwd=folder, env=environment, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    return done.stdout
