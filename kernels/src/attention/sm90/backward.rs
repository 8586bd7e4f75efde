//! The backward pass of attention: the gradients of queries, keys and values.
//!
//! With the weights `P = softmax(Q·Kᵀ · scale)`, the output `O = P·V`, and its gradient `dO`:
//!
//! - `dV = Pᵀ·dO`
//! - `dP = dO·Vᵀ`, and `dS = P ∘ (dP − D)`, where `D` is the sum of each row of `dO ∘ O`
//! - `dQ = scale · dS·K` and `dK = scale · dSᵀ·Q`
//!
//! A row of P needs no softmax: `P = e^(S − log-sum-exp)`. So a block of threads may begin with keys, whose gradients
//! stay in registers, and add up over the queries that see them.
//!
//! | step | file |
//! |---|---|
//! | `D`, beside the logarithms of the sums | [`statistics`] |
//! | dK, dV, and what each block of keys adds to dQ: roles, products, store | [`kernel`] |
//! | the order of additions to dQ, if results must not vary | [`turns`] |
//! | dQ in the element type | [`queries`] |
//!
//! [`config`] says what the kernels' types say, [`args`] what a launch passes, and [`instances`] are the kernels of the
//! library.

pub mod args;
pub mod config;
pub mod instances;
pub mod kernel;
mod mainloop;
pub mod queries;
mod rows;
pub mod statistics;
pub mod turns;
