"""A study that adds runs until its headline comparisons are decided: how many, and what each look at them found."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from drivelab.core.errors import UserError
from drivelab.core.files import read_text
from drivelab.criteria.looks import look_level
from drivelab.criteria.repeats import FEWEST

LOOKS = "looks.json"
"""File of a results folder with the runs that looks have added, and why. Without it a study starts again with its
fewest runs; it finds their recordings and repeats the looks."""


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
