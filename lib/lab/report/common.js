// State and functions that all scripts of the report share: runs (written by report.cpp), selection, colors, and number
// formats. The page contains the scripts one after another, in one scope.
"use strict";

const data = JSON.parse(document.getElementById("data").textContent);
const runs = data.runs;
const claims = data.claims;
const $ = (id) => document.getElementById(id);
const dark = window.matchMedia("(prefers-color-scheme: dark)");

// Colors that are distinguishable with color blindness. When all are in use, lines are dashed.
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

const chosen = new Set(runs.map((run, i) => i).slice(0, SHOWN_AT_FIRST));
const hiddenFlows = new Set();  // numbers of flows of the run whose goodput is shown
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

// If one queue is more than 50 times as long as another, a linear scale would show only one of them.
(function () {
  const longest = runs.map((run) => (busiest(run) ? Math.max(...busiest(run).most) : 0)).filter((most) => most > 0);
  if (longest.length > 1 && Math.max(...longest) > 50 * Math.min(...longest)) state.scale = "logarithmic";
})();
