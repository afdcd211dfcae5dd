//! The rules of spec 3, and 1.3, 1.4, 1.7 and 2.8 as far as the stack holds them.

#[cfg(feature = "wire")]
mod bytes;
mod events;
mod failures;
mod holds;
mod items;
mod ladder;
mod properties;
mod recordings;
mod registrations;
mod side_doors;
mod snapshots;
mod support;
mod terminals;
