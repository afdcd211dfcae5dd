//! Stable machine codes of errors that are made here and not by a provider: [`ErrorInfo::code`](crate::ErrorInfo::code).
//!
//! Outcomes, finish reasons, failures and verdicts have their codes at their types.

/// A guard failed, and its policy is to fail closed. The error names it as its component.
pub const GUARD_FAILED: &str = "guard_failed";

/// The source of chunks returned an error of its own type.
pub const SOURCE_ERROR: &str = "source_error";

/// A provider reported an error and gave it no code.
pub const ERROR: &str = "error";

/// All of them.
///
/// ```
/// use streamkeeper_contract::{ErrorInfo, codes};
///
/// let error = ErrorInfo::new(codes::GUARD_FAILED);
/// assert!(codes::ALL.contains(&error.code.as_str()));
/// ```
pub const ALL: &[&str] = &[GUARD_FAILED, SOURCE_ERROR, ERROR];
