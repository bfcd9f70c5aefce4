// What heads of a snapshot do: the selected map of attention, and the keys around the selected query with the level sets of
// its metric. How numbers are packed is said in elliptical/report/snapshots.h.
"use strict";
function snapshotReader(state, snapshotOf) {
  const range = (count) => Array.from({length: count}, (_, i) => i);
  const bytesOf = (text) => Uint8Array.from(atob(text), (c) => c.charCodeAt(0));

  function vectorsOf(text, scale) {
    const view = new DataView(bytesOf(text).buffer);
    return (i) => {
      const number = view.getInt16(2 * i, true);
      return number === -32768 ? NaN : (number / 32767) * scale;
    };
  }

  function weightsOf(text, scales, size) {
    const bytes = bytesOf(text);
    return (head, query, key) => {
      const byte = bytes[(head * size + query) * size + key];
      return byte === 255 ? NaN : (byte / 254) ** 2 * scales[head];
    };
  }

  // Tokens of pictures have no words: those in front are called by what they are, patches by row and column.
  function wordsOf(snapshot, layer) {
    if (snapshot.words) return snapshot.words;
    const side = Math.round(Math.sqrt(layer.tokens - snapshot.prefix));
    const front = ["class", "distillation"].slice(0, snapshot.prefix);
    return [...front, ...range(side * side).map((i) => `${Math.floor(i / side)}, ${i % side}`)];
  }

  function layerOf(snapshot) {
    const layer = snapshot.layers[state.layer];
    if (layer && !layer.decoded) {
      const cells = Math.ceil(layer.tokens / layer.cell);
      layer.decoded = {cells, words: wordsOf(snapshot, layer), map: weightsOf(layer.map, layer.map_scales, cells)};
      if (layer.shown > 0) {
        layer.decoded.weight = layer.weights
          ? weightsOf(layer.weights, layer.weight_scales, layer.shown) : layer.decoded.map;
        layer.decoded.query = vectorsOf(layer.queries, layer.query_scale);
        layer.decoded.key = vectorsOf(layer.keys, layer.key_scale);
        if (layer.metric) layer.decoded.metric = vectorsOf(layer.metric, layer.metric_scale);
      }
    }
    return layer;
  }

  const rounded = (value) => (Number.isFinite(value) ? Number(value.toPrecision(3)) : null);

  function attentionMap() {
    const snapshot = snapshotOf(state.run);
    const layer = snapshot && layerOf(snapshot);
    if (!layer || state.head >= layer.heads) return {rows: [], words: []};
    const {cells, map} = layer.decoded;
    const words = range(cells).map((i) => {
      const first = layer.decoded.words[i * layer.cell];
      return layer.cell > 1 ? `${first} \u2026` : first;
    });
    const rows = [];
    for (let query = 0; query < cells; ++query) {
      for (let key = 0; key < cells; ++key) {
        rows.push({query, key, weight: rounded(map(state.head, query, key)), query_word: words[query], key_word: words[key]});
      }
    }
    return {rows, words};
  }

  // Keys of the selected head around the selected query in two coordinates, and the level sets of its metric.
  function neighbourhood() {
    const snapshot = snapshotOf(state.run);
    const layer = snapshot && layerOf(snapshot);
    if (!layer || layer.shown === 0 || state.head >= layer.heads) return null;
    const {words, weight, query, key, metric} = layer.decoded;
    // Unless chosen: the token that sees all others, the last of a text, the class token of a picture.
    const D = layer.dim, T = layer.shown, t = Math.min(state.query < 0 ? (snapshot.words ? T - 1 : 0) : state.query, T - 1);
    const place = (token, d) => (state.head * T + token) * D + d;
    const scale = (d) => (metric ? metric(place(t, d)) : 1);
    const visible = range(T).filter((k) => !snapshot.words || k <= t || weight(state.head, t, k) > 0);
    const spread = (d) => {
      const values = visible.map((k) => key(place(k, d)));
      return Math.max(...values) - Math.min(...values);
    };
    // The largest and the smallest metric show the ellipse best; without one, the widest coordinates.
    const order = range(D).sort((a, b) => (metric ? scale(b) - scale(a) : spread(b) - spread(a)));
    const x = state.x === "auto" ? order[0] : Number(state.x);
    let y = state.y === "auto" ? order[metric ? D - 1 : Math.min(1, D - 1)] : Number(state.y);
    if (state.y === "auto" && y === x) y = order[0] === x ? order[D - 1] : order[0];
    const q = {x: query(place(t, x)), y: query(place(t, y)), word: words[t]};
    const keys = visible.map((k) => ({
      word: words[k], position: k, weight: rounded(weight(state.head, t, k)),
      x: key(place(k, x)), y: key(place(k, y))}));
    [...keys].sort((a, b) => b.weight - a.weight).slice(0, 7).forEach((k) => { k.named = true; });
    const levels = [];
    const addLevels = (shape, mx, my, quantiles) => {
      if (!(mx > 0 && my > 0)) return;
      const distances = keys.map((k) => mx * (k.x - q.x) ** 2 + my * (k.y - q.y) ** 2).filter(Number.isFinite).sort((a, b) => a - b);
      for (const quantile of quantiles) {
        const distance = distances[Math.min(distances.length - 1, Math.floor(quantile * distances.length))];
        if (!(distance > 0)) continue;
        for (let i = 0; i <= 96; ++i) {
          const angle = (2 * Math.PI * i) / 96;
          levels.push({shape, level: `${shape} ${quantile}`, order: i,
                       x: q.x + Math.sqrt(distance / mx) * Math.cos(angle), y: q.y + Math.sqrt(distance / my) * Math.sin(angle)});
        }
      }
    };
    if (metric) addLevels("metric", scale(x), scale(y), [0.25, 0.5, 0.75]);
    addLevels("no metric", 1, 1, metric ? [0.5] : [0.25, 0.5, 0.75]);
    return {words, D, T, t, x, y, q, keys, levels, scale, hasMetric: Boolean(metric)};
  }

  function squareDomains({q, keys}) {
    const ends = (name) => {
      const values = [q[name], ...keys.map((k) => k[name])].filter(Number.isFinite);
      return [Math.min(...values), Math.max(...values)];
    };
    const [x, y] = [ends("x"), ends("y")];
    const half = 0.56 * Math.max(x[1] - x[0], y[1] - y[0], 1e-6);
    const around = ([low, high]) => [(low + high) / 2 - half, (low + high) / 2 + half];
    return [around(x), around(y)];
  }

  return {attentionMap, neighbourhood, squareDomains};
}
