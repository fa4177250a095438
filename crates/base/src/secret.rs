//! Values that cannot be printed.

use std::fmt;

use subtle::ConstantTimeEq;
use zeroize::Zeroize;

/// A value that is wiped when dropped and that no formatter or serialiser can show: there is no `Display` and no
/// `Serialize`, and `Debug` shows that there is a secret, not which.
///
/// ```compile_fail
/// println!("{}", landform_base::secret::SecretString::from("hunter2"));
/// ```
/// ```compile_fail
/// serde_json::to_string(&landform_base::secret::SecretString::from("hunter2"));
/// ```
#[derive(Clone, Default)]
pub struct Secret<T: Zeroize>(T);

pub type SecretString = Secret<String>;
pub type SecretBytes = Secret<Vec<u8>>;

impl<T: Zeroize> Secret<T> {
    pub fn new(value: T) -> Secret<T> {
        Secret(value)
    }

    /// The one way to the value, so that every use can be found by its name.
    pub fn expose(&self) -> &T {
        &self.0
    }
}

impl<T: Zeroize> Drop for Secret<T> {
    fn drop(&mut self) {
        self.0.zeroize();
    }
}

impl<T: Zeroize> fmt::Debug for Secret<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("(secret)")
    }
}

/// Takes the same time wherever two values of equal length differ.
impl<T: Zeroize + AsRef<[u8]>> PartialEq for Secret<T> {
    fn eq(&self, other: &Secret<T>) -> bool {
        self.0.as_ref().ct_eq(other.0.as_ref()).into()
    }
}

impl<T: Zeroize + AsRef<[u8]>> Eq for Secret<T> {}

impl From<String> for SecretString {
    fn from(value: String) -> SecretString {
        Secret(value)
    }
}

impl From<&str> for SecretString {
    fn from(value: &str) -> SecretString {
        Secret(value.to_owned())
    }
}

impl From<Vec<u8>> for SecretBytes {
    fn from(value: Vec<u8>) -> SecretBytes {
        Secret(value)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn debug_shows_nothing_of_the_value() {
        let secret = SecretString::from("hunter2");
        assert_eq!(format!("{secret:?}"), "(secret)");
        assert_eq!(format!("{:?}", Some(SecretBytes::from(vec![1, 2]))), "Some((secret))");
    }

    #[test]
    fn compares_by_value() {
        assert_eq!(SecretString::from("a"), SecretString::from("a"));
        assert_ne!(SecretString::from("a"), SecretString::from("b"));
        assert_ne!(SecretString::from("a"), SecretString::from("aa"));
    }
}
