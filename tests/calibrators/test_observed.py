"""What calibrators have observed of rows: what batches give, and what merging gives."""

import pickle
import re
from pathlib import Path

import cases
import numpy as np
import pandas as pd
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from sklearn.base import clone

import regcal
from regcal.calibrators import Observed, Targets, cells, held_out

FEW = 150  # rows that are kept in tests of many rows
MANY = 400  # more than that, and few enough for Gaussian processes to be quick
COUNTED = ["scale", "pit", "e-logistic", "e-beta", "e-isotonic", "gpc", "gp-density"]


@pytest.fixture
def few_kept(monkeypatch):
    """Let rows be sampled and counted, and points merged, from a few hundred rows on."""
    monkeypatch.setattr(held_out, "MAX_ROWS", FEW)
    monkeypatch.setattr(held_out, "_MOST_WAITING", 0)
    monkeypatch.setattr(cells, "_MAX_POINTS", FEW)


def make(name):
    return regcal.get_calibrator(name, **cases.PARAMETERS.get(name, {}))


def wrong_rows(n, seed=0):
    """Return predictions with the wrong spread, shape and bias, and outcomes."""
    rng = np.random.default_rng(seed)
    loc, scale = 2 * rng.normal(size=n), np.exp(0.3 * rng.normal(size=n))
    noise = 1.4 * rng.normal(size=n) + 0.4 * rng.exponential(size=n)
    return regcal.Normal(loc, scale), loc + scale * noise + 0.5 * np.sin(loc)


def batches(dist, y, size, order=None, weights=None):
    """Yield rows in batches of a size, in an order."""
    order = np.arange(len(y)) if order is None else order
    for start in range(0, len(y), size):
        rows = order[start : start + size]
        yield (dist[rows], y[rows]) if weights is None else (dist[rows], y[rows], weights[rows])


def observed_of(calibrator, parts, targets=None):
    observed = calibrator.new_observed(targets)
    for part in parts:
        observed.add(*part)
    return observed


def exact_fit(calibrator, dist, y):
    """Fit from all rows as they are, however many."""
    with pytest.MonkeyPatch.context() as patched:
        patched.setattr(held_out, "MAX_ROWS", len(y))
        patched.setattr(cells, "_MAX_POINTS", 10**9)
        return clone(calibrator).fit(dist, y)


def probabilities(calibrator, seed=1):
    new, _ = wrong_rows(40, seed)
    return calibrator.transform(new).cdf(np.linspace(-5, 5, 9)[np.newaxis, :])


def mean_log_score(calibrator, seed=1):
    new, y = wrong_rows(1000, seed)
    return calibrator.transform(new).logpdf(y).mean()


# ---------------------------------------------------------------------------------------- few rows


@pytest.mark.parametrize("name", regcal.calibrator_names())
def test_few_rows_in_batches_are_a_fit(name):
    """Up to the number of rows that are kept, batches give exactly what all rows give."""
    dist, y = wrong_rows(90)
    weights = np.random.default_rng(2).uniform(0.0, 2.0, 90)
    weights[5] = 0.0

    in_batches = make(name).fit_batches(batches(dist, y, 17, weights=weights))

    at_once = make(name).fit(dist, y, weights)
    assert in_batches.n_rows_seen_ == at_once.n_rows_seen_ == 89
    assert_array_equal(probabilities(in_batches), probabilities(at_once))


def test_partial_fit_adds_rows():
    """After every call the calibrator is that of all rows so far."""
    dist, y = wrong_rows(60)
    cal = regcal.PITCalibrator()

    for stop in (20, 40, 60):
        cal.partial_fit(dist[stop - 20 : stop], y[stop - 20 : stop])
        at_once = regcal.PITCalibrator().fit(dist[:stop], y[:stop])
        assert_array_equal(probabilities(cal), probabilities(at_once))


