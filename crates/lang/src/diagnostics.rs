use std::fmt;

/// A place in a configuration. Lines and columns count from 1.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct SourceRange {
    pub file: String,
    pub line: usize,
    pub column: usize,
    /// Where it ends: line, and the column behind the last one. No file that is read has more than these can count.
    pub end: (u32, u32),
}

impl SourceRange {
    /// From the beginning of the first to the end of the last; none of none.
    pub(crate) fn around(ranges: impl IntoIterator<Item = SourceRange>) -> Option<SourceRange> {
        ranges.into_iter().reduce(|one, other| {
            let (first, last) = if one <= other { (one, other) } else { (other, one) };
            SourceRange { end: first.end.max(last.end), ..first }
        })
    }
}

impl fmt::Display for SourceRange {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}:{},{}-", self.file, self.line, self.column)?;
        match self.end {
            (line, column) if line as usize == self.line => write!(f, "{column}"),
            (line, column) => write!(f, "{line},{column}"),
        }
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
    /// What else a message shows. Apart, because few look at it, and results carry diagnostics about.
    pub seen: Box<Seen>,
}

/// What was seen of what a diagnostic is about.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Seen {
    /// The names in the expression that it is about, with what they stand for; none if it is about no expression.
    pub values: Option<Vec<(String, String)>>,
    /// What is shown around the range, where that is more.
    pub around: Option<SourceRange>,
    /// The function that was called when it went wrong.
    pub call: Option<FunctionCall>,
}

/// A call of a function, as far as a message tells of it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FunctionCall {
    pub called_as: String,
    /// Names, types and what comes out; none of a function that is not there.
    pub signature: Option<serde_json::Value>,
}

impl Diagnostic {
    pub fn new(summary: impl Into<String>, detail: impl Into<String>) -> Diagnostic {
        Diagnostic {
            cause: Cause::Invalid,
            summary: summary.into(),
            detail: detail.into(),
            range: None,
            seen: Box::default(),
        }
    }

    pub fn unsupported(construct: impl Into<String>) -> Diagnostic {
        Diagnostic { cause: Cause::Unsupported, ..Diagnostic::new("Unsupported construct", construct) }
    }

    /// An `import` block is about an object that another one, at this place, is about.
    pub fn duplicate_import(address: &str, other: &SourceRange) -> Diagnostic {
        let detail = format!(
            "An import block for the resource {address:?} was already declared at {other}. A resource can have only one \
             import block."
        );
        Diagnostic::new(format!("Duplicate import configuration for {address:?}"), detail)
    }

    pub fn at(mut self, range: SourceRange) -> Diagnostic {
        // The innermost place says the most.
        self.range.get_or_insert(range);
        self
    }

    /// Shown together with all of this.
    pub(crate) fn within(mut self, around: SourceRange) -> Diagnostic {
        self.seen.around.get_or_insert(around);
        self
    }
}

impl fmt::Display for Diagnostic {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if let Some(SourceRange { file, line, column, .. }) = &self.range {
            write!(f, "{file}:{line},{column}: ")?;
        }
        write!(f, "{}: {}", self.summary, self.detail)
    }
}

/// What was found wrong so far, while the rest is still looked at.
#[derive(Default)]
pub(crate) struct Found(pub Vec<Diagnostic>);

impl Found {
    /// Keeps what is wrong, so that what follows is looked at too; unless it cannot be looked at.
    pub fn keep<T>(&mut self, result: Result<T, Diagnostics>) -> Result<Option<T>, Diagnostics> {
        match result {
            Ok(value) => Ok(Some(value)),
            Err(found) if found.0.iter().any(|one| one.cause != Cause::Invalid) => Err(found),
            Err(found) => {
                self.0.extend(found.0);
                Ok(None)
            }
        }
    }

    /// `Ok` if nothing was found.
    pub fn end(self) -> Result<(), Diagnostics> {
        Diagnostics::check(self.0)
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
