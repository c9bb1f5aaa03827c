"""Guard trace outputs: never overwrite a source."""

from __future__ import annotations

import errno
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path

from drivelab.errors import UserError


def refuse_source(output: Path, sources: Iterable[Path]) -> None:
    """Raise UserError when the output is a source, also under another name."""
    for source in sources:
        try:
            same = output.samefile(source)
        except OSError:
            same = output.absolute() == source.absolute()
        if same:
            raise UserError(f"{output}: is also the input and would be lost; give -o another name")


@contextmanager
def writable(output: Path) -> Iterator[None]:
    """Turn write errors into UserError; the command itself reports a full disk."""
    if output.is_dir():
        raise UserError(f"{output}: is a folder; name a file in it")
    if output.exists() and not output.is_file():
        raise UserError(f"{output}: is not a regular file and would be replaced; give -o another name")
    try:
        yield
    except OSError as error:
        if error.errno in (errno.ENOSPC, errno.EDQUOT):
            raise
        raise UserError(f"{output}: cannot be written ({error.strerror or error}); give -o another place") from None
