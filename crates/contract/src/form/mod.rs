//! The JSON forms of this crate's types: how objects are written and read, member by member.
//!
//! Written by hand, because unknown members must survive a round trip as they were written, in their order: what serde offers for that
//! goes through values that change numbers.

mod chunk;
mod types;

use std::{borrow::Cow, fmt, marker::PhantomData, vec};

use serde::{
    Deserialize, Deserializer, Serialize, Serializer,
    de::{DeserializeOwned, DeserializeSeed, Error, IgnoredAny, MapAccess, Visitor},
    ser::SerializeMap,
};
use serde_json::value::RawValue;

use crate::{Extra, Json, Offset, Origin, Provenance, Text};

/// A type whose JSON form is an object.
pub(crate) trait Object: Sized {
    /// What a reader expects, with its article.
    const WHAT: &'static str;

    /// Writes the members in their documented order.
    fn write<M: SerializeMap>(&self, out: &mut Writer<'_, M>) -> Result<(), M::Error>;

    /// Reads the members in any order.
    fn read<'de, A: MapAccess<'de>>(members: &mut Members<'de, A>) -> Result<Self, A::Error>;
}

/// Implements `Serialize` and `Deserialize` for objects that have no place for unknown members: these are ignored.
macro_rules! objects {
    ($($object:ty),* $(,)?) => {$(
        impl serde::Serialize for $object {
            fn serialize<S: serde::Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
                crate::form::write(self, &[], serializer)
            }
        }

        impl<'de> serde::Deserialize<'de> for $object {
            fn deserialize<D: serde::Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
                Ok(crate::form::read(deserializer, crate::form::Unknown::Ignore)?.0)
            }
        }
    )*};
}
pub(crate) use objects;

/// Reads all members of an object into variables of their names, each `None` if it is not there.
///
/// `value` reads any type, `object` an [`Object`] whose unknown members are kept too.
macro_rules! members {
    ($members:ident { $($name:ident: $how:ident),* $(,)? }) => {
        $(let mut $name = None;)*
        while let Some(key) = $members.next()? {
            match &*key {
                $(stringify!($name) => $members.$how(&mut $name, stringify!($name))?,)*
                _ => $members.other(key)?,
            }
        }
    };
}
pub(crate) use members;

/// The value of a member that must be there.
pub(crate) fn required<T, E: Error>(value: Option<T>, name: &'static str) -> Result<T, E> {
    value.ok_or_else(|| E::missing_field(name))
}

/// What becomes of unknown members.
#[derive(Debug, Clone, Copy)]
pub(crate) enum Unknown {
    Keep,
    Ignore,
}

/// Writes an object with members that this version does not know.
pub(crate) fn write<T: Object, S: Serializer>(
    object: &T,
    unknown: &[(Text, Json)],
    serializer: S,
) -> Result<S::Ok, S::Error> {
    let mut out = Writer { map: serializer.serialize_map(None)?, unknown, known: Vec::new() };
    object.write(&mut out)?;
    out.end()
}

/// Reads an object with its unknown members.
pub(crate) fn read<'de, T: Object, D: Deserializer<'de>>(
    deserializer: D,
    unknown: Unknown,
) -> Result<(T, Extra), D::Error> {
    deserializer.deserialize_map(ObjectVisitor { unknown, object: PhantomData })
}

/// An object on its way out.
pub(crate) struct Writer<'a, M> {
    map: M,
    unknown: &'a [(Text, Json)],
    /// Names that an unknown member may not take. Only filled if there are unknown members.
    known: Vec<&'static str>,
}

