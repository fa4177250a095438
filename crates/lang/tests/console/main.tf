resource "terraform_data" "one" {}

resource "terraform_data" "many" {
  count = 2
}

variable "secret" {
  sensitive = true
  default   = "s3cret"
}

variable "list" {
  type    = list(string)
  default = ["a", "b", "c"]
}

variable "numbers" {
  type    = set(number)
  default = [10, 9, 1, 10]
}

variable "map" {
  type    = map(object({ n = number, t = optional(string) }))
  default = { x = { n = 1 }, y = { n = "2", t = "u" } }
}

variable "anything" {
  type    = list(any)
  default = [1, "a", true]
}

variable "empty" {
  type    = list(string)
  default = []
}

variable "nothing" {
  type    = string
  default = null
}

locals {
  object = { a = 1, b = { c = [1, 2, { d = "deep" }] }, "key with space" = null }
  plain  = <<EOT
a
  b ${1 + 1}
EOT
  flush  = <<-EOT
    a
      b ${1}

    c
  EOT
  starts = <<-EOT
    ${1}
      x
      ${2} y
  EOT
  quotes = <<-EOT
      a $${x} %%{y} \n "q"
       ${"in"} 
    EOT
  ragged = <<-EOT
      

EOTX $$
      $${q}
  ${1}
	tab ${2}%
EOT
}
