"""The report: its numbers, hostile text, and the page in a real browser."""

import json
import re
import shutil

import numpy as np
import pytest
from numpy.testing import assert_allclose
from rows import toy

import regcal
from regcal import Normal, metrics

FLAGS = (
    "--headless=new",
    "--no-sandbox",
    "--disable-gpu",
    "--disable-quic",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
    # No name resolves, so nothing can be fetched.
    "--host-resolver-rules=MAP * ~NOTFOUND",
)


HOSTILE = "<script>document.title='owned'</script>\"'&amp;</td>{{ 7*7 }}"


def page_data(text):
    """Return what the page's scripts are given."""
    found = re.search(r'<script type="application/json" id="data">(.*?)</script>', text, re.DOTALL)
    return json.loads(found.group(1))


def visible(text):
    """Return the page without its scripts and styles."""
    return re.sub(r"<(script|style).*?</\1>", "", text, flags=re.DOTALL)


# --------------------------------------------------------------------------------- words, numbers


def test_page_holds_the_numbers_of_the_metrics(tmp_path):
    """Charts and table show what the metrics return."""
    y, truth, wrong = toy(500)
    text = regcal.report(y, truth, wrong, tmp_path / "r.html").read_text(encoding="utf-8")
    data = page_data(text)
    curve = metrics.reliability_curve(y, truth)
    row = data["explorer"][3]
    number = int(row["name"])
    grid = np.linspace(row["low"], row["high"], len(row["cdf"][0]))

    assert [model["name"] for model in data["models"]] == ["before", "after"]
    assert_allclose(data["models"][0]["pit"]["density"], metrics.pit_histogram(y, wrong).density)
    observed = np.array(data["models"][1]["reliability"]["observed"], dtype=float)
    assert_allclose(observed, curve.observed, rtol=1e-4)
    assert_allclose(row["outcome"], y[number], rtol=1e-4)
    assert_allclose(row["cdf"][0], wrong[number].cdf(grid[np.newaxis])[0], atol=1e-3)
    assert_allclose(row["cdf"][1], truth[number].cdf(grid[np.newaxis])[0], atol=1e-3)
    assert f"{metrics.crps(y, truth).mean():.4f}" in text


def test_page_asks_no_server(tmp_path):
    """Nothing in the page points to another file, and its policy forbids asking."""
    y, truth, wrong = toy(200)
    text = regcal.report(y, truth, wrong, tmp_path / "r.html").read_text(encoding="utf-8")

    assert not re.search(r"(?:src|href)\s*=\s*[\"'](?!#)", visible(text))
    assert "default-src 'none'" in text
    assert "sourceMappingURL" not in text
    assert "Permission is hereby granted" in text


def test_large_data_stay_small(tmp_path):
    """100 000 rows give a page far below 5 MB, computed from some of them."""
    y, truth, wrong = toy(100_000)
    file = regcal.report(y, truth, wrong, tmp_path / "large.html")
    text = file.read_text(encoding="utf-8")

    assert file.stat().st_size < 2e6
    assert "Scores use 2,000 and tests 20,000 of 100,000 rows, drawn at random" in text
    assert len(page_data(text)["explorer"]) == 150


def test_same_seed_same_page(tmp_path):
    """The page is a function of its input."""
    y, truth, _ = toy(300)
    first = regcal.report(y, truth, path=tmp_path / "a.html").read_bytes()

    assert regcal.report(y, truth, path=tmp_path / "b.html").read_bytes() == first


def test_weights_of_zero_leave_rows_out(tmp_path):
    """A row of weight 0 changes neither verdict nor scores."""
    y, truth, _ = toy(300)
    weights = (np.arange(300) < 200).astype(float)
    some = regcal.report(y, truth, path=tmp_path / "a.html", sample_weight=weights)
    part = regcal.report(y[:200], truth[:200], path=tmp_path / "b.html")

    assert visible(some.read_text(encoding="utf-8")) == visible(part.read_text(encoding="utf-8"))


