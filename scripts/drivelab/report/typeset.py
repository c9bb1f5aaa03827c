"""Sets pages with Typst, as a program of its own: the memory that this takes is not added to what made the pages."""

from __future__ import annotations

import sys
from importlib.util import find_spec
from pathlib import Path

import typst

_TEMPLATE = Path(__file__).parent / "templates/pages.typ"


def typeset(said: str, standard: typst.PDFStandard = "1.7") -> bytes:
    """The PDF of the template, given what the pages say (JSON); raises typst.TypstError for what cannot be drawn."""
    return typst.compile(
        _TEMPLATE,
        sys_inputs={"report": said},
        font_paths=[_fonts()],
        ignore_system_fonts=True,
        pdf_standards=standard,
    )


def _fonts() -> Path:
    """Fonts that matplotlib brings, so that the pages look the same where the system has none."""
    spec = find_spec("matplotlib")
    assert spec is not None  # a dependency of this project
    assert spec.origin is not None
    return Path(spec.origin).parent / "mpl-data/fonts/ttf"


def main() -> None:
    """Set what comes from standard input into the file of the first argument."""
    try:
        made = typeset(sys.stdin.read())
    except typst.TypstError as error:
        sys.exit(error.message)
    Path(sys.argv[1]).write_bytes(made)


if __name__ == "__main__":
    main()
