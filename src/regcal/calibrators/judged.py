"""What candidates predict for rows they have not learnt from, scored and chosen from."""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np
from scipy.special import ndtr, ndtri, stdtrit

from regcal._caching import WithoutCaches
from regcal._validation import Array
from regcal.calibrators.cells import IntervalCoordinates, OutcomeCoordinates
from regcal.calibrators.cross_fitting import Predictions
from regcal.calibrators.held_out import HeldOut
from regcal.calibrators.labels import known_below
from regcal.calibrators.scale import solve_scale
from regcal.calibrators.stack import Objective, Prices, average_of
from regcal.calibrators.support import Support
from regcal.calibrators.targets import Targets
from regcal.calibrators.thresholds import lengths_around, points_over
from regcal.distributions import Transformed

# With fewer rows an average must be clearly better than the simplest candidate that is not clearly
# worse than the best. With the first candidate in its place, as for more rows, CRPS rose by 17 % in
# one of 200 worlds of benchmarks/harm.py, one of 11 rows. With more rows it asks too much: new rows
# of the half "choose" (benchmarks/quality.py, 48 cells, gains cut at 1 nat) then score 0.024 nats
# worse.
FEW_ROWS = 100

# A candidate or an average is clearly better at this level of a paired t test of either score,
# which comparisons share. Of 200 small worlds of benchmarks/harm.py, none lost log score and 1 %
# lost CRPS, 5 % of it at most; with one standard error 10 % lost log score, and with a level that
# was not shared 2 %, one of them 20 % of CRPS. With a test of the sum alone, forest fires were left
# as they were (benchmarks/outcomes.py, "fires": CRPS 15.0 instead of 11.4).
_CLEARLY = 0.975

# A gain of so many nats is also taken if it is clearly no loss of so many, as where rows are many.
# With the tests alone, boosting on NOx (benchmarks/quality.py) was left as it was, 0.021 nats and
# 0.6 % of CRPS behind gp-density.
_WORTH_HAVING, _NO_LOSS = 0.01, 0.005

# Of the evidence that is needed against the first candidate, one row counts for this part at most,
# so that two gross errors do not decide. Of few rows only maps of one or two numbers are taken on
# evidence. By t tests alone, 30 rows of a model that states half of the spread, 24 nats in all,
# were left as they were. Of some 70 rules, compared on the 200 worlds of benchmarks/harm.py, 78 of
# clear defects and 144 samples of 12 to 100 rows of the half "choose" (BRR), this one gained on
# average 0.07, 0.31 and 0.03 nats (each cut at 1) and 0.7, 3.7 and 1.0 % of CRPS more than t tests
# alone. Of the 200 worlds 1 % lost CRPS, 5 % of it at most, and none log score. Without the bound
# 1.5 % lost CRPS; with all methods of few rows 3.5 %, one of them 43 %; with half of the evidence
# 1.5 % lost log score, one of them, whose 31 rows had no outlier, 5.4 nats.
_OF_ONE_ROW = 0.5

# What a candidate in an average must be worth, in nats, since it takes time whenever it is asked.
PRICE_OF_ONE = 1e-3

# Each candidate is judged with this share of the average of all, so that a few rows that it all but
# rules out count, but do not drown what all the others say. In 53 cells of benchmarks/quality.py
# ("choose" and "paper"; BRR, boosting, quantile forests and boosted quantiles) new rows score
# -3.54 nats with 0.1 and 1 %, -3.57 with 5 % and -4.20 without: a test of differences of hundreds
# of nats leaves such models as they are.
SHARE_OF_ALL = 0.01


