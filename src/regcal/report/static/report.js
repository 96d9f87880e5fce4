"use strict";
// Draws the figures of the report with Chart.js and runs the explorer. All text from the data
// enters the page through textContent or onto a canvas, never as HTML.
(() => {
  const data = JSON.parse(document.getElementById("data").textContent);
  const models = data.models;
  const element = (id) => document.getElementById(id);
  const charts = [];
  const VIRIDIS = ["#440154", "#472d7b", "#3b528b", "#2c728e", "#21918c", "#28ae80", "#5ec962", "#addc30"];

  // Choices of the figure of reliability, beside the number of a threshold.
  const [FEW, ALL] = [-2, -1];
  const FEW_ROWS = 0.02;

  // ------------------------------------------------------------------------------------ colours

  const colour = (name) => getComputedStyle(document.documentElement).getPropertyValue("--" + name).trim();
  const modelColour = (k) => colour(k === models.length - 1 ? "last" : "first");
  const modelDash = (k) => (k === models.length - 1 ? [] : [6, 4]);

  function thresholdColour(k, count) {
    // Without the end that vanishes in front of the page.
    const tints = document.documentElement.dataset.theme === "dark" ? VIRIDIS.slice(2) : VIRIDIS.slice(0, -1);
    return tints[count === 1 ? 0 : Math.round((k / (count - 1)) * (tints.length - 1))];
  }

  function setTheme(theme) {
    document.documentElement.dataset.theme = theme;
    element("theme").textContent = theme === "dark" ? "Light" : "Dark";
    element("theme").setAttribute("aria-pressed", String(theme === "dark"));
    charts.splice(0).forEach((chart) => chart.destroy());
    drawAll();
  }

  // --------------------------------------------------------------------------------- small parts

  const points = (x, y) => x.map((value, k) => ({ x: value, y: y[k] })).filter((p) => p.x !== null && p.y !== null);
  const short = (value) => Number(value.toPrecision(4)).toString();

  function line(label, values, options) {
    return { label, data: values, showLine: true, borderWidth: 2, pointRadius: 0, ...options };
  }

  function band(x, lower, upper) {
    const edge = { borderWidth: 0, pointRadius: 0, pointHitRadius: 0, label: "", quiet: true };
    return [
      line("", points(x, lower), edge),
      line("", points(x, upper), { ...edge, fill: "-1", backgroundColor: colour("band") }),
    ];
  }

  // Point masses: lines up from 0, with gaps between them.
  function bars(masses, tint) {
    const path = masses.flatMap(([x, y]) => [{ x, y: 0 }, { x, y }, { x, y: NaN }]);
    const radius = (context) => (context.raw && context.raw.y > 0 ? 3 : 0);
    return line("", path, { yAxisID: "mass", borderColor: tint, backgroundColor: tint, pointRadius: radius, quiet: true });
  }

  function diagonal() {
    return line("", [{ x: 0, y: 0 }, { x: 1, y: 1 }], { borderColor: colour("muted"), borderWidth: 1, borderDash: [2, 3], quiet: true, pointHitRadius: 0 });
  }

  function axis(title, limits) {
    return {
      type: "linear", ...limits,
      title: { display: true, text: title, color: colour("text") },
      ticks: { color: colour("muted"), maxTicksLimit: 6, includeBounds: false },
      grid: { color: colour("line"), lineWidth: 0.5 },
    };
  }

  function draw(id, datasets, x, y, extra) {
    const shown = (item, chart) => !chart.datasets[item.datasetIndex].quiet && item.text !== "";
    const chart = new Chart(element(id), {
      type: "scatter",
      data: { datasets },
      options: {
        animation: false, maintainAspectRatio: false, scales: { x, y, ...extra.scales },
        plugins: {
          legend: { display: extra.legend !== false, onClick: null, labels: { filter: shown, color: colour("text"), usePointStyle: false, boxHeight: 1, boxWidth: 24 } },
          tooltip: { enabled: extra.tooltip !== false, filter: (item) => !item.dataset.quiet, callbacks: { label: (item) => `${item.dataset.label}: ${short(item.parsed.x)}, ${short(item.parsed.y)}` } },
        },
      },
      plugins: extra.plugins || [],
    });
    charts.push(chart);
    return chart;
  }

  // ------------------------------------------------------------------------------------- figures

  function drawErrors() {
    const datasets = models.map((model, k) => line(model.name, points(model.thresholds, model.errors), {
      borderColor: modelColour(k), borderDash: modelDash(k), pointRadius: 4, pointBorderColor: modelColour(k),
      pointBackgroundColor: model.p_values.map((p) => (p < 0.05 ? modelColour(k) : colour("panel"))),
    }));
    draw("errors", datasets, axis(`Threshold t of ${data.target}`, {}), axis("Error in probability", { beginAtZero: true, suggestedMax: 0.05 }), {});
  }

  function drawCoverage() {
    const curve = models[models.length - 1].coverage;
    const datasets = [...band(curve.nominal, curve.lower, curve.upper), diagonal()];
    models.forEach((model, k) => datasets.push(line(model.name, points(model.coverage.nominal, model.coverage.observed), {
      borderColor: modelColour(k), backgroundColor: modelColour(k), borderDash: modelDash(k), pointRadius: 2,
    })));
    draw("coverage", datasets, axis("Nominal coverage", { min: 0, max: 1 }), axis("Observed coverage", { min: 0, max: 1 }), {});
  }

  function shownLines() {
    return Number(element("line").value) === FEW ? data.first_lines : models[0].thresholds.map((_, k) => k);
  }

  function reliabilityLines(model, chosen) {
    const lines = [diagonal()];
    const curve = model.reliability;
    if (chosen >= 0) lines.push(...band(curve.predicted[chosen], curve.lower[chosen], curve.upper[chosen]));
    const shown = chosen >= 0 ? [chosen] : shownLines();
    shown.forEach((k, place) => {
      const tint = thresholdColour(place, shown.length);
      // Beside others, points of few rows are noise; alone, a line has its band.
      const seen = curve.observed[k].map((value, b) => (chosen >= 0 || curve.share[k][b] >= FEW_ROWS ? value : null));
      lines.push(line(`t = ${short(model.thresholds[k])}`, points(curve.predicted[k], seen), { borderColor: tint, backgroundColor: tint, pointRadius: 3, borderWidth: 1.5 }));
    });
    return lines;
  }

  function drawReliability() {
    const chosen = Number(element("line").value);
    element("key").hidden = chosen !== ALL;
    models.forEach((model, k) => {
      const old = Chart.getChart("reliability-" + k);
      if (old) { charts.splice(charts.indexOf(old), 1); old.destroy(); }
      draw("reliability-" + k, reliabilityLines(model, chosen), axis("Predicted P(Y ≤ t)", { min: 0, max: 1 }), axis("Frequency of y ≤ t", { min: 0, max: 1 }), { legend: chosen !== ALL });
    });
  }

  function drawPit() {
    const top = Math.max(...models.map((model) => Math.max(model.pit.upper, ...model.pit.density)));
    models.forEach((model, k) => {
      const shade = {
        id: "shade",
        beforeDatasetsDraw(chart) {
          const { ctx, chartArea, scales } = chart;
          const high = scales.y.getPixelForValue(model.pit.upper);
          ctx.fillStyle = colour("band");
          ctx.fillRect(chartArea.left, high, chartArea.width, scales.y.getPixelForValue(model.pit.lower) - high);
        },
        // Bars keep one colour: over them the band is its two edges.
        afterDatasetsDraw(chart) {
          const { ctx, chartArea, scales } = chart;
          ctx.save();
          ctx.strokeStyle = colour("text");
          ctx.setLineDash([4, 3]);
          ctx.beginPath();
          for (const edge of [model.pit.lower, model.pit.upper]) {
            ctx.moveTo(chartArea.left, scales.y.getPixelForValue(edge));
            ctx.lineTo(chartArea.right, scales.y.getPixelForValue(edge));
          }
          ctx.stroke();
          ctx.restore();
        },
      };
      const edges = model.pit.edges;
      charts.push(new Chart(element("pit-" + k), {
        type: "bar",
        data: {
          labels: model.pit.density.map((_, b) => `${short(edges[b])}–${short(edges[b + 1])}`),
          datasets: [{ data: model.pit.density, backgroundColor: modelColour(k), barPercentage: 1, categoryPercentage: 0.96 }],
        },
        options: {
          animation: false, maintainAspectRatio: false,
          plugins: { legend: { display: false } },
          scales: { x: { ...axis("PIT value F(y)", {}), type: "category" }, y: axis("Relative frequency", { min: 0, suggestedMax: top }) },
        },
        plugins: [shade],
      }));
    });
  }

  // ------------------------------------------------------------------------- effects of covariates

  // Points with ranges: a line from end to end for each, with gaps between them.
  function ranges(label, segments, tint) {
    const path = segments.flatMap(([x, low, mean, high]) => [{ x, y: low }, { x, y: mean }, { x, y: high }, { x, y: NaN }]);
    const radius = (context) => (context.dataIndex % 4 === 1 ? 4 : 0);
    return line(label, path, { borderColor: tint, backgroundColor: tint, pointRadius: radius, pointHitRadius: radius });
  }

  function drawEffect(id, effect, right, title) {
    const old = Chart.getChart(id);
    if (old) { charts.splice(charts.indexOf(old), 1); old.destroy(); }
    const [lower, middle, upper] = effect[id].curve;
    const x = effect.values;
    const level = { borderColor: colour("muted"), borderWidth: 1, borderDash: [2, 3], quiet: true, pointHitRadius: 0 };
    const ends = [Math.min(...x), Math.max(...x)];
    const byItself = "by itself";
    const datasets = [
      line("", ends.map((end) => ({ x: end, y: right })), level),
      ranges("rows of a segment", effect[id].segments, colour("first")),
    ];
    let horizontal = axis(effect.name, {});
    if (effect.labels.length) {
      datasets.push(ranges(byItself, x.map((value, k) => [value + 0.15, lower[k], middle[k], upper[k]]), colour("last")));
      horizontal = axis(effect.name, { min: ends[0] - 0.5, max: ends[1] + 0.5 });
      const named = (value) => (x.includes(value) ? effect.labels[x.indexOf(value)] : "");
      horizontal.ticks = { ...horizontal.ticks, stepSize: 1, maxTicksLimit: 20, callback: named };
    } else {
      datasets.push(...band(x, lower, upper), line(byItself, points(x, middle), { borderColor: colour("last"), backgroundColor: colour("last") }));
    }
    draw(id, datasets, horizontal, axis(title, {}), {});
  }

  function drawEffects() {
    if (!data.effects.length) return;
    const effect = data.effects[Number(element("covariate").value)];
    drawEffect("shift", effect, 0, "Shift of the median");
    drawEffect("factor", effect, 1, "Factor on the spread");
  }

  // ------------------------------------------------------------------------------------ explorer

  const state = { row: 0, t: 0 };
  const SLIDER = 1000;
  const explorer = {};

  // Places in a figure are known to so much of its width, because numbers of the page are rounded.
  const RESOLUTION = 1e-4;

  function interpolate(row, k, t) {
    const values = row.cdf[k], exact = (t - row.low) / (row.high - row.low);
    // y <= t where t is the place of a point mass: what is just right of it
    const mass = row.masses[k].find(([share]) => Math.abs(share - exact) <= RESOLUTION);
    const place = mass ? Math.max(exact, mass[0] + RESOLUTION / 5) : exact;
    const next = row.points.findIndex((share) => share > place);
    const right = next < 0 ? values.length - 1 : Math.max(1, next);
    const [start, end] = [row.points[right - 1], row.points[right]];
    const share = end > start ? Math.min(1, Math.max(0, (place - start) / (end - start))) : 1;
    return values[right - 1] + share * (values[right] - values[right - 1]);
  }

  // What was seen: a number, or an interval whose unknown end is null.
  function seen(row) {
    const [low, high] = row.outcome;
    if (low === high) return short(low);
    if (high === null) return `≥ ${short(low)}`;
    return low === null ? `≤ ${short(high)}` : `${short(low)} to ${short(high)}`;
  }

  // P(Y ≤ t) of one model; beyond the figure only that it is no more, or no less, than at its end.
  function probability(row, k) {
    const values = row.cdf[k];
    if (state.t < row.low) return `≤ ${values[0].toFixed(3)}`;
    if (state.t > row.high) return `≥ ${values[values.length - 1].toFixed(3)}`;
    return interpolate(row, k, state.t).toFixed(3);
  }

  function median(row) {
    const values = row.cdf[models.length - 1];
    const k = values.findIndex((value) => value >= 0.5);
    const width = row.high - row.low;
    const unit = 10 ** Math.floor(Math.log10(RESOLUTION * width));
    return unit * Math.round((row.low + width * row.points[k < 0 ? values.length - 1 : k]) / unit);
  }

  function showReading() {
    const row = data.explorer[state.row];
    const parts = models.map((model, k) => `${model.name} ${probability(row, k)}`);
    element("reading").textContent = `P(${data.target} ≤ ${short(state.t)}): ${parts.join(" → ")}. Outcome: ${seen(row)}`;
    element("threshold").setAttribute("aria-valuetext", `t = ${short(state.t)}`);
    explorer.cdf.draw();
    explorer.density.draw();
  }

  const cursor = {
    id: "cursor",
    afterDatasetsDraw(chart) {
      const { ctx, chartArea, scales } = chart;
      const upright = (value, tint, dash) => {
        const x = scales.x.getPixelForValue(value);
        ctx.save();
        ctx.strokeStyle = tint;
        ctx.lineWidth = 1.5;
        ctx.setLineDash(dash);
        ctx.beginPath();
        ctx.moveTo(x, chartArea.top);
        ctx.lineTo(x, chartArea.bottom);
        ctx.stroke();
        ctx.restore();
      };
      const outcome = data.explorer[state.row].outcome;
      outcome.filter((end) => end !== null).forEach((end) => upright(end, colour("muted"), [2, 3]));
      if (outcome[0] !== outcome[1]) {
        const [left, right] = outcome.map((end, k) => (end === null ? chartArea[k ? "right" : "left"] : scales.x.getPixelForValue(end)));
        ctx.fillStyle = colour("band");
        ctx.fillRect(left, chartArea.top, right - left, chartArea.bottom - chartArea.top);
      }
      if (state.t >= scales.x.min && state.t <= scales.x.max) upright(state.t, colour("text"), []);
    },
  };

  function drawRow() {
    const row = data.explorer[state.row];
    const target = (share) => row.low + (row.high - row.low) * share;
    const grid = row.points.map(target);
    for (const [id, key, title, limits] of [["cdf", "cdf", "P(Y ≤ t)", { min: 0, max: 1 }], ["density", "density", "Density", { min: 0 }]]) {
      if (explorer[id]) { charts.splice(charts.indexOf(explorer[id]), 1); explorer[id].destroy(); }
      const datasets = models.map((model, k) => line(model.name, points(grid, row[key][k]), { borderColor: modelColour(k), borderDash: modelDash(k) }));
      const extra = { plugins: [cursor], tooltip: false };
      if (id === "density" && row.masses.some((masses) => masses.length)) {
        extra.scales = { mass: { ...axis("P(Y = t), bars", { min: 0 }), position: "right", grid: { drawOnChartArea: false } } };
        row.masses.forEach((masses, k) => datasets.push(bars(masses.map(([share, size]) => [target(share), size]), modelColour(k))));
      }
      explorer[id] = draw(id, datasets, axis(`Threshold t of ${data.target}`, { min: row.low, max: row.high }), axis(title, limits), extra);
    }
    showReading();
  }

  function showSlider() {
    const row = data.explorer[state.row];
    const share = (state.t - row.low) / (row.high - row.low);
    element("threshold").value = String(Math.round(SLIDER * Math.min(1, Math.max(0, share))));
  }

  function setThreshold(share) {
    const row = data.explorer[state.row];
    state.t = row.low + share * (row.high - row.low);
    element("typed").value = short(state.t);
    showReading();
  }

  function typeThreshold() {
    const value = element("typed").valueAsNumber;
    if (!Number.isFinite(value)) return;
    state.t = value;
    showSlider();
    showReading();
  }

  // The threshold stays where it is: rows are compared at the same t.
  function setRow(index) {
    state.row = Math.min(data.explorer.length - 1, Math.max(0, index));
    element("row").value = String(state.row);
    showSlider();
    drawRow();
  }

  function followPointer(id) {
    const canvas = element(id);
    const move = (event) => {
      const area = explorer[id].chartArea;
      const share = (event.clientX - canvas.getBoundingClientRect().left - area.left) / area.width;
      setThreshold(Math.min(1, Math.max(0, share)));
      showSlider();
    };
    canvas.addEventListener("pointerdown", (event) => { canvas.setPointerCapture(event.pointerId); move(event); });
    canvas.addEventListener("pointermove", (event) => { if (event.buttons) move(event); });
  }

  // --------------------------------------------------------------------------------------- start

  function showColourKey() {
    const thresholds = models[0].thresholds;
    const tints = thresholds.map((_, k) => thresholdColour(k, thresholds.length));
    element("key-low").textContent = `t = ${short(thresholds[0])}`;
    element("key-high").textContent = short(thresholds[thresholds.length - 1]);
    element("ramp").style.background = `linear-gradient(to right, ${tints.join(", ")}, ${tints[tints.length - 1]})`;
  }

  function addOptions(id, labels) {
    labels.forEach(([value, text]) => {
      const option = document.createElement("option");
      option.value = value;
      option.textContent = text;
      element(id).append(option);
    });
  }

  function drawAll() {
    explorer.cdf = explorer.density = undefined;
    drawErrors();
    drawCoverage();
    drawEffects();
    drawReliability();
    showColourKey();
    drawPit();
    drawRow();
  }

  addOptions("row", data.explorer.map((row, k) => [k, `${row.name} (${data.target}${row.outcome[0] === row.outcome[1] ? " =" : ":"} ${seen(row)})`]));
  const few = data.first_lines.length;
  if (few < models[0].thresholds.length) addOptions("line", [[FEW, `${few} of ${models[0].thresholds.length}`]]);
  addOptions("line", [[ALL, "all"]]);
  addOptions("line", models[0].thresholds.map((t, k) => [k, `t = ${short(t)}`]));
  if (data.effects.length) {
    addOptions("covariate", data.effects.map((effect, k) => [k, effect.name]));
    element("covariate").addEventListener("change", drawEffects);
  }
  element("row").addEventListener("change", () => setRow(Number(element("row").value)));
  element("previous").addEventListener("click", () => setRow(state.row - 1));
  element("next").addEventListener("click", () => setRow(state.row + 1));
  element("threshold").addEventListener("input", () => setThreshold(element("threshold").value / SLIDER));
  element("typed").addEventListener("input", typeThreshold);
  element("line").addEventListener("change", drawReliability);
  element("theme").addEventListener("click", () => setTheme(document.documentElement.dataset.theme === "dark" ? "light" : "dark"));
  followPointer("cdf");
  followPointer("density");
  state.t = Number(short(median(data.explorer[0])));
  element("typed").value = short(state.t);
  showSlider();
  setTheme(window.matchMedia("(prefers-color-scheme: dark)").matches ? "dark" : "light");
})();
