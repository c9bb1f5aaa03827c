"""Further outputs of a finished study: the printable pages, the charts, and Snakemake's own report."""

from __future__ import annotations

import json

from mini_project import Project

from drivelab.figures.base.svg import values_of
from drivelab.figures.registry import ALL


def test_each_picture_carries_its_values(finished: Project) -> None:
    pictures = sorted((finished.folder / "results/figures").glob("**/*.svg"))
    assert pictures
    for picture in pictures:
        values = json.loads(values_of(picture.read_text(encoding="utf-8")))
        assert all(panel["marks"] for panel in values["panels"]), picture


def test_deleted_pages_are_made_again(copy: Project) -> None:
    (copy.folder / "results/report/pts-pages.pdf").unlink()
    assert copy.to_do() == {"report_pdf": 1}


def test_snakemakes_own_report_shows_the_figures_with_their_captions(copy: Project) -> None:
    done = copy.snakemake("--report", "snakemake-report.html")
    assert done.returncode == 0, done.stdout + done.stderr
    text = (copy.folder / "snakemake-report.html").read_text(encoding="utf-8")
    for name in ("convergence_mixes.svg", "saturation_time.svg", "index.html", "pts-pages.pdf"):
        assert name in text
    caption = ALL["convergence_mixes"].caption.split()[:6]
    assert " ".join(caption) in text
