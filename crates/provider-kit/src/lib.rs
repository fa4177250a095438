//! Serving a provider written here, as a process that any Terraform or OpenTofu starts, or in process.
