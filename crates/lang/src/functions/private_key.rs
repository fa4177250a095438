//! Private keys as text: the PEM formats that OpenTofu takes, which are those of Go's `ssh` and `x509`, and what these
//! say about a key that they do not take.

use base64::Engine;

use super::encoding::{LENIENT, lenient};

/// The numbers of an RSA key, big-endian. Those that a format leaves out follow from the others.
#[derive(Debug)]
pub(super) struct Numbers<'a> {
    pub modulus: &'a [u8],
    pub exponent: i64,
    pub private_exponent: &'a [u8],
    pub primes: [&'a [u8]; 2],
    /// The private exponent modulo each prime less one, and the inverse of the second prime modulo the first.
    pub shortcuts: Option<[&'a [u8]; 3]>,
    /// It stands inside of PKCS #8, and so does what is said about it.
    pub embedded: bool,
}

#[derive(Debug, PartialEq, Eq)]
pub(super) enum Refusal {
    /// The bytes are not what they claim to be, in the words of Go's reader of ASN.1, which has two kinds of mistakes.
    Encoding(&'static str, String),
    Key(String),
    /// A key, but not one of RSA. OpenTofu then shows the whole of it, number by number.
    OtherType,
    Unsupported(String),
}

impl Refusal {
    /// What is said about a key inside of PKCS #8.
    pub(super) fn embedded(self) -> Refusal {
        let message = match self {
            Refusal::Encoding(kind, message) => format!("asn1: {kind} error: {message}"),
            Refusal::Key(message) => message,
            other => return other,
        };
        key(format!("x509: failed to parse RSA private key embedded in PKCS#8: {message}"))
    }
}

fn key(message: impl Into<String>) -> Refusal {
    Refusal::Key(message.into())
}

/// A block of PEM: what kind of thing it says it is, and its bytes.
pub(super) struct Block {
    kind: String,
    encrypted: bool,
    bytes: Vec<u8>,
}

impl Block {
    /// The first block of a text that is well-formed.
    pub(super) fn find(text: &str) -> Result<Block, Refusal> {
        const BEGIN: &str = "-----BEGIN ";
        const END: &str = "-----END ";
        let mut rest = text;
        while let Some(end) = line_that_begins(rest, END) {
            let after = &rest[end + END.len()..];
            // A beginning without an end is passed over.
            if let Some(block) = rest[..end].rfind(BEGIN).and_then(|begin| {
                let alone = begin == 0 || rest.as_bytes()[begin - 1] == b'\n';
                alone.then(|| Block::between(&rest[begin + BEGIN.len()..end], after)).flatten()
            }) {
                return Ok(block);
            }
            rest = after;
        }
        Err(key("ssh: no key found"))
    }

    fn between(text: &str, after_end: &str) -> Option<Block> {
        let (first, mut body) = text.split_once('\n')?;
        let kind = first.trim_end().strip_suffix("-----")?;
        let mut encrypted = false;
        while let Some((line, next)) = body.split_once('\n').filter(|(line, _)| line.contains(':')) {
            let (name, value) = line.split_once(':').expect("it has a colon");
            encrypted |= name.trim() == "Proc-Type" && value.contains("ENCRYPTED");
            body = next;
        }
        let end = after_end.strip_prefix(kind)?.strip_prefix("-----")?;
        if !end.lines().next().unwrap_or_default().trim_end().is_empty() {
            return None;
        }
        let body: String = lenient(body).chars().filter(|character| !matches!(character, ' ' | '\t')).collect();
        Some(Block { kind: kind.to_owned(), encrypted, bytes: LENIENT.decode(body).ok()? })
    }

    pub(super) fn numbers(&self) -> Result<Numbers<'_>, Refusal> {
        if self.encrypted {
            return Err(protected());
        }
        match self.kind.as_str() {
            "RSA PRIVATE KEY" => pkcs1(&self.bytes),
            "PRIVATE KEY" => pkcs8(&self.bytes),
            "OPENSSH PRIVATE KEY" => openssh(&self.bytes),
            "EC PRIVATE KEY" | "DSA PRIVATE KEY" => Err(Refusal::OtherType),
            other => Err(key(format!("ssh: unsupported key type {}", landform_cty::quote_as_go(other)))),
        }
    }
}

fn line_that_begins(text: &str, words: &str) -> Option<usize> {
    let with_break = format!("\n{words}");
    if text.starts_with(words) { Some(0) } else { text.find(&with_break).map(|at| at + 1) }
}

fn protected() -> Refusal {
    key("ssh: this private key is passphrase protected")
}

fn pkcs1(bytes: &[u8]) -> Result<Numbers<'_>, Refusal> {
    let (mut fields, rest) = match Der(bytes).sequence("pkcs1PrivateKey").and_then(|(mut fields, rest)| {
        let start = Der(fields.0);
        (0..6).try_for_each(|_| fields.element(INTEGER).map(drop))?;
        Ok((start, rest))
    }) {
        Ok(read) => read,
        Err(refusal) => return Err(hint(bytes, refusal)),
    };
    if !rest.is_empty() {
        return Err(malformed("syntax", "trailing data"));
    }
    let version = small(fields.element(INTEGER)?)?;
    let modulus = fields.element(INTEGER)?;
    let exponent = small(fields.element(INTEGER)?)?;
    let private_exponent = fields.element(INTEGER)?;
    let primes = [fields.element(INTEGER)?, fields.element(INTEGER)?];
    let mut shortcuts = Vec::new();
    while shortcuts.len() < 3 && fields.0.first() == Some(&INTEGER) {
        shortcuts.push(fields.element(INTEGER)?);
    }
    if !fields.0.is_empty() {
        return Err(Refusal::Unsupported("a key with more than two primes".to_owned()));
    }
    if version > 1 {
        return Err(key("x509: unsupported private key version"));
    }
    let numbers = [modulus, private_exponent, primes[0], primes[1]];
    if numbers.iter().chain(&shortcuts).any(|number| number[0] >= 0x80 || number.iter().all(|byte| *byte == 0)) {
        return Err(key("x509: private key contains zero or negative value"));
    }
    let shortcuts = shortcuts.try_into().ok();
    Ok(Numbers { modulus, exponent, private_exponent, primes, shortcuts, embedded: false })
}

