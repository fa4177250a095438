//! Errors that people see. Each has a stable code, a class that doors translate into their own language (an HTTP
//! status, an exit code), and a hint that says what to do. Documentation is generated from [`Code::ALL`].

use std::fmt;
use std::str::FromStr;

use serde::{Deserialize, Serialize};

/// What kind of "no" it is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Class {
    /// The request makes no sense, whatever is stored.
    Invalid,
    Unauthenticated,
    Forbidden,
    NotFound,
    /// It makes sense, but not in the present situation.
    Conflict,
    /// Somebody else holds it for now.
    Locked,
    /// The caller's condition (an ETag) does not hold.
    PreconditionFailed,
    /// Understood, and refused for what it says.
    Unprocessable,
    TooLarge,
    /// Over a bound; later it may work.
    Limited,
    /// A part of ours is away; later it may work.
    Unavailable,
    /// What a run was to do did not work out.
    Failed,
    Internal,
}

macro_rules! codes {
    ($($variant:ident $code:literal $class:ident $hint:literal,)*) => {
        /// The stable names of errors. A code is never renamed and never means something else.
        #[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
        pub enum Code {
            $(#[serde(rename = $code)] $variant,)*
        }

        impl Code {
            pub const ALL: &'static [Code] = &[$(Code::$variant,)*];

            pub fn as_str(self) -> &'static str {
                match self { $(Code::$variant => $code,)* }
            }

            pub fn class(self) -> Class {
                match self { $(Code::$variant => Class::$class,)* }
            }

            pub fn hint(self) -> &'static str {
                match self { $(Code::$variant => $hint,)* }
            }
        }
    };
}

