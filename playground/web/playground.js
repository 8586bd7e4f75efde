// The page: it asks the calculator at each key, and shows its answers.

"use strict";

const byId = (id) => document.getElementById(id);
const FIRST = "zipped_divide((_8,_6):(_1,_8), <_4,_2>)";
const VIEWS = ["layout", "threads", "banks", "steps", "export"];

const state = {
  calculator: null,
  answer: null,
  /** The expression of a step whose picture is shown in place of the result's. */
  step: null,
  cells: null,
  chosen: null,
  thread: null,
  value: null,
  /** The tiles of the threads' view. */
  tiles: [],
  view: "layout",
  /** Whether the page went to the threads' view on its own, because a tiled operation has no other picture. */
  wentToThreads: false,
};

/** Whether the colours tell the thread or the value, which is so in the tile's picture only. */
const colorsTile = () => ["thread", "value"].includes(byId("color").value);

/** What the page asks about an expression. */
function request(expression, extra = {}) {
  const tile = byId("tile").value.trim();
  return {
    ask: "answer",
    expression,
    static: byId("static").checked,
    color: colorsTile() ? "auto" : byId("color").value,
    bits: Number(byId("bits").value),
    ...(state.view === "threads" || tile ? { tile } : {}),
    ...extra,
  };
}

/** Asks again, and shows everything. */
function update() {
  const begin = performance.now();
  state.step = null;
  state.answer = state.calculator.ask(request(byId("editor").value));
  goToPicture();
  showResult();
  showPicture(state.answer);
  showThreads();
  showAnalysis();
  showSteps();
  showCode();
  remember();
  document.documentElement.dataset.took = (performance.now() - begin).toFixed(1);
}

/** Goes to the view that has a picture: the threads' for a tiled operation, and back for what comes after it. */
function goToPicture() {
  const isTiled = Boolean(state.answer.tiled);
  if (isTiled && state.view === "layout") {
    openView("threads");
    state.wentToThreads = true;
  } else if (!isTiled && !state.answer.error && state.wentToThreads) {
    openView("layout");
  }
}

function showResult() {
  const { answer } = state;
  const editor = byId("editor").value;
  const result = byId("result");
  if (answer.error) {
    const { message, column } = answer.error;
    result.innerHTML = `<span class="wrong">${escaped(marked(editor, message, column))}</span>`;
    underline(editor, column);
    return;
  }
  underline(editor, null);
  if (answer.value.tma) {
    showVerdict(answer.value.tma);
    return;
  }
  if (answer.contraction) {
    showContraction(answer);
    return;
  }
  result.textContent = answer.value.text;
  if (answer.hint) {
    const hint = document.createElement("div");
    hint.className = "hint";
    hint.textContent = `Hint: ${answer.hint.replace(" (--static)", "")}`;
    result.append(hint);
  }
}

/** Whether TMA can move a box, or the reasons why not. */
function showVerdict({ asked, legal, reasons, shared }) {
  const all = reasons.map(({ found, fix }) => `<li><b>${escaped(found)}</b>; ${escaped(fix)}</li>`);
  byId("result").innerHTML = `<div class="verdict"><b class="${legal ? "legal" : "illegal"}">` +
    `${legal ? "Legal" : "Not legal"}</b>: ${escaped(asked)}<ul>${all.join("")}</ul></div>`;
  const use = document.createElement("button");
  use.textContent = shared;
  use.title = "open this layout";
  use.addEventListener("click", () => openExpression(shared));
  byId("result").firstChild.append("A box in shared memory: ", use);
}

/** The roles of a contraction's modes, and the layouts of its tensors, each a button that opens it. */
function showContraction({ value, contraction }) {
  const result = byId("result");
  result.textContent = value.text.split("\n")[0];
  for (const { name, layout } of contraction) {
    const open = document.createElement("button");
    open.textContent = layout;
    open.title = "open this layout";
    open.addEventListener("click", () => openExpression(layout));
    result.append(`\n${name} = `, open);
  }
}

/** A message with the line of the mistake, and a mark under the column. */
function marked(text, message, column) {
  if (!column) return message;
  const before = [...text].slice(0, column - 1).join("");
  const line = text.split("\n")[before.split("\n").length - 1] ?? "";
  const place = [...before.slice(before.lastIndexOf("\n") + 1)].length;
  return `${line}\n${" ".repeat(place)}^\n${message}`;
}