def odd_rows(n, seed=0):
    """Return rain-like outcomes of which some are censored, predictions that fit, and others."""
    rng = np.random.default_rng(seed)
    loc = rng.uniform(-1.0, 2.0, n)
    y, limit = np.maximum(rng.normal(loc), 0.0), rng.exponential(3.0, n) + 0.2
    outcomes = regcal.Outcomes.right_censored(np.minimum(y, limit), y <= limit)
    return outcomes, regcal.Clipped(Normal(loc, np.ones(n)), low=0.0), Normal(loc, np.full(n, 1.5))


def test_page_judges_nothing_after_the_end_of_follow_up(tmp_path):
    """A threshold of which nothing is known is named in the notes, and in no sentence or figure."""
    y, _, right = toy(200)
    limit = float(np.quantile(y, 0.6))
    seen = regcal.Outcomes.right_censored(np.minimum(y, limit), y < limit)
    wrong = Normal(right.loc + 2.0 * right.scale, right.scale)
    text = regcal.report(
        seen, wrong, path=tmp_path / "r.html", thresholds=[limit - 0.5, limit, limit + 0.5]
    ).read_text(encoding="utf-8")

    assert f"nothing is known at {limit + 0.5:g}, beyond what was seen" in text
    [model] = page_data(text)["models"]
    assert_allclose(model["thresholds"], [limit - 0.5, limit], rtol=1e-3)
    assert "nan" not in visible(text)


def test_page_says_what_was_done_with_censored_rows(tmp_path):
    """Verdict and table explain themselves, and the explorer has what was seen, with its masses."""
    outcomes, dist, before = odd_rows(300)
    text = regcal.report(outcomes, dist, before, tmp_path / "r.html").read_text(encoding="utf-8")
    n_censored = int((~outcomes.exact_rows).sum())
    rows = page_data(text)["explorer"]

    assert f"{n_censored} of 300 outcomes are right-censored: frequencies by Kaplan-Meier" in text
    assert "the one to compare models by" in text
    assert "“after” is calibrated, as far as 300 rows can tell; “before” is not" in text
    assert '<h2 id="mass-title">Point masses</h2>' in text
    assert "interval score" not in text.replace("there is no interval score", "")
    for row in rows[:40]:
        number = int(row["name"])
        low, high = row["outcome"]
        assert_allclose(low, outcomes.lower[number], rtol=1e-4)
        assert (high is None) == np.isinf(outcomes.upper[number])
        place, mass = row["masses"][1][0] if row["masses"][1] else (0.0, 0.0)
        assert_allclose(mass, dist.mass(0.0)[number], atol=0.005)
        if mass > 0.1:
            # the step is in the curve, and where the mass is
            steps = np.diff(row["cdf"][1])
            assert_allclose(steps.max(), mass, atol=1e-3)
            assert_allclose(row["points"][steps.argmax()], place, atol=1e-4)
            assert_allclose(row["low"] + place * (row["high"] - row["low"]), 0.0, atol=1e-3)


def test_page_names_the_groups_that_are_wrong(tmp_path):
    """A model that is right on the whole and wrong for a group is said to be just that."""
    rng = np.random.default_rng(0)
    group = rng.integers(8, size=3000)
    y = rng.normal(np.select([group == 3, group == 4], [0.4, -0.4], 0.0))
    dist = Normal(np.zeros(3000), np.sqrt(1.0 + 0.25 * 0.4**2))
    audit = regcal.audit(y, dist, groups=group, costs={1.0: (1.0, 4.0)})
    shown = regcal.report(y, dist, path=tmp_path / "r.html", audit=audit)
    plain = regcal.report(y, dist, path=tmp_path / "p.html")
    text = visible(shown.read_text(encoding="utf-8"))

    assert "“model” is calibrated on the whole, but not for all rows" in text
    assert "For whom is it wrong?" in text and "Cost of decisions per row" in text
    for one in audit.segments[:2]:
        assert one.segment in ("group = 3", "group = 4")
        assert one.segment in text and f"<td>{one.observed:.3f}</td>" in text
        assert one.p_value < 0.001 and "<td>&lt; 0.001</td></tr>" in text
    assert f"{audit.costs[0].predicted:.4g}" in text
    assert "For whom" not in plain.read_text(encoding="utf-8")


