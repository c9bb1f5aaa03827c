"""Plan the runs: all combinations, minus `exclude`, plus `include`."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import product
from typing import Any

from drivelab.core.errors import UserError, suggestion
from drivelab.core.units import counted
from drivelab.plan.study_parts import MeasurementChoice

NO_PLATFORM = ""
"""Platform name in a study without platforms."""
_Combination = tuple[int, str, str]
"""Measurement number, drive, platform."""


@dataclass(frozen=True)
class Design:
    """Lists of a study, in its order; `source` names the file in errors."""

    source: str
    measurements: tuple[MeasurementChoice, ...]
    drives: tuple[str, ...]
    platforms: tuple[str, ...]
    runs: int | Callable[[str], int]
    """Number for all measurements, or for one by its name."""

    def resolve(
        self, exclude: Sequence[Mapping[str, Any]], include: Sequence[Mapping[str, Any]]
    ) -> tuple[MeasurementChoice, ...]:
        """Return the measurements, each with its `runs` by drive and platform.

        Raises UserError for an unknown name, an entry without effect, or an empty design.
        """
        places = self.platforms or (NO_PLATFORM,)
        planned: dict[_Combination, int] = {
            (number, drive, platform): self._runs(choice.name)
            for number, choice in enumerate(self.measurements)
            for drive in choice.drives
            for platform in places
        }
        for number, entry in enumerate(exclude):
            self._exclude(planned, entry, f"exclude[{number}]")
        for number, entry in enumerate(include):
            self._include(planned, entry, f"include[{number}]")
        if not planned:
            raise UserError(f"{self.source}: key 'exclude' removes every measurement; exclude less")
        return tuple(self._with_runs(number, choice, planned) for number, choice in enumerate(self.measurements))

    def _exclude(self, planned: dict[_Combination, int], entry: Mapping[str, Any], key: str) -> None:
        names = self._names(entry, key)
        excluded = [
            combination
            for combination in planned
            if all(self._name(combination, kind) in chosen for kind, chosen in names.items())
        ]
        if not excluded:
            raise UserError(
                f"{self.source}: key '{key}' matches no planned measurement; correct its names or remove the entry"
            )
        for combination in excluded:
            del planned[combination]

    def _include(self, planned: dict[_Combination, int], entry: Mapping[str, Any], key: str) -> None:
        combinations = list(self._combinations(planned, self._names(entry, key)))
        if not combinations:
            raise UserError(
                f"{self.source}: key '{key}' adds nothing: none of its names is planned, so the combination is "
                "unclear; name both 'measurements' and 'drives', or remove the entry"
            )
        runs = {place: entry.get("runs", self._runs(self.measurements[place[0]].name)) for place in combinations}
        extended = {place: count for place, count in runs.items() if planned.get(place, 0) < count}
        if not extended:
            fewest = min(planned[combination] for combination in combinations)
            raise UserError(
                f"{self.source}: key '{key}' adds nothing: all that it names already has {counted(fewest, 'run')}; "
                "ask for more 'runs' or remove the entry"
            )
        planned.update(extended)

    def _runs(self, measurement: str) -> int:
        return self.runs if isinstance(self.runs, int) else self.runs(measurement)

    def _combinations(
        self, planned: Mapping[_Combination, int], names: Mapping[str, Sequence[str]]
    ) -> Iterator[_Combination]:
        """Yield what an entry of `include` names; a missing key means what is planned."""
        planned_platforms: dict[tuple[int, str], list[str]] = {}
        for number, drive, platform in planned:
            planned_platforms.setdefault((number, drive), []).append(platform)
        numbers = [
            number
            for number, choice in enumerate(self.measurements)
            if choice.name in names.get("measurements", [choice.name])
        ]
        for number, drive in product(numbers, names.get("drives", self.drives)):
            if {"measurements", "drives"} <= names.keys() or (number, drive) in planned_platforms:
                platforms = planned_platforms.get((number, drive), self.platforms or [NO_PLATFORM])
                for platform in names.get("platforms", platforms):
                    yield number, drive, platform

    def _names(self, entry: Mapping[str, Any], key: str) -> dict[str, Sequence[str]]:
        known = {
            "measurements": [choice.name for choice in self.measurements],
            "drives": self.drives,
            "platforms": self.platforms,
        }
        names = {kind: entry[kind] for kind in known if kind in entry}
        for kind, chosen in names.items():
            for name in chosen:
                if name not in known[kind]:
                    hint = suggestion(name, dict.fromkeys(known[kind]))
                    raise UserError(
                        f"{self.source}: key '{key}.{kind}' names '{name}', which is not among the study's {kind}; "
                        f"{hint}"
                    )
        return names

    def _name(self, combination: _Combination, kind: str) -> str:
        number, drive, platform = combination
        return {"measurements": self.measurements[number].name, "drives": drive, "platforms": platform}[kind]

    def _with_runs(
        self, number: int, choice: MeasurementChoice, planned: Mapping[_Combination, int]
    ) -> MeasurementChoice:
        runs = {
            (drive, platform): count
            for (planned_number, drive, platform), count in planned.items()
            if planned_number == number
        }
        return replace(choice, drives=tuple(dict.fromkeys(drive for drive, _ in runs)), runs=runs)
