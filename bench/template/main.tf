terraform {
  required_providers {
    time = {
      source = "hashicorp/time"
    }
  }
}

variable "event" {
  type = string
}

resource "time_static" "this" {
  triggers = {
    event = var.event
  }
}

output "at" {
  value = time_static.this.rfc3339
}
