//! Which addresses are the public internet. Everything else is refused, whatever name led there.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

/// What an address is instead of public; none when it is.
pub fn refusal(address: IpAddr) -> Option<&'static str> {
    match address {
        IpAddr::V4(address) => v4(address),
        IpAddr::V6(address) => v6(address),
    }
}

fn v4(address: Ipv4Addr) -> Option<&'static str> {
    match address.octets() {
        [0, ..] => Some("an unspecified address"),
        [127, ..] => Some("a loopback address"),
        [10, ..] | [172, 16..=31, ..] | [192, 168, ..] => Some("a private address"),
        [100, 64..=127, ..] => Some("a carrier's private address"),
        [169, 254, 169, 254] => Some("a cloud's metadata address"),
        [169, 254, ..] => Some("a link-local address"),
        // Looks public, and is a cloud's own side of every machine in it.
        [168, 63, 129, 16] => Some("a cloud's metadata address"),
        [192, 0, 0, _] | [192, 88, 99, _] => Some("a reserved address"),
        [192, 0, 2, _] | [198, 51, 100, _] | [203, 0, 113, _] => Some("an address for documentation"),
        [198, 18..=19, ..] => Some("an address for benchmarks"),
        [224..=239, ..] => Some("a multicast address"),
        [240..=255, ..] => Some("a reserved address"),
        _ => None,
    }
}

/// Global unicast is 2000::/3; of that, what is not somebody's own network or leads back to IPv4 is left out.
fn v6(address: Ipv6Addr) -> Option<&'static str> {
    let segments = address.segments();
    match segments {
        [0, 0, 0, 0, 0, 0, 0, 0] => Some("an unspecified address"),
        [0, 0, 0, 0, 0, 0, 0, 1] => Some("a loopback address"),
        [0, 0, 0, 0, 0, 0xffff, ..] => Some("an IPv4 address in disguise"),
        [0x64, 0xff9b, ..] | [0x2002, ..] | [0x2001, 0, ..] => Some("an IPv4 address in disguise"),
        [0xfd00, 0xec2, 0, 0, 0, 0, 0, 0x254] => Some("a cloud's metadata address"),
        [0xfc00..=0xfdff, ..] => Some("a private address"),
        [0xfe80..=0xfebf, ..] => Some("a link-local address"),
        [0xff00..=0xffff, ..] => Some("a multicast address"),
        [0x2001, 0xdb8, ..] | [0x3fff, 0..=0xfff, ..] => Some("an address for documentation"),
        [0x2001, 1..=0x1ff, ..] => Some("a reserved address"),
        [0x2000..=0x3fff, ..] => None,
        _ => Some("a reserved address"),
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn only_the_public_internet_is_left() {
        for public in [
            "1.1.1.1",
            "9.255.255.255",
            "11.0.0.0",
            "93.184.216.34",
            "100.63.255.255",
            "100.128.0.0",
            "126.255.255.255",
            "128.0.0.0",
            "168.63.129.17",
            "169.253.255.255",
            "169.255.0.0",
            "172.15.255.255",
            "172.32.0.0",
            "192.0.1.0",
            "192.167.255.255",
            "192.169.0.0",
            "198.17.255.255",
            "198.20.0.0",
            "223.255.255.255",
            "2001:200::1",
            "2606:2800:220:1::1",
            "2a00::1",
            "3ffe::1",
        ] {
            assert_eq!(refusal(public.parse().unwrap()), None, "{public}");
        }
        for refused in [
            "0.0.0.0",
            "0.1.2.3",
            "10.0.0.1",
            "100.64.0.1",
            "100.100.100.200",
            "127.0.0.1",
            "127.255.255.254",
            "168.63.129.16",
            "169.254.0.1",
            "169.254.169.254",
            "172.16.0.1",
            "172.31.255.255",
            "192.0.0.192",
            "192.0.2.1",
            "192.88.99.1",
            "192.168.0.1",
            "198.18.0.1",
            "198.19.255.255",
            "198.51.100.1",
            "203.0.113.1",
            "224.0.0.1",
            "239.255.255.255",
            "240.0.0.1",
            "255.255.255.255",
            "::",
            "::1",
            "::127.0.0.1",
            "::ffff:93.184.216.34",
            "::ffff:127.0.0.1",
            "64:ff9b::5db8:d822",
            "64:ff9b:1::1",
            "100::1",
            "2001::1",
            "2001:2::1",
            "2001:20::1",
            "2001:db8::1",
            "2002:7f00:1::1",
            "3fff::1",
            "4000::1",
            "5f00::1",
            "fc00::1",
            "fd00:ec2::254",
            "fe80::1",
            "fec0::1",
            "ff02::1",
        ] {
            assert!(refusal(refused.parse().unwrap()).is_some(), "{refused}");
        }
    }

    proptest! {
        /// The standard library names some classes too; none of them is ever public here.
        #[test]
        fn what_the_library_calls_special_is_refused(bits in any::<u32>(), wide in any::<u128>()) {
            let v4 = Ipv4Addr::from(bits);
            if v4.is_private() || v4.is_loopback() || v4.is_link_local() || v4.is_multicast()
                || v4.is_broadcast() || v4.is_documentation() || v4.is_unspecified()
            {
                prop_assert!(refusal(v4.into()).is_some());
            }
            let v6 = Ipv6Addr::from(wide);
            if v6.is_multicast() || v6.is_unique_local() || v6.is_unicast_link_local() || v6.to_ipv4().is_some() {
                prop_assert!(refusal(v6.into()).is_some());
            }
            prop_assert!(refusal(v4.to_ipv6_mapped().into()).is_some());
            prop_assert!(refusal(v4.to_ipv6_compatible().into()).is_some());
        }
    }
}