def test_intervals_with_a_guarantee_have_a_section(tmp_path):
    """What was promised, what became of it, and what it cost; other shapes are refused."""
    y, truth, _ = toy(400)
    low, high = truth.interval(0.9)
    wide = np.stack([low - 0.1, high + 0.1], axis=1)
    text = regcal.report(y, truth, path=tmp_path / "r.html", intervals={0.9: wide}).read_text(
        "utf-8"
    )
    held = np.mean((wide[:, 0] <= y) & (y <= wide[:, 1]))

    assert f'<th scope="row">90 %</th><td>{100 * held:.1f} % ±' in text
    assert f"<td>{np.mean(high - low) + 0.2:.4g}</td><td>{np.mean(high - low):.4g}</td>" in text
    with pytest.raises(ValueError, match="have the shape \\(2, 400\\)"):
        regcal.report(y, truth, path=tmp_path / "r.html", intervals={0.9: wide.T})
    with pytest.raises(ValueError, match="Write 90 % as"):
        regcal.report(y, truth, path=tmp_path / "r.html", intervals={90: wide})


def test_page_of_a_calibrated_model_says_that_no_group_is_wrong(tmp_path):
    """Good news stays good news."""
    y, truth, _ = toy(400)
    audit = regcal.audit(y, truth, {HOSTILE: np.arange(400.0)})
    text = regcal.report(y, truth, path=tmp_path / "r.html", audit=audit).read_text("utf-8")

    assert "“model” is calibrated, as far as 400 rows can tell" in text
    assert "By segments: No sign of miscalibration in any segment" in text
    assert "<script>document" not in text


@pytest.fixture(scope="module")
def explained():
    """Return rows that are wrong along a number and for a kind, calibrated and explained."""
    rng = np.random.default_rng(0)
    x = {HOSTILE: rng.uniform(size=300), "kind": rng.choice(["a", "b"], 300)}
    dist = Normal(np.zeros(300), 1.0)
    y = rng.normal(3.0 * x[HOSTILE], np.where(x["kind"] == "a", 3.0, 1.0))
    calibrator = regcal.ConditionalCalibrator("additive").fit(dist, y, covariates=x)
    return y, dist, regcal.explain(calibrator, dist, y, x, unit="days")


def test_page_says_where_the_model_was_wrong(explained, tmp_path):
    """Sentences as text, numbers of segments in a table, curves for the figures."""
    y, dist, explanation = explained
    file = regcal.report(y, dist, path=tmp_path / "r.html", explanation=explanation)
    text = file.read_text(encoding="utf-8")
    (effect,) = [one for one in explanation.covariates if one.name == "kind"]
    (shown,) = [one for one in page_data(text)["effects"] if one["name"] == "kind"]
    segment = next(one for one in explanation.segments if one.segment == "kind = a")

    assert "Where the model was wrong" in text and "days too" in visible(text)
    assert f"<td>{segment.factor:.2f}</td>" in text
    assert shown["labels"] == ["a", "b"]
    assert_allclose(shown["shift"]["curve"], effect.shift, rtol=1e-4)
    assert_allclose(shown["factor"]["segments"][0][2], segment.factor, rtol=1e-4)
    assert "<script>document" not in text


def test_page_of_an_explanation_without_effects_says_so(tmp_path):
    """Nothing is drawn."""
    y, truth, _ = toy(50)
    nothing = regcal.Explanation((), (), "none", 0.0, 50, 0, "")
    text = regcal.report(y, truth, path=tmp_path / "r.html", explanation=nothing).read_text("utf-8")

    assert "No covariate tells where the model is wrong" in text
    assert 'id="covariate"' not in text
    with pytest.raises(TypeError, match="explanation must be what"):
        regcal.report(y, truth, path=tmp_path / "r.html", explanation=True)


