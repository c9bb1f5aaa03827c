from __future__ import annotations

import pytest

from drivelab.core.errors import UserError
from drivelab.drives import tools


def test_output_and_status_are_kept() -> None:
    output = tools.run("sh", "-c", "echo out; echo complaint >&2; exit 3")
    assert (output.status, output.stdout, output.words) == (3, "out\n", "complaint")


def test_a_program_that_does_not_answer_is_killed() -> None:
    output = tools.run("sh", "-c", "exec sleep 1000", timeout_s=0.2)
    assert output.status == 124
    assert output.words == "sh did not answer within 0 s"


def test_a_missing_program_is_named_with_its_package(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", "/nowhere")
    with pytest.raises(UserError, match=r"sg_turs is not installed; .*package sg3-utils"):
        tools.run("sg_turs")


@pytest.mark.parametrize(("script", "value"), [("echo '{\"a\": 1}'", {"a": 1}), ("echo '{\"a\": 1}'; exit 1", None),
                                               ("echo Error", None), ("echo '[1]'", None)])  # fmt: skip
def test_json_is_read_only_from_a_successful_program(script: str, value: dict[str, int] | None) -> None:
    assert tools.read_json("sh", "-c", script) == value
