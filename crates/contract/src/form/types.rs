use serde::{
    Deserialize, Deserializer, Serialize, Serializer,
    de::{Error, MapAccess},
    ser::SerializeMap,
};

use super::{Members, Object, Writer, members, objects, required};
use crate::{
    Channel, ChunkKind, ErrorInfo, FailureReport, FinishReason, Lane, Offset, Origin, Outcome, Piece, Provenance,
    Release, SideEvent, Stated, Stop, Text, Usage, Verdict,
};

objects!(ErrorInfo, FailureReport, Lane, Origin, Outcome, Piece, SideEvent, Stated, Stop, Usage, Verdict);

impl Object for Lane {
    const WHAT: &'static str = "a lane: an object with a `channel`";

    fn write<M: SerializeMap>(&self, out: &mut Writer<'_, M>) -> Result<(), M::Error> {
        let Lane { choice, part, call, channel } = *self;
        Place { choice, part, call, channel: Some(channel) }.write(out)
    }

    fn read<'de, A: MapAccess<'de>>(members: &mut Members<'de, A>) -> Result<Self, A::Error> {
        let Place { choice, part, call, channel } = Place::read(members)?;
        Ok(Self { choice, part, call, channel: required(channel, "channel")? })
    }
}

/// A lane in a chunk: the channel is only stated where the kind does not tell it.
#[derive(Default, PartialEq)]
pub(super) struct Place {
    choice: u16,
    part: u16,
    call: u16,
    channel: Option<Channel>,
}

impl Place {
    pub(super) fn of(lane: Lane, kind: ChunkKind) -> Self {
        let Lane { choice, part, call, channel } = lane;
        Self { choice, part, call, channel: (kind.channel() != Some(channel)).then_some(channel) }
    }

    pub(super) fn lane<E: Error>(self, kind: ChunkKind) -> Result<Lane, E> {
        let Some(channel) = self.channel.or(kind.channel()) else {
            return Err(E::custom("field `lane`: missing field `channel`"));
        };
        Ok(Lane { choice: self.choice, part: self.part, call: self.call, channel })
    }
}

impl Object for Place {
    const WHAT: &'static str = "a lane: an object";

    fn write<M: SerializeMap>(&self, out: &mut Writer<'_, M>) -> Result<(), M::Error> {
        out.unless_default("choice", &self.choice)?;
        out.unless_default("part", &self.part)?;
        out.unless_default("call", &self.call)?;
        out.optional("channel", &self.channel)
    }

    fn read<'de, A: MapAccess<'de>>(members: &mut Members<'de, A>) -> Result<Self, A::Error> {
        members!(members { choice: value, part: value, call: value, channel: value });
        Ok(Self {
            choice: choice.unwrap_or_default(),
            part: part.unwrap_or_default(),
            call: call.unwrap_or_default(),
            channel,
        })
    }
}

impl Object for Origin {
    const WHAT: &'static str = "an origin: an object";

    fn write<M: SerializeMap>(&self, out: &mut Writer<'_, M>) -> Result<(), M::Error> {
        out.value("frame", &self.frame)?;
        out.unless_default("part", &self.part)
    }

    fn read<'de, A: MapAccess<'de>>(members: &mut Members<'de, A>) -> Result<Self, A::Error> {
        members!(members { frame: value, part: value });
        Ok(Self { frame: required(frame, "frame")?, part: part.unwrap_or_default() })
    }
}

impl Serialize for Offset {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        self.0.serialize(serializer)
    }
}

impl<'de> Deserialize<'de> for Offset {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        u64::deserialize(deserializer).map(Self)
    }
}

impl Serialize for Provenance {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_seq(self.positions())
    }
}

impl<'de> Deserialize<'de> for Provenance {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let mut provenance = Self::default();
        for position in Vec::<u32>::deserialize(deserializer)? {
            provenance.add(position as usize);
        }
        Ok(provenance)
    }
}

impl Serialize for FinishReason {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_str(self.as_str())
    }
}

impl<'de> Deserialize<'de> for FinishReason {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        Text::deserialize(deserializer).map(|name| Self::from_name(&name))
    }
}

impl Object for Outcome {
    const WHAT: &'static str = "an outcome: an object with a `kind`";

    fn write<M: SerializeMap>(&self, out: &mut Writer<'_, M>) -> Result<(), M::Error> {
        out.value("kind", self.code())?;
        match self {
            Self::Finished { reason } => out.value("reason", reason),
            Self::Stopped(stop) => stop.write(out),
            Self::Failed { error } => out.object("error", error),
            Self::Aborted { reason, cancel_requested } => {
                out.optional("reason", reason)?;
                out.unless_default("cancel_requested", cancel_requested)
            }
            Self::Suspended { interrupts } => out.value("interrupts", interrupts),
            Self::Truncated | Self::Dropped => Ok(()),
        }
    }

