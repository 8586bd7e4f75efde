//! Runs kernel bodies on the CPU, every GPU thread a coroutine.
