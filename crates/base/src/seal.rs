//! Sealing at rest: AES-256-GCM in envelopes. A master key seals data keys, a data key seals everything else.
//!
//! A sealed value is bound to its context (whose it is and what it is): moved to another row it does not open.
//! Nonces are random, so a data key is good for 2^32 values; its number stands in each envelope, so that a key can be
//! renewed while older values stay readable.

use std::fmt;
use std::io;
use std::path::{Path, PathBuf};

use aes_gcm::aead::{Aead, Payload};
use aes_gcm::{Aes256Gcm, KeyInit};
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD as BASE64;
use hmac::{Hmac, Mac};
use rand::TryRng;
use sha2::Sha256;
use zeroize::Zeroize;

use crate::file;
use crate::secret::{Secret, SecretBytes, SecretString};

const KEY: usize = 32;
const NONCE: usize = 12;
/// Envelope: format, number of the key, nonce, ciphertext with its tag.
const FORMAT: u8 = 1;
const HEADER: usize = 1 + 4 + NONCE;

#[derive(Debug, thiserror::Error)]
pub enum SealError {
    #[error("a sealed value cannot be opened: wrong key, wrong context, or damaged")]
    Closed,
    #[error("the master key must be {KEY} bytes in base64")]
    NotAKey,
    #[error("cannot use the master key file {path}: {source}")]
    File { path: PathBuf, source: io::Error },
    #[error("the master key file {path} can be read by others; its mode must be 0600")]
    Exposed { path: PathBuf },
    #[error("the system gave no random bytes: {0}")]
    NoRandomness(String),
}

/// What a sealed value belongs to. Every part is length-prefixed, so no two contexts read the same.
#[derive(Clone, Debug)]
pub struct Context(Vec<u8>);

impl Context {
    pub fn new(parts: &[&str]) -> Context {
        let mut bytes = Vec::new();
        for part in parts {
            bytes.extend_from_slice(&(part.len() as u64).to_be_bytes());
            bytes.extend_from_slice(part.as_bytes());
        }
        Context(bytes)
    }
}

type KeyBytes = Secret<[u8; KEY]>;

/// Seals data keys and nothing else.
#[derive(Clone, Debug)]
pub struct MasterKey(KeyBytes);

impl MasterKey {
    pub fn generate() -> Result<MasterKey, SealError> {
        Ok(MasterKey(random_key()?))
    }

    pub fn from_base64(text: &SecretString) -> Result<MasterKey, SealError> {
        let mut bytes = BASE64.decode(text.expose().trim()).map_err(|_| SealError::NotAKey)?;
        let key = <[u8; KEY]>::try_from(bytes.as_slice()).map_err(|_| SealError::NotAKey);
        bytes.zeroize();
        Ok(MasterKey(Secret::new(key?)))
    }

    /// Reads the key file, or makes it (0600) when there is none. A file that others can read is refused: it is no
    /// secret any more, and somebody should know.
    pub fn load_or_create(path: &Path) -> Result<MasterKey, SealError> {
        let failed = |source| SealError::File { path: path.to_owned(), source };
        if !path.exists() {
            let text = SecretString::from(BASE64.encode(random_key()?.expose()));
            match file::create_private(path, text.expose().as_bytes()) {
                Ok(()) => {}
                Err(error) if error.kind() == io::ErrorKind::AlreadyExists => {}
                Err(error) => return Err(failed(error)),
            }
        }
        let mode = std::os::unix::fs::MetadataExt::mode(&std::fs::metadata(path).map_err(failed)?);
        if mode & 0o077 != 0 {
            return Err(SealError::Exposed { path: path.to_owned() });
        }
        MasterKey::from_base64(&SecretString::from(std::fs::read_to_string(path).map_err(failed)?))
    }

    pub fn seal_key(&self, key: &DataKey, context: &Context) -> Result<Vec<u8>, SealError> {
        seal_with(&self.0, 0, context, key.key.expose())
    }

    pub fn open_key(&self, number: u32, sealed: &[u8], context: &Context) -> Result<DataKey, SealError> {
        let opened = SecretBytes::from(open_with(&self.0, sealed, context)?);
        let bytes = <[u8; KEY]>::try_from(opened.expose().as_slice()).map_err(|_| SealError::Closed)?;
        Ok(DataKey { number, key: Secret::new(bytes) })
    }
}

/// Seals a tenant's values.
#[derive(Clone)]
pub struct DataKey {
    number: u32,
    key: KeyBytes,
}

impl fmt::Debug for DataKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "DataKey({})", self.number)
    }
}

impl DataKey {
    pub fn generate(number: u32) -> Result<DataKey, SealError> {
        Ok(DataKey { number, key: random_key()? })
    }

    pub fn number(&self) -> u32 {
        self.number
    }

    pub fn seal(&self, context: &Context, plain: &[u8]) -> Result<Vec<u8>, SealError> {
        seal_with(&self.key, self.number, context, plain)
    }

    pub fn open(&self, context: &Context, sealed: &[u8]) -> Result<Vec<u8>, SealError> {
        open_with(&self.key, sealed, context)
    }

    /// A keyed hash: equal values can be recognised, but nobody without the key can try out guesses.
    pub fn hash(&self, context: &Context, value: &[u8]) -> [u8; 32] {
        // The key of the hash is derived, so that no key serves two purposes.
        let derived = mac(self.key.expose(), &[b"landform keyed hash"]);
        mac(&derived, &[&context.0, value])
    }
}

