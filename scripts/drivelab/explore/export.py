"""Export the figures and tables of a study for a paper: files, captions with labels, provenance, and how to redraw."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from fnmatch import fnmatchcase
from pathlib import Path
from typing import Any

import pandas as pd

import drivelab
from drivelab.analysis.limits import limited
from drivelab.core.errors import UserError, suggestion
from drivelab.core.grouping import grouped
from drivelab.explore.paper_tables import TABLE_FORMATS, PaperTable, comparison_table, tex, values_table
from drivelab.explore.redrawing import COMPARISON, places, redraw, subject_of
from drivelab.figures.registry import FIGURES
from drivelab.recording.folders import owner
from drivelab.tables import io

_MARK = "export.json"
"""Lists the files of an export; also the mark of its folder."""


@dataclass(frozen=True)
class Wanted:
    """What to export."""

    figures: str | None = "pdf"
    """Format, or None for no figures."""
    tables: str | None = "latex"
    style: str = "ieee"
    select: str = "*"
    """Pattern for the figures' places."""
    all_runs: bool = False


@dataclass(frozen=True)
class Study:
    """What captions say of a study."""

    results: Path
    name: str
    summary: pd.DataFrame
    conditions: pd.DataFrame
    digest: str

    def labels(self, drive: str | None, measurement: str | None) -> list[str]:
        """Return what limits the values of a drive and measurement, or of all."""
        rows = self.summary
        rows = rows if measurement is None else rows[rows["measurement"] == measurement]
        rows = rows if drive in (None, COMPARISON) else rows[rows["drive"] == drive]
        return list(limited(rows, self.conditions))

    def credits(self, labels: Sequence[str]) -> str:
        """Return the end of a caption: the labels and the provenance."""
        of_labels = f"Labels: {', '.join(labels)}. " if labels else ""
        return of_labels + self.provenance

    @property
    def provenance(self) -> str:
        """Return the sentence that says where the numbers come from."""
        recordings = len(set(self.summary["recordings"].explode()))
        return (f"Data: study {self.name}, {recordings} recordings, values SHA-256 {self.digest[:12]}, "
                f"drivelab {drivelab.__version__}.")  # fmt: skip


def export(
    results: Path, output: Path, wanted: Wanted, watch: Callable[[int, int], None] = lambda done, of: None
) -> dict[str, Any]:
    """Write an export into a new folder, or that of an earlier export; return its list of files.

    Raises UserError for results without figures or values, a pattern that selects none, and a folder with other files.
    """
    from drivelab.figures.base.paper import PAPERS, fitting, save  # imports matplotlib, which is slow

    study = _study(results)
    chosen = _chosen(results, wanted) if wanted.figures else []
    _make_empty(output)
    paper = PAPERS[wanted.style]
    figures: list[dict[str, Any]] = []
    for number, place in enumerate(chosen):
        watch(number, len(chosen))
        figure, width_in = fitting(lambda place=place: redraw(results, place), paper)  # type: ignore[misc]
        file = f"figures/{place.replace('/', '-')}.{wanted.figures}"
        (output / "figures").mkdir(parents=True, exist_ok=True)
        save(figure, output / file, paper)
        drive, measurement, *_ = place.split("/")
        labels = study.labels(drive, measurement)
        figures.append({"file": file, "place": place, "width_in": width_in, "caption": _caption(study, place, labels),
                        "labels": labels})  # fmt: skip
    tables = []
    for table in _tables(study) if wanted.tables else ():
        ending, write = TABLE_FORMATS[wanted.tables or ""]
        file = f"tables/{table.name}{ending}"
        (output / "tables").mkdir(parents=True, exist_ok=True)
        (output / file).write_text(write(table), encoding="utf-8")
        tables.append({"file": file, "caption": table.caption})
    about = {"drivelab": drivelab.__version__, "study": study.name, "results": str(results), "style": wanted.style,
             "provenance": study.provenance, "figures": figures, "tables": tables}  # fmt: skip
    _write_guides(output, results, about, bool(wanted.tables == "latex" and figures))
    (output / _MARK).write_text(json.dumps(about, indent=1, ensure_ascii=False) + "\n", encoding="utf-8")
    return about


