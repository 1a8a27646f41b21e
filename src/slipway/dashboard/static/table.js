/**
 * A table of any length of which only what is on the screen is in the document.
 * It is a grid for keyboards and screen readers: one row takes the focus, arrows move it, Enter opens it.
 */

import { h } from "./dom.js";
import { isBad } from "./store.js";

/** @typedef {import("./store.js").Row} Row */
/** @typedef {{key: string, title: string, width: string, cell: (row: Row) => any, class?: string}} Column */

/** Rows beyond the screen's edge that are there before they are seen. */
const SPARE = 8;

export class Table {
  /**
   * @param {{label: string, columns: Column[], open: (row: Row) => void, sort: (column: string) => void}} options
   */
  constructor({ label, columns, open, sort }) {
    this.columns = columns;
    this.open = open;
    /** @type {Row[]} */
    this.rows = [];
    this.active = 0;
    this.activeKey = "";
    this.opened = "";
    /** @type {Map<string, HTMLElement & {row?: Row, index?: number, opened?: boolean}>} */
    this.drawn = new Map();
    this.heads = columns.map((column, index) =>
      h(
        "div",
        { role: "columnheader", class: `cell ${column.class ?? ""}`, "aria-colindex": index + 1 },
        h("button", { type: "button", onclick: () => sort(column.key) }, column.title),
      ),
    );
    this.body = h("div", { role: "rowgroup", class: "rows" });
    this.element = h(
      "div",
      { role: "grid", class: "table", "aria-label": label, "aria-colcount": columns.length, onkeydown: this.key.bind(this) },
      h("div", { role: "rowgroup", class: "head" }, h("div", { role: "row", class: "row", "aria-rowindex": 1 }, this.heads)),
      this.body,
    );
    this.element.style.setProperty("--columns", columns.map((column) => column.width).join(" "));
    this.see = () => this.draw();
  }

  /** The table is in the document. */
  mount() {
    addEventListener("scroll", this.see, { passive: true });
    addEventListener("resize", this.see, { passive: true });
  }

  /** It is no longer. */
  unmount() {
    removeEventListener("scroll", this.see);
    removeEventListener("resize", this.see);
  }

  /** @param {Row[]} rows @param {{sort: string, opened: string}} how */
  update(rows, { sort, opened }) {
    this.rows = rows;
    this.opened = opened;
    this.element.setAttribute("aria-rowcount", String(rows.length + 1));
    const descending = sort.startsWith("-");
    this.columns.forEach((column, index) => {
      const direction = sort.replace("-", "") === column.key ? (descending ? "descending" : "ascending") : "none";
      this.heads[index].setAttribute("aria-sort", direction);
    });
    const place = rows.findIndex((row) => row.key === this.activeKey);
    this.active = place >= 0 ? place : Math.max(0, Math.min(this.active, rows.length - 1));
    this.activeKey = rows[this.active]?.key ?? "";
    this.draw();
  }

  /** The height of a row, as the style has it at this width. */
  get height() {
    return parseFloat(getComputedStyle(this.element).getPropertyValue("--row")) || 44;
  }

  draw() {
    const height = this.height;
    this.body.style.height = `${this.rows.length * height}px`;
    const above = -this.body.getBoundingClientRect().top;
    const first = Math.max(0, Math.floor(above / height) - SPARE);
    const last = Math.min(this.rows.length, Math.ceil((above + innerHeight) / height) + SPARE);
    const wanted = new Map();
    for (let index = first; index < last; index += 1) wanted.set(this.rows[index].key, index);
    // The row with the focus stays, wherever somebody scrolls to.
    if (this.rows.length) wanted.set(this.rows[this.active].key, this.active);
    for (const [key, element] of this.drawn) {
      if (!wanted.has(key)) {
        element.remove();
        this.drawn.delete(key);
      }
    }
    for (const [key, index] of wanted) this.place(key, index, height);
  }

  /** @param {string} key @param {number} index @param {number} height */
  place(key, index, height) {
    const row = this.rows[index];
    let element = this.drawn.get(key);
    if (!element) {
      element = h("div", { role: "row", class: "row", onclick: () => this.choose(key) });
      this.drawn.set(key, element);
      this.body.append(element);
    }
    if (element.row !== row) {
      element.row = row;
      element.classList.toggle("bad", isBad(row));
      element.replaceChildren(
        ...this.columns.map((column, at) =>
          h("div", { role: "gridcell", class: `cell ${column.class ?? ""}`, "aria-colindex": at + 1 }, column.cell(row)),
        ),
      );
    }
    if (element.index !== index) {
      element.index = index;
      element.setAttribute("aria-rowindex", String(index + 2));
    }
    element.style.transform = `translateY(${index * height}px)`;
    element.tabIndex = index === this.active ? 0 : -1;
    element.classList.toggle("opened", key === this.opened);
    element.setAttribute("aria-selected", String(key === this.opened));
  }

  /** @param {string} key */
  choose(key) {
    const index = this.rows.findIndex((row) => row.key === key);
    if (index < 0) return;
    this.move(index);
    this.open(this.rows[index]);
  }

  /** Give a row the focus. @param {number} index */
  move(index) {
    this.active = Math.max(0, Math.min(index, this.rows.length - 1));
    this.activeKey = this.rows[this.active]?.key ?? "";
    const height = this.height;
    const box = this.body.getBoundingClientRect();
    const top = box.top + this.active * height;
    const covered = parseFloat(getComputedStyle(document.documentElement).getPropertyValue("--covered")) || 0;
    const head = covered + height;
    if (top < head) scrollBy({ top: top - head, behavior: "instant" });
    else if (top + height > innerHeight) scrollBy({ top: top + height - innerHeight + 4, behavior: "instant" });
    this.draw();
    this.focus();
  }

  focus() {
    this.drawn.get(this.activeKey)?.focus({ preventScroll: true });
  }

  /** @param {KeyboardEvent} event */
  key(event) {
    if (!(/** @type {Element} */ (event.target).closest(".rows")) || event.altKey || event.ctrlKey || event.metaKey) return;
    const page = Math.max(1, Math.floor(innerHeight / this.height) - 4);
    const steps = /** @type {Record<string, number>} */ ({
      ArrowDown: this.active + 1,
      ArrowUp: this.active - 1,
      PageDown: this.active + page,
      PageUp: this.active - page,
      Home: 0,
      End: this.rows.length - 1,
    });
    if (event.key in steps) this.move(steps[event.key]);
    else if (event.key === "Enter" || event.key === " ") this.open(this.rows[this.active]);
    else return;
    event.preventDefault();
  }
}
