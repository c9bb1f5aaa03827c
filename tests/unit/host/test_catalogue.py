"""Faults in a file of host settings are refused with file, setting and reason."""

from __future__ import annotations

from pathlib import Path

import pytest
import yaml

from drivelab.core.errors import UserError
from drivelab.host.catalogue import catalogue
from drivelab.host.entry import Part

SOUND = {"name": "A", "effect": "e", "how": "h", "read": {"files": ["a"]}, "both": {"set": "1"}}
FAULTS = [
    ({"effekt": "e"}, "key 'settings[0]': unknown key 'effekt'; did you mean 'effect'?"),
    ({"name": "A: b"}, "key 'settings[0].name': 'A: b' does not match the pattern"),
    ({"real-world": "any"}, "has 'real-world', which also needs 'synthetic'"),
    ({"real-world": "any", "synthetic": "any"}, "is not allowed here; write both or real-world and synthetic"),
    ({"read": {"fils": ["a"]}}, "setting 'A': reader 'fils' is unknown; did you mean 'files'?"),
    ({"read": "swap"}, "setting 'A': reader 'swap' is unknown; did you mean 'swaps'?"),
    ({"describe": "turbos"}, "setting 'A': description 'turbos' is unknown; did you mean 'turbo'?"),
    ({"both": {"rule": "turbos", "words": "w"}}, "setting 'A': rule 'turbos' is unknown; did you mean 'turbo'?"),
    ({"both": {"is": ["1"], "is_not": ["2"]}}, " needs one of is, is_not"),
    ({"both": {"none": True, "set": "1", "words": "w"}}, " needs one of is, is_not"),
    ({"both": {"words": "w"}}, " needs one of is, is_not"),
    ({"both": {"is_not": ["1"]}}, " needs 'words' that say what is wanted"),
    ({"both": {"set": 1}}, "key 'settings[0].both.set': 1 is not of type string"),
]


@pytest.mark.parametrize(("wrong", "reason"), FAULTS, ids=[reason for _, reason in FAULTS])
def test_a_fault_is_refused(tmp_path: Path, wrong: dict[str, object], reason: str) -> None:
    (tmp_path / "a.yaml").write_text(yaml.safe_dump({"settings": [{**SOUND, **wrong}]}))
    with pytest.raises(UserError) as refusal:
        catalogue(tmp_path)
    message = str(refusal.value)
    assert message.startswith(f"{tmp_path / 'a.yaml'}: ")
    assert reason in message


def test_two_settings_cannot_have_the_same_name(tmp_path: Path) -> None:
    for name in ("a.yaml", "b.yaml"):
        (tmp_path / name).write_text(yaml.safe_dump({"settings": [SOUND]}))
    with pytest.raises(UserError, match=r"b\.yaml: setting 'A': another setting has the same name"):
        catalogue(tmp_path)


@pytest.mark.parametrize(
    ("wish", "words", "value", "accepted", "target"),
    [
        ("as shipped", "as shipped", "7", True, None),
        ({"set": "0"}, "0", "7", False, "0"),
        ({"is": ["0", "7"]}, "0 or 7", "7", True, None),
        ({"is": ["0", "7"], "set": "0", "words": "w"}, "w", "8", False, "0"),
        ({"is_not": ["7"], "set": "0", "words": "w"}, "w", "7", False, "0"),
        ({"not_beginning_with": ["7"], "words": "w"}, "w", "70", False, None),
        ({"content_of": "other", "words": "w"}, "w", "7", False, "9"),
        ({"none": True, "words": "w"}, "w", "7", False, None),
    ],
)
def test_a_wish_accepts_and_sets_what_it_says(
    tmp_path: Path, wish: object, words: str, value: str, accepted: bool, target: str | None
) -> None:
    (tmp_path / "a.yaml").write_text(yaml.safe_dump({"settings": [{**SOUND, "both": wish}]}))
    (tmp_path / "other").write_text("9\n")
    (setting,) = catalogue(tmp_path)
    part = Part("a", value, tmp_path / "a")
    assert setting.synthetic.words == words
    assert (setting.synthetic.accepts(part), setting.synthetic.target(part)) == (accepted, target)


def test_a_timer_that_a_setting_names_is_not_among_the_others(tmp_path: Path) -> None:
    timers = {**SOUND, "name": "T", "read": {"timers": ["b*"]}}
    others = {**SOUND, "name": "O", "read": "other_timers"}
    (tmp_path / "a.yaml").write_text(yaml.safe_dump({"settings": [others, timers]}))
    other, named = catalogue(tmp_path)

    class Host:
        def timers(self) -> list[str]:
            return ["a.timer", "b.timer"]

    assert [part.name for part in other.read(Host(), "") or []] == ["a.timer"]  # type: ignore[arg-type]
    assert [part.name for part in named.read(Host(), "") or []] == ["b.timer"]  # type: ignore[arg-type]