    fn read<'de, A: MapAccess<'de>>(members: &mut Members<'de, A>) -> Result<Self, A::Error> {
        let kind = members.tag("kind")?;
        Ok(match &*kind {
            "finished" => {
                members!(members { reason: value });
                Self::Finished { reason: required(reason, "reason")? }
            }
            "stopped" => Self::Stopped(Stop::read(members)?),
            "failed" => {
                members!(members { error: object });
                Self::Failed { error: required(error, "error")? }
            }
            "aborted" => {
                members!(members { reason: value, cancel_requested: value });
                Self::Aborted { reason: reason.flatten(), cancel_requested: cancel_requested.unwrap_or_default() }
            }
            "suspended" => {
                members!(members { interrupts: value });
                Self::Suspended { interrupts: required(interrupts, "interrupts")? }
            }
            "truncated" | "dropped" => {
                members!(members {});
                if kind == "truncated" { Self::Truncated } else { Self::Dropped }
            }
            kind => return Err(A::Error::unknown_variant(kind, Self::CODES)),
        })
    }
}

impl Object for Stop {
    const WHAT: &'static str = "a stop: an object";

    fn write<M: SerializeMap>(&self, out: &mut Writer<'_, M>) -> Result<(), M::Error> {
        out.value("observer", &self.observer)?;
        out.value("code", &self.code)?;
        out.value("reason", &self.reason)?;
        out.value("chunk_index", &self.chunk_index)?;
        out.value("accumulated_content_length", &self.accumulated_content_length)
    }

    fn read<'de, A: MapAccess<'de>>(members: &mut Members<'de, A>) -> Result<Self, A::Error> {
        members!(members {
            observer: value,
            code: value,
            reason: value,
            chunk_index: value,
            accumulated_content_length: value,
        });
        Ok(Self {
            observer: required(observer, "observer")?,
            code: required(code, "code")?,
            reason: required(reason, "reason")?,
            chunk_index: required(chunk_index, "chunk_index")?,
            accumulated_content_length: required(accumulated_content_length, "accumulated_content_length")?,
        })
    }
}

impl Object for ErrorInfo {
    const WHAT: &'static str = "an error: an object with a `code`";

    fn write<M: SerializeMap>(&self, out: &mut Writer<'_, M>) -> Result<(), M::Error> {
        out.value("code", &self.code)?;
        out.optional("message", &self.message)?;
        out.optional("component", &self.component)
    }

    fn read<'de, A: MapAccess<'de>>(members: &mut Members<'de, A>) -> Result<Self, A::Error> {
        members!(members { code: value, message: value, component: value });
        Ok(Self { code: required(code, "code")?, message: message.flatten(), component: component.flatten() })
    }
}

impl Object for Usage {
    const WHAT: &'static str = "usage: an object";

    fn write<M: SerializeMap>(&self, out: &mut Writer<'_, M>) -> Result<(), M::Error> {
        out.optional("uncached_input", &self.uncached_input)?;
        out.optional("cache_read", &self.cache_read)?;
        out.optional("cache_write", &self.cache_write)?;
        out.optional("output", &self.output)?;
        out.optional("reasoning", &self.reasoning)?;
        out.unless_default("estimated", &self.estimated)?;
        out.object_unless_default("stated", &self.stated)
    }

    fn read<'de, A: MapAccess<'de>>(members: &mut Members<'de, A>) -> Result<Self, A::Error> {
        members!(members {
            uncached_input: value,
            cache_read: value,
            cache_write: value,
            output: value,
            reasoning: value,
            estimated: value,
            stated: object,
        });
        Ok(Self {
            uncached_input: uncached_input.flatten(),
            cache_read: cache_read.flatten(),
            cache_write: cache_write.flatten(),
            output: output.flatten(),
            reasoning: reasoning.flatten(),
            estimated: estimated.unwrap_or_default(),
            stated: stated.unwrap_or_default(),
        })
    }
}

impl Object for Stated {
    const WHAT: &'static str = "stated usage: an object";

    fn write<M: SerializeMap>(&self, out: &mut Writer<'_, M>) -> Result<(), M::Error> {
        out.optional("input", &self.input)?;
        out.optional("output", &self.output)?;
        out.optional("cached", &self.cached)?;
        out.optional("cache_write", &self.cache_write)?;
        out.optional("reasoning", &self.reasoning)?;
        out.optional("total", &self.total)?;
        out.optional("raw", &self.raw)
    }

