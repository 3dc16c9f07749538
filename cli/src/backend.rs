//! The backend that drives the machine: the blocking one, or with the feature `smol-backend` the async one. Both have
//! the same face, and share what is below the ops.

#[cfg(not(any(feature = "std-backend", feature = "smol-backend")))]
compile_error!("choose a backend: feature `std-backend` or `smol-backend`");

#[cfg(feature = "smol-backend")]
pub use tau_io_smol::{engine::Engine, http::Client};
#[cfg(not(feature = "smol-backend"))]
pub use tau_io_std::{driver::Engine, http::Client};

pub use tau_io_std::machine::{EventSink, Handlers, Machine, SinkFlow};
