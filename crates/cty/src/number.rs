use std::cmp::Ordering;
use std::fmt;

use bigdecimal::num_bigint::{BigInt, BigUint, Sign};
use bigdecimal::{BigDecimal, One, RoundingMode, Signed, ToPrimitive, Zero};

/// Bits of a number that was read from text.
const TEXT_PRECISION: u32 = 512;
/// Decimal digits that always survive a trip through 512 bits.
const SAFE_DIGITS: u64 = 153;
/// No number of a configuration is larger; without a bound `1e999999999` would fill the memory.
const MAX_EXPONENT: i64 = 10_000;

/// A number as Terraform has it: a binary floating-point number, nearly always of 512 bits.
///
/// A number that a provider sent as a double has 53 bits and one that began as an integer has 64; what that changes is
/// how it is written and what arithmetic makes of it, so it is kept. The number is stored as the shortest decimal that
/// stands for it, which is also how it is written.
#[derive(Clone)]
pub struct Number {
    digits: BigDecimal,
    precision: u32,
    /// Binary zero has a sign, and it is written.
    negative_zero: bool,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("a number is required")]
pub struct NotANumber;

impl Number {
    /// Reads decimal notation, with or without fraction and exponent.
    pub fn parse(text: &str) -> Result<Number, NotANumber> {
        let mantissa_end = text.find(['e', 'E']).unwrap_or(text.len());
        let (mantissa, exponent) = text.split_at(mantissa_end);
        let unsigned = mantissa.strip_prefix(['+', '-']).unwrap_or(mantissa);
        let digits = unsigned.bytes().filter(u8::is_ascii_digit).count();
        let points = unsigned.bytes().filter(|byte| *byte == b'.').count();
        if digits == 0 || points > 1 || digits + points != unsigned.len() || text.len() > 2 * MAX_EXPONENT as usize {
            return Err(NotANumber);
        }
        let exponent: i64 = match exponent.get(1..) {
            None => 0,
            Some(written) => written.parse().map_err(|_| NotANumber)?,
        };
        if exponent.abs() > MAX_EXPONENT {
            return Err(NotANumber);
        }
        let (whole, fraction) = unsigned.split_once('.').unwrap_or((unsigned, ""));
        let integer: BigInt = format!("{whole}{fraction}").parse().map_err(|_| NotANumber)?;
        let integer = if mantissa.starts_with('-') { -integer } else { integer };
        let digits = BigDecimal::new(integer, fraction.len() as i64 - exponent).normalized();
        if digits.digits() <= SAFE_DIGITS {
            let negative_zero = digits.is_zero() && mantissa.starts_with('-');
            return Ok(Number { digits, precision: TEXT_PRECISION, negative_zero });
        }
        let (numerator, denominator) = fraction_of(&digits);
        Ok(Number::rounded(&numerator, &denominator, TEXT_PRECISION))
    }

    /// Reads an integer of any size. Above base 36 small letters come before capital ones, below it they are the same.
    pub fn parse_integer(text: &str, base: u32) -> Option<Number> {
        let digits = text.strip_prefix(['+', '-']).unwrap_or(text);
        if digits.is_empty() || text.len() > MAX_EXPONENT as usize {
            return None;
        }
        let mut integer = BigInt::zero();
        for byte in digits.bytes() {
            let digit = match byte {
                b'0'..=b'9' => u32::from(byte - b'0'),
                b'a'..=b'z' => u32::from(byte - b'a') + 10,
                b'A'..=b'Z' if base <= 36 => u32::from(byte - b'A') + 10,
                b'A'..=b'Z' => u32::from(byte - b'A') + 36,
                _ => return None,
            };
            if digit >= base {
                return None;
            }
            integer = integer * base + digit;
        }
        let precision = u32::try_from(integer.bits()).ok()?.max(64);
        let integer = if text.starts_with('-') { -integer } else { integer };
        let digits = BigDecimal::new(integer, 0).normalized();
        Some(Number { digits, precision, negative_zero: false })
    }

