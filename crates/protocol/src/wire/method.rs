use std::fmt;

/// The protocol that a provider and its caller have agreed on.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Version {
    V5,
    V6,
}

impl Version {
    pub const ALL: [Version; 2] = [Version::V5, Version::V6];

    pub fn number(self) -> u32 {
        match self {
            Version::V5 => 5,
            Version::V6 => 6,
        }
    }

    pub fn from_number(number: u32) -> Option<Version> {
        Version::ALL.into_iter().find(|version| version.number() == number)
    }

    /// The gRPC service that speaks this version.
    pub fn service(self) -> &'static str {
        match self {
            Version::V5 => "tfplugin5.Provider",
            Version::V6 => "tfplugin6.Provider",
        }
    }
}

impl fmt::Display for Version {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}", self.number())
    }
}

macro_rules! methods {
    ($($method:ident: $v5:literal, $v6:literal;)*) => {
        /// A call of the protocol, by its name in protocol 6.
        #[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
        pub enum Method {
            $($method,)*
        }

        impl Method {
            pub const ALL: &'static [Method] = &[$(Method::$method,)*];

            pub fn name(self) -> &'static str {
                match self {
                    $(Method::$method => stringify!($method),)*
                }
            }

            /// The path of the gRPC request.
            pub fn path(self, version: Version) -> &'static str {
                match (self, version) {
                    $(
                        (Method::$method, Version::V5) => concat!("/tfplugin5.Provider/", $v5),
                        (Method::$method, Version::V6) => concat!("/tfplugin6.Provider/", $v6),
                    )*
                }
            }
        }
    };
}

methods! {
    GetProviderSchema: "GetSchema", "GetProviderSchema";
    GetResourceIdentitySchemas: "GetResourceIdentitySchemas", "GetResourceIdentitySchemas";
    ValidateProviderConfig: "PrepareProviderConfig", "ValidateProviderConfig";
    ValidateResourceConfig: "ValidateResourceTypeConfig", "ValidateResourceConfig";
    ValidateDataResourceConfig: "ValidateDataSourceConfig", "ValidateDataResourceConfig";
    ConfigureProvider: "Configure", "ConfigureProvider";
    UpgradeResourceState: "UpgradeResourceState", "UpgradeResourceState";
    UpgradeResourceIdentity: "UpgradeResourceIdentity", "UpgradeResourceIdentity";
    ReadResource: "ReadResource", "ReadResource";
    PlanResourceChange: "PlanResourceChange", "PlanResourceChange";
    ApplyResourceChange: "ApplyResourceChange", "ApplyResourceChange";
    ImportResourceState: "ImportResourceState", "ImportResourceState";
    ReadDataSource: "ReadDataSource", "ReadDataSource";
    StopProvider: "Stop", "StopProvider";
}

impl Method {
    /// The method behind a path of the given version; none for calls that this crate leaves out.
    pub fn from_path(version: Version, path: &str) -> Option<Method> {
        Method::ALL.iter().copied().find(|method| method.path(version) == path)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_path_leads_back_to_its_method() {
        for version in Version::ALL {
            for method in Method::ALL {
                let path = method.path(version);
                assert!(path.starts_with(&format!("/{}/", version.service())));
                assert_eq!(Method::from_path(version, path), Some(*method));
            }
        }
        assert_eq!(Method::from_path(Version::V5, "/tfplugin5.Provider/CallFunction"), None);
        assert_eq!(Method::from_path(Version::V5, Method::StopProvider.path(Version::V6)), None);
    }
}
