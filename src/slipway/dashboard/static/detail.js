/** One host, machine or pool beside what is shown: what is wrong with it, what it is, and how to look at it with kubectl. */

import { fill, h } from "./dom.js";
import { moment } from "./format.js";
import { poolParts } from "./fleet.js";
import { bar, clusterLink, facts, legend, link, openLink, since, stageBadge } from "./parts.js";
import { problemCard } from "./problem.js";
import { problemsOf } from "./store.js";

/** @typedef {import("./store.js").Row} Row */
/** @typedef {import("./store.js").Store} Store */

const RESOURCES = /** @type {Record<string, string>} */ ({
  cluster: "cluster",
  host: "machineinventory",
  machine: "machine",
  pool: "machineinventorypool",
});
const NOUNS = /** @type {Record<string, string>} */ ({ cluster: "Cluster", host: "Host", machine: "Machine", pool: "Pool" });

export class Detail {
  /** @param {HTMLElement} element @param {() => void} close */
  constructor(element, close) {
    this.element = element;
    this.close = close;
    this.shown = /** @type {{key: string, row: Row | undefined} | null} */ (null);
    element.addEventListener("keydown", (event) => {
      if (event.key === "Escape") close();
    });
  }

  /** @param {Store} store @param {string} key */
  update(store, key) {
    const row = store.rows.get(key);
    this.element.hidden = !key;
    document.body.classList.toggle("beside", !!key);
    if (!key) {
      this.shown = null;
      return;
    }
    const isNew = this.shown?.key !== key;
    if (!isNew && this.shown?.row === row) return;
    this.shown = { key, row };
    const [type, namespace, ...rest] = key.split("/");
    const name = rest.join("/");
    const hadFocus = this.element.contains(document.activeElement);
    fill(
      this.element,
      // Where there is no room for both, this is the page.
      h("h1", { class: "unseen narrow" }, NOUNS[type] ?? type),
      h(
        "div",
        { class: "detail-head" },
        h("div", null, h("p", { class: "quiet" }, `${NOUNS[type] ?? type} in ${namespace}`), h("h2", { id: "detail-title", tabindex: "-1" }, name)),
        h("button", { type: "button", class: "icon close", "aria-label": "Close", title: "Close (Esc)", onclick: this.close }),
      ),
      row ? body(row, store) : h("p", { class: "empty" }, store.complete ? "It is not there any more." : "Looking…"),
      h("h3", null, "With kubectl"),
      h("pre", null, h("code", null, `kubectl -n ${namespace} get ${RESOURCES[type] ?? type} ${name} -o yaml`)),
    );
    if (isNew || hadFocus) this.element.querySelector("h2")?.focus({ preventScroll: true });
  }
}

/** @param {Row} row @param {Store} store */
function body(row, store) {
  const problems = problemsOf(row).map((problem) => problemCard(problem, { explained: true, where: false }));
  return [problems.length ? h("div", { class: "stack" }, problems) : null, { host, machine, pool, cluster }[row.type]?.(row, store) ?? null];
}

/** @param {Row} row @param {Store} store @param {string} type @param {string} name */
function other(row, store, type, name) {
  const key = `${type}/${row.namespace}/${name}`;
  return name && store.rows.has(key) ? openLink(key, name) : name;
}

/** @param {Row} row @param {Store} store */
const ofCluster = (row, store) => (row.cluster && store.rows.has(`cluster/${row.namespace}/${row.cluster}`) ? clusterLink({ namespace: row.namespace, name: row.cluster }) : row.cluster);

/** @param {Row} row @param {Store} store */
function host(row, store) {
  const plan = row.plan;
  return facts([
    ["Stage", h("span", null, stageBadge(row.stage), row.since ? [" for ", since(row.since)] : "")],
    ["In its pool", row.state ? row.state.toLowerCase() : "no pool has it"],
    ["Pool", other(row, store, "pool", row.pool)],
    ["Cluster", ofCluster(row, store)],
    ["Machine", other(row, store, "machine", row.machine)],
    ["Version", row.version],
    ["Image", row.image ? h("code", { class: "break" }, row.image) : ""],
    ["Plan", plan ? `${plan.type}: ${plan.state}${plan.steps ? `, step ${plan.step + 1} of ${plan.steps}` : ""}${plan.failures ? `, ${plan.failures} failures` : ""}` : ""],
    ["It does", plan?.instruction ?? ""],
    ["It said", plan?.message ? h("code", { class: "break" }, plan.message) : ""],
    ["Quarantined", row.quarantined ? "yes" : ""],
    ["Last heard", row.lastHeard ? h("time", { datetime: row.lastHeard }, moment(row.lastHeard)) : ""],
  ]);
}

/** @param {Row} row @param {Store} store */
function machine(row, store) {
  return facts([
    ["Stage", h("span", null, stageBadge(row.stage), row.since ? [" for ", since(row.since)] : "")],
    ["Cluster", ofCluster(row, store)],
    ["Group", row.controlPlane ? `${row.group} (control plane)` : row.group],
    ["Version", row.upToDate ? row.version : `${row.version}, to be replaced`],
    ["Kubelet", row.kubeletVersion],
    ["Node", row.node],
    ["Host", other(row, store, "host", row.host)],
    ["Phase", row.phase],
    ["Made", row.made ? h("span", null, since(row.made), " ago") : ""],
    ["A Node since", row.joined ? h("time", { datetime: row.joined }, moment(row.joined)) : ""],
  ]);
}

/** @param {Row} row @param {Store} store */
function pool(row, store) {
  const parts = poolParts(row);
  return [
    h("div", { class: "pool" }, bar(parts, `Hosts of ${row.name}`), legend(parts)),
    facts([
      ["Cluster", ofCluster(row, store)],
      ["Hosts", link({ view: "hosts", pool: row.name, namespace: row.namespace }, `${row.total}`)],
    ]),
  ];
}

/** @param {Row} row */
const cluster = (row) => h("p", null, clusterLink(row, "Everything about it"));