# --------------------------------------------------------------------------------------- bad input


def test_missing_targets_write_no_file(tmp_path):
    """An error, not a page with holes."""
    with pytest.raises(ValueError, match="not finite"):
        regcal.report([0.0, np.nan], Normal([0.0, 0.0], [1.0, 1.0]), path=tmp_path / "r.html")

    assert not list(tmp_path.iterdir())


@pytest.mark.parametrize("y", [[0.3], [2.0] * 25])
def test_one_row_and_a_constant_target_give_a_page(y, tmp_path):
    """Thin data give a page that says so."""
    dist = Normal(np.linspace(0.0, 3.0, len(y)), np.ones(len(y)))
    text = regcal.report(y, dist, dist, tmp_path / "r.html").read_text(encoding="utf-8")

    assert "only large errors can be seen" in text


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"names": ("a", "a")}, "one different name each"),
        ({"names": ("a", "b", "c")}, "one different name each"),
        ({"row_names": ["only one"]}, "1 row names for 2 rows"),
        ({"before": Normal([0.0] * 3, [1.0] * 3)}, "distributions"),
    ],
)
def test_errors_say_the_way_out(options, message, tmp_path):
    """Names have to fit."""
    options = {"before": Normal([0.0, 0.0], [1.0, 2.0]), **options}
    with pytest.raises(ValueError, match=message):
        regcal.report(
            [0.0, 1.0], Normal([0.0, 0.0], [1.0, 1.0]), path=tmp_path / "r.html", **options
        )


def test_an_audit_of_other_rows_is_refused(tmp_path):
    """And what is no audit at all."""
    y, truth, _ = toy(50)
    with pytest.raises(ValueError, match="The audit is of 40 rows and the report of 50"):
        regcal.report(y, truth, path=tmp_path / "r.html", audit=regcal.audit(y[:40], truth[:40]))
    with pytest.raises(TypeError, match="audit must be what"):
        regcal.report(y, truth, path=tmp_path / "r.html", audit=True)


def test_hostile_text_is_only_text(tmp_path):
    """Markup in labels is escaped in the page and cannot end the data."""
    text = hostile_report(tmp_path).read_text(encoding="utf-8")

    assert "<script>document" not in text
    assert "{{ 7*7 }}" in text
    assert page_data(text)["target"] == HOSTILE
    assert page_data(text)["explorer"][0]["name"] == HOSTILE


def hostile_report(folder):
    y, truth, wrong = toy(60)
    return regcal.report(
        y,
        truth,
        wrong,
        folder / "hostile.html",
        title=HOSTILE,
        target_name=HOSTILE,
        names=(HOSTILE, HOSTILE + "2"),
        row_names=[HOSTILE] * 60,
    )


# ----------------------------------------------------------------------------------- real browser


@pytest.fixture(scope="module")
def chromium(tmp_path_factory):
    """Start headless Chromium, without a network."""
    missing = [name for name in ("chromium", "chromedriver") if shutil.which(name) is None]
    if missing:
        pytest.skip(
            f"{' and '.join(missing)} not found: apt-get install chromium chromium-driver "
            "(Debian, Ubuntu), then run again"
        )
    driver = start_chromium(tmp_path_factory.mktemp("profile"))
    driver.execute_cdp_cmd("Network.enable", {})
    driver.execute_cdp_cmd(
        "Network.emulateNetworkConditions",
        {"offline": True, "latency": 0, "downloadThroughput": 0, "uploadThroughput": 0},
    )
    yield driver
    driver.quit()


