use serde::Deserialize;

/// Calls of this method to paths like this are this operation. `*` is one segment, `**` at the end all that follow.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Pattern {
    method: String,
    path: String,
    pub(super) operation: String,
}

impl Pattern {
    pub(super) fn fits(&self, method: &str, path: &str) -> bool {
        if self.method != "*" && !self.method.eq_ignore_ascii_case(method) {
            return false;
        }
        let mut segments = path.trim_matches('/').split('/');
        for wanted in self.path.trim_matches('/').split('/') {
            match (wanted, segments.next()) {
                ("**", _) => return true,
                (_, None) => return false,
                ("*", Some(_)) => {}
                (wanted, Some(segment)) if wanted == segment => {}
                _ => return false,
            }
        }
        segments.next().is_none()
    }
}

/// Carried out twice comes to the same as once, by the meaning of the method.
pub(super) fn is_idempotent(method: &str) -> bool {
    ["GET", "HEAD", "OPTIONS", "TRACE", "PUT", "DELETE"].iter().any(|known| known.eq_ignore_ascii_case(method))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_pattern_fits_whole_paths() {
        let pattern = |path: &str| Pattern { method: "GET".into(), path: path.into(), operation: String::new() };
        assert!(pattern("/a/*/c").fits("get", "/a/b/c"));
        assert!(pattern("/a/**").fits("GET", "/a/b/c/"));
        for (path, asked) in [("/a/*", "/a"), ("/a/*", "/a/b/c"), ("/a/b", "/a/c")] {
            assert!(!pattern(path).fits("GET", asked), "{path} {asked}");
        }
        assert!(!pattern("/a").fits("POST", "/a"));
    }
}
