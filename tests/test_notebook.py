"""What a terminal and a notebook show: short text, and valid HTML that loads nothing."""

import re
import xml.etree.ElementTree as ET
from html.parser import HTMLParser

import numpy as np
import pytest
import scipy.stats
from cases import CALIBRATED, CALIBRATORS, DISTRIBUTIONS, STANDARD, fitted_calibrator
from sklearn import config_context
from sklearn.linear_model import BayesianRidge
from sklearn.model_selection import GridSearchCV
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

import regcal
from regcal.notebook import card, facts, html_of, number

VOID = {"br", "hr", "img", "input", "link", "meta", "path", "rect", "circle"}


class Checked(HTMLParser):
    """Collects what is wrong with a piece of HTML, and what a reader sees."""

    def __init__(self, text):
        super().__init__()
        self.open, self.wrong, self.pictures = [], [], []
        self.words = ""
        self.feed(text)
        self.close()
        self.wrong += [f"<{tag}> is not closed" for tag in self.open]

    def handle_starttag(self, tag, attrs):
        attributes = dict(attrs)
        if tag == "svg":
            self.pictures.append(attributes)
        if tag in ("script", "iframe", "img", "link"):
            self.wrong.append(f"<{tag}> is not wanted")
        self.wrong += [f"{key} loads {value}" for key, value in attrs if key in ("src", "href")]
        self.wrong += [f"{key} runs code" for key in attributes if key.startswith("on")]
        if tag not in VOID:
            self.open.append(tag)

    def handle_startendtag(self, tag, attrs):
        self.handle_starttag(tag, attrs)
        if tag not in VOID:
            self.open.pop()

    def handle_endtag(self, tag):
        if not self.open or self.open.pop() != tag:
            self.wrong.append(f"</{tag}> closes something else")

    def handle_data(self, data):
        self.words += " " + data


def assert_sound(text):
    """Check a card: well formed, nothing loaded, colours of the page, pictures in words."""
    page = Checked(text)
    assert page.wrong == []
    assert "http" not in text.replace("http://www.w3.org", "")
    assert "url(" not in text
    assert all(picture["role"] == "img" and picture["aria-label"] for picture in page.pictures)
    for svg in re.findall(r"<svg.*?</svg>", text, re.S):
        ET.fromstring(svg)
        assert "nan" not in svg.lower()
        assert "inf" not in svg.lower()
    return page


# A card is that of a class, whatever base it has.
every_distribution = pytest.mark.parametrize(
    "case",
    DISTRIBUTIONS + [case for case in CALIBRATED if case.base == "normal"],
    ids=lambda case: case.name,
)


@every_distribution
@pytest.mark.parametrize("n_rows", [0, 1, 12])
def test_every_distribution_has_a_card(case, n_rows):
    """None, one or many rows: a title, a line per shown row, a density each, the rest counted."""
    dist = case.make(seed=1, n_rows=max(1, n_rows))[:n_rows]

    page = assert_sound(dist._repr_html_())

    assert repr(dist) in page.words
    assert len(page.pictures) == min(n_rows, 5)
    assert ("and 7 more rows" in page.words) == (n_rows == 12)
    assert ("no rows" in page.words) == (n_rows == 0)


@every_distribution
def test_every_distribution_is_one_short_line(case):
    """However many rows and layers, the text is a line that ends with the number of rows."""
    dist = case.make(seed=1, n_rows=40)

    assert re.fullmatch(r"\w+\(.*rows=40\)", repr(dist))
    assert repr(dist).count("rows=") == 1
    assert len(repr(dist)) < 80


def test_figures_are_those_of_the_distribution():
    """The table holds mean, spread and quantiles with four digits."""
    words = Checked(regcal.Normal([1234.0], [2.0])._repr_html_()).words

    for figure in ("1234", " 2 ", "1231", "1237", "5 %", "median"):
        assert figure in words


@pytest.mark.parametrize(
    "dist",
    [
        regcal.ScipyDistribution(scipy.stats.cauchy(0.0, [1.0, 1e200])),
        regcal.ScipyDistribution(scipy.stats.gamma([0.01, 0.5])),
        regcal.ScipyDistribution(scipy.stats.pareto(0.01)),
        regcal.Normal([0.0, 1e12], [1e-300, 1e3]),
        regcal.Normal([1e308, -1e308], [1e300, 1e300]),
        regcal.Histogram([-np.inf, 0.0, 1.0, np.inf], [[0.4, 0.2, 0.4]]),
    ],
    ids=["cauchy", "poles", "no mean", "far apart", "largest", "open"],
)
def test_extreme_rows_are_shown(dist):
    """Poles, infinite quantiles and ranges beyond all numbers leave a sound card."""
    assert_sound(dist._repr_html_())


