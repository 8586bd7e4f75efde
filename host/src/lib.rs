//! Devices, streams, buffers and typed kernel launches.
