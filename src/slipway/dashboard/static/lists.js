/** The long lists: hosts, machines and problems, with filters that are in the URL. */

import { fill, h, keyed } from "./dom.js";
import { natural, number, plural, STAGES } from "./format.js";
import { empty, link, since, stageBadge } from "./parts.js";
import { problemCard } from "./problem.js";
import { adjust, route } from "./route.js";
import { isBad, problemsOf } from "./store.js";
import { Table } from "./table.js";

/** @typedef {import("./store.js").Row} Row */
/** @typedef {import("./store.js").Store} Store */

const MOST_PROBLEMS = 200;

/** What is wrong with a row, on a line. @param {Row} row */
function note(row) {
  const [problem] = problemsOf(row);
  if (!problem) return row.quarantined ? "quarantined" : "";
  const text = [problem.message || problem.reason, problem.toDo].filter(Boolean).join(" → ");
  return h("span", { class: problem.lasting ? "wrong" : "quiet", title: text }, text);
}

/** @type {Record<string, {title: string, type: string, noun: string, filters: [string, string][], columns: import("./table.js").Column[]}>} */
export const LISTS = {
  hosts: {
    title: "Hosts",
    type: "host",
    noun: "host",
    filters: [["stage", "Stage"], ["cluster", "Cluster"], ["pool", "Pool"], ["version", "Version"], ["namespace", "Namespace"]],
    columns: [
      { key: "name", title: "Host", width: "minmax(9rem, 1.2fr)", class: "name", cell: (row) => row.name },
      { key: "stage", title: "Stage", width: "9.5rem", class: "state", cell: (row) => stageBadge(row.stage) },
      { key: "version", title: "Version", width: "6.5rem", cell: (row) => row.version ?? "" },
      { key: "cluster", title: "Cluster", width: "minmax(6rem, 1fr)", cell: (row) => row.cluster ?? "" },
      { key: "pool", title: "Pool", width: "minmax(7rem, 1.2fr)", class: "wide", cell: (row) => row.pool ?? "" },
      { key: "since", title: "For", width: "6.5rem", class: "age", cell: (row) => since(row.since) },
      { key: "note", title: "What is wrong", width: "minmax(10rem, 2fr)", class: "note", cell: note },
    ],
  },
  machines: {
    title: "Machines",
    type: "machine",
    noun: "machine",
    filters: [["stage", "Stage"], ["cluster", "Cluster"], ["group", "Group"], ["version", "Version"], ["namespace", "Namespace"]],
    columns: [
      { key: "name", title: "Machine", width: "minmax(12rem, 1.6fr)", class: "name", cell: (row) => row.name },
      { key: "stage", title: "Stage", width: "9.5rem", class: "state", cell: (row) => stageBadge(row.stage) },
      { key: "version", title: "Version", width: "6.5rem", cell: (row) => row.version ?? "" },
      { key: "cluster", title: "Cluster", width: "minmax(6rem, 1fr)", cell: (row) => row.cluster ?? "" },
      { key: "host", title: "Host", width: "minmax(6rem, 1fr)", class: "wide", cell: (row) => row.host ?? "" },
      { key: "since", title: "For", width: "6.5rem", class: "age", cell: (row) => since(row.since) },
      { key: "note", title: "What is wrong", width: "minmax(10rem, 2fr)", class: "note", cell: note },
    ],
  },
};

/** What somebody filters by, as a function of a row. @param {import("./route.js").Route} at @param {string[]} fields */
export function matches(at, fields) {
  const words = (at.q ?? "").toLowerCase().split(/\s+/).filter(Boolean);
  const wanted = fields.filter((field) => at[field]);
  return (/** @type {Row} */ row) =>
    wanted.every((field) => row[field] === at[field]) &&
    (!at.bad || isBad(row)) &&
    words.every((word) => [row.name, row.cluster, row.machine, row.host, row.node, row.pool, row.version].some((value) => value?.toLowerCase().includes(word)));
}

/** In the order that somebody wants; names are in order already. @param {Row[]} rows @param {string} sort */
export function sorted(rows, sort) {
  const field = sort.replace("-", "");
  const direction = sort.startsWith("-") ? -1 : 1;
  if (!field || field === "name") return direction > 0 ? rows : [...rows].reverse();
  const order = Object.keys(STAGES);
  const value = /** @type {(row: Row) => any} */ (
    field === "stage" ? (row) => order.indexOf(row.stage) : field === "note" ? (row) => (isBad(row) ? 0 : problemsOf(row).length ? 1 : 2) : (row) => row[field] ?? ""
  );
  // How long something has been so is the other way round than since when.
  const turn = field === "since" ? -direction : direction;
  return rows
    .map((row) => /** @type {[any, Row]} */ ([value(row), row]))
    .sort(([a], [b]) => turn * (typeof a === "number" ? a - b : natural(a, b)))
    .map(([, row]) => row);
}

