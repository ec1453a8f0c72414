//! Counts by the names of their fields, in the form that `serde` takes: feature `serde`.

/// Implements `Serialize` for a struct with these fields, which must be all of them: a missing one is a compile error.
macro_rules! serialize_fields {
    ($(#[$docs:meta])* $type:ident { $($field:ident),* $(,)? }) => {
        $(#[$docs])*
        impl ::serde::Serialize for $type {
            fn serialize<Z: ::serde::Serializer>(&self, serializer: Z) -> Result<Z::Ok, Z::Error> {
                use ::serde::ser::SerializeStruct;

                let $type { $($field),* } = self;
                let len = [$(stringify!($field)),*].len();
                let mut fields = serializer.serialize_struct(stringify!($type), len)?;
                $(fields.serialize_field(stringify!($field), $field)?;)*
                fields.end()
            }
        }
    };
}

pub(crate) use serialize_fields;
