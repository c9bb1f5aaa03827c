"""The header of a test says what was measured."""

from __future__ import annotations

from typing import Any

import pandas as pd
import pytest

from drivelab.report.header import fact_groups
from drivelab.report.inputs import Inputs


def facts(drive: dict[str, Any], **plan: Any) -> dict[str, str]:
    place = {"drive": "home", "measurement": "test"}
    inputs = Inputs.of(
        {"drives": pd.DataFrame([{"drive": "home", **drive}])}, {}, [{**place, "recording": "r", **plan}]
    )
    groups = fact_groups(inputs, ("home", "test"))
    return {fact.name: fact.value for facts in groups.values() for fact in facts}


@pytest.mark.parametrize(("transport", "kind"), [("virtio", None), ("sata", "hard disk")])
def test_a_folder_shows_what_is_below_and_a_virtual_disk_is_no_hard_disk(transport: str, kind: str | None) -> None:
    shown = facts({"composition": "ext4; disk", "transport": transport, "rotational": True, "kind": "file"})
    assert (shown["Consists of"], shown.get("Kind")) == ("ext4; disk", kind)


@pytest.mark.parametrize(("array", "words"), [("rebuilding, then clean",) * 2, ("", None)])
def test_a_page_says_in_which_state_an_array_was_measured(array: str, words: str | None) -> None:
    assert facts({}, array=array).get("State of the array") == words
