//! The vocabulary of a kernel body.
#![no_std]