codes! {
    RequestInvalid "request_invalid" Invalid "Compare the request with the API's description, `GET /openapi.json`.",
    NameInvalid "name_invalid" Invalid "Use 1 to 63 lower-case letters, digits and `-`; begin with a letter, end with a letter or digit.",
    CodeUnknown "code_unknown" Invalid "Use a code of the list in docs/errors.md; `landform run failures` shows those that there are failures of.",
    EngineUnknown "engine_unknown" Invalid "Use `native`, `cli` or `auto`.",
    InputInvalid "input_invalid" Unprocessable "An input's name is a variable of the template (`landform template show NAME` has them); its value is any JSON value within the size limit.",
    InputMasked "input_masked" Unprocessable "A sensitive input is shown masked. Leave it out to keep its value, or send the real one.",
    TemplateInvalid "template_invalid" Unprocessable "A template is an archive of relative files with at least one `.tf` file at its top. If the message names a file and a line, mend it there; `landform tf validate` in the folder finds the same.",
    TemplateDenied "template_denied" Unprocessable "Programs in a template run as Landform does. Take them out, or have the operator allow them by name (`landform serve --allow`).",
    VendorInvalid "vendor_invalid" Unprocessable "Compare the template's `vendor.json` with docs/gateway.md.",
    VendorBypassed "vendor_bypassed" Unprocessable "Calls to a vendor go through the gateway, which keeps the vendor's limits. In every block of its provider, set the endpoint to the ephemeral, sensitive variable that docs/gateway.md names, and to nothing else.",
    TemplateTooLarge "template_too_large" TooLarge "Leave out what is no configuration: provider binaries, `.terraform`, archives.",
    BodyTooLarge "body_too_large" TooLarge "Send less in one request.",
    TokenMissing "token_missing" Unauthenticated "Send `Authorization: Bearer TOKEN`.",
    TokenInvalid "token_invalid" Unauthenticated "The token is unknown, has expired or was withdrawn. The first start writes an admin token into the data folder.",
    Forbidden "forbidden" Forbidden "Ask an admin for a token with the role that this needs.",
    ApprovalRequired "approval_required" Forbidden "Leave `requires_approval` out to keep it, or let an approver switch it off.",
    ApproverIsAuthor "approver_is_author" Forbidden "This tenant wants another person to decide than the one who asked for the change.",
    TokenUnknown "token_unknown" NotFound "List the tokens; it may have been withdrawn.",
    TokenLast "token_last" Conflict "Without it nobody could make a token any more. Make another one of an admin, without a lifetime and a tenant, and withdraw this one with it.",
    ConnectionUnknown "connection_unknown" NotFound "Make the connection first: `landform connection put TENANT/NAME --values FILE`, or PUT it.",
    ConnectionInUse "connection_in_use" Conflict "Destroy or change the deployments that use it first.",
    ConnectionUnused "connection_unused" Conflict "A connection is tried by a trial of a deployment that uses it: deploy one with it, with `requires_approval` if nothing shall be made yet.",
    ConnectionInvalid "connection_invalid" Unprocessable "A connection is an object of values; a deployment names each of its connections once.",
    WebhookUnknown "webhook_unknown" NotFound "List the webhooks.",
    WebhookInvalid "webhook_invalid" Unprocessable "A webhook is an http or https address that the server may reach; its events are statuses of runs, or `drifted` and `drift_resolved`.",
    StateLocked "state_locked" Locked "Wait for whoever holds the lock. A run ends by itself, or with `landform run recover`; a person's lock can be taken away by force if they are gone.",
    StateConflict "state_conflict" Conflict "Somebody wrote the state in between. Pull it again, and repeat your change.",
    StateInvalid "state_invalid" Unprocessable "Send a state in format 4, as any `tofu` or `terraform` writes it.",
    AddressInvalid "address_invalid" Unprocessable "Name an object, a resource or a module that the state has; a move needs a free address of the same type.",
    PlanUnknown "plan_unknown" NotFound "The run has made no plan yet, or it went straight on to its apply: plan first with `plan_only`, or ask for approval.",
    RouteUnknown "route_unknown" NotFound "Compare the path with the API's description.",
    TenantUnknown "tenant_unknown" NotFound "Make the tenant first: `landform tenant put NAME`, or PUT it.",
    TenantInUse "tenant_in_use" Conflict "Destroy its deployments or `landform forget` them, delete its connections and webhooks, and withdraw its tokens first.",
    TemplateUnknown "template_unknown" NotFound "Push the template, or name a version that exists.",
    TemplateInUse "template_in_use" Conflict "Bring the deployments that `landform template deployments` lists to another version, or destroy them.",
    DeploymentUnknown "deployment_unknown" NotFound "It was never created, or its destroy has succeeded.",
    RunUnknown "run_unknown" NotFound "List the deployment's runs.",
    OutputsUnknown "outputs_unknown" NotFound "There are outputs after the first successful apply.",
    StateUnknown "state_unknown" NotFound "There is a state after the first apply.",
    GenerationMismatch "generation_mismatch" PreconditionFailed "Somebody changed the deployment in between. Read it again and repeat your change.",
    IdempotencyKeyReused "idempotency_key_reused" Unprocessable "Use a new Idempotency-Key for another request.",
    RunFinished "run_finished" Conflict "The run has ended; make a new one.",
    RunNotWaiting "run_not_waiting" Conflict "Only a run that awaits approval can be approved, rejected or expire.",
    RunApplying "run_applying" Conflict "Wait for its end, or cancel it; it stops at the next safe point.",
    RunInDoubt "run_in_doubt" Conflict "Answer its doubts with `landform run recover` first: what was made may exist.",
    RunNotInDoubt "run_not_in_doubt" Conflict "Only a run that needs recovery can be recovered.",
    DoubtUnknown "doubt_unknown" Unprocessable "Name an address from the run's list of doubts.",
    DeploymentQuota "deployment_quota" Conflict "Destroy deployments that are not needed, or have an admin raise the tenant's `max_deployments`.",
    WaitingQuota "waiting_quota" Limited "Try again when some of the tenant's runs have ended, or have an admin raise its `max_waiting_runs`.",
    MoveIllegal "move_illegal" Conflict "The run is in another state than the caller thinks. Read it again.",
    EngineUnsupported "engine_unsupported" Failed "Choose `auto` or `cli`, or change what the native engine names.",
    EngineMissing "engine_missing" Failed "This worker has no such engine. Add one with `landform engine add FILE` and restart the server, or choose another engine.",
    AdoptionOccupied "adoption_occupied" Failed "Remove the object from the state first, or take the wish back with `landform again TENANT/NAME --absent ADDRESS`.",
    AdoptionPending "adoption_pending" Failed "Apply the deployment once, so that its state has the objects to adopt, then destroy it; or take the wish back with `landform again TENANT/NAME --absent ADDRESS`.",
    AdoptionFailed "adoption_failed" Failed "Nothing was changed. If the address or the id is wrong, take the wish back with `landform again TENANT/NAME --absent ADDRESS`: every run fails until then. The run's events hold the diagnostics (`landform run watch RUN`).",
    AdoptionUnknown "adoption_unknown" NotFound "A run that says `adoption_failed`, `adoption_pending` or `adoption_occupied` names the address.",
    PlanFailed "plan_failed" Failed "Nothing was changed. The run's events hold the diagnostics (`landform run watch RUN`); a provider that is missing is added with `landform provider add`.",
    PlanStale "plan_stale" Failed "State, template or inputs changed after the plan was made. Make a new run.",
    TimeLimitExceeded "time_limit_exceeded" Failed "What was done is kept in the state. Give the deployment a longer `time_limit`, or see what takes so long.",
    ApplyFailed "apply_failed" Failed "What was done is kept in the state; the next run continues from it. The run's events hold the diagnostics.",
    RunBroken "run_broken" Failed "The worker could not carry the run out. Its log says more.",
    StoreUnavailable "store_unavailable" Unavailable "Try again; see whether the database can be reached.",
    Overloaded "overloaded" Limited "Try again later.",
    Internal "internal" Internal "This is a bug or a broken disk. The server's log says more.",
}

impl FromStr for Code {
    type Err = Problem;

    fn from_str(text: &str) -> Result<Code, Problem> {
        let found = Code::ALL.iter().find(|code| code.as_str() == text);
        found.copied().ok_or_else(|| {
            let shown: String = text.chars().take(100).collect();
            Problem::new(Code::CodeUnknown, format!("there is no code `{shown}`"))
        })
    }
}

impl fmt::Display for Code {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

/// An error with what is special about this case. The message is for the caller; private context belongs into the log.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Problem {
    pub code: Code,
    pub message: String,
}

impl Problem {
    pub fn new(code: Code, message: impl Into<String>) -> Problem {
        Problem { code, message: message.into() }
    }

    pub fn class(&self) -> Class {
        self.code.class()
    }

    pub fn hint(&self) -> &'static str {
        self.code.hint()
    }
}

impl fmt::Display for Problem {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} ({})", self.message, self.code)
    }
}

impl std::error::Error for Problem {}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn codes_are_unique_and_hints_are_sentences() {
        let mut seen = std::collections::BTreeSet::new();
        for code in Code::ALL {
            assert!(seen.insert(code.as_str()), "{code} twice");
            assert!(code.hint().ends_with('.'), "{code}");
            assert_eq!(serde_json::to_value(code).unwrap(), code.as_str());
            assert_eq!(code.as_str().parse::<Code>().unwrap(), *code);
        }
    }
}
