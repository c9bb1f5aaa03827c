from __future__ import annotations

import math
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from rows import table
from scipy import stats

from drivelab.analysis.deltas.deltas import deltas_table
from drivelab.analysis.deltas.inference import adjusted, one_of_each
from drivelab.analysis.verdict import BETTER, CANNOT_TELL, FASTER, FASTER_BEYOND, SAME, SLOWER_BEYOND, WORSE
from drivelab.tables import io


def row(drive: str, value: float, **changed: Any) -> dict[str, Any]:
    samples = changed.pop("samples", [0.999 * value, value, 1.001 * value])
    return {
        "drive": drive, "measurement": "pts-iops", "protocol": "pts-iops", "cell_label": "RND 4KiB 0/100",
        "metric": "iops", "kind": "speed", "unit": "IOPS", "value": value, "n": 3, "samples": samples,
        "scope": "recordings", "spread_low": min(samples), "spread_high": max(samples),
        "statistic": "window average", "verdict": "steady", "clock": "wall", **changed,
    }  # fmt: skip


def compare(*rows: dict[str, Any], basis: str = "a", **settings: Any) -> list[dict[str, Any]]:
    result: list[dict[str, Any]] = deltas_table(table("summary", list(rows)), basis, **settings).to_dict("records")
    return result


@pytest.mark.parametrize("values", [(0, 1), (1, 0), (-1, 1), (float("nan"), 1), (1, float("inf"))])
def test_no_delta_without_positive_numbers(values: tuple[float, float]) -> None:
    with pytest.raises(ValueError, match="must be positive"):
        compare(row("a", values[0]), row("b", values[1]))


def test_an_unknown_kind_of_metric_is_refused() -> None:
    with pytest.raises(KeyError, match="speeed"):
        compare(row("a", 1.0, kind="speeed"), row("b", 1.0, kind="speeed"))


def test_a_difference_beyond_scatter_and_margin_is_faster_or_slower(tmp_path: Path) -> None:
    better, worse = compare(row("a", 100.0), row("b", 120.0), row("c", 80.0))
    assert (better["basis"], better["comparison"], better["delta_pct"]) == ("a", "b", pytest.approx(20))
    assert (better["verdict"], worse["verdict"]) == (FASTER_BEYOND, SLOWER_BEYOND)
    assert better["interval_low_pct"] < 20 < better["interval_high_pct"]
    assert list(better["doubts"]) == []
    io.write(pd.DataFrame([better, worse]), tmp_path / "d", "deltas")


def test_less_time_is_better() -> None:
    (result,) = compare(row("a", 100.0, kind="time"), row("b", 80.0, kind="time"))
    assert (result["delta_pct"], result["verdict"]) == (pytest.approx(25), FASTER_BEYOND)


@pytest.mark.parametrize("other", [101.9, 98.1, 100.0])
def test_a_significant_difference_within_the_margin_is_the_same(other: float) -> None:
    (result,) = compare(row("a", 100.0), row("b", other))
    assert (result["verdict"], list(result["doubts"])) == (SAME, [])
    assert (result["p_value"] < 0.01) == (other != 100)
    (result,) = compare(row("a", 100.0), row("b", other), margin_pct=0.5)
    assert result["verdict"] == {101.9: FASTER_BEYOND, 98.1: SLOWER_BEYOND, 100.0: SAME}[other]


LIMIT = "fio's threads used 97 % of a CPU each, so the drive may be faster"


