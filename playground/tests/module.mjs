// The module's exports, without a browser: requests and answers, refusals by a panic, and what a key costs.
//
// usage: node module.mjs <module.wasm>

import assert from "node:assert/strict";
import { readFileSync } from "node:fs";
import { createRequire } from "node:module";

const { Calculator } = createRequire(import.meta.url)("../web/calculator.js");
const { gridSvg, layoutGrid } = createRequire(import.meta.url)("../web/picture.js");
const { cellsOf, elementText, tilesOf } = createRequire(import.meta.url)("../web/threads.js");

const calculator = await Calculator.of(readFileSync(process.argv[2]));
const ask = (expression, more = {}) => calculator.ask({ ask: "answer", expression, ...more });

// Values, explanations, analyses and cells.
const zipped = ask("zipped_divide((_8,_6):(_1,_8), <_4,_2>)", { bits: 32 });
assert.equal(zipped.value.text, "((_4,_2),(_2,_3)):((_1,_8),(_4,_16))");
assert.ok(zipped.explanations[0][0].startsWith("zipped_divide: A = "));
assert.deepEqual([zipped.cells.rows, zipped.cells.columns], [8, 6]);
assert.equal(zipped.cells.naturals[7], "((1,0),(1,0))");
assert.deepEqual(zipped.cells.groups.slice(0, 6), [0, 1, 2, 3, 4, 5], "each tile has a colour");
assert.equal(zipped.color, "column");
assert.equal(ask("(8,6)", { color: "bank", bits: 16 }).color, undefined, "a shape is not drawn");
assert.deepEqual(zipped.cells.row_lines, [0, 0, 0, 1, 0, 0, 0]);
assert.equal(zipped.bijective.bijective, true);
assert.equal(zipped.code.rust_type, "L!(((4, 2), (2, 3)):((1, 8), (4, 16)))");

// The holders of a tile's elements: all of them.
const shared = ask("(2,2):(0,1)", { tile: "(1,2)" });
assert.deepEqual(shared.thread_values.holders, [[[0, 0], [1, 0]], [[0, 1], [1, 1]]]);

// A mistake has its column. An operation that panics ends the call, and the next one works.
assert.equal(ask("(4,2").error.column, 5);
const panicked = ask("cosize((8,4):(1@0,1@1))");
assert.equal(panicked.error.message, "cosize: strides in basis directions have no last index");
assert.equal(ask("4:2").value.text, "4:2");

// Every example of the gallery has a picture.
const { examples } = calculator.ask({ ask: "gallery" });
assert.ok(examples.length > 40);
for (const { expression, tile, title } of examples) {
  const answer = ask(expression, tile ? { tile } : {});
  assert.ok(answer.value, `${title}: ${answer.error?.message}`);
  if (answer.tiled) {
    const { message, tiles } = tilesOf(answer);
    assert.equal(message, undefined, title);
    assert.ok(tiles.every((it) => it.shared || it.holders.every((holders) => holders.length > 0)), title);
  }
  if (!tile || answer.tiled) continue;
  assert.ok(!answer.thread_values.error, `${title}: ${answer.thread_values.error?.message}`);
  assert.ok(answer.thread_values.holders.every((holders) => holders.length > 0), title);
}
assert.ok(calculator.ask({ ask: "latex", expression: "(4,2)" }).latex.includes("tikzpicture"));
assert.ok(calculator.ask({ ask: "functions" }).functions.every(({ meaning }) => meaning));
assert.ok(calculator.ask({ ask: "nothing" }).error);

// A thread's elements in all operands of a product: A and B are shared by the warps of a row and of a column.
const mma = tilesOf(ask("TiledMma<Mma16816<bf16>, L!((2, 2):(1, 2))>", { tile: "(64,64,32)" }));
assert.deepEqual(mma.tiles.map(({ name, rows, columns }) => [name, rows, columns]), [["A", 64, 32], ["B", 64, 32], ["C", 64, 64]]);
assert.deepEqual(mma.tiles.map((tile) => cellsOf(tile, 70).length), [32, 32, 32]);
assert.deepEqual(cellsOf(mma.tiles[0], 70), cellsOf(mma.tiles[0], 6));
assert.equal(elementText(mma.tiles[2], mma.tiles, 64 + 12), "C (1,12): T70V0. Thread 70 has 32 of A, 32 of B, 32 of C.");
assert.equal(elementText(mma.tiles[0], mma.tiles, 0), "A (0,0): T0V0, T64V0. Thread 0 has 32 of A, 32 of B, 32 of C.");
assert.ok(tilesOf(ask("TiledMma<Mma16816<bf16>, L!((2, 2):(1, 2))>", { tile: "(48,64,32)" })).message.includes("do not divide"));
const wgmma = tilesOf(ask("Wgmma<16, bf16>"));
assert.deepEqual(wgmma.tiles.map(({ shared }) => shared), [true, true, false]);

// A box of TMA is legal, or has its reasons. Its picture is the box in shared memory.
const box = ask("tma_box((256,128):(128,1), (8,64), 16, 128)");
assert.equal(box.value.tma.legal, true);
assert.deepEqual([box.cells.rows, box.cells.columns, box.cells.texts[64]], [8, 64, "72"]);
assert.equal(box.unswizzled.texts[64], "64");
const bad = ask("tma_box((64,127):(127,1), (8,80), 16, 128)").value.tma;
assert.deepEqual(bad.reasons.map(({ found }) => found), [
  "its rows are 254 bytes apart",
  "a line of the box has 160 bytes, and the swizzle spans 128",
]);

// A contraction has the layouts of its tensors.
const scores = ask('contract("bshd,bthd->bhst", b=2, s=4, h=2, d=4, t=3)');
assert.equal(scores.value.text.split("\n")[0], "M = s 4, N = t 3, K = d 4, L = (h 2, b 2)");
assert.deepEqual(scores.contraction.map(({ layout }) => layout)[0], "(4,4,(2,2)):(8,_1,(4,32))");
assert.ok(scores.contraction.every(({ cells }) => cells.texts.length > 0));

// The swizzle of an access.
const found = calculator.ask({ ask: "swizzle", expression: "a = 32:32; a", bits: 32 });
assert.equal(found.swizzle, "Sw<5,0,5>");
assert.ok(found.text.startsWith("no bank conflicts"));
assert.equal(ask(found.expression, { bits: 32 }).banks.worst, 1);

// From a key to the picture's text, for 64×64 cells.
const times = Array.from({ length: 20 }, () => {
  const begin = performance.now();
  const answer = ask("(_64,_64):(_64,_1)", { bits: 32 });
  gridSvg(layoutGrid(answer.cells, "index"), answer.value.text);
  return performance.now() - begin;
});
const median = times.sort((a, b) => a - b)[10];
console.log(`64×64: ${median.toFixed(1)} ms from the request to the SVG`);
assert.ok(median < 500, "a slow machine may take longer than 50 ms, but not this long");
