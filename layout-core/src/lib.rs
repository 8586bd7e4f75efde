//! CuTe layouts, their algebra, and tensors over them.
#![no_std]
