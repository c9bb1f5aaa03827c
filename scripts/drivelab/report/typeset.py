"""Set pages with Typst in a separate process, so that its memory does not add to that of the report."""

from __future__ import annotations

import sys
from importlib.util import find_spec
from pathlib import Path

import typst

_TEMPLATE = Path(__file__).parent / "templates/pages.typ"


def typeset(content: str, standard: typst.PDFStandard = "1.7") -> bytes:
    """Return the PDF of the pages; `content` is their JSON. Raises typst.TypstError for invalid figures."""
    return typst.compile(
        _TEMPLATE,
        sys_inputs={"report": content},
        font_paths=[_fonts()],
        ignore_system_fonts=True,
        pdf_standards=standard,
    )


def _fonts() -> Path:
    """Return the folder of matplotlib's fonts, so that pages look the same without system fonts."""
    spec = find_spec("matplotlib")
    assert spec is not None  # a dependency of this project
    assert spec.origin is not None
    return Path(spec.origin).parent / "mpl-data/fonts/ttf"


def main() -> None:
    """Set the JSON from standard input as a PDF, into the file of the first argument."""
    try:
        pdf = typeset(sys.stdin.read())
    except typst.TypstError as error:
        sys.exit(error.message)
    Path(sys.argv[1]).write_bytes(pdf)


if __name__ == "__main__":
    main()
