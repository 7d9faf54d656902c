//! The checks, each with an id of its own, grouped by what they are about.

mod canonicalization;
mod envelope;
mod exchange;
mod memory;
mod policy;
mod receipts;
mod schema;

use std::io;

use serde_json::{Value, json};

use super::data::Data;
use super::failure::Failure;
use super::lookup;
use super::process::{ADAPTER_VERSION, Adapter, Answer};
use super::report::Recorder;

const DECISION_PREFIX: &str = "urn:cl:decision:";
const BUNDLE_PREFIX: &str = "urn:cl:bundle:";
const RECEIPT_PREFIX: &str = "urn:cl:receipt:";
const PROPOSAL_PREFIX: &str = "urn:cl:proposal:";

pub(crate) fn run_all(context: &Context<'_>, recorder: &mut Recorder<'_>) -> io::Result<()> {
    schema::run(context, recorder)?;
    canonicalization::run(context, recorder)?;
    policy::run(context, recorder)?;
    exchange::run(context, recorder)?;
    envelope::run(context, recorder)?;
    receipts::run(context, recorder)?;
    memory::run(context, recorder)?;
    recorder.record(
        "protocol.unknown-operation",
        context.expect_refusal("no_such_operation", json!({}), "UNSUPPORTED_OPERATION"),
    )
}

/// What every check works with.
pub(crate) struct Context<'a> {
    data: &'a Data,
    adapter: &'a Adapter,
}

impl<'a> Context<'a> {
    pub(crate) fn new(data: &'a Data, adapter: &'a Adapter) -> Self {
        Self { data, adapter }
    }

    fn result(&self, operation: &str, input: Value) -> Result<Value, Failure> {
        match self.call(operation, input)? {
            Answer::Result(result) => Ok(result),
            Answer::Refusal(found) => Err(Failure::Refused { found }),
        }
    }

    fn expect_result(
        &self,
        operation: &str,
        input: Value,
        expected: &Value,
    ) -> Result<(), Failure> {
        lookup::same(expected, &self.result(operation, input)?)
    }

    fn expect_refusal(&self, operation: &str, input: Value, expected: &str) -> Result<(), Failure> {
        match self.call(operation, input)? {
            Answer::Refusal(found) if found == expected => Ok(()),
            Answer::Refusal(found) => Err(Failure::OtherRefusal {
                expected: expected.into(),
                found,
            }),
            Answer::Result(_) => Err(Failure::NotRefused {
                expected: expected.into(),
            }),
        }
    }

    fn call(&self, operation: &str, input: Value) -> Result<Answer, Failure> {
        let request = lookup::extended(
            &input,
            "",
            [
                ("adapter_version", ADAPTER_VERSION.into()),
                ("operation", operation.into()),
            ],
        )?;
        Ok(self.adapter.call(&request)?)
    }
}
