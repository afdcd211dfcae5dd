use std::path::PathBuf;

use clap::{Parser, Subcommand, ValueEnum};
use streamkeeper_contract::CallClass;
use streamkeeper_wire::Format;

const EXIT_CODES: &str = "\
Exit codes:
  0  the stream finished; nothing stopped or failed it
  1  a wrong argument, or a file that cannot be read or written
  2  the stream failed, was cut off, or is in no format that can be read
  3  an observer stopped the stream";

/// Observe, inspect, convert, replay and explain streams of language models.
#[derive(Debug, Parser)]
#[command(name = "streamkeeper", version, after_help = EXIT_CODES, max_term_width = 100)]
pub(crate) struct Args {
    #[command(subcommand)]
    pub(crate) command: Command,
}

#[derive(Debug, Subcommand)]
pub(crate) enum Command {
    Observe(Observe),
    Inspect(Inspect),
}

/// Take a stream through observers: print what is delivered as it comes, then what the observers did.
///
/// With `--emit text` the summary follows the text on stdout. With `chunks` stdout has the stream alone, so that it can be
/// piped on, and the summary goes to stderr.
#[derive(Debug, clap::Args)]
pub(crate) struct Observe {
    #[command(flatten)]
    pub(crate) format: FormatArg,

    /// Stop when the text matches this pattern (`regex` syntax). May be given several times.
    #[arg(long, value_name = "PATTERN")]
    pub(crate) halt: Vec<String>,

    /// What the model call is for: synthesize, reasoning, utility, converse, or a word of your own.
    #[arg(long, value_name = "CLASS", default_value_t)]
    pub(crate) call_class: CallClass,

    /// What goes to stdout.
    #[arg(long, value_enum, default_value_t)]
    pub(crate) emit: Emit,

    /// The stream, or `-` for stdin.
    pub(crate) file: PathBuf,
}

/// Say what is in a stream.
#[derive(Debug, clap::Args)]
pub(crate) struct Inspect {
    #[command(flatten)]
    pub(crate) format: FormatArg,

    /// Print one JSON object instead of a table.
    #[arg(long)]
    pub(crate) json: bool,

    /// Feed the decoder so many bytes at a time; the result is the same for every number.
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..))]
    pub(crate) chunk_bytes: Option<u32>,

    /// The stream, or `-` for stdin.
    pub(crate) file: PathBuf,
}

#[derive(Debug, clap::Args)]
pub(crate) struct FormatArg {
    /// The format of the stream. Without it, it is told from the first event.
    ///
    /// openai-chat, openai-completions, openai-responses, anthropic-messages, gemini, ollama, cohere-v2, bedrock-converse,
    /// bedrock-invoke, ag-ui, claude-code, jsonl, raw.
    #[arg(long, value_name = "FORMAT", value_parser = format)]
    pub(crate) format: Option<Format>,
}

fn format(name: &str) -> Result<Format, String> {
    name.parse().map_err(|error: streamkeeper_wire::UnknownFormat| error.to_string())
}

#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, ValueEnum)]
pub(crate) enum Emit {
    /// The delivered answer text, then the summary.
    #[default]
    Text,
    /// Every delivered chunk, as JSON lines.
    Chunks,
}
