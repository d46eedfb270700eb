//! The clouds of Azure with their endpoints and directories.

/// A cloud of Azure whose directory is known.
///
/// <https://learn.microsoft.com/en-us/entra/identity-platform/authentication-national-cloud>
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum AzureCloud {
    /// The public cloud.
    Public,
    /// The cloud in China, operated by 21Vianet.
    China,
    /// The cloud for governments in the USA.
    UsGovernment,
    /// The cloud in Germany, closed in 2021.
    Germany,
}

impl AzureCloud {
    /// All clouds.
    pub const ALL: [Self; 4] = [Self::Public, Self::China, Self::UsGovernment, Self::Germany];

    /// Scope of a token for storage, in every cloud.
    pub const STORAGE_SCOPE: &'static str = "https://storage.azure.com/.default";

    /// Returns the cloud with this name in the field `cloud`, or `None` for a closed or unknown one.
    pub fn of_name(name: &str) -> Option<Self> {
        match name {
            "public" => Some(Self::Public),
            "china" => Some(Self::China),
            "us-government" => Some(Self::UsGovernment),
            _ => None,
        }
    }

    /// Returns the endpoint suffix of storage accounts.
    pub const fn endpoint_suffix(self) -> &'static str {
        match self {
            Self::Public => "core.windows.net",
            Self::China => "core.chinacloudapi.cn",
            Self::UsGovernment => "core.usgovcloudapi.net",
            Self::Germany => "core.cloudapi.de",
        }
    }

    /// Returns the URL of the directory, without a trailing slash.
    pub const fn authority_host(self) -> &'static str {
        match self {
            Self::Public => "https://login.microsoftonline.com",
            Self::China => "https://login.chinacloudapi.cn",
            Self::UsGovernment => "https://login.microsoftonline.us",
            Self::Germany => "https://login.microsoftonline.de",
        }
    }

    /// Returns the cloud with this endpoint suffix, in lower case, or `None` for other clouds, such as Azure Stack.
    pub fn of_suffix(suffix: &str) -> Option<Self> {
        // Accounts in DNS zones, and OneLake of Fabric.
        if matches!(suffix, "storage.azure.net" | "fabric.microsoft.com") {
            return Some(Self::Public);
        }
        Self::ALL.into_iter().find(|cloud| cloud.endpoint_suffix() == suffix)
    }
}
