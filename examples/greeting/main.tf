variable "name" {
  type        = string
  description = "Who is greeted."
}

resource "terraform_data" "greeting" {
  input = "Hello, ${var.name}!"
}

output "greeting" {
  value = terraform_data.greeting.output
}
