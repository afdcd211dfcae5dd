//! AG-UI: everything that begins has an end, and the run has exactly one.

use std::fmt::Write as _;

use streamkeeper_contract::{Body, Channel, Chunk, Lane, Outcome, Raw, Usage};

use crate::{ending::Ending, json::Quoted};

use super::{Head, Out, Seen};

/// One run.
#[derive(Debug, Default)]
pub(super) struct AgUi {
    thread: Option<String>,
    run: Option<String>,
    parent: Option<String>,
    begun: bool,
    over: bool,
    /// What is open: messages, calls and steps.
    open: Vec<Open>,
    /// How many messages were begun.
    messages: u32,
}

#[derive(Debug)]
enum Open {
    Message(Lane, String),
    Call(Lane, String),
    Step(String),
}

impl AgUi {
    pub(super) fn push(&mut self, chunk: &Chunk, head: &Head, seen: &Seen, out: &mut Out<'_>) {
        if self.over {
            return;
        }
        if let Body::RunStart(run) = chunk.body() {
            // The ids of the run itself, if it has not begun by then. A run in a run is not written.
            if !self.begun {
                let owned = |text: &Option<streamkeeper_contract::Text>| text.as_deref().map(str::to_owned);
                (self.thread, self.run, self.parent) = (owned(&run.thread), owned(&run.run), owned(&run.parent));
            }
            return self.begin(head, out);
        }
        if let Some((lane, text)) = seen.text(chunk) {
            self.begin(head, out);
            return self.text(lane, text, head, out);
        }
        let is_content = !matches!(chunk.body(), Body::MessageStart(_) | Body::Usage(_) | Body::Heartbeat);
        if is_content {
            self.begin(head, out);
        }
        match chunk.body() {
            Body::ToolCallStart(call) => self.call(call.lane, &call.id, &call.name, out),
            Body::ToolCall(call) => {
                self.call(call.lane, &call.id, &call.name, out);
                self.text(call.lane, &call.arguments, head, out);
                self.close(|open| matches!(open, Open::Call(lane, _) if *lane == call.lane), out);
            }
            Body::ToolCallEnd(ended) => {
                self.close(|open| matches!(open, Open::Call(lane, _) if lane == ended), out);
            }
            Body::PartEnd { choice, part } => {
                let of = |lane: &Lane| lane.choice == *choice && lane.part == *part;
                self.close(|open| matches!(open, Open::Message(lane, _) | Open::Call(lane, _) if of(lane)), out);
            }
            Body::MessageEnd { choice } => self.close_choice(*choice, out),
            Body::Finish(finish) => self.close_choice(finish.choice, out),
            Body::ToolResult(result) => {
                let message = self.message_id(head);
                let (message, id, content) = (Quoted(&message), Quoted(&result.id), Quoted(&result.content));
                out.event(
                    None,
                    &format!(
                        r#"{{"type":"TOOL_CALL_RESULT","messageId":{message},"toolCallId":{id},"content":{content},"role":"tool"}}"#
                    ),
                );
            }
            Body::StepStart(name) => {
                self.open.push(Open::Step(name.to_string()));
                out.event(None, &format!(r#"{{"type":"STEP_STARTED","stepName":{}}}"#, Quoted(name)));
            }
            Body::StepEnd(ended) => {
                self.close(|open| matches!(open, Open::Step(name) if name.as_str() == ended.as_str()), out);
            }
            Body::StateSnapshot(state) => value("STATE_SNAPSHOT", "snapshot", state.as_str(), out),
            Body::StateDelta(patch) => value("STATE_DELTA", "delta", patch.as_str(), out),
            Body::MessagesSnapshot(messages) => value("MESSAGES_SNAPSHOT", "messages", messages.as_str(), out),
            Body::Custom(custom) => {
                let members = format!(r#""name":{},"value""#, Quoted(&custom.name));
                out.event(None, &format!(r#"{{"type":"CUSTOM",{members}:{}}}"#, custom.value.as_str()));
            }
            Body::Raw(raw) => raw_event(raw, out),
            Body::Opaque(opaque) => {
                let open = |open: &Open| matches!(open, Open::Message(lane, _) if *lane == opaque.lane);
                let entity = self.open.iter().find(|candidate| open(candidate));
                if let Some(Open::Message(_, id)) = entity {
                    let (id, data) = (Quoted(id), Quoted(&opaque.data));
                    out.event(
                        None,
                        &format!(
                            r#"{{"type":"REASONING_ENCRYPTED_VALUE","subtype":"message","entityId":{id},"encryptedValue":{data}}}"#
                        ),
                    );
                }
            }
            Body::Error(error) => {
                self.close(|_| true, out);
                self.over = true;
                let message = error.message.as_deref().unwrap_or(&error.code);
                let (message, code) = (Quoted(message), Quoted(&error.code));
                out.event(None, &format!(r#"{{"type":"RUN_ERROR","message":{message},"code":{code}}}"#));
            }
            Body::End(end) => self.end(end.outcome(), head, seen, out),
            _ => {}
        }
    }

    fn thread(&self) -> &str {
        self.thread.as_deref().unwrap_or("thread")
    }

    fn run<'a>(&'a self, head: &'a Head) -> &'a str {
        self.run.as_deref().unwrap_or_else(|| head.id())
    }

    fn begin(&mut self, head: &Head, out: &mut Out<'_>) {
        if std::mem::replace(&mut self.begun, true) {
            return;
        }
        let parent = self.parent.as_deref().map(|parent| format!(r#","parentRunId":{}"#, Quoted(parent)));
        let (thread, run) = (Quoted(self.thread()), Quoted(self.run(head)));
        out.event(
            None,
            &format!(r#"{{"type":"RUN_STARTED","threadId":{thread},"runId":{run}{}}}"#, parent.unwrap_or_default()),
        );
    }

    /// A new id for a message.
    fn message_id(&mut self, head: &Head) -> String {
        self.messages += 1;
        match self.messages {
            1 => format!("{}-message", head.id()),
            number => format!("{}-message-{number}", head.id()),
        }
    }

    fn text(&mut self, lane: Lane, text: &str, head: &Head, out: &mut Out<'_>) {
        if text.is_empty() {
            return;
        }
        let text = Quoted(text);
        match lane.channel {
            Channel::Text | Channel::Refusal => {
                let id = self.message(lane, head, out);
                let id = Quoted(&id);
                out.event(None, &format!(r#"{{"type":"TEXT_MESSAGE_CONTENT","messageId":{id},"delta":{text}}}"#));
            }
            Channel::Reasoning => {
                let id = self.message(lane, head, out);
                let id = Quoted(&id);
                out.event(None, &format!(r#"{{"type":"REASONING_MESSAGE_CONTENT","messageId":{id},"delta":{text}}}"#));
            }
            Channel::Arguments => {
                // Arguments of a call that never began have nobody to belong to.
                let call = self.open.iter().find(|open| matches!(open, Open::Call(known, _) if *known == lane));
                if let Some(Open::Call(_, id)) = call {
                    let id = Quoted(id);
                    out.event(None, &format!(r#"{{"type":"TOOL_CALL_ARGS","toolCallId":{id},"delta":{text}}}"#));
                }
            }
            _ => {}
        }
    }

    /// The id of the open message of a lane; opens one if there is none.
    fn message(&mut self, lane: Lane, head: &Head, out: &mut Out<'_>) -> String {
        let open = self.open.iter().find_map(|open| match open {
            Open::Message(known, id) if *known == lane => Some(id.clone()),
            _ => None,
        });
        if let Some(id) = open {
            return id;
        }
        let id = self.message_id(head);
        let quoted = Quoted(&id);
        if lane.channel == Channel::Reasoning {
            out.event(None, &format!(r#"{{"type":"REASONING_START","messageId":{quoted}}}"#));
            out.event(
                None,
                &format!(r#"{{"type":"REASONING_MESSAGE_START","messageId":{quoted},"role":"reasoning"}}"#),
            );
        } else {
            out.event(None, &format!(r#"{{"type":"TEXT_MESSAGE_START","messageId":{quoted},"role":"assistant"}}"#));
        }
        self.open.push(Open::Message(lane, id.clone()));
        id
    }

    fn call(&mut self, lane: Lane, id: &str, name: &str, out: &mut Out<'_>) {
        self.open.push(Open::Call(lane, id.to_owned()));
        let (id, name) = (Quoted(id), Quoted(name));
        out.event(None, &format!(r#"{{"type":"TOOL_CALL_START","toolCallId":{id},"toolCallName":{name}}}"#));
    }

    fn close_choice(&mut self, choice: u16, out: &mut Out<'_>) {
        self.close(|open| matches!(open, Open::Message(lane, _) | Open::Call(lane, _) if lane.choice == choice), out);
    }

    fn close(&mut self, which: impl Fn(&Open) -> bool, out: &mut Out<'_>) {
        let mut at = self.open.len();
        while at > 0 {
            at -= 1;
            if !which(&self.open[at]) {
                continue;
            }
            match self.open.remove(at) {
                Open::Message(lane, id) if lane.channel == Channel::Reasoning => {
                    let id = Quoted(&id);
                    out.event(None, &format!(r#"{{"type":"REASONING_MESSAGE_END","messageId":{id}}}"#));
                    out.event(None, &format!(r#"{{"type":"REASONING_END","messageId":{id}}}"#));
                }
                Open::Message(_, id) => {
                    out.event(None, &format!(r#"{{"type":"TEXT_MESSAGE_END","messageId":{}}}"#, Quoted(&id)));
                }
                Open::Call(_, id) => {
                    out.event(None, &format!(r#"{{"type":"TOOL_CALL_END","toolCallId":{}}}"#, Quoted(&id)));
                }
                Open::Step(name) => {
                    out.event(None, &format!(r#"{{"type":"STEP_FINISHED","stepName":{}}}"#, Quoted(&name)));
                }
            }
        }
    }

    fn end(&mut self, outcome: &Outcome, head: &Head, seen: &Seen, out: &mut Out<'_>) {
        self.over = true;
        self.close(|_| true, out);
        if let Some(ending) = Ending::of(outcome) {
            return out.event(None, &ending.ag_ui_terminal(self.thread(), self.run(head)));
        }
        let (thread, run) = (Quoted(self.thread()), Quoted(self.run(head)));
        let usage = seen.usage.as_ref().map(|usage| usage_of(usage, head)).unwrap_or_default();
        out.event(None, &format!(r#"{{"type":"RUN_FINISHED","threadId":{thread},"runId":{run}{usage}}}"#));
    }
}

fn value(kind: &str, member: &str, json: &str, out: &mut Out<'_>) {
    out.event(None, &format!(r#"{{"type":"{kind}","{member}":{json}}}"#));
}

fn raw_event(raw: &Raw, out: &mut Out<'_>) {
    let is_json = serde_json::from_str::<serde::de::IgnoredAny>(&raw.data).is_ok();
    let event = if is_json { raw.data.to_string() } else { Quoted(&raw.data).to_string() };
    let source = raw.event.as_deref().map(|name| format!(r#","source":{}"#, Quoted(name))).unwrap_or_default();
    out.event(None, &format!(r#"{{"type":"RAW","event":{event}{source}}}"#));
}

fn usage_of(usage: &Usage, head: &Head) -> String {
    let mut json = format!(r#","usage":[{{"model":{}"#, Quoted(head.model()));
    for (member, count) in [
        ("inputTokens", usage.input().or(usage.stated.input)),
        ("outputTokens", usage.output_total().or(usage.stated.output)),
        ("reasoningTokens", usage.reasoning),
        ("cachedInputTokens", usage.cache_read),
    ] {
        if let Some(count) = count {
            let _ = write!(json, r#","{member}":{count}"#);
        }
    }
    json.push_str("}]");
    json
}
