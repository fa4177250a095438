use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use landform_cty::{Type, Value};
use sha2::Digest;

use super::call::Call;
use super::{Function, Kind, Outcome, Parameter, Problem, a_string};
use crate::Impure;

const STR: Parameter = Parameter::new("str", Kind::String);
const PATH: Parameter = Parameter::new("path", Kind::String);

/// What a hash of a string does, and of a file.
macro_rules! hash {
    ($name:literal, $file:literal, $hash:ty, $write:expr) => {
        [
            Function::new($name, &[STR], a_string, |call| Ok(Value::string($write(&<$hash>::digest(call.text(0)))))),
            Function::new($file, &[PATH], a_string, |call| {
                Ok(Value::string($write(&<$hash>::digest(super::files::read_plain(call)?))))
            }),
        ]
    };
}

static HASHES: [[Function; 2]; 6] = [
    hash!("md5", "filemd5", md5::Md5, hex),
    hash!("sha1", "filesha1", sha1::Sha1, hex),
    hash!("sha256", "filesha256", sha2::Sha256, hex),
    hash!("sha512", "filesha512", sha2::Sha512, hex),
    hash!("base64sha256", "filebase64sha256", sha2::Sha256, base64_text),
    hash!("base64sha512", "filebase64sha512", sha2::Sha512, base64_text),
];

static OTHERS: &[Function] = &[
    Function::new("bcrypt", &[STR], a_string, bcrypt).and(Parameter::new("cost", Kind::Number)),
    Function::new("uuid", &[], a_string, |call| match call.scope.world().impure {
        Impure::Allowed => Ok(Value::string(uuid::Uuid::new_v4().to_string())),
        Impure::Unknown => Ok(Value::unknown(Type::String)),
        Impure::Unsupported => Err(Problem::Unsupported("in this place".into())),
    }),
    Function::new(
        "uuidv5",
        &[Parameter::new("namespace", Kind::String), Parameter::new("name", Kind::String)],
        a_string,
        uuid_v5,
    ),
];

pub(super) fn functions() -> impl Iterator<Item = &'static Function> {
    HASHES.iter().flatten().chain(OTHERS)
}

fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}

fn base64_text(bytes: &[u8]) -> String {
    STANDARD.encode(bytes)
}

fn bcrypt(call: &mut Call<'_>) -> Outcome {
    match call.scope.world().impure {
        Impure::Allowed => {}
        Impure::Unknown => return Ok(Value::unknown(Type::String)),
        Impure::Unsupported => return Err(Problem::Unsupported("in this place".into())),
    }
    let cost = if call.args.len() > 1 { call.integer(1).map_err(Problem::Call)? } else { 10 };
    if call.args.len() > 2 {
        return Err(Problem::Call("bcrypt() takes no more than two arguments".into()));
    }
    let fail = |reason: String| Problem::Call(format!("error occurred generating password {reason}"));
    if cost > 31 {
        return Err(fail(format!("crypto/bcrypt: cost {cost} is outside allowed inclusive range 4..31")));
    }
    if call.text(0).len() > 72 {
        return Err(fail("bcrypt: password length exceeds 72 bytes".into()));
    }
    let cost = if cost < 4 { 10 } else { cost as u32 };
    // Every step of the cost doubles the time.
    call.budget.spend_steps(64 << cost)?;
    let parts = bcrypt::hash_with_result(call.text(0), cost).map_err(|error| fail(error.to_string()))?;
    Ok(Value::string(parts.format_for_version(bcrypt::Version::TwoA)))
}

fn uuid_v5(call: &mut Call<'_>) -> Outcome {
    let given = call.text(0);
    let namespace = match given {
        "dns" => uuid::Uuid::NAMESPACE_DNS,
        "url" => uuid::Uuid::NAMESPACE_URL,
        "oid" => uuid::Uuid::NAMESPACE_OID,
        "x500" => uuid::Uuid::NAMESPACE_X500,
        _ => uuid::Uuid::parse_str(given).map_err(|_| {
            let reason = match given.len() {
                32 | 36 | 38 | 45 => "invalid UUID format".to_owned(),
                length => format!("invalid UUID length: {length}"),
            };
            Problem::Call(format!("uuidv5() doesn't support namespace {given} ({reason})"))
        })?,
    };
    let hash = sha1::Sha1::new().chain_update(namespace.as_bytes()).chain_update(call.text(1)).finalize();
    let mut bytes: [u8; 16] = hash[..16].try_into().expect("a hash has twenty bytes");
    bytes[6] = (bytes[6] & 0x0f) | 0x50;
    bytes[8] = (bytes[8] & 0x3f) | 0x80;
    Ok(Value::string(uuid::Uuid::from_bytes(bytes).to_string()))
}
