"""The display of an audit draws its worst segments."""

import numpy as np
from numpy.testing import assert_allclose

import regcal
from regcal.plots import AuditDisplay


def test_points_and_bars_are_those_of_the_segments(data):
    """Differences as points, chance as bars, the worst at the top."""
    X, y, dist = data
    audit = regcal.audit(y + 0.6 * (X[:, 1] > 1), dist, X)
    display = AuditDisplay.from_audit(audit, segments=4, name="model")
    shown = audit.segments[:4]
    ax = display.ax_
    points = {place: x for line in ax.lines[1:] for x, place in zip(*line.get_data(), strict=True)}

    assert_allclose([points[k] for k in range(4)], [one.difference for one in shown])
    assert_allclose([bar.get_x() for bar in ax.patches], [one.lower for one in shown])
    assert [label.get_text().split("\n")[0] for label in ax.get_yticklabels()] == [
        one.segment for one in shown
    ]
    assert ax.get_ylim()[0] > ax.get_ylim()[1]
    assert ax.get_title(loc="left") == "model"


def test_predictions_are_audited(odd):
    """The way from predictions, with a note on censored rows."""
    outcomes, dist = odd
    group = np.arange(len(dist)) % 2
    display = AuditDisplay.from_predictions(outcomes, dist, groups=group, n_draws=100)

    assert len(display.audit.segments) == 3
    assert "right-censored" in " ".join(text.get_text() for text in display.ax_.texts)


def test_an_estimator_is_audited_along_its_features(data):
    """Unless other covariates are given."""
    X, y, dist = data

    class Model:
        def predict_dist(self, X):
            return dist

    own = AuditDisplay.from_estimator(Model(), X, y, n_draws=50)
    other = AuditDisplay.from_estimator(Model(), X, y, covariates={"z": X[:, 0]}, n_draws=50)

    assert {one.covariate for one in own.audit.segments} == {"", "x0", "x1"}
    assert {one.covariate for one in other.audit.segments} == {"", "z"}
    assert own.ax_.get_title(loc="left") == "Model"
