"""Completion in a real bash."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from drivelab.cli.main import main

_BASH = """\
eval "$(cat "$1")"
COMP_LINE=$2; COMP_POINT=${#2}; COMP_WORDS=($2); COMP_CWORD=$((${#COMP_WORDS[@]} - 1)); COMP_TYPE=9
_python_argcomplete "${COMP_WORDS[0]}" "${COMP_WORDS[COMP_CWORD]}" "${COMP_WORDS[COMP_CWORD - 1]}"
printf '%s\n' "${COMPREPLY[@]}"
"""


@pytest.mark.parametrize(
    ("line", "words"),
    [
        ("comp", {"compare ", "completion "}),
        ("protocol show pts-iops-", {"pts-iops-per-watt ", "pts-iops-v1 "}),
        ("compare op28-5", {"op28-512e "}),
        ("compare op7 op28 --fa", {"--fail-on "}),
    ],
)
def test_bash_completes_commands_options_and_names(
    line: str, words: set[str], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["completion", "bash"]) == 0
    script = tmp_path / "completion.bash"
    script.write_text(capsys.readouterr().out)
    command = Path(sys.executable).with_name("drivelab")
    done = subprocess.run(["bash", "-c", _BASH, "bash", str(script), f"{command} {line}"],
                          capture_output=True, text=True, check=True)  # fmt: skip
    assert {word.strip() for word in done.stdout.splitlines()} == {word.strip() for word in words}