    /// The double itself; `None` for infinities and not-a-number, which Terraform's language cannot express.
    pub fn from_f64(float: f64) -> Option<Number> {
        if !float.is_finite() {
            return None;
        }
        let bits = float.to_bits();
        let (fraction, power) = (bits & ((1 << 52) - 1), (bits >> 52) & 0x7ff);
        // The shortest decimal of a number of 53 bits, without regard to the doubles next to it: where they are not at
        // the same distance on both sides, it is not the one that Rust writes.
        if (fraction == 0 || power == 0) && float != 0.0 && float.fract() != 0.0 || float.abs() >= 1e15 && fraction == 0
        {
            let (mantissa, exponent) = match power {
                0 => (fraction, -1074),
                _ => (fraction | (1 << 52), power as i64 - 1075),
            };
            let mantissa = BigInt::from(mantissa) * if float < 0.0 { -1 } else { 1 };
            let scale = BigUint::one() << exponent.unsigned_abs();
            return Some(match exponent >= 0 {
                true => Number::rounded(&(mantissa * BigInt::from(scale)), &BigUint::one(), 53),
                false => Number::rounded(&mantissa, &scale, 53),
            });
        }
        // Rust writes the shortest decimal that reads back as the same double.
        let digits: BigDecimal = format!("{float}").parse().ok()?;
        let negative_zero = float == 0.0 && float.is_sign_negative();
        Some(Number { digits: digits.normalized(), precision: 53, negative_zero })
    }

    /// The double that is exactly this number, if there is one.
    pub fn to_exact_f64(&self) -> Option<f64> {
        let float: f64 = self.to_string().parse().ok()?;
        let exact = Number::from_f64(float)?;
        (exact == *self).then_some(float)
    }

    pub fn to_i64(&self) -> Option<i64> {
        if self.is_integer() { self.digits.to_i64() } else { None }
    }

    pub fn to_usize(&self) -> Option<usize> {
        if self.is_integer() { self.digits.to_usize() } else { None }
    }

    pub fn is_integer(&self) -> bool {
        self.digits.is_integer()
    }

    pub fn is_zero(&self) -> bool {
        self.digits.is_zero()
    }

    pub fn is_negative(&self) -> bool {
        self.digits.is_negative()
    }

    pub fn add(&self, other: &Number) -> Number {
        if self.negative_zero && other.negative_zero {
            return Number::zero(self.precision.max(other.precision), true);
        }
        self.combine(other, sum)
    }

    pub fn subtract(&self, other: &Number) -> Number {
        self.add(&other.negate())
    }

    pub fn multiply(&self, other: &Number) -> Number {
        // A product is made with all bits there are and then keeps as many as it needs, but not fewer than its factors.
        let ((a, b), (c, d)) = (self.value(), other.value());
        let (numerator, denominator) = (a * c, b * d);
        let factors = self.precision.max(other.precision);
        if numerator.is_zero() {
            return Number::zero(factors, self.is_signed() != other.is_signed());
        }
        let (mantissa, _) = round_to_bits(&numerator, &denominator, TEXT_PRECISION);
        let needed = mantissa.bits() - mantissa.trailing_zeros().unwrap_or(0);
        Number::rounded(&numerator, &denominator, factors.max(needed as u32))
    }

    /// `None`: division by zero.
    pub fn divide(&self, other: &Number) -> Option<Number> {
        if other.is_zero() {
            return None;
        }
        if self.is_zero() {
            return Some(Number::zero(self.precision.max(other.precision), self.is_signed() != other.is_signed()));
        }
        Some(self.combine(other, |(a, b), (c, d)| {
            let sign = c.signum();
            (a * BigInt::from(d) * sign, b * c.magnitude().clone())
        }))
    }

    /// The remainder, with the sign of the dividend; modulo zero a number stays as it is.
    ///
    /// It comes from the rounded quotient and not from exact arithmetic, since that is how Terraform computes it.
    pub fn modulo(&self, other: &Number) -> Number {
        let Some(quotient) = self.divide(other) else { return self.clone() };
        let whole = quotient.digits.with_scale_round(0, RoundingMode::Down).normalized();
        let whole = Number { digits: whole, precision: TEXT_PRECISION, negative_zero: false };
        let multiple = other.combine_at(&whole, self.precision, |(a, b), (c, d)| (a * c, b * d));
        if self.negative_zero {
            return self.clone();
        }
        self.combine_at(&multiple.negate(), self.precision, sum)
    }

    pub fn negate(&self) -> Number {
        let negative_zero = self.is_zero() && !self.negative_zero;
        Number { digits: -self.digits.clone(), precision: self.precision, negative_zero }
    }

