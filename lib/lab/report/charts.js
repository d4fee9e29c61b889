// Charts of the report. A chart is created anew when its selection changes.
"use strict";

// Interaction mode: selects the nearest point of each line along an axis. Lines may have points at different positions.
Chart.Interaction.modes.nearestOfEach = function (chart, event, options) {
  const axis = options.axis || "x";
  const found = [];
  for (const meta of chart.getSortedVisibleDatasetMetas()) {
    let best = -1;
    let distance = Infinity;
    meta.data.forEach((point, i) => {
      const away = Math.abs(point[axis] - event[axis]);
      if (!point.skip && away < distance) [best, distance] = [i, away];
    });
    if (best >= 0 && distance < 40) found.push({ element: meta.data[best], datasetIndex: meta.index, index: best });
  }
  return found;
};

const crosshair = {
  id: "crosshair",
  afterDatasetsDraw(chart) {
    const active = chart.tooltip ? chart.tooltip.getActiveElements() : [];
    if (!active.length || chart.options.plugins.crosshair.axis === "none") return;
    const { ctx, chartArea } = chart;
    const at = active[0].element;
    ctx.save();
    ctx.strokeStyle = themed("--faint");
    ctx.setLineDash([3, 3]);
    ctx.beginPath();
    if (chart.options.plugins.crosshair.axis === "y") {
      ctx.moveTo(chartArea.left, at.y);
      ctx.lineTo(chartArea.right, at.y);
    } else {
      ctx.moveTo(at.x, chartArea.top);
      ctx.lineTo(at.x, chartArea.bottom);
    }
    ctx.stroke();
    ctx.restore();
  },
};

// Shades the settling time, which the table excludes.
const settling = {
  id: "settling",
  beforeDatasetsDraw(chart) {
    const until = chart.options.plugins.settling.until;
    if (!until) return;
    const { ctx, chartArea, scales } = chart;
    const right = Math.min(scales.x.getPixelForValue(until), chartArea.right);
    if (right <= chartArea.left) return;
    ctx.save();
    ctx.fillStyle = themed("--shade");
    ctx.fillRect(chartArea.left, chartArea.top, right - chartArea.left, chartArea.bottom - chartArea.top);
    ctx.restore();
  },
  afterDatasetsDraw(chart) {
    const until = chart.options.plugins.settling.until;
    const { ctx, chartArea, scales } = chart;
    const right = until ? Math.min(scales.x.getPixelForValue(until), chartArea.right) : 0;
    if (right - chartArea.left < 100) return;
    ctx.save();
    ctx.font = "12px system-ui, sans-serif";
    ctx.textAlign = "right";
    ctx.lineWidth = 4;
    ctx.lineJoin = "round";
    ctx.strokeStyle = themed("--card");
    ctx.fillStyle = themed("--faint");
    ctx.strokeText("does not count", right - 6, chartArea.bottom - 8);
    ctx.fillText("does not count", right - 6, chartArea.bottom - 8);
    ctx.restore();
  },
};
const nothing = {
  id: "nothing",
  afterDraw(chart) {
    if (chart.data.datasets.length) return;
    const { ctx, chartArea } = chart;
    ctx.save();
    ctx.fillStyle = themed("--faint");
    ctx.font = "14px system-ui, sans-serif";
    ctx.textAlign = "center";
    ctx.fillText("Nothing is chosen, or what is chosen has no such figures", (chartArea.left + chartArea.right) / 2,
      (chartArea.top + chartArea.bottom) / 2);
    ctx.restore();
  },
};
Chart.register(crosshair, settling, nothing);

function dataset(number, label, points, more) {
  const style = styleOf(number);
  return Object.assign({
    label, data: points, borderColor: style.colour, backgroundColor: style.colour, borderDash: style.dash,
    borderWidth: 1.6, pointRadius: 0, pointHoverRadius: 4, pointHoverBorderWidth: 0,
  }, more);
}