/// The number of the key that an envelope was sealed with.
pub fn key_number(sealed: &[u8]) -> Result<u32, SealError> {
    match sealed {
        [FORMAT, a, b, c, d, ..] => Ok(u32::from_be_bytes([*a, *b, *c, *d])),
        _ => Err(SealError::Closed),
    }
}

fn mac(key: &[u8], parts: &[&[u8]]) -> [u8; 32] {
    let mut mac = <Hmac<Sha256> as KeyInit>::new_from_slice(key).expect("HMAC takes keys of any length");
    for part in parts {
        mac.update(part);
    }
    mac.finalize().into_bytes().into()
}

fn random_key() -> Result<KeyBytes, SealError> {
    let mut bytes = [0u8; KEY];
    fill_random(&mut bytes)?;
    Ok(Secret::new(bytes))
}

/// Randomness for keys, nonces and tokens, straight from the system.
pub fn fill_random(bytes: &mut [u8]) -> Result<(), SealError> {
    rand::rngs::SysRng.try_fill_bytes(bytes).map_err(|error| SealError::NoRandomness(error.to_string()))
}

fn seal_with(key: &KeyBytes, number: u32, context: &Context, plain: &[u8]) -> Result<Vec<u8>, SealError> {
    let mut nonce = [0u8; NONCE];
    fill_random(&mut nonce)?;
    let payload = Payload { msg: plain, aad: &context.0 };
    let ciphertext = cipher(key).encrypt(&nonce.into(), payload).map_err(|_| SealError::Closed)?;
    let mut sealed = Vec::with_capacity(HEADER + ciphertext.len());
    sealed.push(FORMAT);
    sealed.extend_from_slice(&number.to_be_bytes());
    sealed.extend_from_slice(&nonce);
    sealed.extend_from_slice(&ciphertext);
    Ok(sealed)
}

fn open_with(key: &KeyBytes, sealed: &[u8], context: &Context) -> Result<Vec<u8>, SealError> {
    if sealed.len() < HEADER || sealed[0] != FORMAT {
        return Err(SealError::Closed);
    }
    let nonce = <[u8; NONCE]>::try_from(&sealed[5..HEADER]).map_err(|_| SealError::Closed)?;
    let payload = Payload { msg: &sealed[HEADER..], aad: &context.0 };
    cipher(key).decrypt(&nonce.into(), payload).map_err(|_| SealError::Closed)
}

fn cipher(key: &KeyBytes) -> Aes256Gcm {
    Aes256Gcm::new(key.expose().into())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn opens_only_in_its_own_context() {
        let key = DataKey::generate(7).unwrap();
        let here = Context::new(&["tenant", "deployment", "state"]);
        let sealed = key.seal(&here, b"value").unwrap();
        assert_eq!(key.open(&here, &sealed).unwrap(), b"value");
        assert_eq!(key_number(&sealed).unwrap(), 7);
        assert!(!sealed.windows(5).any(|w| w == b"value"));
        assert!(key.open(&Context::new(&["tenant", "deploymentstate", ""]), &sealed).is_err());
        assert!(DataKey::generate(7).unwrap().open(&here, &sealed).is_err());
        for at in [0, HEADER - 1, HEADER, sealed.len() - 1] {
            let mut damaged = sealed.clone();
            damaged[at] ^= 1;
            assert!(key.open(&here, &damaged).is_err(), "byte {at}");
        }
        assert!(key.open(&here, &sealed[..HEADER - 2]).is_err());
    }

    #[test]
    fn a_data_key_comes_back_from_its_envelope() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("master.key");
        let context = Context::new(&["tenant"]);
        let key = DataKey::generate(1).unwrap();
        let sealed = MasterKey::load_or_create(&path).unwrap().seal_key(&key, &context).unwrap();
        let again = MasterKey::load_or_create(&path).unwrap().open_key(1, &sealed, &context).unwrap();
        assert_eq!(again.hash(&context, b"x"), key.hash(&context, b"x"));
        assert!(MasterKey::generate().unwrap().open_key(1, &sealed, &context).is_err());
    }

    #[test]
    fn a_master_key_that_others_can_read_is_refused() {
        use std::os::unix::fs::PermissionsExt;
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("master.key");
        MasterKey::load_or_create(&path).unwrap();
        std::fs::set_permissions(&path, std::fs::Permissions::from_mode(0o640)).unwrap();
        assert!(matches!(MasterKey::load_or_create(&path), Err(SealError::Exposed { .. })));
        assert!(matches!(MasterKey::from_base64(&SecretString::from("short")), Err(SealError::NotAKey)));
    }

    #[test]
    fn the_keyed_hash_depends_on_key_context_and_value() {
        let (a, b) = (DataKey::generate(1).unwrap(), DataKey::generate(1).unwrap());
        let (one, two) = (Context::new(&["1"]), Context::new(&["2"]));
        assert_eq!(a.hash(&one, b"v"), a.hash(&one, b"v"));
        assert_ne!(a.hash(&one, b"v"), a.hash(&one, b"w"));
        assert_ne!(a.hash(&one, b"v"), a.hash(&two, b"v"));
        assert_ne!(a.hash(&one, b"v"), b.hash(&one, b"v"));
    }
}
