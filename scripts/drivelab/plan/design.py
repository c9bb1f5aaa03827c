"""Plan the runs: all combinations, minus `exclude`, plus `include`; and the runs of a study that adds some.

A growing study adds runs until its headline comparisons are decided. It keeps what each look at them found.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import product
from pathlib import Path
from typing import Any

from drivelab.core.errors import UserError, suggestion
from drivelab.core.files import read_text
from drivelab.core.units import counted
from drivelab.criteria.repeats import FEWEST, look_level
from drivelab.plan.study_parts import MeasurementChoice

LOOKS = "looks.json"
"""File of a results folder with the runs that looks have added, and why. Without it a study starts again with its
fewest runs; it finds their recordings and repeats the looks."""

JUDGED = "judged.json"
"""File of a results folder with the terms of each look at verdicts: runs, margin, basis and confidence."""


@dataclass(frozen=True)
class Growth:
    """The runs of a growing study, now and at most."""

    least: int
    most: int
    added: tuple[Mapping[str, int], ...] = ()
    """After each look that added some: the runs of every measurement, by name."""
    reasons: tuple[tuple[str, ...], ...] = ()
    """Sentences of each of these looks."""

    def runs(self, measurement: str) -> int:
        """Return the runs of a measurement after the last look."""
        return self.added[-1].get(measurement, self.least) if self.added else self.least

    @property
    def now(self) -> int:
        """Runs of the measurement that has most: the number of the next look."""
        return max(self.added[-1].values(), default=self.least) if self.added else self.least

    def confidence_pct(self, confidence_pct: float, runs: int | None = None) -> float:
        """Return the confidence of intervals at the look after `runs` runs, by default the next one.

        `confidence_pct` is that of all looks together.
        """
        return 100 * (1 - look_level(1 - confidence_pct / 100, self.least, self.most, runs or self.now))

    def grown(self, runs: Mapping[str, int], reasons: tuple[str, ...]) -> Growth:
        """Return this with a look that added runs."""
        return replace(self, added=(*self.added, dict(runs)), reasons=(*self.reasons, reasons))

    def facts(self, confidence_pct: float) -> dict[str, Any]:
        """Return what a report says of the looks; `confidence_pct` is that of all together."""
        reasons = [sentence for look in self.reasons for sentence in look]
        return {"least": self.least, "most": self.most, "confidence_pct": confidence_pct, "reasons": reasons}

    def to_mapping(self) -> dict[str, Any]:
        """Return the content of LOOKS."""
        looks = [
            {"runs": dict(runs), "reasons": list(reasons)}
            for runs, reasons in zip(self.added, self.reasons, strict=True)
        ]
        return {"least": self.least, "most": self.most, "looks": looks}


def growth_of(path: Path, body: Any, results: Path) -> Growth | None:
    """Return the growth that key `runs` of a study asks for, after the looks so far; None for a fixed number.

    Raises UserError for numbers that cannot be, for others than those of the looks so far, and for damaged looks.
    """
    if isinstance(body, int):
        return None
    growth = Growth(body["least"], body["most"])
    if not FEWEST <= growth.least < growth.most:
        raise UserError(
            f"{path}: key 'runs' is {growth.least} to {growth.most}; 'least' must be {FEWEST} or more, because fewer "
            "give no verdict, and 'most' must be larger"
        )
    looks = results / LOOKS
    if not looks.exists():
        return growth
    text = read_text(looks, "the looks of a growing study")
    try:
        found = json.loads(text)
        for look in found["looks"]:
            growth = growth.grown({str(name): int(runs) for name, runs in look["runs"].items()}, tuple(look["reasons"]))
        begun = found["least"], found["most"]
        if any(not growth.least <= runs <= found["most"] for added in growth.added for runs in added.values()):
            raise ValueError
    except (ValueError, TypeError, KeyError, AttributeError, OverflowError, RecursionError):
        raise UserError(
            f"{looks}: is damaged; delete it, and the study looks again at what it recorded, from its fewest runs on"
        ) from None
    if begun != (growth.least, growth.most):
        raise UserError(
            f"{path}: key 'runs' is {growth.least} to {growth.most}, but the looks so far counted on {begun[0]} to "
            f"{begun[1]}. Another plan after a look would cost error. Restore the key, or measure under another name"
        )
    return growth


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
