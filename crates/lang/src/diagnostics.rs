use std::fmt;

/// A place in a configuration. Lines and columns count from 1.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct SourceRange {
    pub file: String,
    pub line: usize,
    pub column: usize,
}

impl fmt::Display for SourceRange {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}:{},{}", self.file, self.line, self.column)
    }
}

/// Why something could not be done.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Cause {
    /// The configuration or an input is wrong, for every engine.
    Invalid,
    /// This crate does not do it exactly as OpenTofu does; another engine may.
    Unsupported,
    /// The evaluation's budget is used up.
    Limit,
}

/// What is wrong, where, in the words of OpenTofu where it has some.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Diagnostic {
    pub cause: Cause,
    pub summary: String,
    pub detail: String,
    pub range: Option<SourceRange>,
}

impl Diagnostic {
    pub fn new(summary: impl Into<String>, detail: impl Into<String>) -> Diagnostic {
        Diagnostic { cause: Cause::Invalid, summary: summary.into(), detail: detail.into(), range: None }
    }

    pub fn unsupported(construct: impl Into<String>) -> Diagnostic {
        Diagnostic { cause: Cause::Unsupported, ..Diagnostic::new("Unsupported construct", construct) }
    }

    pub fn at(mut self, range: SourceRange) -> Diagnostic {
        // The innermost place says the most.
        self.range.get_or_insert(range);
        self
    }
}

impl fmt::Display for Diagnostic {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if let Some(range) = &self.range {
            write!(f, "{range}: ")?;
        }
        write!(f, "{}: {}", self.summary, self.detail)
    }
}

/// All that was found wrong; never empty.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Diagnostics(pub Vec<Diagnostic>);

impl Diagnostics {
    /// `Ok` if nothing was found.
    pub fn check(found: Vec<Diagnostic>) -> Result<(), Diagnostics> {
        if found.is_empty() { Ok(()) } else { Err(Diagnostics(found)) }
    }

    pub(crate) fn at(mut self, range: impl Fn() -> SourceRange) -> Diagnostics {
        for diagnostic in &mut self.0 {
            if diagnostic.range.is_none() {
                diagnostic.range = Some(range());
            }
        }
        self
    }
}

impl From<Diagnostic> for Diagnostics {
    fn from(diagnostic: Diagnostic) -> Diagnostics {
        Diagnostics(vec![diagnostic])
    }
}

impl IntoIterator for Diagnostics {
    type Item = Diagnostic;
    type IntoIter = std::vec::IntoIter<Diagnostic>;

    fn into_iter(self) -> Self::IntoIter {
        self.0.into_iter()
    }
}

impl fmt::Display for Diagnostics {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (index, diagnostic) in self.0.iter().enumerate() {
            if index > 0 {
                f.write_str("\n")?;
            }
            diagnostic.fmt(f)?;
        }
        Ok(())
    }
}

impl std::error::Error for Diagnostics {}