impl<M: SerializeMap> Writer<'_, M> {
    pub(crate) fn value<T: Serialize + ?Sized>(&mut self, name: &'static str, value: &T) -> Result<(), M::Error> {
        self.claim(name);
        self.map.serialize_entry(name, value)
    }

    /// A member that is left out if it is unknown.
    pub(crate) fn optional<T: Serialize>(&mut self, name: &'static str, value: &Option<T>) -> Result<(), M::Error> {
        match value {
            Some(value) => self.value(name, value),
            None => {
                self.claim(name);
                Ok(())
            }
        }
    }

    /// A member that is left out if it has its default.
    pub(crate) fn unless_default<T>(&mut self, name: &'static str, value: &T) -> Result<(), M::Error>
    where
        T: Serialize + Default + PartialEq,
    {
        if *value == T::default() {
            self.claim(name);
            return Ok(());
        }
        self.value(name, value)
    }

    /// An object with the unknown members that were read with it.
    pub(crate) fn object<T: Object>(&mut self, name: &'static str, object: &T) -> Result<(), M::Error> {
        let unknown = self.unknown_of(name);
        self.value(name, &With { object, unknown: &unknown })
    }

    /// An object that is left out if it has its default and no unknown members.
    pub(crate) fn object_unless_default<T>(&mut self, name: &'static str, object: &T) -> Result<(), M::Error>
    where
        T: Object + Default + PartialEq,
    {
        let unknown = self.unknown_of(name);
        if *object == T::default() && unknown.is_empty() {
            self.claim(name);
            return Ok(());
        }
        self.value(name, &With { object, unknown: &unknown })
    }

    fn claim(&mut self, name: &'static str) {
        if !self.unknown.is_empty() {
            self.known.push(name);
        }
    }

    fn unknown_of(&self, name: &str) -> Vec<(Text, Json)> {
        let nested = self.unknown.iter().find(|(unknown, _)| unknown == name);
        nested.and_then(|(_, json)| json.parse::<Extra>().ok()).map(|extra| extra.0).unwrap_or_default()
    }

    fn end(mut self) -> Result<M::Ok, M::Error> {
        for (name, value) in self.unknown {
            if !self.known.contains(&&**name) {
                self.map.serialize_entry(&**name, value)?;
            }
        }
        self.map.end()
    }
}

struct With<'a, T> {
    object: &'a T,
    unknown: &'a [(Text, Json)],
}

impl<T: Object> Serialize for With<'_, T> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        write(self.object, self.unknown, serializer)
    }
}

struct ObjectVisitor<T> {
    unknown: Unknown,
    object: PhantomData<T>,
}

impl<'de, T: Object> Visitor<'de> for ObjectVisitor<T> {
    type Value = (T, Extra);

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(T::WHAT)
    }

    fn visit_map<A: MapAccess<'de>>(self, map: A) -> Result<Self::Value, A::Error> {
        let mut members =
            Members { map, early: None, tag: None, beside: None, policy: self.unknown, unknown: Vec::new() };
        let object = T::read(&mut members)?;
        Ok((object, Extra(members.unknown)))
    }
}

impl<'de, T: Object> DeserializeSeed<'de> for ObjectVisitor<T> {
    type Value = (T, Extra);

    fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> Result<Self::Value, D::Error> {
        deserializer.deserialize_map(self)
    }
}

/// The members of an object that is being read.
pub(crate) struct Members<'de, A> {
    map: A,
    early: Option<Box<Early<'de>>>,
    tag: Option<&'static str>,
    /// What any chunk may have. Not looked for in other objects.
    beside: Option<Beside>,
    policy: Unknown,
    unknown: Vec<(Text, Json)>,
}

/// Members that stood before the tag.
struct Early<'de> {
    rest: vec::IntoIter<(Cow<'de, str>, Box<RawValue>)>,
    /// The value of the one whose name was taken last.
    current: Option<Box<RawValue>>,
}

#[derive(Default)]
struct Beside {
    at: Option<Offset>,
    origin: Option<Origin>,
    provenance: Option<Provenance>,
}