export class ListView {
  /** @param {string} name @param {(row: Row) => void} open */
  constructor(name, open) {
    this.name = name;
    this.list = LISTS[name];
    this.title = this.list.title;
    this.table = new Table({ label: this.list.title, columns: this.list.columns, open, sort: sortBy });
    this.count = h("p", { class: "quiet", role: "status" });
    this.search = /** @type {HTMLInputElement} */ (h("input", { type: "search", id: "q", autocomplete: "off", spellcheck: "false", placeholder: "Name, cluster, version…", oninput: () => adjust({ q: this.search.value }) }));
    this.bad = /** @type {HTMLInputElement} */ (h("input", { type: "checkbox", onchange: () => adjust({ bad: this.bad.checked ? "1" : "" }) }));
    this.selects = this.list.filters.map(([field, title]) => new Choice(field, title));
    this.none = h("div", null);
    this.element = h(
      "div",
      { class: "view" },
      h("div", { class: "title" }, h("h1", null, this.list.title), this.count),
      h(
        "form",
        { class: "filters", role: "search", onsubmit: (/** @type {Event} */ event) => event.preventDefault() },
        h("label", { class: "search" }, h("span", null, "Search"), this.search),
        this.selects.map((each) => each.element),
        h("label", { class: "check" }, this.bad, h("span", null, "Only what needs attention")),
      ),
      this.table.element,
      this.none,
    );
  }

  mount() {
    this.table.mount();
  }

  unmount() {
    this.table.unmount();
  }

  /** @param {Store} store */
  update(store) {
    const at = route();
    const all = store.all(this.list.type);
    const fields = this.list.filters.map(([field]) => field);
    const rows = store.once(`${this.name} ${location.search}`, () => sorted(all.filter(matches(at, fields)), at.sort ?? ""));
    if (document.activeElement !== this.search) this.search.value = at.q ?? "";
    this.bad.checked = !!at.bad;
    for (const each of this.selects) each.update(store.values(this.list.type, each.field), at[each.field] ?? "");
    const said = rows.length === all.length ? plural(all.length, this.list.noun) : `${number(rows.length)} of ${plural(all.length, this.list.noun)}`;
    if (this.count.textContent !== said) this.count.textContent = said;
    this.table.element.hidden = !rows.length;
    fill(this.none, rows.length || !store.complete ? null : empty(all.length ? `No ${this.list.noun} is like that.` : `There is no ${this.list.noun} yet.`));
    this.table.update(rows, { sort: at.sort || "name", opened: at.open ?? "" });
  }
}

/** @param {string} column */
function sortBy(column) {
  const at = route().sort || "name";
  adjust({ sort: at === column ? `-${column}` : column === "name" ? "" : column });
}

/** A filter by the values that there are. */
class Choice {
  /** @param {string} field @param {string} title */
  constructor(field, title) {
    this.field = field;
    this.known = "";
    this.select = /** @type {HTMLSelectElement} */ (h("select", { onchange: () => adjust({ [field]: this.select.value }) }));
    this.element = h("label", null, h("span", null, title), this.select);
  }

  /** @param {string[]} values @param {string} chosen */
  update(values, chosen) {
    const shown = chosen && !values.includes(chosen) ? [chosen, ...values] : values;
    // One namespace for everything is no choice.
    this.element.hidden = shown.length < 2 && !chosen;
    const order = Object.keys(STAGES);
    const ordered = this.field === "stage" ? [...shown].sort((a, b) => order.indexOf(a) - order.indexOf(b)) : shown;
    const state = ordered.join("\n");
    if (state !== this.known) {
      this.known = state;
      fill(this.select, h("option", { value: "" }, "All"), ordered.map((value) => h("option", { value }, this.field === "stage" ? STAGES[value] ?? value : value)));
    }
    if (this.select.value !== chosen) this.select.value = chosen;
  }
}

export class ProblemsView {
  constructor() {
    this.title = "Problems";
    this.count = h("p", { class: "quiet", role: "status" });
    this.lasting = h("div", { class: "stack" });
    this.waiting = h("div", { class: "stack" });
    this.none = h("div", null);
    this.actNow = h("section", { "aria-labelledby": "lasts" }, h("h2", { id: "lasts", class: "unseen" }, "What stays until somebody acts"), this.lasting);
    this.wait = h("section", { "aria-labelledby": "waits" }, h("h2", { id: "waits" }, "Waited for"), h("p", { class: "quiet" }, "May well end by itself."), this.waiting);
    this.element = h("div", { class: "view" }, h("div", { class: "title" }, h("h1", null, "Problems"), this.count), this.actNow, this.none, this.wait);
  }

  /** @param {Store} store */
  update(store) {
    const all = store.problems();
    const lasting = all.filter((each) => each.lasting);
    const waiting = all.filter((each) => !each.lasting);
    this.count.textContent = plural(lasting.length, "problem");
    const draw = (/** @type {HTMLElement} */ place, /** @type {any[]} */ found) =>
      keyed(place, found.slice(0, MOST_PROBLEMS), (each) => each.key, (each) => JSON.stringify(each), (each) => problemCard(each));
    draw(this.lasting, lasting);
    draw(this.waiting, waiting);
    this.actNow.hidden = !lasting.length;
    this.wait.hidden = !waiting.length;
    const more = Math.max(0, lasting.length - MOST_PROBLEMS);
    fill(
      this.none,
      !lasting.length && store.complete ? empty("Nothing waits for you.") : null,
      more ? h("p", { class: "more" }, `${number(more)} more: `, link({ view: "hosts", bad: "1" }, "hosts"), " and ", link({ view: "machines", bad: "1" }, "machines"), " that need attention.") : null,
    );
  }
}
