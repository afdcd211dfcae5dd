//! Stream observers for [`async_openai`], in one line and with its own item types.
//!
//! ```no_run
//! # async fn run(
//! #     stream: async_openai::types::chat::ChatCompletionResponseStream,
//! #     observers: streamkeeper_stream::Observers,
//! # ) -> Result<(), Box<dyn std::error::Error>> {
//! use futures_util::StreamExt;
//! use streamkeeper_async_openai as _; // teaches observers the items of async-openai
//! use streamkeeper_stream::ObserveExt;
//!
//! // let stream = client.chat().create_stream(request).await?;
//! let mut stream = stream.observed(observers); // the line
//! while let Some(item) = stream.next().await {
//!     for choice in item?.choices {
//!         print!("{}", choice.delta.content.unwrap_or_default());
//!     }
//! }
//! # Ok(())
//! # }
//! ```
//!
//! What an observer amends is amended in the item. What it holds leaves the item with empty text and goes out in a later item of the same
//! text, or in an item made for it. A stop ends the stream with [`ObservedError::Ended`](streamkeeper_stream::ObservedError::Ended), and the
//! request is dropped; [`quiet`](streamkeeper_stream::Observed::quiet) gives a plain end and the client's own error type.
//!
//! # What observers see
//! Lanes are choices (or, for Responses, output parts); tool calls are told apart by id, then by index, as `streamkeeper-wire` does. Log
//! probabilities are not shown to observers; those of a text that was changed are removed with it.
//!
//! A whole tool call that an observer made becomes an item in a chat stream. In a Responses stream it has no place and is withheld and
//! reported, since the indices of later items could not be changed. Events made for held text repeat the sequence number before them.
//!
//! # What this cannot see
//! The client reads the body before this does: fields that its types do not have (`reasoning` of other providers, their citations) are
//! gone, and an event that it cannot parse is its own error. Where that matters, observe the bytes instead (`streamkeeper-reqwest`).
#![forbid(unsafe_code)]

mod chat;
mod responses;

pub use chat::ChatState;
pub use responses::ResponsesState;
