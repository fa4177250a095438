//! `rsadecrypt`: RSA with the padding of PKCS #1 v1.5, for which the published crates either leak the key by their
//! timing or answer a wrong ciphertext with made-up bytes, where OpenTofu ends with an error.
//!
//! The arithmetic is that of `crypto-bigint`, whose time depends on the length of the modulus only: every secret number
//! is as wide as the modulus.

use base64::Engine;
use crypto_bigint::modular::{BoxedMontyForm, BoxedMontyParams};
use crypto_bigint::{BoxedUint, Choice, ConcatenatingMul, CtAssign, CtEq, CtGt, Limb, NonZero, Odd};
use landform_cty::{Value, quote_as_go};

use super::call::Call;
use super::encoding::{LENIENT, lenient};
use super::private_key::{Block, Numbers, Refusal};
use super::{Function, Kind, Outcome, Parameter, Problem, a_string};

const PARAMETERS: &[Parameter] =
    &[Parameter::new("ciphertext", Kind::String), Parameter::new("privatekey", Kind::String)];

pub(super) static FUNCTIONS: &[Function] = &[Function::new("rsadecrypt", PARAMETERS, a_string, rsa_decrypt)];

fn rsa_decrypt(call: &mut Call<'_>) -> Outcome {
    let ciphertext = LENIENT.decode(lenient(call.text(0))).map_err(|_| {
        let given = quote_as_go(call.text(0));
        Problem::Argument(0, format!("failed to decode input {given}: cipher text must be base64-encoded"))
    })?;
    let refuse = |refusal| match refusal {
        Refusal::Encoding(_, message) => {
            Problem::Argument(1, format!("invalid ASN1 data in the given private key: {message}"))
        }
        Refusal::OtherType => Problem::Argument(1, "invalid private key type".into()),
        Refusal::Key(message) => Problem::Argument(1, format!("invalid private key: {message}")),
        Refusal::Unsupported(construct) => Problem::Unsupported(construct),
    };
    let block = Block::find(call.text(1)).map_err(refuse)?;
    let numbers = block.numbers().map_err(refuse)?;
    // The time that it takes grows with the third power of the length.
    let length = numbers.modulus.len() as u64 / 64 + 1;
    call.budget.spend_steps(length.saturating_pow(3))?;
    let key = Key::new(&numbers);
    let key = if numbers.embedded { key.map_err(Refusal::embedded) } else { key }.map_err(refuse)?;
    let message = key.decrypt(&ciphertext).map_err(|error| Problem::Call(format!("failed to decrypt: {error}")))?;
    let text = String::from_utf8(message).map_err(|_| Problem::Unsupported("a result that is not text".into()))?;
    Ok(Value::string(text))
}

/// A key whose numbers belong together.
struct Key {
    modulus: Odd<BoxedUint>,
    private_exponent: BoxedUint,
    bits: u32,
}

