// Pictures before and after an attack, and their difference, on canvases. How they are packed is said in
// elliptical/report/attack_pictures.h.
"use strict";
function attackedPictures(all, make) {
  const bytesOf = (text) => Uint8Array.from(atob(text), (c) => c.charCodeAt(0));

  // A canvas whose number i, red, green and blue in turns, is valueOf(i).
  function canvasOf({width, height}, label, valueOf) {
    const canvas = make("canvas", undefined, {width, height, role: "img", "aria-label": label});
    const context = canvas.getContext("2d");
    const image = context.createImageData(width, height);
    for (let i = 0; i < width * height; ++i) {
      for (let c = 0; c < 3; ++c) image.data[4 * i + c] = Math.round(valueOf(3 * i + c));
      image.data[4 * i + 3] = 255;
    }
    context.putImageData(image, 0, 0);
    return canvas;
  }

  function figureOf(found, picture) {
    const clean = bytesOf(picture.clean);
    const difference = new Int8Array(bytesOf(picture.difference).buffer);
    const [name, before, after] = picture.names;
    const said = (prediction, called) => `${called}${prediction === picture.label ? " \u2713" : ""}`;
    const times = picture.largest > 0 ? (0.5 / picture.largest).toPrecision(2) : "";
    const parts = [
      ["clean", said(picture.before, before), (i) => clean[i]],
      ["attacked", said(picture.after, after), (i) => clean[i] + (difference[i] / 127) * picture.largest * 255],
      ["difference", times ? `times ${Number(times)}` : "none", (i) => 128 + difference[i]]];
    const figure = make("figure", undefined, {class: "pictures"});
    const known = picture.before === picture.label ? before : `${name}, taken for ${before}`;
    figure.append(make("figcaption", picture.before === picture.after ? known : `${known} \u2192 ${after}`));
    const row = make("div", undefined, {class: "row"});
    for (const [name, text, valueOf] of parts) {
      const part = make("div");
      part.append(canvasOf(found, `${name}: ${text}`, valueOf), make("span", `${name}: ${text}`));
      row.append(part);
    }
    figure.append(row);
    return figure;
  }

  // What stands below the selector when this run is chosen.
  return (run) => {
    const found = all.find((each) => each.run === run);
    const cells = found.cell > 1 ? ` Each pixel is the mean of ${found.cell} by ${found.cell}.` : "";
    const grid = make("div", undefined, {class: "grid"});
    grid.append(...found.pictures.map((picture) => figureOf(found, picture)));
    return [make("p", `${found.attack}, eps ${found.eps}.${cells}`, {class: "legend"}), grid];
  };
}
