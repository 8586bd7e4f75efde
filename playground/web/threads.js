// The threads' view: which thread holds which elements of a tile, or of each operand of a tiled operation.

"use strict";

/** The most holders of an element that are named in its cell. */
const MOST_NAMED = 4;

/** The tiles of an answer, each with the threads and values that hold its elements; or a message why there are none. */
function tilesOf(answer) {
  const { tiled, thread_values: tile } = answer;
  if (tiled?.error || tile?.error) return { message: (tiled ?? tile).error.message };
  if (tile) return { threads: tile.threads, values: tile.values, tiles: [tile] };
  if (!tiled) return { message: "Give a layout (thread, value), and the tile's shape above; or a tiled MMA or copy." };
  const values = Math.max(...tiled.operands.map((operand) => operand.values));
  return { threads: tiled.threads, values, tiles: tiled.operands.map(withAllHolders) };
}

/** An operand whose elements name all threads that hold them. One that all threads share names none. */
function withAllHolders(operand) {
  const sharers = new Map();
  operand.first.forEach((first, thread) => {
    if (!sharers.has(first)) sharers.set(first, []);
    sharers.get(first).push(thread);
  });
  const all = (holder) => (holder ? sharers.get(holder[0]).map((thread) => [thread, holder[1]]) : []);
  return { ...operand, holders: operand.shared ? operand.holders.map(() => []) : operand.holders.map(all) };
}

/** The text of an element's holders, some of them if there are many. */
function namesOf(holders) {
  const named = holders.slice(0, holders.length > MOST_NAMED ? 1 : MOST_NAMED).map(([t, v]) => `T${t}V${v}`);
  return holders.length > MOST_NAMED ? [...named, `+${holders.length - 1}`] : named;
}

/** The cells of a tile for `gridSvg`: all holders of each, those of one thread or value coloured by thread or value. */
function threadGrid(cells, thread, value, by) {
  const shown = ([t, v]) => (thread === null || t === thread) && (value === null || v === value);
  return {
    ...cells,
    lines: cells.holders.map(cells.name ? linesOf : namesOf),
    fills: cells.holders.map((holders) => {
      const holder = holders.find(shown);
      if (!holder) return "var(--paper)";
      return fillOf(by === "thread" ? holder[0] : holder[1], "thread");
    }),
  };
}

/** The lines of an operand's cell: the threads that hold the element, as the same value of each. */
function linesOf(holders) {
  if (!holders.length) return [""];
  const shown = holders.slice(0, holders.length > MOST_NAMED ? 1 : MOST_NAMED).map(([thread]) => `T${thread}`);
  const rest = holders.length > MOST_NAMED ? [`+${holders.length - 1}`] : [];
  return [...shown, ...rest, `V${holders[0][1]}`];
}

/** The cells that a thread holds of a tile. */
function cellsOf(tile, thread) {
  const cells = [];
  tile.holders.forEach((holders, cell) => {
    if (holders.some(([t]) => t === thread)) cells.push(cell);
  });
  return cells;
}

/** How many elements a thread has of each operand. */
function countsOf(tiles, thread) {
  return tiles.map((tile) => (tile.shared ? "all" : cellsOf(tile, thread).length) + (tile.name ? ` of ${tile.name}` : ""));
}

/** An element of a tile, and who holds it. */
function elementText(tile, tiles, cell) {
  const [row, column] = [Math.floor(cell / tile.columns), cell % tile.columns];
  const holders = tile.holders[cell];
  const place = `${tile.name ? `${tile.name} ` : ""}(${row},${column})`;
  if (!holders.length) return `${place}: ${tile.shared ? "all threads" : "no thread"}`;
  const thread = holders[0][0];
  return `${place}: ${namesOf(holders).join(", ")}. Thread ${thread} has ${countsOf(tiles, thread).join(", ")}.`;
}

/** The picture of a tile under its name. Tiles side by side have widths in proportion to their pictures. */
function tileFigure(tile, number, state, by) {
  const caption = tile.name ? `${tile.name}, ${tile.rows}×${tile.columns}` : "";
  if (tile.shared) {
    return `<figure class="shared"><figcaption>${caption}: all threads read it from shared memory.</figcaption></figure>`;
  }
  const svg = gridSvg(threadGrid(tile, state.thread, state.value, by), `threads and values of ${tile.name ?? "the tile"}`);
  const [, width] = / width="(\d+)"/.exec(svg);
  return `<figure data-tile="${number}" style="flex: ${width} 1 0; max-width: ${width}px">` +
    `<figcaption>${caption}</figcaption><div class="scroll">${svg}</div></figure>`;
}

/** The least scale of a picture at which its texts can be read. */
const READABLE = 0.45;

/** Hides the texts of pictures that are too small to be read: colours and outlines stay clear. */
function hideSmallTexts(picture) {
  for (const figure of picture.querySelectorAll("figure[data-tile]")) {
    const svg = figure.querySelector("svg");
    const scale = svg.getBoundingClientRect().width / Number(svg.getAttribute("width"));
    figure.classList.toggle("small", scale > 0 && scale < READABLE);
  }
}

/** A path around cells of a picture. */
function outline(svg, cells) {
  const { columns, left, top, width, height } = svg.dataset;
  return cells.map((cell) => {
    const [x, y] = [Number(left) + (cell % columns) * width, Number(top) + Math.floor(cell / columns) * height];
    return `M${x} ${y}h${width}v${height}h${-width}z`;
  }).join("");
}

/** Outlines the elements of a thread in all tiles; those of none if it is null. */
function outlineThread(picture, tiles, thread) {
  for (const figure of picture.querySelectorAll("figure[data-tile]")) {
    const svg = figure.querySelector("svg");
    const cells = thread === null ? [] : cellsOf(tiles[figure.dataset.tile], thread);
    svg.querySelector(".held").setAttribute("d", outline(svg, cells));
  }
}

/** The tile and the cell at a place of the window, or null. */
function elementAt(picture, clientX, clientY) {
  for (const figure of picture.querySelectorAll("figure[data-tile]")) {
    const box = figure.querySelector(".scroll").getBoundingClientRect();
    const isInside = clientX >= box.left && clientX < box.right && clientY >= box.top && clientY < box.bottom;
    const cell = isInside ? cellAt(figure.querySelector("svg"), clientX, clientY) : null;
    if (cell !== null) return { tile: Number(figure.dataset.tile), cell };
  }
  return null;
}

if (typeof module !== "undefined") {
  module.exports = { cellsOf, countsOf, elementText, linesOf, namesOf, outline, tilesOf, withAllHolders };
}
