"""The verdict tells truth from error, and never says two things."""

import re

import numpy as np
import pytest
from rows import toy

import regcal
from regcal import Normal


def page_of(y, dist, folder, **options):
    """Return the text of a report, and its verdict without markup."""
    text = regcal.report(y, dist, path=folder / "r.html", **options).read_text(encoding="utf-8")
    section = re.search(r'<section class="verdict.*?</section>', text, re.DOTALL).group()
    return re.sub(r"<[^>]+>", " ", section)


def test_verdict_tells_truth_from_error(tmp_path):
    """The truth is calibrated as far as its rows can tell; the normal is told off, with places."""
    y, truth, wrong = toy(800)
    good, bad = page_of(y, truth, tmp_path), page_of(y, wrong, tmp_path)

    assert "“model” is calibrated, as far as 800 rows can tell" in good
    assert "“model” is not calibrated" in bad
    assert "probabilities are off by up to" in bad
    assert re.search(
        r"Intervals that should hold 90 % of the outcomes hold 9\d\.\d % .*too wide", bad
    )
    assert "log score changed" not in bad


def test_verdict_says_what_calibration_changed(tmp_path):
    """With `before`, both are judged, and improvements are named with their uncertainty."""
    y, truth, wrong = toy(800)
    text = page_of(y, truth, tmp_path, before=wrong)

    assert "“after” is calibrated, as far as 800 rows can tell; “before” is not" in text
    assert re.search(r"log score changed by \+[\d.]+ ± [\d.]+ \(better\)", text)
    assert re.search(r"CRPS by -[\d.]+ ± [\d.]+ \(better\)", text)


def test_verdict_says_what_its_rows_could_have_seen(tmp_path):
    """More rows see smaller errors."""
    sizes = []
    for n in (150, 2000):
        y, truth, _ = toy(n)
        found = re.search(
            r"hold less than ([\d.]+) % or more than ([\d.]+) %, or P\(y ≤ t\) that is off by "
            r"([\d.]+) on average",
            page_of(y, truth, tmp_path),
        )
        sizes.append([float(number) for number in found.groups()])
    (low, high, shift), (sharper_low, sharper_high, sharper_shift) = sizes

    assert low < sharper_low < 90 < sharper_high < high
    assert sharper_shift < shift


@pytest.mark.parametrize("seed", range(3))
@pytest.mark.parametrize("spread", [1.0, 1.15])
def test_verdict_never_contradicts_its_numbers(spread, seed, tmp_path):
    """It says "calibrated" exactly if no number is outside the range beside it.

    At these spreads coverage is at the edge of what chance explains.
    """
    rng = np.random.default_rng(seed)
    loc = rng.normal(size=309)
    text = page_of(rng.normal(loc), Normal(loc, np.full(309, spread)), tmp_path)
    hold, low, high = (
        float(number)
        for number in re.search(
            r"90 % intervals hold\s+([\d.]+) %\s.*?([\d.]+) to ([\d.]+)", text
        ).groups()
    )
    calibrated = "“model” is calibrated, as far as" in text

    assert calibrated != ("✗" in text)
    assert not (calibrated and not low <= hold <= high)
    if not low <= hold <= high:
        assert "Intervals that should hold 90 %" in text


def test_an_impossible_outcome_is_named(tmp_path):
    """One outcome where nothing was predicted is enough, and the sentence says so."""
    rng = np.random.default_rng(0)
    y = rng.normal(size=300)
    y[7] = 9.0

    assert "At least one outcome is so high that" in page_of(
        y, Normal(np.zeros(300), np.ones(300)), tmp_path
    )


def test_a_wrong_mean_and_wrong_tails_are_named(tmp_path):
    """Outcomes that lie higher than predicted, all of them."""
    rng = np.random.default_rng(0)
    text = page_of(rng.normal(0.5, size=500), Normal(np.zeros(500), np.ones(500)), tmp_path)

    assert re.search(r"outcomes lie about 0\.[456]\d* above their predicted mean", text)
    assert re.search(r"% \(by chance [\d.]+ to [\d.]+ %\) of the outcomes lie above the", text)


@pytest.mark.parametrize("n", [1, 3])
def test_a_handful_of_rows_is_no_good_news(n, tmp_path):
    """What would not have shown a gross error cannot call a model calibrated."""
    dist = Normal(np.zeros(n), np.ones(n))
    text = regcal.report(np.linspace(0.1, 0.5, n), dist, path=tmp_path / "few.html").read_text(
        encoding="utf-8"
    )

    rows = "1 row" if n == 1 else "3 rows"
    assert f"{rows} cannot tell whether “model” is calibrated" in text
    assert '<section class="verdict open"' in text
    assert "is calibrated, as far as" not in text


def test_a_handful_of_rows_can_be_bad_news(tmp_path):
    """Outcomes that are impossible need no company."""
    dist = Normal(np.zeros(3), np.ones(3))

    assert "“model” is not calibrated" in page_of([9.0, 9.5, 9.9], dist, tmp_path)


def test_a_wrong_spread_of_a_group_is_in_the_verdict(tmp_path):
    """The audit's worst segment is named by its intervals, in the verdict and in its table."""
    rng = np.random.default_rng(0)
    loc, group = rng.uniform(0.0, 100.0, 2000), rng.integers(10, size=2000)
    spread = np.where(group == 3, 2.0, 0.9)
    y, dist = rng.normal(loc, spread), Normal(loc, 1.0)
    audit = regcal.audit(y, dist, groups=group)
    page = regcal.report(y, dist, path=tmp_path / "r.html", audit=audit, target_name="rent")
    text = page.read_text(encoding="utf-8")

    assert re.search(r"The worst: group = 3: 90 % intervals hold \d\d % \(\d+ rows\)", text)
    assert "<td>rent in its 90 % interval</td>" in text
