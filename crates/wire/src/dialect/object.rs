//! Objects that are read in place. A derived reader keeps a value on its stack for every field and moves the whole a few times, which for
//! a small event costs more than reading its text.

use std::fmt;

use serde::{
    Deserialize, Deserializer,
    de::{DeserializeSeed, SeqAccess, Visitor},
};
use serde_json::value::RawValue;

use super::read::{Flag, List, Num, Str, Word};

/// A value that can be read into one that is there.
pub(super) trait Fill<'de>: Default {
    /// Reads it. What the text leaves out stays as it is.
    fn fill<D: Deserializer<'de>>(&mut self, deserializer: D) -> Result<(), D::Error>;
}

/// Fills a value as part of another one.
pub(super) struct Slot<'a, T>(pub(super) &'a mut T);

impl<'de, T: Fill<'de>> DeserializeSeed<'de> for Slot<'_, T> {
    type Value = ();
    fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> Result<(), D::Error> {
        self.0.fill(deserializer)
    }
}

/// Reads the text of an event.
pub(super) fn read<'de, T: Fill<'de>>(text: &'de str) -> Option<T> {
    let mut value = T::default();
    let mut deserializer = serde_json::Deserializer::from_str(text);
    value.fill(&mut deserializer).ok()?;
    deserializer.end().ok()?;
    Some(value)
}

macro_rules! fill_whole {
    ($($type:ty),*) => {$(
        impl<'de: 'a, 'a> Fill<'de> for $type {
            #[inline]
            fn fill<D: Deserializer<'de>>(&mut self, deserializer: D) -> Result<(), D::Error> {
                *self = Deserialize::deserialize(deserializer)?;
                Ok(())
            }
        }
    )*};
}

fill_whole!(Str<'a>, Word<'a>, List<'a>, Option<&'a RawValue>);

impl<'de> Fill<'de> for Num {
    fn fill<D: Deserializer<'de>>(&mut self, deserializer: D) -> Result<(), D::Error> {
        *self = Deserialize::deserialize(deserializer)?;
        Ok(())
    }
}

impl<'de> Fill<'de> for Flag {
    fn fill<D: Deserializer<'de>>(&mut self, deserializer: D) -> Result<(), D::Error> {
        *self = Deserialize::deserialize(deserializer)?;
        Ok(())
    }
}

impl<'de, T: Fill<'de>> Fill<'de> for Option<T> {
    fn fill<D: Deserializer<'de>>(&mut self, deserializer: D) -> Result<(), D::Error> {
        deserializer.deserialize_option(Slot(self))
    }
}

impl<'de, T: Fill<'de>> Visitor<'de> for Slot<'_, Option<T>> {
    type Value = ();
    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a value or null")
    }
    fn visit_none<E>(self) -> Result<(), E> {
        *self.0 = None;
        Ok(())
    }
    fn visit_some<D: Deserializer<'de>>(self, deserializer: D) -> Result<(), D::Error> {
        self.0.insert(T::default()).fill(deserializer)
    }
}

/// A list that nearly always has one element, which needs no memory of its own.
#[derive(Debug, Default)]
pub(super) struct Few<T> {
    first: Option<T>,
    rest: Vec<T>,
}

impl<T> Few<T> {
    pub(super) fn iter(&self) -> impl Iterator<Item = &T> {
        self.first.iter().chain(&self.rest)
    }
}

impl<'de, T: Fill<'de>> Fill<'de> for Few<T> {
    fn fill<D: Deserializer<'de>>(&mut self, deserializer: D) -> Result<(), D::Error> {
        deserializer.deserialize_seq(Slot(self))
    }
}

impl<'de, T: Fill<'de>> Visitor<'de> for Slot<'_, Few<T>> {
    type Value = ();
    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a list")
    }
    fn visit_seq<A: SeqAccess<'de>>(self, mut list: A) -> Result<(), A::Error> {
        let Few { first, rest } = self.0;
        rest.clear();
        if list.next_element_seed(Slot(first.insert(T::default())))?.is_none() {
            *first = None;
            return Ok(());
        }
        while list.next_element_seed(Next(rest))?.is_some() {}
        Ok(())
    }
}

/// Fills a new last element.
struct Next<'a, T>(&'a mut Vec<T>);

impl<'de, T: Fill<'de>> DeserializeSeed<'de> for Next<'_, T> {
    type Value = ();
    fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> Result<(), D::Error> {
        let mut value = T::default();
        value.fill(deserializer)?;
        self.0.push(value);
        Ok(())
    }
}

/// Objects with the keys of their fields. A key that an object has twice counts the last time; other keys are skipped. An empty list is an
/// object without keys.
macro_rules! objects {
    ($(
        $(#[$meta:meta])*
        $vis:vis struct $name:ident<'a> { $($(#[$doc:meta])* $key:literal => $field_vis:vis $field:ident: $type:ty,)* }
    )*) => {$(
        $(#[$meta])*
        #[derive(Debug, Default)]
        $vis struct $name<'a> { $($(#[$doc])* $field_vis $field: $type,)* }

        impl<'de: 'a, 'a> $crate::dialect::object::Fill<'de> for $name<'a> {
            fn fill<D: serde::Deserializer<'de>>(&mut self, deserializer: D) -> Result<(), D::Error> {
                deserializer.deserialize_any($crate::dialect::object::Slot(self))
            }
        }

        impl<'de: 'a, 'a> serde::de::Visitor<'de> for $crate::dialect::object::Slot<'_, $name<'a>> {
            type Value = ();
            fn expecting(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
                f.write_str("an object")
            }
            fn visit_seq<A: serde::de::SeqAccess<'de>>(self, mut list: A) -> Result<(), A::Error> {
                match list.next_element::<serde::de::IgnoredAny>()? {
                    None => Ok(()),
                    Some(_) => Err(serde::de::Error::invalid_type(serde::de::Unexpected::Seq, &self)),
                }
            }
            fn visit_map<A: serde::de::MapAccess<'de>>(self, mut map: A) -> Result<(), A::Error> {
                #[allow(non_camel_case_types, reason = "a key is called like its field")]
                enum Key { $($field,)* Other }
                struct Keys;
                impl<'de> serde::de::DeserializeSeed<'de> for Keys {
                    type Value = Key;
                    fn deserialize<D: serde::Deserializer<'de>>(self, deserializer: D) -> Result<Key, D::Error> {
                        deserializer.deserialize_identifier(self)
                    }
                }
                impl serde::de::Visitor<'_> for Keys {
                    type Value = Key;
                    fn expecting(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
                        f.write_str("a key")
                    }
                    fn visit_str<E>(self, key: &str) -> Result<Key, E> {
                        Ok(match key {
                            $($key => Key::$field,)*
                            _ => Key::Other,
                        })
                    }
                }
                while let Some(key) = map.next_key_seed(Keys)? {
                    match key {
                        $(Key::$field => map.next_value_seed($crate::dialect::object::Slot(&mut self.0.$field))?,)*
                        Key::Other => drop(map.next_value::<serde::de::IgnoredAny>()?),
                    }
                }
                Ok(())
            }
        }

        impl<'de: 'a, 'a> serde::Deserialize<'de> for $name<'a> {
            fn deserialize<D: serde::Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
                let mut value = Self::default();
                $crate::dialect::object::Fill::fill(&mut value, deserializer)?;
                Ok(value)
            }
        }
    )*};
}
pub(super) use objects;
