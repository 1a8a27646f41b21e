/**
 * The server's events, by fetch and not by EventSource, which can send no token and does not say why it is refused.
 * A stream that ends is begun anew from the last event that came whole; one on which nothing comes any more, too.
 */

import { ask, Refused } from "./session.js";

/** @typedef {{name: string, data: any}} StreamEvent */

const SILENCE = 45_000;
const LONGEST_PAUSE = 15_000;

/**
 * Follow a path until `signal` is aborted or the server refuses.
 * @param {string} path
 * @param {{event: (event: StreamEvent) => void, state: (state: "live" | "lost", why: string) => void, refused: (error: Refused) => void}} to
 * @param {AbortSignal} signal
 */
export async function follow(path, to, signal) {
  let last = "";
  let failures = 0;
  while (!signal.aborted) {
    try {
      const began = Date.now();
      await once(path, last, signal, (event, id) => {
        failures = 0;
        if (id) last = id;
        if (event.name === "refused") throw new Refused(event.data.status, event.data.error);
        to.event(event);
        if (event.name === "hello") to.state("live", "");
      });
      if (Date.now() - began < 1000) failures += 1;
      to.state("lost", "the server has ended the connection");
    } catch (error) {
      if (signal.aborted) return;
      if (error instanceof Refused && error.status !== 503 && error.status !== 500) {
        to.refused(error);
        return;
      }
      failures += 1;
      to.state("lost", error instanceof Refused ? error.message : "the server does not answer");
    }
    await pause(Math.min(LONGEST_PAUSE, 250 * 2 ** failures) * (0.5 + Math.random() / 2), signal);
  }
}

/** @param {string} path @param {string} last @param {AbortSignal} signal @param {(event: StreamEvent, id: string) => void} tell */
async function once(path, last, signal, tell) {
  const ending = new AbortController();
  const end = () => ending.abort();
  signal.addEventListener("abort", end);
  let watchdog = setTimeout(end, SILENCE);
  try {
    const response = await ask(path, { headers: last ? { "Last-Event-ID": last } : {}, signal: ending.signal });
    const reader = /** @type {ReadableStream<Uint8Array>} */ (response.body).pipeThrough(new TextDecoderStream()).getReader();
    let rest = "";
    for (;;) {
      const { value, done } = await reader.read();
      if (done) return;
      clearTimeout(watchdog);
      watchdog = setTimeout(end, SILENCE);
      const blocks = (rest + value).split("\n\n");
      rest = /** @type {string} */ (blocks.pop());
      for (const block of blocks) parse(block, tell);
    }
  } finally {
    clearTimeout(watchdog);
    signal.removeEventListener("abort", end);
    ending.abort();
  }
}

/** One event. @param {string} block @param {(event: StreamEvent, id: string) => void} tell */
function parse(block, tell) {
  let name = "";
  let id = "";
  let data = "";
  for (const line of block.split("\n")) {
    if (line.startsWith("event: ")) name = line.slice(7);
    else if (line.startsWith("id: ")) id = line.slice(4);
    else if (line.startsWith("data: ")) data += line.slice(6);
  }
  if (name) tell({ name, data: JSON.parse(data) }, id);
}

/** @param {number} milliseconds @param {AbortSignal} signal */
function pause(milliseconds, signal) {
  return new Promise((resolve) => {
    const timer = setTimeout(resolve, milliseconds);
    signal.addEventListener("abort", () => (clearTimeout(timer), resolve(undefined)), { once: true });
  });
}