impl Key {
    /// Checks that the numbers belong together, in the order in which Go does.
    fn new(numbers: &Numbers<'_>) -> Result<Key, Refusal> {
        let fail = |message: &str| Refusal::Key(message.to_owned());
        let modulus = BoxedUint::from_be_slice_vartime(trimmed(numbers.modulus));
        let (bits, precision) = (modulus.bits_vartime(), modulus.bits_precision());
        let below = |bytes: &[u8], limit: &BoxedUint| {
            let number = BoxedUint::from_be_slice(trimmed(bytes), precision).ok();
            number.filter(|number| number < limit)
        };
        let small = || fail("modulus must be > 1");
        let overflow = || fail("input overflows the modulus");
        if bits < 2 {
            return Err(small());
        }
        let private_exponent = below(numbers.private_exponent, &modulus).ok_or_else(overflow)?;
        let odd = Option::<Odd<BoxedUint>>::from(modulus.clone().into_odd());
        let odd = odd.ok_or_else(|| fail("crypto/rsa: public modulus is even"))?;
        let exponent = match numbers.exponent {
            ..2 => return Err(fail("crypto/rsa: public exponent too small or negative")),
            even if even % 2 == 0 => return Err(fail("crypto/rsa: public exponent is even")),
            large if large > i32::MAX.into() => return Err(fail("crypto/rsa: public exponent too large")),
            exponent => BoxedUint::from(exponent.unsigned_abs()),
        };
        let prime = |bytes| below(bytes, &modulus).ok_or_else(|| fail("crypto/rsa: invalid prime"));
        let (p, q) = (prime(numbers.primes[0])?, prime(numbers.primes[1])?);
        if p.concatenating_mul(&q) != modulus {
            return Err(fail("crypto/rsa: p * q != n"));
        }
        let one = BoxedUint::one_with_precision(precision);
        let mut shares = Vec::new();
        for (place, prime) in [&p, &q].into_iter().enumerate() {
            let less_one = nonzero(&minus(prime, &one)).ok_or_else(small)?;
            let share = private_exponent.rem(&less_one);
            let given = match numbers.shortcuts {
                Some(given) => below(given[place], less_one.as_ref()),
                None => Some(share.clone()),
            };
            let fits = |given: &BoxedUint| given.concatenating_mul(&exponent).rem(&less_one) == one;
            let given = given.filter(fits).ok_or_else(|| fail("crypto/rsa: invalid CRT exponent"))?;
            shares.push((share, given));
        }
        let first = nonzero(&p).ok_or_else(small)?;
        let inverse = match numbers.shortcuts {
            Some([_, _, given]) => q.concatenating_mul(below(given, &p).ok_or_else(overflow)?).rem(&first) == one,
            None => p != q,
        };
        if !inverse {
            return Err(fail("crypto/rsa: invalid CRT coefficient"));
        }
        for ((share, given), name) in shares.iter().zip(["dP", "dQ"]) {
            if share != given {
                return Err(fail(&format!("crypto/rsa: d does not match {name}")));
            }
        }
        // Primes that are close to each other give the key away, and so does a small exponent.
        let apart = if p > q { minus(&p, &q) } else { minus(&q, &p) };
        if apart.bits() + 100 <= bits / 2 {
            return Err(fail("crypto/rsa: |p - q| too small"));
        }
        if private_exponent.bits() <= bits / 2 {
            return Err(fail("crypto/rsa: d too small"));
        }
        Ok(Key { modulus: odd, private_exponent, bits })
    }

    fn decrypt(&self, ciphertext: &[u8]) -> Result<Vec<u8>, String> {
        let wrong = || "crypto/rsa: decryption error".to_owned();
        let bits = self.bits;
        if bits < 1024 {
            let page = "https://go.dev/pkg/crypto/rsa#hdr-Minimum_key_size";
            return Err(format!("crypto/rsa: {bits}-bit keys are insecure (see {page})"));
        }
        let ciphertext = BoxedUint::from_be_slice(trimmed(ciphertext), self.modulus.as_ref().bits_precision());
        let ciphertext = ciphertext.ok().filter(|number| number < self.modulus.as_ref()).ok_or_else(wrong)?;
        let parameters = BoxedMontyParams::new(self.modulus.clone());
        let padded = BoxedMontyForm::new(ciphertext, &parameters).pow(&self.private_exponent).retrieve();
        let padded = padded.to_be_bytes();
        unpad(&padded[padded.len() - bits.div_ceil(8) as usize..]).ok_or_else(wrong)
    }
}

/// The difference of two numbers of which the first is not the smaller one.
fn minus(larger: &BoxedUint, smaller: &BoxedUint) -> BoxedUint {
    larger.borrowing_sub(smaller, Limb::ZERO).0
}

fn nonzero(number: &BoxedUint) -> Option<NonZero<BoxedUint>> {
    number.to_nz().into()
}

fn trimmed(bytes: &[u8]) -> &[u8] {
    &bytes[bytes.iter().take_while(|byte| **byte == 0).count()..]
}

/// Zero, two, at least eight bytes that are not zero, zero, the message. What stands where is looked at in the same
/// time whatever it is; only whether all of it was right is told.
fn unpad(padded: &[u8]) -> Option<Vec<u8>> {
    let mut found = Choice::FALSE;
    let mut separator = 0u32;
    for (index, byte) in (0u32..).zip(padded).skip(2) {
        let here = byte.ct_eq(&0) & !found;
        separator.ct_assign(&index, here);
        found |= here;
    }
    let right = padded[0].ct_eq(&0) & padded[1].ct_eq(&2) & found & separator.ct_gt(&9);
    right.to_bool().then(|| padded[separator as usize + 1..].to_vec())
}
