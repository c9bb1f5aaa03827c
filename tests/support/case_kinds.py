"""What each kind of case does with its input; the current folder is a project of `cases.make_project`."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import asdict, replace
from pathlib import Path
from typing import Any

import made_up_hosts
import pytest
import yaml
from run_cases import OF_RUNS
from storage_places import AHCI, Place

from drivelab.campaign.commands import fio_commands
from drivelab.campaign.estimate import Estimate, Trace, estimate
from drivelab.campaign.outlook import Outlook
from drivelab.campaign.planning import Campaign
from drivelab.drives.openers import Host
from drivelab.fio.job import job_text
from drivelab.host.catalogue import catalogue
from drivelab.host.entry import Part
from drivelab.host.settings import snapshot
from drivelab.host.stack import device_class, stack
from drivelab.host.stack.file_systems import Mount, describe
from drivelab.plan.cell import Cell
from drivelab.plan.design import Design
from drivelab.plan.drive_sheet import load_sheet
from drivelab.plan.expressible import refuse_inexpressible
from drivelab.plan.file_system import FileSystem
from drivelab.plan.fitting import refuse_unfit
from drivelab.plan.grammar import Protocol, Resolved, load, resolve
from drivelab.plan.plan import Plan
from drivelab.plan.ranges import parts_of
from drivelab.plan.replay_choice import ReplayChoice
from drivelab.plan.study_parts import MeasurementChoice
from drivelab.plan.yaml_file import load_yaml
from drivelab.run import file_system_device
from drivelab.trace.capturing import applications
from drivelab.virtual import manage
from drivelab.virtual.model import DriveModel

FOLDER = Path(__file__).resolve().parents[1] / "unit/cases"
MIB = 1 << 20


@contextmanager
def _changed(path: Path, text: str) -> Iterator[None]:
    """Give a file another text for a time."""
    before = path.read_text() if path.exists() else None
    path.write_text(text)
    try:
        yield
    finally:
        if before is None:
            path.unlink()
        else:
            path.write_text(before)


def _swapped(path: Path, old: str, new: str) -> str:
    text = path.read_text()
    assert old in text, f"the case is out of date: {old!r} is not in {path}"
    return text.replace(old, new, 1)


def _edit(given: list[str], _: Path) -> None:
    """The demo study, of which a file, `old` and `new` text are given."""
    path = Path(given[0])
    with _changed(path, _swapped(path, *given[1:])):
        Campaign.load("config/demo.yaml")


def _demo(given: dict[str, Any], _: Path) -> None:
    """The demo study with other keys."""
    path = Path("config/demo.yaml")
    with _changed(path, yaml.safe_dump({**yaml.safe_load(path.read_text()), **given})):
        Campaign.load(path)


def _study(given: dict[str, Any], _: Path) -> None:
    path = Path("config/mine.yaml")
    with _changed(path, yaml.safe_dump(given, sort_keys=False)):
        Campaign.load(path)


def _in_real_time(given: dict[str, Any], folder: Path) -> None:
    """A study on a host that can run virtual drives in real time."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(manage, "possible", lambda: None)
        _study(given, folder)


def _on_host_a(given: dict[str, Any], folder: Path) -> None:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("platform.node", lambda: "host-a")
        _study(given, folder)


def _design(given: dict[str, Any], _: Path) -> None:
    """Entries of `exclude` and `include`, for three drives and two measurements."""
    drives = ("a", "b", "c")
    choices = tuple(MeasurementChoice("pts-iops", name, None, (), drives, {}, "key") for name in ("m", "n"))
    Design("s.yaml", choices, drives, (), 1).resolve(given.get("exclude", []), given.get("include", []))


CLASS = {"threads": 2, "queue_depth": 16, "active_range": "75%"}
_COVERED = ("class", "for_each", "workloads", "condition", "simultaneous", "analysis")


