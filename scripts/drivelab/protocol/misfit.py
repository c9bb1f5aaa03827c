"""What does not fit in a protocol: a reason with the keys that lead to it, told with file and line."""

from __future__ import annotations

import re
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from drivelab.config.yaml_file import Keys, key_text, line_of
from drivelab.errors import UserError

_SOURCE = re.compile(r"(?P<file>[^:]+): key '(?P<key>[^']+)'")


class MisfitError(Exception):
    """Something in a mapping that does not fit."""

    def __init__(self, reason: str, keys: Keys = (), culprit: str | None = None) -> None:
        super().__init__(reason)
        self.reason = reason
        """A sentence without its end, with the remedy."""
        self.keys = keys
        """They lead to what does not fit."""
        self.culprit = culprit
        """A key of that which should not be there, if it is one that does not fit: the line is its."""


@contextmanager
def at(*keys: str | int) -> Iterator[None]:
    """Put keys before those of a misfit within; errors in values, such as of sizes, become misfits there."""
    try:
        yield
    except MisfitError as misfit:
        raise MisfitError(misfit.reason, (*keys, *misfit.keys), misfit.culprit) from None
    except UserError as error:
        raise MisfitError(str(error), keys) from None


@dataclass(frozen=True)
class Place:
    """Where a mapping is written: a file and the keys within it that lead to the mapping."""

    file: Path
    keys: Keys = ()
    said: str | None = None
    """What names it where there is no such file."""

    @classmethod
    def named(cls, source: str, *within: str) -> Place:
        """The place of `source`, a text such as `config/study.yaml: key 'measurements[0]'`, and keys `within` it."""
        match = _SOURCE.fullmatch(source)
        if match is None or not Path(match["file"]).is_file():
            return cls(Path(source), within, source)
        parts = re.findall(r"[^.\[\]]+", match["key"])
        return cls(Path(match["file"]), (*(int(part) if part.isdigit() else part for part in parts), *within))

    def error(self, misfit: MisfitError) -> UserError:
        """A misfit of the mapping as the user sees it."""
        keys = (*self.keys, *misfit.keys)
        if self.said is None:
            line = line_of(self.file, keys if misfit.culprit is None else (*keys, misfit.culprit))
            where = f"{self.file} line {line}"
        else:
            where = self.said
        return UserError(f"{where}: " + (f"key '{key_text(keys)}': " if keys else "") + misfit.reason)
