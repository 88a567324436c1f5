// The piano roll's hands: keys, pointer, buttons. They move the view and have it painted.
(() => {
  const view = rollView;
  if (!view) return;
  const { roll } = view;
  const canvas = document.getElementById("roll-canvas");
  const strip = document.getElementById("roll-map");
  const status = document.getElementById("roll-status");
  const LEFT = rollPaint.left;
  let asked = 0;

  function paint() {
    asked = 0;
    rollPaint.paint();
  }

  function repaint() {
    if (!asked) asked = requestAnimationFrame(paint);
  }

  // --- moving ----------------------------------------------------------------------------
  function scrollTo(first) {
    view.scrollTo(first);
    repaint();
  }

  function show(count) {
    const middle = view.row >= 0 ? view.place[view.row] : view.top + view.shown / 2;
    const share = (middle - view.top) / view.shown;
    view.shown = Math.max(Math.min(4, roll.rows), Math.min(roll.rows, Math.round(count)));
    scrollTo(Math.round(middle - share * view.shown));
  }

  function zoom(factor, at) {
    const whole = view.needed();
    const [from, to] = view.span || whole;
    const chosen = view.tick >= 0 ? moment() : (from + to) / 2;
    const middle = at === undefined ? Math.max(from, Math.min(to, chosen)) : at;
    const wide = (to - from) * factor;
    if (wide >= whole[1] - whole[0]) view.span = null;
    else if (wide >= 10) {
      const begin = middle - ((middle - from) / (to - from)) * wide;
      view.span = [begin, begin + wide];
    }
    repaint();
  }

  // When the selected chunk came.
  function moment() {
    return view.origin(view.row) + roll.tick[view.tick];
  }

  function choose(r, index = -1, scroll = true) {
    view.row = Math.max(0, Math.min(roll.rows - 1, r));
    view.tick = index;
    if (scroll) {
      const at = view.place[view.row];
      if (at < view.top) scrollTo(at);
      if (at > view.top + view.shown - 1) scrollTo(at - view.shown + 1);
      if (view.span && view.tick >= 0) follow(moment());
    }
    status.textContent = described(view.row, view.tick);
    repaint();
  }

  function follow(at) {
    const [from, to] = view.span;
    if (at < from || at > to) view.span = [at - (to - from) / 2, at + (to - from) / 2];
  }

  function described(r, index) {
    const first = roll.offset[r];
    const count = roll.offset[r + 1] - first;
    const parts = [`stream ${roll.id[r]}`, roll.status(r), `sent at ${view.time(roll.start[r])}`];
    parts.push(count ? `first token after ${view.time(view.wait(r))}` : "no token came");
    if (count > 1) parts.push(`longest gap ${view.time(view.longest[r])}`);
    if (index > first) {
      const stalled = roll.ends[index] ? ", a stall" : "";
      const gap = `gap ${view.time(view.gapBefore(index))}${stalled}`;
      parts.push(`chunk ${index - first + 1} of ${count}: ${gap}`);
    } else if (index === first && count) parts.push(`chunk 1 of ${count}`);
    return parts.join(" · ");
  }

  function step(by) {
    if (view.row < 0) return choose(view.order[Math.floor(view.top)]);
    const first = roll.offset[view.row];
    const last = roll.offset[view.row + 1] - 1;
    if (last < first) return undefined;
    const next = view.tick < 0 ? first : view.tick + by;
    return choose(view.row, Math.max(first, Math.min(last, next)));
  }

  function beside(by) {
    const from = view.row < 0 ? Math.floor(view.top) - by : view.place[view.row];
    choose(view.order[Math.max(0, Math.min(roll.rows - 1, from + by))]);
  }

  function toStall(by) {
    if (!roll.stall.length) {
      status.textContent = "There is no stall.";
      return;
    }
    // By where its row stands, then along the row.
    const along = (r, index) => view.place[r] * 1e9 + index - roll.offset[r];
    const found = Array.from(roll.stall, (index) => [along(roll.rowOf(index), index), index]);
    found.sort((a, b) => a[0] - b[0]);
    const chosen = view.tick < 0 ? roll.offset[view.row] - 1 : view.tick;
    const here = view.row < 0 ? -1 : along(view.row, chosen);
    const next = by > 0
      ? found.find(([at]) => at > here) ?? found[0]
      : found.findLast(([at]) => at < here) ?? found[found.length - 1];
    reveal(roll.rowOf(next[1]), next[1]);
  }

  function reveal(r, index) {
    const at = view.place[r];
    const hidden = at < view.top || at >= view.top + view.shown;
    if (hidden) scrollTo(Math.round(at - view.shown / 2));
    choose(r, index);
  }

  function reset() {
    view.reset();
    status.textContent = summary();
    repaint();
  }

  function summary() {
    const many = (count, noun) => `${count.toLocaleString("en")} ${noun}${count === 1 ? "" : "s"}`;
    const stalls = roll.stall.length;
    const here = stalls && roll.rows > view.shown ? "; here the longest" : "";
    return `${many(roll.rows, "stream")}, ${many(stalls, "stall")}${here}. Hover, or use the keys.`;
  }

  // --- hands -----------------------------------------------------------------------------
  const keys = {
    ArrowUp: () => beside(-1),
    ArrowDown: () => beside(1),
    ArrowLeft: () => step(-1),
    ArrowRight: () => step(1),
    PageUp: () => scrollTo(view.top - view.shown),
    PageDown: () => scrollTo(view.top + view.shown),
    Home: () => scrollTo(0),
    End: () => scrollTo(roll.rows),
    "+": () => zoom(0.5),
    "=": () => zoom(0.5),
    "-": () => zoom(2),
    "−": () => zoom(2),
    "[": () => show(view.shown / 2),
    "]": () => show(view.shown * 2),
    n: () => toStall(1),
    p: () => toStall(-1),
    0: reset,
    Escape: reset,
  };

  canvas.addEventListener("keydown", (event) => {
    if (event.ctrlKey || event.metaKey || event.altKey || !keys[event.key] || !roll.rows) return;
    event.preventDefault();
    keys[event.key]();
  });

  function under(event) {
    const box = canvas.getBoundingClientRect();
    const [from, to] = view.span || view.needed();
    const at = Math.floor(view.top + ((event.clientY - box.top) / view.height()) * view.shown);
    const units = from + ((event.clientX - box.left - LEFT) / (box.width - LEFT)) * (to - from);
    return { at, units };
  }

  function nearest(r, units) {
    let best = -1;
    for (let i = roll.offset[r]; i < roll.offset[r + 1]; i += 1) {
      best = i;
      if (view.origin(r) + roll.tick[i] >= units) break;
    }
    return best;
  }

  let held = null;
  canvas.addEventListener("pointerdown", (event) => {
    held = { x: event.clientX, y: event.clientY, top: view.top, span: view.range() };
    canvas.setPointerCapture(event.pointerId);
  });
  canvas.addEventListener("pointerup", () => { held = null; });
  canvas.addEventListener("pointermove", (event) => {
    if (held) {
      const each = view.height() / view.shown;
      const wide = canvas.clientWidth - LEFT;
      const moved = ((held.x - event.clientX) / wide) * (held.span[1] - held.span[0]);
      if (view.span) view.span = [held.span[0] + moved, held.span[1] + moved];
      scrollTo(held.top + (held.y - event.clientY) / each);
      return;
    }
    const { at, units } = under(event);
    if (at >= 0 && at < roll.rows) choose(view.order[at], nearest(view.order[at], units), false);
  });
  canvas.addEventListener("wheel", (event) => {
    // Without a modifier the page scrolls, unless the roll has been chosen.
    if (event.ctrlKey || event.shiftKey) {
      event.preventDefault();
      zoom((event.deltaY || event.deltaX) > 0 ? 1.25 : 0.8, under(event).units);
    } else if (document.activeElement === canvas && view.shown < roll.rows) {
      event.preventDefault();
      scrollTo(view.top + Math.sign(event.deltaY) * Math.max(1, view.shown / 12));
    }
  }, { passive: false });

  let dragging = false;
  function jump(event) {
    const box = strip.getBoundingClientRect();
    scrollTo(Math.round(((event.clientY - box.top) / box.height) * roll.rows - view.shown / 2));
  }
  strip.addEventListener("pointerdown", (event) => {
    dragging = true;
    strip.setPointerCapture(event.pointerId);
    jump(event);
  });
  strip.addEventListener("pointermove", (event) => { if (dragging) jump(event); });
  strip.addEventListener("pointerup", () => { dragging = false; });

  // --- controls --------------------------------------------------------------------------
  const controls = document.getElementById("roll-controls");

  function choice(label, options, chosen) {
    const outer = document.createElement("label");
    const select = document.createElement("select");
    for (const name of options) select.append(new Option(name, name));
    select.addEventListener("change", () => chosen(select.selectedIndex));
    outer.append(`${label} `, select);
    controls.append(outer);
    return select;
  }

  function button(text, label, action) {
    const made = document.createElement("button");
    made.type = "button";
    made.textContent = text;
    made.setAttribute("aria-label", label);
    made.title = label;
    made.addEventListener("click", action);
    controls.append(made);
  }

  const clock = choice("Time", ["into the run", "since each send"], (index) => align(index === 1));
  choice("Order", ["sent", "longest gap", "first token", "length"], (index) => {
    view.sort([() => 0, (r) => view.longest[r], view.wait, view.extent][index]);
    align(index > 0);
    scrollTo(0);
  });
  button("◂ stall", "Previous stall", () => toStall(-1));
  button("stall ▸", "Next stall", () => toStall(1));
  button("time +", "Zoom in on time", () => zoom(0.5));
  button("time −", "Zoom out of time", () => zoom(2));
  button("rows +", "Show more rows", () => show(view.shown * 2));
  button("rows −", "Show fewer rows", () => show(view.shown / 2));
  button("reset", "Reset the view", reset);

  function align(since) {
    view.aligned = since;
    clock.selectedIndex = since ? 1 : 0;
    view.span = null;
    repaint();
  }

  for (const link of document.querySelectorAll("button.jump")) {
    link.addEventListener("click", () => {
      const r = Number(link.dataset.row);
      let worst = -1;
      for (let i = roll.offset[r]; i < roll.offset[r + 1]; i += 1) {
        const longer = worst < 0 || view.gapBefore(i) > view.gapBefore(worst);
        if (roll.ends[i] && longer) worst = i;
      }
      reveal(r, worst);
      canvas.focus();
      canvas.scrollIntoView({ block: "center" });
    });
  }

  reset();
  paint();
  theme.listen(paint);
  new ResizeObserver(repaint).observe(canvas.parentElement);
  document.documentElement.dataset.roll = "drawn";
})();