@pytest.fixture(scope="module", params=[(1280, 900), (390, 844)], ids=["desktop", "phone"])
def browser(request, chromium):
    """Return the browser of desktop or phone width, with what the system prefers unset."""
    width, height = request.param
    metrics_override = {"width": width, "height": height, "deviceScaleFactor": 1}
    chromium.execute_cdp_cmd(
        "Emulation.setDeviceMetricsOverride", {**metrics_override, "mobile": width < 600}
    )
    chromium.execute_cdp_cmd("Emulation.setEmulatedMedia", {"features": []})
    return chromium


def start_chromium(profile):
    from selenium import webdriver
    from selenium.webdriver.chrome.options import Options
    from selenium.webdriver.chrome.service import Service

    options = Options()
    options.binary_location = shutil.which("chromium")
    for flag in (*FLAGS, f"--user-data-dir={profile}"):
        options.add_argument(flag)
    options.set_capability("goog:loggingPrefs", {"browser": "ALL", "performance": "ALL"})
    return webdriver.Chrome(options=options, service=Service(shutil.which("chromedriver")))


@pytest.fixture(scope="module")
def report_file(tmp_path_factory):
    y, truth, wrong = toy(400)
    return regcal.report(y, truth, wrong, tmp_path_factory.mktemp("report") / "report.html")


@pytest.fixture
def page(browser, report_file):
    """Return the browser with the report open, its logs empty."""
    browser.get_log("browser")
    browser.get_log("performance")
    browser.get(report_file.as_uri())
    return browser


def ask(page, script, *arguments):
    return page.execute_script(f"return {script}", *arguments)


def reading(page):
    return page.find_element("id", "reading").text


def requested_addresses(page):
    events = [json.loads(entry["message"])["message"] for entry in page.get_log("performance")]
    sent = [event for event in events if event["method"] == "Network.requestWillBeSent"]
    return [event["params"]["request"]["url"] for event in sent]


def test_page_opens_from_disk_without_errors_or_requests(page, report_file):
    """Only the file itself is read, the console is silent, and all figures are drawn."""
    inked = """[...document.querySelectorAll("canvas")].map((canvas) => {
        const pixels = canvas.getContext("2d").getImageData(0, 0, canvas.width, canvas.height).data;
        return pixels.some((value) => value > 0);
    })"""

    assert page.get_log("browser") == []
    assert requested_addresses(page) == [report_file.as_uri()]
    assert ask(page, inked) == [True] * 8


def test_page_fits_the_screen(page):
    """Nothing makes the page wider than the window."""
    assert ask(page, "document.documentElement.scrollWidth <= window.innerWidth")


def test_dragging_the_threshold_changes_the_probability(page):
    """A mouse drag on the slider, and on the figure, moves the numbers up."""
    from selenium.webdriver.common.action_chains import ActionChains

    for place in ("threshold", "cdf"):
        page.refresh()
        target = page.find_element("id", place)
        page.execute_script("arguments[0].scrollIntoView({block: 'center'})", target)
        start = reading(page)
        distance = int(0.25 * target.size["width"])
        ActionChains(page).drag_and_drop_by_offset(target, distance, 0).perform()
        before, after = (
            [float(number) for number in re.findall(r"(?:before|after) (\d\.\d{3})", text)]
            for text in (start, reading(page))
        )
        assert reading(page) != start, place
        assert len(after) == 2
        assert all(late > early for early, late in zip(before, after, strict=True))


def test_keys_reach_everything(page):
    """Tab visits every control, and arrow keys move threshold and row."""
    from selenium.webdriver.common.keys import Keys

    visited = []
    for _ in range(15):
        page.switch_to.active_element.send_keys(Keys.TAB)
        visited.append(ask(page, "document.activeElement.id"))
        if visited[-1] == "threshold":
            start = reading(page)
            page.switch_to.active_element.send_keys(Keys.HOME, *[Keys.ARROW_RIGHT] * 50)
            assert reading(page) != start
        if visited[-1] == "next":
            start = reading(page)
            page.switch_to.active_element.send_keys(Keys.ENTER)
            assert reading(page) != start
            # the same threshold, of another row
            assert reading(page).partition(":")[0] == start.partition(":")[0]
    assert {"theme", "row", "previous", "next", "typed", "threshold", "line"} <= set(visited)