def _resolved(given: dict[str, Any], folder: Path) -> tuple[Protocol, list[Resolved]]:
    """Return a protocol with these parts, whose other parts have defaults, and its measurements."""
    parts = {"measure": [{"idle": {"time": "1s"}}], **given}
    at, settings, sources = parts.pop("at", None), parts.pop("set", {}), parts.pop("sources", {})
    of_class = parts.pop("class", CLASS)
    body = {
        "name": "made", "title": "t", "source": "s", "description": "d",
        "class": {"enterprise": of_class, "client": of_class}, "condition": {"purge": "none"}, **parts,
    }  # fmt: skip
    kinds = {kind for step in body["measure"] for kind in step}
    covered = dict.fromkeys([*(part for part in _COVERED if part in body), *sorted(kinds)], "s") | sources
    body["sources"] = {name: source for name, source in covered.items() if source is not None}
    path = folder / "made.yaml"
    path.write_text(yaml.safe_dump(body, sort_keys=False))
    protocol = load(path)
    return protocol, resolve(protocol, "client", at, settings, "test")


def _protocol(given: dict[str, Any], folder: Path) -> list[dict[str, Any]]:
    """A protocol `at` a scale, changed by `set`: what differs from the defaults in each of its measurements."""
    default = _resolved({}, folder)[1][0].steps
    protocol, measurements = _resolved(given, folder)
    about = {
        "simultaneous": protocol.simultaneous, "applications": protocol.applications, "streams": protocol.takes_streams,
        "analysis": protocol.analysis, "description": protocol.description.removeprefix("d"),
    }  # fmt: skip
    found = [about] if any(about.values()) else []
    for measurement in measurements:
        for cell in _cells(measurement.steps["measure"]):
            assert Cell(**cell).to_mapping() == cell
            assert Cell(**cell).label
        about = {"variant": measurement.variant, "altered": list(measurement.altered)}
        steps = {name: part for name, part in measurement.steps.items() if part != default[name]}
        found.append(about | steps)
    return [{name: fact for name, fact in facts.items() if fact} for facts in found]


def _cells(measure: list[dict[str, Any]]) -> Iterator[dict[str, Any]]:
    """Yield the cells that are complete: at a point, threads and queue depth are open."""
    for step in measure:
        for fields in step.values():
            for cell in [*fields.get("cells", []), *([fields["cell"]] if "cell" in fields else [])]:
                if {"threads", "queue_depth"} <= cell.keys():
                    yield cell


def _line(given: list[Any], _: Path) -> None:
    """A protocol of this folder with another line, at full length and every scale, or at a scale with settings."""
    path, old, new, *of_study = given
    with _changed(Path(path), _swapped(Path(path), old, new)):
        protocol = load(Path(path))
        for scale in of_study[:1] or (None, *protocol.body.get("scale", {})):
            resolve(protocol, "client", scale, of_study[1] if of_study else {}, "test")


def _line_of_study(given: list[str], folder: Path) -> None:
    """The study of this folder with another line, which changes the protocol `lines`, at a scale."""
    study = folder / "study.yaml"
    study.write_text(_swapped(FOLDER / "study.yaml", *given[1:]))
    settings = yaml.safe_load(study.read_text())["measurements"][1]["set"]
    resolve(load(Path("lines.yaml")), "client", given[0] or None, settings, f"{study}: key 'measurements[1]'")


def _sheet(given: str, folder: Path) -> None:
    path = folder / "drives.tsv"
    path.write_text(given)
    load_sheet(path)


def _row(given: dict[str, str], folder: Path) -> None:
    """A drive sheet of one row, by column."""
    _sheet("\t".join(given) + "\n" + "\t".join(given.values()) + "\n", folder)


def _fit(given: dict[str, Any], _: Path) -> str:
    """A plan that fits a drive of 4 GiB with blocks of 512 B, for one of 1 GiB with blocks of 4 KiB."""
    fields = {"pattern": "random", "read_share": 0, "block_size_bytes": 8192, "threads": 1, "queue_depth": 1}
    cell = Cell(**{**fields, **given.get("cell", {})}).to_mapping()
    condition = {"purge": "none", **({"fill": given["fill"]} if "fill" in given else {})}
    measure = [{"idle": {"time_s": 1.0}}, {"soak": {"cell": cell}}, {"loop": {"cells": [cell]}}]
    subject = {"clock": given.get("clock", "wall"), "condition": condition, "measure": measure}
    plan = Plan(subject, {"drive": "fast", "measurement": "m"})
    refuse_unfit(plan, 4 << 30, 512)
    refuse_unfit(plan, 1 << 30, 4096, trims=given.get("trims", True))
    return "fits"


def _cell(given: dict[str, Any], _: Path) -> str:
    cell = replace(Cell("random", 0, 4096, threads=1, queue_depth=1, runtime_s=1.0), **given)
    refuse_inexpressible(cell)
    return cell.label


