// Where models look: heat maps of layers and attention rollout, laid over pictures. How they are packed is said in
// elliptical/report/heat_maps.h.
"use strict";
function heatMaps({pictures, runs}, make, colour) {
  const kSide = 224;   // of a canvas, at least
  const kShare = 0.5;  // of the map; the rest is the picture
  const bytesOf = (text) => Uint8Array.from(atob(text), (c) => c.charCodeAt(0));
  const mapOf = (bytes, scale) => Array.from(bytes, (byte) => (byte === 255 ? NaN : (byte / 254) ** 2 * scale));

  function glow() {
    const stops = [0, 1, 2, 3].map((i) => colour(`--glow-${i}`)).map((text) => [1, 3, 5].map((at) => parseInt(text.slice(at, at + 2), 16)));
    return (share, c) => {
      const place = Math.min(2.999, 3 * share), i = Math.floor(place);
      return stops[i][c] + (place - i) * (stops[i + 1][c] - stops[i][c]);
    };
  }

  // The map (grid, grid) at a point of the unit square, between the middles of its patches.
  function between(map, grid, x, y) {
    const cut = (v) => Math.min(grid - 1, Math.max(0, v * grid - 0.5));
    const [u, v] = [cut(x), cut(y)], [i, j] = [Math.floor(u), Math.floor(v)];
    const at = (a, b) => map[Math.min(b, grid - 1) * grid + Math.min(a, grid - 1)];
    const row = (b) => at(i, b) + (u - i) * (at(i + 1, b) - at(i, b));
    return row(j) + (v - j) * (row(j + 1) - row(j));
  }

  const decoded = new Map();  // picture -> its pixels
  function canvasOf(index, label, map, grid) {
    if (!decoded.has(index)) decoded.set(index, bytesOf(pictures[index].pixels));
    const pixels = decoded.get(index), {side} = pictures[index];
    const times = Math.ceil(kSide / side), size = side * times;
    const canvas = make("canvas", undefined, {width: size, height: size, role: "img", "aria-label": label});
    const context = canvas.getContext("2d");
    const image = context.createImageData(size, size);
    const finite = map ? map.filter(Number.isFinite) : [];
    const low = Math.min(...finite), range = Math.max(...finite) - low;
    const shine = glow();
    for (let y = 0; y < size; ++y) {
      for (let x = 0; x < size; ++x) {
        const i = 4 * (y * size + x), from = 3 * (Math.floor(y / times) * side + Math.floor(x / times));
        const value = map ? between(map, grid, (x + 0.5) / size, (y + 0.5) / size) : NaN;
        const share = range > 0 ? (value - low) / range : 0;
        for (let c = 0; c < 3; ++c) {
          const own = pixels[from + c];
          image.data[i + c] = Number.isFinite(value) ? (1 - kShare) * own + kShare * shine(share, c) : own;
        }
        image.data[i + 3] = 255;
      }
    }
    context.putImageData(image, 0, 0);
    return canvas;
  }

  const percent = (value) => `${Number((100 * value).toPrecision(2))} %`;
  function rangeText(map) {
    const finite = map.filter(Number.isFinite);
    return finite.length ? `${percent(Math.min(...finite))} to ${percent(Math.max(...finite))} a patch` : "no numbers";
  }

  function heatOf(found, place, {layer, head}) {
    const {heads, grid, maps, scales} = found.layers[layer] ?? {heads: -2};
    if (head >= heads) return null;  // the mean is always there
    const index = place * (1 + heads) + 1 + head, size = grid * grid;
    return {grid, map: mapOf(bytesOf(maps).subarray(index * size, (index + 1) * size), scales[index])};
  }

  function figureOf(found, chosen, runName) {
    const place = found.shown.findIndex((each) => each.picture === chosen.picture);
    if (place < 0) return null;
    const shown = found.shown[place], {name} = pictures[chosen.picture];
    const figure = make("figure", undefined, {class: "pictures"});
    const caption = make("figcaption");
    caption.append(make("h3", runName(found.run)), `${found.data}, ${found.split}: ${name}, says ${shown.said}${shown.said === name ? " \u2713" : ""}`);
    const row = make("div", undefined, {class: "row"});
    const add = (title, text, map, grid) => {
      const part = make("div");
      part.append(canvasOf(chosen.picture, `${title}: ${text}`, map, grid), make("span", title), make("small", text));
      row.append(part);
    };
    add("picture", name);
    const heat = heatOf(found, place, chosen);
    const title = `layer ${chosen.layer}, ${chosen.head < 0 ? "mean of heads" : `head ${chosen.head}`}`;
    if (heat) add(title, rangeText(heat.map), heat.map, heat.grid);
    else add(title, "this run has no such map");
    const rollout = mapOf(bytesOf(shown.rollout), shown.scale);
    add("rollout", rangeText(rollout), rollout, found.grid);
    figure.append(caption, row);
    return figure;
  }

  return {
    numLayers: Math.max(...runs.map((run) => run.layers.length)),
    numHeads: Math.max(...runs.flatMap((run) => run.layers.map((layer) => layer.heads))),
    figuresOf(chosen, runName) {
      const grid = make("div", undefined, {class: "grid"});
      grid.append(...runs.map((run) => figureOf(run, chosen, runName)).filter(Boolean));
      return [grid];
    }};
}