@pytest.mark.parametrize(("of_a", "of_b", "expected"), [
    ({}, {}, []),
    ({"samples": [70.0, 100.0, 130.0]}, {}, ["the difference is within the scatter of the recordings"]),
    ({"verdict": "not steady"}, {}, ["a: not steady"]),
    *(({}, {"verdict": verdict}, [f"b: {verdict}"])
      for verdict in ("not steady", "tainted", "host-limited", "anything")),
    *(({}, {"verdict": verdict}, []) for verdict in ("too few runs", "repeats do not agree")),  # the scatter has it
    ({}, {"reduced": True}, ["only one of them is reduced"]),
    ({}, {"virtual": True}, ["only one of the drives is virtual"]),
    ({}, {"clock": "virtual"}, ["one ran on the wall clock, one on the virtual clock"]),
    # one recording has one value, however many rounds
    *(({}, {"scope": scope}, ["too few recordings (3 and 1 a side; a verdict needs 3)"])
      for scope in ("rounds", "slices", "runs")),
    ({}, {"samples": [0.0, 200.0, 400.0]}, ["the value of a recording is not a positive number"]),
    ({}, {"verdict": "tainted", "taint_reason": "load: others; steal: 9 %"}, ["b: tainted (load: others, steal: 9 %)"]),
    ({}, {"verdict": "host-limited", "host_limit": LIMIT}, [f"b: host-limited ({LIMIT})"]),
    ({}, {"verdict": "tainted", "taint_reason": "load: others", "host_limit": LIMIT},
     ["b: tainted (load: others)", f"b: host-limited ({LIMIT})"]),
    ({"verdict": "not steady"}, {"verdict": "tainted", "reduced": True},
     ["a: not steady", "b: tainted", "only one of them is reduced"]),
])  # fmt: skip
def test_a_value_in_doubt_cannot_tell(of_a: dict[str, Any], of_b: dict[str, Any], expected: list[str]) -> None:
    (result,) = compare(row("a", 100.0, **of_a), row("b", 120.0 if "samples" in of_a else 200.0, **of_b))
    assert list(result["doubts"]) == expected
    assert result["verdict"] == ("cannot tell" if expected else FASTER_BEYOND)


def test_values_without_scatter_are_compared_exactly() -> None:
    def alike(drive: str, value: float) -> dict[str, Any]:
        return row(drive, value, samples=[value] * 5)

    result = compare(alike("a", 300.12345), alike("b", 300.12345), alike("c", 315.23456), alike("d", 310.01234))
    assert [delta["verdict"] for delta in result] == [SAME, FASTER_BEYOND, SAME]
    assert [delta["p_value"] for delta in result] == [1.0, 0.0, 0.0]
    assert [delta["equivalence_p"] for delta in result] == [0.0, 1.0, 0.0]
    assert [delta["interval_low_pct"] for delta in result] == [delta["delta_pct"] for delta in result]
    slower = compare(*(row(drive, 2.00001, kind="time", samples=[2.00001] * 3) for drive in "ab"))[0]
    for name in ("delta_pct", "interval_low_pct", "interval_high_pct"):
        assert math.copysign(1, slower[name]) == 1, "no negative zero"


@pytest.mark.parametrize(("whole", "verdict"), [(11.0, FASTER), (1100.0, FASTER_BEYOND)])
def test_equal_printed_values_are_known_to_their_last_digit(whole: float, verdict: str) -> None:
    of_b = whole * 12 / 11
    (result,) = compare(row("a", whole, samples=[whole] * 9), row("b", of_b, samples=[of_b] * 9))
    assert (result["verdict"], result["interval_low_pct"] < 5) == (verdict, verdict == FASTER)


def test_a_difference_that_may_lie_within_the_margin_has_an_unsure_size() -> None:
    (result,) = compare(row("a", 100.0), row("b", 105.2, samples=[104.2, 105.2, 106.2]))
    assert (result["verdict"], list(result["doubts"])) == (FASTER, [])
    assert 0 < result["interval_low_pct"] < 5 < result["interval_high_pct"]


@pytest.mark.parametrize("samples", [[100.0], [99.0, 101.0]])
def test_one_or_two_recordings_cannot_tell(samples: list[float]) -> None:
    (result,) = compare(row("a", 100.0), row("b", 200.0, samples=samples))
    assert (result["verdict"], result["comparison_n"]) == ("cannot tell", len(samples))
    assert list(result["doubts"]) == [f"too few recordings (3 and {len(samples)} a side; a verdict needs 3)"]
    assert result["recordings_needed"] == 3
    assert pd.isna(result["interval_low_pct"])
    assert pd.isna(result["p_value"])
    assert result["delta_pct"] == pytest.approx(100)


