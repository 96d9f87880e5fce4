"""What became of the statements in the paper's Section 6."""

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from itertools import product

from regcal.reproduce.cells import PAPER_METHODS
from regcal.reproduce.means import UNCALIBRATED, Mean, Scores, Setting, Variant

_EMPIRICAL = PAPER_METHODS[:2]
_E_LOGISTIC, _E_BETA, _GPC = PAPER_METHODS


@dataclass(frozen=True)
class Count:
    """In how many comparisons something is larger, and how many of these are clear."""

    larger: int
    clearly_larger: int
    clearly_smaller: int
    total: int

    @classmethod
    def of(cls, gains: Iterable[Mean]) -> "Count":
        """Count positive differences."""
        gains = list(gains)
        clear = [gain for gain in gains if gain.clear]
        return cls(
            larger=sum(gain.value > 0 for gain in gains),
            clearly_larger=sum(gain.value > 0 for gain in clear),
            clearly_smaller=sum(gain.value < 0 for gain in clear),
            total=len(gains),
        )

    @property
    def most(self) -> bool:
        """Whether it is larger in more than half of the comparisons."""
        return 2 * self.larger > self.total


@dataclass(frozen=True)
class Claim:
    """A statement of the paper's Section 6 and what was measured.

    The verdict is "held", "partly held" or "not held". "Mostly" holds in more than half of the
    comparisons, "several" in two that are clear; a statement without such a word holds in all, and
    partly in more than half.
    """

    statement: str
    measured: str
    verdict: str


def _verdict(held: bool) -> str:
    return "held" if held else "not held"


def claims(scores: Scores) -> list[Claim]:
    """Return the paper's claims about the study, judged by its own methods.

    Claims that need numbers of thresholds which the study does not have are left out.

    Parameters
    ----------
    scores : Scores

    Returns
    -------
    list of Claim
    """
    makers: list[tuple[Callable[[Scores], Claim], set[int]]] = [
        (_some_method_is_better, {8, 16}),
        (_few_thresholds_are_too_few, {8}),
        (_empirical_methods_beat_the_base, {16, 32}),
        (_empirical_methods_are_best_between, {8, 16, 32, 64}),
        (_empirical_methods_fall, {16, 32, 64}),
        (_beta_beats_logistic, {8}),
        (_gpc_is_best, {8}),
        (_gpc_gains, {8, 48}),
        (_gpc_drops, {48, 64}),
    ]
    return [make(scores) for make, needed in makers if needed <= set(scores.compared)]


def _best(scores: Scores, setting: Setting, options: list[Variant]) -> Mean:
    """Return the best option's gain over the uncalibrated model."""
    gains = [scores.gain(setting, option, UNCALIBRATED) for option in options]
    return max(gains, key=lambda gain: gain.value)


def _some_method_is_better(scores: Scores) -> Claim:
    many = [count for count in scores.compared if count > 8]
    count = Count.of(
        _best(scores, setting, [(method, k) for method in PAPER_METHODS])
        for setting, k in product(scores.settings(), many)
    )
    return Claim(
        "With more than 8 target values, some calibrated method is always better than the "
        "uncalibrated model",
        f"the best of the three is better in {_told(count)}",
        _verdict(count.larger == count.total),
    )


def _few_thresholds_are_too_few(scores: Scores) -> Claim:
    count = Count.of(
        scores.gain(setting, UNCALIBRATED, (method, 8))
        for setting, method in product(scores.settings(), PAPER_METHODS)
    )
    return Claim(
        "With 8 target values the methods are mostly worse than the uncalibrated model",
        f"worse in {_told(count)}",
        _verdict(count.most),
    )


def _empirical_methods_beat_the_base(scores: Scores) -> Claim:
    counts = {
        name: Count.of(
            scores.gain(setting, (method, k), UNCALIBRATED)
            for setting, k in product(scores.settings(), (16, 32))
        )
        for name, method in (("e-logistic", _E_LOGISTIC), ("e-beta", _E_BETA))
    }
    larger = sum(count.larger for count in counts.values())
    total = sum(count.total for count in counts.values())
    verdict = "partly held" if total / 2 < larger < total else _verdict(larger == total)
    return Claim(
        "At 16 and 32 target values e-logistic and e-beta are better than the uncalibrated model",
        "; ".join(f"{name} better in {_told(count)}" for name, count in counts.items()),
        verdict,
    )


def _empirical_methods_are_best_between(scores: Scores) -> Claim:
    best = [scores.best(*pair) for pair in product(scores.settings(), _EMPIRICAL)]
    inside = sum(k in (16, 32) for k in best)
    where = ", ".join(f"{best.count(k)} at {k}" for k in scores.compared)
    return Claim(
        "e-logistic and e-beta are mostly best at 16 or 32 target values",
        f"best at 16 or 32 in {inside} of {len(best)} ({where})",
        _verdict(2 * inside > len(best)),
    )


def _empirical_methods_fall(scores: Scores) -> Claim:
    count = Count.of(
        scores.gain(setting, (method, 32), (method, 64))
        for setting, method in product(scores.settings(), _EMPIRICAL)
    )
    return Claim(
        "e-logistic and e-beta mostly fall as target values become many",
        f"lower at 64 than at 32 in {_told(count)}",
        _verdict(count.most),
    )


def _beta_beats_logistic(scores: Scores) -> Claim:
    count = Count.of(
        scores.gain(setting, (_E_BETA, k), (_E_LOGISTIC, k))
        for setting, k in product(scores.settings(), scores.compared)
    )
    return Claim(
        "e-beta is mostly better than e-logistic", f"better in {_told(count)}", _verdict(count.most)
    )


def _gpc_is_best(scores: Scores) -> Claim:
    others = [
        min(
            [scores.gain(setting, (_GPC, k), (method, k)) for method in _EMPIRICAL]
            + [scores.gain(setting, (_GPC, k), UNCALIBRATED)],
            key=lambda gain: gain.value,
        )
        for setting, k in product(scores.settings(), scores.compared)
    ]
    count = Count.of(others)
    return Claim(
        "GPC is mostly the best of the three and the uncalibrated model",
        f"above the next best in {_told(count)}",
        _verdict(count.most),
    )


def _gpc_gains(scores: Scores) -> Claim:
    count = Count.of(scores.gain(setting, (_GPC, 48), (_GPC, 8)) for setting in scores.settings())
    return Claim(
        "GPC mostly gains with the number of target values",
        f"higher at 48 than at 8 in {_told(count)}",
        _verdict(count.most),
    )


def _gpc_drops(scores: Scores) -> Claim:
    count = Count.of(scores.gain(setting, (_GPC, 48), (_GPC, 64)) for setting in scores.settings())
    return Claim(
        "GPC drops in several cases at 64 target values",
        f"lower at 64 than at 48 in {_told(count)}",
        _verdict(count.clearly_larger >= 2),
    )


def _told(count: Count) -> str:
    return (
        f"{count.larger} of {count.total} (clearly so in {count.clearly_larger}, clearly the "
        f"other way in {count.clearly_smaller})"
    )
