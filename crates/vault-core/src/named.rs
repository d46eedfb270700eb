//! Methods of enums whose names `strum` derives.

/// Adds the methods of an enum that derives `IntoStaticStr`, `EnumString` and `VariantArray`.
macro_rules! named {
    ($type:ident) => {
        impl $type {
            /// All variants, in the order of their declaration.
            pub const ALL: [Self; <Self as strum::VariantArray>::VARIANTS.len()] = {
                let variants = <Self as strum::VariantArray>::VARIANTS;
                match variants.first_chunk() {
                    Some(all) => *all,
                    None => [variants[0]; _],
                }
            };

            /// Returns its name.
            pub fn as_str(self) -> &'static str {
                self.into()
            }

            /// Returns the variant with exactly this name.
            pub fn parse(name: &str) -> Option<Self> {
                name.parse().ok()
            }
        }
    };
}