/** Underlines the character of a mistake in the editor. */
function underline(text, column) {
  const underlay = byId("underlay");
  underlay.textContent = "";
  if (!column) return;
  const characters = [...text, " "];
  const mark = document.createElement("mark");
  mark.textContent = (characters[column - 1] ?? " ").replace("\n", " ");
  underlay.append(characters.slice(0, column - 1).join(""), mark, characters.slice(column).join(""));
}

/** Draws the layout of an answer. */
function showPicture(answer) {
  const picture = byId("layout-picture");
  state.cells = null;
  state.chosen = null;
  byId("step-shown").hidden = state.step === null;
  const { cells, contraction } = answer;
  if (contraction) {
    picture.innerHTML = contraction.map((tensor) => tensorPicture(tensor, answer.color)).join("");
    return;
  }
  if (!cells || cells.error) {
    picture.textContent = cells?.error ? cells.error.message : "";
    return;
  }
  state.cells = cells;
  picture.innerHTML = gridSvg(layoutGrid(cells, answer.color), answer.value.text);
  if (answer.unswizzled?.texts) {
    picture.innerHTML += `<p class="hint">Before the swizzle:</p>` +
      gridSvg(layoutGrid(answer.unswizzled, answer.color), "the layout before the swizzle");
  }
}

/** The picture of a contraction's tensor, or the reason why there is none. */
function tensorPicture({ name, cells }, color) {
  const drawn = cells.error ? escaped(cells.error.message) : gridSvg(layoutGrid(cells, color), name);
  return `<p class="hint">${name}</p>${drawn}`;
}

/** Marks a cell, and tells its coordinates in all forms. */
function choose(cell) {
  const { cells } = state;
  if (!cells || cell < 0 || cell >= cells.texts.length) return;
  state.chosen = cell;
  const svg = byId("layout-picture").querySelector("svg");
  const mark = svg.querySelector(".chosen");
  const [row, column] = [Math.floor(cell / cells.columns), cell % cells.columns];
  const { left, top, width, height } = svg.dataset;
  mark.setAttribute("x", Number(left) + column * width);
  mark.setAttribute("y", Number(top) + row * height);
  mark.setAttribute("visibility", "visible");
  byId("layout-hover").textContent =
    `1-D ${row + column * cells.rows} · 2-D (${row},${column}) · natural ${cells.naturals[cell]} → index ${cells.texts[cell]}`;
}

const ARROWS = { ArrowUp: [-1, 0], ArrowDown: [1, 0], ArrowLeft: [0, -1], ArrowRight: [0, 1] };

/** Moves the chosen cell by an arrow key. */
function moveChosen(event) {
  const step = ARROWS[event.key];
  if (!step || !state.cells) return;
  event.preventDefault();
  const { rows, columns } = state.cells;
  const [row, column] = [Math.floor((state.chosen ?? 0) / columns), (state.chosen ?? 0) % columns];
  const start = state.chosen === null;
  const next = start ? [0, 0] : [row + step[0], column + step[1]];
  if (next[0] < 0 || next[0] >= rows || next[1] < 0 || next[1] >= columns) return;
  choose(next[0] * columns + next[1]);
}

function showThreads() {
  const picture = byId("threads-picture");
  const shown = tilesOf(state.answer);
  state.tiles = shown.tiles ?? [];
  picture.textContent = "";
  byId("threads-hover").textContent = "";
  if (shown.message) {
    picture.textContent = state.answer.error ? "" : shown.message;
    return;
  }
  if (state.thread !== null && state.thread >= shown.threads) state.thread = null;
  if (state.value !== null && state.value >= shown.values) state.value = null;
  byId("thread").textContent = state.thread === null ? "all threads" : `thread ${state.thread}`;
  byId("value").textContent = state.value === null ? "all values" : `value ${state.value}`;
  picture.innerHTML = state.tiles.map((tile, number) => tileFigure(tile, number, state, tileColor())).join("");
  hideSmallTexts(picture);
  tellThreads(shown);
}

/** Says how many elements a thread has: the chosen one, or each. */
function tellThreads({ threads, values }) {
  const counts = countsOf(state.tiles, state.thread ?? 0).join(", ");
  byId("threads-hover").textContent = state.answer.thread_values
    ? `${threads} threads with ${values} values each`
    : state.thread === null ? `${threads} threads, each with ${counts}. Point at an element: its thread is outlined.`
    : `Thread ${state.thread} has ${counts}.`;
}