    /// The largest integer that is not above this number.
    pub fn floor(&self) -> Number {
        self.to_integer(RoundingMode::Floor)
    }

    /// The smallest integer that is not below this number.
    pub fn ceil(&self) -> Number {
        self.to_integer(RoundingMode::Ceiling)
    }

    fn to_integer(&self, mode: RoundingMode) -> Number {
        let digits = self.digits.with_scale_round(0, mode).normalized();
        Number { digits, precision: self.precision, negative_zero: false }
    }

    fn zero(precision: u32, negative_zero: bool) -> Number {
        Number { digits: BigDecimal::zero(), precision, negative_zero }
    }

    /// Whether it has a minus sign, also as a zero.
    pub fn is_signed(&self) -> bool {
        self.negative_zero || self.is_negative()
    }

    fn combine(&self, other: &Number, op: impl FnOnce(Fraction, Fraction) -> Fraction) -> Number {
        self.combine_at(other, self.precision.max(other.precision), op)
    }

    fn combine_at(&self, other: &Number, precision: u32, op: impl FnOnce(Fraction, Fraction) -> Fraction) -> Number {
        let (numerator, denominator) = op(self.value(), other.value());
        Number::rounded(&numerator, &denominator, precision)
    }

    /// The exact value of the binary number that the digits stand for.
    fn value(&self) -> Fraction {
        let (numerator, denominator) = fraction_of(&self.digits);
        if denominator.is_one() && numerator.bits() <= u64::from(self.precision) {
            return (numerator, denominator);
        }
        let (mantissa, exponent) = round_to_bits(&numerator, &denominator, self.precision);
        let sign = if numerator.is_negative() { Sign::Minus } else { Sign::Plus };
        if exponent >= 0 {
            (BigInt::from_biguint(sign, mantissa << exponent as u64), BigUint::one())
        } else {
            (BigInt::from_biguint(sign, mantissa), BigUint::one() << exponent.unsigned_abs())
        }
    }

    fn rounded(numerator: &BigInt, denominator: &BigUint, precision: u32) -> Number {
        if numerator.is_zero() {
            return Number::zero(precision, false);
        }
        let (mantissa, exponent) = round_to_bits(numerator, denominator, precision);
        let shortest = shortest_decimal(&mantissa, exponent, precision);
        let digits = if numerator.is_negative() { -shortest } else { shortest };
        Number { digits: digits.normalized(), precision, negative_zero: false }
    }

    /// An integer in another base, with small letters; `None` for a fraction.
    pub fn to_radix(&self, base: u32) -> Option<String> {
        if !self.is_integer() {
            return None;
        }
        Some(fraction_of(&self.digits).0.to_str_radix(base))
    }

    /// With so many digits behind the point, rounded from the exact value.
    pub fn to_fixed(&self, places: u32) -> String {
        let rounded = self.exact().with_scale_round(i64::from(places), RoundingMode::HalfEven);
        let sign = if self.is_signed() { "-" } else { "" };
        format!("{sign}{}", rounded.abs().to_plain_string())
    }

    /// The significant digits, and the power of ten of the first: all that are needed, or so many, rounded from the exact
    /// value. Zeros at the end are left out. The sign is not told.
    pub fn to_significant(&self, count: Option<u32>) -> (String, i64) {
        if self.is_zero() {
            return ("0".to_owned(), 0);
        }
        let rounded = match count.and_then(|count| std::num::NonZeroU64::new(u64::from(count.max(1)))) {
            Some(count) => self.exact().with_precision_round(count, RoundingMode::HalfEven),
            None => self.digits.clone(),
        };
        let (integer, scale) = rounded.normalized().as_bigint_and_exponent();
        let text = integer.magnitude().to_string();
        let exponent = text.len() as i64 - 1 - scale;
        (text, exponent)
    }

    fn exact(&self) -> BigDecimal {
        let (numerator, denominator) = self.value();
        // The denominator is a power of two.
        let power = denominator.bits() - 1;
        BigDecimal::new(numerator * BigInt::from(BigUint::from(5u32).pow(power as u32)), power as i64)
    }