def test_controls_and_figures_have_names(page):
    """Every control has a label and every figure a text alternative."""
    unnamed = """[...document.querySelectorAll("select, input, button, canvas")].filter((part) =>
        !(part.labels && part.labels.length) && !part.getAttribute("aria-label")
        && !part.textContent.trim()).map((part) => part.id)"""

    assert ask(page, unnamed) == []


def test_explorer_starts_at_the_median_and_says_what_it_shows(page):
    """The first reading is about one half, of 150 of 400 rows."""
    probability = float(re.search(r"after (\d\.\d{3})", reading(page)).group(1))

    assert 0.45 < probability < 0.65
    assert "150 of 400 rows, drawn at random" in page.find_element("id", "explorer").text


def test_threshold_can_be_typed(page, report_file):
    """A typed number is the threshold, also beyond the figure, and stays for other rows."""
    from selenium.webdriver.support.ui import Select

    _, truth, _ = toy(400)
    rows = page_data(report_file.read_text(encoding="utf-8"))["explorer"]
    typed = page.find_element("id", "typed")
    typed.clear()
    typed.send_keys("-0.45")
    Select(page.find_element("id", "row")).select_by_index(7)
    shown = re.search(r"≤ -0.45\): before \d\.\d{3} → after (\d\.\d{3})", reading(page))
    typed.clear()
    typed.send_keys("1000")

    number = int(rows[7]["name"])
    assert_allclose(float(shown.group(1)), truth[number].cdf(-0.45)[0], atol=2e-2)
    assert re.search(r"≤ 1000\): before ≥ [01]\.\d{3} → after ≥ [01]\.\d{3}", reading(page))
    assert page.get_log("browser") == []


def test_answer_is_in_the_first_screen(page):
    """Headline, table and what rows can tell are seen without scrolling, on a phone too."""
    bottom = "document.querySelector('.facts').getBoundingClientRect().bottom"

    assert ask(page, f"{bottom} <= window.innerHeight")


def test_reading_matches_the_distribution(page, report_file):
    """The number in the page is the CDF at the threshold it names."""
    from selenium.webdriver.common.keys import Keys
    from selenium.webdriver.support.ui import Select

    y, truth, wrong = toy(400)
    rows = page_data(report_file.read_text(encoding="utf-8"))["explorer"]
    # The row whose two probabilities differ most at the threshold that the keys go to.
    chosen = int(np.argmax([abs(row["cdf"][0][75] - row["cdf"][1][75]) for row in rows]))
    number = int(rows[chosen]["name"])
    Select(page.find_element("id", "row")).select_by_index(chosen)
    page.find_element("id", "threshold").send_keys(Keys.HOME, *[Keys.ARROW_RIGHT] * 625)
    t, *shown = (
        float(text)
        for text in re.search(
            r"≤ (-?[\d.]+)\): before (\d\.\d{3}) → after (\d\.\d{3})", reading(page)
        ).groups()
    )

    assert abs(shown[0] - shown[1]) > 0.05
    assert_allclose(shown[0], wrong[number].cdf(t)[0], atol=5e-3)
    assert_allclose(shown[1], truth[number].cdf(t)[0], atol=2e-2)
    assert f"Outcome: {float(f'{y[number]:.4g}'):g}" in reading(page)