def test_names_are_escaped():
    """A family, a title, a fact may have any name."""

    class Odd(type(scipy.stats.norm)):
        pass

    text = regcal.ScipyDistribution(Odd(name="<b>&'\"")(loc=[0.0]))._repr_html_()

    assert "<b>" not in text
    assert "&lt;b&gt;&amp;" in text
    assert "<i>" not in card("<i>") + facts([("<i>", "<i>")])
    candidates = [("<script>", regcal.IdentityCalibrator())]
    chosen = regcal.AutoCalibrator(candidates).fit(regcal.Normal([0.0, 1.0], 1.0), [0.0, 1.0])
    assert "<script>" not in html_of(chosen)
    assert "<script>" in Checked(html_of(chosen)).words


@pytest.mark.parametrize(
    ("value", "words"),
    [(0.0, "0"), (-1.5, "−1.5"), (np.inf, "∞"), (-np.inf, "−∞"), (np.nan, "unknown")],
)
def test_numbers_in_words(value, words):
    """Numbers that are none have a sign or a word."""
    assert number(value) == words


def test_audits_show_their_worst_segments():
    """Figures of the first segments, the number of the others, and names as text."""
    y = np.random.default_rng(0).normal(size=200)
    dist = regcal.Normal(np.zeros(200), 1.0)
    audit = regcal.audit(y, dist, {"<b>": y, "x": np.arange(200.0), "z": -y})
    text = audit._repr_html_()
    page, worst = assert_sound(text), audit.segments[0]

    assert "<b>" not in text and "<b>" in page.words
    assert audit.headline() in page.words
    for figure in (str(worst.n_rows), number(worst.predicted), number(worst.observed)):
        assert figure in page.words
    assert "and 6 more segments" in page.words


def test_explanations_show_their_sentences():
    """What the model got wrong, as text; and the card of its calibrator says where to ask."""
    rng = np.random.default_rng(0)
    dist, x = regcal.Normal(np.zeros(200), 1.0), {"<b>": rng.uniform(size=200)}
    y = rng.normal(4.0 * x["<b>"])
    calibrator = regcal.ConditionalCalibrator("additive").fit(dist, y, covariates=x)
    explanation = regcal.explain(calibrator, dist, y, x)
    text = explanation._repr_html_()
    page = assert_sound(text)

    assert "<b>" not in text and explanation.sentences()[0] in page.words
    assert explanation.headline() in page.words
    assert "regcal.explain says it" in assert_sound(html_of(calibrator)).words


# --------------------------------------------------------------------------------------- estimators


@pytest.mark.parametrize("name", CALIBRATORS)
def test_every_calibrator_shows_what_it_learnt(name):
    """The diagram of scikit-learn comes first; once fitted, a card with figures follows."""
    fresh = CALIBRATORS[name]()
    fitted = fitted_calibrator(name, "normal", 1, STANDARD)

    assert html_of(fresh) == ""
    page = assert_sound(html_of(fitted))
    assert f"{type(fitted).__name__}, fitted" in page.words
    for html in (fitted._repr_html_(), fitted._repr_mimebundle_()["text/html"]):
        assert html.index("sk-top-container") < html.index("regcal-card")
    assert "sk-top-container" in fresh._repr_html_()
    assert len(repr(fresh)) < 700


@pytest.mark.parametrize("name", ["scale", "pit", "gpc", "gp-density", "gpc-paper", "auto"])
def test_maps_are_drawn(name):
    """A calibrator with a map of probabilities has its picture."""
    fitted = fitted_calibrator(name, "normal", 1, STANDARD)

    assert len(assert_sound(html_of(fitted)).pictures) == 1


def test_the_picture_tells_the_map():
    """The words of the picture are values of the map, and its line goes through them."""
    dist = regcal.Normal(np.zeros(400), 1.0)
    shifted = regcal.PITCalibrator().fit(dist, np.random.default_rng(0).normal(1.0, 1.0, 400))

    text = html_of(shifted)
    expected = shifted.transform(dist[:1]).cdf(0.0)[0]

    assert f"0.5 becomes {expected:.2f}" in text
    assert f"{30 + 120 * 0.5:.1f} {8 + 120 * (1 - expected):.1f}" in text


