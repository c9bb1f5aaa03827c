"""Which figures a study leads to, and the files that they are drawn from, for the workflow."""

from __future__ import annotations

import hashlib
import os
import re
from collections.abc import Callable, Iterable, Mapping
from functools import cached_property
from pathlib import Path

from drivelab.figures.registry import ALL
from drivelab.plan.plan import Plan
from drivelab.stages.figure_kinds import (
    FIGURES_OF,
    OF_A_RECORDING,
    OVER_DRIVES,
    OVER_SIZES,
    TABLES_OF,
    figure_kinds,
)
from drivelab.stages.figures_over_drives import OF_THE_STUDY, kinds_over_drives, tables_over_drives
from drivelab.stages.figures_over_sizes import measurements_by_size
from drivelab.stages.planning import Campaign, Planned

RECORDING = "{drive}/{measurement}/{key}"
"""Path of a recording as wildcards; `key` is `digest-runN`."""


class FigureLayout:
    """Paths of one study's figures, relative to the project's folder; `drivelab.stages.layout` has the others."""

    def __init__(self, campaign: Campaign, png: bool = True) -> None:
        """Without `png` each figure is made as SVG only, which is all that the report needs."""
        self.campaign, self.png = campaign, png
        self.results = str(campaign.study.results)

    def path(self, pattern: str) -> str:
        """A path in the results folder; `RECORDING` in it stands for the wildcards of a recording."""
        return f"{self.results}/{pattern.replace('RECORDING', RECORDING)}"

    def of_every_recording(self, pattern: str, kind: str | None = None) -> list[str]:
        """The path for every recording of the study, or for those that have a step of a kind."""
        return [
            f"{self.results}/{pattern.replace('RECORDING', one.plan.recording)}"
            for one in self.campaign.plans
            if kind is None or kind in self.kinds_of[one.plan.recording]
        ]

    @cached_property
    def kinds_of(self) -> Mapping[str, tuple[str, ...]]:
        """Kinds of figures that each recording has, in the order of OF_A_RECORDING; told once, many paths ask."""
        found = ((one.plan.recording, kinds(one)) for one in self.campaign.plans)
        return {recording: tuple(kind for kind in OF_A_RECORDING if kind in of_one) for recording, of_one in found}

    @cached_property
    def by_measurement(self) -> Mapping[str, list[Plan]]:
        """Plans of each measurement."""
        found: dict[str, list[Plan]] = {}
        for one in self.campaign.plans:
            found.setdefault(one.plan.measurement, []).append(one.plan)
        return found

    def of_measurement(self, pattern: str, measurement: str) -> list[str]:
        """The path for every recording of one measurement."""
        return [
            f"{self.results}/{pattern.replace('RECORDING', one.recording)}" for one in self.by_measurement[measurement]
        ]

    def traces(self) -> dict[str, str]:
        """Path of every trace of the study by name."""
        return {name: str(self.campaign.trace_path(name)) for name in self.campaign.study.traces}

    def figure_sets(self) -> list[tuple[str, ...]]:
        """The combinations of kinds of figures that recordings of the study have."""
        return sorted({found for found in self.kinds_of.values() if found})

    def with_figures(self, of_kinds: tuple[str, ...]) -> dict[str, str]:
        """Regular expressions for the wildcards of the recordings that have just these kinds of figures.

        The measurement tells them, but where it differs from drive to drive: there the key does.
        """
        chosen = [one for one in self.campaign.plans if self.kinds_of[one.plan.recording] == of_kinds]
        found = {"measurement": any_of(chosen)}
        if sum(len(self.by_measurement[name]) for name in {one.plan.measurement for one in chosen}) > len(chosen):
            found["key"] = "|".join(sorted({one.plan.recording.rpartition("/")[2] for one in chosen}))
        return found

    def figure_tables(self, of_kinds: Iterable[str]) -> dict[str, str]:
        """Input files of the rule that draws these kinds of figures, by table."""
        names = dict.fromkeys(name for kind in of_kinds for name in TABLES_OF[kind])
        return {name: self.path(f"tables/{'' if name == 'drives' else 'RECORDING/'}{name}.parquet") for name in names}

    def figures(
        self, place: str, of_kinds: Iterable[str], update: Callable[[str], str], report: Callable[..., str]
    ) -> dict[str, str]:
        """Output files of a rule that draws kinds of figures, of a recording, of the comparison, or of a trace.

        `update` and `report` are Snakemake's, handed in because this library does not import it: the one marks files
        that are there while their job runs, the other the SVG files for Snakemake's own report, with caption and
        category.
        """
        files: dict[str, str] = {}
        for kind, name in ((one, figure) for one in of_kinds for figure in FIGURES_OF[one]):
            stem = self.path(f"figures/{place}/{name}")
            if kind == "trace":
                subject, labels = "{trace}", {"trace": "{trace}", "figure": name}
            else:
                drive = "all" if kind in (*OVER_DRIVES, *OVER_SIZES) else "{drive}"
                subject, labels = "{measurement}", {"test": "{measurement}", "drive": drive, "figure": name}
            files[name] = report(
                update(f"{stem}.svg"),
                caption=str(_caption_file(name)),
                category="Figures",
                subcategory=subject,
                labels=labels,
            )
            if self.png:
                files[f"{name}_png"] = update(f"{stem}.png")
        return files

    def captions(self) -> str:
        """Return a digest of the titles and captions of all figures: the reports depend on them."""
        words = "\n".join(f"{name}: {kind.title}. {kind.caption}" for name, kind in ALL.items())
        return hashlib.sha256(words.encode()).hexdigest()[:16]

    def all_figures(self, ending: str = "svg") -> list[str]:
        """The figure files of the whole study with an ending, `svg` or `png`; none where they are not made."""
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
            self.path(f"figures/traces/{one}/{name}.{ending}") for one in self.traces() for name in FIGURES_OF["trace"]
        ]
        return files

    @cached_property
    def over_drives(self) -> Mapping[str, tuple[str, ...]]:
        """Kinds of figures over several drives that each measurement has, for those that have any."""
        basis = self.campaign.study.basis
        found = {name: kinds_over_drives(plans, basis) for name, plans in self.by_measurement.items()}
        return {name: of_kinds for name, of_kinds in found.items() if of_kinds}

    @cached_property
    def by_size(self) -> Mapping[str, tuple[str, ...]]:
        """Measurements that differ in their block size, by what the study calls them all."""
        return measurements_by_size(one.plan for one in self.campaign.plans)

    def names_by_size(self) -> str:
        """Regular expression for the keys of `by_size`; matches nothing if there is none."""
        return "|".join(map(re.escape, self.by_size)) or "(?!)"

    def tables_over_sizes(self) -> dict[str, Callable[..., list[str]]]:
        """Input files of the rule that draws figures over block sizes, by table: of its wildcards."""
        return {
            name: (lambda wildcards, name=name: [self.path(f"tables/{name}.parquet")])
            if name in OF_THE_STUDY
            else (lambda wildcards, name=name: [
                path for one in self.by_size[wildcards.measurement]
                for path in self.of_measurement(f"tables/RECORDING/{name}.parquet", one)])
            for name in tables_over_drives(OVER_SIZES)
        }  # fmt: skip

    def measurements_with(self, of_kinds: tuple[str, ...]) -> str:
        """Regular expression for the measurements that have just these kinds of figures over several drives."""
        return "|".join(re.escape(name) for name, found in self.over_drives.items() if found == of_kinds)

    def tables_over_drives(self, of_kinds: Iterable[str]) -> dict[str, Callable[..., list[str]]]:
        """Input files of the rule that draws these kinds of figures over several drives, by table: of its wildcards."""
        return {
            name: (lambda wildcards, name=name: [self.path(f"tables/{name}.parquet")])
            if name in OF_THE_STUDY
            else (lambda wildcards, name=name: self.of_measurement(
                f"tables/RECORDING/{name}.parquet", wildcards.measurement))
            for name in tables_over_drives(of_kinds)
        }  # fmt: skip


def _caption_file(name: str) -> Path:
    """Return the file with a figure's caption, where Snakemake's own report looks for it; writes it if need be."""
    path = Path.cwd() / ".snakemake" / "drivelab" / "captions" / f"{name}.rst"
    text = f"{ALL[name].caption}\n"
    if not path.exists() or path.read_text(encoding="utf-8") != text:
        path.parent.mkdir(parents=True, exist_ok=True)
        new = path.with_suffix(f".{os.getpid()}")  # jobs read this workflow at the same time
        new.write_text(text, encoding="utf-8")
        new.replace(path)
    return path


def kinds(planned: Planned) -> set[str]:
    """Kinds of figures that a plan leads to."""
    return figure_kinds(planned.plan.subject)


def any_of(plans: Iterable[Planned]) -> str:
    """Regular expression for the measurements of some plans; matches nothing if there are none."""
    return "|".join(map(re.escape, sorted({one.plan.measurement for one in plans}))) or "(?!)"