    /// Go's `%.10g`, which decides the order of objects inside a set.
    pub(crate) fn to_general_notation(&self) -> String {
        if self.is_zero() {
            return if self.negative_zero { "-0" } else { "0" }.to_owned();
        }
        let digits = self
            .digits
            .with_precision_round(std::num::NonZeroU64::new(10).expect("ten is not zero"), RoundingMode::HalfEven);
        let normal = digits.normalized();
        let (integer, scale) = normal.as_bigint_and_exponent();
        let text = integer.magnitude().to_string();
        let exponent = text.len() as i64 - 1 - scale;
        let sign = if integer.is_negative() { "-" } else { "" };
        if (-4..10).contains(&exponent) {
            return format!("{sign}{}", normal.abs().to_plain_string());
        }
        let point = if text.len() > 1 { "." } else { "" };
        let (first, rest) = text.split_at(1);
        let exponent_sign = if exponent < 0 { '-' } else { '+' };
        format!("{sign}{first}{point}{rest}e{exponent_sign}{:02}", exponent.abs())
    }
}

/// A numerator and a denominator that is not zero.
type Fraction = (BigInt, BigUint);

fn sum((a, b): Fraction, (c, d): Fraction) -> Fraction {
    (a * BigInt::from(d.clone()) + c * BigInt::from(b.clone()), b * d)
}

fn fraction_of(decimal: &BigDecimal) -> Fraction {
    let (integer, scale) = decimal.as_bigint_and_exponent();
    let power = BigUint::from(10u32).pow(scale.unsigned_abs() as u32);
    if scale <= 0 { (integer * BigInt::from(power), BigUint::one()) } else { (integer, power) }
}

/// The nearest `mantissa * 2^exponent` (ties to even) with exactly `precision` bits in the mantissa. Not for zero.
fn round_to_bits(numerator: &BigInt, denominator: &BigUint, precision: u32) -> (BigUint, i64) {
    let numerator = numerator.magnitude();
    // One bit more than needed, or two: the rest of the division decides about the rounding.
    let mut exponent = numerator.bits() as i64 - denominator.bits() as i64 - i64::from(precision) - 1;
    let (scaled, divisor) = if exponent >= 0 {
        (numerator.clone(), denominator << exponent as u64)
    } else {
        (numerator << exponent.unsigned_abs(), denominator.clone())
    };
    let mut mantissa = &scaled / &divisor;
    let inexact = !(&scaled % &divisor).is_zero();
    let surplus = mantissa.bits() - u64::from(precision);
    let dropped = &mantissa & ((BigUint::one() << surplus) - 1u32);
    mantissa >>= surplus;
    exponent += surplus as i64;
    if surplus > 0 {
        let half = BigUint::one() << (surplus - 1);
        if dropped > half || (dropped == half && (inexact || mantissa.bit(0))) {
            mantissa += 1u32;
        }
    }
    if mantissa.bits() > u64::from(precision) {
        mantissa >>= 1;
        exponent += 1;
    }
    (mantissa, exponent)
}

/// The shortest decimal that rounds to `mantissa * 2^exponent`, and the nearest of these.
fn shortest_decimal(mantissa: &BigUint, exponent: i64, precision: u32) -> BigDecimal {
    let exact = |doubled: BigUint| -> BigDecimal {
        let half_exponent = exponent - 1;
        if half_exponent >= 0 {
            BigDecimal::new(BigInt::from(doubled << half_exponent as u64), 0)
        } else {
            let power = half_exponent.unsigned_abs();
            BigDecimal::new(BigInt::from(doubled * BigUint::from(5u32).pow(power as u32)), power as i64)
        }
    };
    debug_assert_eq!(mantissa.bits(), u64::from(precision));
    let doubled = mantissa << 1u32;
    let inclusive = !mantissa.bit(0);
    let value = exact(doubled.clone());
    let lower = exact(&doubled - 1u32);
    let upper = exact(&doubled + 1u32);
    let fits = |candidate: &BigDecimal| {
        if inclusive { *candidate >= lower && *candidate <= upper } else { *candidate > lower && *candidate < upper }
    };
    // If n digits are enough then n + 1 are too, so the least number of digits is found by halving.
    let nearest = |digits: u64| {
        let places = std::num::NonZeroU64::new(digits).expect("at least one digit");
        value.with_precision_round(places, RoundingMode::HalfEven)
    };
    let (mut low, mut high) = (1, value.digits());
    while low < high {
        let middle = (low + high) / 2;
        if fits(&nearest(middle)) { high = middle } else { low = middle + 1 }
    }
    nearest(low)
}

