use serde::{Deserialize, Deserializer, Serialize, Serializer, de::Error, de::MapAccess, ser::SerializeMap};

use super::{Members, Object, Unknown, Writer, members, read, required, types::Place, write};
use crate::{
    Annotation, Body, Chunk, ChunkKind, Custom, End, ErrorInfo, Finish, Json, Lane, Media, MediaData, MessageInfo,
    Meta, Opaque, Outcome, ProviderToolOutput, Raw, RunInfo, Snapshot, ToolCall, ToolCallStart, ToolResult, Usage,
};

impl Serialize for Chunk {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let unknown = self.meta().extra.as_ref().map_or(&[][..], |extra| &extra.0);
        write(self, unknown, serializer)
    }
}

impl<'de> Deserialize<'de> for Chunk {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let (mut chunk, unknown) = read::<Chunk, D>(deserializer, Unknown::Keep)?;
        if !unknown.0.is_empty() {
            chunk.meta_mut().extra = Some(Box::new(unknown));
        }
        Ok(chunk)
    }
}

impl Object for Chunk {
    const WHAT: &'static str = "a chunk: an object with a `kind`";

    fn write<M: SerializeMap>(&self, out: &mut Writer<'_, M>) -> Result<(), M::Error> {
        let kind = self.kind();
        match self.body() {
            Body::Unknown(kind) => out.value("kind", kind)?,
            _ => out.value("kind", kind.as_str())?,
        }
        out.unless_default("at", &self.meta().at)?;
        out.object_unless_default("origin", &self.meta().origin)?;
        out.unless_default("amended_by", &self.meta().provenance)?;
        if let Some(lane) = self.lane() {
            out.object_unless_default("lane", &Place::of(lane, kind))?;
        }
        match self.body() {
            Body::Delta { text, .. } => out.value("text", text),
            Body::RunStart(run) | Body::RunEnd(run) => {
                out.optional("run", &run.run)?;
                out.optional("thread", &run.thread)?;
                out.optional("parent", &run.parent)
            }
            Body::MessageStart(message) => {
                out.unless_default("choice", &message.choice)?;
                out.optional("id", &message.id)?;
                out.optional("role", &message.role)?;
                out.optional("model", &message.model)
            }
            Body::MessageEnd { choice } => out.unless_default("choice", choice),
            Body::StepStart(name) | Body::StepEnd(name) => out.value("name", name),
            Body::PartEnd { choice, part } => {
                out.unless_default("choice", choice)?;
                out.unless_default("part", part)
            }
            Body::Snapshot(snapshot) => out.value("text", &snapshot.text),
            Body::ToolCallStart(call) | Body::ProviderToolStart(call) => {
                out.value("id", &call.id)?;
                out.value("name", &call.name)
            }
            Body::ToolCall(call) => {
                out.value("id", &call.id)?;
                out.value("name", &call.name)?;
                out.value("arguments", &call.arguments)
            }
            Body::ToolResult(result) => {
                out.value("id", &result.id)?;
                out.value("content", &result.content)?;
                out.unless_default("is_error", &result.is_error)
            }
            Body::ProviderToolOutput(output) => {
                out.value("id", &output.id)?;
                out.value("name", &output.name)?;
                out.value("output", &output.output)
            }
            Body::Opaque(opaque) => {
                out.value("form", &opaque.form)?;
                out.value("data", &*opaque.data)
            }
            Body::Annotation(annotation) => {
                out.value("form", &annotation.form)?;
                out.value("value", &annotation.value)
            }
            Body::Media(media) => {
                out.value("form", &media.form)?;
                out.optional("mime", &media.mime)?;
                let (base64, url, file) = match &media.data {
                    MediaData::Base64(text) => (Some(text), None, None),
                    MediaData::Url(text) => (None, Some(text), None),
                    MediaData::Id(text) => (None, None, Some(text)),
                };
                out.optional("base64", &base64)?;
                out.optional("url", &url)?;
                out.optional("file", &file)
            }
            Body::Usage(usage) => usage.write(out),
            Body::Finish(finish) => {
                out.unless_default("choice", &finish.choice)?;
                out.value("reason", &finish.reason)?;
                out.optional("stated", &finish.stated)
            }
            Body::End(end) => out.object("outcome", &**end.outcome()),
            Body::Error(error) => error.write(out),
            Body::Discard(message) => out.value("message", message),
            Body::StateSnapshot(value) | Body::StateDelta(value) | Body::MessagesSnapshot(value) => {
                out.value("value", &**value)
            }
            Body::Custom(custom) => {
                out.value("name", &custom.name)?;
                out.value("value", &custom.value)
            }
            Body::Raw(raw) => {
                out.optional("event", &raw.event)?;
                out.value("data", &raw.data)
            }
            Body::PartStart(_)
            | Body::ToolCallEnd(_)
            | Body::ProviderToolEnd(_)
            | Body::Heartbeat
            | Body::Unknown(_) => Ok(()),
        }
    }

