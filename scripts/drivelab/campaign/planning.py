"""Resolve a study into plans: one for each drive, measurement, variant and run."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from functools import cached_property
from itertools import compress, pairwise
from operator import not_
from pathlib import Path
from typing import Any

from drivelab.campaign.subjects import approve, drive_subject, refuse_kept, refuse_nested, simultaneous
from drivelab.campaign.traces import (
    TRACES,
    StudyTraces,
    add_application,
    check_application,
    check_traces,
    refuse_small_set,
)
from drivelab.core.errors import UserError
from drivelab.core.grouping import grouped
from drivelab.drives import sysfs
from drivelab.drives.approved import ApprovedDevice
from drivelab.drives.composition import settings_of
from drivelab.plan.design import NO_PLATFORM, Growth
from drivelab.plan.drive_sheet import SheetRow, load_sheet
from drivelab.plan.fitting import refuse_clock, refuse_kind, refuse_unfit
from drivelab.plan.grammar import Protocol, Resolved, load, protocol_path, resolve
from drivelab.plan.hosts import is_here, positions, scenarios, still_elsewhere, this_host
from drivelab.plan.places import restored_folder
from drivelab.plan.plan import Plan
from drivelab.plan.study import BY_PROTOCOL, MeasurementChoice, Platform, Study, load_study
from drivelab.plan.yaml_file import load_yaml
from drivelab.recording.folders import is_recorded
from drivelab.virtual import manage
from drivelab.virtual.model import VIRTUAL_DRIVES, DriveModel, model_among

STAGES = ("purge", "precondition", "measure")
"""In the order of a chain; later stages have a higher priority."""


@dataclass(frozen=True)
class Planned:
    """A plan with the protocol that it was made from."""

    plan: Plan
    protocol: Protocol
    altered: tuple[str, ...]
    """How the protocol was shortened or changed; empty for the full-length protocol. These texts are not part of the
    plan: they change with the full-length protocol, while the measurement does not."""


class Campaign:
    """A study with everything that it refers to. The constructor checks all of it and raises UserError for an error."""

    def __init__(self, study: Study, *, everywhere: bool = False) -> None:
        """Load the sheet and make the plans; with `everywhere`, of all hosts, as jobs are sent to them."""
        self.study, self.everywhere = study, everywhere
        self.sheet = load_sheet(study.drives_sheet)
        for drive in study.drives:
            if drive not in self.sheet:
                known = ", ".join(self.sheet) or "none"
                raise UserError(
                    f"{study.path}: key 'drives' names '{drive}', but {study.drives_sheet} has: {known}; add a row"
                )
        refuse_nested(study, self.sheet)
        self.traces = StudyTraces(study, lambda: self.clock, self.model)
        self._protocols: dict[str, Protocol] = {}
        wanted = [planned for choice in study.measurements for planned in self._plans(choice)]
        for name in {member for members in study.scores.values() for member in members} - study.scores.keys():
            self._refuse_without_score(name)
        if restored_folder(study.path) is None:  # a restored study can be looked at before its sheet is changed
            refuse_kept(self.sheet, (planned.plan for planned in wanted))
        self.wanted = tuple(wanted)
        """All plans of the study: `plans` and `elsewhere`."""
        at_hand = [self.is_here(planned.plan) or is_recorded(planned.plan) for planned in wanted]
        self.plans = tuple(compress(wanted, at_hand))
        """Plans to measure on this host, and plans of other hosts whose recordings are here."""
        self.elsewhere = tuple(compress(wanted, map(not_, at_hand)))
        """Plans that other hosts still have to measure; they are left out until then."""
        if not self.plans:
            raise UserError(
                f"{study.path}: has no measurement for this host, '{this_host()}', and no recording of another host. "
                f"{still_elsewhere((planned.plan for planned in wanted), study.path)}"
            )
        self.scenarios = scenarios(study, (planned.plan for planned in self.plans))

    @classmethod
    def load(cls, path: str | Path, *, everywhere: bool = False, growth: Growth | None = None) -> Campaign:
        """Load a study; `everywhere` is as in the constructor, `growth` as in `load_study`."""
        return cls(load_study(Path(path), growth), everywhere=everywhere)

    def _refuse_without_score(self, name: str) -> None:
        """Raise UserError for a measurement without a single value, as a member of a score."""
        protocol = next(self._protocols[choice.protocol] for choice in self.study.measurements if choice.name == name)
        if "figure_of_merit" not in protocol.analysis and not (protocol.replays or protocol.applications):
            raise UserError(
                f"{self.study.path}: key 'analysis.scores' names '{name}', whose protocol has no single "
                "result; choose a replay, an application, or a protocol with a figure of merit"
            )

    def is_here(self, plan: Plan) -> bool:
        """Return whether this process runs a plan, or sends it to its host."""
        return self.everywhere or is_here(plan)

    def order(self, plan: Plan) -> int:
        """Return the position of a plan's chain on its host, from 0."""
        return self._positions[plan.recording]

    @cached_property
    def _positions(self) -> dict[str, int]:
        return positions((planned.plan for planned in self.wanted), self.study.order)

    @cached_property
    def by_recording(self) -> dict[str, Planned]:
        return {planned.plan.recording: planned for planned in self.plans}

    @cached_property
    def clock(self) -> tuple[str, str | None]:
        """Clock of the virtual drives, `wall` or `virtual`, and the reason for the virtual clock."""
        if self.study.clock == "virtual":
            return "virtual", f"{self.study.path} sets it"
        reason = manage.possible()
        if reason is None:
            return "wall", None
        if self.study.clock == "wall":
            raise UserError(f"{self.study.path}: key 'clock' is wall, but {reason}; fix that or use 'auto'")
        return "virtual", reason

    @cached_property
    def models(self) -> Mapping[str, Any]:
        return load_yaml(VIRTUAL_DRIVES)

    @cached_property
    def here(self) -> list[Plan]:
        """Plans that this host runs, or sends to other hosts."""
        return [planned.plan for planned in self.plans if self.is_here(planned.plan)]

    @cached_property
    def together(self) -> dict[str, list[Plan]]:
        """Plans of `here` of all drives that are measured at the same time, by the recording of each of them.

        Drives are measured at the same time in one run on one platform. Drives measured alone are left out.
        """
        groups = grouped(
            (plan for plan in self.here if "simultaneous" in plan.subject),
            lambda plan: (plan.measurement, plan.run, *plan.subject["simultaneous"], plan.drive.partition("@")[2]),
        )
        return {plan.recording: group for group in groups.values() for plan in group}

    @cached_property
    def to_do(self) -> list[Plan]:
        """Plans of `here` without a recording; only their drives are checked."""
        return [plan for plan in self.here if not is_recorded(plan)]

    @property
    def basis_is_there(self) -> bool:
        """Whether the basis for comparisons is available; another host may still have to measure it."""
        return any(planned.plan.drive == self.study.basis for planned in self.plans)

    @property
    def needs_fio(self) -> bool:
        """Whether any measurement runs in real time."""
        return any(plan.clock == "wall" for plan in self.to_do)

    def approve_drives(self, *, attached_only: bool = False) -> dict[str, ApprovedDevice]:
        """Run `drivelab.campaign.subjects.approve`."""
        return approve(self, attached_only=attached_only)

    def real_drives(self) -> list[str]:
        """Return the kernel names of the attached real drives to measure, and of the disks below other subjects."""
        devices = {self.sheet[plan.sheet_drive].device for plan in self.to_do if plan.destroys}
        return sorted({name for device in devices for name in settings_of(sysfs.kernel_name(device))})

    @property
    def virtual_drives(self) -> list[str]:
        """Names of the virtual drives that the study runs in real time."""
        wall = {plan.sheet_drive for plan in self.here if plan.clock == "wall"}
        return sorted(name for drive in wall if (name := self.sheet[drive].virtual))

    def model(self, name: str, source: str) -> DriveModel:
        """Return the model of a virtual drive from config/virtual_drives.yaml."""
        return model_among(self.models, name, source)

    def _protocol(self, name: str, source: str) -> Protocol:
        """Return a protocol, checked at full length even if the study shortens it."""
        path = protocol_path(name, f"{source}: ")
        if name not in self._protocols:
            self._protocols[name] = load(path)
            resolve(self._protocols[name], self._protocols[name].usual_class, None, {}, str(path))
        return self._protocols[name]

    def _plans(self, choice: MeasurementChoice) -> list[Planned]:
        protocol = self._protocol(choice.protocol, choice.source)
        check_application(choice, runs_one=protocol.applications)
        drive_class = choice.drive_class or self.study.drive_class or protocol.usual_class
        variants = resolve(protocol, drive_class, choice.scale, choice.settings, choice.source)
        check_traces(choice, protocol, variants)
        plans = [
            self._planned(choice, self.sheet[drive], platform, variant, run)
            for drive in choice.drives
            if drive in self.study.drives
            for platform in self.study.platforms or (None,)
            for variant in variants
            for run in range(1, choice.runs.get((drive, _name(platform)), 0) + 1)
        ]
        for first, following in pairwise(plans):  # runs share a digest; digests dominate the time of a large study
            if following.plan.subject == first.plan.subject:
                following.plan.__dict__["digest"] = first.plan.digest
        return plans

    def _planned(
        self, choice: MeasurementChoice, row: SheetRow, platform: Platform | None, resolved: Resolved, run: int
    ) -> Planned:
        protocol, at = self._protocols[choice.protocol], self.study if platform is None else platform
        resolved = self._with_purge(resolved)
        asked = protocol.write_cache(resolved.steps["class"]["name"])
        cache = asked if at.write_cache == BY_PROTOCOL else at.write_cache
        model = None if row.virtual is None else self.model(row.virtual, row.source)
        subject: dict[str, Any] = {
            "drive": drive_subject(row, model, resolved.steps), "clock": "wall" if model is None else self.clock[0],
            "scenario": at.scenario, "protocol": choice.protocol,
            "write_cache": None if cache == "unchanged" else cache, **resolved.steps,
        }  # fmt: skip
        if choice.array_state != "clean":
            subject["array_state"] = choice.array_state
        if platform is not None:
            subject["platform"] = {"name": platform.name, "host": platform.host}
            if platform.file_system is not None:
                subject["file_system"] = platform.file_system.to_mapping()
        if protocol.simultaneous:
            together = choice.drives_in(_name(platform), run)
            subject |= simultaneous(together, self.sheet, choice, self.clock)
        if self.study.taint.get("remeasure"):
            subject["taint"] = dict(self.study.taint)
        context: dict[str, Any] = {
            "drive": row.drive if platform is None else platform.of(row.drive), "device": row.device,
            "drives_sheet": str(self.study.drives_sheet),
            "measurement": choice.name if resolved.variant is None else f"{choice.name}.{resolved.variant}", "run": run,
            "results": str(self.study.results), "taint": dict(self.study.taint), "meter": dict(self.study.meter),
        }  # fmt: skip
        if row.host is not None:
            context["host"] = row.host
        note = self.study.host_note if platform is None else platform.note or self.study.host_note
        if note is not None:
            context["host_note"] = note
        if choice.traces:
            subject["traces"] = [self.traces.entry(name) for name in choice.traces]
            context["trace_paths"] = [str(self.traces.path(name)) for name in choice.traces]
            refuse_small_set(choice, subject["measure"], self.traces.extent)
        plan = Plan(subject, context)
        if choice.application is not None:
            plan = add_application(plan, choice.application, choice.source, TRACES)
        refuse_kind(plan)
        if model is not None:
            refuse_clock(plan, self.clock[1], self.study.path)
            refuse_unfit(plan, model.capacity_bytes, model.logical_block_bytes)
        other = () if cache == asked else (f"write cache: {cache} instead of {asked}",)
        return Planned(plan, protocol, (*resolved.altered, *other))

    def _with_purge(self, resolved: Resolved) -> Resolved:
        """Return the steps with the study's purge method, if the protocol has a purge; label one that is left out."""
        condition, method = resolved.steps["condition"], self.study.purge
        if condition["purge"] == "none":
            return resolved
        if method != "none":
            return replace(resolved, steps={**resolved.steps, "condition": {**condition, "purge": method}})
        kept = {key: value for key, value in condition.items() if key != "settle_s"}
        return replace(
            resolved,
            steps={**resolved.steps, "condition": {**kept, "purge": "none", "not_purged": True}},
            altered=(*resolved.altered, "not purged: the protocol requires a purge, the study sets purge: none"),
        )


def _name(platform: Platform | None) -> str:
    return NO_PLATFORM if platform is None else platform.name
