// Opens reports in Chromium and says what it sees, as JSON on stdout:
//   node open_report.mjs CHROMIUM '{"file": ..., "width": 1200, "scheme": "light", "steps": [...]}'
// A step is {"do": "look" | "select" | "click" | "theme" | "type", ...}; each "look" adds to "looks". What a page must not do is
// recorded all the time: requests, console messages, dialogs.
import {chromium} from "playwright-core";

const [executablePath, task] = process.argv.slice(2);
const {file, width = 1200, scheme = "light", steps} = JSON.parse(task);
const browser = await chromium.launch({executablePath, args: ["--no-sandbox"]});
const page = await browser.newPage({viewport: {width, height: 900}, colorScheme: scheme});
page.setDefaultTimeout(120000);  // on a busy machine a page takes its time
const seen = {requests: [], messages: [], dialogs: [], looks: []};
page.on("request", (request) => seen.requests.push(request.url()));
page.on("console", (message) => seen.messages.push(message.text()));
page.on("pageerror", (error) => seen.messages.push(error.message));
page.on("dialog", (dialog) => { seen.dialogs.push(dialog.message()); dialog.dismiss(); });

// Charts are drawn when they come near, so the page is read from top to bottom; "drawn" counts what is still to come.
async function readAll() {
  await page.waitForFunction(() => document.documentElement.dataset.ready);
  for (let y = 0; y < await page.evaluate(() => document.documentElement.scrollHeight); y += 600) {
    await page.evaluate((top) => scrollTo(0, top), y);
    await page.waitForTimeout(30);
  }
  await page.waitForFunction(() => [...document.querySelectorAll(".plot")].every((plot) => plot.textContent || plot.querySelector("canvas")));
}

function look() {
  const plots = {};
  for (const plot of document.querySelectorAll(".plot")) {
    const canvas = plot.querySelector("canvas");
    plots[plot.id.replace("plot-", "")] = {
      marks: plot.querySelectorAll(".mark-group path, .mark-symbol path, .mark-rule line, .mark-line path, .mark-rect path").length,
      // A symbol without an area is filled with nothing.
      points: [...plot.querySelectorAll(".mark-symbol path")].filter((point) => point.getBBox().width > 0 && point.getBBox().height > 0).length,
      picture: canvas ? canvas.toDataURL() : plot.querySelector("svg")?.outerHTML ?? "",
      text: plot.textContent, empty: plot.classList.contains("empty"), label: plot.getAttribute("aria-label")};
  }
  const canvases = (place) => Object.fromEntries([...document.querySelectorAll(`${place} figure.pictures`)].flatMap((figure, i) =>
    [...figure.querySelectorAll("canvas")].map((canvas) => [`${i} ${canvas.getAttribute("aria-label")}`, canvas.toDataURL()])));
  const of = (selector) => [...document.querySelectorAll(selector)].map((found) => found.textContent);
  return {
    plots, text: document.body.innerText, headings: of("h2"), cells: of("td"), numbers: of("#numbers tbody tr:not([hidden])"),
    background: getComputedStyle(document.body).backgroundColor, overflow: document.documentElement.scrollWidth - innerWidth,
    images: document.querySelectorAll("main img, main iframe, main script").length,
    options: Object.fromEntries([...document.querySelectorAll("select")].map((list) => [list.id, [...list.options].map((o) => o.value)])),
    canvases: canvases("#attacked"), heat: canvases("#heat"),
    captions: of("figure.pictures figcaption"),
    tables: Object.fromEntries([...document.querySelectorAll("[data-table][open]")].map((details) => [details.dataset.table,
      [...details.querySelectorAll("tr")].map((row) => [...row.cells].map((cell) => cell.textContent))])),
    focusable: [...document.querySelectorAll("select, button, input, summary")].every((control) => control.tabIndex >= 0),
    ready: Number(document.documentElement.dataset.ready)};
}

// A chart is drawn again after a selection: wait until its picture has changed, or say that it did not.
async function changed(chart, action) {
  const picture = () => page.evaluate((id) => {
    const plot = document.getElementById(`plot-${id}`) ?? document.getElementById(id);
    return [...plot.querySelectorAll("canvas")].map((canvas) => canvas.toDataURL()).join() || plot.innerHTML;
  }, chart);
  const before = await picture();
  await action();
  for (let i = 0; i < 200; ++i) {
    if (await picture() !== before) return;
    await page.waitForTimeout(25);
  }
  seen.messages.push(`${chart} did not change`);
}

await page.goto(`file://${file}`);
await readAll();
for (const step of steps) {
  if (step.do === "look") seen.looks.push(await page.evaluate(look));
  if (step.do === "select") await changed(step.changes, () => page.selectOption(`#${step.id}`, step.value));
  if (step.do === "click") await changed(step.changes, () => page.locator(step.at).first().click({force: true}));
  if (step.do === "theme") await changed(step.changes, () => page.click("#theme"));
  if (step.do === "type") await page.fill(`#${step.id}`, step.value);
  if (step.do === "open") {
    await page.evaluate((id) => { document.querySelector(`[data-table="${id}"]`).open = true; }, step.chart);
    await page.waitForSelector(`[data-table="${step.chart}"] td`);
  }
  if (step.do === "picture") await page.screenshot({path: step.file, fullPage: true});
}
await browser.close();
process.stdout.write(JSON.stringify(seen));
