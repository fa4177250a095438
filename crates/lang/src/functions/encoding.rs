use std::io::Read;

use base64::Engine;
use base64::alphabet;
use base64::engine::general_purpose::{GeneralPurpose, GeneralPurposeConfig, STANDARD};
use landform_cty::{Value, quote_as_go};

use super::call::Call;
use super::{Function, Kind, Outcome, Parameter, Problem, a_string, shown};

const STR: Parameter = Parameter::new("str", Kind::String);
const ENCODING: Parameter = Parameter::new("encoding", Kind::String);

/// More than this is not unpacked.
const MAX_UNPACKED: u64 = 64 << 20;

pub(super) static FUNCTIONS: &[Function] = &[
    Function::new("base64encode", &[STR], a_string, |call| Ok(Value::string(STANDARD.encode(call.text(0))))),
    Function::new("base64decode", &[STR.or_marked()], a_string, |call| {
        let bytes = decode_base64(call)?;
        let text = String::from_utf8(bytes)
            .map_err(|_| Problem::Call("the result of decoding the provided string is not valid UTF-8".into()))?;
        Ok(Value::string(text).with_marks(&call.args[0].marks))
    }),
    Function::new("base64gunzip", &[STR.or_marked()], a_string, gunzip),
    Function::new("textencodebase64", &[Parameter::new("string", Kind::String), ENCODING], a_string, encode_text),
    Function::new("textdecodebase64", &[Parameter::new("source", Kind::String), ENCODING], a_string, decode_text),
    Function::new("urlencode", &[STR], a_string, |call| Ok(Value::string(url_encode(call.text(0))))),
    Function::new("urldecode", &[STR], a_string, |call| url_decode(call.text(0))),
];

/// Go's decoder does not look at bits that stand for nothing.
pub(super) const LENIENT: GeneralPurpose =
    GeneralPurpose::new(&alphabet::STANDARD, GeneralPurposeConfig::new().with_decode_allow_trailing_bits(true));

/// Nor does it mind line breaks.
pub(super) fn lenient(text: &str) -> String {
    text.chars().filter(|character| !matches!(character, '\r' | '\n')).collect()
}

fn decode_base64(call: &Call<'_>) -> Result<Vec<u8>, Problem> {
    LENIENT.decode(lenient(call.text(0))).map_err(|_| {
        let given = shown(&quote_as_go(call.text(0)), &call.args[0].marks);
        Problem::Call(format!("failed to decode base64 data {given}"))
    })
}

fn gunzip(call: &mut Call<'_>) -> Outcome {
    let packed = decode_base64(call)?;
    let mut unpacked = Vec::new();
    let mut reader = flate2::read::MultiGzDecoder::new(packed.as_slice()).take(MAX_UNPACKED + 1);
    reader.read_to_end(&mut unpacked).map_err(|error| {
        let step = if packed.starts_with(&[0x1f, 0x8b]) { "read gunzip raw data" } else { "gunzip bytestream" };
        Problem::Call(format!("failed to {step}: {error}"))
    })?;
    if unpacked.len() as u64 > MAX_UNPACKED {
        return Err(Problem::Call("the result is too large".into()));
    }
    call.budget.spend_bytes(unpacked.len())?;
    let text = String::from_utf8(unpacked).map_err(|_| Problem::Unsupported("a result that is not text".into()))?;
    Ok(Value::string(text).with_marks(&call.args[0].marks))
}

/// The encodings that are the same here and in Go's table of names.
enum Charset {
    Utf8,
    Utf16 { big: bool, mark: bool },
    Latin1,
    Table(&'static encoding_rs::Encoding),
}

impl Charset {
    fn find(name: &str) -> Result<(Charset, String), Problem> {
        let upper = name.to_uppercase();
        let charset = match upper.as_str() {
            "UTF-8" => Charset::Utf8,
            "UTF-16" => Charset::Utf16 { big: true, mark: true },
            "UTF-16BE" => Charset::Utf16 { big: true, mark: false },
            "UTF-16LE" => Charset::Utf16 { big: false, mark: false },
            "ISO-8859-1" => Charset::Latin1,
            "WINDOWS-1250" => Charset::Table(encoding_rs::WINDOWS_1250),
            "WINDOWS-1251" => Charset::Table(encoding_rs::WINDOWS_1251),
            "WINDOWS-1252" => Charset::Table(encoding_rs::WINDOWS_1252),
            _ => return Err(Problem::Unsupported(format!("the encoding {name:?}"))),
        };
        let name = match upper.as_str() {
            "ISO-8859-1" => "ISO_8859-1:1987".to_owned(),
            _ if upper.starts_with("WINDOWS") => upper.to_lowercase(),
            _ => upper,
        };
        Ok((charset, name))
    }

