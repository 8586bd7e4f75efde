// The module's exports, without a browser: requests and answers, refusals by a panic, and what a key costs.
//
// usage: node module.mjs <module.wasm>

import assert from "node:assert/strict";
import { readFileSync } from "node:fs";
import { createRequire } from "node:module";

const { Calculator } = createRequire(import.meta.url)("../web/calculator.js");
const { gridSvg, layoutGrid } = createRequire(import.meta.url)("../web/picture.js");

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
  if (!tile) continue;
  assert.ok(!answer.thread_values.error, `${title}: ${answer.thread_values.error?.message}`);
  assert.ok(answer.thread_values.holders.every((holders) => holders.length > 0), title);
}
assert.ok(calculator.ask({ ask: "latex", expression: "(4,2)" }).latex.includes("tikzpicture"));
assert.ok(calculator.ask({ ask: "functions" }).functions.every(({ meaning }) => meaning));
assert.ok(calculator.ask({ ask: "nothing" }).error);

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
