"""Links between pages have a target: a file, a heading, or a picture."""

from __future__ import annotations

from pathlib import Path

import pytest
from doc_pages import ROOT, anchors, links, pages


@pytest.mark.parametrize("page", pages())
def test_links_have_a_target(page: str) -> None:
    for target, picture in links(page):
        if target.startswith(("https://", "http://")):
            continue
        path, _, anchor = target.partition("#")
        destination = (ROOT / page).parent / path if path else ROOT / page
        assert destination.exists(), f"{page}: there is no {target}"
        assert not picture or destination.suffix in (".png", ".svg"), f"{page}: {target} is not a picture"
        if anchor:
            other = str(destination.resolve().relative_to(ROOT))
            assert anchor in anchors(other), f"{page}: {other} has no heading for #{anchor}"


def test_every_page_can_be_reached_from_the_readme() -> None:
    seen: set[str] = set()
    waiting = ["README.md"]
    while waiting:
        page = waiting.pop()
        if page not in seen:
            seen.add(page)
            targets = (target.partition("#")[0] for target, _ in links(page) if "://" not in target)
            destinations = [
                ((ROOT / page).parent / target).resolve() for target in targets if Path(target).suffix == ".md"
            ]
            waiting += [str(target.relative_to(ROOT)) for target in destinations]
    assert seen >= set(pages())
