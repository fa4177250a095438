//! Who may do what. A token has a role, and may be bound to one tenant; a role is a set of rights.

use std::fmt;
use std::str::FromStr;

use serde::{Deserialize, Serialize};

use crate::{Code, Problem, TenantName};

/// What a token is for.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize, utoipa::ToSchema)]
#[serde(rename_all = "snake_case")]
pub enum Role {
    /// Everything; bound to a tenant: everything within it.
    Admin,
    /// Writes deployments and looks after their runs.
    Operator,
    /// Decides about plans.
    Approver,
    /// Looks, and sees no secret.
    Reader,
}

/// What a request needs.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize, utoipa::ToSchema)]
#[serde(rename_all = "snake_case")]
pub enum Right {
    Read,
    /// Change what is deployed.
    Operate,
    /// Decide about plans, and about whether a deployment needs such a decision.
    Approve,
    /// See sensitive outputs, and states with all that is in them.
    Secrets,
    /// Tokens, connections, tenants, templates, webhooks.
    Administer,
}

impl Role {
    pub const ALL: [Role; 4] = [Role::Admin, Role::Operator, Role::Approver, Role::Reader];

    pub fn may(self, right: Right) -> bool {
        match self {
            Role::Admin => true,
            Role::Operator => matches!(right, Right::Read | Right::Operate | Right::Secrets),
            Role::Approver => matches!(right, Right::Read | Right::Approve),
            Role::Reader => right == Right::Read,
        }
    }

    pub fn as_str(self) -> &'static str {
        match self {
            Role::Admin => "admin",
            Role::Operator => "operator",
            Role::Approver => "approver",
            Role::Reader => "reader",
        }
    }
}

impl fmt::Display for Role {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

impl FromStr for Role {
    type Err = Problem;

    fn from_str(text: &str) -> Result<Role, Problem> {
        Role::ALL.into_iter().find(|role| role.as_str() == text).ok_or_else(|| {
            let shown: String = text.chars().take(40).collect();
            Problem::new(
                Code::RequestInvalid,
                format!("{shown:?} is no role; there are admin, operator, approver, reader"),
            )
        })
    }
}

/// Who acts, and from where: what the audit log says about a deed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Actor {
    /// The token's id.
    pub id: String,
    pub name: String,
    pub role: Role,
    /// The one tenant whose things this actor can see at all.
    pub tenant: Option<TenantName>,
    /// The address that the request came from.
    pub origin: String,
}

impl Actor {
    /// Whoever has the data folder itself needs no token.
    pub fn local(name: &str) -> Actor {
        Actor { id: "local".into(), name: name.into(), role: Role::Admin, tenant: None, origin: "local".into() }
    }

    pub fn may(&self, right: Right) -> bool {
        self.role.may(right)
    }

    pub fn require(&self, right: Right) -> Result<(), Problem> {
        if self.may(right) {
            return Ok(());
        }
        let right = serde_json::to_value(right).expect("a right is a word");
        let right = right.as_str().unwrap_or_default();
        Err(Problem::new(Code::Forbidden, format!("the role {} has not the right to {right}", self.role)))
    }

    /// Whether this tenant exists as far as the actor is concerned.
    pub fn sees(&self, tenant: &TenantName) -> bool {
        self.tenant.as_ref().is_none_or(|own| own == tenant)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn who_deploys_does_not_approve_and_who_approves_does_not_deploy() {
        assert!(Role::Operator.may(Right::Operate) && !Role::Operator.may(Right::Approve));
        assert!(Role::Approver.may(Right::Approve) && !Role::Approver.may(Right::Operate));
        assert!(!Role::Approver.may(Right::Secrets) && !Role::Reader.may(Right::Secrets));
        for role in Role::ALL {
            assert!(role.may(Right::Read));
            assert_eq!(role.may(Right::Administer), role == Role::Admin);
            assert_eq!(role.as_str().parse::<Role>().unwrap(), role);
        }
        assert_eq!("root".parse::<Role>().unwrap_err().code, Code::RequestInvalid);
    }

    #[test]
    fn a_bound_actor_sees_one_tenant() {
        let mut actor = Actor::local("eve");
        assert!(actor.sees(&"acme".parse().unwrap()));
        actor.tenant = Some("acme".parse().unwrap());
        assert!(actor.sees(&"acme".parse().unwrap()) && !actor.sees(&"other".parse().unwrap()));
    }
}
