//! Which addresses a server may speak to on behalf of somebody else: the public ones, and nothing behind its own walls.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

/// Whether an address is given out to the public. This machine, private networks and the clouds' metadata are not.
pub fn is_public(address: IpAddr) -> bool {
    match address {
        IpAddr::V4(address) => is_public_v4(address),
        IpAddr::V6(address) => match address.to_ipv4_mapped() {
            Some(address) => is_public_v4(address),
            None => is_public_v6(address),
        },
    }
}

fn is_public_v4(address: Ipv4Addr) -> bool {
    let [a, b, c, _] = address.octets();
    !(address.is_private()
        || address.is_loopback()
        || address.is_link_local() // the metadata services of the clouds
        || address.is_multicast()
        || address.is_broadcast()
        || address.is_documentation()
        || a == 0
        || (a == 100 && (64..128).contains(&b)) // carriers' own
        || (a == 192 && b == 0 && c == 0)
        || (a == 198 && (18..20).contains(&b)) // measurements
        || a >= 240)
}

fn is_public_v6(address: Ipv6Addr) -> bool {
    // Only what is given out to the public, without what carries another address inside: 6to4, Teredo and NAT64.
    let [first, second, ..] = address.segments();
    (0x2000..0x4000).contains(&first) && first != 0x2002 && !(first == 0x2001 && (second == 0 || second == 0xdb8))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_public_addresses_are_public() {
        for public in ["8.8.8.8", "2606:4700::1111", "::ffff:8.8.8.8"] {
            assert!(is_public(public.parse().unwrap()), "{public}");
        }
        for other in [
            "127.0.0.1",
            "10.1.2.3",
            "172.16.0.1",
            "192.168.1.1",
            "169.254.169.254",
            "100.100.100.200",
            "0.0.0.0",
            "224.0.0.1",
            "255.255.255.255",
            "::1",
            "::",
            "fe80::1",
            "fd00:ec2::254",
            "::ffff:169.254.169.254",
            "2002:7f00:1::",
            "64:ff9b::a9fe:a9fe",
            "ff02::1",
        ] {
            assert!(!is_public(other.parse().unwrap()), "{other}");
        }
    }
}
