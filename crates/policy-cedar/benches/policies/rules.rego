# The rules of `rules.rs` once more, for the comparison.
package context

import rego.v1

agent := data.agents[input.principal]

reasons contains "CLIENT_NOT_AUTHORIZED" if not "desks" in data.clients[input.client].groups

reasons contains "SUBJECT_NOT_AUTHORIZED" if not input.subject in agent.acts_for

reasons contains "REQUESTER_SUSPENDED" if agent.suspended

reasons contains "RECIPIENT_NOT_AUTHORIZED" if not "models" in data.recipients[input.recipient].groups

reasons contains "PURPOSE_NOT_ALLOWED" if not input.purpose in ["draft.response", "answer.question"]

reasons contains "TASK_NOT_ALLOWED" if input.task != "draft_only"

reasons contains "ASSURANCE_TOO_LOW" if not is_assured

is_assured if {
	input.assurance_level >= 2
	input.authenticated_by == "oauth2"
}

reasons contains "ONWARD_NOT_ALLOWED" if input.onward_disclosure != "forbidden"

reasons contains "RETENTION_TOO_LONG" if not is_short

is_short if {
	input.retention_mode == "ephemeral"
	input.retention_seconds <= 3600
}

reasons contains "LIFETIME_TOO_LONG" if input.expires_at > input.now + 14400000

reasons contains "RECEIPTS_NEEDED" if not has_receipts

has_receipts if {
	input.receipts_available
	input.receipt_level != "none"
}

reasons contains "CIRCUMSTANCES_NOT_NORMAL" if input.rate_limited

reasons contains "CIRCUMSTANCES_NOT_NORMAL" if input.anomaly_state != "normal"

forbidden contains [name, "DECLINED"] if some name in input.approval.declined

forbidden contains [name, "RESTRICTED"] if {
	some name in input.selectors
	data.predicates[name].sensitivity >= 4
}

forbidden contains [name, "IRREVERSIBLE"] if {
	some name in input.actions
	data.operations[name].side_effect == "irreversible"
}

permitted contains name if {
	"drafters" in agent.groups
	"red" in agent.tags.team
	some name in input.selectors
	"work" in data.predicates[name].groups
}

permitted contains name if {
	some name in input.selectors
	name in {"fact.contact", "fact.budget", "fact.salary", "fact.address"}
}

permitted contains name if {
	some name in input.actions
	name in {"email.create_draft", "email.send"}
}

gated contains "fact.budget" if "fact.budget" in input.selectors

transforms contains "truncate:fact.contact:40" if "fact.contact" in input.selectors

max_retention := 900 if input.recipient == "urn:model:drafting"

waiting contains name if {
	some name in gated
	not name in input.approval.granted
}

denied contains name if some [name, _] in forbidden

granted contains name if {
	count(reasons) == 0
	some name in permitted
	not name in denied
	not name in waiting
}

why contains reason if some reason in reasons

why contains reason if some [_, reason] in forbidden

decision := {
	"granted": granted,
	"waiting": waiting,
	"transforms": transforms,
	"max_retention": max_retention,
	"reasons": why,
}