function axisTitle(text) {
  return { display: true, text, color: themed("--faint") };
}
function yAxis(text, shown, logarithmic) {
  const axis = {
    type: logarithmic ? "logarithmic" : "linear",
    beginAtZero: !logarithmic,
    title: axisTitle(text),
    grid: { color: themed("--grid"), borderColor: themed("--edge") },
    ticks: { color: themed("--faint"), callback: shown, maxTicksLimit: 8 },
  };
  if (logarithmic) {
    axis.ticks = {
      color: themed("--faint"),
      callback: (value) => (Number.isInteger(Math.round(Math.log10(value) * 1e6) / 1e6) ? shown(value) : ""),
    };
  }
  return axis;
}
function options(x, y, tooltip, more) {
  return Object.assign({
    animation: false, responsive: true, maintainAspectRatio: false, parsing: false, normalized: true,
    interaction: { mode: "nearestOfEach", intersect: false, axis: "x" },
    scales: { x, y },
    plugins: {
      legend: { display: false },
      crosshair: { axis: "x" },
      settling: { until: 0 },
      tooltip: {
        backgroundColor: themed("--tip"), titleColor: themed("--tip-text"), bodyColor: themed("--tip-text"),
        footerColor: themed("--tip-text"), footerFont: { weight: "normal" }, usePointStyle: false, boxPadding: 4, padding: 10, caretSize: 0,
        itemSort: (a, b) => b.raw.v - a.raw.v,
        callbacks: Object.assign({
          labelColor: (item) => ({ borderColor: item.dataset.borderColor, backgroundColor: item.dataset.borderColor, borderWidth: 0 }),
          footer(items) {
            const more = items.length - (items.length ? roomFor(items[0].chart) : 0);
            return more > 0 ? `and ${more} below` : "";
          },
        }, tooltip),
      },
    },
  }, more);
}
// A tooltip shows as many lines as fit into the chart; its footer counts the others.
const roomFor = (chart) => Math.max(3, Math.min(TOOLTIP_LINES, Math.floor((chart.height - 100) / 16)));
function shortened(shown) {
  return function (item) {
    const place = this.dataPoints ? this.dataPoints.indexOf(item) : -1;
    return place >= roomFor(item.chart) ? null : shown(item);
  };
}

function timeAxis(longest) {
  const unit = timeUnit(longest);
  return {
    unit,
    axis: {
      type: "linear", min: 0, max: longest / unit.nanos, title: axisTitle(`time (${unit.name})`),
      grid: { color: themed("--grid"), borderColor: themed("--edge") },
      ticks: { color: themed("--faint"), maxTicksLimit: 10, maxRotation: 0, callback: (value) => String(Number(value.toPrecision(6))) },
    },
  };
}
const lengthOf = (run) =>
  Math.max(run.duration_ns,
    run.bin_ns * Math.max(0, ...run.queues.map((one) => one.most.length), ...run.goodput.values.map((one) => one.length)));
// A point is in the middle of its interval.
const points = (values, run, unit, low) =>
  values.map((v, i) => ({ x: ((i + 0.5) * run.bin_ns) / unit.nanos, y: low ? Math.max(v, low) : v, v }));
// In short intervals, single packets make rates jump; long intervals are averages.
const LONG_INTERVALS = 100;
function rates(values, run, unit) {
  const step = state.grain === "long" ? Math.ceil(values.length / LONG_INTERVALS) : 1;
  const out = [];
  for (let from = 0; from < values.length; from += step) {
    const part = values.slice(from, from + step);
    const v = (part.reduce((sum, value) => sum + value, 0) / part.length) * data.goodput_unit_bps;
    out.push({ x: ((from + part.length / 2) * run.bin_ns) / unit.nanos, y: v, v });
  }
  return out;
}
const intervalOf = (run) => {
  const length = run.goodput.values[0].length;
  return run.bin_ns * (state.grain === "long" ? Math.ceil(length / LONG_INTERVALS) : 1);
};
const settleOf = (shown) => {
  const times = new Set(shown.map((run) => run.settle_ns));
  return times.size === 1 ? [...times][0] : 0;
};
const timeTitle = (unit) => (items) => (items.length ? `at ${items[0].raw.x.toPrecision(4)} ${unit.name}` : "");