/** Outlines the elements of the thread that holds the element under the pointer, in all tiles. */
function pointAtElement(event) {
  const picture = byId("threads-picture");
  const found = elementAt(picture, event.clientX, event.clientY);
  const tile = state.tiles[found?.tile];
  outlineThread(picture, state.tiles, tile?.holders[found.cell][0]?.[0] ?? null);
  if (tile) byId("threads-hover").textContent = elementText(tile, state.tiles, found.cell);
}

/** Chooses the thread that holds the element under the pointer, or all threads if it is chosen. */
function chooseThread(event) {
  const found = elementAt(byId("threads-picture"), event.clientX, event.clientY);
  const holders = state.tiles[found?.tile]?.holders[found.cell];
  if (!holders?.length) return;
  const isChosen = holders.some(([thread]) => thread === state.thread);
  state.thread = isChosen ? null : holders[0][0];
  showThreads();
  pointAtElement(event);
  remember();
}

/** What the tile's colours tell: the thread, or the value if one thread is shown. */
function tileColor() {
  return colorsTile() ? byId("color").value : state.thread === null ? "thread" : "value";
}

/** Steps through threads or values: all, 0, 1, … */
function stepThrough(name, by) {
  const shown = tilesOf(state.answer);
  if (shown.message) return;
  const count = name === "thread" ? shown.threads : shown.values;
  const next = (state[name] ?? -1) + by;
  state[name] = next < 0 || next >= count ? null : next;
  showThreads();
  remember();
}

function showAnalysis() {
  const list = byId("analysis");
  list.textContent = "";
  const { answer } = state;
  const bits = byId("bits").value;
  const rows = [
    [`Shared memory, elements of ${bits} bits`, answer.banks],
    [`Global memory, elements of ${bits} bits`, answer.coalescing],
    ["As a function", answer.bijective],
  ];
  for (const [title, analysis] of rows) {
    if (!analysis) continue;
    const [term, text] = [document.createElement("dt"), document.createElement("dd")];
    term.textContent = title;
    text.textContent = analysis.error ? analysis.error.message : analysis.text;
    list.append(term, text);
  }
  showBanks(answer.banks);
  showSwizzle(answer.banks);
}

/** The swizzle that an access with conflicts wants. */
function showSwizzle(banks) {
  if (state.view !== "banks" || !(banks?.worst > 1)) return;
  const { swizzle, expression, text } = state.calculator.ask(request(byId("editor").value, { ask: "swizzle" }));
  if (!swizzle) return;
  const [term, meaning] = [document.createElement("dt"), document.createElement("dd")];
  term.textContent = "The swizzle with the fewest conflicts";
  const use = document.createElement("button");
  use.textContent = swizzle;
  use.title = "use this swizzle";
  use.addEventListener("click", () => openExpression(expression));
  meaning.append(use, ` ${text}`);
  byId("analysis").append(term, meaning);
}

/** The bank of each lane of the first access. */
function showBanks(banks) {
  const picture = byId("banks-picture");
  picture.textContent = "";
  if (!banks || banks.error) return;
  const lanes = banks.banks.length;
  const columns = Math.min(lanes, 8);
  picture.innerHTML = gridSvg(
    {
      rows: Math.ceil(lanes / columns),
      columns,
      lines: Array.from({ length: Math.ceil(lanes / columns) * columns }, (_, lane) =>
        lane < lanes ? [`T${lane}`, `bank ${banks.banks[lane]}`] : [""]),
      fills: Array.from({ length: Math.ceil(lanes / columns) * columns }, (_, lane) => fillOf(banks.banks[lane], "bank")),
      row_labels: Array.from({ length: Math.ceil(lanes / columns) }, (_, row) => `T${row * columns}`),
    },
    "banks of the first access",
  );
}

/** A layout at the end of a step, which can be drawn. */
const DRAWN = /((?:Sw<[^>]*> o \S+ o )?\S*\S:\S+?)(?=$|,? |\.$)/;

/** Shows the steps. The layout of a step is a button that draws it. */
function showSteps() {
  const steps = byId("steps");
  steps.textContent = "";
  for (const lines of state.answer.explanations ?? []) {
    const block = document.createElement("pre");
    for (const line of lines) {
      block.append(...stepParts(line), "\n");
    }
    steps.append(block);
  }
  if (!steps.firstChild) steps.textContent = "There is no operation to explain.";
}

