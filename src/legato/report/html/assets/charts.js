// Draws each Vega-Lite specification of the page at the width it has, in the current theme.
// Expressions are interpreted, never compiled: the page's policy forbids eval.
(() => {
  const data = JSON.parse(document.getElementById("charts").textContent);
  const tooltip = document.createElement("div");
  tooltip.className = "tooltip";
  tooltip.hidden = true;
  document.body.append(tooltip);

  function showTooltip(_handler, event, _item, value) {
    if (value === null || value === undefined || value === "") {
      tooltip.hidden = true;
      return;
    }
    const lines = typeof value === "object" ? Object.entries(value) : [["", value]];
    tooltip.textContent = lines.map(([name, held]) => `${name} ${held}`).join("\n");
    tooltip.hidden = false;
    const left = Math.min(event.clientX + 14, innerWidth - tooltip.offsetWidth - 8);
    const top = Math.min(event.clientY + 14, innerHeight - tooltip.offsetHeight - 8);
    tooltip.style.left = `${left}px`;
    tooltip.style.top = `${top}px`;
  }

  function sized(chart, width) {
    const inner = Math.max(120, width - chart.left_px - data.right_px);
    const spec = { ...chart.spec, padding: { left: 0, right: 0, top: 6, bottom: 6 } };
    if (spec.vconcat) spec.vconcat = spec.vconcat.map((part) => ({ ...part, width: inner }));
    else spec.width = inner;
    return spec;
  }

  function draw(place, name) {
    const chart = data.charts[place.dataset.chart];
    const width = Math.floor(place.clientWidth);
    if (!chart || !width) return;
    place.view?.finalize();
    const config = { ...data.config[name], background: "transparent" };
    const compiled = vegaLite.compile(sized(chart, width), { config }).spec;
    const view = new vega.View(vega.parse(compiled, undefined, { ast: true }), {
      expr: vegaInterpreter.expressionInterpreter,
      renderer: "svg",
      container: place,
      hover: true,
      logLevel: vega.Warn,
      tooltip: showTooltip,
    });
    view.run();
    place.view = view;
    place.drawnWidth = width;
  }

  const places = [...document.querySelectorAll("[data-chart]")];
  const all = (name) => places.forEach((place) => draw(place, name));
  all(theme.current());
  theme.listen(all);
  const resized = new ResizeObserver((entries) => {
    for (const { target } of entries) {
      if (Math.floor(target.clientWidth) !== target.drawnWidth) draw(target, theme.current());
    }
  });
  places.forEach((place) => resized.observe(place));
  document.documentElement.dataset.charts = "drawn";
})();
