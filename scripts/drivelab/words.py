"""Format counts and lists for sentences."""

from __future__ import annotations

from collections.abc import Sequence


def counted(number: int, thing: str) -> str:
    """Return a count with its noun: `1 drive`, `3 drives`."""
    return f"{number} {thing}{'' if number == 1 else 's'}"


def some(names: Sequence[str], most: int) -> str:
    """Return at most `most` names, then the number of others: `a, b and 3 more`."""
    more = f" and {len(names) - most} more" if len(names) > most else ""
    return f"{', '.join(names[:most])}{more}"