const shownRuns = () => runs.map((run, number) => ({ run, number })).filter(({ number }) => chosen.has(number));

// Queues for the selection: of each run the longest, or the one with the selected name; of a single run also all.
function shownQueues() {
  if (state.port === "*") return runs[0].queues.map((queue, number) => ({ run: runs[0], number, queue, name: queue.port }));
  return shownRuns().map(({ run, number }) => {
    const queue = state.port ? run.queues.find((one) => one.port === state.port) : busiest(run);
    return { run, number, queue, name: runs.length === 1 ? queue && queue.port : run.name };
  }).filter(({ queue }) => queue);
}
// Minimum of the logarithmic scale, in bytes: the size of a small packet.
const LEAST_QUEUE = 64;

const charts = {
  queue() {
    const shown = shownQueues();
    const { unit, axis } = timeAxis(Math.max(1, ...shown.map(({ run }) => lengthOf(run))));
    const logarithmic = state.scale === "logarithmic";
    const y = yAxis("queue", bytes, logarithmic);
    if (logarithmic) y.min = LEAST_QUEUE;
    const bins = [...new Set(shown.map(({ run }) => span(run.bin_ns)))];
    $("queue-meaning").textContent =
      "Bytes that wait in the port of a switch: the most, or the mean, of each interval" +
      (bins.length ? ` of ${bins.join(" or ")}.` : ".") + (settleOf(runs) ? " What is shaded does not count in the table." : "");
    const config = options(axis, y, {
      title: timeTitle(unit),
      label: shortened((item) => ` ${item.dataset.label}: ${bytes(item.raw.v)}`),
    });
    config.plugins.settling.until = settleOf(shown.map(({ run }) => run)) / unit.nanos;
    return {
      type: "line", options: config,
      data: { datasets: shown.map(({ run, number, queue, name }) =>
        dataset(number, name, points(queue[state.value], run, unit, logarithmic ? LEAST_QUEUE : 0))) },
    };
  },

  spread() {
    const logarithmic = state.scale === "logarithmic";
    const x = yAxis("queue", bytes, logarithmic);
    if (logarithmic) x.min = LEAST_QUEUE;
    x.ticks.maxRotation = 0;
    x.ticks.maxTicksLimit = 7;
    x.ticks.autoSkipPadding = 16;
    const y = yAxis("part of the time", (value) => `${value} %`, false);
    y.max = 100;
    const config = options(x, y, {
      title: (items) => (items.length ? `${items[0].raw.y} % of the time at most` : ""),
      label: shortened((item) => ` ${item.dataset.label}: ${bytes(item.raw.v)}`),
    }, { interaction: { mode: "nearestOfEach", intersect: false, axis: "y" } });
    config.plugins.crosshair.axis = "y";
    return {
      type: "line", options: config,
      data: { datasets: shownQueues().filter(({ queue }) => queue.spread.length).map(({ number, queue, name }) =>
        dataset(number, name, queue.spread.map((v, i) => ({ x: logarithmic ? Math.max(v, LEAST_QUEUE) : v, y: data.spread_percent[i], v })))) },
    };
  },

  throughput() {
    const shown = shownRuns().filter(({ run }) => run.goodput.values.length);
    const { unit, axis } = timeAxis(Math.max(1, ...shown.map(({ run }) => lengthOf(run))));
    const intervals = [...new Set(shown.map(({ run }) => span(intervalOf(run))))];
    $("throughput-meaning").textContent = "Payload that arrived or was acknowledged, of all flows of a run together" +
      (intervals.length ? `, in intervals of ${intervals.join(" or ")}.` : ".");
    const config = options(axis, yAxis("throughput", rate, false), {
      title: timeTitle(unit),
      label: shortened((item) => ` ${item.dataset.label}: ${rate(item.raw.v)}`),
    });
    config.plugins.settling.until = settleOf(shown.map(({ run }) => run)) / unit.nanos;
    return {
      type: "line", options: config,
      data: { datasets: shown.map(({ run, number }) => {
        const sum = run.goodput.values[0].map((first, i) =>
          run.goodput.values.reduce((total, column) => total + (column[i] || 0), 0));
        return dataset(number, run.name, rates(sum, run, unit));
      }) },
    };
  },

  goodput() {
    const run = runs[state.goodputRun];
    const { unit, axis } = timeAxis(Math.max(1, lengthOf(run)));
    const y = yAxis("goodput", rate, false);
    const stacked = state.look === "stacked";
    y.stacked = stacked;
    const config = options(axis, y, {
      title: timeTitle(unit),
      label: shortened((item) => ` ${item.dataset.label}: ${rate(item.raw.v)}`),
    });
    config.plugins.settling.until = run.settle_ns / unit.nanos;
    const lines = run.goodput.names.map((name, number) =>
      dataset(number, name, rates(run.goodput.values[number], run, unit),
        stacked ? { fill: true, backgroundColor: styleOf(number).colour + "66", borderWidth: 1 } : { borderWidth: 1.3 }));
    return { type: "line", options: config, data: { datasets: lines.filter((line, i) => !hiddenFlows.has(i)) } };
  },

  slowdown() {
    const parts = state.part === "all" ? ["p50", "p95", "p99"] : [state.part];
    const lines = shownRuns().map(({ run, number }) => {
      const one = run.traffic.find((traffic) => traffic.name === state.traffic);
      return { run, number, bins: one && one.slowdown };
    }).filter(({ bins }) => bins);
    const names = new Set(lines.flatMap(({ bins }) => Object.keys(bins)));
    const labels = data.sizes.filter((size) => names.has(size));
    const datasets = lines.flatMap(({ run, number, bins }) => parts.map((part, i) => {
      const values = labels.map((label) => (bins[label] ? bins[label][part] : null));
      // One run: a color per percentile. Several runs: a color per run.
      const style = runs.length === 1 ? i : number;
      const name = parts.length === 1 ? run.name : runs.length === 1 ? part : `${run.name} ${part}`;
      const more = { pointRadius: 3, spanGaps: true, flows: labels.map((label) => bins[label] && bins[label].count) };
      if (runs.length > 1 && parts.length > 1) more.borderDash = [[2, 3], [7, 4], []][i];
      if (parts.length > 1) more.borderWidth = 2;
      return dataset(style, name, values, more);
    }));
    const x = { type: "category", title: axisTitle("size"), grid: { color: themed("--grid"), borderColor: themed("--edge") },
      ticks: { color: themed("--faint") } };
    const y = yAxis("slowdown", (value) => `${value} x`, false);
    y.beginAtZero = false;
    y.suggestedMin = 1;
    const config = options(x, y, {
      label: shortened((item) =>
        ` ${item.dataset.label}: ${item.parsed.y.toPrecision(3)} x, n = ${count(item.dataset.flows[item.dataIndex])}`),
    }, { parsing: undefined, normalized: false, interaction: { mode: "index", intersect: false } });
    config.plugins.tooltip.itemSort = (a, b) => b.parsed.y - a.parsed.y;
    if (runs.length === 1 && parts.length > 1)
      config.plugins.legend = { display: true, labels: { color: themed("--text"), boxWidth: 24, boxHeight: 2 } };
    $("slowdown-meaning").textContent =
      "The time that flows of a size took, as a multiple of the time they would take alone in the network: 1 is the best there is." +
      (runs.length > 1 && parts.length > 1 ? " Dots are p50, dashes p95, whole lines p99." : "");
    return { type: "line", options: config, data: { labels, datasets } };
  },
};

const drawn = {};
function draw(names) {
  for (const name of names) {
    if ($(`${name}-section`).hidden) continue;
    if (drawn[name]) drawn[name].destroy();
    Chart.defaults.font.family = "system-ui, 'Segoe UI', Roboto, 'Liberation Sans', sans-serif";
    drawn[name] = new Chart($(name), charts[name]());
  }
}
