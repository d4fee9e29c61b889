// Tables and controls of the report.
"use strict";

// Fills a fieldset with radio buttons.
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

// Sample of a line as in the charts.
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

const COLUMNS = [
  ["Goodput", "goodput_bps", rate, "payload that arrived or was acknowledged each second, after the time to settle, all traffic together"],
  ["Jain", "jain", decimal(3), "how evenly flows without end share (Jain's index): 1 when all get the same, 1/n when one of n gets all"],
  ["Slowdown p50", "slowdown_p50", decimal(2), "the time that flows took, as a multiple of the time alone in the network: the median, the lower one of two middle values"],
  ["Slowdown p99", "slowdown_p99", decimal(2), "the same: the value of rank 0.99 (n - 1), rounded down, of n flows in ascending order, counted from 0"],
  ["Port", "port", (name) => name || "-", "of a switch, the one with the longest queue of the run; the next four are its queue's"],
  ["Queue p50", "queue_p50", bytes, "median of the sampled lengths"],
  ["p95", "queue_p95", bytes, "95th percentile of the sampled lengths"],
  ["p99", "queue_p99", bytes, "99th percentile of the sampled lengths"],
  ["most", "queue_most", bytes, "the longest that was seen"],
  ["Drops", "drops", count, "packets that switches dropped, for whatever reason"],
  ["Marks", "marks", count, "packets that switches marked (ECN CE)"],
  ["CNPs", "cnps", count, "congestion notifications that receivers and switches sent"],
  ["Pauses", "pauses", count, "pause frames (PFC) that switches and hosts sent"],
  ["Sent again", "retransmissions", count, "packets that hosts sent once more"],
];
// Slowdown columns are omitted if no run has slowdowns.
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
function resultOf(claim) {
  if (claim.fails === "") return claim.holds ? "holds" : "fails";
  return claim.holds ? `holds, but is marked as failing: ${claim.fails}` : `fails (known): ${claim.fails}`;
}
function fillClaims() {
  $("claims-section").hidden = claims.length === 0;
  const holding = claims.filter((one) => one.holds).length;
  $("claims-meaning").textContent = `Of what the source reports, ${holding} of ${claims.length} hold here.`;
  const head = element("tr", {}, ...["Expected", "", "Found", "As it is written"].map((textContent) =>
    element("th", { textContent, className: "name", scope: "col" })));
  const rows = claims.map((one) =>
    element("tr", {},
      element("th", { className: "name", scope: "row", textContent: one.claim }),
      element("td", { className: one.holds ? "text" : "text fails", textContent: resultOf(one) }),
      element("td", { className: "text", textContent: one.found }),
      element("td", { className: "text command" }, element("code", { textContent: one.that }))));
  $("claims").replaceChildren(element("thead", {}, head), element("tbody", {}, ...rows));
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
  // Of an odd number of half-width sections, the last one occupies the whole row.
  const halves = [...document.querySelectorAll(".charts > section:not(.wide)")].filter((section) => !section.hidden);
  if (halves.length % 2 === 1) halves[halves.length - 1].classList.add("wide");
  $("choose-all").addEventListener("click", () => chooseRuns(true));
  $("choose-none").addEventListener("click", () => chooseRuns(false));
}
// Draws all parts that have colors of the theme.
function paint() {
  fillRuns();
  fillRunChips();
  fillFlowChips();
  draw(Object.keys(charts));
}

fillAbout();
fillColumns();
fillClaims();
fillCommands();
fillControls();
paint();
dark.addEventListener("change", paint);
