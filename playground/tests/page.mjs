// The page in a headless Chromium: typing, hovering, keys, permalinks, light and dark, and a phone's width.
//
// usage: node --experimental-websocket page.mjs <chromium> <index.html>
// Screenshots are left beside the page.

import assert from "node:assert/strict";
import { spawn } from "node:child_process";
import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { dirname, join, resolve } from "node:path";
import { pathToFileURL } from "node:url";

const [browser, page] = process.argv.slice(2);
const profile = mkdtempSync(join(tmpdir(), "playground-"));
const child = spawn(browser, [
  "--headless=new", "--no-sandbox", "--disable-gpu", "--no-first-run", "--remote-debugging-port=0",
  `--user-data-dir=${profile}`, "about:blank",
], { stdio: ["ignore", "ignore", "pipe"] });

/** The address at which the browser listens. */
const address = await new Promise((found, failed) => {
  let text = "";
  child.stderr.on("data", (data) => {
    text += data;
    const listening = /DevTools listening on (ws:\S+)/.exec(text);
    if (listening) found(listening[1]);
  });
  child.on("exit", () => failed(new Error(`the browser ended:\n${text}`)));
  setTimeout(() => failed(new Error(`the browser does not start:\n${text}`)), 60_000).unref();
});
const port = new URL(address).port;
const targets = await (await fetch(`http://127.0.0.1:${port}/json`)).json();
const socket = new WebSocket(targets.find(({ type }) => type === "page").webSocketDebuggerUrl);
await new Promise((opened) => socket.addEventListener("open", opened));

let last = 0;
const waiting = new Map();
socket.addEventListener("message", ({ data }) => {
  const { id, result, error } = JSON.parse(data);
  if (!waiting.has(id)) return;
  const [done, failed] = waiting.get(id);
  waiting.delete(id);
  error ? failed(new Error(error.message)) : done(result);
});

function call(method, params = {}) {
  last += 1;
  socket.send(JSON.stringify({ id: last, method, params }));
  return new Promise((done, failed) => waiting.set(last, [done, failed]));
}

/** The value of an expression in the page. */
async function read(expression) {
  const { result, exceptionDetails } = await call("Runtime.evaluate", { expression, returnByValue: true, awaitPromise: true });
  assert.ok(!exceptionDetails, `${expression}: ${exceptionDetails?.exception?.description}`);
  return result.value;
}

async function until(expression) {
  for (let tries = 0; tries < 200; tries++) {
    if (await read(expression)) return;
    await new Promise((later) => setTimeout(later, 50));
  }
  assert.fail(`it does not become true: ${expression}`);
}

async function open(hash = "") {
  await call("Page.navigate", { url: "about:blank" });
  await call("Page.navigate", { url: pathToFileURL(resolve(page)).href + hash });
  await until("document.documentElement?.dataset.ready === 'yes'");
}

async function type(text) {
  await read("document.getElementById('editor').focus(); document.getElementById('editor').select()");
  await call("Input.insertText", { text });
}

async function press(key) {
  for (const kind of ["keyDown", "keyUp"]) await call("Input.dispatchKeyEvent", { type: kind, key, code: key });
}

async function screenshot(name) {
  const { data } = await call("Page.captureScreenshot", { format: "png" });
  writeFileSync(join(dirname(resolve(page)), `${name}.png`), Buffer.from(data, "base64"));
}

const size = (width, height, mobile) =>
  call("Emulation.setDeviceMetricsOverride", { width, height, deviceScaleFactor: 1, mobile });
const shown = (id) => read(`document.getElementById('${id}').textContent`);

/** The number of cells of a picture. */
const cells = (id) =>
  read(`(({ rows, columns }) => rows * columns)(document.querySelector('#${id} svg').dataset)`);