def _range(given: dict[str, Any], _: Path) -> None:
    """A cell on a drive of 4 MiB with blocks of 512 B."""
    parts_of(replace(Cell("random", 0, 4096, threads=1, queue_depth=1, runtime_s=1.0), **given), 4 * MIB, 512)


def _replay(given: dict[str, Any], _: Path) -> list[Any]:
    choice = ReplayChoice.from_mapping(given)
    assert ReplayChoice.from_mapping(choice.to_mapping()) == choice
    return [choice.to_mapping(), choice.words()]


def _yaml(given: str, folder: Path) -> None:
    (folder / "a.yaml").write_text(given)
    load_yaml(folder / "a.yaml")


SETTING = {"name": "A", "effect": "e", "how": "h", "read": {"files": ["a"]}, "both": {"set": "1"}}


def _setting(given: dict[str, Any], folder: Path) -> None:
    """A host setting with these keys changed."""
    (folder / "a.yaml").write_text(yaml.safe_dump({"settings": [{**SETTING, **given}]}))
    catalogue(folder)


def _wish(given: list[Any], folder: Path) -> list[Any]:
    """A wish in words, whether it accepts a value, and what it sets instead; the file `other` has 9."""
    wish, value = given
    (folder / "a.yaml").write_text(yaml.safe_dump({"settings": [{**SETTING, "both": wish}]}))
    (folder / "other").write_text("9\n")
    (setting,) = catalogue(folder)
    part = Part("a", value, folder / "a")
    return [setting.synthetic.words, setting.synthetic.accepts(part), setting.synthetic.target(part)]


def _model(given: dict[str, Any], _: Path) -> None:
    """A virtual drive with these keys changed, or without those that are null."""
    good = {"serial": "S1", "capacity": "64MiB", "over_provisioning": "7%"}
    DriveModel.from_mapping("mine", {key: value for key, value in {**good, **given}.items() if value is not None})


def _application(given: dict[str, Any], _: Path) -> None:
    """An application with these keys changed, or without those that are null."""
    good = {"title": "t", "file_system": "ext4", "size": "56MiB", "command": ["true"]}
    body = {key: value for key, value in {**good, **given}.items() if value is not None}
    applications.from_mapping(body.pop("name", "x"), body, "f.yaml")


def _device(given: dict[str, Any], folder: Path) -> list[str]:
    """Class and words of a device by its name, its bus and files of its folder in /sys."""
    place, name = Place(folder), given["name"]
    _ = place.disk(name, given["bus"], **given.get("files", {})) if "bus" in given else place.virtual(name)
    found = device_class.device_class(name, place.host)
    return [found, device_class.words(name, found, place.host)]


def _stack(given: dict[str, Any], folder: Path) -> list[Any]:
    """The layers below a path and their class, on a host that is `made` by methods of `Place` and two more steps."""
    place = Place(folder)
    for step, *arguments in given["made"]:
        named = arguments.pop() if arguments and isinstance(arguments[-1], dict) else {}
        if step == "SATA":
            place.disk(arguments[0], AHCI.replace("ata1", f"ata{ord(arguments[0][-1])}"), queue__rotational="0",
                       device__vendor="ATA", device__model=f"disk {arguments[0]}")  # fmt: skip
        elif step == "folder":
            (place.sys / arguments[0]).mkdir(parents=True)
        else:
            getattr(place, step)(*(tuple(each) if isinstance(each, list) else each for each in arguments), **named)
    found = stack.layers(Path(given.get("at", "/data")), place.host)
    assert stack.disks(found) == tuple(layer.name for layer in found if layer.kind == "disk")
    shown = [[layer.kind, layer.name, layer.words, *layer.cautions] for layer in found]
    return [*shown, stack.class_of(found, place.host)]


def _mount(given: list[str], _: Path) -> list[str]:
    """The cautions of a file system with these options."""
    mount = Mount("1", "0", "0:1", "/", given[0], "x", tuple(given[1].split(",")))
    return list(describe(mount, "/no-such-folder", "", Host(Path("/none"), Path("/none")))[1])