    fn read<'de, A: MapAccess<'de>>(members: &mut Members<'de, A>) -> Result<Self, A::Error> {
        members!(members {
            input: value,
            output: value,
            cached: value,
            cache_write: value,
            reasoning: value,
            total: value,
            raw: value,
        });
        Ok(Self {
            input: input.flatten(),
            output: output.flatten(),
            cached: cached.flatten(),
            cache_write: cache_write.flatten(),
            reasoning: reasoning.flatten(),
            total: total.flatten(),
            raw,
        })
    }
}

impl Object for Verdict {
    const WHAT: &'static str = "a verdict: an object with a `kind`";

    fn write<M: SerializeMap>(&self, out: &mut Writer<'_, M>) -> Result<(), M::Error> {
        out.value("kind", self.name())?;
        match self {
            Self::Amend(chunk) => out.value("chunk", chunk),
            Self::Emit(events) => out.value("events", events),
            Self::Stop { code, reason } => {
                out.value("code", code)?;
                out.value("reason", reason)
            }
            Self::Release(release) => {
                out.optional("pieces", &release.as_pieces())?;
                out.unless_default("keep", &release.kept())
            }
            Self::Continue | Self::Buffer => Ok(()),
        }
    }

    fn read<'de, A: MapAccess<'de>>(members: &mut Members<'de, A>) -> Result<Self, A::Error> {
        let kind = members.tag("kind")?;
        Ok(match &*kind {
            "amend" => {
                members!(members { chunk: value });
                Self::Amend(required(chunk, "chunk")?)
            }
            "emit" => {
                members!(members { events: value });
                Self::Emit(required(events, "events")?)
            }
            "stop" => {
                members!(members { code: value, reason: value });
                Self::Stop { code: required(code, "code")?, reason: required(reason, "reason")? }
            }
            "release" => {
                members!(members { pieces: value, keep: value });
                let release = match Option::<Option<Vec<Piece>>>::flatten(pieces) {
                    Some(pieces) => Release::pieces(pieces),
                    None => Release::unchanged(),
                };
                Self::Release(release.keep(keep.unwrap_or_default()))
            }
            "continue" | "buffer" => {
                members!(members {});
                if kind == "continue" { Self::Continue } else { Self::Buffer }
            }
            kind => return Err(A::Error::unknown_variant(kind, Self::NAMES)),
        })
    }
}

impl Object for Piece {
    const WHAT: &'static str = "a piece: an object with a `kind`";

    fn write<M: SerializeMap>(&self, out: &mut Writer<'_, M>) -> Result<(), M::Error> {
        match self {
            Self::Text(text) => {
                out.value("kind", "text")?;
                out.value("text", text)
            }
            Self::Reasoning(text) => {
                out.value("kind", "reasoning")?;
                out.value("text", text)
            }
            Self::ToolCall { name, arguments } => {
                out.value("kind", "tool_call")?;
                out.value("name", name)?;
                out.value("arguments", arguments)
            }
        }
    }

    fn read<'de, A: MapAccess<'de>>(members: &mut Members<'de, A>) -> Result<Self, A::Error> {
        let kind = members.tag("kind")?;
        Ok(match &*kind {
            "text" => {
                members!(members { text: value });
                Self::Text(required(text, "text")?)
            }
            "reasoning" => {
                members!(members { text: value });
                Self::Reasoning(required(text, "text")?)
            }
            "tool_call" => {
                members!(members { name: value, arguments: value });
                Self::ToolCall { name: required(name, "name")?, arguments: required(arguments, "arguments")? }
            }
            kind => return Err(A::Error::unknown_variant(kind, &["text", "reasoning", "tool_call"])),
        })
    }
}

impl Object for SideEvent {
    const WHAT: &'static str = "a side event: an object";

    fn write<M: SerializeMap>(&self, out: &mut Writer<'_, M>) -> Result<(), M::Error> {
        out.value("channel", &self.channel)?;
        out.value("name", &self.name)?;
        out.value("payload", &self.payload)
    }

    fn read<'de, A: MapAccess<'de>>(members: &mut Members<'de, A>) -> Result<Self, A::Error> {
        members!(members { channel: value, name: value, payload: value });
        Ok(Self {
            channel: required(channel, "channel")?,
            name: required(name, "name")?,
            payload: required(payload, "payload")?,
        })
    }
}

impl Object for FailureReport {
    const WHAT: &'static str = "a failure report: an object";

    fn write<M: SerializeMap>(&self, out: &mut Writer<'_, M>) -> Result<(), M::Error> {
        out.value("component", &self.component)?;
        out.value("hook", &self.hook)?;
        out.value("kind", &self.kind)
    }

    fn read<'de, A: MapAccess<'de>>(members: &mut Members<'de, A>) -> Result<Self, A::Error> {
        members!(members { component: value, hook: value, kind: value });
        Ok(Self {
            component: required(component, "component")?,
            hook: required(hook, "hook")?,
            kind: required(kind, "kind")?,
        })
    }
}
