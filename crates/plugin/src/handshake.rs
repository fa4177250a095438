use std::path::PathBuf;

use landform_protocol::wire::Version;

/// The one line that a provider prints when it is ready: `1|<protocol>|unix|<socket>|grpc|...`.
#[derive(Debug, PartialEq, Eq)]
pub struct Handshake {
    pub version: Version,
    pub socket: PathBuf,
}

impl Handshake {
    /// The error says what is wrong with the line, for people.
    pub fn parse(line: &str) -> Result<Handshake, String> {
        let fields: Vec<&str> = line.trim().split('|').collect();
        let [core, protocol, network, address, ..] = fields[..] else {
            return Err(format!("it printed {:?} in place of a provider's greeting", shorten(line)));
        };
        if core != "1" {
            return Err(format!("it speaks version {:?} of the plugin handshake, not 1", shorten(core)));
        }
        let version = protocol.parse().ok().and_then(Version::from_number);
        let version = version.ok_or_else(|| format!("it speaks protocol {:?}, not 5 or 6", shorten(protocol)))?;
        if network != "unix" || address.is_empty() {
            return Err(format!("it listens on {:?}, not on a Unix socket", shorten(network)));
        }
        match fields.get(4) {
            Some(&"grpc") => {}
            other => return Err(format!("it speaks {:?}, not grpc", shorten(other.unwrap_or(&"netrpc")))),
        }
        // No client certificate was sent, so a server certificate was not asked for.
        if fields.get(5).is_some_and(|certificate| !certificate.is_empty()) {
            return Err("it insists on TLS, though none was asked for".into());
        }
        Ok(Handshake { version, socket: address.into() })
    }
}

fn shorten(text: &str) -> String {
    let text = text.trim();
    match text.char_indices().nth(80) {
        Some((end, _)) => format!("{}…", &text[..end]),
        None => text.to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn reads_the_greetings_of_both_protocols() {
        for (line, version) in
            [("1|5|unix|/tmp/plugin1|grpc|\n", Version::V5), ("1|6|unix|/tmp/plugin1|grpc||false", Version::V6)]
        {
            assert_eq!(Handshake::parse(line), Ok(Handshake { version, socket: "/tmp/plugin1".into() }));
        }
    }

    #[test]
    fn says_what_is_wrong() {
        for (line, wrong) in [
            ("This binary is a plugin.", "in place of a provider's greeting"),
            ("2|5|unix|/tmp/p|grpc|", "version \"2\""),
            ("1|4|unix|/tmp/p|grpc|", "protocol \"4\""),
            ("1|5|tcp|127.0.0.1:1|grpc|", "\"tcp\""),
            ("1|5|unix|/tmp/p|netrpc|", "\"netrpc\""),
            ("1|5|unix|/tmp/p", "\"netrpc\""),
            ("1|5|unix|/tmp/p|grpc|MIIB", "TLS"),
        ] {
            let error = Handshake::parse(line).unwrap_err();
            assert!(error.contains(wrong), "{error:?} does not say {wrong:?}");
        }
        assert!(Handshake::parse(&"x".repeat(10_000)).unwrap_err().len() < 400);
    }
}