@pytest.mark.parametrize(
    ("spread", "words"), [(1.0, "the base model "), (3.0, "the base model with 2.98")]
)
def test_the_start_of_a_process_is_told(spread, words):
    """A Gaussian process starts from the base model, or from what simpler methods make of it."""
    y = spread * scipy.stats.norm.ppf((np.arange(200) + 0.5) / 200)

    fitted = regcal.GPCalibrator(thresholds=8).fit(regcal.Normal(np.zeros(200), 1.0), y)

    assert words in Checked(html_of(fitted)).words


@pytest.fixture(scope="module")
def rows():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(60, 2))
    return X, X[:, 0] + rng.normal(size=60)


def models():
    candidates = [(name, regcal.get_calibrator(name)) for name in ("identity", "scale")]
    ridge = BayesianRidge()
    return {
        "one": regcal.CalibratedRegressorCV(ridge, "scale", ensemble=False),
        "ensemble": regcal.CalibratedRegressorCV(ridge, "scale", ensemble=True),
        "auto": regcal.CalibratedRegressorCV(ridge, regcal.AutoCalibrator(candidates)),
        "pipeline inside": regcal.CalibratedRegressorCV(
            make_pipeline(StandardScaler(), ridge), "pit"
        ),
        "residuals": regcal.paper_ols(),
    }


@pytest.mark.parametrize("name", models())
def test_regressors_show_what_they_learnt(name, rows):
    """Diagram and card, before and after the fit."""
    model = models()[name]
    before, text = model._repr_html_(), repr(model)

    model.fit(*rows)

    assert html_of(models()[name]) == ""
    assert "sk-top-container" in before
    assert "regcal-card" not in before
    assert_sound(html_of(model))
    assert "regcal-card" in model._repr_html_()
    assert "regcal-card" in model._repr_mimebundle_()["text/html"]
    assert repr(model) == text
    assert len(text.splitlines()) <= 6


def test_ends_that_were_found_are_told(rows):
    """The card of a calibrator and of a model says that values below 0 are seen at 0."""
    X, y = rows
    dry = np.maximum(y, 0.0)
    words = "values at or below 0 are seen at 0"

    for outcomes, told in ((dry, True), (y, False)):
        scale = regcal.ScaleCalibrator().fit(regcal.Normal(X[:, 0], 1.0), outcomes)
        model = models()["one"].fit(X, outcomes)
        for fitted in (scale, model):
            assert (words in assert_sound(html_of(fitted)).words) is told


def test_selection_is_told_and_forgotten(rows):
    """The card says why a method was chosen, until a fit without a choice."""
    model = models()["auto"].fit(*rows)
    assert "chose" in html_of(model)

    model.set_params(calibrator="scale").fit(*rows)
    assert "chose" not in html_of(model)
    assert not hasattr(model, "selection_")


def test_text_display_is_respected(rows):
    """Users who asked scikit-learn for text get text."""
    model = models()["one"].fit(*rows)

    with config_context(display="text"):
        assert not hasattr(model, "_repr_html_")
        assert list(model._repr_mimebundle_()) == ["text/plain"]


@pytest.mark.parametrize("fitted", [False, True])
def test_diagrams_of_scikit_learn_hold_the_regressor(rows, fitted):
    """Pipelines and searches show it, and the model in it."""
    model = models()["one"]
    pipeline = make_pipeline(StandardScaler(), model)
    search = GridSearchCV(model, {"point": ["mean"]}, cv=2)
    for outer in (pipeline, search):
        if fitted:
            outer.fit(*rows)
        html = outer._repr_html_()
        assert "CalibratedRegressorCV" in html
        assert "BayesianRidge" in html


@pytest.mark.parametrize(("n_rows", "few"), [(20, True), (40, False)])
def test_cards_say_what_to_expect_of_few_rows(rng, n_rows, few):
    """Below 30 calibration rows, the card says how little they tell."""
    calibrator = regcal.ScaleCalibrator().fit(
        regcal.Normal(np.zeros(n_rows), 1.0), rng.normal(size=n_rows)
    )

    assert ("known to ± 13 % only" in calibrator._repr_html_()) is few
