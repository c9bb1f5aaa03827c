"""Execute docs/explore.ipynb on the finished tutorial study, and store its outputs. Needs no Jupyter.

Run it after a change of the notebook: .venv/bin/python tools/notebook.py
"""

from __future__ import annotations

import ast
import contextlib
import io
import json
import os
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pandas as pd
from matplotlib.figure import Figure

NOTEBOOK = Path(__file__).parents[1] / "docs/explore.ipynb"


def executed(notebook: dict[str, Any], replaced: tuple[str, str] = ("", "")) -> Iterator[tuple[dict[str, Any], Any]]:
    """Yield each code cell with new outputs, and the value that it shows; `replaced` alters a text of the cells."""
    names: dict[str, Any] = {}
    count = 0
    for cell in notebook["cells"]:
        if cell["cell_type"] != "code":
            continue
        count += 1
        source = "".join(cell["source"])
        tree = ast.parse(source.replace(*replaced) if replaced[0] else source)
        last = tree.body.pop() if isinstance(tree.body[-1], ast.Expr) else None
        printed = io.StringIO()
        with contextlib.redirect_stdout(printed):
            exec(compile(tree, "<cell>", "exec"), names)
            code = None if last is None else compile(ast.Expression(last.value), "<cell>", "eval")
            value = None if code is None else eval(code, names)
        yield {**cell, "execution_count": count, "outputs": list(_outputs(printed.getvalue(), value, count))}, value


def _outputs(printed: str, value: Any, count: int) -> Iterator[dict[str, Any]]:
    if printed:
        yield {"name": "stdout", "output_type": "stream", "text": printed.splitlines(keepends=True)}
    if value is None:
        return
    if isinstance(value, Figure):
        from drivelab.figures.base.style import svg

        data = {"image/svg+xml": svg(value).splitlines(keepends=True), "text/plain": ["<Figure>"]}
    elif isinstance(value, pd.DataFrame):
        data = {"text/html": value.to_html(max_rows=20, border=0).splitlines(keepends=True),
                "text/plain": value.to_string(max_rows=20).splitlines(keepends=True)}  # fmt: skip
    else:
        data = {"text/plain": repr(value).splitlines(keepends=True)}
    yield {"data": data, "execution_count": count, "metadata": {}, "output_type": "execute_result"}


def main() -> None:
    """Execute the notebook in its folder and write it."""
    notebook = json.loads(NOTEBOOK.read_text(encoding="utf-8"))
    os.chdir(NOTEBOOK.parent)
    cells = iter([cell for cell, _ in executed(notebook)])
    notebook["cells"] = [next(cells) if cell["cell_type"] == "code" else cell for cell in notebook["cells"]]
    NOTEBOOK.write_text(json.dumps(notebook, indent=1, ensure_ascii=False) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