function stepParts(line) {
  const equals = line.lastIndexOf("= ");
  const found = equals < 0 ? null : DRAWN.exec(line.slice(equals + 2));
  if (!found) return [line];
  const button = document.createElement("button");
  button.textContent = found[1];
  button.title = "draw this layout";
  button.addEventListener("click", () => drawStep(found[1]));
  const begin = equals + 2 + found.index;
  return [line.slice(0, begin), button, line.slice(begin + found[1].length)];
}

/** Draws the layout of a step. */
function drawStep(expression) {
  state.step = expression;
  const answer = state.calculator.ask(request(expression));
  const notice = byId("step-shown");
  notice.textContent = `Step: ${expression} `;
  const back = document.createElement("button");
  back.textContent = "back to the result";
  back.addEventListener("click", () => {
    state.step = null;
    showPicture(state.answer);
  });
  notice.append(back);
  openView("layout");
  showPicture(answer);
}

function showCode() {
  const code = byId("code");
  code.textContent = "";
  const names = { rust: "Rust, a value", rust_type: "Rust, a type for kernels", cpp: "C++" };
  for (const [name, text] of Object.entries(state.answer.code ?? {})) {
    const [title, block] = [document.createElement("h3"), document.createElement("pre")];
    title.textContent = names[name];
    block.textContent = text.error ? text.error.message : text;
    block.id = `code-${name}`;
    code.append(title, block);
  }
  if (state.view === "export") showTable(code);
}

/** The table that CuTe's print_layout prints. */
function showTable(code) {
  const { table } = state.calculator.ask(request(byId("editor").value, { ask: "table" }));
  if (!table) return;
  const [title, block] = [document.createElement("h3"), document.createElement("pre")];
  title.textContent = "Table";
  block.textContent = table;
  block.id = "table";
  code.append(title, block);
}

function save(name, type, text) {
  const link = document.createElement("a");
  link.href = URL.createObjectURL(new Blob([text], { type }));
  link.download = name;
  link.click();
  setTimeout(() => URL.revokeObjectURL(link.href), 1000);
}

function saveSvg() {
  const shown = state.answer.tiled || state.view === "threads" || byId("tile").value ? "threads-picture" : "layout-picture";
  const threads = [...byId(shown).querySelectorAll("svg")];
  const svg = byId("layout-picture").querySelector("svg");
  if (shown === "threads-picture" && threads.length) save("layout.svg", "image/svg+xml", together(threads));
  else if (svg) save("layout.svg", "image/svg+xml", standalone(svg));
}

function saveLatex() {
  const answer = state.calculator.ask({ ...request(byId("editor").value), ask: "latex" });
  byId("copied").textContent = answer.error ? answer.error.message : "";
  if (answer.latex) save("layout.tex", "application/x-tex", answer.latex);
}

async function copyLink() {
  try {
    await navigator.clipboard.writeText(location.href);
    byId("copied").textContent = "copied";
  } catch {
    byId("copied").textContent = location.href;
  }
}

/** Shows a view. */
function openView(view) {
  state.view = view;
  state.wentToThreads = false;
  for (const name of VIEWS) {
    const tab = byId(`tab-${name}`);
    tab.setAttribute("aria-selected", String(name === view));
    tab.tabIndex = name === view ? 0 : -1;
    byId(`view-${name}`).hidden = name !== view;
  }
  remember();
}

/** The page's fields, in a link to it. */
const FIELDS = { e: "editor", tile: "tile", color: "color", bits: "bits" };

/** Writes the page's state into its address. */
function remember() {
  const link = new URLSearchParams();
  for (const [key, id] of Object.entries(FIELDS)) {
    if (byId(id).value) link.set(key, byId(id).value);
  }
  if (byId("static").checked) link.set("static", "1");
  if (state.view !== "layout") link.set("view", state.view);
  for (const name of ["thread", "value"]) {
    if (state[name] !== null) link.set(name, state[name]);
  }
  history.replaceState(null, "", `#${link}`);
}