def _study(results: Path) -> Study:
    path = results / "tables/summary.parquet"
    if not path.exists():
        raise UserError(f"{path}: does not exist. Name the results folder of a finished study with --results.")
    conditions = results / "tables/conditions.parquet"
    return Study(
        results, owner(results) or results.name, io.read([path], "summary"),
        io.read([conditions] if conditions.exists() else [], "conditions"),
        hashlib.sha256(path.read_bytes()).hexdigest(),
    )  # fmt: skip


def _chosen(results: Path, wanted: Wanted) -> list[str]:
    """Return the wanted places; of each drive and measurement the first run only, unless all are wanted."""
    kept = places(results)
    if not wanted.all_runs:
        first = {min(runs, key=_run) for runs in grouped(kept, _without_run).values()}
        kept = [place for place in kept if place in first]
    chosen = [place for place in kept if fnmatchcase(place, wanted.select)]
    if not chosen:
        raise UserError(f"--select: '{wanted.select}' matches no figure; {suggestion(wanted.select, kept)}")
    return chosen


def _without_run(place: str) -> tuple[str, ...]:
    drive, measurement, *_, name = place.split("/")
    return drive, measurement, name


def _run(place: str) -> int:
    digits = place.rpartition("/")[0].rpartition("-run")[2]
    return int(digits) if digits.isdigit() else 0


def _caption(study: Study, place: str, labels: Sequence[str]) -> str:
    *parts, name = place.split("/")
    kind = FIGURES[name]
    return f"{kind.title}: {subject_of(parts)}. {kind.caption} {study.credits(labels)}"


def _tables(study: Study) -> list[PaperTable]:
    of_data = study.credits(study.labels(None, None))
    tables = [values_table(study.summary, "Measured values, with 95 % confidence intervals of the mean of the "
                           f"recordings. {of_data}")]  # fmt: skip
    path = study.results / "tables/deltas.parquet"
    deltas = io.read([path] if path.exists() else [], "deltas")
    if len(deltas):
        margin = float(deltas["margin_pct"].iloc[0])
        caption = (
            f"Differences to {deltas['basis'].iloc[0]}; positive is better. p-values and intervals are adjusted for "
            f"all comparisons; the margin is {margin:g} %. {of_data}"
        )
        tables.append(comparison_table(deltas, caption))
    return tables


def _make_empty(output: Path) -> None:
    """Remove the files of an earlier export; raises UserError for a folder with anything else."""
    if not output.exists():
        return
    if not output.is_dir() or (any(output.iterdir()) and not (output / _MARK).is_file()):
        raise UserError(f"{output}: is not empty, and no earlier export. Exporting would mix files. Name a new folder.")
    for path in [*output.glob("figures/*"), *output.glob("tables/*")]:
        path.unlink()


def _write_guides(output: Path, results: Path, about: Mapping[str, Any], latex: bool) -> None:
    output.mkdir(parents=True, exist_ok=True)
    (output / "README.md").write_text("\n".join(_readme(about)) + "\n", encoding="utf-8")
    (output / "redraw.py").write_text(_cells(results, about["figures"]), encoding="utf-8")
    if latex:
        (output / "figures.tex").write_text("\n".join(map(_float, about["figures"])), encoding="utf-8")


def _readme(about: Mapping[str, Any]) -> list[str]:
    redrawn = "`redraw.py` has a notebook cell for each figure. Captions name the labels of the data; keep them."
    lines = [f"# Figures and tables of {about['study']}", "", about["provenance"], "", redrawn, ""]
    for entry in (*about["figures"], *about["tables"]):
        width = f" ({entry['width_in']:g} in wide)" if "width_in" in entry else ""
        lines += [f"## {entry['file']}{width}", "", entry["caption"], ""]
    return lines


def _cells(results: Path, figures: Sequence[Mapping[str, Any]]) -> str:
    head = f"# %%\nfrom drivelab.explore.redrawing import redraw\n\nresults = {str(results.resolve())!r}\n"
    return head + "".join(f"\n# %% {entry['file']}\nredraw(results, {entry['place']!r})\n" for entry in figures)


def _float(entry: Mapping[str, Any]) -> str:
    kind = "figure*" if entry["width_in"] > 4 else "figure"
    return (
        f"\\begin{{{kind}}}\n\\centering\n\\includegraphics[width={entry['width_in']:g}in]{{{entry['file']}}}\n"
        f"\\caption{{{tex(entry['caption'])}}}\n\\label{{fig:{entry['place'].replace('/', '-')}}}\n\\end{{{kind}}}\n"
    )
