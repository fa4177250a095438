use crate::Type;

/// A value could not be encoded or decoded; says where in it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CodecError {
    /// The place, written as in the language: `.a[0]["key"]`.
    place: String,
    reason: String,
}

impl CodecError {
    pub(crate) fn new(reason: impl Into<String>) -> CodecError {
        CodecError { place: String::new(), reason: reason.into() }
    }

    pub(crate) fn wanted(wanted: &Type, found: &str) -> CodecError {
        CodecError::new(format!("{} required, but have {found}", wanted.friendly_name_for_constraint()))
    }

    pub(crate) fn missing(attribute: &str) -> CodecError {
        CodecError::new(format!("attribute {attribute:?} is missing"))
    }

    pub(crate) fn unexpected(attribute: &str) -> CodecError {
        CodecError::new(format!("unsupported attribute {attribute:?}"))
    }

    pub(crate) fn inside_attribute(mut self, name: &str) -> CodecError {
        self.place.insert_str(0, &format!(".{name}"));
        self
    }

    pub(crate) fn inside_key(mut self, key: &str) -> CodecError {
        self.place.insert_str(0, &format!("[{key:?}]"));
        self
    }

    pub(crate) fn inside_index(mut self, index: usize) -> CodecError {
        self.place.insert_str(0, &format!("[{index}]"));
        self
    }
}

impl std::fmt::Display for CodecError {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        if !self.place.is_empty() {
            write!(f, "{}: ", self.place)?;
        }
        f.write_str(&self.reason)
    }
}

impl std::error::Error for CodecError {}
