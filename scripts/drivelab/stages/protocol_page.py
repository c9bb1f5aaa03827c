"""What is told of a protocol: on the terminal, and as its page and the index of docs/protocols."""

from __future__ import annotations

import textwrap
from collections.abc import Iterator, Sequence

from drivelab.protocol.grammar import Protocol, Resolved, resolve
from drivelab.stages.procedure import Part, Subject, procedure, total

_WIDTH = 110
_NEEDS = (("simultaneous", "all its drives at the same time"), ("replays", "a trace"), ("takes_streams", "one trace"),
          ("applications", "an application"))  # fmt: skip
_ESTIMATES = (
    "Times and volumes are estimates: the first if all goes fast and steady state comes early, the second at the most."
)
_BEGIN, _END = "<!-- made by drivelab protocol {} --markdown; a test compares -->\n\n", "\n"


def text(
    protocol: Protocol,
    resolved: Sequence[Resolved],
    words: str,
    subject: Subject,
    drive_class: str,
    scale: str | None,
) -> str:
    """For the terminal."""
    lines = [f"{protocol.name}: {protocol.body['title']}", f"    after {protocol.body['source']}"]
    lines += [f"    needs {needs}" for needs in _needs(protocol)]
    lines += ["", *textwrap.wrap(protocol.description.strip(), _WIDTH), ""]
    length = f"scale {scale}: REDUCED, no result of the full-length test" if scale else "full length"
    lines.append(f"{drive_class} class, {length}, for {words}:")
    for one in resolved:
        parts = procedure(one, subject)
        lines += [""] + ([f"{one.variant}:"] if one.variant is not None else [])
        for part in (*parts, total(parts)):
            lines += _wrapped(part)
    for difference in resolved[0].altered:
        lines += textwrap.wrap(f"reduced: {difference}", _WIDTH, subsequent_indent="    ")
    return "\n".join(lines) + "\n"


def _wrapped(part: Part) -> Iterator[str]:
    yield from textwrap.wrap(part.words, _WIDTH, initial_indent="  ", subsequent_indent="    ")
    for detail in part.details:
        yield from textwrap.wrap(detail, _WIDTH, initial_indent="      ", subsequent_indent="      ")
    yield f"      time {part.time}; written {part.written}"


def page(protocol: Protocol, words: str, subject: Subject) -> str:
    """Markdown: what the test asks, what it does to a drive, and where each parameter comes from."""
    body = protocol.body
    lines = [f"# {protocol.name}", "", f"**{body['title']}**. After: {body['source']}.", "",
             *textwrap.wrap(protocol.description.strip(), 118), ""]  # fmt: skip
    if needs := list(_needs(protocol)):
        lines += [f"It needs {' and '.join(needs)}, which the study names.", ""]
    lines += [f"In a study: `- {{protocol: {protocol.name}}}`. More: `./drivelab protocol show {protocol.name}`.", ""]
    lines += ["## What it does", "", f"At full length, enterprise class, to {words}. {_ESTIMATES}", ""]
    for one in resolve(protocol, "enterprise", None, {}, protocol.name):
        if one.variant is not None:
            lines += [f"### {one.variant}", ""]
        parts = procedure(one, subject)
        lines += ["| part | time | written |", "|---|---|---|"]
        lines += [f"| {_cell(part)} | {part.time} | {part.written} |" for part in (*parts, total(parts))]
        lines.append("")
    lines += ["## Where its parameters come from", "", "| parameter | source |", "|---|---|"]
    lines += [f"| `{path}` | {source} |" for path, source in body["sources"].items()]
    scales = ", ".join(f"`{name}`" for name in body.get("scale", {}))
    lines += ["", f"Scales that shorten it (its results are *reduced* then): {scales or 'none'}."]
    return _BEGIN.format(f"show {protocol.name}") + "\n".join(lines) + _END


def _cell(part: Part) -> str:
    return "<br>".join((part.words, *(textwrap.shorten(one, 400, placeholder=" …") for one in part.details)))


def index(protocols: Sequence[Protocol]) -> str:
    """Markdown: all protocols with their pages."""
    lines = ["# The protocols", "", "[How to write one](../protocols.md).", "", "| protocol | what | after |",
             "|---|---|---|"]  # fmt: skip
    lines += [f"| [{one.name}]({one.name}.md) | {one.body['title']} | {one.body['source']} |" for one in protocols]
    return _BEGIN.format("list") + "\n".join(lines) + _END


def _needs(protocol: Protocol) -> Iterator[str]:
    for name, words in _NEEDS:
        if getattr(protocol, name) and not (name == "replays" and protocol.takes_streams):
            yield words
