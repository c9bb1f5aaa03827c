"""Numbers of a drawn figure as JSON has them: rounded, without NaN, whole ones as integers."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

DIGITS = 5
_DIGITS_IN_ORDER = 7  # seconds of a day stay apart

Floats = npt.NDArray[np.float64]


def floats(values: Any) -> Floats:
    """Values of an artist as floats; what is masked is NaN."""
    return np.ma.filled(np.ma.asarray(values, dtype=float), np.nan)


def rounded(values: Floats, digits: int = DIGITS) -> Floats:
    """`values` to a number of significant digits."""
    with np.errstate(divide="ignore", invalid="ignore"):
        places = digits - 1 - np.floor(np.log10(np.abs(values)))
    places = np.where(np.isfinite(places), np.clip(places, -300, 300), 0)
    up, down = 10.0 ** np.maximum(places, 0), 10.0 ** np.maximum(-places, 0)
    return np.asarray(np.round(values / down * up) / up * down)


def listed(values: Any, digits: int = DIGITS) -> list[float | int | None]:
    """Rounded values for JSON: None for what is no finite number, integers where nothing is behind the point."""
    return [
        None if one != one or one in (float("inf"), float("-inf")) else int(one) if one == int(one) else one
        for one in rounded(floats(values), digits).tolist()
    ]


def placed(values: Any) -> list[float | int | None]:
    """Values along an axis: ones in order have more digits, so that neighbours stay apart."""
    numbers = floats(values)
    in_order = numbers.size > 1 and bool((np.diff(numbers) >= 0).all())
    return listed(numbers, _DIGITS_IN_ORDER if in_order else DIGITS)


def number(value: float, digits: int = DIGITS) -> float:
    """One value, rounded."""
    return float(f"{value:.{digits}g}")
