"""Which measurements are made of which drives on which platforms, how often: all, less `exclude`, plus `include`."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import product
from typing import Any

from drivelab.config.study_parts import MeasurementChoice
from drivelab.errors import UserError

NO_PLATFORM = ""
"""Stands for the platform in a study without any."""
_Combination = tuple[int, str, str]
"""Number of the measurement, drive, platform."""


@dataclass(frozen=True)
class Design:
    """The study's lists, in its order; `source` is the file, for errors."""

    source: str
    measurements: tuple[MeasurementChoice, ...]
    drives: tuple[str, ...]
    platforms: tuple[str, ...]
    runs: int

    def laid_out(
        self, exclude: Sequence[Mapping[str, Any]], include: Sequence[Mapping[str, Any]]
    ) -> tuple[MeasurementChoice, ...]:
        """The measurements, each with its `runs` by drive and platform.

        Raises UserError for a name that is none, an entry that changes nothing, an even number of runs, or if nothing
        is left.
        """
        places = self.platforms or (NO_PLATFORM,)
        planned: dict[_Combination, int] = {
            (number, drive, platform): self._odd(self.runs, "runs")
            for number, choice in enumerate(self.measurements)
            for drive in choice.drives
            for platform in places
        }
        for number, entry in enumerate(exclude):
            self._take_away(planned, entry, f"exclude[{number}]")
        for number, entry in enumerate(include):
            self._add(planned, entry, f"include[{number}]")
        if not planned:
            raise UserError(f"{self.source}: key 'exclude' takes away all that there is to measure; leave something")
        return tuple(self._with_runs(number, choice, planned) for number, choice in enumerate(self.measurements))

    def _take_away(self, planned: dict[_Combination, int], entry: Mapping[str, Any], key: str) -> None:
        names = self._names(entry, key)
        gone = [one for one in planned if all(self._name(one, what) in of_one for what, of_one in names.items())]
        if not gone:
            raise UserError(
                f"{self.source}: key '{key}' takes nothing away, as nothing is planned that fits all it names; mend it "
                "or leave it out"
            )
        for one in gone:
            del planned[one]

    def _add(self, planned: dict[_Combination, int], entry: Mapping[str, Any], key: str) -> None:
        runs = self._odd(entry.get("runs", self.runs), f"{key}.runs")
        wanted = list(self._wanted(planned, self._names(entry, key)))
        if not wanted:
            raise UserError(
                f"{self.source}: key '{key}' adds nothing, as none of what it names is planned, so that nobody can "
                "tell what belongs together; name both its 'measurements' and its 'drives', or leave it out"
            )
        more = [one for one in wanted if planned.get(one, 0) < runs]
        if not more:
            least = min(planned[one] for one in wanted)
            raise UserError(
                f"{self.source}: key '{key}' adds nothing, as all it names is planned {least} times already; ask for "
                "more 'runs' or leave it out"
            )
        planned.update(dict.fromkeys(more, runs))

    def _wanted(
        self, planned: Mapping[_Combination, int], names: Mapping[str, Sequence[str]]
    ) -> Iterator[_Combination]:
        """What an entry of `include` names; of what it does not name, only what is planned together already."""
        together: dict[tuple[int, str], list[str]] = {}
        for number, drive, platform in planned:
            together.setdefault((number, drive), []).append(platform)
        numbers = [
            number
            for number, choice in enumerate(self.measurements)
            if choice.name in names.get("measurements", [choice.name])
        ]
        for number, drive in product(numbers, names.get("drives", self.drives)):
            if {"measurements", "drives"} <= names.keys() or (number, drive) in together:
                known = together.get((number, drive), self.platforms or [NO_PLATFORM])
                for platform in names.get("platforms", known):
                    yield number, drive, platform

    def _names(self, entry: Mapping[str, Any], key: str) -> dict[str, Sequence[str]]:
        known = {
            "measurements": [choice.name for choice in self.measurements],
            "drives": self.drives,
            "platforms": self.platforms,
        }
        names = {what: entry[what] for what in known if what in entry}
        for what, of_one in names.items():
            for name in of_one:
                if name not in known[what]:
                    there = ", ".join(dict.fromkeys(known[what])) or "none"
                    raise UserError(
                        f"{self.source}: key '{key}.{what}' names '{name}', which is none of the study's {what}; "
                        f"there are: {there}"
                    )
        return names

    def _name(self, one: _Combination, what: str) -> str:
        return {"measurements": self.measurements[one[0]].name, "drives": one[1], "platforms": one[2]}[what]

    def _odd(self, runs: int, key: str) -> int:
        if runs % 2 == 0:
            raise UserError(
                f"{self.source}: key '{key}' is {runs}; a median takes an odd number of them, so choose one"
            )
        return runs

    def _with_runs(
        self, number: int, choice: MeasurementChoice, planned: Mapping[_Combination, int]
    ) -> MeasurementChoice:
        runs = {(drive, platform): often for (of, drive, platform), often in planned.items() if of == number}
        return replace(choice, drives=tuple(dict.fromkeys(drive for drive, _ in runs)), runs=runs)
