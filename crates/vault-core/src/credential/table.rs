//! Macro that creates a type's struct, parser and encoder from a table.

/// Creates a struct, its table and the conversion between the two from rows `name: need class kind -> type`.
macro_rules! credential_table {
    ($(#[$meta:meta])* $name:ident { $($(#[$doc:meta])* $field:ident: $need:ident $class:ident $kind:ident -> $ty:ty,)* }) => {
        $(#[$meta])*
        #[derive(Debug)]
        pub struct $name {
            $($(#[$doc])* pub $field: $crate::credential::table::credential_table!(@held $need $ty),)*
        }

        impl $name {
            /// The type's fields, in the order of the documentation.
            pub const FIELDS: &'static [$crate::credential::spec::FieldSpec] =
                &[$($crate::credential::table::credential_table!(@spec $field $need $class $kind)),*];

            /// Reads the fields in `source`. Returns `None` only if an error was reported.
            pub(super) fn read(source: &mut $crate::credential::reader::FieldReader) -> Option<Self> {
                $(let $field = source.read::<$ty>(
                    &$crate::credential::table::credential_table!(@spec $field $need $class $kind),
                );)*
                let entries: Vec<_> = [$(
                    $crate::credential::table::credential_table!(@entry $field $need $class $kind, $field.as_ref())
                ),*].into_iter().flatten().collect();
                source.refuse_exposed_secrets(&entries);
                Some(Self { $($field: $crate::credential::table::credential_table!(@take $need $field)),* })
            }

            /// Returns the fields that are set, in the order of the table.
            pub(super) fn entries(&self) -> Vec<$crate::credential::reader::Entry<'_>> {
                [$(
                    $crate::credential::table::credential_table!(
                        @entry $field $need $class $kind,
                        $crate::credential::table::credential_table!(@borrow $need self.$field)
                    )
                ),*].into_iter().flatten().collect()
            }
        }
    };
    (@held required $ty:ty) => { $ty };
    (@held optional $ty:ty) => { Option<$ty> };
    (@take required $field:ident) => { $field? };
    (@take optional $field:ident) => { $field };
    (@borrow required $value:expr) => { Some(&$value) };
    (@borrow optional $value:expr) => { $value.as_ref() };
    (@is required) => { true };
    (@is optional) => { false };
    (@spec $field:ident $need:ident $class:ident $kind:ident) => {
        $crate::credential::spec::FieldSpec {
            name: stringify!($field),
            class: $crate::credential::spec::FieldClass::$class,
            required: $crate::credential::table::credential_table!(@is $need),
            kind: $crate::credential::spec::ValueKind::$kind,
        }
    };
    (@entry $field:ident $need:ident $class:ident $kind:ident, $value:expr) => {
        $value.map(|value| $crate::credential::reader::Entry {
            spec: &$crate::credential::table::credential_table!(@spec $field $need $class $kind),
            value: value as &dyn $crate::credential::value::FieldValue,
        })
    };
}
pub(super) use credential_table;
