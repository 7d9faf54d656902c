//! `Debug` for types that hold private content: the type's name and nothing of its contents.

macro_rules! opaque_debug {
    ($($name:ident $(<$lifetime:lifetime>)?),* $(,)?) => { $(
        impl std::fmt::Debug for $name $(<$lifetime>)? {
            fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
                formatter.debug_struct(stringify!($name)).finish_non_exhaustive()
            }
        }
    )* };
}

pub(crate) use opaque_debug;