fn pkcs8(bytes: &[u8]) -> Result<Numbers<'_>, Refusal> {
    const RSA: &[u8] = &[0x2a, 0x86, 0x48, 0x86, 0xf7, 0x0d, 0x01, 0x01, 0x01];
    let read = Der(bytes).sequence("pkcs8").and_then(|(mut fields, _)| {
        fields.element(INTEGER)?;
        let algorithm = Der(fields.element(SEQUENCE)?).element(OBJECT_IDENTIFIER)?;
        Ok((algorithm, fields.element(OCTET_STRING)?))
    });
    match read {
        Err(refusal) => Err(hint(bytes, refusal)),
        Ok((RSA, inner)) => {
            pkcs1(inner).map(|numbers| Numbers { embedded: true, ..numbers }).map_err(Refusal::embedded)
        }
        Ok(_) => Err(Refusal::OtherType),
    }
}

/// The one format in the other's name.
fn hint(bytes: &[u8], refusal: Refusal) -> Refusal {
    let shape = |tags: &[u8]| {
        let Ok((mut fields, _)) = Der(bytes).sequence("") else { return false };
        tags.iter().all(|tag| fields.element(*tag).is_ok())
    };
    let name = if shape(&[INTEGER, OCTET_STRING]) {
        "ParseECPrivateKey"
    } else if shape(&[INTEGER, SEQUENCE, OCTET_STRING]) {
        "ParsePKCS8PrivateKey"
    } else if shape(&[INTEGER; 6]) {
        "ParsePKCS1PrivateKey"
    } else {
        return refusal;
    };
    key(format!("x509: failed to parse private key (use {name} instead for this key format)"))
}

const INTEGER: u8 = 0x02;
const OCTET_STRING: u8 = 0x04;
const OBJECT_IDENTIFIER: u8 = 0x06;
const SEQUENCE: u8 = 0x30;

fn malformed(kind: &'static str, message: &str) -> Refusal {
    Refusal::Encoding(kind, message.to_owned())
}

/// Elements of ASN.1, one after the other.
struct Der<'a>(&'a [u8]);

impl<'a> Der<'a> {
    /// The outermost sequence, and what comes after it.
    fn sequence(mut self, name: &str) -> Result<(Der<'a>, &'a [u8]), Refusal> {
        let Some(&found) = self.0.first() else { return Err(malformed("syntax", "sequence truncated")) };
        let (length, header) = self.length()?;
        if found != SEQUENCE {
            let (class, tag, compound) = (found >> 6, found & 0x1f, found & 0x20 != 0);
            let message = format!(
                "tags don't match (16 vs {{class:{class} tag:{tag} length:{length} isCompound:{compound}}}) \
                 {{optional:false explicit:false application:false private:false defaultValue:<nil> tag:<nil> \
                 stringType:0 timeType:0 set:false omitEmpty:false}} {name} @{header}"
            );
            return Err(malformed("structure", &message));
        }
        let content = self.element(SEQUENCE)?;
        Ok((Der(content), self.0))
    }

