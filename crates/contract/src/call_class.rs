use crate::Id;

/// What a model call is for. Registrations are narrowed by it.
///
/// ```
/// use streamkeeper_contract::{CallClass, id};
///
/// assert_eq!(CallClass::default(), CallClass::Synthesize);
/// assert_eq!("utility".parse::<CallClass>(), Ok(CallClass::Utility));
/// assert_eq!("rerank".parse(), Ok(CallClass::Custom(id!("rerank"))));
/// assert_eq!(CallClass::Custom(id!("utility")), CallClass::Utility);
/// ```
///
/// Two classes of one name are equal. The JSON form is the name.
#[derive(Debug, Clone, Default)]
#[non_exhaustive]
pub enum CallClass {
    /// Writes the final answer. The default.
    #[default]
    Synthesize,
    /// Thinks; its text is not shown as the answer.
    Reasoning,
    /// Serves the program: a title, a ranking, a classification.
    Utility,
    /// A turn of a conversation that may call tools.
    Converse,
    /// A class of the user's own.
    Custom(Id),
}

impl CallClass {
    /// The name: `synthesize`, `reasoning`, `utility`, `converse` or the user's.
    pub fn as_str(&self) -> &str {
        match self {
            Self::Synthesize => "synthesize",
            Self::Reasoning => "reasoning",
            Self::Utility => "utility",
            Self::Converse => "converse",
            Self::Custom(id) => id.as_str(),
        }
    }
}

impl PartialEq for CallClass {
    fn eq(&self, other: &Self) -> bool {
        self.as_str() == other.as_str()
    }
}

impl Eq for CallClass {}

impl std::hash::Hash for CallClass {
    fn hash<H: std::hash::Hasher>(&self, state: &mut H) {
        self.as_str().hash(state);
    }
}

impl std::fmt::Display for CallClass {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.pad(self.as_str())
    }
}

impl std::str::FromStr for CallClass {
    type Err = crate::InvalidId;

    fn from_str(name: &str) -> Result<Self, crate::InvalidId> {
        Ok(match name {
            "synthesize" => Self::Synthesize,
            "reasoning" => Self::Reasoning,
            "utility" => Self::Utility,
            "converse" => Self::Converse,
            name => Self::Custom(Id::new(name)?),
        })
    }
}

impl serde::Serialize for CallClass {
    fn serialize<S: serde::Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_str(self.as_str())
    }
}

impl<'de> serde::Deserialize<'de> for CallClass {
    fn deserialize<D: serde::Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        crate::Text::deserialize(deserializer)?.parse().map_err(serde::de::Error::custom)
    }
}
