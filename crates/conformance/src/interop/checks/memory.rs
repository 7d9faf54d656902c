//! Memory proposals: pending only, and never a write to the vault.

use std::io;

use serde_json::{Value, json};

use super::envelope::accepted_input;
use super::{Context, PROPOSAL_PREFIX};
use crate::interop::canonical;
use crate::interop::failure::Failure;
use crate::interop::lookup;
use crate::interop::report::Recorder;

pub(super) fn run(context: &Context<'_>, recorder: &mut Recorder<'_>) -> io::Result<()> {
    recorder.record("memory.proposal", check_proposal(context))?;
    recorder.record("memory.valid-proposal", check_valid_proposal(context))?;
    recorder.record("memory.direct-write", check_direct_write(context))
}

fn check_proposal(context: &Context<'_>) -> Result<(), Failure> {
    let case = lookup::at(&context.data.receipt_memory, "/memory_proposal")?;
    let proposal = json!({
        "operation": lookup::at(case, "/operation")?,
        "proposed_claims": lookup::at(case, "/proposed_claims")?,
        "provenance_handles": lookup::at(case, "/provenance_handles")?,
        "rationale": lookup::at(case, "/rationale")?,
    });
    let input = lookup::extended(&accepted_input(context)?, "", [("proposal", proposal)])?;
    let found = context.result("memory_proposal", input)?;

    lookup::same(expected_proposal(context)?, &found)?;
    canonical::verify_record(&found, PROPOSAL_PREFIX)?;
    lookup::same_at(&found, "/status", lookup::at(case, "/expected_status")?)?;
    let requirement = lookup::at(case, "/expected_approval_requirements")?;
    lookup::same_at(&found, "/approval_requirement", requirement)
}

fn check_valid_proposal(context: &Context<'_>) -> Result<(), Failure> {
    let input = json!({"proposal": expected_proposal(context)?});
    context.expect_result("validate_proposal", input, &json!({"valid": true}))
}

fn check_direct_write(context: &Context<'_>) -> Result<(), Failure> {
    let case = lookup::at(&context.data.receipt_memory, "/memory_proposal")?;
    let field = lookup::text(case, "/direct_write_field")?;
    let proposal = lookup::extended(expected_proposal(context)?, "", [(field, true.into())])?;
    let proposal = canonical::finalize(lookup::object(&proposal, "")?, PROPOSAL_PREFIX);
    let code = lookup::text(case, "/expected_direct_write_error")?;
    context.expect_refusal("validate_proposal", json!({"proposal": proposal}), code)
}

fn expected_proposal<'c>(context: &Context<'c>) -> Result<&'c Value, Failure> {
    lookup::at(&context.data.expectations, "/proposal")
}