@dataclass(frozen=True)
class Judged(WithoutCaches):
    """Scores of candidates on the same rows.

    Parameters
    ----------
    logs : ndarray of shape (n_candidates, n_rows)
        Log scores. That of all candidates is the log density at the same points, and the log
        probability of the same intervals.
    cdfs : ndarray of shape (n_candidates, n_rows, n_points)
        What candidates say at points over the outcomes.
    labels : ndarray of shape (n_rows, n_points)
        Whether outcomes are at most there; NaN where nobody knows.
    lengths : ndarray of shape (n_points,)
        Roots of the lengths that points stand for; 0 where not all labels are known.
    weights : ndarray of shape (n_rows,)
    prices : Prices
    of_few_numbers : sequence of int
        Candidates that have a number or two to fit.
    """

    logs: Array
    cdfs: Array
    labels: Array
    lengths: Array
    weights: Array
    prices: Prices
    of_few_numbers: Sequence[int] = ()

    @classmethod
    def of(
        cls,
        answers: Sequence[Predictions],
        rows: HeldOut,
        support: Support,
        prices: Prices,
        of_few_numbers: Sequence[int] = (),
    ) -> "Judged":
        """Return the scores of predictions of what is behind outcomes seen through a support."""
        points = points_over(Targets.of_outcomes(rows.seen, rows.weights), support)
        places = np.concatenate([places for places, _ in answers[0]])
        rows, order = rows.through(support), np.argsort(places)
        logs: list[Array] = []
        cdfs: list[Array] = []
        for parts in answers:
            own = [rows.take(places).log_scores(dist) for places, dist in parts]
            logs.append(np.concatenate(own)[order])
            own = [dist.cdf(points[np.newaxis, :]) for _, dist in parts]
            cdfs.append(np.concatenate(own)[order])
        rows = rows.take(places[order])
        labels = known_below(rows, points)
        # what is known of some rows alone depends on their outcomes, and would favour what is wrong
        known = ~np.isnan(labels).any(axis=0)
        # beyond all outcomes alone, what has the thinnest tail would win
        telling = known & (labels.min(axis=0) < labels.max(axis=0))
        lengths = np.sqrt(lengths_around(points)) * (known & telling.any())
        scores = np.stack(logs), np.stack(cdfs), labels, lengths
        return cls(*scores, rows.weights, prices, of_few_numbers)

    @cached_property
    def tested_logs(self) -> Array:
        """Log scores of candidates of which each has a small share of the average of all.

        They are bounded from below, so that their differences have a variance to test with. An
        outcome that is impossible under all candidates does not tell them apart, and scores 0.
        """
        highest = self.logs.max(axis=0)
        possible = np.isfinite(highest)
        highest = np.where(possible, highest, 0.0)
        densities = np.where(possible, np.exp(self.logs - highest), 1.0)
        shared = (1.0 - SHARE_OF_ALL) * densities + SHARE_OF_ALL * densities.mean(axis=0)
        return np.log(shared) + highest

    @cached_property
    def differences(self) -> Array:
        """Of CDFs and labels, times the roots of lengths; 0 where there is no label."""
        return self._differences(self.cdfs)

    def _differences(self, cdfs: Array) -> Array:
        return np.nan_to_num((cdfs - self.labels) * self.lengths)

    @cached_property
    def crps(self) -> Array:
        """The CRPS of each row, (n_candidates, n_rows)."""
        return (self.differences**2).sum(axis=2)

    @cached_property
    def unit(self) -> float:
        """The mean CRPS of the first candidate."""
        return float(np.average(self.crps[0], weights=self.weights)) or 1.0

    def objective(self) -> Objective:
        """Return what the weights of an average are to maximise."""
        shares = self.weights / self.weights.sum()
        products = np.einsum("irg,jrg,r->ij", self.differences, self.differences, shares)
        densities = np.exp(self.tested_logs - self.tested_logs.max(axis=0))
        return Objective(densities, products / self.unit, shares, self.prices)

    def _log_score_and_crps(self, weights: Array) -> Array:
        """Return both parts of the objective of each row under an average, (2, n_rows)."""
        used = np.flatnonzero(weights)
        logs = self.tested_logs[used] + np.log(weights[used])[:, np.newaxis]
        crps = (np.tensordot(weights[used], self.differences[used], axes=1) ** 2).sum(axis=1)
        return self._worth(np.logaddexp.reduce(logs, axis=0), crps)

    def _worth(self, logs: Array, crps: Array) -> Array:
        """Return both parts of the objective, the first axis, given log scores and CRPS."""
        return np.stack([self.prices.log_score * logs, -self.prices.crps * crps / self.unit])

    def rows_of(self, weights: Array) -> Array:
        """Return the objective of each row under an average."""
        return self._log_score_and_crps(weights).sum(axis=0)

    def scores_of(self, weights: Array) -> Array:
        """Return the scores that count of each row under an average, (n_scores, n_rows).

        Both are tested by themselves: of long tails, a few rows that hardly any density foresaw
        hide in the sum what the CRPS of all rows shows.
        """
        return self._log_score_and_crps(weights)[self.prices.counted]

    def gain_of_spread(self, weights: Array, factor: float, logs: Array) -> float:
        """Return what a factor on the spread of an average adds; 0 if its CRPS is not allowed.

        Parameters
        ----------
        weights : ndarray of shape (n_candidates,)
            Of the average.
        factor : float
        logs : ndarray of shape (n_rows,)
            What it adds to log scores.
        """
        cdf = np.tensordot(weights, self.cdfs, axes=1)
        changed = ndtr(ndtri(np.clip(cdf, 0.0, 1.0)) / factor)
        before, after = ((self._differences(one) ** 2).sum(axis=1) for one in (cdf, changed))
        if np.average(after, weights=self.weights) > self.most_crps * self.unit:
            return 0.0
        return paired(self._worth(logs, after - before).sum(axis=0), self.weights)[0]

    def clearly_ahead(self, one: Array, other: Array) -> bool:
        """Return whether an average is clearly ahead of another in a score that counts.

        Or whether it is ahead in their sum by a gain worth having, which is clearly no loss.

        The best, and the best average, are found by looking at all candidates, so that comparisons
        share the level (Bonferroni).
        """
        gains = self.scores_of(one) - self.scores_of(other)
        level = 1.0 - self._level / len(gains)
        clear = float(stdtrit(max(self.weights.sum() - 1.0, 1.0), level))
        ahead, error = paired(gains.sum(axis=0), self.weights)
        if ahead > _WORTH_HAVING and ahead - clear * error > -_NO_LOSS:
            return True
        pairs = (paired(gain, self.weights) for gain in gains)
        return any(ahead > clear * error for ahead, error in pairs)

    @property
    def _level(self) -> float:
        """The level of one comparison."""
        return (1.0 - _CLEARLY) / max(len(self.logs) - 1, 1)

    def evident(self, weights: Array) -> bool:
        """Return whether rows are evidence for an average and against the first candidate.

        If the first candidate were right, the likelihood ratio of rows that the other one was not
        learnt from would have a mean of 1 (at most, if what a row counts for is bounded), and would
        exceed 1 / level with a probability of at most the level (Wasserman, Ramdas and
        Balakrishnan, 2020). So would, about, that of all rows, each of which one of a few maps was
        not learnt from, since it is at most that of the best map of all. That takes no standard
        error: the very rows that tell of a spread that is too small make that of a t test large.
        The CRPS must not be worse.
        """
        if self.prices.log_score == 0:
            return False
        first = np.eye(len(self.logs))[0]
        logs, crps = self._log_score_and_crps(weights) - self._log_score_and_crps(first)
        needed = -np.log(self._level)
        counted = np.minimum(logs / self.prices.log_score, _OF_ONE_ROW * needed)
        return bool(self.weights @ crps >= 0 and self.weights @ counted > needed)

    def chosen(self) -> Array:
        """Return the weights of what is to be taken: an average, or one candidate alone."""
        average = self.objective().best_few(self.most_crps, PRICE_OF_ONE)
        taken = np.eye(len(self.logs))[0] if self.many_rows else self._simplest()
        if self.clearly_ahead(average, taken) or (self.many_rows and self.evident(average)):
            return average
        if not self.many_rows and taken[0] == 1:
            taken = self._simplest_evident()
            return average if self.clearly_ahead(average, taken) else taken
        return taken

    @property
    def many_rows(self) -> bool:
        """Whether rows are many enough to trust what is best in them."""
        return bool(self.weights.sum() >= FEW_ROWS)

    @property
    def most_crps(self) -> float:
        """The largest relative CRPS that is allowed."""
        return 1.0 if self.prices.crps > 0 else np.inf

    @cached_property
    def relative_crps(self) -> Array:
        """The mean CRPS of each candidate over that of the first."""
        return np.average(self.crps, axis=1, weights=self.weights) / self.unit

    @cached_property
    def candidate_rows(self) -> Array:
        """The objective of each row under each candidate alone, (n_candidates, n_rows)."""
        return self._worth(self.tested_logs, self.crps).sum(axis=0)

    @cached_property
    def best(self) -> int:
        """The number of the best candidate that is allowed."""
        means = np.average(self.candidate_rows, axis=1, weights=self.weights)
        return int(np.argmax(np.where(self.relative_crps <= self.most_crps, means, -np.inf)))

    def gain_of(self, weights: Array) -> float:
        """Return what an average gains on the best candidate; 0 if it is one alone."""
        if np.count_nonzero(weights) == 1:
            return 0.0
        return paired(self.rows_of(weights) - self.candidate_rows[self.best], self.weights)[0]

    def behind(self) -> list[tuple[float, float]]:
        """Return by how much each candidate is worse than the best, with its standard error."""
        rows = self.candidate_rows
        return [paired(rows[self.best] - row, self.weights) for row in rows]

    def _simplest(self) -> Array:
        """Return the weights of the first candidate that is allowed and not clearly worse."""
        each = np.eye(len(self.logs))
        level = np.array([not self.clearly_ahead(each[self.best], one) for one in each])
        return each[int(np.argmax(level & (self.relative_crps <= self.most_crps)))]

    def _simplest_evident(self) -> Array:
        """Return the weights of the simplest candidate of few numbers that rows are evidence for.

        Of those that are not clearly worse than the best of them; the first one if there is none.
        """
        each = np.eye(len(self.logs))
        found = [k for k in self.of_few_numbers if self.evident(each[k])]
        if not found:
            return each[0]
        means = np.average(self.candidate_rows, axis=1, weights=self.weights)
        best = max(found, key=lambda k: means[k])
        return each[next(k for k in found if not self.clearly_ahead(each[best], each[k]))]


