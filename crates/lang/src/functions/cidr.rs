//! Addresses of networks, as numbers of 32 or 128 bits.

use std::net::{Ipv4Addr, Ipv6Addr};

use landform_cty::{Number, Type, Value};

use super::call::{Call, integer};
use super::{Function, Kind, Outcome, Parameter, Problem, a_bool, a_string, strings_list};

const PREFIX: Parameter = Parameter::new("prefix", Kind::String);
const NEWBITS: Parameter = Parameter::new("newbits", Kind::Number);

pub(super) static FUNCTIONS: &[Function] = &[
    Function::new("cidrhost", &[PREFIX, Parameter::new("hostnum", Kind::Number)], a_string, host),
    Function::new("cidrnetmask", &[PREFIX], a_string, |call| {
        let network = Network::parse(call.text(0)).map_err(invalid)?;
        network.check()?;
        if network.bits != 32 {
            return Err(Problem::Call(format!("IPv6 addresses cannot have a netmask: {}", call.text(0))));
        }
        Ok(Value::string(write(network.mask(), 32)))
    }),
    Function::new("cidrsubnet", &[PREFIX, NEWBITS, Parameter::new("netnum", Kind::Number)], a_string, subnet),
    Function::new("cidrsubnets", &[PREFIX], strings_list, subnets).and(NEWBITS),
    Function::new(
        "cidrcontains",
        &[Parameter::new("containing_prefix", Kind::String), Parameter::new("contained_ip_or_prefix", Kind::String)],
        a_bool,
        contains,
    )
    .may_be_null(),
];

fn invalid(reason: String) -> Problem {
    Problem::Call(format!("invalid CIDR expression: {reason}"))
}

#[derive(Clone, Copy)]
struct Network {
    address: u128,
    length: u32,
    bits: u32,
}

impl Network {
    fn parse(text: &str) -> Result<Network, String> {
        let fail = || format!("invalid CIDR address: {text}");
        let (address, length) = text.split_once('/').ok_or_else(fail)?;
        let (address, bits) = parse_address(address).ok_or_else(fail)?;
        let plain = !length.is_empty() && length.bytes().all(|byte| byte.is_ascii_digit());
        let length: u32 = if plain { length.parse().map_err(|_| fail())? } else { return Err(fail()) };
        if length > bits {
            return Err(fail());
        }
        let network = Network { address, length, bits };
        Ok(Network { address: address & network.mask(), ..network })
    }

    /// OpenTofu mixes up the two kinds of addresses where one is written as the other.
    fn check(self) -> Result<(), Problem> {
        if self.bits == 128 && self.address >> 32 == 0xffff {
            return Err(Problem::Unsupported("an IPv4 address written as an IPv6 address".into()));
        }
        Ok(())
    }

    fn mask(self) -> u128 {
        mask(self.length, self.bits)
    }

    fn last(self) -> u128 {
        self.address | (all(self.bits) & !self.mask())
    }

    fn contains(self, address: u128) -> bool {
        address & self.mask() == self.address
    }

    fn write(self) -> String {
        format!("{}/{}", write(self.address, self.bits), self.length)
    }
}

fn all(bits: u32) -> u128 {
    if bits == 128 { u128::MAX } else { (1 << bits) - 1 }
}

fn mask(length: u32, bits: u32) -> u128 {
    let hosts = bits - length;
    if hosts >= 128 { 0 } else { all(bits) & !((1u128 << hosts) - 1) }
}

/// The address, and of how many bits it is. Numbers may begin with zeros, and are decimal all the same.
fn parse_address(text: &str) -> Option<(u128, u32)> {
    if text.contains(':') {
        return text.parse::<Ipv6Addr>().ok().map(|address| (u128::from(address), 128));
    }
    let parts: Vec<&str> = text.split('.').collect();
    if parts.len() != 4 {
        return None;
    }
    let mut address = 0u128;
    for part in parts {
        if part.is_empty() || !part.bytes().all(|byte| byte.is_ascii_digit()) {
            return None;
        }
        address = (address << 8) | u128::from(part.parse::<u64>().ok().and_then(|number| u8::try_from(number).ok())?);
    }
    Some((address, 32))
}

fn write(address: u128, bits: u32) -> String {
    if bits == 32 {
        return Ipv4Addr::from(address as u32).to_string();
    }
    let address = Ipv6Addr::from(address);
    match address.to_ipv4_mapped() {
        Some(mapped) => mapped.to_string(),
        None => address.to_string(),
    }
}

/// A whole number and whether it is negative.
fn whole(value: &Value) -> Result<(Number, bool), Problem> {
    let number = value.as_number().cloned().unwrap_or_else(|| Number::from(0));
    if !number.is_integer() {
        return Err(Problem::Call("value must be a whole number".into()));
    }
    let negative = number.is_negative();
    Ok((if negative { number.negate() } else { number }, negative))
}