/** Reads the page's state from its address. */
function recall() {
  const link = new URLSearchParams(location.hash.slice(1));
  byId("editor").value = link.get("e") ?? FIRST;
  byId("tile").value = link.get("tile") ?? "";
  byId("color").value = link.get("color") ?? "auto";
  byId("bits").value = link.get("bits") ?? "32";
  byId("static").checked = link.get("static") === "1";
  for (const name of ["thread", "value"]) {
    state[name] = /^\d+$/.test(link.get(name) ?? "") ? Number(link.get(name)) : null;
  }
  openView(VIEWS.includes(link.get("view")) ? link.get("view") : "layout");
}

function showGallery() {
  const gallery = byId("gallery");
  let topic = null;
  for (const example of state.calculator.ask({ ask: "gallery" }).examples) {
    if (example.topic !== topic) {
      topic = example.topic;
      const title = document.createElement("h3");
      title.textContent = topic;
      gallery.append(title);
    }
    const button = document.createElement("button");
    button.textContent = example.title;
    button.title = example.expression;
    button.addEventListener("click", () => openExample(example));
    gallery.append(button);
  }
}

function openExample(example) {
  byId("editor").value = example.expression;
  byId("tile").value = example.tile ?? "";
  openView(example.tile ? "threads" : "layout");
  update();
}

/** Shows another expression, in the same view. */
function openExpression(expression) {
  byId("editor").value = expression;
  update();
}

function showFunctions() {
  const list = byId("functions");
  for (const { signature, meaning } of state.calculator.ask({ ask: "functions" }).functions) {
    const [term, text] = [document.createElement("dt"), document.createElement("dd")];
    term.textContent = signature;
    text.textContent = meaning;
    list.append(term, text);
  }
}

/** The tabs: arrow keys go from one to the next. */
function listenToTabs() {
  VIEWS.forEach((view, number) => {
    const tab = byId(`tab-${view}`);
    tab.addEventListener("click", () => {
      openView(view);
      update();
    });
    tab.addEventListener("keydown", (event) => {
      const by = { ArrowRight: 1, ArrowLeft: VIEWS.length - 1 }[event.key];
      if (!by) return;
      const next = VIEWS[(number + by) % VIEWS.length];
      openView(next);
      update();
      byId(`tab-${next}`).focus();
    });
  });
}

function listen() {
  for (const id of ["editor", "tile", "color", "bits", "static"]) byId(id).addEventListener("input", update);
  byId("editor").addEventListener("scroll", () => {
    byId("underlay").scrollLeft = byId("editor").scrollLeft;
    byId("underlay").scrollTop = byId("editor").scrollTop;
  });
  const picture = byId("layout-picture");
  for (const kind of ["pointermove", "pointerdown"]) {
    picture.addEventListener(kind, (event) => {
      const svg = picture.querySelector("svg");
      const cell = svg && cellAt(svg, event.clientX, event.clientY);
      if (cell !== null && cell !== state.chosen) choose(cell);
    });
  }
  picture.addEventListener("keydown", moveChosen);
  const threads = byId("threads-picture");
  threads.addEventListener("pointermove", pointAtElement);
  threads.addEventListener("pointerdown", chooseThread);
  threads.addEventListener("pointerleave", () => {
    outlineThread(threads, state.tiles, null);
    const shown = tilesOf(state.answer);
    if (!shown.message) tellThreads(shown);
  });
  for (const name of ["thread", "value"]) {
    byId(`${name}-less`).addEventListener("click", () => stepThrough(name, -1));
    byId(`${name}-more`).addEventListener("click", () => stepThrough(name, 1));
  }
  byId("fit").addEventListener("input", () => {
    threads.classList.toggle("fit", byId("fit").checked);
    hideSmallTexts(threads);
  });
  window.addEventListener("resize", () => hideSmallTexts(threads));
  byId("save-svg").addEventListener("click", saveSvg);
  byId("save-latex").addEventListener("click", saveLatex);
  byId("copy-link").addEventListener("click", copyLink);
  window.addEventListener("hashchange", () => {
    recall();
    update();
  });
  listenToTabs();
}

/** The module's bytes, which the build puts into the page. */
function moduleBytes() {
  return Uint8Array.from(atob(CALCULATOR), (character) => character.charCodeAt(0));
}

async function begin() {
  state.calculator = await Calculator.of(moduleBytes());
  measureFont();
  recall();
  listen();
  showGallery();
  showFunctions();
  update();
  document.documentElement.dataset.ready = "yes";
}

begin();
