/** The first view: how the fleet stands, what needs somebody, and the rollouts, clusters and pools. */

import { fill, h, keyed } from "./dom.js";
import { duration, number, plural, SEVERAL, STAGES } from "./format.js";
import { bar, clusterBadge, clusterLink, empty, legend, link, openLink, progress, section, since, versions } from "./parts.js";
import { problemCard } from "./problem.js";
import { isBad } from "./store.js";
import { Timeline } from "./timeline.js";

/** @typedef {import("./store.js").Row} Row */
/** @typedef {import("./store.js").Store} Store */

const MOST_PROBLEMS = 4;
/** So many pictures of rollouts are open at first. */
const MOST_PICTURES = 3;

export class FleetView {
  constructor() {
    this.title = "Fleet";
    this.tiles = h("div", { class: "tiles" });
    this.notes = h("div", { class: "notes" });
    this.problems = h("div", { class: "stack" });
    this.more = h("p", { class: "more" });
    this.attention = section("Needs attention", this.problems, this.more);
    this.rollouts = h("div", { class: "stack" });
    this.rolling = section("Rollouts", this.rollouts);
    this.clusters = h("div", { class: "cards" });
    this.pools = h("div", { class: "cards" });
    this.nothing = h("div", null);
    /** @type {Map<string, RolloutCard>} */
    this.cards = new Map();
    this.element = h(
      "div",
      { class: "view" },
      h("h1", { class: "unseen" }, "Fleet"),
      this.tiles,
      this.notes,
      this.attention,
      this.rolling,
      section("Clusters", this.clusters),
      section("Pools", this.pools),
      this.nothing,
    );
  }

  /** @param {Store} store */
  update(store) {
    const problems = store.problems().filter((problem) => problem.lasting);
    const clusters = store.all("cluster");
    const rolling = clusters.filter((row) => row.rollout);
    this.drawTiles(store, problems.length, rolling.length);
    drawNotes(this.notes, store);
    this.attention.hidden = !problems.length;
    keyed(this.problems, problems.slice(0, MOST_PROBLEMS), (each) => each.key, (each) => JSON.stringify(each), (each) => problemCard(each));
    fill(this.more, problems.length > MOST_PROBLEMS ? link({ view: "problems" }, `All ${plural(problems.length, "problem")}`) : null);
    this.rolling.hidden = !rolling.length;
    keyed(this.rollouts, rolling, (row) => row.key, (row) => row.key, (row) => this.rolloutCard(row));
    for (const row of rolling) this.cards.get(row.key)?.update(row, store.revision);
    keyed(this.clusters, clusters, (row) => row.key, (row) => row, clusterCard);
    const pools = store.all("pool");
    keyed(this.pools, pools, (row) => row.key, (row) => row, poolCard);
    /** @type {HTMLElement} */ (this.clusters.parentElement).hidden = !clusters.length;
    /** @type {HTMLElement} */ (this.pools.parentElement).hidden = !pools.length;
    fill(this.nothing, !store.rows.size && store.complete ? empty("There is no cluster, pool or host yet. Hosts appear here as they register.") : null);
  }

  /** The card of a rollout; it stays the same one as long as the rollout goes on. @param {Row} row */
  rolloutCard(row) {
    const card = new RolloutCard(row, this.cards.size < MOST_PICTURES);
    this.cards.set(row.key, card);
    return card.element;
  }

  /** @param {Store} store @param {number} problems @param {number} rolling */
  drawTiles(store, problems, rolling) {
    const clusters = store.all("cluster");
    const machines = store.all("machine");
    const hosts = store.stages("host");
    const nodes = machines.filter((row) => row.stage === "node").length;
    const parts = /** @type {[string, number, string][]} */ (Object.keys(STAGES).map((stage) => [stage, hosts.get(stage) ?? 0, SEVERAL[stage]]));
    fill(
      this.tiles,
      tile("Clusters", number(clusters.length), rolling ? `${plural(rolling, "rollout")} under way` : "no rollout under way", {}),
      tile("Nodes", `${number(nodes)}`, `of ${plural(machines.length, "machine")}`, { view: "machines" }),
      tile(
        "Problems",
        number(problems),
        problems ? `${problems === 1 ? "stays" : "stay"} until somebody acts` : "nothing waits for you",
        { view: "problems" },
        problems ? "bad" : "good",
      ),
      h(
        "div",
        { class: "tile hosts" },
        h("div", { class: "tile-head" }, link({ view: "hosts" }, "Hosts"), h("strong", null, number(store.all("host").length))),
        bar(parts, "Hosts by stage"),
        legend(parts),
      ),
    );
  }
}

/** What is not shown, and why. @param {HTMLElement} place @param {Store} store */
export function drawNotes(place, store) {
  const missing = [...new Set(Object.values(store.missing))];
  fill(place, missing.length ? h("details", { class: "note" }, h("summary", null, `Not everything is shown: ${plural(missing.length, "kind")} cannot be read in full`), h("ul", null, missing.map((text) => h("li", null, text)))) : null);
}