def test_batches_may_be_censored():
    """What was seen of outcomes comes in batches as all at once, empty ones included."""
    dist, y = wrong_rows(60)
    seen = regcal.Outcomes.right_censored(y, observed=np.arange(60) % 3 > 0)
    parts = [*batches(dist, seen, 25), (dist[:0], seen[:0])]

    in_batches = regcal.PITCalibrator().fit_batches(parts)

    at_once = regcal.PITCalibrator().fit(dist, seen)
    assert_array_equal(probabilities(in_batches), probabilities(at_once))
    as_numbers = regcal.PITCalibrator().fit(dist, y)
    assert not np.allclose(probabilities(at_once), probabilities(as_numbers))


def test_partial_fit_does_not_forget_silently():
    """A calibrator that has kept nothing says so; a new fit drops what was kept."""
    dist, y = wrong_rows(20)
    cal = regcal.ScaleCalibrator().fit(dist, y)

    with pytest.raises(ValueError, match="kept nothing of its rows"):
        cal.partial_fit(dist, y)
    cal = clone(cal).partial_fit(dist, y).fit(dist, y)
    assert not hasattr(cal, "observed_")


def test_batches_may_reuse_their_arrays():
    """A caller may overwrite the arrays of a batch by those of the next."""
    dist, y = wrong_rows(60)
    buffer, outcomes = regcal.Normal(np.zeros(20), np.ones(20)), np.zeros(20)

    def overwritten():
        for start in (0, 20, 40):
            buffer.loc[:], buffer.scale[:] = dist.loc[start:][:20], dist.scale[start:][:20]
            outcomes[:] = y[start:][:20]
            yield buffer, outcomes

    cal = regcal.PITCalibrator().fit_batches(overwritten())

    assert_array_equal(probabilities(cal), probabilities(regcal.PITCalibrator().fit(dist, y)))


# ---------------------------------------------------------------------------------------- many rows


@pytest.mark.parametrize("name", COUNTED)
def test_cells_give_what_all_rows_give(few_kept, name):
    """A fit from cells is that from every single row, up to the width of the cells."""
    dist, y = wrong_rows(MANY)

    in_cells = make(name).fit(dist, y)

    exact = exact_fit(make(name), dist, y)
    close = 0.01
    assert_allclose(probabilities(in_cells), probabilities(exact), atol=close)
    assert_allclose(mean_log_score(in_cells), mean_log_score(exact), atol=0.2 * close)


@pytest.mark.parametrize("name", ["e-beta", "gpc", "gp-density"])
def test_order_and_size_of_batches_do_not_matter(few_kept, name):
    """With the outcomes known beforehand, sorted rows in large batches give the same."""
    dist, y = wrong_rows(MANY)
    cal, targets = make(name), Targets.of(y)
    close = 1e-9 if name == "e-beta" else 0.01

    one = observed_of(cal, batches(dist, y, 23), targets)
    other = observed_of(cal, batches(dist, y, 170, np.argsort(y)), targets)

    one, other = clone(cal).solve(one), clone(cal).solve(other)
    assert_allclose(probabilities(one), probabilities(other), atol=close)


@pytest.mark.parametrize("name", ["e-beta", "gpc"])
def test_cells_follow_a_growing_range(few_kept, name):
    """Batches sorted by outcome give thresholds well beyond all outcomes, and a similar fit."""
    dist, y = wrong_rows(MANY)

    shuffled = make(name).fit_batches(batches(dist, y, 50))
    rising = make(name).fit_batches(batches(dist, y, 50, np.argsort(y)))

    for thresholds in (rising.thresholds_, shuffled.thresholds_):
        beyond = np.array([y.min() - thresholds[0], thresholds[-1] - y.max()])
        assert (beyond >= 0.15 * np.ptp(y)).all()
        assert (beyond <= 0.75 * np.ptp(y)).all()
    assert_allclose(mean_log_score(rising), mean_log_score(shuffled), atol=0.05)


