# In a plan, too, nothing is known about it.
resource "terraform_data" "one" {
  input            = timestamp()
  triggers_replace = timestamp()
}

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

variable "filled" {
  type = object({
    name  = string
    size  = optional(number, 5)
    label = optional(string)
    tags  = optional(map(string), { a = 1 })
    disk = optional(object({
      kind = optional(string, "ssd")
      gb   = optional(number)
    }), {})
    ports = optional(list(object({ n = number, open = optional(bool, true) })), [{ n = 22 }])
  })
  default = { name = "x", size = null, ports = [{ n = 1, open = null }, { n = "2", open = false }] }
}

variable "filled_list" {
  type    = list(object({ a = optional(string, "d"), b = optional(any, 1) }))
  default = [{}, { a = "x" }, { a = null, b = "y" }, null]
}

variable "filled_map" {
  type    = map(object({ a = optional(set(number), [3, 1]), t = optional(tuple([string, number])) }))
  default = { x = {}, y = { a = [5], t = ["a", "1"] } }
}

variable "filled_tuple" {
  type    = tuple([object({ a = optional(bool, false) }), string])
  default = [{}, 1]
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
