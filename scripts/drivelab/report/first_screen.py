"""The first screen of the report: one sentence, one chart of absolute values, a table of three lines."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from functools import partial

import pandas as pd

from drivelab.analysis.deltas.inference import TWINS
from drivelab.analysis.verdict import DECIDED, IN_RECORDINGS, NOT_COMPARED
from drivelab.criteria.taint import is_busy
from drivelab.figures.base.overlay import among
from drivelab.figures.base.style import note, svg
from drivelab.figures.kinds.drives import best_first, side_by_side
from drivelab.report.delta import TONES, comparable, confidence, delta_words, in_few_recordings, interval, outcome
from drivelab.report.document import Cell, Figure, Table
from drivelab.report.headline import headline_tests, lead_of, subject_of
from drivelab.report.html import picture
from drivelab.report.inputs import Inputs, Row, question_of
from drivelab.report.marks import BUSY, host_mark
from drivelab.report.numbers import brief_words, capital, is_missing, metric_name, names, quantities, rounded, unit_of
from drivelab.report.sections.proof import value_proof
from drivelab.report.table import Field, table, words
from drivelab.tables.labels import KINDS

Subject = tuple[str, str, str]
"""Measurement, cell label and metric."""
LIMITED = "limited by the host"
_LINES = 3
_MOST_GROUPS, _MOST_BARS, _MOST_PANELS = 4, 16, 3
_MOST_COLUMNS = 4
"""With more drives than this, the table shows the best one and the basis."""


class FirstScreen:
    """The headline tests of a study, the best telling ones first."""

    def __init__(self, inputs: Inputs) -> None:
        self.inputs = inputs
        self._values: dict[Subject, dict[str, Row]] = {}
        for row in headline_tests(inputs, "summary"):
            leading = inputs.leading(row["measurement"], row["cell_label"])
            if leading and row["metric"] in TWINS:
                row = inputs.summary_of(row["drive"], row["measurement"], row["cell_label"], leading) or row
            if not is_missing(row["value"]):
                self._values.setdefault(subject_of(row), {})[row["drive"]] = row
        self._deltas = {
            (subject_of(row), row["comparison"]): row
            for row in inputs.tables["deltas"]
            if subject_of(row) in self._values
        }
        subjects = list(self._values)
        first_of_each = {question_of(inputs, subject[0], subject[2]): subject for subject in reversed(subjects)}
        self.subjects = sorted(subjects, key=lambda subject: subject not in first_of_each.values())
        """One of each question first, then the others, each in the order of the study."""

    def sentence(self) -> str:
        """Return who is faster, at what, by how much and how sure that is, in one sentence.

        Another sentence says what would give a verdict, if there is none. Without values it is empty.
        """
        if not self.subjects:
            return ""
        subject = next(iter(self._values))  # the first of the study, by which the protocol finds steady state
        values = self._values[subject]
        compared = {drive: delta for (of, drive), delta in self._deltas.items() if of == subject}
        at = f"at {self.words(subject)}"
        if not compared:
            return self._of_one(subject, at)
        best = best_first(self._frame([subject]))[0]
        delta = compared.get(best) or max(compared.values(), key=lambda row: row["delta_pct"] or 0.0)
        of_drive = [row for row in headline_tests(self.inputs, "deltas") if row["comparison"] == delta["comparison"]]
        verdict, pair = lead_of(self.inputs, of_drive), (delta["comparison"], delta["basis"])
        if not set(pair) <= values.keys():
            return verdict
        numbers = self._quantity(subject, [values[name] for name in pair])
        if len(compared) > 1:
            return self._best_of_many(subject, best, delta, numbers, at)
        if outcome(delta) == NOT_COMPARED or not comparable(delta):
            return verdict
        if outcome(delta) in DECIDED or in_few_recordings(delta):
            first, _, rest = verdict.partition(". ")
            number, _, unit = numbers[0].partition("\u00a0")
            versus = f"{number if numbers[1].endswith(unit) else numbers[0]} vs {numbers[1]}"
            sure = f" ({self._how_sure(delta)})" if interval(delta) else ""
            return f"{first.removesuffix('.')}; {at}, {versus}{sure}.{f' {rest}' if rest else ''}"
        limited = comma(self._limited(subject, delta))
        return (
            f"{pair[0]} reaches {numbers[0]} and {pair[1]} {numbers[1]} {at} (Δ\u00a0{delta_words(delta)}){limited}. "
            f"{verdict}"
        )

    def _of_one(self, subject: Subject, at: str) -> str:
        """Return the value of the only drive, with its interval."""
        drive, row = next(iter(self._values[subject].items()))
        only = f"{drive} reaches {self._quantity(subject, [row])[0]} {at}"
        if not is_missing(row.get("interval_low")) and not is_missing(row.get("interval_high")):
            ends = [{**row, "value": row[f"interval_{end}"]} for end in ("low", "high")]
            low, high = self._quantity(subject, ends)
            number, _, _ = low.partition("\u00a0")
            only += f" (95\u00a0% interval: {number} to {high})"
        return f"{only}{comma(limited_words([row]))}."

    def _best_of_many(self, subject: Subject, best: str, delta: Row, numbers: list[str], at: str) -> str:
        values, basis = self._values[subject], delta["basis"]
        few = "In these recordings, " if in_few_recordings(delta) else ""
        texts = dict(zip(values, self._quantity(subject, list(values.values())), strict=True))
        if len(equal := [drive for drive in values if texts[drive] == texts[best]]) > 1:
            against = "" if basis in equal else f", against {texts[basis]} of {basis}, the basis"
            named = names([f"{drive} (the basis)" if drive == basis else drive for drive in equal])
            return f"{few}{named} share the best value of {len(values)} drives {at}: {texts[best]}{against}."
        if best == basis:
            value = self._quantity(subject, [values[basis]])[0]
            return f"{few}{basis}, the basis, has the best value of {len(values)} drives {at}: {value}."
        sure = f", {self._how_sure(delta)}" if interval(delta) else ""
        is_sure = few or outcome(delta) in DECIDED
        unsure = "" if is_sure else comma(self._limited(subject, delta) or "no verdict")
        return (
            f"{few}{best} has the best value of {len(values)} drives {at}: {numbers[0]}, against {numbers[1]} of "
            f"{basis}, the basis (Δ\u00a0{delta_words(delta)}{sure}{unsure})."
        )

    def _how_sure(self, delta: Row) -> str:
        return ", ".join(filter(None, (f"Δ\u00a0{interval(delta)}", confidence(self.inputs))))

    def _limited(self, subject: Subject, delta: Row) -> str:
        return limited_words(self._values[subject].get(delta[side], {}) for side in ("comparison", "basis"))

    def words(self, subject: Subject) -> str:
        """Return a workload in words; if several measurements have it, what tells them apart follows."""
        measurement, label, metric = subject
        words = brief_words(label, self.inputs.loads.get((measurement, label)))
        first = next(other for other in self._values if other[1:] == (label, metric))
        if subject == first:
            return words
        saturates = self.inputs.where("saturation", measurement=measurement)
        return f"{words}, saturated" if saturates else f"{words} ({measurement})"

    def chart(self) -> Figure | None:
        """Return the bars of the headline tests, side by side; None without values."""
        chosen = self._chosen()
        if not chosen:
            return None
        values = self._frame(chosen)
        drives = best_first(values)
        if len(drives) > _MOST_BARS:
            shown = {*drives[: _MOST_BARS - 1], self.inputs.study.get("basis")}
            values = values[values["drive"].isin(shown)]
        with among(self.inputs.drives):
            drawing = side_by_side(values)
        rows = [row for subject in chosen for row in self._values[subject].values()]
        if limited := limited_words(rows):
            note(drawing, limited)
        left_out = len(drives) - values["drive"].nunique()
        if left_out:
            note(drawing, f"the best of {len(drives)} drives, and the basis")
        caption = (
            "Headline tests; whiskers are 95 % confidence intervals over recordings, from three recordings on. "
            f"{'The best drive on average is on top. ' if len(drives) > 1 else ''}The comparison has all tests."
        )
        return picture({"name": "side_by_side", "title": "Measured values", "caption": caption, "svg": svg(drawing)})

    def _chosen(self) -> list[Subject]:
        """Return the subjects of the chart: as many as fit, at most three metrics, in the order of the study."""
        chosen: list[Subject] = []
        for subject in self.subjects:
            metrics = {metric for *_, metric in [*chosen, subject]}
            bars = sum(len(self._values[each]) for each in [*chosen, subject])
            if chosen and (len(chosen) == _MOST_GROUPS or bars > _MOST_BARS or len(metrics) > _MOST_PANELS):
                continue
            chosen.append(subject)
        return [subject for subject in self._values if subject in chosen]

    def _frame(self, subjects: Sequence[Subject]) -> pd.DataFrame:
        return pd.DataFrame(
            [
                {"workload": self.words(subject), "metric": subject[2], "unit": unit_of(subject[2], row["unit"]),
                 "lower_is_better": KINDS.get(subject[2]) == "time",
                 **{name: row.get(name) for name in ("drive", "value", "interval_low", "interval_high",
                                                     "reduced", "virtual", "clock")}}
                for subject in subjects for row in self._values[subject].values()
            ]
        ).astype({"value": float, "interval_low": float, "interval_high": float})  # fmt: skip

    def glance(self) -> Table | None:
        """Return the values of at most three headline tests, one of each question first; None without values."""
        subjects = [subject for subject in self._values if subject in self.subjects[:_LINES]]
        if not subjects:
            return None
        drives = best_first(self._frame(list(self._values)))
        basis = self.inputs.study.get("basis")
        if len(drives) > _MOST_COLUMNS:
            drives = list(dict.fromkeys((drives[0], *(name for name in drives if name == basis), drives[-1])))
        several = len(drives) > 1
        return table(
            "at-a-glance",
            "Headline tests at a glance",
            (
                words("", self._workload),
                *(Field(f"{drive} (basis)" if drive == basis and several else drive, partial(self._cell, drive, drives))
                  for drive in drives),
            ),
            subjects,
        )  # fmt: skip

    def _workload(self, subject: Subject) -> Cell:
        kind = KINDS.get(subject[2])
        name = "" if kind == "speed" else metric_name(subject[2]) + "; lower is better" * (kind == "time")
        return Cell(capital(self.words(subject)), name)

    def _cell(self, drive: str, drives: Sequence[str], subject: Subject) -> Cell:
        values = self._values[subject]
        if drive not in values:
            return Cell("not measured", tone="missing")
        row, delta = values[drive], self._deltas.get((subject, drive))
        present = [name for name in drives if name in values]
        text = self._quantity(subject, [values[name] for name in present])[present.index(drive)]
        verdict = "" if delta is None else IN_RECORDINGS if in_few_recordings(delta) else outcome(delta)
        change = f"Δ\u00a0{delta_words(delta)}, {verdict}" if delta is not None else ""
        small = "; ".join(filter(None, (change, limited_words([row]))))
        return Cell(text, small, TONES.get(verdict, ""), value=float(row["value"]), proof=value_proof(row))

    def _quantity(self, subject: Subject, rows: Sequence[Row]) -> list[str]:
        return quantities([row["value"] for row in rows], unit_of(subject[2], rows[0]["unit"]), rounded)


def limited_words(values: Iterable[Row]) -> str:
    """Return what limits these summary values: a busy machine, the host's speed; empty for none."""
    rows = list(values)
    busy = any(is_busy(row.get("taint_reason")) for row in rows)
    host = any(map(host_mark, rows))
    return ", ".join([BUSY] * busy + [LIMITED] * host)


def comma(words: str) -> str:
    """Return words with a comma before them; nothing for none."""
    return f", {words}" if words else ""
