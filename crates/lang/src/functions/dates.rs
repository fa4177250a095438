//! Timestamps of RFC 3339.

use std::time::{SystemTime, UNIX_EPOCH};

use landform_cty::{Type, Value, quote_as_go};

use super::call::Call;
use super::{Function, Kind, Outcome, Parameter, Problem, a_number, a_string};
use crate::Impure;

pub(super) static FUNCTIONS: &[Function] = &[
    Function::new(
        "formatdate",
        &[Parameter::new("format", Kind::String), Parameter::new("time", Kind::String)],
        a_string,
        |call| {
            let time = Time::parse(call.text(1), true).map_err(|message| Problem::Argument(1, message))?;
            format_date(call.text(0), &time).map(Value::string).map_err(|message| Problem::Argument(0, message))
        },
    ),
    Function::new(
        "timeadd",
        &[Parameter::new("timestamp", Kind::String), Parameter::new("duration", Kind::String)],
        a_string,
        |call| {
            let mut time = Time::parse(call.text(0), true).map_err(Problem::Call)?;
            time.nanoseconds += parse_duration(call.text(1)).map_err(Problem::Call)?;
            Ok(Value::string(time.write()))
        },
    ),
    Function::new(
        "timecmp",
        &[Parameter::new("timestamp_a", Kind::String), Parameter::new("timestamp_b", Kind::String)],
        a_number,
        |call| {
            let time =
                |index| Time::parse(call.text(index), false).map_err(|message| Problem::Argument(index, message));
            Ok(Value::number(time(0)?.nanoseconds.cmp(&time(1)?.nanoseconds) as i32))
        },
    ),
    Function::new("timestamp", &[], a_string, timestamp),
    Function::new("plantimestamp", &[], a_string, |call| match call.scope.world().plan_time {
        Some(time) => Ok(Value::string(time)),
        None if call.scope.world().impure == Impure::Unknown => Ok(Value::unknown(Type::String)),
        None => Err(Problem::Unsupported("in this place".into())),
    })
    .may_be_null(),
];

fn timestamp(call: &mut Call<'_>) -> Outcome {
    match call.scope.world().impure {
        Impure::Allowed => {
            let since = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
            Ok(Value::string(Time { nanoseconds: i128::from(since.as_secs()) * SECOND, offset: 0 }.write()))
        }
        Impure::Unknown => Ok(Value::unknown(Type::String)),
        Impure::Unsupported => Err(Problem::Unsupported("in this place".into())),
    }
}

const SECOND: i128 = 1_000_000_000;

struct Time {
    /// Since 1970, in UTC.
    nanoseconds: i128,
    /// Of the place, in seconds.
    offset: i64,
}

/// What a clock on the wall says.
struct Clock {
    year: i64,
    month: u32,
    day: u32,
    hour: u32,
    minute: u32,
    second: u32,
    /// 0 is Sunday.
    weekday: usize,
}

