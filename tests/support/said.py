"""What the terminal says of the headline tests of a study."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from drivelab.report.delta import sentence
from drivelab.report.headline import headline_tests
from drivelab.report.inputs import Inputs


def headline_sentences(tables: Mapping[str, Any], study: Mapping[str, Any], plans: Sequence[Any] = ()) -> list[str]:
    """Return the sentence of each headline test, with plain spaces."""
    inputs = Inputs.of(tables, study, plans)
    return [sentence(inputs, delta).replace("\u00a0", " ") for delta in headline_tests(inputs, "deltas")]
