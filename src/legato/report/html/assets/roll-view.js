// What the piano roll shows: all streams, and the window of rows and of time that is looked at.
// Times are units from the first send. Nothing here draws or listens.
const rollView = (() => {
  const roll = unpacked;
  if (!roll) return null;
  const FIRST_ROWS = 56;
  const MOST_HEIGHT = 440;
  const TALLEST_ROW = 18;

  const longest = new Float64Array(roll.rows); // gap, a row
  for (let r = 0; r < roll.rows; r += 1) {
    for (let i = roll.offset[r] + 1; i < roll.offset[r + 1]; i += 1) {
      longest[r] = Math.max(longest[r], roll.tick[i] - roll.tick[i - 1]);
    }
  }

  const view = {
    roll,
    longest,
    order: null, // where -> row
    place: null, // row -> where
    aligned: false, // each stream from its own send
    top: 0,
    shown: Math.min(roll.rows, FIRST_ROWS),
    span: null, // [from, to]; null: what the rows shown need
    row: -1, // the selected stream
    tick: -1, // its selected chunk

    gapBefore: (index) => roll.tick[index] - roll.tick[index - 1],
    origin: (r) => (view.aligned ? 0 : roll.start[r]),
    wait: (r) => (roll.offset[r] < roll.offset[r + 1] ? roll.tick[roll.offset[r]] : roll.length[r]),
    extent(r) {
      const last = roll.offset[r + 1] - 1;
      return Math.max(roll.length[r], last >= roll.offset[r] ? roll.tick[last] : 0);
    },
    height: () =>
      Math.min(MOST_HEIGHT, Math.max(48, Math.min(view.shown, roll.rows) * TALLEST_ROW)),

    // Rows with the largest key first; equal ones as they were sent.
    sort(key) {
      const keys = Float64Array.from({ length: roll.rows }, (_, r) => key(r));
      const rows = Uint32Array.from({ length: roll.rows }, (_, r) => r);
      view.order = rows.sort((a, b) => keys[b] - keys[a] || a - b);
      view.place = new Uint32Array(roll.rows);
      view.order.forEach((r, at) => { view.place[r] = at; });
    },

    // Calls back with each row in the window and where it stands.
    visible(each) {
      const last = Math.min(roll.rows, Math.ceil(view.top + view.shown));
      for (let at = Math.floor(view.top); at < last; at += 1) each(view.order[at], at);
    },

    needed() {
      let from = Infinity;
      let to = -Infinity;
      view.visible((r) => {
        from = Math.min(from, view.origin(r));
        to = Math.max(to, view.origin(r) + view.extent(r));
      });
      return from < to ? [from, to] : [0, 1];
    },
    range: () => view.span || view.needed(),

    scrollTo(first) {
      view.top = Math.max(0, Math.min(roll.rows - view.shown, first));
    },

    // Red is what people look for: the view starts where it is longest.
    reset() {
      view.span = null;
      view.row = -1;
      view.tick = -1;
      view.shown = Math.min(roll.rows, FIRST_ROWS);
      let worst = -1;
      for (const index of roll.stall) {
        if (worst < 0 || view.gapBefore(index) > view.gapBefore(worst)) worst = index;
      }
      view.scrollTo(worst < 0 ? 0 : Math.round(view.place[roll.rowOf(worst)] - view.shown / 2));
    },

    time(units) {
      const ms = units * roll.unitMs;
      if (ms === 0) return "0";
      return Math.abs(ms) >= 1000 ? `${+(ms / 1000).toFixed(3)} s` : `${+ms.toPrecision(4)} ms`;
    },
  };
  view.sort(() => 0);
  view.reset();
  return view;
})();
