use std::fmt;
use std::str::FromStr;

use serde::{Deserialize, Deserializer, Serialize, Serializer};

const DAY: i64 = 86_400_000;

/// A moment in UTC, to the millisecond. On the wire it looks like `2026-11-16T00:12:01.123Z`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Timestamp {
    pub unix_millis: i64,
}

impl utoipa::PartialSchema for Timestamp {
    fn schema() -> utoipa::openapi::RefOr<utoipa::openapi::Schema> {
        use utoipa::openapi::{KnownFormat, ObjectBuilder, SchemaFormat, Type};
        let format = SchemaFormat::KnownFormat(KnownFormat::DateTime);
        ObjectBuilder::new().schema_type(Type::String).format(Some(format)).build().into()
    }
}

impl utoipa::ToSchema for Timestamp {}

impl fmt::Display for Timestamp {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (days, millis) = (self.unix_millis.div_euclid(DAY), self.unix_millis.rem_euclid(DAY));
        let (year, month, day) = date(days);
        let (seconds, millis) = (millis / 1000, millis % 1000);
        let (hour, minute, second) = (seconds / 3600, seconds / 60 % 60, seconds % 60);
        write!(f, "{year:04}-{month:02}-{day:02}T{hour:02}:{minute:02}:{second:02}.{millis:03}Z")
    }
}

impl FromStr for Timestamp {
    type Err = &'static str;

    /// Reads exactly the form that is written.
    fn from_str(text: &str) -> Result<Timestamp, &'static str> {
        let wrong = "not a time such as 2026-11-16T00:12:01.123Z";
        let number = |range: std::ops::Range<usize>| -> Result<i64, &'static str> {
            let digits = text.get(range).filter(|part| part.bytes().all(|b| b.is_ascii_digit()));
            digits.and_then(|digits| digits.parse().ok()).ok_or(wrong)
        };
        let days = days_since_1970(number(0..4)?, number(5..7)?, number(8..10)?);
        let seconds = number(11..13)? * 3600 + number(14..16)? * 60 + number(17..19)?;
        let moment = Timestamp { unix_millis: days * DAY + seconds * 1000 + number(20..23)? };
        if moment.to_string() == text { Ok(moment) } else { Err(wrong) }
    }
}

impl Serialize for Timestamp {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(self)
    }
}

impl<'de> Deserialize<'de> for Timestamp {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Timestamp, D::Error> {
        String::deserialize(deserializer)?.parse().map_err(serde::de::Error::custom)
    }
}

// Both directions count years from March, so that the leap day is the last day of a year, in eras of 400 years.

fn days_since_1970(year: i64, month: i64, day: i64) -> i64 {
    let year = if month <= 2 { year - 1 } else { year };
    let (era, year_of_era) = (year.div_euclid(400), year.rem_euclid(400));
    let day_of_year = (153 * ((month + 9) % 12) + 2) / 5 + day - 1;
    let day_of_era = year_of_era * 365 + year_of_era / 4 - year_of_era / 100 + day_of_year;
    era * 146_097 + day_of_era - 719_468
}

fn date(days_since_1970: i64) -> (i64, i64, i64) {
    let days = days_since_1970 + 719_468;
    let (era, day_of_era) = (days.div_euclid(146_097), days.rem_euclid(146_097));
    let year_of_era = (day_of_era - day_of_era / 1460 + day_of_era / 36_524 - day_of_era / 146_096) / 365;
    let day_of_year = day_of_era - (365 * year_of_era + year_of_era / 4 - year_of_era / 100);
    let month_from_march = (5 * day_of_year + 2) / 153;
    let day = day_of_year - (153 * month_from_march + 2) / 5 + 1;
    let month = if month_from_march < 10 { month_from_march + 3 } else { month_from_march - 9 };
    let year = year_of_era + era * 400 + i64::from(month <= 2);
    (year, month, day)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn known_moments() {
        let text = |unix_millis| Timestamp { unix_millis }.to_string();
        assert_eq!(text(0), "1970-01-01T00:00:00.000Z");
        assert_eq!(text(951_782_400_000), "2000-02-29T00:00:00.000Z");
        assert_eq!(text(1_794_787_921_123), "2026-11-16T00:12:01.123Z");
        assert_eq!(text(-1), "1969-12-31T23:59:59.999Z");
    }

    #[test]
    fn every_day_of_four_centuries_comes_back() {
        for day in 0..146_097 {
            let moment = Timestamp { unix_millis: day * DAY + day % 1000 };
            assert_eq!(moment.to_string().parse(), Ok(moment));
        }
    }

    #[test]
    fn nonsense_is_refused() {
        for text in ["", "2026", "2026-02-30T00:00:00.000Z", "2026-11-16T24:00:00.000Z", "2026-11-16T00:12:01.123+01"] {
            assert!(text.parse::<Timestamp>().is_err(), "{text}");
        }
    }
}
