// The calculator: a WebAssembly module that answers requests. Both are JSON.

"use strict";

/** A module of the calculator. After a refusal by a panic it makes a new instance. */
class Calculator {
  static async of(bytes) {
    const calculator = new Calculator();
    calculator.module = await WebAssembly.compile(bytes);
    await calculator.restart();
    return calculator;
  }

  async restart() {
    this.instance = await WebAssembly.instantiate(this.module, {});
  }

  /** The answer to a request. */
  ask(request) {
    const { memory, allocate, answer, refusal } = this.instance.exports;
    const bytes = new TextEncoder().encode(JSON.stringify(request));
    const place = allocate(bytes.length);
    new Uint8Array(memory.buffer, place, bytes.length).set(bytes);
    try {
      return JSON.parse(this.read(answer(place, bytes.length)));
    } catch (trap) {
      if (!(trap instanceof WebAssembly.RuntimeError)) throw trap;
      // An operation panicked to refuse. The instance's memory may be half-written.
      const message = this.read(refusal());
      this.instance = new WebAssembly.Instance(this.module, {});
      return { expression: request.expression, error: { message, column: null } };
    }
  }

  /** The text behind its length in four bytes. */
  read(place) {
    const { memory, release } = this.instance.exports;
    const length = new DataView(memory.buffer).getUint32(place, true);
    const text = new TextDecoder().decode(new Uint8Array(memory.buffer, place + 4, length));
    release(place);
    return text;
  }
}

if (typeof module !== "undefined") module.exports = { Calculator };
