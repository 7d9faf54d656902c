//! A vault that keeps the contract of `MemoryService` in memory.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, MutexGuard};

use cl_model::canonical;
use cl_model::digest::Digest;
use cl_model::json::{self, Limits};
use cl_model::memory;
use cl_wire::vault::v1 as wire;
use cl_wire::vault::v1::memory_service_server::MemoryService;
use prost_types::Timestamp;
use serde_json::Value;
use tonic::{Code, Request, Response, Status};

use crate::documents::{ALIAS, PRINCIPAL, TENANT};
use crate::faults::{Faults, check_caller, check_operation_id, refusal};

/// Clones share one vault.
#[derive(Clone, Default)]
pub(crate) struct FakeVault {
    pub(crate) faults: Faults,
    state: Arc<Mutex<State>>,
}

#[derive(Default)]
struct State {
    /// Proposals as they are stored, by their ids.
    proposals: BTreeMap<String, Value>,
    operations: BTreeMap<String, Digest>,
    submissions: Vec<wire::SubmitProposalRequest>,
    is_expired: bool,
    is_erased: bool,
}

impl FakeVault {
    pub(crate) fn expire_exchange(&self, is_expired: bool) {
        self.state().is_expired = is_expired;
    }

    pub(crate) fn erase_subject(&self) {
        self.state().is_erased = true;
    }

    /// Moves a proposal on, as its owner does.
    pub(crate) fn set_status(&self, id: &str, status: &'static str) {
        self.state().proposals.get_mut(id).unwrap()["status"] = status.into();
    }

    /// How many proposals are stored.
    pub(crate) fn len(&self) -> usize {
        self.state().proposals.len()
    }

    /// Everything that arrived, in order.
    pub(crate) fn submissions(&self) -> Vec<wire::SubmitProposalRequest> {
        self.state().submissions.clone()
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap()
    }
}

#[tonic::async_trait]
impl MemoryService for FakeVault {
    async fn submit_proposal(
        &self,
        request: Request<wire::SubmitProposalRequest>,
    ) -> Result<Response<wire::SubmitProposalResponse>, Status> {
        let message = request.get_ref().clone();
        self.state().submissions.push(message.clone());
        self.faults.before(&request)?;
        check_caller(&message.tenant, &message.submitter)?;
        check_operation_id(&message.operation_id)?;
        let value = json::parse(&message.proposal, Limits::network(262_144)).unwrap();
        assert_eq!(
            canonical::to_text(&value).as_bytes(),
            message.proposal,
            "only canonical bytes arrive"
        );
        let proposal = memory::check(&value).unwrap();
        let digest = Digest::of_bytes(&message.proposal);
        let mut state = self.state();
        let used = state.operations.insert(message.operation_id, digest);
        assert!(
            used.is_none_or(|used| used == digest),
            "an operation has one proposal"
        );
        if proposal.submitted_by.as_str() != message.submitter {
            return Err(refusal(Code::PermissionDenied, "SUBMITTER_MISMATCH"));
        }
        let is_known = message.tenant == TENANT
            && message.submitter == PRINCIPAL
            && proposal.subject_ref.as_str() == ALIAS;
        if !is_known {
            return Err(refusal(Code::NotFound, "EXCHANGE_NOT_FOUND"));
        }
        if state.is_expired {
            return Err(refusal(Code::FailedPrecondition, "EXCHANGE_EXPIRED"));
        }
        if state.is_erased {
            return Err(refusal(Code::FailedPrecondition, "SUBJECT_ERASED"));
        }
        let id = proposal.id.as_str().to_owned();
        let stored = state.proposals.entry(id.clone()).or_insert_with(|| {
            let mut stored = value;
            stored["status"] = "pending_approval".into();
            stored
        });
        let stored = canonical::to_text(stored).into_bytes();
        self.faults.after()?;
        Ok(Response::new(wire::SubmitProposalResponse {
            proposal_ref: id,
            proposal: stored,
            expires_at: Some(Timestamp::default()),
        }))
    }
}