def _plan(given: dict[str, Any]) -> Plan:
    """Return a plan with these parts and otherwise only defaults."""
    subject = {"drive": {"serial": "S1", "over_provisioning": 0.25}, "class": {"active_range": 1.0}, "clock": "wall",
               "condition": {"purge": "none"}, "measure": [], **given}  # fmt: skip
    return Plan(subject, {"drive": "a", "measurement": "m", "run": 1})


def _commands(given: dict[str, Any], _: Path) -> list[list[str]]:
    """What `drivelab plan --commands` lists for a plan."""
    return [list(entry) for entry in fio_commands(_plan(given), "/dev/x", 64 * MIB, 4096)]


def _job(given: dict[str, Any], _: Path) -> list[str]:
    """The lines of fio's job for a cell on a drive of 64 MiB, by an engine and on CPUs."""
    parts = dict(given)
    engine, cpus = parts.pop("engine", "psync"), tuple(parts.pop("cpus", ()))
    cell = replace(Cell("random", 0, 4096, threads=1, queue_depth=1), **parts)
    more = {"cpus": cpus} if cpus else {}
    return [cell.label, *job_text(cell, "/dev/x", engine, 64 * MIB, 512, 7, **more).splitlines()]


def _mkfs(given: list[Any], _: Path) -> list[str]:
    """The arguments that make a file system, with those of a study."""
    kind, *words = given
    return file_system_device.arguments(FileSystem(kind, tuple(words)))


def _estimate(given: dict[str, Any], _: Path) -> dict[str, float]:
    """A plan of two traces at 100 MiB/s, or up to `fastest_mib_s`, on a drive of 64 MiB."""
    parts = dict(given)
    capacity_bytes, fastest_mib_s = parts.pop("capacity_bytes", 64 * MIB), parts.pop("fastest_mib_s", None)
    traces = (Trace(10.0, 5 * MIB, 8 * MIB), Trace(20.0, 3 * MIB, 2 * MIB))
    return asdict(estimate(_plan(parts), capacity_bytes, 100.0, traces, fastest_mib_s))


def _host(given: dict[str, Any], folder: Path) -> dict[str, list[Any]]:
    """A made-up host, in which files are changed or (null) lack: state, wish, deviation, and whether it can be set."""
    files = {**getattr(made_up_hosts, given["host"]), **given.get("files", {})}
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("PATH", f"{made_up_hosts.programs(folder)}:{os.environ['PATH']}")
        made_up_hosts.lay_out(folder, {name: text for name, text in files.items() if text is not None})
        (folder / "timers").write_text("".join(f"{unit}\n" for unit in sorted(given.get("timers", []))))
        rows = snapshot(given.get("drives", []), given["scenario"], made_up_hosts.machine_of(folder))
    return {row["name"]: [row[key] for key in ("state", "wanted", "deviation", "settable")] for row in rows}


def _outlook(given: dict[str, Any], _: Path) -> list[str]:
    """What `drivelab plan` says of a drive with these facts."""
    facts: dict[str, Any] = {
        "drive": "a", "device": "/dev/nvme0n1", "serial": "S1", "virtual": False, "model": "Maker 1",
        "capacity_bytes": 2 * 10**12, "holds": ["gpt on nvme0n1", "ext4 'data' on nvme0n1p1"], "to_do": 3,
        "estimate": [3600, 7200, 4e12, 8e12], "bandwidth_mib_s": 2000.0, "ceiling_mib_s": None,
        "endurance_bytes": 600e12, **given,
    }  # fmt: skip
    outlook = Outlook(**{**facts, "estimate": Estimate(*facts["estimate"])})
    return outlook.lines()


KINDS: dict[str, Callable[[Any, Path], Any]] = {
    "edit of the demo": _edit, "demo": _demo, "study": _study, "study in real time": _in_real_time,
    "study on host-a": _on_host_a, "design": _design, "protocol": _protocol, "line": _line,
    "line of a study": _line_of_study, "sheet": _sheet, "row of a sheet": _row, "plan for a drive": _fit, "cell": _cell,
    "cell on a drive": _range, "replay": _replay, "YAML": _yaml, "host setting": _setting, "wish": _wish,
    "virtual drive": _model, "application": _application, "device": _device, "stack": _stack, "mount": _mount,
    "host": _host, "commands": _commands, "job": _job, "file system": _mkfs, "estimate": _estimate, "outlook": _outlook,
    **OF_RUNS,
}  # fmt: skip
