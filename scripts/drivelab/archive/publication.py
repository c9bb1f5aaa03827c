"""Facts that only the publisher of a study knows: authors, licence and date."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import date
from typing import Any
from urllib.parse import quote, urlsplit

from packaging.licenses import canonicalize_license_expression

from drivelab.errors import UserError

_AUTHOR = re.compile(r"\s*([^<>]*[^<>\s])\s*(?:<\s*(?:https?://orcid\.org/)?([0-9Xx-]+)\s*>)?\s*")
_ORCID = re.compile(r"(\d{4}-){3}\d{3}[\dX]")
_SPDX = re.compile(r"(?!LicenseRef-)[A-Za-z0-9.-]+")
"""A single name; packaging checks the SPDX list, but would also accept expressions and custom names."""
_NO_LICENCE = "No licence was given: ask the authors before you use the data."


@dataclass(frozen=True)
class Publication:
    """The facts as in RO-Crate: references of the root data entity, and the referenced entities."""

    authors: tuple[dict[str, Any], ...] = ()
    licence: str | None = None
    """URL of the licence of the data."""
    published: str | None = None
    """Date; None for the date when the last recording finished."""

    @property
    def entities(self) -> list[dict[str, Any]]:
        """The authors and the licence."""
        if self.licence is None:
            return list(self.authors)
        name = self.licence.rstrip("/").rpartition("/")[2]
        entity = {"@id": self.licence, "@type": "CreativeWork", "name": name, "description": f"Licence {name}"}
        return [*self.authors, entity]

    @property
    def properties(self) -> dict[str, Any]:
        """Properties of the root data entity."""
        licence: Any = _NO_LICENCE if self.licence is None else {"@id": self.licence}
        authors = [{"@id": author["@id"]} for author in self.authors]
        return {"license": licence, **({"author": authors} if authors else {})}


def publication(authors: Sequence[str], licence: str | None, published: str | None) -> Publication:
    """Return the facts from user input: `Name <ORCID>`, an SPDX name or a URL, a date; raises UserError for others."""
    if published is not None:
        try:
            date.fromisoformat(published)
        except ValueError:
            raise UserError(f"'{published}' is not a date; write it as 2026-05-01") from None
    return Publication(tuple(map(_author, authors)), None if licence is None else _licence(licence), published)


def _licence(text: str) -> str:
    """Return the URL of a licence."""
    try:
        url = urlsplit(text)
        if url.scheme in ("http", "https") and url.netloc:
            return text
        if _SPDX.fullmatch(text):
            return f"https://spdx.org/licenses/{canonicalize_license_expression(text)}"
    except ValueError:  # neither URL nor SPDX name
        pass
    raise UserError(
        f"'{text}' is not a licence; give a name listed at https://spdx.org/licenses/, such as CC-BY-4.0, or a URL"
    )


def _author(text: str) -> dict[str, Any]:
    match = _AUTHOR.fullmatch(text)
    if match is None or (match[2] and not _is_orcid(match[2].upper())):
        raise UserError(f"'{text}' is not an author; write 'Name', or with an ORCID 'Name <0000-0002-1825-0097>'")
    name = match[1]
    place = f"https://orcid.org/{match[2].upper()}" if match[2] else f"#author-{quote(name, safe='')}"
    return {"@id": place, "@type": "Person", "name": name}


def _is_orcid(text: str) -> bool:
    """Whether the text is an ORCID with a correct check digit (ISO/IEC 7064, MOD 11-2)."""
    if not _ORCID.fullmatch(text):
        return False
    total = 0
    for digit in text.replace("-", "")[:-1]:
        total = (total + int(digit)) * 2
    check = (12 - total % 11) % 11
    return text[-1] == ("X" if check == 10 else str(check))
