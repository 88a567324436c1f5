// The piano roll's columns: base64 of variable-length integers, times as differences.
const unpacked = (() => {
  const source = document.getElementById("roll-data");
  if (!source) return null;
  const data = JSON.parse(source.textContent);

  function integers(text) {
    const bytes = Uint8Array.from(atob(text), (letter) => letter.charCodeAt(0));
    let count = 0;
    for (const byte of bytes) if (byte < 128) count += 1;
    const values = new Float64Array(count);
    let index = 0;
    let value = 0;
    let scale = 1;
    for (const byte of bytes) {
      value += (byte & 127) * scale;
      if (byte < 128) {
        values[index++] = value;
        value = 0;
        scale = 1;
      } else scale *= 128;
    }
    return values;
  }

  function summed(values) {
    for (let i = 1; i < values.length; i += 1) values[i] += values[i - 1];
    return values;
  }

  const count = integers(data.count);
  const offset = new Uint32Array(count.length + 1);
  count.forEach((held, row) => { offset[row + 1] = offset[row] + held; });
  const tick = integers(data.tick);
  for (let row = 0; row < count.length; row += 1) {
    for (let i = offset[row] + 1; i < offset[row + 1]; i += 1) tick[i] += tick[i - 1];
  }
  const stall = summed(integers(data.stall));
  const ends = new Uint8Array(tick.length);
  for (const index of stall) ends[index] = 1;
  const status = integers(data.status);
  return {
    rows: data.rows,
    unitMs: data.unit_ms,
    id: integers(data.stream_id),
    status: (row) => data.statuses[status[row]],
    start: summed(integers(data.start)),
    length: integers(data.length),
    offset,
    tick, // from the stream's send, in units
    stall, // ticks that end a stall
    ends, // the same, one a tick
    rowOf(index) {
      let low = 0;
      let high = data.rows - 1;
      while (low < high) {
        const middle = (low + high + 1) >> 1;
        if (offset[middle] <= index) low = middle;
        else high = middle - 1;
      }
      return low;
    },
  };
})();
