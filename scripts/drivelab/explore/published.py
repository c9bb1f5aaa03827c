"""A published number among those of a study: its row in the table `summary` or `deltas`, by what is known of it."""

from __future__ import annotations

import difflib
from collections.abc import Sequence

import pandas as pd

from drivelab.errors import UserError
from drivelab.words import some

KEYS = {
    "summary": ("drive", "measurement", "protocol", "cell_label", "metric"),
    "deltas": ("comparison", "basis", "measurement", "protocol", "cell_label", "metric"),
}
"""Columns that say what a number is of, by table."""
_FEW = 12


def choose(rows: pd.DataFrame, table: str, words: Sequence[str]) -> pd.DataFrame:
    """Rows of a table of KEYS that fit all words, each with its place in the table as index.

    A word is COLUMN=VALUE, or a value of any column, whole or in part; where it is the whole value of a row, others
    that have it in part do not fit. Capital letters do not matter. Raises UserError for a word that fits no row, with
    what there is.
    """
    chosen = rows
    for word in words:
        column, equals, value = word.partition("=")
        if equals and column in KEYS[table]:
            fit = chosen[column].str.casefold() == value.strip().casefold()
        else:
            texts = [chosen[name].astype(str).str.casefold() for name in KEYS[table]]
            fit = _any(text == word.casefold() for text in texts)
            if not fit.any():
                fit = _any(text.str.contains(word.casefold(), regex=False) for text in texts)
        if not fit.any():
            if equals and column not in KEYS[table]:
                raise _no_column(column, table, column in rows.columns)
            names = [column] if equals else list(KEYS[table])
            there = "; ".join(f"{name}: {_listed(chosen[name])}" for name in names)
            raise UserError(f"'{word}' fits no number of {table}; there is {there}")
        chosen = chosen[fit]
    return chosen


def _no_column(column: str, table: str, there: bool) -> UserError:
    """The error of COLUMN=VALUE with another column than those of KEYS, which the table may have all the same."""
    known = ", ".join(KEYS[table])
    if there:
        return UserError(f"numbers of {table} are not found by column '{column}'; take one of {known}")
    close = difflib.get_close_matches(column.casefold(), KEYS[table], 1)
    remedy = f"did you mean '{close[0]}', of {known}?" if close else f"take one of {known}"
    return UserError(f"there is no column '{column}' in {table}; {remedy}")


def _any(masks: object) -> pd.Series:
    return pd.concat(list(masks), axis=1).any(axis=1)  # type: ignore[call-overload]


def _listed(values: pd.Series) -> str:
    found = list(dict.fromkeys(values.astype(str)))
    return some(found, _FEW)
