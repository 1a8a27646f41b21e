/** Elements from values. Text goes in as text: nothing that a host says can become markup. */

const SVG = "http://www.w3.org/2000/svg";

/** @typedef {Node | string | number | null | undefined | false | Child[]} Child */

/**
 * An HTML element. `on…` are listeners, `class` and `data-…` attributes; what is null or false is left out.
 * @param {string} tag
 * @param {Record<string, any> | null} [attributes]
 * @param {...Child} children
 * @returns {HTMLElement}
 */
export function h(tag, attributes, ...children) {
  return /** @type {HTMLElement} */ (filled(document.createElement(tag), attributes ?? {}, children));
}

/**
 * An element of a picture.
 * @param {string} tag
 * @param {Record<string, any> | null} [attributes]
 * @param {...Child} children
 * @returns {SVGElement}
 */
export function s(tag, attributes, ...children) {
  return /** @type {SVGElement} */ (filled(document.createElementNS(SVG, tag), attributes ?? {}, children));
}

/** @param {Element} element @param {Record<string, any>} attributes @param {Child[]} children */
function filled(element, attributes, children) {
  for (const [name, value] of Object.entries(attributes)) {
    if (value === null || value === undefined || value === false) continue;
    if (name.startsWith("on")) element.addEventListener(name.slice(2), value);
    else if (name === "value") /** @type {any} */ (element).value = value;
    else element.setAttribute(name, value === true ? "" : String(value));
  }
  append(element, children);
  return element;
}

/** @param {Element} element @param {Child[]} children */
function append(element, children) {
  for (const child of children) {
    if (Array.isArray(child)) append(element, child);
    else if (child !== null && child !== undefined && child !== false) element.append(/** @type {any} */ (child));
  }
}

/** Put something in the place of everything that is there. @param {Element} element @param {...Child} children */
export function fill(element, ...children) {
  element.replaceChildren();
  append(element, children);
}

/**
 * Children by key: one whose version is as it was stays as it is, with its focus and whatever is open in it.
 * @template T
 * @param {Element} container
 * @param {T[]} items
 * @param {(item: T) => string} key
 * @param {(item: T) => unknown} version
 * @param {(item: T) => HTMLElement} make
 */
export function keyed(container, items, key, version, make) {
  /** @type {Map<string, any>} */
  const known = new Map();
  for (const child of container.children) known.set(/** @type {any} */ (child).itemKey, child);
  const focused = /** @type {HTMLElement | null} */ (document.activeElement);
  const name = focused && container.contains(focused) ? focused.dataset.focus : undefined;
  let place = container.firstChild;
  for (const item of items) {
    const k = key(item);
    const v = version(item);
    let element = known.get(k);
    known.delete(k);
    if (!element || element.itemVersion !== v) {
      const fresh = /** @type {any} */ (make(item));
      fresh.itemKey = k;
      fresh.itemVersion = v;
      for (const open of element?.querySelectorAll("details[open]") ?? []) {
        fresh.querySelector(`details[data-name="${CSS.escape(open.dataset.name)}"]`)?.setAttribute("open", "");
      }
      if (element) {
        if (place === element) place = fresh;
        element.replaceWith(fresh);
      }
      element = fresh;
    }
    if (place === element) place = element.nextSibling;
    else container.insertBefore(element, place);
  }
  for (const gone of known.values()) gone.remove();
  if (name && document.activeElement === document.body) {
    /** @type {HTMLElement | null} */ (container.querySelector(`[data-focus="${CSS.escape(name)}"]`))?.focus();
  }
}

/** Say something to who hears the page. @param {string} text */
export function say(text) {
  const said = document.getElementById("said");
  if (said && said.textContent !== text) said.textContent = text;
}