impl Time {
    /// Go's own reader, which `timecmp` uses, lets some things pass.
    fn parse(text: &str, strict: bool) -> Result<Time, String> {
        let fail = |reason: String| format!("not a valid RFC3339 timestamp: {reason}");
        let mut rest = text;
        let mut number = |mut digits: usize, what: &str, before: &str| -> Result<i64, String> {
            if !before.is_empty() {
                rest = rest.strip_prefix(before).ok_or_else(|| match (rest.is_empty(), before) {
                    (_, "T") => fail("missing required time introducer 'T'".into()),
                    (true, _) => fail(format!("end of string where {before:?} is expected")),
                    (false, _) => fail(format!("found {} where {before:?} is expected", quote_as_go(rest))),
                })?;
            }
            if !strict && what == "hour" && rest.as_bytes().get(1) == Some(&b':') {
                digits = 1;
            }
            let given = rest.get(..digits).filter(|given| given.bytes().all(|byte| byte.is_ascii_digit()));
            match given {
                Some(given) => {
                    rest = &rest[digits..];
                    Ok(given.parse().expect("digits are a number"))
                }
                None if rest.is_empty() => Err(fail(format!("end of string before {what}"))),
                None => Err(fail(format!("cannot use {} as {what}", quote_as_go(rest)))),
            }
        };
        let year = number(4, "year", "")?;
        let month = number(2, "month", "-")?;
        let day = number(2, "day of month", "-")?;
        let hour = number(2, "hour", "T")?;
        let minute = number(2, "minute", ":")?;
        let second = number(2, "second", ":")?;
        let mut fraction: i128 = 0;
        if let Some(after) = rest.strip_prefix(|point| point == '.' || (point == ',' && !strict)) {
            let digits = after.bytes().take_while(u8::is_ascii_digit).count();
            if digits > 0 {
                let used = &after[..digits.min(9)];
                fraction = format!("{used:0<9}").parse().expect("digits are a number");
                rest = &after[digits..];
            }
        }
        let offset = match rest {
            "Z" => 0,
            _ => parse_offset(rest, strict).ok_or_else(|| match rest.is_empty() {
                true => fail("end of string before UTC offset".into()),
                false => fail(format!("cannot use {} as UTC offset", quote_as_go(rest))),
            })?,
        };
        let out_of_range = |what: &str| format!("not a valid RFC3339 timestamp: {what} out of range");
        if !(1..=12).contains(&month) {
            return Err(out_of_range("month"));
        }
        if hour > 23 {
            return Err(out_of_range("hour"));
        }
        if minute > 59 {
            return Err(out_of_range("minute"));
        }
        if second > 59 {
            return Err(out_of_range("second"));
        }
        if day < 1 || day > i64::from(days_in_month(year, month as u32)) {
            return Err(out_of_range("day"));
        }
        let days = days_from_civil(year, month, day);
        let seconds = days * 86_400 + hour * 3600 + minute * 60 + second - offset;
        Ok(Time { nanoseconds: i128::from(seconds) * SECOND + fraction, offset })
    }

    fn clock(&self) -> Clock {
        let seconds = self.nanoseconds.div_euclid(SECOND) as i64 + self.offset;
        let (days, of_day) = (seconds.div_euclid(86_400), seconds.rem_euclid(86_400) as u32);
        let (year, month, day) = civil_from_days(days);
        let weekday = (days + 4).rem_euclid(7) as usize;
        Clock { year, month, day, hour: of_day / 3600, minute: of_day / 60 % 60, second: of_day % 60, weekday }
    }

    fn write(&self) -> String {
        let Clock { year, month, day, hour, minute, second, .. } = self.clock();
        let zone = if self.offset == 0 { "Z".to_owned() } else { self.zone(":") };
        format!("{year:04}-{month:02}-{day:02}T{hour:02}:{minute:02}:{second:02}{zone}")
    }

    fn zone(&self, separator: &str) -> String {
        let sign = if self.offset < 0 { '-' } else { '+' };
        let minutes = self.offset.abs() / 60;
        format!("{sign}{:02}{separator}{:02}", minutes / 60, minutes % 60)
    }
}

pub(super) fn is_valid(text: &str) -> bool {
    Time::parse(text, true).is_ok()
}

fn parse_offset(text: &str, strict: bool) -> Option<i64> {
    let (sign, rest) = match text.as_bytes().first()? {
        b'+' => (1, &text[1..]),
        b'-' => (-1, &text[1..]),
        _ => return None,
    };
    let (hours, minutes) = rest.split_once(':')?;
    let number = |text: &str, most: i64| {
        let plain = text.len() == 2 && text.bytes().all(|byte| byte.is_ascii_digit());
        plain.then(|| text.parse::<i64>().ok())?.filter(|number| *number <= most)
    };
    let (most_hours, most_minutes) = if strict { (23, 59) } else { (24, 60) };
    Some(sign * (number(hours, most_hours)? * 3600 + number(minutes, most_minutes)? * 60))
}

