"""Lists and pages of protocols, the example in docs/protocols.md, and what a plan says of its traces."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest
from stages import lines, plan_of, run_stages

from drivelab.campaign import protocol_page
from drivelab.campaign import protocol_page as protocol_subject
from drivelab.campaign.procedure import procedure, total
from drivelab.campaign.protocol_page import START
from drivelab.cli.main import main
from drivelab.core.errors import UserError
from drivelab.plan.grammar import load, resolve

ROOT = Path(__file__).resolve().parents[3]
PROTOCOLS = sorted((ROOT / "config/protocols").glob("*.yaml"))
WORDS, SUBJECT = protocol_subject.imagined("1TB", 2000.0)


def example() -> str:
    """Return the example protocol of docs/protocols.md."""
    match = re.search(r"```yaml\n(name: .*?)```", (ROOT / "docs/protocols.md").read_text(), re.S)
    assert match is not None
    return match[1]


@pytest.mark.parametrize("path", PROTOCOLS, ids=lambda path: path.stem)
def test_every_protocol_is_described(path: Path) -> None:
    protocol = load(path)
    resolved = resolve(protocol, protocol.usual_class, None, {}, protocol.name)
    lines = protocol_page.text(protocol, resolved, WORDS, SUBJECT, protocol.usual_class, None).splitlines()
    assert lines[0] == f"{protocol.name}: {protocol.body['title']}"
    assert sum(line.startswith("  total") for line in lines) == len(resolved)


def test_a_new_protocol_needs_only_a_file(project: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """The example of docs/protocols.md is checked, shown, planned and measured without any code for it."""
    Path("config/protocols/my-mix.yaml").write_text(example())
    assert main(["protocol", "check", "config/protocols/my-mix.yaml"]) == 0
    assert main(["protocol", "show", "config/protocols/my-mix.yaml", "--drive", "op7"]) == 0
    output = capsys.readouterr().out
    assert "5 to 25 rounds of 4 cells of 1 min" in output
    plan = plan_of("{protocol: my-mix, scale: demo}")
    run_stages(plan)
    cells = lines(plan, "cell")
    assert [line["workload"]["queue_depth"] for line in cells[:4]] == [1, 4, 16, 64]


def test_a_mistake_is_named_with_its_line(project: Path, capsys: pytest.CaptureFixture[str]) -> None:
    text = example().replace("queue_depth: 64, metric", "queue_depth: 65, metric")
    path = Path("config/protocols/my-mix.yaml")
    path.write_text(text)
    line = next(number for number, words in enumerate(text.splitlines(), 1) if "queue_depth: 65" in words)
    assert main(["protocol", "check", str(path)]) == 2
    assert f"{path} line {line}:" in capsys.readouterr().err


def test_volumes_and_times_are_those_of_the_drive() -> None:
    protocol = load(ROOT / "config/protocols/pts-iops.yaml")
    (resolved,) = resolve(protocol, "enterprise", None, {}, "test")
    parts = procedure(resolved, SUBJECT)
    fill, loop = parts[1].estimate, parts[2].estimate
    assert fill is not None
    assert loop is not None
    assert fill.least_bytes == fill.most_bytes == pytest.approx(2e12, rel=1e-6)
    assert fill.least_s == pytest.approx(2e12 / (2000 * 2**20), rel=1e-6)
    assert loop.least_s == pytest.approx(5 * 56 * 60, rel=0.01)
    assert loop.most_s == pytest.approx(25 * 56 * 60, rel=0.01)
    whole = total(parts).estimate
    assert whole is not None
    assert whole.least_s > loop.least_s


def test_a_reduced_scale_is_labelled(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["protocol", "show", "pts-iops", "--scale", "demo"]) == 0
    output = capsys.readouterr().out
    assert "scale demo: REDUCED" in output
    assert "reduced: loop runtime: 700ms instead of 60s" in output


def test_an_unknown_protocol_a_scale_and_a_drive_are_refused(capsys: pytest.CaptureFixture[str]) -> None:
    for arguments in (["no-such"], ["pts-iops", "--scale", "tiny"], ["pts-iops", "--drive", "nobody"],
                      ["pts-iops", "--capacity", "0B"], ["../drives"]):  # fmt: skip
        assert main(["protocol", "show", *arguments]) == 2
        assert "Traceback" not in capsys.readouterr().err


def test_a_replay_without_a_trace_has_an_unknown_time() -> None:
    (resolved,) = resolve(load(ROOT / "config/protocols/trace-replay.yaml"), "enterprise", None, {}, "test")
    parts = procedure(resolved, SUBJECT)
    assert parts[-1].time == "unknown"
    assert "without the unknown parts" in total(parts).words
    _, with_trace = protocol_subject.imagined("1TB", 2000.0, (protocol_subject.trace("sqlite-inserts"),))
    assert procedure(resolved, with_trace)[-1].time != "unknown"


def test_an_imagined_drive_has_decimal_or_binary_capacity() -> None:
    assert protocol_subject.imagined("1TB", 1.0)[1].capacity_bytes == 10**12
    assert protocol_subject.imagined("512GiB", 1.0)[1].capacity_bytes == 2**39
    with pytest.raises(UserError, match="has no capacity"):
        protocol_subject.imagined("0GiB", 1.0)


def test_a_protocol_that_does_not_fit_the_drive_is_refused(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["protocol", "show", "pts-iops", "--drive", "op7"]) == 2
    assert "block size 512B is not a multiple of the drive's logical block of 4KiB" in capsys.readouterr().err
    assert main(["protocol", "show", "pts-iops", "--drive", "op7-512e"]) == 0
    assert main(["protocol", "show", "qos-nines", "--drive", "op7"]) == 2
    assert "8GiB is larger than the drive of 32MiB" in capsys.readouterr().err
    assert main(["protocol", "show", "pts-iops", "--drive", "op7-512e", "--capacity", "1TB"]) == 2
    assert "--drive sets capacity and speed" in capsys.readouterr().err


def test_every_shipped_protocol_has_a_family_and_an_estimate_on_a_large_drive(
    capsys: pytest.CaptureFixture[str],
) -> None:
    assert main(["protocol", "list", "--json", "--capacity", "1TB"]) == 0
    listed = json.loads(capsys.readouterr().out)
    assert sorted(entry["name"] for entry in listed) == sorted(path.stem for path in PROTOCOLS)
    assert {entry["family"] for entry in listed} == set(protocol_page.FAMILIES)
    assert [entry["name"] for entry in listed if entry["start"]] == list(START)
    assert not [entry["unfit"] for entry in listed if entry["unfit"]]
    assert all(0 < entry["takes"]["least_s"] <= entry["takes"]["most_s"] for entry in listed)


def test_a_protocol_that_does_not_fit_the_drive_says_so(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["protocol", "list", "--capacity", "1GiB"]) == 0
    (line,) = [line for line in capsys.readouterr().out.splitlines() if line.startswith("* quick ")]
    assert line.endswith("Quick look (does not fit this drive)")


def test_times_are_in_whole_minutes_or_hours() -> None:
    _, subject = protocol_page.imagined("1TB", 2000.0)
    entries = protocol_page.entries(
        [load(ROOT / f"config/protocols/{name}.yaml") for name in ("pts-iops", "quick")], subject
    )
    assert [(entry.name, entry.time) for entry in entries] == [("quick", "3 min to 4 min"), ("pts-iops", "5 h to 24 h")]
