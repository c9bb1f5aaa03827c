"""A job redraws the figures with changed code or tables, and incomplete ones."""

from __future__ import annotations

from pathlib import Path

import pytest

from drivelab.figures.base import kept, style

CODE = {"one": "a", "two": "b"}
NEEDED = {"one": ["cells", "exclusions"], "two": ["cells", "series"]}
ENDINGS = (".svg", ".png")


def made_from(folder: Path, code: dict[str, str] | None = None) -> dict[str, str]:
    paths = {"cells": [str(folder / "cells-1"), str(folder / "cells-2")], "series": str(folder / "series")}
    return kept.origins(code or CODE, paths, NEEDED.__getitem__)


@pytest.fixture
def drawn(tmp_path: Path) -> Path:
    for name in ("cells-1", "cells-2", "series"):
        (tmp_path / name).write_text(name)
    for name, digest in made_from(tmp_path).items():
        figure = style.new_figure(name)
        figure.subplots().plot([1, 2], [3, 4])
        style.save(figure, tmp_path / name, made_from=digest)
    return tmp_path


def to_draw(folder: Path, code: dict[str, str] | None = None) -> set[str]:
    files = [folder / f"{name}{ending}" for name in CODE for ending in ENDINGS]
    return set(kept.not_right(files, made_from(folder, code)))


def test_nothing_changed_draws_nothing(drawn: Path) -> None:
    assert to_draw(drawn) == set()


def test_changed_code_redraws_its_figure(drawn: Path) -> None:
    assert to_draw(drawn, {**CODE, "two": "c"}) == {"two"}


@pytest.mark.parametrize(("table", "figures"), [("cells-2", {"one", "two"}), ("series", {"two"})])
def test_a_changed_table_redraws_the_figures_that_read_it(drawn: Path, table: str, figures: set[str]) -> None:
    (drawn / table).write_text("other")
    assert to_draw(drawn) == figures


@pytest.mark.parametrize("ending", ENDINGS)
def test_a_missing_file_is_drawn(drawn: Path, ending: str) -> None:
    (drawn / f"one{ending}").unlink()
    assert to_draw(drawn) == {"one"}


@pytest.mark.parametrize(
    "left", ["", "<svg>", "<svg><metadata>{</metadata></svg>", "<svg><metadata>{}</metadata></svg>"]
)
def test_a_picture_without_origin_is_redrawn(drawn: Path, left: str) -> None:
    (drawn / "one.svg").write_text(left)
    assert to_draw(drawn) == {"one"}


def test_an_interrupted_drawing_is_redrawn(drawn: Path) -> None:
    assert to_draw(drawn, {**CODE, "one": "c"}) == {"one"}
    assert to_draw(drawn) == {"one"}, "the files may be of two versions"