@pytest.mark.parametrize(("bins", "verdict"), [(1, CANNOT_TELL), (3, FASTER_BEYOND)])
def test_neighbouring_bins_do_not_make_a_difference(bins: int, verdict: str) -> None:
    """A percentile is the middle of a bin of 1/64: values in neighbouring bins may be equal."""
    tail = {"metric": "p99_latency_us", "kind": "time", "unit": "us", "samples": [200.0] * 3}
    value = 200.0 / (1 + bins / 64)
    (result,) = compare(row("a", 200.0, **tail), row("b", value, **{**tail, "samples": [value] * 3}), margin_pct=1.0)
    assert result["verdict"] == verdict
    least, most = (1 + bins / 64) / (129 / 128) ** 2, (1 + bins / 64) * (129 / 128) ** 2
    assert result["interval_low_pct"] == pytest.approx(100 * (least - 1))
    assert result["interval_high_pct"] == pytest.approx(100 * (most - 1))


def test_a_study_can_forbid_unintended_differences() -> None:
    rows = [row("a", 100.0), row("b", 200.0), row("c", 200.0)]
    of_b = {"measurement": "pts-iops", "basis": "a", "comparison": "b", "facet": "kernel", "kind": "host",
            "basis_value": "6.1", "comparison_value": "6.6", "intended": False}  # fmt: skip
    of_c = {**of_b, "comparison": "c", "facet": "model", "kind": "drive", "intended": True}
    differences = table("differences", [of_b, of_c])
    allowed = compare(*rows, differences=differences)
    assert [delta["verdict"] for delta in allowed] == [FASTER_BEYOND] * 2
    forbidden, allowed_pair = compare(*rows, differences=differences, unintended="forbid")
    assert (forbidden["verdict"], allowed_pair["verdict"]) == ("not compared", FASTER_BEYOND)
    assert list(forbidden["doubts"]) == ["kernel differs: 6.1 and 6.6"]
    assert all(pd.isna(forbidden[name]) for name in ("delta_pct", "interval_low_pct", "p_value", "p_adjusted"))


def test_only_equal_cells_and_metrics_are_compared() -> None:
    rows = [
        row("a", 100.0),
        row("a", 10.0, metric="mean_latency_us", kind="time", unit="us"),
        row("b", 120.0, cell_label="RND 8KiB 0/100"),
        row("b", 8.0, metric="mean_latency_us", kind="time", unit="us"),
        row("c", 50.0),
    ]
    result = compare(*rows)
    assert [(delta["comparison"], delta["metric"], round(delta["delta_pct"], 6)) for delta in result] == [
        ("b", "mean_latency_us", 25.0),
        ("c", "iops", -50.0),
    ]


def test_values_with_different_statistics_have_a_delta_but_no_test() -> None:
    pooled = {"statistic": "window average, at T4Q2, geometric mean of 3 recordings"}
    result = compare(
        row("a", 100.0, **pooled), row("b", 200.0, statistic="median of 3 warm rounds"),
        row("c", 200.0, statistic="window average, at T4Q2, geometric mean of 5 recordings"),
        row("d", 200.0, statistic="window average, at T4Q2", scope="rounds"), row("e", 0.0, statistic="printed value"),
    )  # fmt: skip
    assert [delta["verdict"] for delta in result] == ["cannot tell", FASTER_BEYOND, "cannot tell", "cannot tell"]
    assert [list(delta["doubts"]) for delta in result if delta["comparison"] != "c"] == [
        ["different statistics (a: window average; b: median of 3 warm rounds)"],
        ["too few recordings (3 and 1 a side; a verdict needs 3)"],
        ["different statistics (a: window average; e: printed value)", "a printed value: its scatter is not known"],
    ]
    assert result[0]["delta_pct"] == pytest.approx(100)
    assert all(pd.isna(result[0][name]) for name in ("interval_low_pct", "p_value", "p_adjusted", "recordings_needed"))
    assert pd.isna(result[3]["delta_pct"]), "0 has no relative difference"
    single = {"scope": "rounds"}
    (unlike,) = compare(row("a", 1.0, **single), row("b", 1.5, statistic="average of the whole soak", **single))
    assert list(unlike["doubts"]) == [
        "different statistics (a: window average; b: average of the whole soak)",
        "too few recordings (1 a side; a verdict needs 3)",
    ]
    assert unlike["delta_pct"] == pytest.approx(50)
    assert pd.isna(unlike["recordings_needed"]), "more recordings do not make the statistics equal"
    assert [delta["verdict"] for delta in compare(row("a", 1.0), row("b", 1.0, statistic="other"), row("b", 1.0))] == [
        SAME
    ], "a label may occur twice: the value with the same statistic is compared"