    fn read<'de, A: MapAccess<'de>>(members: &mut Members<'de, A>) -> Result<Self, A::Error> {
        let name = members.tag("kind")?;
        members.expect_beside();
        let kind = ChunkKind::from_name(&name).unwrap_or(ChunkKind::Unknown);
        let body = read_body(kind, &name, members)?;
        let (at, origin, provenance) = members.take_beside();
        Ok(Chunk::from(body).with_meta(Meta { at, origin, provenance, extra: None }))
    }
}

fn read_body<'de, A: MapAccess<'de>>(
    kind: ChunkKind,
    name: &str,
    members: &mut Members<'de, A>,
) -> Result<Body, A::Error> {
    let in_lane = |place: Option<Place>| place.unwrap_or_default().lane(kind);
    Ok(match kind {
        ChunkKind::ContentDelta
        | ChunkKind::ReasoningDelta
        | ChunkKind::RefusalDelta
        | ChunkKind::ToolCallDelta
        | ChunkKind::ToolResultDelta
        | ChunkKind::ProviderToolDelta
        | ChunkKind::TranscriptDelta => {
            members!(members { lane: object, text: value });
            let lane: Lane = in_lane(lane)?;
            if lane.delta_kind() != kind {
                let channel = lane.channel.as_str();
                return Err(A::Error::custom(format_args!("field `lane`: a {name} has no channel `{channel}`")));
            }
            Body::Delta { lane, text: required(text, "text")? }
        }
        ChunkKind::RunStart | ChunkKind::RunEnd => {
            members!(members { run: value, thread: value, parent: value });
            let run = Box::new(RunInfo { run: run.flatten(), thread: thread.flatten(), parent: parent.flatten() });
            if kind == ChunkKind::RunStart { Body::RunStart(run) } else { Body::RunEnd(run) }
        }
        ChunkKind::MessageStart => {
            members!(members { choice: value, id: value, role: value, model: value });
            Body::MessageStart(Box::new(MessageInfo {
                choice: choice.unwrap_or_default(),
                id: id.flatten(),
                role: role.flatten(),
                model: model.flatten(),
            }))
        }
        ChunkKind::MessageEnd => {
            members!(members { choice: value });
            Body::MessageEnd { choice: choice.unwrap_or_default() }
        }
        ChunkKind::StepStart | ChunkKind::StepEnd => {
            members!(members { name: value });
            let step = Box::new(required(name, "name")?);
            if kind == ChunkKind::StepStart { Body::StepStart(step) } else { Body::StepEnd(step) }
        }
        ChunkKind::PartStart => {
            members!(members { lane: object });
            Body::PartStart(in_lane(lane)?)
        }
        ChunkKind::PartEnd => {
            members!(members { choice: value, part: value });
            Body::PartEnd { choice: choice.unwrap_or_default(), part: part.unwrap_or_default() }
        }
        ChunkKind::Snapshot => {
            members!(members { lane: object, text: value });
            Body::Snapshot(Box::new(Snapshot { lane: in_lane(lane)?, text: required(text, "text")? }))
        }
        ChunkKind::ToolCallStart | ChunkKind::ProviderToolStart => {
            members!(members { lane: object, id: value, name: value });
            let call = Box::new(ToolCallStart {
                lane: in_lane(lane)?,
                id: required(id, "id")?,
                name: required(name, "name")?,
            });
            if kind == ChunkKind::ToolCallStart { Body::ToolCallStart(call) } else { Body::ProviderToolStart(call) }
        }
        ChunkKind::ToolCallEnd | ChunkKind::ProviderToolEnd => {
            members!(members { lane: object });
            let lane = in_lane(lane)?;
            if kind == ChunkKind::ToolCallEnd { Body::ToolCallEnd(lane) } else { Body::ProviderToolEnd(lane) }
        }
        ChunkKind::ToolCall => {
            members!(members { lane: object, id: value, name: value, arguments: value });
            Body::ToolCall(Box::new(ToolCall {
                lane: in_lane(lane)?,
                id: required(id, "id")?,
                name: required(name, "name")?,
                arguments: required(arguments, "arguments")?,
            }))
        }
        ChunkKind::ToolResult => {
            members!(members { lane: object, id: value, content: value, is_error: value });
            Body::ToolResult(Box::new(ToolResult {
                lane: in_lane(lane)?,
                id: required(id, "id")?,
                content: required(content, "content")?,
                is_error: is_error.unwrap_or_default(),
            }))
        }
        ChunkKind::ProviderToolOutput => {
            members!(members { lane: object, id: value, name: value, output: value });
            Body::ProviderToolOutput(Box::new(ProviderToolOutput {
                lane: in_lane(lane)?,
                id: required(id, "id")?,
                name: required(name, "name")?,
                output: required(output, "output")?,
            }))
        }
        ChunkKind::Opaque => {
            members!(members { lane: object, form: value, data: value });
            Body::Opaque(Box::new(Opaque {
                lane: in_lane(lane)?,
                form: required(form, "form")?,
                data: required(data, "data")?,
            }))
        }
        ChunkKind::Annotation => {
            members!(members { lane: object, form: value, value: value });
            Body::Annotation(Box::new(Annotation {
                lane: in_lane(lane)?,
                form: required(form, "form")?,
                value: required(value, "value")?,
            }))
        }
        ChunkKind::Media => {
            members!(members { lane: object, form: value, mime: value, base64: value, url: value, file: value });
            let data = match (base64.flatten(), url.flatten(), file.flatten()) {
                (Some(text), None, None) => MediaData::Base64(text),
                (None, Some(text), None) => MediaData::Url(text),
                (None, None, Some(text)) => MediaData::Id(text),
                _ => return Err(A::Error::custom("media has exactly one of the fields `base64`, `url` and `file`")),
            };
            Body::Media(Box::new(Media {
                lane: in_lane(lane)?,
                form: required(form, "form")?,
                mime: mime.flatten(),
                data,
            }))
        }
        ChunkKind::Usage => Body::Usage(Box::new(Usage::read(members)?)),
        ChunkKind::Finish => {
            members!(members { choice: value, reason: value, stated: value });
            Body::Finish(Box::new(Finish {
                choice: choice.unwrap_or_default(),
                reason: required(reason, "reason")?,
                stated: stated.flatten(),
            }))
        }
        ChunkKind::End => {
            members!(members { outcome: object });
            let outcome: Outcome = required(outcome, "outcome")?;
            Body::End(End::new(outcome.into()))
        }
        ChunkKind::Error => Body::Error(Box::new(ErrorInfo::read(members)?)),
        ChunkKind::Discard => {
            members!(members { message: value });
            Body::Discard(Box::new(required(message, "message")?))
        }
        ChunkKind::StateSnapshot | ChunkKind::StateDelta | ChunkKind::MessagesSnapshot => {
            members!(members { value: value });
            let value: Box<Json> = Box::new(required(value, "value")?);
            match kind {
                ChunkKind::StateSnapshot => Body::StateSnapshot(value),
                ChunkKind::StateDelta => Body::StateDelta(value),
                _ => Body::MessagesSnapshot(value),
            }
        }
        ChunkKind::Custom => {
            members!(members { name: value, value: value });
            Body::Custom(Box::new(Custom { name: required(name, "name")?, value: required(value, "value")? }))
        }
        ChunkKind::Heartbeat => {
            members!(members {});
            Body::Heartbeat
        }
        ChunkKind::Raw => {
            members!(members { event: value, data: value });
            Body::Raw(Box::new(Raw { event: event.flatten(), data: required(data, "data")? }))
        }
        ChunkKind::Unknown => {
            members!(members {});
            Body::Unknown(Box::new(name.into()))
        }
    })
}
