terraform {
  required_providers {
    versa = { source = "nimbus/versa" }
  }
}

variable "nimbus_url" {
  type      = string
  ephemeral = true
  sensitive = true
}

variable "nimbus_user" {
  type      = string
  ephemeral = true
  sensitive = true
}

variable "nimbus_password" {
  type      = string
  ephemeral = true
  sensitive = true
}

variable "name" {
  type = string
  validation {
    condition     = can(regex("^[a-z0-9-]{1,20}$", var.name))
    error_message = "A name has 1 to 20 small letters, digits and hyphens."
  }
}

variable "groups" {
  type = number
}

provider "versa" {
  url      = var.nimbus_url
  username = var.nimbus_user
  password = var.nimbus_password
}

resource "versa_template" "standard" {
  name         = "${var.name}-standard"
  organization = "Customer-A"
}

resource "versa_device_group" "all" {
  count        = var.groups
  name         = "${var.name}-${count.index}"
  organization = "Customer-A"
  template     = versa_template.standard.name
}

output "groups" {
  value = versa_device_group.all[*].name
}