def test_the_basis_must_have_been_measured() -> None:
    with pytest.raises(ValueError, match="no drive 'z'"):
        compare(row("a", 100.0), basis="z")
    assert compare(basis="a") == []


def test_few_equal_values_are_called_different() -> None:
    """Of 2,000 values that differ only by scatter, at most 2 are called different after adjusting."""
    random = np.random.default_rng(5)
    rows = []
    for number in range(2000):
        for drive in "ab":
            samples = list(np.exp(random.normal(5, 0.03, 5)))
            rows.append(row(drive, float(np.mean(samples)), samples=samples, cell_label=str(number)))
    result = deltas_table(table("summary", rows), "a", margin_pct=0.1)
    called = int(result["verdict"].isin([*BETTER, *WORSE]).sum())
    uncorrected = int((result["p_value"] <= 0.05).sum())
    assert called <= 2
    assert 60 <= uncorrected <= 140  # one in twenty, without adjusting
    assert (result["verdict"] == SAME).sum() == 0
    outside = (result["interval_low_pct"] > 0) | (result["interval_high_pct"] < 0)
    assert abs(outside.mean() - 0.05) < 0.02


def test_true_differences_are_found_with_few_false_positives() -> None:
    random = np.random.default_rng(6)
    rows = []
    for number in range(1000):
        factor = 1.5 if number < 300 else 1.0
        for drive, level in (("a", 100.0), ("b", 100.0 * factor)):
            samples = list(level * np.exp(random.normal(0, 0.05, 5)))
            rows.append(row(drive, float(np.mean(samples)), samples=samples, cell_label=str(number)))
    result = deltas_table(table("summary", rows), "a", margin_pct=0.1)
    called = result["verdict"].isin([*BETTER, *WORSE]).to_numpy()
    assert called[:300].mean() > 0.99
    assert called[300:].sum() / called.sum() < 0.07


levels = st.floats(1.0, 1e6)
offsets = st.lists(st.floats(-0.2, 0.2), min_size=3, max_size=7)


@settings(max_examples=30, deadline=None)
@given(levels, levels, offsets, offsets, st.sampled_from(["speed", "time"]))
def test_exchanging_the_drives_reverses_the_verdict(
    a: float, b: float, of_a: list[float], of_b: list[float], kind: str
) -> None:
    rows = [row(drive, level, kind=kind, samples=[level * math.exp(offset) for offset in scatter])
            for drive, level, scatter in (("a", a, of_a), ("b", b, of_b))]  # fmt: skip
    (there,), (back,) = compare(*rows), compare(*rows, basis="b")
    turned = dict(zip([*BETTER, *WORSE], [*WORSE, *BETTER], strict=True))
    assert back["verdict"] == turned.get(there["verdict"], there["verdict"])
    assert back["p_value"] == pytest.approx(there["p_value"], abs=1e-9)
    assert back["equivalence_p"] == pytest.approx(there["equivalence_p"], abs=1e-9)
    low, high = (math.log1p(there[f"interval_{end}_pct"] / 100) for end in ("low", "high"))
    assert math.log1p(back["interval_high_pct"] / 100) == pytest.approx(-low, abs=1e-9)
    assert math.log1p(back["interval_low_pct"] / 100) == pytest.approx(-high, abs=1e-9)