impl<'de, A: MapAccess<'de>> Members<'de, A> {
    /// Finds the member that says what the others mean. It is quickest if it is the first one.
    pub(crate) fn tag(&mut self, name: &'static str) -> Result<Cow<'de, str>, A::Error> {
        self.tag = Some(name);
        let mut early = Vec::new();
        while let Some(Key(key)) = self.map.next_key()? {
            if key == name {
                if !early.is_empty() {
                    self.early = Some(Box::new(Early { rest: early.into_iter(), current: None }));
                }
                let Key(tag) = self.map.next_value().map_err(|error| in_member(name, &error))?;
                return Ok(tag);
            }
            let value = self.map.next_value().map_err(|error| in_member(&key, &error))?;
            early.push((key, value));
        }
        Err(A::Error::missing_field(name))
    }

    /// The name of the next member. Its value has to be taken before the next call.
    pub(crate) fn next(&mut self) -> Result<Option<Cow<'de, str>>, A::Error> {
        if let Some(early) = &mut self.early {
            if let Some((key, value)) = early.rest.next() {
                early.current = Some(value);
                return Ok(Some(key));
            }
            self.early = None;
        }
        Ok(self.map.next_key()?.map(|Key(key)| key))
    }

    fn early_value(&mut self) -> Option<Box<RawValue>> {
        self.early.as_mut()?.current.take()
    }

    pub(crate) fn value<T: DeserializeOwned>(
        &mut self,
        slot: &mut Option<T>,
        name: &'static str,
    ) -> Result<(), A::Error> {
        if slot.is_some() {
            return Err(A::Error::duplicate_field(name));
        }
        let value = match self.early_value() {
            Some(early) => serde_json::from_str(early.get()).map_err(|error| in_early_member(name, &error)),
            None => self.map.next_value().map_err(|error| in_member(name, &error)),
        };
        *slot = Some(value?);
        Ok(())
    }

    pub(crate) fn object<T: Object>(&mut self, slot: &mut Option<T>, name: &'static str) -> Result<(), A::Error> {
        if slot.is_some() {
            return Err(A::Error::duplicate_field(name));
        }
        let seed = ObjectVisitor { unknown: self.policy, object: PhantomData };
        let read = match self.early_value() {
            Some(early) => seed
                .deserialize(&mut serde_json::Deserializer::from_str(early.get()))
                .map_err(|error| in_early_member(name, &error)),
            None => self.map.next_value_seed(seed).map_err(|error| in_member(name, &error)),
        };
        let (object, unknown) = read?;
        *slot = Some(object);
        if !unknown.0.is_empty() {
            let nested = Json::new(&unknown).map_err(A::Error::custom)?;
            self.unknown.push((name.into(), nested));
        }
        Ok(())
    }

    /// From here on the members that any chunk may have are looked for too.
    pub(crate) fn expect_beside(&mut self) {
        self.beside = Some(Beside::default());
    }

    pub(crate) fn take_beside(&mut self) -> (Offset, Origin, Provenance) {
        let Beside { at, origin, provenance } = self.beside.take().unwrap_or_default();
        (at.unwrap_or_default(), origin.unwrap_or_default(), provenance.unwrap_or_default())
    }

    /// Takes the value of a member that the object has no place for.
    pub(crate) fn other(&mut self, name: Cow<'de, str>) -> Result<(), A::Error> {
        if self.tag.is_some_and(|tag| tag == name) {
            return Err(A::Error::custom(format_args!("duplicate field `{name}`")));
        }
        if let Some(mut beside) = self.beside.take() {
            let taken = match &*name {
                "at" => Some(self.value(&mut beside.at, "at")),
                "origin" => Some(self.object(&mut beside.origin, "origin")),
                "amended_by" => Some(self.value(&mut beside.provenance, "amended_by")),
                _ => None,
            };
            self.beside = Some(beside);
            if let Some(taken) = taken {
                return taken;
            }
        }
        match (self.policy, self.early_value()) {
            (Unknown::Ignore, Some(_)) => {}
            (Unknown::Ignore, None) => {
                self.map.next_value::<IgnoredAny>().map_err(|error| in_member(&name, &error))?;
            }
            (Unknown::Keep, Some(early)) => self.unknown.push((name.into(), early.into())),
            (Unknown::Keep, None) => {
                let value = self.map.next_value().map_err(|error| in_member(&name, &error))?;
                self.unknown.push((name.into(), value));
            }
        }
        Ok(())
    }
}

fn in_member<E: Error>(name: &str, error: &E) -> E {
    E::custom(format_args!("field `{name}`: {error}"))
}

/// The position in the error counts from the beginning of the member, so it is left out.
fn in_early_member<E: Error>(name: &str, error: &serde_json::Error) -> E {
    let text = error.to_string();
    let what = text.rsplit_once(" at line ").map_or(&*text, |(what, _)| what);
    E::custom(format_args!("field `{name}`: {what}"))
}

/// A name, borrowed where the source allows it.
struct Key<'de>(Cow<'de, str>);

impl<'de> Deserialize<'de> for Key<'de> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct KeyVisitor;
        impl<'de> Visitor<'de> for KeyVisitor {
            type Value = Key<'de>;
            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("a string")
            }
            fn visit_borrowed_str<E>(self, name: &'de str) -> Result<Key<'de>, E> {
                Ok(Key(Cow::Borrowed(name)))
            }
            fn visit_str<E>(self, name: &str) -> Result<Key<'de>, E> {
                Ok(Key(Cow::Owned(name.to_owned())))
            }
        }
        deserializer.deserialize_identifier(KeyVisitor)
    }
}

impl Serialize for Extra {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_map(self.0.iter().map(|(name, value)| (name, value)))
    }
}

impl<'de> Deserialize<'de> for Extra {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct AllUnknown;
        impl Object for AllUnknown {
            const WHAT: &'static str = "an object";
            fn write<M: SerializeMap>(&self, _: &mut Writer<'_, M>) -> Result<(), M::Error> {
                Ok(())
            }
            fn read<'de, A: MapAccess<'de>>(members: &mut Members<'de, A>) -> Result<Self, A::Error> {
                members!(members {});
                Ok(Self)
            }
        }
        Ok(read::<AllUnknown, _>(deserializer, Unknown::Keep)?.1)
    }
}
