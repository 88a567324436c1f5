// Light, dark, or what the system says; always light on paper. Whoever draws listens here.
const theme = (() => {
  const dark = matchMedia("(prefers-color-scheme: dark)");
  const paper = matchMedia("print");
  const listeners = [];
  let chosen = "auto";
  let printing = false;

  function current() {
    if (printing || paper.matches) return "light";
    return chosen === "auto" ? (dark.matches ? "dark" : "light") : chosen;
  }

  function tell() {
    document.documentElement.dataset.theme = current();
    for (const listener of listeners) listener(current());
  }

  const button = document.createElement("button");
  button.type = "button";
  button.className = "theme screen";
  function label() {
    button.textContent = `Theme: ${chosen}`;
  }
  button.addEventListener("click", () => {
    chosen = { auto: "light", light: "dark", dark: "auto" }[chosen];
    label();
    tell();
  });
  label();
  document.querySelector("nav").append(button);

  dark.addEventListener("change", tell);
  paper.addEventListener("change", tell);
  addEventListener("beforeprint", () => { printing = true; tell(); });
  addEventListener("afterprint", () => { printing = false; tell(); });
  document.documentElement.dataset.theme = current();
  return { current, listen: (listener) => listeners.push(listener) };
})();
