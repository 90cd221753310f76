"use strict";
// Draws the charts, and says when what is shown has become old. All else is done by htmx.
document.documentElement.classList.add("js");

const OLD_AFTER_MS = 5000;
const RECONNECT_MS = 1000;
// Seconds between the marks of the time axis, whose labels have no seconds.
const MINUTES = [60, 300, 600, 900, 1800];
const plots = new Map();
let heardAt = Date.now();
let trouble = "";

function colour(name) {
  return getComputedStyle(document.documentElement).getPropertyValue(name).trim();
}

// In UTC, as the page's own time is.
function clock(seconds) {
  return new Date(seconds * 1000).toISOString().slice(11, 16);
}

function options(width) {
  const line = { stroke: colour("--line"), width: 1 };
  const axis = { stroke: colour("--soft"), grid: line, ticks: line };
  const named = width > 600;
  const fromZero = (_, low, high) => [0, high || 1];
  return {
    width, height: 240,
    legend: { live: false },
    scales: { rate: { range: fromZero }, lag: { range: fromZero } },
    axes: [
      { ...axis, incrs: MINUTES, values: (_, times) => times.map(clock) },
      { ...axis, scale: "lag", label: named ? "seconds behind" : null, size: 50 },
      { ...axis, scale: "rate", side: 1, label: named ? "records/s" : null, size: 60, grid: { show: false } },
    ],
    series: [
      {},
      { label: "seconds behind", scale: "lag", stroke: colour("--warn"), width: 1.5, spanGaps: false },
      { label: "records/s", scale: "rate", stroke: colour("--busy"), width: 1.5, spanGaps: false },
    ],
  };
}

function draw() {
  for (const [element, plot] of plots) {
    if (!element.isConnected) { plot.destroy(); plots.delete(element); }
  }
  for (const element of document.querySelectorAll(".plot[data-points]")) {
    const data = JSON.parse(element.dataset.points);
    const width = Math.max(200, element.clientWidth - 12);
    const known = plots.get(element);
    if (known) known.setData(data);
    else plots.set(element, new uPlot(options(width), data, element));
  }
}

function redraw() {
  for (const plot of plots.values()) plot.destroy();
  plots.clear();
  draw();
}

function heard(event) {
  heardAt = Date.now();
  trouble = "";
  const text = event?.detail?.data;
  if (text) document.getElementById("asof").textContent = text;
  check();
}

function check() {
  const banner = document.getElementById("banner");
  const old = Date.now() - heardAt;
  const text = trouble || (old > OLD_AFTER_MS ? `Nothing was heard of the mirror for ${Math.round(old / 1000)} s. What is shown is from then.` : "");
  if (banner.textContent !== text) banner.textContent = text;
  banner.hidden = !text;
}

const content = document.getElementById("content");
// The extension connects again where it was connected once. Whatever else answered at first is no part of the page.
content.addEventListener("htmx:before:response", event => {
  if (!event.detail.ctx.response.headers.get("Content-Type")?.includes("text/event-stream")) event.preventDefault();
});
content.addEventListener("htmx:finally:request", () => setTimeout(() => htmx.trigger(content, "reconnect"), RECONNECT_MS));
content.addEventListener("alive", heard);
content.addEventListener("trouble", event => { heardAt = Date.now(); trouble = event.detail.data; check(); });
document.addEventListener("htmx:sse:after:message", draw);
document.addEventListener("visibilitychange", () => { if (!document.hidden) heardAt = Date.now(); });
matchMedia("(prefers-color-scheme: dark)").addEventListener("change", redraw);
addEventListener("resize", () => { for (const [element, plot] of plots) plot.setSize({ width: Math.max(200, element.clientWidth - 12), height: 240 }); });
setInterval(() => { if (!document.hidden) check(); }, 1000);
draw();
