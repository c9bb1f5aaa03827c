"""What all pages of a site share: templates, style, script, policy."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

from jinja2 import Environment, FileSystemLoader, StrictUndefined
from markupsafe import Markup

from drivelab.analysis import limits
from drivelab.report.html import REPORT_TEMPLATES, own_script, packed_json, policy

_TEMPLATES = Path(__file__).parent / "templates"

_GRAVE = frozenset({limits.TAINTED, limits.NOT_STEADY, limits.NOT_PURGED})


def page(template: str, title: str, values: Mapping[str, Any]) -> str:
    """Return the HTML of a page with all texts escaped, the style of reports, and one script of drivelab."""
    script = own_script(("report.js",)) + (_TEMPLATES / "site.js").read_text(encoding="utf-8")
    style = (REPORT_TEMPLATES / "report.css").read_text(encoding="utf-8")
    style += (_TEMPLATES / "site.css").read_text(encoding="utf-8")
    environment = Environment(
        loader=FileSystemLoader([_TEMPLATES, REPORT_TEMPLATES]), autoescape=True, undefined=StrictUndefined,
        trim_blocks=True, lstrip_blocks=True, keep_trailing_newline=True,
    )  # fmt: skip
    environment.filters.update(packed_json=packed_json, exact=_exact)
    return environment.get_template(template).render(
        site=title,
        style=Markup(style),  # drivelab's files, no data in them
        script=Markup(script),  # likewise
        policy=policy(script),
        grave=_GRAVE,
        **{"root": "", "proofs": [], **values},
    )


def _exact(value: float | None) -> str:
    """Return a number with all digits, for sorting; empty for a missing one."""
    return "" if value is None else repr(float(value)).removesuffix(".0")


def strip(
    value: float, low: float | None, high: float | None, others: Iterable[float] = (), top: float = 0.0
) -> dict[str, Any]:
    """Return the places, 0 to 100, of dots on an axis from 0 to `top`, or to the largest value if that is larger.

    `value` is the dot that stands out, `low` to `high` its spread. Without positive values all places are 0.
    """
    others = list(others)
    top = max(*others, value, high or 0.0, top)
    scale = 100 / top if top > 0 else 0.0
    ends = [round(max(0.0, end) * scale, 2) for end in (low, high) if end is not None]
    return {
        "dots": sorted({round(max(0.0, number) * scale, 1) for number in others}),
        "at": round(max(0.0, value) * scale, 2),
        "span": ends if len(ends) == 2 else [],
    }
