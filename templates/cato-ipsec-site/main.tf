# A site behind an IPsec tunnel at Cato: the site, its primary and secondary tunnels, and a BGP peer.

terraform {
  required_providers {
    cato = { source = "catonetworks/cato" }
  }
}

# These three come from a connection; nothing of them is in a plan or in a state.
variable "cato_url" {
  type      = string
  default   = "https://api.catonetworks.com/api/v1/graphql2"
  ephemeral = true
  sensitive = true
}

variable "cato_token" {
  type      = string
  ephemeral = true
  sensitive = true
}

variable "cato_account_id" {
  type      = string
  ephemeral = true
  sensitive = true
}

variable "name" {
  type = string
  validation {
    condition     = length(var.name) > 0 && length(var.name) <= 80
    error_message = "A site has a name of 1 to 80 characters."
  }
}

variable "description" {
  type    = string
  default = "Managed by Landform"
}

variable "site_type" {
  type    = string
  default = "BRANCH"
  validation {
    condition     = contains(["BRANCH", "HEADQUARTERS", "CLOUD_DC", "DATACENTER"], var.site_type)
    error_message = "A site is a BRANCH, HEADQUARTERS, CLOUD_DC or DATACENTER."
  }
}

variable "native_network_range" {
  type = string
  validation {
    condition     = can(cidrhost(var.native_network_range, 0))
    error_message = "The native range is a network such as 10.1.0.0/24."
  }
}

variable "location" {
  type = object({
    country_code = string
    timezone     = string
    state_code   = optional(string)
    city         = optional(string)
    address      = optional(string)
  })
}

variable "tunnel" {
  description = "The primary tunnel, and the secondary one if there is any."
  type = object({
    primary = object({
      public_site_ip  = string
      private_cato_ip = string
      private_site_ip = string
      psk             = string
      downstream_mbps = number
      upstream_mbps   = number
    })
    secondary = optional(object({
      public_site_ip  = string
      private_cato_ip = string
      private_site_ip = string
      psk             = string
      downstream_mbps = number
      upstream_mbps   = number
    }))
  })
  sensitive = true
}

variable "bgp" {
  type = object({
    peer_asn       = number
    cato_asn       = number
    peer_ip        = string
    default_action = optional(string, "ACCEPT")
  })
}

provider "cato" {
  baseurl    = var.cato_url
  token      = var.cato_token
  account_id = var.cato_account_id
}

resource "cato_ipsec_site" "site" {
  name                 = var.name
  description          = var.description
  site_type            = var.site_type
  native_network_range = var.native_network_range
  site_location        = var.location

  ipsec = {
    primary = {
      tunnels = [{
        public_site_ip  = var.tunnel.primary.public_site_ip
        private_cato_ip = var.tunnel.primary.private_cato_ip
        private_site_ip = var.tunnel.primary.private_site_ip
        psk             = var.tunnel.primary.psk
        last_mile_bw = {
          downstream = var.tunnel.primary.downstream_mbps
          upstream   = var.tunnel.primary.upstream_mbps
        }
      }]
    }
    secondary = var.tunnel.secondary == null ? null : {
      tunnels = [{
        public_site_ip  = var.tunnel.secondary.public_site_ip
        private_cato_ip = var.tunnel.secondary.private_cato_ip
        private_site_ip = var.tunnel.secondary.private_site_ip
        psk             = var.tunnel.secondary.psk
        last_mile_bw = {
          downstream = var.tunnel.secondary.downstream_mbps
          upstream   = var.tunnel.secondary.upstream_mbps
        }
      }]
    }
  }
}

resource "cato_bgp_peer" "site" {
  site_id        = cato_ipsec_site.site.id
  name           = "${var.name}-bgp"
  peer_asn       = var.bgp.peer_asn
  cato_asn       = var.bgp.cato_asn
  peer_ip        = var.bgp.peer_ip
  default_action = var.bgp.default_action
  # The provider sees drift for ever where this is left out.
  summary_route = []
}

output "site_id" {
  value = cato_ipsec_site.site.id
}

output "bgp_peer_id" {
  value = cato_bgp_peer.site.id
}
