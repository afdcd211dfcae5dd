use std::path::PathBuf;

use clap::{Parser, Subcommand, ValueEnum};
use streamkeeper_contract::CallClass;
use streamkeeper_wire::{
    Format,
    encode::{Target, UnknownTarget},
};

const EXIT_CODES: &str = "\
Exit codes:
  0  the stream finished; nothing stopped or failed it
  1  a wrong argument or policy, or a file that cannot be read or written
  2  the stream failed, was cut off, or is in no format that can be read
  3  an observer stopped the stream
  4  a replay differs from its recording";

/// Observe, inspect, convert, replay and explain streams of language models; check policies.
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
    Convert(Convert),
    Replay(Replay),
    Explain(Explain),
    #[command(subcommand)]
    Policy(Policy),
}

/// What takes the place of what is redacted.
#[derive(Debug, Clone, Copy, PartialEq, Eq, clap::ValueEnum)]
pub(crate) enum Replace {
    /// `***`
    Mask,
    /// `[EMAIL]`
    Label,
    /// `[EMAIL:1f0c…]`: equal texts have equal hashes
    Hash,
    /// `[EMAIL_1]`: equal texts have equal numbers
    Token,
}

/// Which observers a stream passes. They run in this order: the normaliser, redaction, those of the policy, the
/// prompt-leak guard, the halts, metrics.
#[derive(Debug, clap::Args)]
pub(crate) struct ObserverArgs {
    /// The observers of a policy file: TOML, or JSON if its name ends in .json.
    #[arg(long, value_name = "FILE")]
    pub(crate) policy: Option<PathBuf>,

    /// Turn tool calls, thoughts and control tokens that the model wrote into its answer into what they mean.
    #[arg(long, visible_alias = "normalize")]
    pub(crate) normalise: bool,

    /// Take these out of texts and arguments: `secrets`, `pii`, or NAME=REGEX, separated by commas. A NAME=REGEX goes to the end of the value; may be
    /// given several times. A match in the arguments of a tool call stops the stream.
    #[arg(long, value_name = "WHAT,…")]
    pub(crate) redact: Vec<String>,

    /// What takes the place of what is redacted. `hash` takes its key from the variable STREAMKEEPER_HASH_KEY.
    #[arg(long, value_name = "HOW", requires = "redact", default_value = "label")]
    pub(crate) replace: Replace,

    /// Stop when the model recites the system prompt in this file.
    #[arg(long, value_name = "FILE")]
    pub(crate) prompt_leak: Option<PathBuf>,

    /// Stop when the text matches this pattern (`regex` syntax). What came before the last chunk of a match is out by then: to keep text
    /// from a reader use --redact. May be given several times.
    #[arg(long, value_name = "PATTERN")]
    pub(crate) halt: Vec<String>,
}

/// Check policy files, and print their schema.
#[derive(Debug, Subcommand)]
pub(crate) enum Policy {
    /// Say what a policy registers, in order, and its hash; or where it is wrong.
    Check {
        /// The policy: TOML, or JSON if its name ends in .json.
        file: PathBuf,
    },
    /// Print the JSON schema of policies.
    Schema,
}

/// Take a stream through observers: print what is delivered as it comes, then what the observers did.
///
/// With `--emit text` the summary follows the text on stdout. With `chunks` and `wire` stdout has the stream alone, so that it can be
/// piped on, and the summary goes to stderr.
#[derive(Debug, clap::Args)]
pub(crate) struct Observe {
    #[command(flatten)]
    pub(crate) format: FormatArg,

    #[command(flatten)]
    pub(crate) observers: ObserverArgs,

    /// What the model call is for: synthesize, reasoning, utility, converse, or a word of your own.
    #[arg(long, value_name = "CLASS", default_value_t)]
    pub(crate) call_class: CallClass,

    /// What goes to stdout.
    #[arg(long, value_enum, default_value_t)]
    pub(crate) emit: Emit,

    /// Write a recording of the invocation (JSON lines) to this file: what was delivered, events, outcome.
    #[arg(long, value_name = "FILE")]
    pub(crate) record: Option<PathBuf>,

    /// Record what came in instead, before any guard: can be replayed, and holds everything the guards withheld.
    #[arg(long, requires = "record")]
    pub(crate) raw: bool,

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

/// Write a stream in another format.
#[derive(Debug, clap::Args)]
pub(crate) struct Convert {
    /// The format to write: openai-chat, anthropic-messages, ag-ui or jsonl.
    #[arg(long, value_name = "FORMAT", value_parser = target)]
    pub(crate) to: Target,

    #[command(flatten)]
    pub(crate) format: FormatArg,

    /// The stream, or `-` for stdin.
    pub(crate) file: PathBuf,
}

/// Run a raw recording through observers again and report the first difference.
///
/// Give the observers that the recording was made with, or others to see where that makes a difference.
#[derive(Debug, clap::Args)]
pub(crate) struct Replay {
    /// Keep the time between chunks as it was recorded.
    #[arg(long)]
    pub(crate) real_time: bool,

    #[command(flatten)]
    pub(crate) observers: ObserverArgs,

    /// A recording made with `observe --record FILE --raw`.
    pub(crate) recording: PathBuf,
}

/// Say why a recorded stream was stopped or changed.
#[derive(Debug, clap::Args)]
pub(crate) struct Explain {
    /// A recording made with `observe --record FILE`.
    pub(crate) recording: PathBuf,
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

fn target(name: &str) -> Result<Target, String> {
    name.parse().map_err(|error: UnknownTarget| error.to_string())
}

#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, ValueEnum)]
pub(crate) enum Emit {
    /// The delivered answer text, then the summary.
    #[default]
    Text,
    /// Every delivered chunk, as JSON lines.
    Chunks,
    /// The provider's own bytes, changed only where an observer changed them.
    Wire,
}