@pytest.mark.parametrize(("growth", "kept"), [(1.2, True), (3.0, False), (0.1, True)])
def test_a_range_that_grows_little_leaves_all_that_was_counted(few_kept, growth, kept):
    """Outcomes a bit further out than before do not cost what was learnt of all others."""
    dist, y = wrong_rows(2000)
    observed = observed_of(make("gpc"), batches(dist, y, 50))
    points, coordinates = observed.points[2], observed.coordinates[2]

    observed.add(dist[:2], growth * np.array([y.min(), y.max()]))

    same = np.array_equal(observed.coordinates[2].thresholds, coordinates.thresholds)
    assert same == kept
    if kept:
        added = observed.points[2].weights.sum() - points.weights.sum()
        assert_allclose(added, 2 * coordinates.points_per_row)


def test_quantiles_follow_the_outcomes(few_kept):
    """Thresholds at quantiles are those of all outcomes, though the first batches were low."""
    dist, y = wrong_rows(4000)
    cal = regcal.OneVsRestCalibrator(thresholds=regcal.QuantileGrid(9))

    cal.fit_batches(batches(dist, y, 500, np.argsort(y)))

    shares = (y[:, np.newaxis] <= cal.thresholds_).mean(axis=0)
    assert_allclose(shares, np.arange(1, 10) / 10, atol=0.03)


def test_outcomes_beyond_those_announced_are_included(few_kept):
    """If an outcome leaves the range that was given, the thresholds move after all."""
    dist, y = wrong_rows(2000)
    narrow = Targets.of(y[np.abs(y) < 2])

    cal = make("e-beta").solve(observed_of(make("e-beta"), batches(dist, y, 300), narrow))

    assert cal.thresholds_[0] <= y.min() - 0.15 * np.ptp(y)


@pytest.mark.parametrize("name", ["gpc", "gp-density"])
@pytest.mark.filterwarnings("ignore::regcal.RoundedOutcomesWarning")
def test_rounded_targets_are_spread_in_cells_too(few_kept, name):
    """Whole-number outcomes give the same from cells as from rows."""
    dist, y = wrong_rows(MANY)
    y = np.round(y)

    in_cells = make(name).fit(dist, y)

    assert_allclose(
        probabilities(in_cells), probabilities(exact_fit(make(name), dist, y)), atol=0.02
    )


@pytest.mark.filterwarnings("ignore::regcal.DisagreementWarning")
def test_an_outcome_that_half_of_the_rows_share_is_one_in_cells_too(few_kept):
    """The map is that of a fit to all rows."""
    rng = np.random.default_rng(0)
    y = np.where(rng.random(MANY) < 0.5, 0.0, rng.normal(size=MANY))
    dist = regcal.Normal(np.zeros(MANY), np.ones(MANY))

    in_cells = make("gp-density").fit(dist, y).transform(dist[:1])

    exact = exact_fit(make("gp-density"), dist, y).transform(dist[:1])
    grid = np.linspace(-2, 2, 9)[np.newaxis, :]
    assert_allclose(in_cells.cdf(grid), exact.cdf(grid), atol=0.08)


def test_impossible_outcomes_are_left_out(few_kept):
    """Rows without density do not enter the map, as in a fit from rows."""
    _, y = wrong_rows(MANY)
    edges = np.linspace(-4.0, 4.0, 9)
    masses = np.tile(np.exp(-0.5 * (edges[1:] - 0.5) ** 2 / 4), (MANY, 1))
    dist = regcal.Histogram(edges, masses / masses.sum(axis=1, keepdims=True))

    left_out = f"{(np.abs(y) > 4).sum()} of {MANY} outcomes have no density"
    with pytest.warns(regcal.ImpossibleOutcomesWarning, match=left_out):
        in_cells = make("gp-density").fit(dist, y)

    with pytest.warns(regcal.ImpossibleOutcomesWarning, match=left_out):
        exact = exact_fit(make("gp-density"), dist, y)
    grid = np.linspace(-3.5, 3.5, 8)[np.newaxis, :]
    assert_allclose(
        in_cells.transform(dist[:1]).cdf(grid), exact.transform(dist[:1]).cdf(grid), atol=0.01
    )


