"""Report an error in a protocol with reason, key path, file and line."""

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
    """An invalid value in a mapping."""

    def __init__(self, reason: str, keys: Keys = (), unknown_key: str | None = None) -> None:
        super().__init__(reason)
        self.reason = reason
        """A sentence with the remedy, without the final stop."""
        self.keys = keys
        """Path to the invalid value."""
        self.unknown_key = unknown_key
        """The unknown key at that path, if that is the error; the line is its line."""


@contextmanager
def at(*keys: str | int) -> Iterator[None]:
    """Prefix the keys of a misfit inside.

    Turn a UserError, such as for a size, into a misfit at `keys`.
    """
    try:
        yield
    except MisfitError as misfit:
        raise MisfitError(misfit.reason, (*keys, *misfit.keys), misfit.unknown_key) from None
    except UserError as error:
        raise MisfitError(str(error), keys) from None


@dataclass(frozen=True)
class Place:
    """Place of a mapping: a file and the mapping's key path in it."""

    file: Path
    keys: Keys = ()
    name: str | None = None
    """Name in errors, if there is no such file."""

    @classmethod
    def named(cls, source: str, *within: str) -> Place:
        """Return the place of keys `within` a source such as `s.yaml: key 'drives[0]'`."""
        match = _SOURCE.fullmatch(source)
        if match is None or not Path(match["file"]).is_file():
            return cls(Path(source), within, source)
        parts = re.findall(r"[^.\[\]]+", match["key"])
        return cls(Path(match["file"]), (*(int(part) if part.isdigit() else part for part in parts), *within))

    def error(self, misfit: MisfitError) -> UserError:
        """Return the error for the user about a misfit of the mapping."""
        keys = (*self.keys, *misfit.keys)
        if self.name is None:
            line = line_of(self.file, keys if misfit.unknown_key is None else (*keys, misfit.unknown_key))
            location = f"{self.file} line {line}"
        else:
            location = self.name
        return UserError(f"{location}: " + (f"key '{key_text(keys)}': " if keys else "") + misfit.reason)
