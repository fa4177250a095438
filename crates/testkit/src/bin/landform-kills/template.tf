terraform {
  required_providers {
    ledger = {
      source = "landform/ledger"
    }
  }
}

variable "ledger" {
  type = string
}

variable "name" {
  type = string
}

variable "size" {
  type = number
}

variable "kind" {
  type = string
}

provider "ledger" {
  ledger = var.ledger
}

resource "ledger_object" "first" {
  name     = "${var.name}-first"
  size     = var.size
  kind     = var.kind
  delay_ms = 40
}

# The reference makes these wait for the first object, so that a kill can hit between the two.
resource "ledger_object" "more" {
  count    = 2
  name     = "${var.name}-${count.index}"
  size     = ledger_object.first.size
  kind     = var.kind
  delay_ms = 40
}

output "ids" {
  value = [ledger_object.first.id, ledger_object.more[0].id, ledger_object.more[1].id]
}
