"""Find a published number of a study: its row in the table `summary` or `deltas`."""

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
"""Columns that identify a number, by table."""
_FEW = 12


def choose(rows: pd.DataFrame, table: str, words: Sequence[str]) -> pd.DataFrame:
    """Return the rows of a table of KEYS that match all words, with their index.

    A word is COLUMN=VALUE, or a value of any column, whole or in part. If it is the whole value of a row, partial
    matches are left out. Case does not matter. Raises UserError, with the existing values, for a word without a match.
    """
    chosen = rows
    for word in words:
        column, equals, value = word.partition("=")
        if equals and column in KEYS[table]:
            matches = chosen[column].str.casefold() == value.strip().casefold()
        else:
            texts = [chosen[name].astype(str).str.casefold() for name in KEYS[table]]
            matches = _any(text == word.casefold() for text in texts)
            if not matches.any():
                matches = _any(text.str.contains(word.casefold(), regex=False) for text in texts)
        if not matches.any():
            if equals and column not in KEYS[table]:
                raise _no_column(column, table, column in rows.columns)
            names = [column] if equals else list(KEYS[table])
            existing = "; ".join(f"{name}: {_listed(chosen[name])}" for name in names)
            raise UserError(f"'{word}' matches no number of {table}; there is {existing}")
        chosen = chosen[matches]
    return chosen


def _no_column(column: str, table: str, exists: bool) -> UserError:
    """Return the error for COLUMN=VALUE with a column that is not in KEYS.

    `exists`: the table has the column.
    """
    known = ", ".join(KEYS[table])
    if exists:
        return UserError(f"numbers of {table} cannot be selected by column '{column}'; use one of {known}")
    close = difflib.get_close_matches(column.casefold(), KEYS[table], 1)
    remedy = f"did you mean '{close[0]}'? Columns are {known}" if close else f"use one of {known}"
    return UserError(f"there is no column '{column}' in {table}; {remedy}")


def _any(masks: object) -> pd.Series:
    return pd.concat(list(masks), axis=1).any(axis=1)  # type: ignore[call-overload]


def _listed(values: pd.Series) -> str:
    return some(list(dict.fromkeys(values.astype(str))), _FEW)