def test_auto_chooses_on_a_sample_and_fits_on_all(few_kept):
    """What is chosen is what its own observed gives."""
    dist, y = wrong_rows(3000)
    candidates = [(name, make(name)) for name in ("identity", "pit")]
    auto = regcal.AutoCalibrator(candidates)

    auto.fit_batches(batches(dist, y, 400))

    assert auto.chosen_.endswith("pit")
    chosen = clone(auto.calibrator_).fit_batches(batches(dist, y, 400))
    assert auto.calibrator_.n_rows_seen_ == 3000
    assert_array_equal(probabilities(auto), probabilities(chosen))


def test_the_papers_method_learns_from_a_sample(few_kept):
    """It draws its pairs from rows that were kept."""
    dist, y = wrong_rows(2000)

    cal = make("gpc-paper").fit_batches(batches(dist, y, 400))

    assert cal.n_rows_seen_ == 2000
    assert cal.axes_.high <= y.max() + 0.5 * np.ptp(y)


def test_a_calibrator_without_coordinates_learns_from_a_sample(few_kept):
    """A subclass that names no coordinates gets at most so many rows, which stand for all."""

    class Counting(regcal.IdentityCalibrator):
        def _solve(self, observed):
            self.rows_ = observed.rows

    dist, y = wrong_rows(1000)

    for fitted in (Counting().fit(dist, y), Counting().fit_batches(batches(dist, y, 300))):
        assert len(fitted.rows_) == FEW
        assert_allclose(fitted.rows_.weights.sum(), 1000, rtol=0.2)
    assert len(Counting().fit(dist[:99], y[:99]).rows_) == 99


# ---------------------------------------------------------------------------------------- merging


@pytest.mark.parametrize("sizes", [(100, 200), (300, 900), (1500, 300), (1500, 2500)])
def test_merged_summaries_are_those_of_all_rows(few_kept, sizes):
    """Kept rows and cells merge in both orders, whichever side has what."""
    dist, y = wrong_rows(sum(sizes))
    cal, targets = make("e-beta"), Targets.of(y)
    first, second = np.split(np.arange(len(y)), [sizes[0]])
    parts = [observed_of(cal, [(dist[rows], y[rows])], targets) for rows in (first, second)]

    forward, backward = parts[0].merge(parts[1]), parts[1].merge(parts[0])

    wanted = probabilities(clone(cal).fit(dist, y))
    for merged in (forward, backward):
        assert merged.n_rows == len(y)
        assert_allclose(merged.targets.weights.sum(), len(y))
        assert_allclose(probabilities(clone(cal).solve(merged)), wanted, atol=1e-9)
    assert [part.n_rows for part in parts] == list(sizes)


@pytest.mark.filterwarnings("ignore::regcal.FewRowsWarning")  # kept rows stand for others
def test_merging_joins_ranges(few_kept):
    """Parts that saw different ranges get the thresholds of all outcomes, and what rows they kept.

    The kept rows stand for all: they are a fit of so many rows.
    """
    dist, y = wrong_rows(4000)
    low, high = np.flatnonzero(y < 0), np.flatnonzero(y >= 0)
    cal = make("e-beta")
    parts = [observed_of(cal, [(dist[rows], y[rows])]) for rows in (low, high)]

    merged = parts[0].merge(parts[1])

    whole = clone(cal).fit_batches([(dist, y)])
    fitted = clone(cal).solve(merged)
    assert_array_equal(fitted.thresholds_, whole.thresholds_)
    weights = np.bincount(merged.points[0].levels, merged.points[0].weights)
    assert_allclose(weights, sum(part.rows.weights.sum() for part in parts))
    with pytest.MonkeyPatch.context() as patched:
        patched.setattr(held_out, "MAX_ROWS", 4000)
        kept = parts[0].rows, parts[1].rows
        exact = regcal.OneVsRestCalibrator(thresholds=whole.thresholds_).fit_batches(
            (rows.dist, rows.y, rows.weights) for rows in kept
        )
    assert_allclose(probabilities(fitted), probabilities(exact), atol=0.005)


