//! The published schema.

use std::sync::LazyLock;

use cedar_policy::Schema;

/// The schema that every policy is validated against, in Cedar's own notation.
pub const SCHEMA: &str = include_str!("../../../schemas/context-layer.cedarschema");

/// The same, parsed.
#[expect(
    clippy::expect_used,
    reason = "the text is compiled in, and nothing works without it"
)]
pub(crate) static PARSED: LazyLock<Schema> = LazyLock::new(|| {
    let (schema, _) = Schema::from_cedarschema_str(SCHEMA).expect("the schema is valid");
    schema
});
