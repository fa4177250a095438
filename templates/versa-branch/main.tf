# A branch at a Versa Director: its template, its device group, the appliance, an IPsec tunnel and a BGP peer.

terraform {
  required_providers {
    versa = { source = "landform/versa" }
  }
}

# These four come from a connection; nothing of them is in a plan or in a state.
variable "versa_url" {
  type      = string
  ephemeral = true
  sensitive = true
}

variable "versa_username" {
  type      = string
  ephemeral = true
  sensitive = true
}

variable "versa_password" {
  type      = string
  ephemeral = true
  sensitive = true
}

variable "organization" {
  description = "The organization at the Director that the branch belongs to."
  type        = string
}

variable "name" {
  description = "The branch: 1 to 40 small letters, digits and hyphens."
  type        = string
  validation {
    condition     = can(regex("^[a-z0-9][a-z0-9-]{0,39}$", var.name))
    error_message = "A branch has a name of 1 to 40 small letters, digits and hyphens."
  }
}

variable "location" {
  type = object({
    country = string
    city    = optional(string)
    address = optional(string)
  })
}

variable "controllers" {
  type    = list(string)
  default = []
}

variable "bandwidth_mbps" {
  type    = number
  default = 100
  validation {
    condition     = var.bandwidth_mbps > 0 && floor(var.bandwidth_mbps) == var.bandwidth_mbps
    error_message = "The bandwidth is a whole number of Mbit/s."
  }
}

variable "tunnel" {
  description = "The other end of the IPsec tunnel."
  type = object({
    peer_address = string
    psk          = string
  })
  sensitive = true
}

variable "bgp" {
  type = object({
    local_as  = number
    peer_as   = number
    peer_ip   = string
    hold_time = optional(number, 90)
  })
}

provider "versa" {
  url      = var.versa_url
  username = var.versa_username
  password = var.versa_password
}

resource "versa_template" "branch" {
  name           = "${var.name}-template"
  organization   = var.organization
  controllers    = var.controllers
  bandwidth_mbps = var.bandwidth_mbps
}

resource "versa_device_group" "branch" {
  name         = "${var.name}-group"
  organization = var.organization
  template     = versa_template.branch.name
}

resource "versa_device" "branch" {
  name         = var.name
  organization = var.organization
  device_group = versa_device_group.branch.name
  template     = versa_template.branch.name
  location     = var.location
}

resource "versa_ipsec_tunnel" "branch" {
  template     = versa_template.branch.name
  organization = var.organization
  name         = "${var.name}-tunnel"
  peer_address = var.tunnel.peer_address
  psk          = var.tunnel.psk
}

resource "versa_bgp_peer" "branch" {
  device       = versa_device.branch.name
  organization = var.organization
  instance_id  = 1
  local_as     = var.bgp.local_as
  peer_as      = var.bgp.peer_as
  peer_ip      = var.bgp.peer_ip
  hold_time    = var.bgp.hold_time
}

output "site_id" {
  value = versa_device.branch.site_id
}

output "serial_number" {
  value = versa_device.branch.serial_number
}

output "bgp_peer_id" {
  value = versa_bgp_peer.branch.id
}