@pytest.mark.parametrize("rows", [100, 2000])
def test_a_observed_can_be_stored(few_kept, rows):
    """A observed that was pickled goes on as if it had not been."""
    dist, y = wrong_rows(rows)
    more, more_y = wrong_rows(200, 5)
    observed = observed_of(make("e-beta"), batches(dist, y, 90))

    copied = pickle.loads(pickle.dumps(observed))

    fits = [make("e-beta").solve(s.add(more, more_y)) for s in (observed, copied)]
    assert_array_equal(probabilities(fits[0]), probabilities(fits[1]))


@pytest.mark.parametrize("rows", [100, 400])
def test_a_growing_calibrator_can_be_saved(few_kept, rows, tmp_path):
    """A calibrator that was stored between two batches goes on as if it had not been."""
    dist, y = wrong_rows(rows)
    more, more_y = wrong_rows(200, 5)
    cal = regcal.ScaleCalibrator().partial_fit(dist, y)

    regcal.save(cal, tmp_path / "growing.regcal")
    loaded = regcal.load(tmp_path / "growing.regcal")

    assert loaded.fingerprint() == cal.fingerprint()
    assert loaded.partial_fit(more, more_y).factor_ == cal.partial_fit(more, more_y).factor_


@pytest.mark.parametrize("rows", [100, 400])
def test_a_growing_calibrator_of_intervals_can_be_saved(few_kept, rows, tmp_path):
    """Intervals, zeros at an end and what was found there go on as if nothing had been stored."""
    dist, y = wrong_rows(rows)
    more, more_y = wrong_rows(200, 5)
    seen = regcal.Outcomes(np.maximum(y, 0.0), np.where(y > 2, np.inf, np.maximum(y, 0.0)))
    cal = regcal.PITCalibrator().partial_fit(dist, seen)

    regcal.save(cal, tmp_path / "growing.regcal")
    loaded = regcal.load(tmp_path / "growing.regcal")

    assert loaded.support_ == cal.support_ == regcal.calibrators.Support(low=0.0)
    grown = [one.partial_fit(more, np.maximum(more_y, 0.0)) for one in (cal, loaded)]
    assert_array_equal(probabilities(grown[0]), probabilities(grown[1]))


# ---------------------------------------------------------------------------------------- errors


def test_errors_say_what_to_do():
    """No rows, impossible rows and what other calibrators observed are refused."""
    uniform = regcal.Histogram([0.0, 1.0], np.ones((2, 1)))
    scale, pit = make("scale"), make("pit")

    with pytest.raises(ValueError, match="no rows to learn from"):
        scale.fit_batches([])
    with pytest.raises(ValueError, match="None of the 2 outcomes is possible"):
        scale.fit_batches([(uniform, [5.0, 6.0])])
    with pytest.raises(ValueError, match="observed for ScaleCalibrator"):
        pit.solve(scale.new_observed())
    with pytest.raises(ValueError, match="one and the same calibrator"):
        pit.new_observed().merge(scale.new_observed())
    with pytest.raises(TypeError, match="Got a Targets"):
        pit.solve(Targets())
    with pytest.raises(TypeError, match="Got a NoneType"):
        pit.new_observed().merge(None)
    with pytest.raises(TypeError, match="Pass a list of batches"):
        pit.fit_batches((uniform, [0.5, 0.6]))
    with pytest.raises(ValueError, match="was not fitted by partial_fit"):
        make("scale").fit_batches([(uniform, [0.5, 0.6])]).partial_fit(uniform, [0.5, 0.6])
    assert "rows=0" in repr(Observed(scale))


def test_empty_batches_are_passed_over():
    """A filter that leaves nothing of a batch does not end a long fit."""
    dist, y = regcal.Normal(np.zeros(30), np.ones(30)), np.linspace(-2.0, 3.0, 30)
    whole = make("scale").fit(dist, y)

    assert make("scale").fit_batches([(dist[:0], []), (dist, y)]).factor_ == whole.factor_


class PartitionedFrame:
    """What the recipe for Spark asks of a Spark frame, done here one partition at a time."""

    def __init__(self, parts):
        self.parts = parts

    def select(self, column):
        return PartitionedFrame([part[[column]] for part in self.parts])

    def mapInPandas(self, function, schema):  # noqa: N802
        results = [row for part in self.parts for row in function(iter([part[:7], part[7:]]))]
        assert schema == "observed binary"
        self.rows = pd.concat(results).itertuples(index=False)
        return self

    def collect(self):
        return list(self.rows)


