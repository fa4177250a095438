module landform.invalid/sim/cato

go 1.26

require (
	github.com/catonetworks/cato-go-sdk v0.2.6
	github.com/vektah/gqlparser/v2 v2.5.20
)

require (
	github.com/99designs/gqlgen v0.17.61 // indirect
	github.com/Yamashou/gqlgenc v0.30.2 // indirect
	github.com/agnivade/levenshtein v1.2.0 // indirect
	github.com/fatih/color v1.16.0 // indirect
	github.com/google/uuid v1.6.0 // indirect
	github.com/hashicorp/go-cleanhttp v0.5.2 // indirect
	github.com/hashicorp/go-hclog v1.6.3 // indirect
	github.com/hashicorp/go-retryablehttp v0.7.7 // indirect
	github.com/hashicorp/terraform-plugin-log v0.10.0 // indirect
	github.com/mattn/go-colorable v0.1.13 // indirect
	github.com/mattn/go-isatty v0.0.20 // indirect
	github.com/sosodev/duration v1.3.1 // indirect
	golang.org/x/sys v0.28.0 // indirect
)
