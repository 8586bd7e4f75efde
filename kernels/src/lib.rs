//! The kernels of cutlet, one family per file.
#![no_std]