/// Days since 1970, by counting years from March on: a leap day is then the last of its year.
fn days_from_civil(year: i64, month: i64, day: i64) -> i64 {
    let year = if month <= 2 { year - 1 } else { year };
    let era = year.div_euclid(400);
    let of_era = year.rem_euclid(400);
    let of_year = (153 * ((month + 9) % 12) + 2) / 5 + day - 1;
    era * 146_097 + of_era * 365 + of_era / 4 - of_era / 100 + of_year - 719_468
}

fn civil_from_days(days: i64) -> (i64, u32, u32) {
    let days = days + 719_468;
    let era = days.div_euclid(146_097);
    let of_era = days.rem_euclid(146_097);
    let year_of_era = (of_era - of_era / 1460 + of_era / 36_524 - of_era / 146_096) / 365;
    let of_year = of_era - (365 * year_of_era + year_of_era / 4 - year_of_era / 100);
    let from_march = (5 * of_year + 2) / 153;
    let day = (of_year - (153 * from_march + 2) / 5 + 1) as u32;
    let month = ((from_march + 2) % 12 + 1) as u32;
    (era * 400 + year_of_era + i64::from(month <= 2), month, day)
}

fn days_in_month(year: i64, month: u32) -> u32 {
    match month {
        2 if year % 4 == 0 && (year % 100 != 0 || year % 400 == 0) => 29,
        2 => 28,
        4 | 6 | 9 | 11 => 30,
        _ => 31,
    }
}

/// Go's durations: `1h30m`, `-1.5s`.
fn parse_duration(text: &str) -> Result<i128, String> {
    let quoted = quote_as_go(text);
    let invalid = || format!("time: invalid duration {quoted}");
    let (negative, mut rest) = match text.as_bytes().first() {
        Some(b'-') => (true, &text[1..]),
        Some(b'+') => (false, &text[1..]),
        _ => (false, text),
    };
    if rest == "0" {
        return Ok(0);
    }
    if rest.is_empty() {
        return Err(invalid());
    }
    let mut total: i128 = 0;
    while !rest.is_empty() {
        let digits = rest.bytes().take_while(u8::is_ascii_digit).count();
        let whole: i128 = if digits == 0 { 0 } else { rest[..digits].parse().map_err(|_| invalid())? };
        rest = &rest[digits..];
        let mut fraction = "";
        if let Some(after) = rest.strip_prefix('.') {
            let count = after.bytes().take_while(u8::is_ascii_digit).count();
            (fraction, rest) = after.split_at(count);
        }
        if digits == 0 && fraction.is_empty() {
            return Err(invalid());
        }
        let length = rest.find(|character: char| character == '.' || character.is_ascii_digit()).unwrap_or(rest.len());
        let (unit, after) = rest.split_at(length);
        if unit.is_empty() {
            return Err(format!("time: missing unit in duration {quoted}"));
        }
        let size: i128 = match unit {
            "ns" => 1,
            "us" | "µs" | "μs" => 1000,
            "ms" => 1_000_000,
            "s" => SECOND,
            "m" => 60 * SECOND,
            "h" => 3600 * SECOND,
            _ => return Err(format!("time: unknown unit {} in duration {quoted}", quote_as_go(unit))),
        };
        if whole > i128::from(i64::MAX) {
            return Err(invalid());
        }
        total += whole * size;
        // Go adds the fraction as a float, which is exact for as many digits as anybody writes.
        let used = &fraction[..fraction.len().min(18)];
        if !used.is_empty() {
            total += used.parse::<i128>().map_err(|_| invalid())? * size / 10i128.pow(used.len() as u32);
        }
        if total > i128::from(i64::MAX) {
            return Err(invalid());
        }
        rest = after;
    }
    Ok(if negative { -total } else { total })
}