@settings(max_examples=30, deadline=None)
@given(st.lists(st.floats(50.0, 150.0), min_size=3, max_size=8), st.lists(st.floats(50.0, 150.0), min_size=3))
def test_p_value_and_interval_equal_those_of_welch(of_a: list[float], of_b: list[float]) -> None:
    """The reference is scipy's test on logarithms, for geometric means."""
    values = [float(stats.gmean(samples)) for samples in (of_a, of_b)]
    (result,) = compare(row("a", values[0], samples=of_a), row("b", values[1], samples=of_b))
    if min(np.std(np.log(of_a)), np.std(np.log(of_b))) < 1e-9:
        return  # scipy gives NaN
    welch = stats.ttest_ind(np.log(of_b), np.log(of_a), equal_var=False)
    assert result["p_value"] == pytest.approx(welch.pvalue, abs=1e-9)
    low, high = welch.confidence_interval(0.95)
    ends = [math.log1p(result[f"interval_{end}_pct"] / 100) for end in ("low", "high")]
    assert ends == pytest.approx([low, high], abs=1e-9)


TWINS = {"iops": ("speed", "IOPS"), "bandwidth_mib_s": ("speed", "MiB/s"), "mean_latency_us": ("time", "us")}


def scattered(drive: str, value: float, cell_label: str, metric: str = "iops") -> dict[str, Any]:
    """Return a value with scatter, so that p-values differ; each metric has the same improvement."""
    kind, unit = TWINS.get(metric, ("time", "us"))
    centre = 1e4 / value if kind == "time" else value
    samples = [centre * factor for factor in (0.97, 1.0, 1.03)]
    return row(drive, centre, cell_label=cell_label, metric=metric, kind=kind, unit=unit, samples=samples)


def test_p_values_are_adjusted_for_all_pairs_of_drives_together() -> None:
    rows = [scattered("a", 100.0, str(number)) for number in range(4)]
    for drive, values in {"b": (101.0, 130.0, 104.0, 160.0), "c": (107.0, 109.0, 250.0, 100.5)}.items():
        rows += [scattered(drive, value, str(number)) for number, value in enumerate(values)]
    few = [row(drive, 1.0, cell_label="few", samples=[1.0]) for drive in "ab"]
    result = pd.DataFrame(compare(*rows, *few))
    tested = result[result["cell_label"] != "few"]
    for name in ("p_value", "equivalence_p"):
        expected = stats.false_discovery_control(tested[name])
        assert tested[name.replace("p_value", "p") + "_adjusted"].tolist() == pytest.approx(list(expected))
    assert result.loc[result["cell_label"] == "few", "p_adjusted"].isna().all()


def test_doubtful_differences_cause_no_false_positives() -> None:
    """With 20 equal values and 80 clear but doubtful differences, few studies report a false positive."""
    random, studies = np.random.default_rng(9), 20
    rows = [row(drive, 100.0, cell_label=str(number), verdict="steady" if number < 20 else "not steady")
            for number in range(100) for drive in "ab"]  # fmt: skip
    summary, wrong, wrong_in_one_family = table("summary", rows), 0, 0
    levels = np.where((summary["drive"] == "b") & (summary["verdict"] == "not steady"), 1e4, 100.0)
    for _ in range(studies):
        samples = levels[:, None] * np.exp(random.normal(0, 0.05, (len(rows), 7)))
        study = summary.assign(samples=list(samples), value=np.exp(np.log(samples).mean(axis=1)))
        result = deltas_table(study, "a", margin_pct=0.1)
        assert result["p_value"].notna().all()
        wrong += bool(result["verdict"].isin([*BETTER, *WORSE]).any())
        wrong_in_one_family += bool((stats.false_discovery_control(result["p_value"])[:20] <= 0.05).any())
    assert wrong <= 0.1 * studies
    assert wrong_in_one_family >= 0.3 * studies, "the effect of doubtful values in the family"