def test_recipe_for_spark(rng):
    """The lines in the guide give what one fit on all rows gives."""
    guide = Path(__file__).parents[2] / "docs" / "large_data.md"
    blocks = re.findall(r"```py\n(.*?)```", guide.read_text(encoding="utf-8"), re.DOTALL)
    (recipe,) = [block for block in blocks if "mapInPandas" in block]
    mean = rng.normal(size=400)
    frame = pd.DataFrame({"mean": mean, "std": 1.0, "y": mean + 1.5 * rng.normal(size=400)})
    parts = [frame[:150], frame[150:150], frame[150:]]
    names = {"frame": PartitionedFrame(parts)}
    exec(recipe, names)

    dist = regcal.Normal(frame["mean"], frame["std"])
    whole = regcal.get_calibrator("gpc").fit(dist, frame["y"])
    points = np.linspace(-2, 2, 5)[np.newaxis, :]
    found = names["calibrator"].transform(dist).cdf(points)
    assert_allclose(found, whole.transform(dist).cdf(points), atol=1e-9)


@pytest.mark.parametrize("name", COUNTED)
def test_skewed_outcomes_that_are_told_beforehand_are_seen_along_their_axis(name, rng):
    """As `fit` sees them, whose axis is not linear."""
    loc = rng.uniform(1.0, 4.0, FEW)
    dist, y = regcal.Normal(np.exp(loc), np.exp(loc)), np.exp(loc + 0.8 * rng.normal(size=FEW))
    observed = observed_of(make(name), batches(dist, y, 50), Targets.of(y))
    points = np.quantile(y, [[0.1, 0.5, 0.9]])

    fitted, expected = make(name).solve(observed), make(name).fit(dist, y)

    assert not observed.targets.axis.linear
    assert_allclose(
        fitted.transform(dist).cdf(points), expected.transform(dist).cdf(points), atol=1e-9
    )


def test_faded_rows_count_less(few_kept, rng):
    """Forgetting half of one batch is a weight of one half, kept as rows or in cells."""
    for n_rows in (FEW // 2, MANY):
        first, second = (
            (regcal.Normal(np.zeros(n_rows), np.ones(n_rows)), factor * rng.normal(size=n_rows))
            for factor in (1.0, 2.0)
        )
        scale = regcal.get_calibrator("scale")
        observed = scale.new_observed().add(*first).faded(0.5).add(*second)
        weighted = scale.new_observed().add(*first, np.full(n_rows, 0.5)).add(*second)

        assert_allclose(observed.total_weight, 1.5 * n_rows)
        assert_allclose(
            clone(scale).solve(observed).factor_, clone(scale).solve(weighted).factor_, rtol=1e-9
        )


def test_what_has_faded_away_is_gone(few_kept, rng):
    """Range, rows and cells are those of what still counts."""
    for n_rows in (FEW // 2, MANY):
        observed = regcal.get_calibrator("gp-density").new_observed()
        for batch in range(4):
            y = 1000.0 * (batch == 0) + rng.normal(size=n_rows)
            observed = observed.faded(1e-9).add(regcal.Normal(np.zeros(n_rows), np.ones(n_rows)), y)

        assert observed.targets.high < 100
        assert len(observed.rows) <= max(n_rows + 1, 1.5 * FEW)
    assert observed.faded(1e-30).n_rows == 0


def test_equal_rows_are_no_lost_outcomes(few_kept):
    """Rows that are kept as one are as possible as they are many."""
    rng = np.random.default_rng(0)
    loc = np.round(rng.normal(size=2000))
    dist, y = regcal.Normal(loc, np.ones(2000)), np.round(loc + rng.normal(size=2000))

    observed = observed_of(make("pit"), batches(dist, y, 500))

    assert observed.all_kept
    assert len(observed.rows) < 2000
    assert observed.n_possible == observed.n_rows == 2000
