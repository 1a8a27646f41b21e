/** The picture of a rollout: the life of each host as a row of spans. Every picture says in words what it shows. */

import { fill, h, s } from "./dom.js";
import { duration, moment, natural, now, plural, STAGES } from "./format.js";
import { adjust, route } from "./route.js";
import { ask } from "./session.js";

/** @typedef {{stage: string, begin: string, end: string, version?: string, text?: string}} Span */
/** @typedef {{namespace: string, name: string, spans: Span[]}} Life */

/** The width of a picture in units; it is stretched to the room that there is. */
const UNITS = 1000;
/** The narrowest that a span is drawn. */
const LEAST = 2;
const MOST_ROWS = 400;
const TICKS = 5;
/** Milliseconds between two looks at a rollout that goes on. */
const PAUSE = 3000;
const HOUR = 3_600_000;
const RANGES = /** @type {[string, string, number][]} */ ([
  ["15m", "15 min", HOUR / 4],
  ["1h", "1 h", HOUR],
  ["6h", "6 h", 6 * HOUR],
  ["1d", "1 d", 24 * HOUR],
  ["7d", "7 d", 168 * HOUR],
]);

export class Timeline {
  /** @param {string} namespace @param {string} cluster */
  constructor(namespace, cluster) {
    this.path = `/api/timeline?${new URLSearchParams({ namespace, cluster })}`;
    this.asked = -Infinity;
    this.asking = false;
    this.seen = -1;
    /** @type {Life[]} */
    this.rows = [];
    this.began = "";
    this.target = "";
    /** When what happened last began. */
    this.story = "";
    this.ranges = h("div", { class: "ranges", role: "group", "aria-label": "How far back" });
    this.lives = h("ol", { class: "lives" });
    this.axis = h("div", { class: "axis", "aria-hidden": "true" });
    this.legend = h("ul", { class: "legend" });
    this.note = h("p", { class: "quiet", role: "status" }, "The timeline is being read…");
    this.element = h("div", { class: "timeline" }, this.ranges, this.legend, this.lives, this.axis, this.note);
  }

  /** @param {import("./store.js").Row} cluster @param {number} revision */
  update(cluster, revision) {
    this.began = cluster.rollout?.began ?? "";
    this.target = cluster.rollout?.toVersion ?? (cluster.groups ?? []).map((/** @type {any} */ group) => group.version).sort(natural).at(-1) ?? "";
    if (revision !== this.seen && !this.asking && performance.now() - this.asked > PAUSE) this.load(revision);
    else this.draw();
  }

  /** @param {number} revision */
  async load(revision) {
    this.asking = true;
    this.asked = performance.now();
    try {
      const found = await (await ask(this.path)).json();
      this.rows = found.rows;
      this.story = found.begin;
      this.seen = revision;
      this.note.textContent = this.told();
    } catch (error) {
      this.note.textContent = `The timeline is not there: ${/** @type {Error} */ (error).message}.`;
    }
    this.asking = false;
    this.draw();
  }

  /** What the picture alone does not say. */
  told() {
    if (!this.rows.length) return "Nothing is remembered of its hosts.";
    return this.rows.length > MOST_ROWS ? `The first ${MOST_ROWS} of ${plural(this.rows.length, "host")} are drawn.` : "";
  }

  /** From when to when, in milliseconds. @returns {[number, number]} */
  window() {
    const end = now();
    const chosen = RANGES.find(([name]) => name === route().range);
    if (chosen) return [end - chosen[2], end];
    if (this.began) {
      const began = Date.parse(this.began);
      return [began - Math.max(2000, (end - began) * 0.04), end];
    }
    return [this.story ? Math.min(Date.parse(this.story), end - 1000) : end - HOUR, end];
  }

  draw() {
    const [begin, end] = this.window();
    const chosen = route().range ?? "";
    fill(
      this.ranges,
      [["", this.began ? "The rollout" : "What was last", 0], ...RANGES].map(([name, words]) =>
        h("button", { type: "button", class: "chip", "aria-pressed": String(chosen === name), "data-focus": `range ${name}`, onclick: () => adjust({ range: String(name) }) }, words),
      ),
    );
    const used = new Set();
    const rows = [...this.rows].sort((a, b) => natural(a.name, b.name)).slice(0, MOST_ROWS);
    fill(this.lives, rows.map((row) => this.life(row, begin, end, used)));
    fill(this.legend, this.meanings(used));
    // Without a row, a scale is of nothing.
    fill(this.axis, rows.length ? [h("span", { class: "name" }), h("span", { class: "ticks" }, ticks(begin, end))] : null);
  }

  /** @param {Life} row @param {number} begin @param {number} end @param {Set<string>} used */
  life(row, begin, end, used) {
    const drawing = s("svg", { viewBox: `0 0 ${UNITS} 20`, preserveAspectRatio: "none", role: "img" });
    const words = [];
    const scale = UNITS / Math.max(1, end - begin);
    for (const span of row.spans) {
      const from = Math.max(begin, Date.parse(span.begin));
      const to = Math.min(end, span === row.spans.at(-1) ? end : Date.parse(span.end));
      if (to < begin || from > end) continue;
      const name = this.classOf(span);
      const told = `${STAGES[span.stage] ?? span.stage}${span.version ? ` ${span.version}` : ""}, ${duration((to - from) / 1000)} from ${moment(span.begin)}`;
      used.add(name);
      words.push(told);
      const x = (from - begin) * scale;
      drawing.append(s("rect", { class: `fill-${name}`, x: x.toFixed(1), y: 0, height: 20, width: Math.max(LEAST, (to - from) * scale).toFixed(1) }, s("title", null, `${row.name}: ${told}`)));
    }
    drawing.setAttribute("aria-label", `${row.name}: ${words.join("; ") || "nothing in this time"}`);
    return h("li", null, h("span", { class: "name" }, row.name), drawing);
  }

  /** Nodes of the version that the rollout ends with look another way than those before. @param {Span} span */
  classOf(span) {
    return span.stage === "node" && this.target && span.version && span.version !== this.target ? "old" : span.stage;
  }

  /** @param {Set<string>} used */
  meanings(used) {
    const words = /** @type {[string, string][]} */ (
      Object.entries(STAGES).flatMap(([stage, word]) => (stage === "node" ? [["old", "a Node before"], ["node", this.target ? `a Node of ${this.target}` : "a Node"]] : [[stage, word]]))
    );
    return words.filter(([name]) => used.has(name)).map(([name, word]) => h("li", null, h("i", { class: `dot dot-${name}`, "aria-hidden": "true" }), word));
  }
}

/** @param {number} begin @param {number} end */
function ticks(begin, end) {
  const days = end - begin > 36 * HOUR;
  const seconds = end - begin < HOUR / 6;
  /** @type {Intl.DateTimeFormatOptions} */
  const how = days ? { month: "short", day: "numeric" } : { hour: "2-digit", minute: "2-digit", ...(seconds ? { second: "2-digit" } : {}) };
  return Array.from({ length: TICKS }, (_, index) => h("span", null, new Date(begin + ((end - begin) * index) / (TICKS - 1)).toLocaleString(undefined, how)));
}
