"""Figures of a study and their input files, for the workflow."""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Iterable, Mapping
from functools import cached_property
from pathlib import Path

from drivelab.campaign.planning import Campaign, Planned
from drivelab.core.grouping import grouped
from drivelab.figures.registry import ALL
from drivelab.plan.plan import Plan
from drivelab.workflow.figure_kinds import FIGURES_OF, OF_A_RECORDING, OVER_DRIVES, OVER_SIZES, TABLES_OF, figure_kinds
from drivelab.workflow.figures_over_drives import (
    OF_THE_STUDY,
    kinds_over_drives,
    measurements_by_size,
    tables_over_drives,
)

RECORDING = "{drive}/{measurement}/{key}"
"""Path of a recording in wildcards; `key` is `digest-runN`."""


class FigureLayout:
    """Paths of one study's figures, relative to the project's folder; `drivelab.workflow.layout` has the others."""

    def __init__(self, campaign: Campaign, png: bool = True) -> None:
        """Without `png`, figures are SVG files only, which is enough for the report."""
        self.campaign, self.png = campaign, png
        self.results = str(campaign.study.results)

    def path(self, pattern: str) -> str:
        """Return a path in the results folder; `RECORDING` becomes the wildcards of a recording."""
        return f"{self.results}/{pattern.replace('RECORDING', RECORDING)}"

    def of_every_recording(self, pattern: str, kind: str | None = None) -> list[str]:
        """Return the path for each recording of the study that has figures of `kind`, by default for all."""
        return [
            f"{self.results}/{pattern.replace('RECORDING', planned.plan.recording)}"
            for planned in self.campaign.plans
            if kind is None or kind in self.kinds_of[planned.plan.recording]
        ]

    @cached_property
    def kinds_of(self) -> Mapping[str, tuple[str, ...]]:
        """Kinds of figures of each recording, in the order of OF_A_RECORDING; cached for many paths."""
        kinds_of = ((planned.plan.recording, kinds(planned)) for planned in self.campaign.plans)
        return {recording: tuple(kind for kind in OF_A_RECORDING if kind in of_one) for recording, of_one in kinds_of}

    @cached_property
    def by_measurement(self) -> Mapping[str, list[Plan]]:
        """Plans of each measurement."""
        return grouped((planned.plan for planned in self.campaign.plans), lambda plan: plan.measurement)

    def of_measurement(self, pattern: str, measurement: str) -> list[str]:
        """Return the path for each recording of one measurement."""
        return [
            f"{self.results}/{pattern.replace('RECORDING', plan.recording)}"
            for plan in self.by_measurement[measurement]
        ]

    def traces(self) -> dict[str, str]:
        """Return the path of each trace of the study by name."""
        return {name: str(self.campaign.traces.path(name)) for name in self.campaign.study.traces}

    def figure_sets(self) -> list[tuple[str, ...]]:
        """Return the combinations of kinds of figures of the study's recordings."""
        return sorted({of_kinds for of_kinds in self.kinds_of.values() if of_kinds})

    def with_figures(self, of_kinds: tuple[str, ...]) -> dict[str, str]:
        """Return regular expressions for the wildcards of the recordings with exactly these kinds of figures.

        The measurement selects the recordings; if its kinds differ between drives, so does the key.
        """
        chosen = [planned for planned in self.campaign.plans if self.kinds_of[planned.plan.recording] == of_kinds]
        wildcards = {"measurement": any_of(chosen)}
        measurements = {planned.plan.measurement for planned in chosen}
        if sum(len(self.by_measurement[name]) for name in measurements) > len(chosen):
            wildcards["key"] = "|".join(sorted({planned.plan.recording.rpartition("/")[2] for planned in chosen}))
        return wildcards

    def figure_tables(self, of_kinds: Iterable[str]) -> dict[str, str]:
        """Return the input files of the rule that draws these kinds of figures, by table."""
        names = dict.fromkeys(name for kind in of_kinds for name in TABLES_OF[kind])
        return {name: self.path(f"tables/{'' if name == 'drives' else 'RECORDING/'}{name}.parquet") for name in names}

    def figures(self, place: str, of_kinds: Iterable[str], report: Callable[..., str]) -> dict[str, str]:
        """Return the output files of a rule that draws figures of a recording, a comparison or a trace.

        `report` is Snakemake's, which this library does not import: it adds SVG files to Snakemake's own report.
        """
        files: dict[str, str] = {}
        for kind, name in ((of_kind, figure) for of_kind in of_kinds for figure in FIGURES_OF[of_kind]):
            stem = self.path(f"figures/{place}/{name}")
            if kind == "trace":
                subject, labels = "{trace}", {"trace": "{trace}", "figure": name}
            else:
                drive = "all" if kind in (*OVER_DRIVES, *OVER_SIZES) else "{drive}"
                subject, labels = "{measurement}", {"test": "{measurement}", "drive": drive, "figure": name}
            files[name] = report(
                f"{stem}.svg",
                caption=str(_caption_file(name)),
                category="Figures",
                subcategory=subject,
                labels=labels,
            )
            if self.png:
                files[f"{name}_png"] = f"{stem}.png"
        return files

    def all_figures(self, ending: str = "svg") -> list[str]:
        """Return all figure files of the study with an ending, `svg` or `png`; none if PNG is off."""
        if ending == "png" and not self.png:
            return []
        files = [
            path
            for kind in OF_A_RECORDING
            for name in FIGURES_OF[kind]
            for path in self.of_every_recording(f"figures/RECORDING/{name}.{ending}", kind)
        ]
        files += [
            self.path(f"figures/comparison/{measurement}/{name}.{ending}")
            for measurement, of_kinds in self.over_drives.items()
            for kind in of_kinds
            for name in FIGURES_OF[kind]
        ]
        files += [
            self.path(f"figures/comparison/{name}/{figure}.{ending}")
            for name in self.by_size
            for kind in OVER_SIZES
            for figure in FIGURES_OF[kind]
        ]
        files += [
            self.path(f"figures/traces/{trace}/{name}.{ending}")
            for trace in self.traces()
            for name in FIGURES_OF["trace"]
        ]
        return files

    @cached_property
    def over_drives(self) -> Mapping[str, tuple[str, ...]]:
        """Kinds of figures over several drives, by measurement, for measurements that have any."""
        basis = self.campaign.study.basis
        kinds_of = {name: kinds_over_drives(plans, basis) for name, plans in self.by_measurement.items()}
        return {name: of_kinds for name, of_kinds in kinds_of.items() if of_kinds}

    @cached_property
    def by_size(self) -> Mapping[str, tuple[str, ...]]:
        """Measurements that differ in block size, by their common name in the study."""
        return measurements_by_size(planned.plan for planned in self.campaign.plans)

    def names_by_size(self) -> str:
        """Return a regular expression for the keys of `by_size`; it matches nothing if there are none."""
        return "|".join(map(re.escape, self.by_size)) or "(?!)"

    def tables_over_sizes(self) -> dict[str, Callable[..., list[str]]]:
        """Return functions from wildcards to input files of the rule for figures over sizes, by table."""
        return self._inputs(OVER_SIZES, lambda name: self.by_size[name])

    def measurements_with(self, of_kinds: tuple[str, ...]) -> str:
        """Return a regular expression for the measurements with exactly these kinds over several drives."""
        return "|".join(re.escape(name) for name, kinds_of in self.over_drives.items() if kinds_of == of_kinds)

    def tables_over_drives(self, of_kinds: Iterable[str]) -> dict[str, Callable[..., list[str]]]:
        """Return functions from wildcards to input files of the rule for these kinds over drives, by table."""
        return self._inputs(of_kinds, lambda name: (name,))

    def _inputs(
        self, of_kinds: Iterable[str], measurements: Callable[[str], Iterable[str]]
    ) -> dict[str, Callable[..., list[str]]]:
        """Return functions from wildcards to the files of each table; `measurements` are those of a wildcard."""

        def files_of(table: str) -> Callable[..., list[str]]:
            if table in OF_THE_STUDY:
                return lambda wildcards: [self.path(f"tables/{table}.parquet")]
            template = f"tables/RECORDING/{table}.parquet"
            return lambda wildcards: [
                path for name in measurements(wildcards.measurement) for path in self.of_measurement(template, name)
            ]

        return {table: files_of(table) for table in tables_over_drives(of_kinds)}


def _caption_file(name: str) -> Path:
    """Return the file with a figure's caption for Snakemake's report; write it if it is outdated."""
    path = Path.cwd() / ".snakemake" / "drivelab" / "captions" / f"{name}.rst"
    text = f"{ALL[name].caption}\n"
    if not path.exists() or path.read_text(encoding="utf-8") != text:
        path.parent.mkdir(parents=True, exist_ok=True)
        new = path.with_suffix(f".{os.getpid()}")  # several jobs read this workflow at once
        new.write_text(text, encoding="utf-8")
        new.replace(path)
    return path


def kinds(planned: Planned) -> set[str]:
    """Return the kinds of figures of a plan."""
    return figure_kinds(planned.plan.subject)


def any_of(plans: Iterable[Planned]) -> str:
    """Return a regular expression for the measurements of some plans; it matches nothing without plans."""
    return "|".join(map(re.escape, sorted({planned.plan.measurement for planned in plans}))) or "(?!)"