    fn encode(&self, text: &str) -> Option<Vec<u8>> {
        match self {
            Charset::Utf8 => Some(text.as_bytes().to_vec()),
            Charset::Utf16 { big, mark } => {
                let units = mark.then_some(0xfeff).into_iter().chain(text.encode_utf16());
                Some(units.flat_map(|unit: u16| if *big { unit.to_be_bytes() } else { unit.to_le_bytes() }).collect())
            }
            Charset::Latin1 => text.chars().map(|character| u8::try_from(character as u32).ok()).collect(),
            Charset::Table(table) => {
                let (bytes, _, lost) = table.encode(text);
                (!lost).then(|| bytes.into_owned())
            }
        }
    }

    fn decode(&self, bytes: &[u8]) -> Option<String> {
        match self {
            Charset::Utf8 => String::from_utf8(bytes.to_vec()).ok(),
            Charset::Utf16 { mark, big } => {
                let mut big = *big;
                let mut rest = bytes;
                if *mark {
                    match bytes {
                        [0xfe, 0xff, after @ ..] => rest = after,
                        [0xff, 0xfe, after @ ..] => (rest, big) = (after, false),
                        _ => return None,
                    }
                }
                if !rest.len().is_multiple_of(2) {
                    return None;
                }
                let unit = |pair: &[u8]| {
                    let pair = [pair[0], pair[1]];
                    if big { u16::from_be_bytes(pair) } else { u16::from_le_bytes(pair) }
                };
                String::from_utf16(&rest.chunks_exact(2).map(unit).collect::<Vec<_>>()).ok()
            }
            Charset::Latin1 => Some(bytes.iter().map(|byte| char::from(*byte)).collect()),
            Charset::Table(table) => {
                table.decode_without_bom_handling_and_without_replacement(bytes).map(std::borrow::Cow::into_owned)
            }
        }
    }
}

fn encode_text(call: &mut Call<'_>) -> Outcome {
    let (charset, name) = Charset::find(call.text(1))?;
    let bytes = charset.encode(call.text(0)).ok_or_else(|| {
        let message = format!("the given string contains characters that cannot be represented in {name}");
        Problem::Argument(0, message)
    })?;
    Ok(Value::string(STANDARD.encode(bytes)))
}

fn decode_text(call: &mut Call<'_>) -> Outcome {
    let (charset, name) = Charset::find(call.text(1))?;
    let bytes = LENIENT.decode(lenient(call.text(0))).map_err(|error| {
        let offset = match error {
            base64::DecodeError::InvalidByte(offset, _) => offset,
            _ => call.text(0).len() / 4 * 4,
        };
        Problem::Argument(0, format!("the given value is has an invalid base64 symbol at offset {offset}"))
    })?;
    let text = charset.decode(&bytes).filter(|text| !text.contains('\u{fffd}')).ok_or_else(|| {
        Problem::Argument(0, format!("the given string contains symbols that are not defined for {name}"))
    })?;
    Ok(Value::string(text))
}

fn url_encode(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    for byte in text.bytes() {
        match byte {
            b'A'..=b'Z' | b'a'..=b'z' | b'0'..=b'9' | b'-' | b'_' | b'.' | b'~' => out.push(char::from(byte)),
            b' ' => out.push('+'),
            _ => out.push_str(&format!("%{byte:02X}")),
        }
    }
    out
}

fn url_decode(text: &str) -> Outcome {
    let mut bytes = Vec::with_capacity(text.len());
    let mut rest = text.as_bytes();
    while let [first, after @ ..] = rest {
        rest = after;
        match first {
            b'+' => bytes.push(b' '),
            b'%' => {
                let digits = after.get(..2).and_then(|digits| std::str::from_utf8(digits).ok());
                let digits = digits.filter(|digits| digits.bytes().all(|digit| digit.is_ascii_hexdigit()));
                let Some(byte) = digits.and_then(|digits| u8::from_str_radix(digits, 16).ok()) else {
                    let start = text.len() - after.len() - 1;
                    let end = (start + 3).min(text.len());
                    let escape = quote_as_go(&String::from_utf8_lossy(&text.as_bytes()[start..end]));
                    return Err(Problem::Call(format!("failed to decode URL '': invalid URL escape {escape}")));
                };
                bytes.push(byte);
                rest = &after[2..];
            }
            _ => bytes.push(*first),
        }
    }
    let text = String::from_utf8(bytes).map_err(|_| Problem::Unsupported("a result that is not text".into()))?;
    Ok(Value::string(text))
}
