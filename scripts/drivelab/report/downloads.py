"""The tables of the study as text to be downloaded, every value in full precision."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from drivelab.report.view import Download

if TYPE_CHECKING:
    import pandas as pd

_MEANINGS = {
    "summary": "every value of every test and drive, with samples, spread, interval, verdict and evidence",
    "deltas": "every comparison with the basis, with interval, p-values, verdict, doubts and remarks",
    "steady_state": "the determination of steady state of every tracked variable",
    "saturation": "cliff and level of every soak that saturates a drive",
    "findings": "what every detector found, and what it looked for in vain",
    "differences": "all that differs between the compared drives",
    "conditions": "what every recording was made under",
    "exclusions": "what is left out of every result, and why",
    "drives": "the drives by their own word",
    "hosts": "the hosts",
    "traces": "the traces that were replayed",
}


def downloads(tables: Mapping[str, pd.DataFrame]) -> tuple[Download, ...]:
    """Those of the study's tables that are there and hold anything."""
    return tuple(
        Download(name, meaning, len(tables[name]), _csv(tables[name]))
        for name, meaning in _MEANINGS.items()
        if name in tables and len(tables[name])
    )


def _csv(frame: pd.DataFrame) -> str:
    """Lists become text with ` | ` between their items."""
    lists = [name for name in frame.columns if frame[name].map(_is_list).any()]
    return str(
        frame.assign(**{name: frame[name].map(_text) for name in lists}).to_csv(index=False, lineterminator="\n")
    )


def _is_list(value: Any) -> bool:
    return hasattr(value, "__len__") and not isinstance(value, str)


def _text(value: Any) -> Any:
    return " | ".join(map(str, value)) if _is_list(value) else value