fn format_date(pattern: &str, time: &Time) -> Result<String, String> {
    const MONTHS: [&str; 12] = [
        "January",
        "February",
        "March",
        "April",
        "May",
        "June",
        "July",
        "August",
        "September",
        "October",
        "November",
        "December",
    ];
    const DAYS: [&str; 7] = ["Sunday", "Monday", "Tuesday", "Wednesday", "Thursday", "Friday", "Saturday"];
    let clock = time.clock();
    let mut out = String::new();
    let mut rest = pattern;
    while let Some(first) = rest.chars().next() {
        if first == '\'' {
            rest = quoted_literal(rest, &mut out)?;
            continue;
        }
        if !first.is_ascii_alphabetic() {
            out.push(first);
            rest = &rest[first.len_utf8()..];
            continue;
        }
        let count = rest.chars().take_while(|character| *character == first).count();
        let verb = &rest[..count];
        rest = &rest[count..];
        let invalid = |hint: &str| Err(format!("invalid date format verb {verb:?}{hint}"));
        let plain = |number: u32, hint: &str| match count {
            1 => Ok(number.to_string()),
            2 => Ok(format!("{number:02}")),
            _ => invalid(hint),
        };
        let month = MONTHS[clock.month as usize - 1];
        let twelve = if clock.hour.is_multiple_of(12) { 12 } else { clock.hour % 12 };
        let written = match (first, count) {
            ('Y', 2) => format!("{:02}", clock.year % 100),
            ('Y', 4) => format!("{:04}", clock.year),
            ('Y', _) => return invalid(": year must either be \"YY\" or \"YYYY\""),
            ('M', 1 | 2) => plain(clock.month, "")?,
            ('M', 3) => month[..3].to_owned(),
            ('M', 4) => month.to_owned(),
            ('M', _) => return invalid(": month must be \"M\", \"MM\", \"MMM\", or \"MMMM\""),
            ('D', _) => plain(clock.day, ": day of month must either be \"D\" or \"DD\"")?,
            ('E', 3) => DAYS[clock.weekday][..3].to_owned(),
            ('E', 4) => DAYS[clock.weekday].to_owned(),
            ('E', _) => return invalid(": day of week must either be \"EEE\" or \"EEEE\""),
            ('h', _) => plain(clock.hour, ": 24-hour must either be \"h\" or \"hh\"")?,
            ('H', _) => plain(twelve, ": 12-hour must either be \"H\" or \"HH\"")?,
            ('A', 2) => if clock.hour < 12 { "AM" } else { "PM" }.to_owned(),
            ('a', 2) => if clock.hour < 12 { "am" } else { "pm" }.to_owned(),
            ('A' | 'a', _) => return invalid(&format!(": must be \"{first}{first}\"")),
            ('m', _) => plain(clock.minute, ": minute must either be \"m\" or \"mm\"")?,
            ('s', _) => plain(clock.second, ": second must either be \"s\" or \"ss\"")?,
            ('Z', 1) if time.offset == 0 => "Z".to_owned(),
            ('Z', 1 | 5) => time.zone(":"),
            ('Z', 3) if time.offset == 0 => "UTC".to_owned(),
            ('Z', 3 | 4) => time.zone(""),
            ('Z', _) => return invalid(": timezone must be Z, ZZZZ, or ZZZZZ"),
            _ => return invalid(""),
        };
        out.push_str(&written);
    }
    Ok(out)
}

/// Writes text in quotes, and says what follows. Two quotes are one, inside and alone.
fn quoted_literal<'a>(rest: &'a str, out: &mut String) -> Result<&'a str, String> {
    if let Some(after) = rest.strip_prefix("''") {
        out.push('\'');
        return Ok(after);
    }
    let mut inner = &rest[1..];
    loop {
        let Some(at) = inner.find('\'') else { return Err("unterminated literal '".to_owned()) };
        out.push_str(&inner[..at]);
        inner = &inner[at + 1..];
        match inner.strip_prefix('\'') {
            Some(after) => {
                out.push('\'');
                inner = after;
            }
            None => return Ok(inner),
        }
    }
}
