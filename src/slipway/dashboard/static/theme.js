// Light or dark: as the system has it, unless somebody chose otherwise. It runs before anything is drawn.
(() => {
  const KEY = "slipway.theme";
  const chosen = localStorage.getItem(KEY);
  if (chosen === "light" || chosen === "dark") document.documentElement.dataset.theme = chosen;

  /** @returns {"light" | "dark"} what is shown now */
  const shown = () =>
    /** @type {any} */ (document.documentElement.dataset.theme) ??
    (matchMedia("(prefers-color-scheme: dark)").matches ? "dark" : "light");

  addEventListener("DOMContentLoaded", () => {
    const button = /** @type {HTMLButtonElement} */ (document.getElementById("theme"));
    const tell = () => {
      const other = shown() === "dark" ? "light" : "dark";
      button.dataset.shown = shown();
      button.setAttribute("aria-label", `Use ${other} colours`);
      button.title = `Use ${other} colours`;
    };
    button.addEventListener("click", () => {
      const wanted = shown() === "dark" ? "light" : "dark";
      const system = matchMedia("(prefers-color-scheme: dark)").matches ? "dark" : "light";
      if (wanted === system) {
        delete document.documentElement.dataset.theme;
        localStorage.removeItem(KEY);
      } else {
        document.documentElement.dataset.theme = wanted;
        localStorage.setItem(KEY, wanted);
      }
      tell();
    });
    matchMedia("(prefers-color-scheme: dark)").addEventListener("change", tell);
    tell();
  });
})();
