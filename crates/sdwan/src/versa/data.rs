use async_trait::async_trait;
use landform_cty::{Type, Value};
use landform_protocol::Schema;
use landform_provider_kit::{DataSource, Failure, block, of, string};

use super::device::free_branch;
use super::director::Director;
use crate::fields::text_of;

/// The names of all organizations.
pub struct Organizations;

#[async_trait]
impl DataSource<Director> for Organizations {
    fn schema(&self) -> Schema {
        block([("names", of(Type::list(Type::String)).computed())])
    }

    async fn read(&self, director: &Director, _config: Value) -> Result<Value, Failure> {
        let list = director.get("/nextgen/organization").await;
        let list = list.map_err(|trouble| trouble.during("list its organizations"))?;
        let names = list.as_array().into_iter().flatten().map(|organization| text_of(&organization["name"])).collect();
        Ok(Value::object([("names", Value::list(Type::String, names))]))
    }
}

/// A branch id that no device has. It is not reserved: a device that leaves its id open gets one for sure.
pub struct FreeBranchId;

#[async_trait]
impl DataSource<Director> for FreeBranchId {
    fn schema(&self) -> Schema {
        block([("branch_id", string().computed()), ("serial_number", string().computed())])
    }

    async fn read(&self, director: &Director, _config: Value) -> Result<Value, Failure> {
        let free = free_branch(director).await;
        let (branch, serial) = free.map_err(|trouble| trouble.during("name a free branch id"))?;
        Ok(Value::object([("branch_id", branch), ("serial_number", serial)]))
    }
}
