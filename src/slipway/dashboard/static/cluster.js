/** One cluster: what is not well, its rollout with the picture of it, its groups and its machines. */

import { fill, h, keyed } from "./dom.js";
import { number } from "./format.js";
import { rolloutBody } from "./fleet.js";
import { LISTS } from "./lists.js";
import { badge, clusterBadge, empty, facts, link, openLink, section, versions } from "./parts.js";
import { problemCard } from "./problem.js";
import { Table } from "./table.js";
import { Timeline } from "./timeline.js";
import { sorted } from "./lists.js";
import { adjust, route } from "./route.js";

/** @typedef {import("./store.js").Row} Row */
/** @typedef {import("./store.js").Store} Store */

export class ClusterView {
  /** @param {string} namespace @param {string} name @param {(row: Row) => void} open */
  constructor(namespace, name, open) {
    this.key = `cluster/${namespace}/${name}`;
    this.title = name;
    this.head = h("div", { class: "title" });
    this.facts = h("div", null);
    this.problems = h("div", { class: "stack" });
    this.problemsSection = section("What is not well", this.problems);
    this.rollout = h("div", { class: "card" });
    this.rolloutSection = section("Rollout", this.rollout);
    this.groups = h("div", { class: "cards" });
    this.timeline = new Timeline(namespace, name);
    const columns = LISTS.machines.columns.map((column) =>
      column.key === "cluster" ? { key: "group", title: "Group", width: column.width, cell: (/** @type {Row} */ row) => (row.controlPlane ? "control plane" : row.group) } : column,
    );
    this.table = new Table({ label: `Machines of ${name}`, columns, open, sort: (column) => adjust({ sort: route().sort === column ? `-${column}` : column }) });
    this.body = h(
      "div",
      null,
      this.facts,
      this.problemsSection,
      this.rolloutSection,
      section("Timeline", this.timeline.element),
      section("Groups", this.groups),
      section("Machines", this.table.element),
    );
    this.none = h("div", null);
    this.element = h("div", { class: "view" }, h("nav", { "aria-label": "Where this is", class: "crumbs" }, link({}, "Fleet"), " / ", h("span", { "aria-current": "page" }, name)), this.head, this.none, this.body);
  }

  mount() {
    this.table.mount();
    if (route().to === "timeline") {
      this.timeline.element.parentElement?.scrollIntoView();
      adjust({ to: "" });
    }
  }

  unmount() {
    this.table.unmount();
  }

  /** @param {Store} store */
  update(store) {
    const row = store.rows.get(this.key);
    this.body.hidden = !row;
    fill(this.none, !row && store.complete ? empty("This cluster is not there any more, or you may not see it.") : null);
    fill(this.head, h("h1", null, this.title), row ? clusterBadge(row) : null);
    if (!row) return;
    const pools = store.poolsOf(row);
    fill(
      this.facts,
      facts([
        ["Namespace", row.namespace],
        ["Versions", versions(row)],
        ["Endpoint", row.endpoint ? h("code", null, row.endpoint) : ""],
        ["Pools", pools.length ? pools.map((pool, index) => [index ? ", " : "", openLink(pool.key, pool.name)]) : ""],
      ]),
    );
    const problems = [...(row.problems ?? []), ...pools.flatMap((pool) => pool.problems ?? [])];
    const seen = new Map(problems.map((each) => [`${each.object.kind}/${each.object.name}/${each.condition}`, each]));
    this.problemsSection.hidden = !seen.size;
    keyed(this.problems, [...seen.entries()].slice(0, 50), ([key]) => key, ([, each]) => JSON.stringify(each), ([, each]) => problemCard(each));
    this.rolloutSection.hidden = !row.rollout;
    if (row.rollout) fill(this.rollout, rolloutBody(row.rollout, row.name));
    keyed(this.groups, row.groups ?? [], (group) => group.name, (group) => JSON.stringify(group), groupCard);
    this.timeline.update(row, store.revision);
    this.table.update(sorted(store.machinesOf(row), route().sort ?? ""), { sort: route().sort || "name", opened: route().open ?? "" });
  }
}

/** @param {any} group */
function groupCard(group) {
  const short = group.ready < group.desired;
  return h(
    "article",
    { class: "card" },
    h("header", null, h("h3", null, group.controlPlane ? "Control plane" : group.name), badge(short ? "busy" : "good", `${number(group.ready)}/${number(group.desired)} ready`)),
    facts([
      ["Name", group.controlPlane ? group.name : ""],
      ["Version", group.target ? `${group.version}, then ${group.target}` : group.version],
      ["Up to date", `${number(group.upToDate)} of ${number(group.desired)}`],
      ["Available", number(group.available)],
      ["Machines", number(group.replicas)],
    ]),
  );
}
