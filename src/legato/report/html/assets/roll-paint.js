// Paints the piano roll pixel by pixel, so that two million ticks cost no more than they cover.
const rollPaint = (() => {
  const view = rollView;
  if (!view) return null;
  const { roll } = view;
  const palette = JSON.parse(document.getElementById("charts").textContent).theme;
  const canvas = document.getElementById("roll-canvas");
  const strip = document.getElementById("roll-map");
  const LEFT = 58; // for the streams' numbers
  const AXIS = 24;

  function pixel(colour) {
    const part = (at) => parseInt(colour.slice(at, at + 2), 16);
    return (255 << 24) | (part(5) << 16) | (part(3) << 8) | part(1);
  }

  function mixed(under, over, share) {
    let result = 255 << 24;
    for (const shift of [0, 8, 16]) {
      const a = (under >>> shift) & 255;
      const b = (over >>> shift) & 255;
      result |= Math.round(a + (b - a) * share) << shift;
    }
    return result;
  }

  function paint() {
    const colours = palette[theme.current()];
    const scale = devicePixelRatio || 1;
    const width = canvas.parentElement.clientWidth - strip.offsetWidth - 6;
    if (width < LEFT + 40) return;
    const tall = view.height();
    canvas.width = Math.round(width * scale);
    canvas.height = Math.round((tall + AXIS) * scale);
    canvas.style.height = `${tall + AXIS}px`;
    const context = canvas.getContext("2d");
    context.fillStyle = colours.paper;
    context.fillRect(0, 0, canvas.width, canvas.height);
    const range = view.range();
    paintRows(context, colours, range, scale, tall);
    context.scale(scale, scale);
    paintAxis(context, colours, range, width, tall);
    paintLabels(context, colours, tall);
    if (view.row >= 0) paintChoice(context, colours, range, width, tall);
    paintStrip(colours, tall, scale);
  }

  function paintRows(context, colours, [from, to], scale, tall) {
    const wide = canvas.width - Math.round(LEFT * scale);
    const high = Math.round(tall * scale);
    const image = context.createImageData(wide, high);
    const pixels = new Uint32Array(image.data.buffer);
    const paper = pixel(colours.paper);
    const open = mixed(paper, pixel(colours.typical), 0.2);
    const waiting = mixed(paper, pixel(colours.typical), 0.08);
    const ink = pixel(colours.typical);
    const red = pixel(colours.stall);
    pixels.fill(paper);
    const perUnit = wide / (to - from);
    const each = high / view.shown;
    const across = (units) => (units - from) * perUnit;
    const counts = new Uint32Array(wide + 1);

    function bar(y0, y1, x0, x1, colour) {
      const left = Math.max(0, Math.floor(x0));
      const right = Math.min(wide, Math.max(Math.ceil(x1), left + 1));
      for (let y = y0; y < y1; y += 1) pixels.fill(colour, y * wide + left, y * wide + right);
    }

    const visible = [];
    const between = each >= 4 ? scale : 0;
    view.visible((r, at) => {
      const y0 = Math.max(0, Math.floor((at - view.top) * each));
      const y1 = Math.max(y0 + 1, Math.floor((at + 1 - view.top) * each - between));
      visible.push([r, y0, Math.min(high, y1)]);
    });
    for (const [r, y0, y1] of visible) {
      const begin = view.origin(r);
      if (across(begin + view.extent(r)) < 0 || across(begin) > wide) continue;
      bar(y0, y1, across(begin), across(begin + view.wait(r)), waiting);
      bar(y0, y1, across(begin + view.wait(r)), across(begin + view.extent(r)), open);
      paintTicks(r, y0, y1, begin);
    }
    // Last, so that where rows share a pixel a stall is still seen.
    for (const [r, y0, y1] of visible) {
      const begin = view.origin(r);
      for (let i = roll.offset[r]; i < roll.offset[r + 1]; i += 1) {
        if (!roll.ends[i]) continue;
        const x0 = across(begin + roll.tick[i - 1]);
        const x1 = across(begin + roll.tick[i]);
        if (x1 >= 0 && x0 <= wide) bar(y0, y1, x0, x1, red);
      }
      if (roll.status(r) !== "ok") {
        const end = across(begin + view.extent(r));
        if (end >= 0 && end <= wide) bar(y0, y1, end - 2 * scale, end + scale, red);
      }
    }
    context.putImageData(image, Math.round(LEFT * scale), 0);

    function paintTicks(r, y0, y1, begin) {
      const first = roll.offset[r];
      const last = roll.offset[r + 1];
      if (first === last) return;
      const spread = (roll.tick[last - 1] - roll.tick[first]) * perUnit;
      // Where ticks are closer than two pixels, shade says how many there are.
      const usual = Math.max(1, ((last - first) / Math.max(1, spread)) * 1.5);
      const thick = spread / (last - first) > 6 * scale ? Math.round(scale) : 1;
      let low = wide;
      let high = -1;
      for (let i = first; i < last; i += 1) {
        const x = Math.floor(across(begin + roll.tick[i]));
        if (x < 0 || x >= wide) continue;
        counts[x] += 1;
        if (x < low) low = x;
        if (x > high) high = x;
      }
      for (let x = low; x <= high; x += 1) {
        if (!counts[x]) continue;
        const colour = mixed(open, ink, Math.min(1, 0.15 + (0.85 * counts[x]) / usual));
        counts[x] = 0;
        const end = Math.min(wide, x + thick);
        for (let y = y0; y < y1; y += 1) pixels.fill(colour, y * wide + x, y * wide + end);
      }
    }
  }

  function paintAxis(context, colours, [from, to], width, tall) {
    context.font = "11px system-ui, sans-serif";
    context.fillStyle = colours.muted;
    context.strokeStyle = colours.muted;
    const rough = ((to - from) * roll.unitMs) / Math.max(2, (width - LEFT) / 110);
    const power = 10 ** Math.floor(Math.log10(rough));
    const step = [1, 2, 5, 10].map((size) => size * power).find((size) => size >= rough);
    context.textBaseline = "top";
    context.beginPath();
    for (let n = Math.ceil((from * roll.unitMs) / step); n * step <= to * roll.unitMs; n += 1) {
      const x = LEFT + ((n * step / roll.unitMs - from) / (to - from)) * (width - LEFT);
      context.moveTo(Math.round(x) + 0.5, tall);
      context.lineTo(Math.round(x) + 0.5, tall + 4);
      const label = view.time((n * step) / roll.unitMs);
      const wide = context.measureText(label).width;
      context.fillText(label, Math.max(LEFT, Math.min(x - wide / 2, width - wide)), tall + 8);
    }
    context.stroke();
  }

  function paintLabels(context, colours, tall) {
    const each = tall / view.shown;
    const step = Math.max(1, Math.ceil(13 / each));
    context.fillStyle = colours.muted;
    context.textAlign = "right";
    context.textBaseline = "middle";
    const last = Math.min(roll.rows, view.top + view.shown);
    for (let at = Math.ceil(view.top / step) * step; at < last; at += step) {
      const y = (at + 0.5 - view.top) * each;
      if (y > 5 && y < tall - 4) context.fillText(`${roll.id[view.order[at]]}`, LEFT - 6, y);
    }
    context.textAlign = "left";
  }

  function paintChoice(context, colours, [from, to], width, tall) {
    const each = tall / view.shown;
    const y = (view.place[view.row] - view.top) * each;
    context.save();
    context.beginPath();
    context.rect(0, 0, width, tall);
    context.clip();
    context.strokeStyle = colours.tail;
    context.lineWidth = 1.5;
    context.strokeRect(LEFT - 1, y - 0.5, width - LEFT, Math.max(3, each));
    if (view.tick >= 0) {
      const at = view.origin(view.row) + roll.tick[view.tick];
      const x = LEFT + ((at - from) / (to - from)) * (width - LEFT);
      context.fillStyle = colours.tail;
      context.fillRect(x - 1, y - 3, 2, Math.max(3, each) + 6);
    }
    context.restore();
  }

  function paintStrip(colours, tall, scale) {
    strip.width = Math.round(strip.offsetWidth * scale);
    strip.height = Math.round(tall * scale);
    strip.style.height = `${tall}px`;
    const context = strip.getContext("2d");
    context.fillStyle = colours.grid;
    context.fillRect(0, 0, strip.width, strip.height);
    const each = strip.height / Math.max(1, roll.rows);
    const mark = (r) =>
      context.fillRect(0, view.place[r] * each, strip.width, Math.max(scale, each));
    context.fillStyle = colours.stall;
    let last = -1;
    for (const index of roll.stall) {
      const r = roll.rowOf(index);
      if (r !== last) mark(r);
      last = r;
    }
    context.strokeStyle = colours.ink;
    context.lineWidth = 2 * scale;
    context.strokeRect(0, view.top * each, strip.width, Math.max(4 * scale, view.shown * each));
  }

  return { paint, left: LEFT };
})();
