// Pictures of layouts and of tiles: SVG with a cell for each element.

"use strict";

const CELL_HEIGHT = 28;
const LINE_HEIGHT = 15;
const CHARACTER = 8;

function escaped(text) {
  return String(text).replace(/&/g, "&amp;").replace(/</g, "&lt;").replace(/>/g, "&gt;").replace(/"/g, "&quot;");
}

/** The colour of a group: greys for indices, else hues. */
function fillOf(group, color) {
  if (group === null || group === undefined) return "var(--paper)";
  if (color === "index") return `hsl(210 8% calc(var(--grey-base) - ${group} * var(--grey-step)))`;
  const hue = (group * 137.508) % 360;
  return `hsl(${hue.toFixed(1)} 65% var(--cell-light))`;
}

/** The space behind each character of a cell with which characters are CHARACTER wide, whatever the font. */
let spacing = 0;

/** Measures the font of the cells. */
function measureFont() {
  const context = document.createElement("canvas").getContext("2d");
  context.font = "13px ui-monospace, monospace";
  spacing = (CHARACTER - context.measureText("0".repeat(100)).width / 100).toFixed(3);
}

/** The longest text of a list. */
function longest(texts) {
  return texts.reduce((most, text) => Math.max(most, String(text).length), 1);
}

/**
 * An SVG of a grid. `cells` has the rows and columns, the lines of text of each cell, the fills, the labels, and how
 * many modes end at each line between rows and columns.
 */
function gridSvg(cells, label) {
  const { rows, columns, lines, fills } = cells;
  const tallest = lines.reduce((most, cell) => Math.max(most, cell.length), 1);
  const widest = lines.reduce((most, cell) => Math.max(most, longest(cell)), 1);
  const rowLabels = cells.row_labels ?? Array.from({ length: rows }, (_, row) => row);
  const columnLabels = cells.column_labels ?? Array.from({ length: columns }, (_, column) => column);
  const characters = Math.max(4, widest + 2, longest(columnLabels) + 1);
  const width = characters * CHARACTER;
  const height = Math.max(CELL_HEIGHT, tallest * LINE_HEIGHT + 8);
  const left = (longest(rowLabels) + 1) * CHARACTER + 4;
  const top = 22;
  const total = [left + columns * width + 2, top + rows * height + 2];
  const parts = [
    `<svg xmlns="http://www.w3.org/2000/svg" width="${total[0]}" height="${total[1]}" ` +
      `viewBox="0 0 ${total[0]} ${total[1]}" role="img" tabindex="0" aria-label="${escaped(label)}" ` +
      `data-rows="${rows}" data-columns="${columns}" data-left="${left}" data-top="${top}" ` +
      `data-width="${width}" data-height="${height}" font-family="monospace" font-size="13" text-anchor="middle">`,
    `<g fill="var(--quiet)" font-size="11">`,
  ];
  columnLabels.forEach((text, column) => {
    parts.push(`<text x="${left + column * width + width / 2}" y="${top - 7}">${escaped(text)}</text>`);
  });
  rowLabels.forEach((text, row) => {
    parts.push(`<text x="${left - 5}" y="${top + row * height + height / 2 + 4}" text-anchor="end">${escaped(text)}</text>`);
  });
  parts.push("</g>", ...backgrounds(cells, left, top, width, height));
  parts.push(`<g fill="var(--cell-text)" text-anchor="start" pointer-events="none" letter-spacing="${spacing}">`);
  for (let row = 0; row < rows; row++) {
    const inRow = lines.slice(row * columns, (row + 1) * columns);
    for (let line = 0; line < tallest; line++) {
      // A text for each line of a row: one for each cell would take several times as long.
      const text = inRow.map((cell) => centred(lineOf(cell, line, tallest), characters)).join("");
      const y = top + row * height + height / 2 + 5 + (line - (tallest - 1) / 2) * LINE_HEIGHT;
      parts.push(`<text class="row" x="${left}" y="${y}">${escaped(text)}</text>`);
    }
  }
  parts.push(`</g><g stroke="var(--mode-edge)" fill="none" pointer-events="none">`);
  (cells.row_lines ?? []).forEach((ends, line) => {
    const y = top + (line + 1) * height;
    if (ends > 0) parts.push(`<path d="M${left} ${y}H${left + columns * width}" stroke-width="${1 + ends}"/>`);
  });
  (cells.column_lines ?? []).forEach((ends, line) => {
    const x = left + (line + 1) * width;
    if (ends > 0) parts.push(`<path d="M${x} ${top}V${top + rows * height}" stroke-width="${1 + ends}"/>`);
  });
  parts.push(`<rect class="chosen" width="${width}" height="${height}" stroke="var(--accent)" stroke-width="3" visibility="hidden"/>`);
  parts.push(`<path class="held" stroke="var(--accent)" stroke-width="3" d=""/>`);
  parts.push("</g></svg>");
  return parts.join("");
}

/** Line `line` of a cell whose lines are in the middle of `tallest` lines. */
function lineOf(cell, line, tallest) {
  return cell[line - Math.floor((tallest - cell.length) / 2)] ?? "";
}

/** A text in the middle of so many characters. */
function centred(text, characters) {
  const spare = Math.max(0, characters - String(text).length);
  return "\u00a0".repeat(Math.ceil(spare / 2)) + text + "\u00a0".repeat(Math.floor(spare / 2));
}

/** The cells' colours, a path for each, and the lines between cells. One element a cell would take several times as long. */
function backgrounds({ rows, columns, fills }, left, top, width, height) {
  const paths = new Map();
  fills.forEach((fill, cell) => {
    const [x, y] = [left + (cell % columns) * width, top + Math.floor(cell / columns) * height];
    paths.set(fill, `${paths.get(fill) ?? ""}M${x} ${y}h${width}v${height}h${-width}z`);
  });
  const edges = [];
  for (let row = 0; row <= rows; row++) edges.push(`M${left} ${top + row * height}h${columns * width}`);
  for (let column = 0; column <= columns; column++) edges.push(`M${left + column * width} ${top}v${rows * height}`);
  return [
    ...[...paths].map(([fill, path]) => `<path class="cells" fill="${fill}" d="${path}"/>`),
    `<path stroke="var(--cell-edge)" fill="none" d="${edges.join("")}"/>`,
  ];
}

/** The cell of a picture at a place of the window, or null. The picture may be smaller than its own size. */
function cellAt(svg, clientX, clientY) {
  const { rows, columns, left, top, width, height } = svg.dataset;
  const box = svg.getBoundingClientRect();
  const scale = box.width / Number(svg.getAttribute("width"));
  const column = Math.floor(((clientX - box.x) / scale - left) / width);
  const row = Math.floor(((clientY - box.y) / scale - top) / height);
  const inside = column >= 0 && column < columns && row >= 0 && row < rows;
  return inside ? row * columns + column : null;
}

/** The cells of a layout for `gridSvg`. */
function layoutGrid(cells, color) {
  return {
    ...cells,
    lines: cells.texts.map((text) => [text]),
    fills: cells.groups.map((group) => fillOf(group, color)),
  };
}

/** An SVG with the page's colours in place of its variables, to be saved. Its rows have their length for any font. */
function standalone(svg) {
  const colours = getComputedStyle(document.documentElement);
  const { columns, width } = svg.dataset;
  let text = svg.outerHTML
    .replace(/ letter-spacing="[^"]*"/, "")
    .replaceAll('<text class="row"', `<text textLength="${columns * width}"`);
  for (let depth = 0; depth < 2; depth++) {
    text = text.replace(/var\((--[a-z-]+)\)/g, (_, name) => colours.getPropertyValue(name).trim());
  }
  return text.replace(/calc\(([\d.]+)% - (\d+) \* (-?[\d.]+)%\)/g, (_, base, group, step) => `${base - group * step}%`);
}

/** Pictures side by side as one SVG to be saved. */
function together(svgs) {
  let [left, height] = [0, 0];
  const parts = svgs.map((svg) => {
    const text = standalone(svg).replace("<svg ", `<svg x="${left}" `);
    left += Number(svg.getAttribute("width")) + 2 * CHARACTER;
    height = Math.max(height, Number(svg.getAttribute("height")));
    return text;
  });
  const width = left - 2 * CHARACTER;
  return `<svg xmlns="http://www.w3.org/2000/svg" width="${width}" height="${height}" viewBox="0 0 ${width} ${height}">` +
    `${parts.join("")}</svg>`;
}

if (typeof module !== "undefined") module.exports = { escaped, fillOf, gridSvg, layoutGrid };