@pytest.mark.parametrize("why", ["doubt", "forbidden", "unlike"])
def test_only_values_without_doubt_have_adjusted_p_values(why: str) -> None:
    nulls = {"1": 104.0, "2": 97.0, "3": 109.0}
    called = [
        scattered(*value_of)
        for label, value in nulls.items()
        for value_of in (("a", 100.0, label), ("b", value, label))
    ]
    clear: list[dict[str, Any]] = []
    for number in range(40):
        of_cell = [scattered(drive, value, f"x{number}") for drive, value in (("a", 100.0), ("b", 1e4))]
        if why == "doubt":
            of_cell[1]["verdict"] = "not steady"
        elif why == "forbidden":
            of_cell = [{**value, "measurement": "other"} for value in of_cell]
        else:
            of_cell[1]["statistic"] = "another average"
        clear += of_cell
    other = {"measurement": "other", "basis": "a", "comparison": "b", "facet": "steps", "kind": "protocol",
             "basis_value": "97a283b6", "comparison_value": "0106a179", "intended": False}  # fmt: skip
    terms = {"differences": table("differences", [other]), "unintended": "forbid"}
    alone, result = pd.DataFrame(compare(*called)), pd.DataFrame(compare(*called, *clear, **terms))
    of_called = result["cell_label"].isin(nulls)
    for name in ("p_adjusted", "equivalence_p_adjusted"):
        assert result.loc[of_called, name].tolist() == alone[name].tolist()
        assert result.loc[~of_called, name].isna().all()
    assert set(result.loc[~of_called, "verdict"]) == {"not compared" if why == "forbidden" else "cannot tell"}
    words = {"doubt": "b: not steady", "forbidden": "the steps of the protocol differ",
             "unlike": "different statistics (a: window average; b: another average)"}  # fmt: skip
    assert all(list(pair_doubts) == [words[why]] for pair_doubts in result.loc[~of_called, "doubts"]), (
        "there must be no other reason"
    )


def test_twin_metrics_count_once() -> None:
    values = [("b", "x", "mean_latency_us"), ("b", "x", "p99_latency_us"), ("b", "x", "iops"), ("c", "x", "iops"),
              ("b", "replay r", "iops"), ("b", "replay r", "bandwidth_mib_s")]  # fmt: skip
    assert one_of_each(values) == [2, 1, 3, 4, 5]


def test_different_workload_facets_are_doubts_and_an_unknown_load_is_a_remark() -> None:
    rows = [row(drive, value, metric=metric) for drive, value in (("a", 100.0), ("b", 200.0))
            for metric in ("iops", "p99_latency_us")]  # fmt: skip

    def workloads(basis: list[str | None], comparison: list[str | None]) -> tuple[list[str], list[str], str]:
        columns = ["load", "active range", "data pattern", "fill"]
        result = compare(*rows, workloads=pd.DataFrame([basis] * 2 + [comparison] * 2, columns=columns, dtype=object))
        (doubts,), (remarks,), (verdict,) = (
            {str(list(delta[name])) if name != "verdict" else delta[name] for delta in result}
            for name in ("doubts", "remarks", "verdict")
        )
        return doubts, remarks, verdict

    like = ["T2Q8", "100 %", "random", "2 x range"]
    assert workloads(like, like)[0::2] == ("[]", FASTER_BEYOND)
    doubts, remarks, verdict = workloads(like, ["T1Q1", "75 %", "not recorded", "2 x range"])
    assert doubts == "['at different loads: T2Q8 and T1Q1', 'active range differs: 100 % and 75 %']"
    assert (verdict, "load" in remarks) == ("cannot tell", False)
    doubts, remarks, verdict = workloads(["not known", None, None, None], like)
    assert (doubts, verdict) == ("[]", FASTER_BEYOND)
    assert "the load of a is not known and may differ" in remarks
    assert workloads([None] * 4, [None] * 4)[0::2] == ("[]", FASTER_BEYOND)