const tests = {
  async "typing shows the value and its picture"() {
    await open();
    await type("(_4,_2):(_2,_1)");
    assert.equal(await shown("result"), "(_4,_2):(_2,_1)");
    assert.equal(await cells("layout-picture"), 8);
  },

  async "texts are as wide as their cells"() {
    await open();
    await type("(_4,_64):(_64,_1)");
    const wide = await read(`(() => {
      const svg = document.querySelector("#layout-picture svg");
      return svg.querySelector(".row").getComputedTextLength() / (svg.dataset.columns * svg.dataset.width);
    })()`);
    assert.ok(Math.abs(wide - 1) < 0.01, `${wide}`);
  },

  async "a mistake is marked under its place"() {
    await open();
    await type("(4,2):(1,4");
    const lines = (await shown("result")).split("\n");
    assert.equal(lines[0], "(4,2):(1,4");
    assert.equal(lines[1], " ".repeat(10) + "^");
    assert.ok(lines[2].startsWith("expected `,` or `)`"));
    assert.equal(await read("document.querySelectorAll('#underlay mark').length"), 1);
  },

  async "hovering tells all coordinates"() {
    await open();
    await type("(3,(2,3)):(3,(12,1))");
    const { x, y } = await read(`(() => {
      const svg = document.querySelector("#layout-picture svg");
      const [box, at] = [svg.getBoundingClientRect(), svg.dataset];
      return { x: box.x + +at.left + 5.5 * at.width, y: box.y + +at.top + 1.5 * at.height };
    })()`);
    await call("Input.dispatchMouseEvent", { type: "mouseMoved", x, y });
    await until("document.getElementById('layout-hover').textContent.startsWith('1-D 16')");
    assert.equal(await shown("layout-hover"), "1-D 16 · 2-D (1,5) · natural (1,(1,2)) → index 17");
  },

  async "arrow keys go from cell to cell"() {
    await open();
    await type("(4,2):(2,1)");
    await read("document.querySelector('#layout-picture svg').focus()");
    for (const key of ["ArrowDown", "ArrowDown", "ArrowRight"]) await press(key);
    assert.equal(await shown("layout-hover"), "1-D 5 · 2-D (1,1) · natural (1,1) → index 3");
  },

  async "a link brings the page back"() {
    await open();
    await type("((4,8),(2,2)):((32,1),(16,8))");
    await read("document.getElementById('tile').value = '(16,8)'; document.getElementById('tab-threads').click()");
    const hash = await read("location.hash");
    await open(hash);
    assert.equal(await read("document.getElementById('editor').value"), "((4,8),(2,2)):((32,1),(16,8))");
    assert.equal(await read("document.getElementById('view-threads').hidden"), false);
    assert.equal(await cells("threads-picture"), 128);
    assert.equal(await read("location.hash"), hash);
  },

  async "threads are stepped through"() {
    await read("for (const i of [0, 1, 2, 3, 4]) document.getElementById('thread-more').click()");
    assert.equal(await shown("thread"), "thread 4");
    const coloured = "[...document.querySelectorAll('#threads-picture .cells')]" +
      ".filter((path) => path.getAttribute('fill').startsWith('hsl')).map((path) => path.getAttribute('d')).join('').split('M').length - 1";
    assert.equal(await read(coloured), 4);
    const hash = await read("location.hash");
    assert.ok(hash.endsWith("&thread=4"), hash);
    await open(hash);
    assert.equal(await shown("thread"), "thread 4");
  },

  async "a tile is coloured by value"() {
    await open("#e=" + encodeURIComponent("((4,8),(2,2)):((32,1),(16,8))") + "&tile=(16,8)&view=threads&color=value");
    const fills = "new Set([...document.querySelectorAll('#threads-picture .cells')].map((path) => path.getAttribute('fill'))).size";
    assert.equal(await read(fills), 4);
  },

  async "pointing at an element outlines its thread in A, B and C"() {
    await open();
    await type("TiledMma<Mma16816<bf16>, L!((2, 2):(1, 2))>");
    assert.equal(await read("state.view"), "threads");
    const figures = await read(`[...document.querySelectorAll("#threads-picture figure")].map((figure) => {
      const { rows, columns } = figure.querySelector("svg").dataset;
      return [figure.textContent.slice(0, 1), +rows, +columns];
    })`);
    assert.deepEqual(figures, [["A", 32, 16], ["B", 16, 16], ["C", 32, 16]]);
    const tops = await read("[...document.querySelectorAll('#threads-picture svg')].map((svg) => svg.getBoundingClientRect().top)");
    assert.ok(tops.every((top) => top === tops[0]), `side by side: ${tops}`);
    // Row 1, column 12 of C: thread 70 has it as its first value.
    const { x, y } = await read(`(() => {
      const svg = document.querySelectorAll("#threads-picture svg")[2];
      svg.scrollIntoView({ block: "start" });
      const [box, at] = [svg.getBoundingClientRect(), svg.dataset];
      const scale = box.width / svg.getAttribute("width");
      return { x: box.x + scale * (+at.left + 12.5 * at.width), y: box.y + scale * (+at.top + 1.5 * at.height) };
    })()`);
    await call("Input.dispatchMouseEvent", { type: "mouseMoved", x, y });
    await until("document.getElementById('threads-hover').textContent.startsWith('C (1,12): T70V0')");
    const outlined = "[...document.querySelectorAll('#threads-picture .held')].map((it) => it.getAttribute('d').split('M').length - 1)";
    assert.deepEqual(await read(outlined), [8, 4, 4]);
    assert.equal(await shown("threads-hover"), "C (1,12): T70V0. Thread 70 has 8 of A, 4 of B, 4 of C.");
    for (const kind of ["mousePressed", "mouseReleased"]) {
      await call("Input.dispatchMouseEvent", { type: kind, x, y, button: "left", clickCount: 1 });
    }
    assert.equal(await shown("thread"), "thread 70");
    const hash = await read("location.hash");
    assert.ok(hash.endsWith("&view=threads&thread=70"), hash);
    await open(hash);
    assert.equal(await shown("threads-hover"), "Thread 70 has 8 of A, 4 of B, 4 of C.");
    const coloured = "[...document.querySelectorAll('#threads-picture figure')].map((figure) => [...figure.querySelectorAll('.cells')]" +
      ".filter((path) => path.getAttribute('fill').startsWith('hsl')).map((path) => path.getAttribute('d')).join('').split('M').length - 1)";
    assert.deepEqual(await read(coloured), [8, 4, 4]);
    await screenshot("mma");
    // The page goes back to the layout of what comes next.
    await open();
    await type("Wgmma<16, bf16>");
    assert.equal(await read("state.view"), "threads");
    await type("(4,2):(2,1)");
    assert.equal(await read("state.view"), "layout");
  },

  async "a tile that is too small to be read shows colours alone, and texts at its full size"() {
    await open("#e=" + encodeURIComponent("Wgmma<256, bf16>") + "&view=threads&thread=37");
    const visibility = "getComputedStyle(document.querySelector('#threads-picture .row')).visibility";
    assert.equal(await read(visibility), "hidden");
    await read("byId('fit').click()");
    assert.equal(await read(visibility), "visible");
  },

  async "a tiled copy is shown for a larger tile"() {
    await open("#e=" + encodeURIComponent("TiledCopy<CpAsync<8>, L!((32, 4):(4, 1)), L!((1, 8):(0, 1))>") + "&tile=(64,32)&view=threads&thread=5");
    assert.equal(await cells("threads-picture"), 64 * 32);
    assert.equal(await shown("threads-hover"), "Thread 5 has 16 of source and destination.");
    await read("byId('tile').value = '(48,32)'; update()");
    assert.ok((await shown("threads-picture")).includes("do not divide a tile (48,32)"));
  },

  async "a box of TMA is legal, or has its reasons"() {
    await open();
    await type("tma_box((256,128):(128,1), (8,64), 16, 128)");
    assert.ok((await shown("result")).startsWith("Legal: a tensor map of 256 × 128 elements of 2 bytes in boxes of 8 × 64"));
    assert.equal(await read("document.querySelectorAll('#layout-picture svg').length"), 2);
    await screenshot("tma");
    await type("tma_box((64,127):(127,1), (8,80), 16, 128)");
    const reasons = await read("[...document.querySelectorAll('#result li b')].map((it) => it.textContent)");
    assert.deepEqual(reasons, ["its rows are 254 bytes apart", "a line of the box has 160 bytes, and the swizzle spans 128"]);
  },

  async "a contraction is drawn tensor by tensor"() {
    await open();
    await type('contract("bij,bkj->ik", (3,4,5):(5,15,1), (3,6,5):(5,15,1))');
    assert.ok((await shown("result")).startsWith("M = i 4, N = k 6, K = jb 15, L = 1\nA (M,K,L) = (4,15,_1):(15,1,_0)"));
    assert.equal(await read("document.querySelectorAll('#layout-picture svg').length"), 3);
    await screenshot("contraction");
    await read("document.querySelectorAll('#result button')[1].click()");
    assert.equal(await read("byId('editor').value"), "(6,15,_1):(15,1,_0)");
    assert.equal(await cells("layout-picture"), 90);
    await type('contract("mk,nk->mn", m=M, n=N, k=K)');
    assert.ok((await shown("result")).includes("\nC (M,N,L) = (M,N,_1):(N,_1,_0)"));
  },

  async "the swizzle of an access is found and used"() {
    await open("#e=" + encodeURIComponent("32:32") + "&view=banks");
    assert.ok((await shown("analysis")).includes("Sw<5,0,5> no bank conflicts"));
    await read("document.querySelector('#analysis button').click()");
    assert.equal(await read("byId('editor').value"), "Sw<5,0,5> o _0 o 32:32");
    assert.ok(!(await shown("analysis")).includes("fewest"));
  },

  async "symbols have an answer"() {
    await open();
    await type("zipped_divide((M,K):(K,_1), <_128,_64>)");
    assert.equal(await shown("result"), "((_128,_64),(ceil_div(M,128),ceil_div(K,64))):((K,_1),(128*K,_64))");
  },

  async "a swizzle is shown before and after"() {
    await open();
    await type("Sw<3,0,3> o 0 o (_8,_8):(_8,_1)");
    assert.equal(await read("document.querySelectorAll('#layout-picture svg').length"), 2);
    await screenshot("swizzle");
  },

  async "a step is drawn when it is clicked"() {
    await open("#e=" + encodeURIComponent("_20:_2 o (_5,_4):(_4,_1)") + "&view=steps");
    assert.ok((await shown("steps")).includes("R(0) = A(B(0)) = A(0) = 0"));
    await read("[...document.querySelectorAll('#steps button')].find((b) => b.textContent === '_5:_8').click()");
    assert.equal(await cells("layout-picture"), 5);
    await read("document.querySelector('#step-shown button').click()");
    assert.equal(await cells("layout-picture"), 20);
  },

  async "banks and sectors are told"() {
    await open("#e=" + encodeURIComponent("32:32") + "&view=banks");
    assert.ok((await shown("analysis")).includes("32-way bank conflicts"));
    assert.equal(await cells("banks-picture"), 32);
  },

  async "the gallery opens its examples"() {
    await open();
    const count = await read("document.querySelectorAll('#gallery button').length");
    for (let i = 0; i < count; i++) {
      await read(`document.querySelectorAll('#gallery button')[${i}].click()`);
      assert.equal(await read("document.querySelector('.wrong')"), null);
    }
  },

  async "a saved picture has no variables"() {
    await open("#e=" + encodeURIComponent("(_4,_4):(_4,_1)") + "&view=export");
    const svg = await read("standalone(document.querySelector('#layout-picture svg'))");
    assert.equal(svg.split("textLength=").length - 1, 4);
    assert.ok(!svg.includes("var(") && !svg.includes("calc(") && svg.startsWith("<svg"), svg.slice(0, 300));
    assert.ok((await shown("code-cpp")).startsWith("Layout<Shape<Int<4>, Int<4>>"));
    assert.ok((await shown("table")).startsWith("(_4,_4):(_4,_1)\n"));
  },

  async "64×64 cells take little time"() {
    await open();
    await type("(_64,_64):(_64,_1)");
    const median = async (work) =>
      (await read(`Array.from({ length: 11 }, () => { const t = performance.now(); ${work}; return performance.now() - t; })`))
        .sort((a, b) => a - b)[5];
    const answered = await median("state.calculator.ask(request(byId('editor').value))");
    const updated = await median("update()");
    const laid = await median("update(); document.body.offsetHeight");
    console.log(`  64×64: ${answered.toFixed(0)} ms for the answer, ${updated.toFixed(0)} ms with the page's elements, ` +
      `${laid.toFixed(0)} ms with their layout`);
    assert.ok(laid < 1000, "a slow machine may take longer than 50 ms, but not this long");
  },

  async "it fits a phone, light and dark"() {
    const examples = {
      layout: "zipped_divide((_8,_6):(_1,_8), <_4,_2>)",
      product: "TiledMma<Mma16816<bf16>, L!((2, 2):(1, 2))>",
      box: "tma_box((64,127):(127,1), (8,80), 16, 128)",
    };
    for (const [scheme, width] of [["light", 1280], ["dark", 1280], ["light", 390], ["dark", 390]]) {
      await size(width, 850, width < 600);
      await call("Emulation.setEmulatedMedia", { features: [{ name: "prefers-color-scheme", value: scheme }] });
      for (const [name, example] of Object.entries(examples)) {
        await open("#e=" + encodeURIComponent(example));
        assert.ok(await read("document.documentElement.scrollWidth <= innerWidth"), `${name}: ${width} pixels`);
        await screenshot(`${name}-${scheme}-${width}`);
      }
    }
  },
};

let failures = 0;
await call("Page.enable");
await size(1280, 850, false);
for (const [name, test] of Object.entries(tests)) {
  try {
    await test();
    console.log(`ok      ${name}`);
  } catch (error) {
    failures += 1;
    console.log(`FAILED  ${name}\n${error.stack}`);
  }
}
socket.close();
child.removeAllListeners("exit");
child.kill();
await new Promise((ended) => child.on("exit", ended));
rmSync(profile, { recursive: true, force: true, maxRetries: 20, retryDelay: 100 });
process.exit(failures ? 1 : 0);
