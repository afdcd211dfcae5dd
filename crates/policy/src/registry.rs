use std::{collections::BTreeMap, fmt, path::Path, sync::Arc};

use schemars::{JsonSchema, Schema, SchemaGenerator, generate::SchemaSettings};
use serde::{Deserialize, de::DeserializeOwned};
use serde_json::{Map, Value, json};
use sha2::{Digest, Sha256};
use streamkeeper_contract::{CallClass, Id, Text};
use streamkeeper_stream::{Observers, OnFailure, Registration};

use crate::{
    MAX_OBSERVERS, MAX_POLICY_BYTES, Policy, PolicyError, Registered, bundled,
    error::{OptionError, Source},
    tree::Node,
};

/// The kinds of observers that policies may name. The bundled ones, and those of your own.
///
/// A kind is a name, a type for its options, and a closure that makes a registration of them. The id, the call class and what a failure
/// means are the policy's to say, and are set by the registry.
///
/// ```
/// use schemars::JsonSchema;
/// use serde::Deserialize;
/// use streamkeeper_contract::{Chunk, Verdict, id};
/// use streamkeeper_policy::{OptionError, PolicyRegistry};
/// use streamkeeper_stream::{ObserverContext, Registration, StreamObserver, testing::Script};
///
/// /// Stops an answer that is too long.
/// #[derive(Clone, Deserialize, JsonSchema)]
/// #[serde(deny_unknown_fields)]
/// struct MaxBytes {
///     bytes: u64,
/// }
///
/// impl StreamObserver for MaxBytes {
///     fn on_chunk(&mut self, chunk: &Chunk, ctx: &mut ObserverContext<'_>) -> Verdict {
///         match chunk.is_delta() && ctx.delivered_len() + ctx.pending().len() as u64 > self.bytes {
///             true => Verdict::stop("too_long", "the answer is over its limit"),
///             false => Verdict::Continue,
///         }
///     }
/// }
///
/// let registry = PolicyRegistry::bundled().with("max-bytes", |options: MaxBytes| {
///     if options.bytes == 0 {
///         return Err(OptionError::at("bytes", "it has to be at least 1"));
///     }
///     Ok(Registration::guard(id!("max-bytes"), options))
/// });
/// let policy = registry.read_toml("version = 1\n[[observers]]\nkind = \"max-bytes\"\nbytes = 5\n")?;
/// let ran = Script::new().text("Hello").text(", world").finish().run(policy.observers());
/// assert_eq!(ran.answer(), "Hello");
///
/// let error = registry.read_toml("version = 1\n[[observers]]\nkind = \"max-bytes\"\nbytse = 5\n").unwrap_err();
/// assert!(error.to_string().starts_with("policy:4:1: unknown key `bytse`"));
/// assert!(error.to_string().ends_with("did you mean `bytes`?"));
/// # Ok::<_, streamkeeper_policy::PolicyError>(())
/// ```
#[derive(Clone)]
pub struct PolicyRegistry {
    kinds: BTreeMap<String, Kind>,
}

#[derive(Clone)]
struct Kind {
    make: Arc<Make>,
    schema: fn(&mut SchemaGenerator) -> Schema,
}

type Make = dyn Fn(Source<'_>, &Node, Value, &str) -> Result<Registration, PolicyError> + Send + Sync;

/// The keys that every observer of a policy has, beside the options of its kind.
#[derive(Debug, Deserialize, JsonSchema)]
struct Common {
    /// The kind of observer.
    kind: String,
    /// The id it is registered with: 1 to 64 of `a-z`, `0-9`, `.`, `_`, `-`. Default: that of its kind. Two of a kind need two.
    #[serde(default)]
    id: Option<String>,
    /// The call class it is made for: `synthesize`, `reasoning`, `utility`, `converse`, or one of your own. Default: `*`, all.
    #[serde(default)]
    when: Option<String>,
    /// What its failure means. Default: `fail` for guards, `pass_through` for all others. A watcher never disturbs the stream.
    #[serde(default)]
    on_failure: Option<Failure>,
}

const COMMON: [&str; 4] = ["kind", "id", "when", "on_failure"];

/// What the failure of an observer means.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
enum Failure {
    /// The invocation fails.
    Fail,
    /// The stream goes on without the observer.
    PassThrough,
    /// The text that it would have seen from there on is replaced by this one.
    Placeholder(String),
}

/// The whole file.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct File {
    version: u64,
    #[serde(default)]
    id: Option<String>,
    #[serde(default)]
    observers: Vec<Map<String, Value>>,
}

impl Default for PolicyRegistry {
    fn default() -> Self {
        Self::bundled()
    }
}

impl PolicyRegistry {
    /// The version of the format that is read here.
    pub const VERSION: u64 = 1;

