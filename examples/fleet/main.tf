variable "size" {
  type        = number
  description = "How many objects there are."
}

resource "terraform_data" "member" {
  count = var.size
  input = "member ${count.index}"
}

output "size" {
  value = length(terraform_data.member)
}
