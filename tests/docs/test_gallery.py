"""The page of all figures has a picture of each."""

from __future__ import annotations

from pathlib import Path

import pytest
from PIL import Image

from drivelab.core.errors import UserError
from drivelab.figures.registry import ALL
from drivelab.reference import gallery


def test_each_figure_has_a_picture_and_no_picture_is_stale() -> None:
    assert {path.stem for path in gallery.PICTURES.glob("*.png")} == ALL.keys()


def test_the_page_names_the_documents_that_ask_for_a_figure() -> None:
    page = gallery.text()
    sections = {part.partition("\n")[0].rpartition(": ")[2]: part for part in page.split("\n## ")[1:]}
    assert sections.keys() == ALL.keys()
    for document in ("SNIA PTS v0.9", "TKperf 2.1", "STEC", "Malventano", "Solidigm"):
        assert any(f"Known from: {document}" in part or f"; {document}" in part or document in part
                   for part in sections.values()), document  # fmt: skip
    assert "STEC" in sections["bathtub"]


def test_pictures_come_from_the_named_protocols_first(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(gallery, "PICTURES", tmp_path / "pictures")
    for measurement, colour in (("a-test", "red"), ("stec-read-shares", "blue")):
        for name in ALL:
            path = tmp_path / "results/figures/op7" / measurement / f"{name}.png"
            path.parent.mkdir(parents=True, exist_ok=True)
            Image.new("RGB", (1720, 200), colour).save(path)
    gallery.collect([tmp_path / "results"])
    with Image.open(tmp_path / "pictures/bathtub.png") as picture:
        assert (picture.size, picture.convert("RGB").getpixel((0, 0))) == ((860, 100), (0, 0, 255))
    (tmp_path / "pictures/bathtub.png").unlink()
    with pytest.raises(UserError, match="no picture of bathtub; name results that have one"):
        gallery.collect([])