def averaged(answers: Sequence[Predictions], weights: Array) -> Predictions:
    """Return the average of what candidates predict for the same rows."""
    used = np.flatnonzero(weights).tolist()
    return [
        (parts[0][0], average_of([dist for _, dist in parts], weights[used]))
        for parts in zip(*(answers[k] for k in used), strict=True)
    ]


def best_spread(
    judged: Judged, weights: Array, predictions: Predictions, rows: HeldOut, support: Support
) -> float:
    """Return a factor on the spread of an average, for rows that it was not learnt from; or 1.

    The most likely one is taken if it is worth its price and, since it was fitted to the rows that
    it is judged by, one nat in all (Akaike, 1973).

    Parameters
    ----------
    judged : Judged
        The candidates.
    weights : ndarray of shape (n_candidates,)
        What they count for.
    predictions : Predictions
        Their average.
    rows : HeldOut
    support : Support
    """
    parts = [rows.take(places).predicted(dist) for places, dist in predictions]
    seen = HeldOut.joined(parts).through(support)
    outcomes, intervals = OutcomeCoordinates().observe(seen), IntervalCoordinates(0.0).observe(seen)
    scale = solve_scale(outcomes, intervals)
    before, after = (seen.log_scores(one) for one in (seen.dist, Transformed(seen.dist, scale)))
    possible = np.isfinite(before)
    logs = np.where(possible, after, 0.0) - np.where(possible, before, 0.0)
    order = np.argsort(np.concatenate([places for places, _ in predictions]))
    gain = judged.gain_of_spread(weights, scale.factor, logs[order])
    return scale.factor if gain > PRICE_OF_ONE + 1.0 / judged.weights.sum() else 1.0


def paired(differences: Array, weights: Array) -> tuple[float, float]:
    """Return the mean of paired differences and its standard error."""
    total = weights.sum()
    mean = (weights * differences).sum() / total
    variance = (weights * (differences - mean) ** 2).sum() / max(total - 1, 1.0)
    return float(mean), float(np.sqrt(variance / total))