    /// No kinds.
    pub fn empty() -> Self {
        Self { kinds: BTreeMap::new() }
    }

    /// The kinds of all bundled observers, each under the id that it has by default: `halt-on-pattern`, `metrics` and so on.
    pub fn bundled() -> Self {
        bundled::add(Self::empty())
    }

    /// Adds a kind, or replaces the one of this name. The options should refuse unknown keys: `#[serde(deny_unknown_fields)]`.
    #[must_use]
    pub fn with<T: DeserializeOwned + JsonSchema>(
        mut self,
        kind: impl Into<String>,
        make: impl Fn(T) -> Result<Registration, OptionError> + Send + Sync + 'static,
    ) -> Self {
        let make = move |source: Source<'_>, node: &Node, options: Value, kind: &str| {
            let options = source.read_beside(node, options, &COMMON)?;
            make(options).map_err(|error| source.option(node, kind, &error))
        };
        self.kinds.insert(kind.into(), Kind { make: Arc::new(make), schema: SchemaGenerator::subschema_for::<T> });
        self
    }

    /// The names of the kinds, in order.
    pub fn kinds(&self) -> impl Iterator<Item = &str> {
        self.kinds.keys().map(String::as_str)
    }

    /// Reads a file: JSON if its name ends in `.json`, else TOML.
    ///
    /// # Errors
    /// If it cannot be read, or is no policy.
    pub fn load(&self, path: impl AsRef<Path>) -> Result<Policy, PolicyError> {
        use std::io::Read as _;

        let path = path.as_ref();
        let io = |source| PolicyError::Io { path: path.to_owned(), source: Arc::new(source) };
        let mut text = String::new();
        let file = std::fs::File::open(path).map_err(io)?;
        file.take(MAX_POLICY_BYTES as u64 + 1).read_to_string(&mut text).map_err(io)?;
        let source = Source { file: &path.display().to_string(), text: &text };
        let is_json = path.extension().is_some_and(|extension| extension.eq_ignore_ascii_case("json"));
        self.read(source, if is_json { Node::from_json } else { Node::from_toml })
    }

    /// Reads a text in TOML.
    ///
    /// # Errors
    /// If it is no policy.
    pub fn read_toml(&self, text: &str) -> Result<Policy, PolicyError> {
        self.read(Source { file: "policy", text }, Node::from_toml)
    }

    /// Reads a text in JSON.
    ///
    /// # Errors
    /// If it is no policy.
    pub fn read_json(&self, text: &str) -> Result<Policy, PolicyError> {
        self.read(Source { file: "policy", text }, Node::from_json)
    }

    fn read(
        &self,
        source: Source<'_>,
        parse: fn(&str) -> Result<Node, crate::tree::Malformed>,
    ) -> Result<Policy, PolicyError> {
        if source.text.len() > MAX_POLICY_BYTES {
            return Err(PolicyError::TooLarge { file: source.file.to_owned() });
        }
        let root = parse(source.text).map_err(|malformed| source.malformed(malformed))?;
        if !root.is_table() {
            return Err(source.mistake(root.span.start, "a policy is an object"));
        }
        let value = root.value();
        let hash = hash(&value);
        let file: File = source.read(&root, value)?;
        let at = |key: &str| root.get(key).map_or(0, |node| node.span.start);
        if file.version != Self::VERSION {
            let message =
                format!("version {} of policies is not known here; this is version {}", file.version, Self::VERSION);
            return Err(source.mistake(at("version"), message));
        }
        let id = file.id.map(|id| Id::new(&id).map_err(|error| source.mistake(at("id"), error.to_string())));
        let id = id.transpose()?;
        if file.observers.len() > MAX_OBSERVERS {
            return Err(source.mistake(at("observers"), format!("a policy may have {MAX_OBSERVERS} observers")));
        }
        let mut observers = Observers::new();
        let mut registered = Vec::with_capacity(file.observers.len());
        let nodes = root.get("observers").map_or(&[][..], Node::list);
        for (node, entry) in nodes.iter().zip(file.observers) {
            let (kind, registration) = self.observer(source, node, entry)?;
            registered.push(Registered::new(kind, &registration));
            observers.register(registration).map_err(|error| {
                let at = node.get("id").map_or(node.span.start, |id| id.span.start);
                source.mistake(at, format!("{error}; give it an `id` of its own"))
            })?;
        }
        Ok(Policy { observers: observers.policy(id.clone(), hash.clone()), id, hash, registered })
    }

    fn observer(
        &self,
        source: Source<'_>,
        node: &Node,
        mut entry: Map<String, Value>,
    ) -> Result<(String, Registration), PolicyError> {
        let common: Map<_, _> = COMMON.iter().filter_map(|key| entry.remove_entry(*key)).collect();
        let Common { kind, id, when, on_failure } = source.read(node, common.into())?;
        let at = |key: &str| node.get(key).map_or(node.span.start, |node| node.span.start);
        let Some(made_by) = self.kinds.get(&kind) else {
            return Err(source.unknown(
                at("kind"),
                format!("there is no kind of observer `{kind}`"),
                &kind,
                self.kinds(),
            ));
        };
        let mut registration = (made_by.make)(source, node, entry.into(), &kind)?;
        if let Some(id) = id {
            registration =
                registration.with_id(Id::new(&id).map_err(|error| source.mistake(at("id"), error.to_string()))?);
        }
        if let Some(when) = when.filter(|when| when != "*") {
            let class = when.parse::<CallClass>().map_err(|error| source.mistake(at("when"), error.to_string()))?;
            registration = registration.when(class);
        }
        if let Some(on_failure) = on_failure {
            registration = registration.on_failure(match on_failure {
                Failure::Fail => OnFailure::Fail,
                Failure::PassThrough => OnFailure::PassThrough,
                Failure::Placeholder(text) => OnFailure::Placeholder(text.into()),
            });
        }
        Ok((kind, registration))
    }

    /// The JSON schema (draft 2020-12) of policies with these kinds, for editors and checks. That of the bundled ones is published as
    /// `docs/policy.schema.json`.
    pub fn schema(&self) -> Value {
        let mut settings = SchemaSettings::draft2020_12();
        settings.meta_schema = None;
        let mut generator = settings.into_generator();
        let common = generator.subschema_for::<Common>();
        let common = inlined(common.as_value(), generator.definitions());
        let kinds: Vec<_> =
            self.kinds.iter().map(|(name, kind)| self.kind_schema(name, kind, &common, &mut generator)).collect();
        // Those that were inlined are used no more.
        let used = Value::from(kinds.clone()).to_string();
        let mut definitions = generator.take_definitions(true);
        definitions.retain(|name, _| used.contains(&format!("/{name}\"")));
        let mut schema = json!({
            "$schema": "https://json-schema.org/draft/2020-12/schema",
            "title": "Streamkeeper policy",
            "description": "A stack of stream observers. They run in the order of the list.",
            "type": "object",
            "required": ["version"],
            "additionalProperties": false,
            "properties": {
                "version": {"description": "The version of this format.", "const": Self::VERSION},
                "id": {"description": "The policy's id, for recordings.", "type": "string", "pattern": ID_PATTERN},
                "observers": {
                    "description": "The observers, in the order in which they run.",
                    "type": "array",
                    "maxItems": MAX_OBSERVERS,
                    "items": {"oneOf": kinds},
                },
            },
        });
        if !definitions.is_empty() {
            schema["$defs"] = definitions.into();
        }
        schema
    }

    /// The options of a kind and what all kinds have, as one object.
    fn kind_schema(&self, name: &str, kind: &Kind, common: &Value, generator: &mut SchemaGenerator) -> Value {
        let options = (kind.schema)(generator);
        let mut schema = inlined(options.as_value(), generator.definitions());
        let Some(object) = schema.as_object_mut() else { return json!({}) };
        object.remove("$schema");
        object.insert("title".to_owned(), name.into());
        let properties = object.entry("properties").or_insert_with(|| json!({}));
        for (key, value) in common["properties"].as_object().into_iter().flatten() {
            properties[key] = value.clone();
        }
        properties["kind"] = json!({"description": common["properties"]["kind"]["description"], "const": name});
        properties["id"]["pattern"] = ID_PATTERN.into();
        let required = object.entry("required").or_insert_with(|| json!([]));
        if let Some(required) = required.as_array_mut() {
            required.insert(0, "kind".into());
        }
        schema
    }
}

const ID_PATTERN: &str = "^[a-z0-9]([a-z0-9._-]{0,62}[a-z0-9])?$";

/// A reference to a definition, replaced by it: what is extended cannot be a reference.
fn inlined(schema: &Value, definitions: &Map<String, Value>) -> Value {
    let name = schema.get("$ref").and_then(Value::as_str).and_then(|path| path.rsplit('/').next());
    name.and_then(|name| definitions.get(name)).unwrap_or(schema).clone()
}

/// SHA-256 of what a policy says: comments, white space, the order of keys and the format make no difference.
fn hash(value: &Value) -> Text {
    let digest = Sha256::digest(value.to_string());
    let hex: String = digest.iter().map(|byte| format!("{byte:02x}")).collect();
    format!("sha256:{hex}").into()
}

impl fmt::Debug for PolicyRegistry {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("PolicyRegistry").field(&self.kinds().collect::<Vec<_>>()).finish()
    }
}
