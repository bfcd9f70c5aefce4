// Draws the charts of a report from the data in the page. Nothing is fetched, and text of others is only ever set as
// text: textContent, <option>, data of charts.
"use strict";
(() => {
  const page = JSON.parse(document.getElementById("data").textContent);
  const element = (id) => document.getElementById(id);
  const range = (count) => Array.from({length: count}, (_, i) => i);

  function make(tag, text, attributes = {}) {
    const made = document.createElement(tag);
    if (text !== undefined) made.textContent = text;
    for (const [name, value] of Object.entries(attributes)) made.setAttribute(name, value);
    return made;
  }

  // --- Tables: stored by column, used by row ---------------------------------------------------------------
  const expanded = {};
  function rowsOf(name) {
    if (expanded[name]) return expanded[name];
    const {columns, values} = page.tables[name];
    const read = values.map((v) => (Array.isArray(v) ? (i) => v[i] : (i) => v.texts[v.at[i]]));
    const length = values.length ? (Array.isArray(values[0]) ? values[0] : values[0].at).length : 0;
    expanded[name] = range(length).map((i) => Object.fromEntries(columns.map((c, j) => [c, read[j](i)])));
    return expanded[name];
  }

  // --- What is selected ------------------------------------------------------------------------------------
  const state = {run: -1, layer: 0, head: 0, query: -1, x: "auto", y: "auto", steps: "all", corruption: ""};
  const snapshotOf = (run) => page.snapshots.find((s) => s.run === run);
  const {attentionMap, neighbourhood, squareDomains} = snapshotReader(state, snapshotOf);
  const ofRun = (name) => rowsOf(name).filter((row) => row.run === state.run);
  const isSelected = (row) => row.layer === state.layer && row.head === state.head;

  function runName(index) {
    const run = page.runs[index];
    return `${run.method}, seed ${run.seed} (${run.folder})`;
  }

  function layersAndHeads() {
    const snapshot = snapshotOf(state.run);
    const rows = ofRun("heads");
    const layers = new Set(rows.map((row) => row.layer));
    const heads = new Set(rows.map((row) => row.head));
    if (snapshot) snapshot.layers.forEach((layer, i) => {
      layers.add(i);
      range(layer.heads).forEach((h) => heads.add(h));
    });
    const sorted = (set) => [...set].sort((a, b) => a - b);
    return [sorted(layers), sorted(heads)];
  }

  // --- What charts get: tables, values of "$NAME", a word when there is nothing -----------------------------------
  const noMetric = "This run has no metric: every coordinate counts the same.";
  const noSnapshot = "There is no snapshot of this head; the lowest seed of each method is drawn.";
  const inputs = {
    losses: () => {
      const rows = rowsOf("losses");
      const last = rows.reduce((a, row) => Math.max(a, row.step), 0);
      const first = {all: 0, half: last / 2, tenth: 0.9 * last}[state.steps];
      return {tables: {losses: rows.filter((row) => row.step >= first)}};
    },
    severities: () => ({tables: {selected_severities: rowsOf("severities").filter((row) => row.corruption === state.corruption)}}),
    heads: () => {
      const rows = ofRun("heads");
      const values = rows.map((row) => row.mean).filter((v) => v !== null);
      const middle = (Math.min(...values) + Math.max(...values)) / 2;
      const many = new Set(rows.map((row) => row.head)).size > 10;
      return {empty: noMetric, tables: {selected_heads: rows.map((row) => ({
        ...row, selected: isSelected(row), dark: row.mean > middle, label: many && row.mean !== null ? "" : row.text}))}};
    },
    profile: () => ({empty: noMetric, tables: {selected_profile: ofRun("profiles").filter(isSelected)}}),
    "head-drift": () => ({empty: "This run has no measurements of its heads while training.", tables: {
      selected_head_drift: ofRun("head_drift").map((row) => ({...row, selected: isSelected(row)}))}}),
    ellipse: (width) => {
      const found = neighbourhood();
      if (!found) return {empty: noSnapshot, tables: {selected_keys: []}};
      const [x_domain, y_domain] = squareDomains(found);
      const title = (d) => `coordinate ${d}` + (found.hasMetric ? `, metric ${found.scale(d).toPrecision(3)}` : "");
      return {
        tables: {selected_keys: found.keys, selected_levels: found.levels, selected_query: [found.q]},
        values: {x_domain, y_domain, x_title: title(found.x), y_title: title(found.y), size: Math.min(width - 62, 440)}};
    },
    attention: (width) => {
      const {rows, words} = attentionMap();
      return {empty: noSnapshot, tables: {selected_map: rows}, values: {words, size: Math.min(width - 110, 440)}};
    },
  };

  function inputOf(id, width) {
    const chart = page.charts[id];
    const where = Object.entries(chart.where);
    const shown = (name) => rowsOf(name).filter((row) => where.every(([column, value]) => row[column] === value));
    const input = inputs[id] ? inputs[id](width) : {tables: Object.fromEntries(chart.tables.map((name) => [name, shown(name)]))};
    return {values: {}, empty: "There is nothing to draw.", ...input};
  }

  // --- Drawing ---------------------------------------------------------------------------------------------
  const colour = (name) => getComputedStyle(document.documentElement).getPropertyValue(name).trim();

  function fill(value, values) {
    if (Array.isArray(value)) return value.map((part) => fill(part, values));
    if (value && typeof value === "object") {
      return Object.fromEntries(Object.entries(value).map(([name, part]) => [name, fill(part, values)]));
    }
    if (typeof value !== "string") return value;
    if (value.startsWith("$") && Object.hasOwn(values, value.slice(1))) return values[value.slice(1)];
    const variable = /^var\((--[a-z0-9-]+)\)$/.exec(value);
    return variable ? colour(variable[1]) : value;
  }

  function config() {
    const [ink, muted, grid, line] = ["--ink", "--muted", "--grid", "--line"].map(colour);
    const font = colour("--sans");
    const text = {labelFont: font, titleFont: font, labelColor: muted, titleColor: muted, labelFontSize: 11, titleFontSize: 11, titleFontWeight: "normal"};
    return {
      background: "transparent", font, padding: 4,
      view: {stroke: null},
      axis: {...text, gridColor: grid, domainColor: line, tickColor: line, tickSize: 4, labelPadding: 5, titlePadding: 8},
      axisY: {tickCount: 6}, axisX: {tickCount: 6},
      legend: {...text, labelColor: ink, symbolSize: 70, rowPadding: 3, columnPadding: 14},
      text: {font, fontSize: 11},
      range: {category: range(8).map((i) => colour(`--c${i}`))},
    };
  }

  const drawn = new Map();  // chart -> promise of its view
  async function drawNow(id, before) {
    const plot = element(`plot-${id}`);
    (await before)?.finalize();
    const chart = page.charts[id];
    const input = inputOf(id, plot.clientWidth);
    const isEmpty = !(input.tables[chart.tables[0]] || []).length;
    plot.classList.toggle("empty", isEmpty);
    if (isEmpty) {
      plot.replaceChildren(input.empty);
      return null;
    }
    const columns = plot.clientWidth < 520 ? 2 : plot.clientWidth < 800 ? 4 : 6;
    const spec = {...fill(chart.spec, {columns, ...input.values}), datasets: input.tables};
    if (spec.width === "container") spec.autosize = {type: "fit-x", contains: "padding"};
    const result = await vegaEmbed(plot, spec, {
      mode: "vega-lite", ast: true, logLevel: vega.Error, config: config(), renderer: id === "attention" ? "canvas" : "svg",
      actions: {export: true, source: false, compiled: false, editor: false}, downloadFileName: `elliptical-${id}`,
      tooltip: {theme: document.documentElement.dataset.theme === "dark" ? "dark" : "default"}});
    if (id === "heads") {
      result.view.addEventListener("click", (_, item) => {
        if (item?.datum?.layer !== undefined) select({layer: item.datum.layer, head: item.datum.head});
      });
    }
    return result.view;
  }

  function draw(id) {
    const drawing = drawNow(id, drawn.get(id)).catch((error) => {
      element(`plot-${id}`).replaceChildren(`This chart could not be drawn: ${error.message}`);
      console.error(error);
      return null;
    });
    drawn.set(id, drawing);
    const open = document.querySelector(`[data-table="${id}"][open]`);
    if (open) fillTable(open);
    return drawing;
  }

  function fillTable(details) {
    const chart = page.charts[details.dataset.table];
    const rows = inputOf(details.dataset.table, 400).tables[chart.tables[0]] || [];
    const hidden = ["selected", "dark", "label", "named", "line", "run"];
    const columns = Object.keys(rows[0] || {}).filter((name) => !hidden.includes(name));
    const table = make("table");
    table.createTHead().insertRow().append(...columns.map((name) => make("th", name, {scope: "col"})));
    const body = table.createTBody();
    for (const row of rows.slice(0, 400)) {
      body.insertRow().append(...columns.map((name) => make("td", row[name] ?? "\u2013")));
    }
    const scroll = make("div", undefined, {class: "scroll", tabindex: "0"});
    scroll.append(table);
    details.replaceChildren(details.firstElementChild, scroll);
    if (rows.length > 400) details.append(make("p", `The first 400 of ${rows.length} rows.`));
  }

  // --- Selectors -------------------------------------------------------------------------------------------
  const headCharts = ["heads", "profile", "head-drift", "ellipse", "attention"];

  function setOptions(id, options, value) {
    const list = element(id);
    if (!list) return;
    list.replaceChildren(...options.map(([v, text]) => make("option", text, {value: v})));
    list.value = String(value);
  }

  function updateSelectors() {
    const [layers, heads] = layersAndHeads();
    if (!layers.includes(state.layer)) state.layer = layers[0] ?? 0;
    if (!heads.includes(state.head)) state.head = heads[0] ?? 0;
    setOptions("select-layer", layers.map((i) => [i, i]), state.layer);
    setOptions("select-head", heads.map((i) => [i, i]), state.head);
    const found = neighbourhood();
    if (!found) return;
    setOptions("select-query", range(found.T).map((i) => [i, `${i}: ${found.words[i]}`]), found.t);
    const coordinates = range(found.D).map((d) => [d, d]);
    setOptions("select-x", [["auto", found.hasMetric ? "largest metric" : "widest"], ...coordinates], state.x);
    setOptions("select-y", [["auto", found.hasMetric ? "smallest metric" : "second widest"], ...coordinates], state.y);
  }

  function select(changes) {
    Object.assign(state, changes);
    updateSelectors();
    const charts = "steps" in changes ? ["losses"] : "corruption" in changes ? ["severities"] : headCharts;
    for (const id of charts) if (drawn.has(id)) draw(id);
  }

  function listenToSelectors() {
    const runs = [...new Set([...rowsOf("heads").map((row) => row.run), ...page.snapshots.map((s) => s.run)])].sort((a, b) => a - b);
    // A run with a metric shows more than one without.
    state.run = rowsOf("heads")[0]?.run ?? runs[0] ?? -1;
    state.layer = rowsOf("heads")[0]?.layer ?? 0;
    setOptions("select-run", runs.map((i) => [i, runName(i)]), state.run);
    const corruptions = [...new Set(rowsOf("severities").map((row) => row.corruption))];
    state.corruption = corruptions[0];
    setOptions("select-corruption", corruptions.map((name) => [name, name]), state.corruption);
    updateSelectors();
    for (const name of ["run", "layer", "head", "query", "x", "y", "steps", "corruption"]) {
      element(`select-${name}`)?.addEventListener("change", (event) => {
        const value = event.target.value;
        select({[name]: ["x", "y", "steps", "corruption"].includes(name) ? value : Number(value)});
      });
    }
  }

  function listenToAttacked() {
    if (!page.attacked.length) return;
    const partsOf = attackedPictures(page.attacked, make);
    const show = (run) => element("attacked").replaceChildren(...partsOf(run));
    setOptions("select-attacked", page.attacked.map(({run}) => [run, runName(run)]), page.attacked[0].run);
    element("select-attacked").addEventListener("change", (event) => show(Number(event.target.value)));
    show(page.attacked[0].run);
  }

  function listenToHeat() {
    if (!page.heat.runs.length) return;
    const heat = heatMaps(page.heat, make, colour);
    const chosen = {picture: 0, layer: heat.numLayers - 1, head: -1};
    const show = () => element("heat").replaceChildren(...heat.figuresOf(chosen, runName));
    setOptions("select-picture", page.heat.pictures.map(({name, number}, i) => [i, `${name} (number ${number})`]), chosen.picture);
    setOptions("select-heat-layer", range(heat.numLayers).map((i) => [i, i]), chosen.layer);
    setOptions("select-heat-head", [[-1, "mean of heads"], ...range(heat.numHeads).map((i) => [i, i])], chosen.head);
    for (const [name, id] of [["picture", "select-picture"], ["layer", "select-heat-layer"], ["head", "select-heat-head"]]) {
      element(id).addEventListener("change", (event) => {
        chosen[name] = Number(event.target.value);
        show();
      });
    }
    show();
  }

  // --- Numbers ---------------------------------------------------------------------------------------------
  function listNumbers() {
    const body = element("numbers").tBodies[0];
    if (body.rows.length) return;
    for (const number of page.numbers) {
      const row = body.insertRow();
      const run = page.runs[number.run];
      const details = make("details");
      details.append(make("summary"), make("pre", number.record));
      details.firstChild.append(make("code", number.command));
      row.append(make("td", `${run.method}, seed ${run.seed}`), make("td", number.metric), make("td", number.what),
                 make("td", number.text), make("td", number.count.toLocaleString("en")), make("td"));
      row.lastChild.append(details);
    }
  }

  function filterNumbers(event) {
    const words = event.target.value.toLowerCase().split(/\s+/);
    for (const row of element("numbers").tBodies[0].rows) {
      const text = row.textContent.toLowerCase();
      row.hidden = !words.every((word) => text.includes(word));
    }
  }

  // --- Light and dark --------------------------------------------------------------------------------------
  const prefersDark = matchMedia("(prefers-color-scheme: dark)");
  function setTheme(theme) {
    document.documentElement.dataset.theme = theme;
    document.documentElement.style.colorScheme = theme;
    element("theme").textContent = theme === "dark" ? "Light" : "Dark";
    for (const id of drawn.keys()) draw(id);
  }

  function start() {
    setTheme(prefersDark.matches ? "dark" : "light");
    prefersDark.addEventListener("change", () => setTheme(prefersDark.matches ? "dark" : "light"));
    element("theme").hidden = false;
    element("theme").addEventListener("click", () => setTheme(document.documentElement.dataset.theme === "dark" ? "light" : "dark"));
    listenToSelectors();
    listenToAttacked();
    listenToHeat();
    for (const details of document.querySelectorAll("[data-table]")) {
      details.addEventListener("toggle", () => { if (details.open) fillTable(details); });
    }
    element("filter")?.addEventListener("input", filterNumbers);

    // What is far below is drawn when it comes near.
    const show = (target) => (target.id === "numbers" ? listNumbers() : draw(target.dataset.chart));
    const observer = new IntersectionObserver((entries) => {
      for (const entry of entries) {
        if (!entry.isIntersecting) continue;
        observer.unobserve(entry.target);
        show(entry.target);
      }
    }, {rootMargin: "500px"});
    const targets = document.querySelectorAll("[data-chart], #numbers");
    targets.forEach((target) => observer.observe(target));
    addEventListener("beforeprint", () => targets.forEach((target) => {
      if (!drawn.has(target.dataset.chart)) show(target);
    }));
    let width = innerWidth;
    addEventListener("resize", () => {  // charts of a container's width follow by themselves, squares do not
      if (innerWidth !== width) for (const id of ["ellipse", "attention"]) if (drawn.has(id)) draw(id);
      width = innerWidth;
    });
    requestAnimationFrame(async () => {
      await new Promise((resolve) => setTimeout(resolve));
      await Promise.all(drawn.values());
      document.documentElement.dataset.ready = String(Math.round(performance.now()));
    });
  }
  start();
})();
