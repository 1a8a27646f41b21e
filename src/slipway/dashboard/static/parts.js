/** Small things that several views draw: badges, bars, times, links to other things. */

import { h, s } from "./dom.js";
import { ago, moment, number, STAGES } from "./format.js";
import { href, route } from "./route.js";
import { isBad } from "./store.js";

/** @typedef {import("./store.js").Row} Row */

/** A stage in words, with its colour. @param {string | undefined} stage */
export const stageBadge = (stage) => h("span", { class: `stage stage-${stage || "none"}` }, STAGES[stage ?? ""] ?? stage ?? "—");

/** @param {"good" | "busy" | "bad" | "quiet"} kind @param {string} text */
export const badge = (kind, text) => h("span", { class: `badge ${kind}` }, text);

/** How long ago something was; it counts on. @param {string | undefined} time */
export const since = (time) => (time ? h("time", { datetime: time, title: moment(time), "data-since": true }, ago(time)) : "");

/** Let all times on the page count on. */
export function tick() {
  for (const element of document.querySelectorAll("time[data-since]")) {
    const text = ago(element.getAttribute("datetime") ?? "");
    if (element.textContent !== text) element.textContent = text;
  }
}

/** A link within the page. @param {Record<string, string>} to @param {any} text @param {Record<string, any>} [attributes] */
export const link = (to, text, attributes = {}) => h("a", { href: href(to), "data-link": true, ...attributes }, text);

/** @param {Row} row @param {string} [text] */
export const clusterLink = (row, text = row.name) => link({ view: "cluster", namespace: row.namespace, name: row.name }, text);

/** Open something beside what is shown. @param {string} key @param {any} text */
export const openLink = (key, text) => link({ ...route(), open: key }, text, { "data-focus": `open ${key}` });

/**
 * Parts of a whole beside each other, with their meaning in words for who cannot see them.
 * @param {[string, number, string][]} parts class, count and word of each
 * @param {string} label
 */
export function bar(parts, label) {
  const total = parts.reduce((sum, [, count]) => sum + count, 0);
  const words = parts.filter(([, count]) => count).map(([, count, word]) => `${number(count)} ${word}`);
  const drawing = s("svg", { class: "bar", viewBox: "0 0 100 8", preserveAspectRatio: "none", role: "img", "aria-label": `${label}: ${words.join(", ") || "none"}` });
  let x = 0;
  for (const [name, count, word] of parts) {
    const width = total ? (count / total) * 100 : 0;
    if (width) drawing.append(s("rect", { class: `fill-${name}`, x, y: 0, width, height: 8 }, s("title", null, `${number(count)} ${word}`)));
    x += width;
  }
  return drawing;
}

/** What the colours of a bar mean. @param {[string, number, string][]} parts */
export function legend(parts) {
  const shown = parts.filter(([, count]) => count);
  return h(
    "ul",
    { class: "legend" },
    shown.map(([name, count, word]) => h("li", null, h("i", { class: `dot dot-${name}`, "aria-hidden": "true" }), h("b", null, number(count)), ` ${word}`)),
  );
}

/** How far a rollout is. @param {number} done @param {number} total @param {string} label */
export function progress(done, total, label) {
  const percent = total ? Math.round((done / total) * 100) : 0;
  const attributes = { role: "progressbar", "aria-valuemin": 0, "aria-valuemax": total, "aria-valuenow": done, "aria-label": label };
  const drawing = s("svg", { viewBox: "0 0 100 8", preserveAspectRatio: "none", "aria-hidden": "true" }, s("rect", { class: "fill-done", width: percent, height: 8 }));
  return h("div", { class: "progress", ...attributes }, drawing);
}

/** Facts in two columns; those that are not known are left out. @param {[string, any][]} facts */
export const facts = (facts) =>
  h(
    "dl",
    { class: "facts" },
    facts.filter(([, value]) => value !== "" && value !== null && value !== undefined).map(([name, value]) => [h("dt", null, name), h("dd", null, value)]),
  );

/** The state of a cluster in a word. @param {Row} cluster */
export function clusterBadge(cluster) {
  if (cluster.deleting) return badge("busy", "is deleted");
  if (isBad(cluster)) return badge("bad", "needs attention");
  if (cluster.paused) return badge("quiet", "paused");
  if (cluster.rollout) return badge("busy", cluster.rollout.fromVersions?.length ? "rolls out" : "grows");
  if (cluster.available) return badge("good", "available");
  return badge("quiet", (cluster.phase || "unknown").toLowerCase());
}

/** The versions of a cluster's groups, each once. @param {Row} cluster */
export const versions = (cluster) => [...new Set((cluster.groups ?? []).map((/** @type {any} */ group) => group.version).filter(Boolean))].join(", ");

/** @param {string} title @param {...any} children */
export const section = (title, ...children) => {
  const id = `s-${title.toLowerCase().replace(/\W+/g, "-")}`;
  return h("section", { "aria-labelledby": id }, h("h2", { id }, title), children);
};

/** Nothing is there, and that is right. @param {string} text */
export const empty = (text) => h("p", { class: "empty" }, text);
