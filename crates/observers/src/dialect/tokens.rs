//! Control tokens of chat templates that leak into text.

/// The tokens that [`NormalizeDialects`](crate::NormalizeDialects) takes out of text unless it is given others: those of the chat
/// templates of ChatML and Qwen, Llama, Mistral, Gemma, Phi, DeepSeek, Kimi, Command R and the Harmony format. A role that follows the
/// beginning of a message goes with it. Tokens that are ordinary markup too (`<s>`, `</s>`) are not among them.
pub const SPECIAL_TOKENS: &[&str] = &[
    // ChatML, Qwen, Phi, GPT.
    "<|im_start|>",
    "<|im_start|>assistant",
    "<|im_start|>system",
    "<|im_start|>tool",
    "<|im_start|>user",
    "<|im_end|>",
    "<|im_sep|>",
    "<|endoftext|>",
    "<|endofprompt|>",
    "<|fim_prefix|>",
    "<|fim_middle|>",
    "<|fim_suffix|>",
    "<|fim_pad|>",
    "<|file_sep|>",
    "<|repo_name|>",
    "<|assistant|>",
    "<|system|>",
    "<|user|>",
    "<|end|>",
    // Llama.
    "<|begin_of_text|>",
    "<|end_of_text|>",
    "<|start_header_id|>",
    "<|start_header_id|>assistant<|end_header_id|>",
    "<|start_header_id|>ipython<|end_header_id|>",
    "<|start_header_id|>system<|end_header_id|>",
    "<|start_header_id|>user<|end_header_id|>",
    "<|end_header_id|>",
    "<|eot_id|>",
    "<|eom_id|>",
    "<|python_tag|>",
    "<|finetune_right_pad_id|>",
    "<|header_start|>",
    "<|header_end|>",
    "<|eot|>",
    "<|eom|>",
    // Mistral, Llama 2.
    "[INST]",
    "[/INST]",
    "[AVAILABLE_TOOLS]",
    "[/AVAILABLE_TOOLS]",
    "[TOOL_RESULTS]",
    "[/TOOL_RESULTS]",
    "<<SYS>>",
    "<</SYS>>",
    // Gemma.
    "<start_of_turn>",
    "<start_of_turn>model",
    "<start_of_turn>user",
    "<end_of_turn>",
    // DeepSeek, whose bars and spaces are not those of ASCII.
    "<｜begin▁of▁sentence｜>",
    "<｜end▁of▁sentence｜>",
    "<｜User｜>",
    "<｜Assistant｜>",
    // Kimi.
    "<|im_middle|>",
    "<|im_assistant|>assistant",
    "<|im_user|>user",
    "<|im_system|>system",
    "[EOS]",
    "[BOS]",
    // Command R.
    "<|START_OF_TURN_TOKEN|>",
    "<|END_OF_TURN_TOKEN|>",
    "<|CHATBOT_TOKEN|>",
    "<|USER_TOKEN|>",
    "<|SYSTEM_TOKEN|>",
    // Harmony.
    "<|start|>",
    "<|start|>assistant",
    "<|channel|>",
    "<|channel|>analysis",
    "<|channel|>commentary",
    "<|channel|>final",
    "<|constrain|>",
    "<|message|>",
    "<|return|>",
    "<|call|>",
];

/// A set of tokens, of which the longest counts.
#[derive(Debug, Clone)]
pub(super) struct Tokens {
    list: Vec<String>,
    first: [bool; 256],
}

impl Tokens {
    pub(super) fn new(tokens: impl IntoIterator<Item = String>) -> Self {
        let mut list: Vec<String> = tokens.into_iter().filter(|token| !token.is_empty()).collect();
        // The longest first.
        list.sort_unstable_by(|a, b| b.len().cmp(&a.len()).then_with(|| a.cmp(b)));
        list.dedup();
        let mut first = [false; 256];
        list.iter().for_each(|token| first[usize::from(token.as_bytes()[0])] = true);
        Self { list, first }
    }

    pub(super) fn may_begin_with(&self, byte: u8) -> bool {
        self.first[usize::from(byte)]
    }

    /// The length of the token that a text begins with; `None` if it begins with none. An error if more text decides.
    pub(super) fn at_start(&self, text: &str, more_may_come: bool) -> Result<Option<usize>, Undecided> {
        if !text.as_bytes().first().is_some_and(|&byte| self.may_begin_with(byte)) {
            return Ok(None);
        }
        for token in &self.list {
            if text.starts_with(token.as_str()) {
                return Ok(Some(token.len()));
            }
            if more_may_come && token.starts_with(text) {
                return Err(Undecided);
            }
        }
        Ok(None)
    }
}

/// It depends on what follows.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Undecided;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_longest_token_counts() {
        let tokens = Tokens::new(SPECIAL_TOKENS.iter().map(|&token| token.to_owned()));
        for (text, more, expected) in [
            ("<|im_end|> x", true, Ok(Some(10))),
            ("<|im_en", true, Err(Undecided)),
            ("<|im_en", false, Ok(None)),
            ("<|im_start|>", true, Err(Undecided)),
            ("<|im_start|>", false, Ok(Some(12))),
            ("<|im_start|>ass", false, Ok(Some(12))),
            ("<|im_start|>assistant\n", true, Ok(Some(21))),
            ("<|im_start|>x", true, Ok(Some(12))),
            ("<｜end▁of▁sentence｜>", true, Ok(Some("<｜end▁of▁sentence｜>".len()))),
            ("<b>", true, Ok(None)),
            ("x", true, Ok(None)),
        ] {
            assert_eq!(tokens.at_start(text, more), expected, "{text} {more}");
        }
    }

    #[test]
    fn every_token_of_the_list_is_one() {
        let tokens = Tokens::new(SPECIAL_TOKENS.iter().map(|&token| token.to_owned()));
        assert_eq!(tokens.list.len(), SPECIAL_TOKENS.len(), "none is there twice");
        for token in SPECIAL_TOKENS {
            assert_eq!(tokens.at_start(token, false), Ok(Some(token.len())), "{token}");
        }
    }
}