def test_twin_metrics_are_one_member_of_the_family() -> None:
    values = {"b": (101.0, 130.0, 104.0), "c": (107.0, 109.0, 250.0)}

    def rows(metrics: tuple[str, ...]) -> list[dict[str, Any]]:
        given = {"a": (100.0,) * 3, **values}
        return [
            scattered(drive, value, str(number), metric)
            for drive, of_drive in given.items() for number, value in enumerate(of_drive) for metric in metrics
        ]  # fmt: skip

    alone = pd.DataFrame(compare(*rows(("iops",))))["p_adjusted"].tolist()
    result = pd.DataFrame(compare(*rows(tuple(TWINS))))
    assert len(result) == 3 * len(alone)
    for metric in TWINS:
        assert result.loc[result["metric"] == metric, "p_adjusted"].tolist() == pytest.approx(alone)
    # a percentile is a separate comparison
    more = pd.DataFrame(compare(*rows((*TWINS, "p99_latency_us"))))
    of_iops, of_tail = (more.loc[more["metric"] == metric] for metric in ("iops", "p99_latency_us"))
    family = [*of_iops["p_value"], *of_tail["p_value"]]
    assert of_iops["p_adjusted"].tolist() == pytest.approx(list(stats.false_discovery_control(family))[:6])
    assert of_tail["p_adjusted"].tolist() == pytest.approx(list(stats.false_discovery_control(family))[6:])


def test_a_twin_is_adjusted_with_its_metric_or_the_next_one_of_each_cell() -> None:
    p_values = pd.Series([0.01, 0.02, 0.03, 0.04, 0.05, np.nan, 0.5])
    labels = pd.Series(["x", "x", "y", "z", "replay r", "y", "replay r"])
    metrics = pd.Series(["iops", "mean_latency_us", "iops", "bandwidth_mib_s", "bandwidth_mib_s", "mean_latency_us",
                         "mean_latency_us"])  # fmt: skip
    result = adjusted(p_values, [pd.Series(["b"] * 7), labels], metrics, 0.05)
    of_iops = stats.false_discovery_control([0.01, 0.03, 0.04, 0.05, 0.5])
    of_latency = stats.false_discovery_control([0.02, 0.03, 0.04, 0.05, 0.5])
    expected = [of_iops[0], of_latency[0], of_iops[1], of_iops[2], of_iops[3], np.nan, of_iops[4]]
    assert result.p.tolist() == pytest.approx(expected, nan_ok=True)
    assert result.critical.dropna().unique() == pytest.approx([0.01])
    assert adjusted(p_values * np.nan, [pd.Series(["b"] * 7), labels], metrics, 0.05).p.isna().all()


POINT = {"cell_label": "RND 4KiB 0/100, MAX"}


def test_points_at_different_loads_are_a_doubt_for_latency_and_a_remark_for_iops() -> None:
    def at(drive: str, load: str, metric: str) -> dict[str, Any]:
        result = scattered(drive, 100.0 if drive == "a" else 200.0, POINT["cell_label"], metric)
        return {**result, "statistic": f"average of the whole soak, at {load}"}

    basis, other = (
        [at(drive, load, metric) for metric in ("iops", "mean_latency_us")]
        for drive, load in zip("ab", ("T4Q2", "T1Q2"), strict=True)
    )
    iops, latency = compare(*basis, *other)
    assert (iops["verdict"], list(iops["doubts"])) == (FASTER_BEYOND, [])
    assert "at different loads: T4Q2 and T1Q2" in iops["remarks"]
    assert (latency["verdict"], list(latency["doubts"])) == ("cannot tell", ["at different loads: T4Q2 and T1Q2"])
    same = compare(*basis, *(at("b", "T4Q2", metric) for metric in ("iops", "mean_latency_us")))
    assert [delta["verdict"] for delta in same] == [FASTER_BEYOND] * 2
    assert not any("load" in words for delta in same for words in [*delta["doubts"], *delta["remarks"]])
    mixed = compare(*(at(drive, "T4Q2 or T1Q2", "mean_latency_us") for drive in "ab"))
    assert list(mixed[0]["doubts"]) == ["at different loads: T4Q2 or T1Q2 and T4Q2 or T1Q2"]


