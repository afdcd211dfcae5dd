/// An enum without data whose variants have a name each, which is also the JSON form.
macro_rules! names {
    ($(#[$meta:meta])* $type:ident { $($(#[$doc:meta])* $variant:ident = $name:literal,)* }) => {
        $(#[$meta])*
        #[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
        #[non_exhaustive]
        #[repr(u8)]
        pub enum $type {
            $($(#[$doc])* $variant,)*
        }

        impl $type {
            /// Every one, in a fixed order.
            pub const ALL: &[Self] = &[$(Self::$variant),*];

            /// The name: snake case, and the JSON form.
            pub const fn as_str(self) -> &'static str {
                match self { $(Self::$variant => $name,)* }
            }

            /// The one with this name.
            pub fn from_name(name: &str) -> Option<Self> {
                match name { $($name => Some(Self::$variant),)* _ => None }
            }
        }

        impl std::fmt::Display for $type {
            fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
                f.pad(self.as_str())
            }
        }

        impl serde::Serialize for $type {
            fn serialize<S: serde::Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
                serializer.serialize_str(self.as_str())
            }
        }

        impl<'de> serde::Deserialize<'de> for $type {
            fn deserialize<D: serde::Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
                let name = <crate::Text as serde::Deserialize>::deserialize(deserializer)?;
                Self::from_name(&name).ok_or_else(|| serde::de::Error::unknown_variant(&name, &[$($name),*]))
            }
        }
    };
}
pub(crate) use names;