/** @param {string} name @param {string} value @param {string} words @param {Record<string, string>} to @param {string} [kind] */
function tile(name, value, words, to, kind = "") {
  return h("div", { class: `tile ${kind}` }, h("div", { class: "tile-head" }, Object.keys(to).length ? link(to, name) : h("span", null, name)), h("strong", null, value), h("span", { class: "quiet" }, words));
}

/** From where to where. @param {any} rollout */
export function wayOf(rollout) {
  const from = (rollout.fromVersions ?? []).filter((/** @type {string} */ version) => version !== rollout.toVersion);
  const target = rollout.target ? `, then ${rollout.target}` : "";
  return from.length ? `${from.join(", ")} → ${rollout.toVersion}${target}` : `${rollout.toVersion}${target}`;
}

/** @param {any} rollout @param {string} name */
export function rolloutBody(rollout, name) {
  const left = rollout.estimateSeconds;
  const current = rollout.current ?? [];
  return [
    h("p", { class: "way" }, wayOf(rollout)),
    progress(rollout.done, rollout.total, `Rollout of ${name}`),
    h(
      "p",
      { class: "quiet" },
      `${number(rollout.done)} of ${plural(rollout.total, "machine")}`,
      rollout.began ? [", for ", since(rollout.began)] : "",
      left !== null && left !== undefined ? `, about ${duration(left)} to go` : "",
    ),
    current.length ? h("p", { class: "quiet clip" }, `On the way: ${current.slice(0, 4).join(", ")}${current.length > 4 ? ` and ${current.length - 4} more` : ""}`) : null,
  ];
}

/** A rollout with its picture, which is drawn when it is open. */
class RolloutCard {
  /** @param {Row} row @param {boolean} open */
  constructor(row, open) {
    this.body = h("div", { class: "rollout" });
    this.badge = h("span", null);
    this.timeline = new Timeline(row.namespace, row.name);
    this.picture = /** @type {HTMLDetailsElement} */ (h("details", { "data-name": "timeline", open }, h("summary", null, "Timeline"), this.timeline.element));
    const to = { view: "cluster", namespace: row.namespace, name: row.name };
    this.element = h("article", { class: "card" }, h("header", null, h("h3", null, link(to, row.name)), this.badge), this.body, this.picture);
  }

  /** @param {Row} row @param {number} revision */
  update(row, revision) {
    fill(this.badge, clusterBadge(row));
    fill(this.body, rolloutBody(row.rollout, row.name));
    if (this.picture.open) this.timeline.update(row, revision);
  }
}

/** @param {Row} row */
function clusterCard(row) {
  const bad = (row.problems ?? []).filter((/** @type {any} */ problem) => problem.lasting);
  return h(
    "article",
    { class: `card ${isBad(row) ? "bad" : ""}` },
    h("header", null, h("h3", null, clusterLink(row)), clusterBadge(row)),
    h("p", { class: "quiet" }, [row.namespace, versions(row)].filter(Boolean).join(" · ")),
    h(
      "ul",
      { class: "groups" },
      (row.groups ?? []).map((/** @type {any} */ group) =>
        h(
          "li",
          null,
          h("span", { class: "clip" }, group.controlPlane ? "Control plane" : group.name),
          h("span", { class: group.ready < group.desired ? "count low" : "count" }, `${number(group.ready)}/${number(group.desired)} ready`),
        ),
      ),
    ),
    bad.length ? h("p", { class: "to-do" }, bad[0].message || bad[0].reason, bad[0].toDo ? h("span", null, ` ${bad[0].toDo}`) : null) : null,
  );
}

/** @param {Row} row */
function poolCard(row) {
  const parts = poolParts(row);
  return h(
    "article",
    { class: `card ${isBad(row) ? "bad" : ""}` },
    h("header", null, h("h3", null, openLink(row.key, row.name)), h("span", { class: "quiet" }, plural(row.total ?? 0, "host"))),
    h("p", { class: "quiet" }, row.cluster ? `for ${row.cluster}` : row.namespace),
    bar(parts, `Hosts of ${row.name}`),
    legend(parts),
    (row.problems ?? []).slice(0, 1).map((/** @type {any} */ problem) => h("p", { class: "to-do" }, problem.message || problem.reason, problem.toDo ? ` ${problem.toDo}` : "")),
  );
}

/** @param {Row} row @returns {[string, number, string][]} */
export const poolParts = (row) => [
  ["node", row.allocated ?? 0, "in use"],
  ["free", row.available ?? 0, "free"],
  ["reprovisioning", row.reprovisioning ?? 0, "get an image"],
  ["cleaning", row.preparing ?? 0, "are cleaned"],
  ["unavailable", row.unavailable ?? 0, "unavailable"],
];
