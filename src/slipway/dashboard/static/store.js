/** What the server has told: rows by key, and what follows from them. Who draws is told of changes at most a few times a second. */

import { natural } from "./format.js";

/** @typedef {Record<string, any>} Row */

/** The least time between two drawings, in milliseconds; more rows take longer to sort. */
const PAUSE = 150;

export class Store {
  constructor() {
    /** @type {Map<string, Row>} */
    this.rows = new Map();
    /** Where rows go while everything comes anew. @type {Map<string, Row> | null} */
    this.incoming = null;
    /** @type {Record<string, string>} */
    this.missing = {};
    this.user = "";
    this.version = "";
    /** Everything has come once. */
    this.complete = false;
    /** How many rows are to come before that. */
    this.expected = 0;
    this.revision = 0;
    /** @type {Map<string, {revision: number, value: any}>} */
    this.derived = new Map();
    /** @type {(() => void) | null} */
    this.draw = null;
    this.drawn = 0;
    this.waiting = false;
  }

  /** @param {{name: string, data: any}} event */
  take({ name, data }) {
    if (name === "hello") {
      this.user = data.user;
      this.version = data.version;
      this.missing = data.missing;
    } else if (name === "whole") {
      // What is shown stays until all of what takes its place is here; at first there is nothing to keep.
      this.incoming = this.complete ? new Map() : this.rows;
      this.incoming.clear();
      this.expected = data;
    } else if (name === "rows") {
      for (const row of data) (this.incoming ?? this.rows).set(row.key, row);
    } else if (name === "gone") {
      for (const key of data) this.rows.delete(key);
    } else if (name === "seen") {
      if (this.incoming) this.rows = this.incoming;
      this.incoming = null;
      this.complete = true;
    }
    this.revision += 1;
    this.changed();
  }

  changed() {
    if (this.waiting || !this.draw) return;
    this.waiting = true;
    setTimeout(() => {
      requestAnimationFrame(() => {
        this.waiting = false;
        this.drawn = performance.now();
        this.draw?.();
      });
    }, Math.max(0, PAUSE - (performance.now() - this.drawn)));
  }

  /**
   * Something that follows from the rows, made once for each state of them.
   * @template T @param {string} name @param {() => T} make @returns {T}
   */
  once(name, make) {
    const known = this.derived.get(name);
    if (known?.revision === this.revision) return known.value;
    const value = make();
    this.derived.set(name, { revision: this.revision, value });
    return value;
  }

  /** The rows of a type in the order of their names. @param {string} type @returns {Row[]} */
  all(type) {
    return this.once(`all ${type}`, () => {
      const found = [];
      for (const row of this.rows.values()) if (row.type === type) found.push(row);
      return found.sort((a, b) => natural(a.name, b.name));
    });
  }

  /** @param {Row} cluster @returns {Row[]} */
  machinesOf(cluster) {
    const by = this.once("machines by cluster", () => grouped(this.all("machine"), (row) => `${row.namespace}/${row.cluster}`));
    return by.get(`${cluster.namespace}/${cluster.name}`) ?? [];
  }

  /** @param {Row} cluster @returns {Row[]} */
  poolsOf(cluster) {
    return this.all("pool").filter((pool) => pool.namespace === cluster.namespace && pool.cluster === cluster.name);
  }

  /** All that is not well, what lasts first; of the same thing once. @returns {any[]} */
  problems() {
    return this.once("problems", () => {
      const found = new Map();
      for (const row of this.rows.values()) {
        for (const problem of problemsOf(row)) {
          const { kind, namespace, name } = problem.object;
          const key = `${kind}/${namespace}/${name}/${problem.condition}`;
          const known = found.get(key);
          found.set(key, { ...problem, key, rows: [...(known?.rows ?? []), row.key], cluster: known?.cluster ?? clusterOf(row) });
        }
      }
      const age = (/** @type {any} */ each) => each.since ?? "~";
      return [...found.values()].sort(
        (a, b) => Number(!!b.lasting) - Number(!!a.lasting) || (age(a) < age(b) ? -1 : age(a) > age(b) ? 1 : natural(a.key, b.key)),
      );
    });
  }

  /** How many rows of a type are in each stage. @param {string} type @returns {Map<string, number>} */
  stages(type) {
    return this.once(`stages ${type}`, () => {
      const counts = new Map();
      for (const row of this.all(type)) counts.set(row.stage, (counts.get(row.stage) ?? 0) + 1);
      return counts;
    });
  }

  /** The different values of a field, for a filter. @param {string} type @param {string} field @returns {string[]} */
  values(type, field) {
    return this.once(`values ${type} ${field}`, () => {
      const found = new Set();
      for (const row of this.all(type)) if (row[field]) found.add(row[field]);
      return [...found].sort(natural);
    });
  }
}

/** @param {Row} row @returns {any[]} */
export function problemsOf(row) {
  return row.problems ?? (row.problem ? [row.problem] : []);
}

/** Whether somebody has to do something. @param {Row} row */
export function isBad(row) {
  return problemsOf(row).some((problem) => problem.lasting) || row.stage === "failed" || row.stage === "unavailable" || !!row.quarantined;
}

/** @param {Row} row */
const clusterOf = (row) => (row.type === "cluster" ? row.name : row.cluster ?? "");

/** @template T @param {T[]} items @param {(item: T) => string} key @returns {Map<string, T[]>} */
function grouped(items, key) {
  const found = new Map();
  for (const item of items) {
    const known = found.get(key(item));
    if (known) known.push(item);
    else found.set(key(item), [item]);
  }
  return found;
}
