// Draws the report: the table of runs, the charts and what can be chosen in them. `data` is what report.cpp wrote.
(function () {
  "use strict";

  const data = JSON.parse(document.getElementById("data").textContent);
  const runs = data.runs;
  const $ = (id) => document.getElementById(id);
  const dark = window.matchMedia("(prefers-color-scheme: dark)");

  // Colours that stay apart for colour-blind people; when they are used up, lines get dashes.
  const COLOURS = {
    light: ["#5d23e7", "#0a5c43", "#ea3e83", "#5a86ed", "#5c4b0a", "#943894", "#729c11"],
    dark: ["#6ca3da", "#e9cea5", "#b6ea3e", "#cd7a93", "#75f0f0", "#a35aed", "#768b23"],
  };
  const DASHES = [[], [7, 4], [2, 3], [9, 3, 2, 3], [14, 4]];
  const SHOWN_AT_FIRST = 8;
  const TOOLTIP_LINES = 14;

  function styleOf(number) {
    const colours = COLOURS[dark.matches ? "dark" : "light"];
    return {
      colour: colours[number % colours.length],
      dash: DASHES[Math.floor(number / colours.length) % DASHES.length],
    };
  }
  const themed = (name) => getComputedStyle(document.documentElement).getPropertyValue(name).trim();

  // ------------------------------------------------------------------------------------------ numbers and words

  function scaled(value, unit) {
    if (value === null || value === undefined) return "-";
    const prefixes = ["", "K", "M", "G", "T"];
    let prefix = 0;
    for (; Math.abs(value) >= 999.5 && prefix + 1 < prefixes.length; ++prefix) value /= 1000;
    const places = Number.isInteger(value) || Math.abs(value) >= 99.95 ? 0 : Math.abs(value) >= 9.995 ? 1 : 2;
    return `${value.toFixed(places)} ${prefixes[prefix]}${unit}`.trim();
  }
  const bytes = (value) => scaled(value, "B");
  const rate = (value) => scaled(value, "b/s");
  const count = (value) => (value === null || value === undefined ? "-" : value.toLocaleString("en").replace(/,/g, " "));
  const decimal = (places) => (value) => (value === null || value === undefined ? "-" : value.toFixed(places));

  function timeUnit(nanos) {
    if (nanos >= 2e9) return { name: "s", nanos: 1e9 };
    if (nanos >= 2e6) return { name: "ms", nanos: 1e6 };
    if (nanos >= 2e3) return { name: "us", nanos: 1e3 };
    return { name: "ns", nanos: 1 };
  }
  function span(nanos) {
    const unit = timeUnit(nanos * 2);
    return `${Number((nanos / unit.nanos).toPrecision(3))} ${unit.name}`;
  }

  function element(name, properties, ...children) {
    const made = Object.assign(document.createElement(name), properties);
    made.append(...children);
    return made;
  }

  // ------------------------------------------------------------------------------------------ what can be chosen

  const chosen = new Set(runs.map((run, i) => i).slice(0, SHOWN_AT_FIRST));
  const hiddenFlows = new Set();  // by number, of the run whose goodput is shown
  const busiest = (run) => run.queues[0];
  const state = {
    port: "",
    value: "most",
    scale: "linear",
    goodputRun: 0,
    look: "lines",
    grain: "long",
    traffic: "",
    part: runs.length === 1 ? "all" : "p99",
  };

  // Where one queue is a hundred times another one, a linear scale would show one of them.
  (function () {
    const longest = runs.map((run) => (busiest(run) ? Math.max(...busiest(run).most) : 0)).filter((most) => most > 0);
    if (longest.length > 1 && Math.max(...longest) > 50 * Math.min(...longest)) state.scale = "logarithmic";
  })();

  // A few exclusive choices, as buttons beside each other.
  function fillFieldset(id, key, options, redrawn) {
    const set = $(id);
    for (const [value, text] of options) {
      const input = element("input", { type: "radio", name: id, value, checked: state[key] === value });
      input.addEventListener("change", () => {
        state[key] = value;
        draw(redrawn);
      });
      set.append(element("label", {}, input, text));
    }
  }
  function fillSelect(id, key, options, redrawn) {
    const select = $(id);
    for (const [value, text] of options) select.append(element("option", { value, textContent: text }));
    select.value = state[key];
    select.addEventListener("change", () => {
      state[key] = select.value;
      draw(redrawn);
    });
    return select;
  }

  // A piece of line as it is in the charts.
  function lineSample(number) {
    const svg = document.createElementNS("http://www.w3.org/2000/svg", "svg");
    svg.setAttribute("class", "line");
    svg.setAttribute("viewBox", "0 0 24 10");
    svg.setAttribute("aria-hidden", "true");
    const line = document.createElementNS("http://www.w3.org/2000/svg", "path");
    const style = styleOf(number);
    line.setAttribute("d", "M0 5H24");
    line.setAttribute("stroke", style.colour);
    line.setAttribute("stroke-width", "3");
    line.setAttribute("stroke-dasharray", style.dash.join(" "));
    svg.append(line);
    return svg;
  }
  function chip(number, text, checked, changed) {
    const input = element("input", { type: "checkbox", checked });
    const label = element("label", { className: checked ? "chip" : "chip off" }, input, lineSample(number), text);
    input.addEventListener("change", () => {
      label.classList.toggle("off", !input.checked);
      changed(input.checked);
    });
    return label;
  }
  function fillRunChips() {
    $("choice").hidden = runs.length === 1;
    $("run-chips").replaceChildren(
      ...runs.map((run, i) =>
        chip(i, run.name, chosen.has(i), (on) => {
          if (on) chosen.add(i);
          else chosen.delete(i);
          draw(["queue", "spread", "throughput", "slowdown"]);
        })));
  }
  function chooseRuns(all) {
    chosen.clear();
    if (all) runs.forEach((run, i) => chosen.add(i));
    fillRunChips();
    draw(["queue", "spread", "throughput", "slowdown"]);
  }
  function fillFlowChips() {
    const names = runs[state.goodputRun].goodput.names;
    $("flow-chips").replaceChildren(
      ...names.map((name, i) =>
        chip(i, name, !hiddenFlows.has(i), (on) => {
          if (on) hiddenFlows.delete(i);
          else hiddenFlows.add(i);
          draw(["goodput"]);
        })));
  }

  // ------------------------------------------------------------------------------------------ tables

  const COLUMNS = [
    ["Goodput", "goodput_bps", rate, "payload that arrived or was acknowledged each second, after the time to settle, all traffic together"],
    ["Jain", "jain", decimal(3), "how evenly flows without end share (Jain's index): 1 when all get the same, 1/n when one of n gets all"],
    ["Slowdown p50", "slowdown_p50", decimal(2), "the time that flows took, as a multiple of the time alone in the network: half of the flows were below"],
    ["Slowdown p99", "slowdown_p99", decimal(2), "the same for the slowest 1 % of the flows: all others were below"],
    ["Port", "port", (name) => name || "-", "of a switch, the one with the longest queue of the run; the next four are its queue's"],
    ["Queue p50", "queue_p50", bytes, "half of the time the queue was at most so long"],
    ["p95", "queue_p95", bytes, "95 % of the time the queue was at most so long"],
    ["p99", "queue_p99", bytes, "99 % of the time the queue was at most so long"],
    ["most", "queue_most", bytes, "the longest that was seen"],
    ["Drops", "drops", count, "packets that switches dropped, for whatever reason"],
    ["Marks", "marks", count, "packets that switches marked (ECN CE)"],
    ["CNPs", "cnps", count, "congestion notifications that receivers and switches sent"],
    ["Pauses", "pauses", count, "pause frames (PFC) that switches and hosts sent"],
    ["Sent again", "retransmissions", count, "packets that hosts sent once more"],
  ];
  // What no run has is left out where it belongs to some experiments only.
  const columns = COLUMNS.filter(([, key]) =>
    !key.startsWith("slowdown") || runs.some((run) => run.figures[key] !== null || run.traffic.some((one) => one[key] !== null)));

  function cell(value, shown) {
    const text = shown(value);
    const left = typeof value === "string" ? "text" : "";
    return element("td", { className: text === "-" ? "none" : left, textContent: text });
  }
  function fillRuns() {
    const head = element("tr", {}, element("th", { className: "name", textContent: "Run", scope: "col" }));
    for (const [title, key] of columns)
      head.append(element("th", { textContent: title, scope: "col", className: key === "port" ? "name" : "" }));
    const body = element("tbody", {});
    runs.forEach((run, i) => {
      const name = element("th", { className: "name", scope: "row", title: run.name });
      if (runs.length > 1) name.append(lineSample(i));
      name.append(run.name);
      body.append(element("tr", {}, name, ...columns.map(([, key, shown]) => cell(run.figures[key], shown))));
      if (run.traffic.length < 2) return;
      for (const one of run.traffic) {
        const part = element("th", { className: "name", scope: "row", textContent: one.name });
        body.append(element("tr", { className: "part" }, part,
          ...columns.map(([, key, shown]) => (key in one ? cell(one[key], shown) : element("td", {})))));
      }
    });
    $("runs").replaceChildren(element("thead", {}, head), body);
  }
  function fillColumns() {
    for (const [title, , , meaning] of columns)
      $("columns").append(element("dt", { textContent: title }), element("dd", { textContent: meaning + "." }));
  }
  function fillCommands() {
    const head = element("tr", {}, ...[["Run", "name"], ["Seed", ""], ["Command", "name"]].map(([textContent, className]) =>
      element("th", { textContent, className, scope: "col" })));
    const rows = runs.map((run) =>
      element("tr", {},
        element("th", { className: "name", scope: "row", textContent: run.name, title: run.name }),
        cell(run.seed, (seed) => (seed === null ? "-" : String(seed))),
        element("td", { className: "text command" }, element("code", { textContent: run.command || "-" }))));
    $("commands").replaceChildren(element("thead", {}, head), element("tbody", {}, ...rows));
  }
  function fillAbout() {
    const seen = new Set();
    for (const run of runs) {
      const key = JSON.stringify([run.scenario, run.about, run.source]);
      if (seen.has(key)) continue;
      seen.add(key);
      const about = (runs.every((one) => one.scenario === run.scenario) ? [run.about] : [run.scenario, run.about]).filter((text) => text).join(": ");
      if (about) $("about").append(element("p", { textContent: about }));
      if (run.source) $("about").append(element("p", { className: "source", textContent: `After ${run.source}` }));
    }
  }

  // ------------------------------------------------------------------------------------------ charts

  // Of each line the point that is nearest along an axis: lines need not have their points at the same places.
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

  // What happens before the network has settled does not count in the table.
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
            footer: (items) => (items.length > TOOLTIP_LINES ? `and ${items.length - TOOLTIP_LINES} below` : ""),
          }, tooltip),
        },
      },
    }, more);
  }
  // Too many lines hide the chart: the first ones stay, and the footer counts the others.
  function shortened(shown) {
    return function (item) {
      const place = this.dataPoints ? this.dataPoints.indexOf(item) : -1;
      return place >= TOOLTIP_LINES ? null : shown(item);
    };
  }

  function timeAxis(longest) {
    const unit = timeUnit(longest);
    return {
      unit,
      axis: {
        type: "linear", min: 0, max: longest / unit.nanos, title: axisTitle(`time (${unit.name})`),
        grid: { color: themed("--grid"), borderColor: themed("--edge") },
        ticks: { color: themed("--faint"), maxTicksLimit: 10, maxRotation: 0 },
      },
    };
  }
  const lengthOf = (run) =>
    Math.max(run.duration_ns,
      run.bin_ns * Math.max(0, ...run.queues.map((one) => one.most.length), ...run.goodput.values.map((one) => one.length)));
  // A point stands in the middle of its interval.
  const points = (values, run, unit, low) =>
    values.map((v, i) => ({ x: ((i + 0.5) * run.bin_ns) / unit.nanos, y: low ? Math.max(v, low) : v, v }));
  // Rates of short intervals are a comb of single packets.
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

  // Lines of queues by what is chosen: of each run its longest or the one of a name; of a single run also all.
  function shownQueues() {
    if (state.port === "*") return runs[0].queues.map((queue, number) => ({ run: runs[0], number, queue, name: queue.port }));
    return shownRuns().map(({ run, number }) => {
      const queue = state.port ? run.queues.find((one) => one.port === state.port) : busiest(run);
      return { run, number, queue, name: runs.length === 1 ? queue && queue.port : run.name };
    }).filter(({ queue }) => queue);
  }
  // Below that a logarithmic scale has nothing to show: the size of a small packet.
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
        // Of several percentiles of one run each has a colour; of several runs each run has.
        const style = runs.length === 1 ? i : number;
        const name = parts.length === 1 ? run.name : runs.length === 1 ? part : `${run.name} ${part}`;
        const more = { pointRadius: 3, spanGaps: true, flows: labels.map((label) => bins[label] && bins[label].count) };
        if (runs.length > 1 && parts.length > 1) more.borderDash = [[2, 3], [7, 4], []][i];
        return dataset(style, name, values, more);
      }));
      const x = { type: "category", title: axisTitle("size"), grid: { color: themed("--grid"), borderColor: themed("--edge") },
        ticks: { color: themed("--faint") } };
      const y = yAxis("slowdown", (value) => `${value} x`, false);
      y.beginAtZero = false;
      y.suggestedMin = 1;
      const config = options(x, y, {
        label: (item) => ` ${item.dataset.label}: ${item.parsed.y.toPrecision(3)} x, ${count(item.dataset.flows[item.dataIndex])} flows`,
      }, { parsing: undefined, normalized: false, interaction: { mode: "index", intersect: false } });
      config.plugins.tooltip.itemSort = (a, b) => b.parsed.y - a.parsed.y;
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

  // ------------------------------------------------------------------------------------------ the page

  function ports() {
    const names = new Set(runs.flatMap((run) => run.queues.map((queue) => queue.port)));
    if (runs.length === 1) {
      const own = [...names].map((name) => [name, name]);
      return names.size > 1 ? [["", `${busiest(runs[0]).port}, the longest`], ...own.slice(1), ["*", "all of these"]] : own;
    }
    return [["", "the longest of each run"], ...[...names].map((name) => [name, name])];
  }
  function fillControls() {
    const choices = ports();
    if (choices.length === 1) state.port = choices[0][0];
    fillSelect("queue-port", "port", choices, ["queue", "spread"]);
    fillFieldset("queue-value", "value", [["most", "most"], ["mean", "mean"]], ["queue"]);
    fillFieldset("queue-scale", "scale", [["linear", "linear"], ["logarithmic", "log"]], ["queue", "spread"]);

    const withGoodput = runs.map((run, i) => [String(i), run.name]).filter(([i]) => runs[i].goodput.values.length);
    if (withGoodput.length) state.goodputRun = withGoodput[0][0];
    fillSelect("goodput-run", "goodputRun", withGoodput, []).addEventListener("change", () => {
      hiddenFlows.clear();
      fillFlowChips();
      draw(["goodput"]);
    });
    fillFieldset("throughput-grain", "grain", [["long", "long"], ["short", "short"]], ["throughput", "goodput"]);
    fillFieldset("goodput-look", "look", [["lines", "lines"], ["stacked", "stacked"]], ["goodput"]);

    const traffic = [...new Set(runs.flatMap((run) => run.traffic.filter((one) => one.slowdown).map((one) => one.name)))];
    state.traffic = traffic[0] || "";
    fillSelect("slowdown-traffic", "traffic", traffic.map((name) => [name, name]), ["slowdown"]);
    fillFieldset("slowdown-part", "part", [["p50", "p50"], ["p95", "p95"], ["p99", "p99"], ["all", "all three"]], ["slowdown"]);

    $("slowdown-traffic-label").hidden = traffic.length < 2;
    $("slowdown-section").hidden = traffic.length === 0;
    $("throughput-section").hidden = withGoodput.length === 0;
    $("goodput-section").hidden = withGoodput.length === 0;
    $("queue-section").hidden = $("spread-section").hidden = runs.every((run) => run.queues.length === 0);
    // The last of an odd number beside each other has the whole row.
    const halves = [...document.querySelectorAll(".charts > section:not(.wide)")].filter((section) => !section.hidden);
    if (halves.length % 2 === 1) halves[halves.length - 1].classList.add("wide");
    $("choose-all").addEventListener("click", () => chooseRuns(true));
    $("choose-none").addEventListener("click", () => chooseRuns(false));
  }
  // What has colours of the theme in it.
  function paint() {
    fillRuns();
    fillRunChips();
    fillFlowChips();
    draw(Object.keys(charts));
  }

  fillAbout();
  fillColumns();
  fillCommands();
  fillControls();
  paint();
  dark.addEventListener("change", paint);
})();