fn small(number: &Number) -> Option<u128> {
    number.to_string().parse().ok()
}

fn host(call: &mut Call<'_>) -> Outcome {
    let (size, negative) = whole(&call.args[1])?;
    let network = Network::parse(call.text(0)).map_err(invalid)?;
    network.check()?;
    // OpenTofu counts to 64 bits only, and goes on with what is left of a larger number.
    if network.bits - network.length >= 64 && small(&size).is_none_or(|size| size > u128::from(u64::MAX)) {
        return Err(Problem::Unsupported("a host number of more than 64 bits".into()));
    }
    let most = all(network.bits) & !network.mask();
    let counted = match (small(&size), negative) {
        (Some(size), false) => Some(size),
        (Some(size), true) => Some(size - 1),
        (None, _) => None,
    };
    let Some(counted) = counted.filter(|counted| *counted <= most) else {
        let number = if negative {
            // OpenTofu names the number as counted from the end.
            let most = Number::parse(&most.to_string()).expect("a number");
            most.subtract(&size.subtract(&Number::from(1)))
        } else {
            size
        };
        let message = format!("prefix of {} does not accommodate a host numbered {number}", network.length);
        return Err(Problem::Call(message));
    };
    let number = if negative { most - counted } else { counted };
    Ok(Value::string(write(network.address | number, network.bits)))
}

fn subnet(call: &mut Call<'_>) -> Outcome {
    let more = call.integer(1).map_err(Problem::Call)?;
    let (number, negative) = whole(&call.args[2])?;
    let network = Network::parse(call.text(0)).map_err(invalid)?;
    network.check()?;
    if more < 0 || negative {
        return Err(Problem::Unsupported("a negative number".into()));
    }
    let length = i64::from(network.length).saturating_add(more);
    if length > i64::from(network.bits) {
        let message = format!("insufficient address space to extend prefix of {} by {more}", network.length);
        return Err(Problem::Call(message));
    }
    let length = length as u32;
    let most = if more >= 128 { u128::MAX } else { (1u128 << more) - 1 };
    let Some(position) = small(&number).filter(|number| *number <= most) else {
        let message = format!("prefix extension of {more} does not accommodate a subnet numbered {number}");
        return Err(Problem::Call(message));
    };
    let shift = network.bits - length;
    let offset = if shift >= 128 { 0 } else { position << shift };
    Ok(Value::string(Network { address: network.address | offset, length, bits: network.bits }.write()))
}

fn subnets(call: &mut Call<'_>) -> Outcome {
    let network = Network::parse(call.text(0))
        .map_err(|reason| Problem::Argument(0, format!("invalid CIDR expression: {reason}")))?;
    network.check()?;
    let bits = network.bits;
    let mut found = Vec::new();
    // Before the first one stands the one that ends right before the network.
    let mut current = Network { address: network.address.wrapping_sub(1) & all(bits), length: bits, bits };
    for (index, argument) in call.args.iter().enumerate().skip(1) {
        let fail = |message: String| Problem::Argument(index, message);
        let more = integer(argument).map_err(fail)?;
        if more < 1 {
            return Err(fail("must extend prefix by at least one bit".into()));
        }
        if more > 32 {
            return Err(fail("may not extend prefix by more than 32 bits".into()));
        }
        let length = network.length + more as u32;
        if length > bits {
            let protocol = if bits == 32 { "IPv4" } else { "IPv6" };
            return Err(fail(format!(
                "would extend prefix to {length} bits, which is too long for an {protocol} address"
            )));
        }
        if index == 1 {
            current = Network { address: current.address & mask(length, bits), length, bits };
        }
        let around = Network { address: current.last() & mask(length, bits), length, bits };
        let next = around.last().wrapping_add(1) & all(bits);
        if next == 0 || !network.contains(next) {
            return Err(fail(format!(
                "not enough remaining address space for a subnet with a prefix of {length} bits after {}",
                current.write()
            )));
        }
        current = Network { address: next, length, bits };
        found.push(Value::string(current.write()));
    }
    Ok(Value::list(Type::String, found))
}

fn contains(call: &mut Call<'_>) -> Outcome {
    let (prefix, given) = (call.text(0), call.text(1));
    let network = Network::parse(prefix).map_err(Problem::Call)?;
    network.check()?;
    let (first, last, bits) = match parse_address(given) {
        Some((address, bits)) => (address, address, bits),
        None => {
            let inner =
                Network::parse(given).map_err(|_| Problem::Call(format!("invalid IP address or prefix: {given}")))?;
            (inner.address, inner.last(), inner.bits)
        }
    };
    if bits != network.bits {
        return Err(Problem::Call(format!("address family mismatch: {prefix} vs. {given}")));
    }
    Ok(Value::bool(network.contains(first) && network.contains(last)))
}