def test_rounding_is_neither_scatter_nor_a_difference() -> None:
    value = 300.12345
    samples = [value, value * (1 + 4e-16), value * (1 - 4e-16), value, value * (1 + 1e-12)]
    result = compare(
        row("a", value, samples=samples), row("b", value * (1 + 1e-15), samples=samples[::-1]),
        row("c", 1.2 * value, samples=[1.2 * sample for sample in samples]),
    )  # fmt: skip
    assert [delta["verdict"] for delta in result] == [SAME, FASTER_BEYOND]
    assert [(delta["p_value"], delta["equivalence_p"]) for delta in result] == [(1.0, 0.0), (0.0, 1.0)]


@pytest.mark.parametrize(
    ("value", "asymptote_pct", "verdict"),
    [
        (115.0, 0.0, FASTER_BEYOND),
        (115.0, -5.0, FASTER_BEYOND),
        (110.0, -4.6, "faster (size unsure)"),
        (115.0, -11.0, CANNOT_TELL),
        (115.0, -14.0, CANNOT_TELL),  # both drives tend to the same
        (101.0, 2.0, SAME),
        (101.0, 6.0, CANNOT_TELL),
    ],
)
def test_verdicts_that_the_asymptotes_contradict_are_weaker(value: float, asymptote_pct: float, verdict: str) -> None:
    (result,) = compare(row("a", 100.0, asymptote_pct=0.0), row("b", value, asymptote_pct=asymptote_pct))

    assert result["verdict"] == verdict
    assert result["asymptote_delta_pct"] == pytest.approx(value * (1 + asymptote_pct / 100) - 100)
    assert any("not settled" in doubt for doubt in result["doubts"]) == (verdict == CANNOT_TELL)


@pytest.mark.parametrize(
    ("starts", "narrow"),
    [
        ({"a": "adgjmp", "b": "behknq"}, True),  # run by run
        ({"a": "behknq", "b": "adgjmp"}, True),
        ({"a": "abcdef", "b": "ghijkl"}, False),  # one drive after the other
        ({"a": "adgjmp", "b": "behkn"}, False),  # one start is not known
    ],
)
def test_drives_are_compared_within_runs_that_followed_each_other(starts: dict[str, str], narrow: bool) -> None:
    """The runs differ by 20 %, the drives by 10 % in each."""
    rows = [
        row(drive, factor * 157.7, samples=[factor * 100.0 * 1.2**run for run in range(6)],
            recordings=[f"{drive}/m/0-run{run}" for run in range(1, 7)])
        for drive, factor in (("a", 1.0), ("b", 1.1))
    ]  # fmt: skip
    started = {f"{drive}/m/0-run{run}": at for drive, times in starts.items() for run, at in enumerate(times, 1)}

    (result,) = compare(*rows, started=started)

    assert (result["interval_high_pct"] - result["interval_low_pct"] < 1) == narrow


@pytest.mark.parametrize("runs", [6, 9])
def test_blocks_keep_the_false_alarm_rate_and_find_more(runs: int) -> None:
    """Runs differ by 10 %, recordings by 1 %: blocks keep the false-alarm rate, and find 5 % far more often."""
    random, number = np.random.default_rng(10), 500
    shares = {}
    for step in (1.0, 1.05):
        rows, started = [], {}
        for test in range(number):
            own = random.normal(0, 0.1, runs)
            for place, (drive, factor) in enumerate((("a", 1.0), ("b", step))):
                samples = (factor * np.exp(own + random.normal(0, 0.01, runs))).tolist()
                names = [f"{drive}/m{test}/0-run{run}" for run in range(runs)]
                started |= {name: str(2 * run + place).zfill(2) for run, name in enumerate(names)}
                rows.append(row(drive, float(stats.gmean(samples)), samples=samples, measurement=f"m{test}",
                                recordings=names))  # fmt: skip
        for blocks in (True, False):
            results = compare(*rows, started=started if blocks else None)
            shares[step, blocks] = np.mean([result["p_value"] <= 0.05 for result in results])
    assert shares[1.0, True] == pytest.approx(0.05, abs=0.02)
    assert shares[1.0, False] < 0.01, "conservative without blocks"
    assert shares[1.05, True] > 0.8
    assert shares[1.05, False] < 0.1