    /// The content of the next element, which is to be of a kind.
    fn element(&mut self, tag: u8) -> Result<&'a [u8], Refusal> {
        let Some(&found) = self.0.first() else { return Err(malformed("syntax", "sequence truncated")) };
        let (length, header) = self.length()?;
        if found != tag {
            return Err(malformed("structure", "tags don't match"));
        }
        let Some(content) = self.0.get(header..).and_then(|content| content.get(..length)) else {
            return Err(malformed("syntax", "data truncated"));
        };
        if tag == INTEGER && content.is_empty() {
            return Err(malformed("structure", "empty integer"));
        }
        self.0 = &self.0[header + length..];
        Ok(content)
    }

    /// How long the next element is, without and with what comes before its content.
    fn length(&self) -> Result<(usize, usize), Refusal> {
        let truncated = || malformed("syntax", "truncated tag or length");
        let first = *self.0.get(1).ok_or_else(truncated)?;
        if first < 0x80 {
            return Ok((first.into(), 2));
        }
        let count = usize::from(first & 0x7f);
        if count == 0 {
            return Err(malformed("syntax", "indefinite length found (not DER)"));
        }
        let bytes = self.0.get(2..2 + count).ok_or_else(truncated)?;
        if count > 4 {
            return Err(malformed("structure", "length too large"));
        }
        Ok((bytes.iter().fold(0, |length, byte| length << 8 | usize::from(*byte)), 2 + count))
    }
}

/// A whole number that fits into 64 bits.
fn small(content: &[u8]) -> Result<i64, Refusal> {
    if content.len() > 8 {
        return Err(malformed("structure", "integer too large"));
    }
    let sign = if content[0] >= 0x80 { -1 } else { 0 };
    Ok(content.iter().fold(sign, |number, byte| number << 8 | i64::from(*byte)))
}

/// The format of `ssh-keygen`: a list of texts with their lengths, of which the last holds the key in the same manner.
fn openssh(bytes: &[u8]) -> Result<Numbers<'_>, Refusal> {
    let invalid = || key("ssh: invalid openssh private key format");
    let mut outer = Wire(bytes.strip_prefix(b"openssh-key-v1\0").ok_or_else(invalid)?);
    let (cipher, derivation, options) = (outer.text()?, outer.text()?, outer.text()?);
    let count = outer.number()?;
    let _public = outer.text()?;
    let private = outer.text()?;
    if count != 1 {
        return Err(key("ssh: multi-key files are not supported"));
    }
    if cipher != b"none" || derivation != b"none" {
        return Err(protected());
    }
    if !options.is_empty() {
        return Err(key("ssh: invalid openssh private key"));
    }
    let mut inner = Wire(private);
    let checks = [inner.number(), inner.number()];
    let kind = inner.text().map_err(|_| key("ssh: malformed OpenSSH key"))?;
    if checks[0] != checks[1] {
        return Err(key("ssh: malformed OpenSSH key"));
    }
    match kind {
        b"ssh-rsa" => {}
        b"ssh-ed25519" | b"ecdsa-sha2-nistp256" | b"ecdsa-sha2-nistp384" | b"ecdsa-sha2-nistp521" => {
            return Err(Refusal::OtherType);
        }
        _ => return Err(key("ssh: unhandled key type")),
    }
    let modulus = inner.text()?;
    let exponent = inner.text()?;
    let private_exponent = inner.text()?;
    let _coefficient = inner.text()?;
    let primes = [inner.text()?, inner.text()?];
    let _comment = inner.text()?;
    if inner.0.iter().zip(1u8..).any(|(byte, expected)| *byte != expected) {
        return Err(key("ssh: padding not as expected"));
    }
    let exponent = if exponent.is_empty() { 0 } else { small(exponent)? };
    Ok(Numbers { modulus, exponent, private_exponent, primes, shortcuts: None, embedded: false })
}

/// What the protocol of SSH sends: numbers of four bytes, and texts with their lengths.
struct Wire<'a>(&'a [u8]);

impl<'a> Wire<'a> {
    fn take(&mut self, length: usize) -> Result<&'a [u8], Refusal> {
        let (taken, rest) = self.0.split_at_checked(length).ok_or_else(|| key("ssh: short read"))?;
        self.0 = rest;
        Ok(taken)
    }

    fn number(&mut self) -> Result<u32, Refusal> {
        let bytes = self.take(4)?;
        Ok(u32::from_be_bytes(bytes.try_into().expect("four bytes")))
    }

    fn text(&mut self) -> Result<&'a [u8], Refusal> {
        let length = self.number()?;
        self.take(length as usize)
    }
}