impl PartialEq for Number {
    fn eq(&self, other: &Number) -> bool {
        self.cmp(other) == Ordering::Equal
    }
}

impl Eq for Number {}

impl PartialOrd for Number {
    fn partial_cmp(&self, other: &Number) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl Ord for Number {
    fn cmp(&self, other: &Number) -> Ordering {
        let exact = |number: &Number| number.is_integer() && number.digits.digits() <= 15;
        // Digits are in the order of what they stand for, unless they stand for it at different precisions.
        if self.precision == other.precision || exact(self) || exact(other) {
            return self.digits.cmp(&other.digits);
        }
        let ((a, b), (c, d)) = (self.value(), other.value());
        (a * BigInt::from(d)).cmp(&(c * BigInt::from(b)))
    }
}

impl fmt::Display for Number {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.negative_zero {
            return f.write_str("-0");
        }
        f.write_str(&self.digits.to_plain_string())
    }
}

impl fmt::Debug for Number {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{self}")
    }
}

macro_rules! from_integer {
    ($($integer:ty),*) => {$(
        impl From<$integer> for Number {
            fn from(integer: $integer) -> Number {
                Number { digits: BigDecimal::from(integer as i128).normalized(), precision: 64, negative_zero: false }
            }
        }
    )*};
}
from_integer!(i32, u32, i64, u64, usize);

#[cfg(test)]
mod tests {
    use super::*;

    fn number(text: &str) -> Number {
        Number::parse(text).unwrap()
    }

    #[test]
    fn text_is_read_exactly_and_written_without_an_exponent() {
        for (text, written) in [
            ("0", "0"),
            ("-0.50", "-0.5"),
            ("-0", "-0"),
            ("1e3", "1000"),
            ("1.5E-3", "0.0015"),
            ("+7.", "7"),
            (".5", "0.5"),
            ("123456789012345678901234567890.000000000000001", "123456789012345678901234567890.000000000000001"),
        ] {
            assert_eq!(number(text).to_string(), written);
        }
    }

    #[test]
    fn what_is_no_number_is_refused() {
        for text in
            ["", ".", "e5", "1e", "0x10", "1_000", "Inf", "NaN", " 1", "1.2.3", "--1", "1e999999999", "1e-99999"]
        {
            assert_eq!(Number::parse(text), Err(NotANumber), "{text:?}");
        }
    }

    #[test]
    fn arithmetic_rounds_to_binary_digits() {
        assert_eq!(number("0.1").add(&number("0.2")).to_string(), "0.3");
        let third = number("1").divide(&number("3")).unwrap();
        assert_eq!(third.to_string(), format!("0.{}5", "3".repeat(154)));
        assert_eq!(third.multiply(&number("3")).to_string(), "1");
        assert_eq!(number("1.1").multiply(&number("1.1")).to_string(), format!("1.21{}1", "0".repeat(151)));
        assert_eq!(number("7").modulo(&number("3")).to_string(), "1");
        assert_eq!(number("-7").modulo(&number("3")).to_string(), "-1");
        assert_eq!(number("0.3").modulo(&number("0.1")).to_string(), "0");
        assert_eq!(number("5").modulo(&number("0")).to_string(), "5");
        assert_eq!(number("10").divide(&number("4")).unwrap().to_string(), "2.5");
        assert_eq!(number("1").divide(&number("0")), None);
    }

    #[test]
    fn a_double_is_written_short_but_is_not_the_decimal() {
        let double = Number::from_f64(0.1).unwrap();
        assert_eq!(double.to_string(), "0.1");
        assert_ne!(double, number("0.1"));
        assert_eq!(double.to_exact_f64(), Some(0.1));
        assert_eq!(number("0.1").to_exact_f64(), None);
        assert_eq!(number("0.5").to_exact_f64(), Some(0.5));
        assert_eq!(Number::from_f64(0.5).unwrap(), number("0.5"));
        assert_eq!(Number::from_f64(f64::INFINITY), None);
    }

    #[test]
    fn general_notation_is_that_of_go() {
        for (text, written) in [
            ("0", "0"),
            ("123", "123"),
            ("-1.5", "-1.5"),
            ("12345678901", "1.23456789e+10"),
            ("0.00001", "1e-05"),
            ("0.0001", "0.0001"),
        ] {
            assert_eq!(number(text).to_general_notation(), written);
        }
    }
}