def test_censored_rows_and_masses_can_be_explored(browser, tmp_path):
    """The reading jumps at a mass, bars have their own axis, and intervals are written out."""
    from selenium.webdriver.support.ui import Select

    outcomes, dist, before = odd_rows(120)
    file = regcal.report(outcomes, dist, before, tmp_path / "odd.html")
    browser.get_log("browser")
    browser.get(file.as_uri())
    rows = page_data(file.read_text(encoding="utf-8"))["explorer"]
    chosen = next(k for k, row in enumerate(rows) if row["outcome"][1] is None and row["masses"][1])
    Select(browser.find_element("id", "row")).select_by_index(chosen)
    slider, row = browser.find_element("id", "threshold"), rows[chosen]
    place, mass = row["masses"][1][0]
    probabilities = []
    for share in (place - 2e-3, place + 2e-3, 1.0):
        browser.execute_script(
            "arguments[0].value = arguments[1]; arguments[0].dispatchEvent(new Event('input'))",
            slider,
            round(1000 * share),
        )
        probabilities.append(float(re.search(r"after (\d\.\d{3})", reading(browser)).group(1)))
    browser.execute_script(
        "arguments[0].value = 0; arguments[0].dispatchEvent(new Event('input'))",
        browser.find_element("id", "typed"),
    )

    assert re.search(rf"≤ 0\): before \d\.\d+ → after {mass:.3f}", reading(browser))
    assert probabilities[0] == 0.0
    assert_allclose(probabilities[1], mass, atol=0.01)
    assert_allclose(probabilities[2], 1.0, atol=0.01)
    limit = float(f"{row['outcome'][0]:.4g}")
    assert f"Outcome: ≥ {limit:g}" in reading(browser)
    scales = ask(browser, "Object.keys(Chart.getChart('density').scales)")
    assert set(scales) == {"x", "y", "mass"}
    assert browser.get_log("browser") == []


def test_choosing_a_threshold_shows_its_line_alone(page):
    """The reliability figure goes from five lines to all, and to one line with its band."""
    from selenium.webdriver.support.ui import Select

    lines = "Chart.getChart('reliability-1').data.datasets.length"
    counts = [ask(page, lines)]
    for choice in ("all", "t = "):
        options = Select(page.find_element("id", "line"))
        options.select_by_visible_text(
            next(one.text for one in options.options if one.text.startswith(choice))
        )
        counts.append(ask(page, lines))

    assert counts == [1 + 5, 1 + 16, 1 + 2 + 1]
    assert page.get_log("browser") == []


def test_dark_and_light(page):
    """The page follows the system's preference, and the button overrides it."""
    background = "getComputedStyle(document.body).backgroundColor"
    seen = {}
    for scheme in ("dark", "light"):
        features = [{"name": "prefers-color-scheme", "value": scheme}]
        page.execute_cdp_cmd("Emulation.setEmulatedMedia", {"features": features})
        page.refresh()
        seen[scheme] = ask(page, background)
    page.find_element("id", "theme").click()

    assert seen["dark"] == "rgb(20, 23, 27)"
    assert seen["light"] == "rgb(255, 255, 255)"
    assert ask(page, background) == seen["dark"]
    assert page.get_log("browser") == []


def test_hostile_text_does_nothing_in_the_browser(browser, tmp_path):
    """Markup in labels is shown as it was written and runs nowhere."""
    file = hostile_report(tmp_path)
    browser.get_log("browser")
    browser.get(file.as_uri())

    assert browser.title == HOSTILE
    assert browser.find_element("tag name", "h1").text == HOSTILE
    assert HOSTILE in reading(browser)
    assert browser.get_log("browser") == []


def test_effects_of_covariates_are_drawn_one_by_one(browser, explained, tmp_path):
    """The choice of a covariate changes both figures, and the console is silent."""
    from selenium.webdriver.support.ui import Select

    y, dist, explanation = explained
    file = regcal.report(y, dist, path=tmp_path / "r.html", explanation=explanation)
    browser.get_log("browser")
    browser.get(file.as_uri())
    title = "Chart.getChart('factor').options.scales.x.title.text"
    names = []
    for k in range(len(explanation.covariates)):
        Select(browser.find_element("id", "covariate")).select_by_index(k)
        names.append(ask(browser, title))

    assert names == [one.name for one in explanation.covariates]
    assert browser.get_log("browser") == []
    assert ask(browser, "document.documentElement.scrollWidth <= window.innerWidth")
