package main

import (
	"fmt"
	"os"
	"sort"
	"strings"

	"github.com/vektah/gqlparser/v2"
	"github.com/vektah/gqlparser/v2/ast"
)

// Every type of ours must be the vendor's, field for field; only the roots may know less than the vendor's do.
func compareSchemas(ours, theirs string) error {
	our, err := load(ours)
	if err != nil {
		return err
	}
	their, err := load(theirs)
	if err != nil {
		return err
	}
	roots := map[string]bool{"Query": true, "Mutation": true, "SiteQueries": true, "SiteMutations": true}
	var wrong []string
	for name, definition := range our.Types {
		if strings.HasPrefix(name, "__") {
			continue
		}
		real := their.Types[name]
		if real == nil {
			wrong = append(wrong, fmt.Sprintf("%s: the vendor has no such type", name))
			continue
		}
		got, want := members(definition), members(real)
		for member, shape := range got {
			if want[member] != shape {
				wrong = append(wrong, fmt.Sprintf("%s.%s: ours %q, the vendor's %q", name, member, shape, want[member]))
			}
		}
		for member := range want {
			if _, there := got[member]; !there && !roots[name] {
				wrong = append(wrong, fmt.Sprintf("%s.%s is missing", name, member))
			}
		}
	}
	sort.Strings(wrong)
	if len(wrong) > 0 {
		return fmt.Errorf("the schemas differ:\n%s", strings.Join(wrong, "\n"))
	}
	return nil
}

func load(path string) (*ast.Schema, error) {
	text, err := os.ReadFile(path)
	if err != nil {
		return nil, err
	}
	schema, problem := gqlparser.LoadSchema(&ast.Source{Name: path, Input: string(text)})
	if problem != nil {
		return nil, problem
	}
	return schema, nil
}

func members(definition *ast.Definition) map[string]string {
	members := map[string]string{}
	for _, field := range definition.Fields {
		if strings.HasPrefix(field.Name, "__") {
			continue
		}
		shape := field.Type.String() + value(field.DefaultValue)
		var arguments []string
		for _, argument := range field.Arguments {
			arguments = append(arguments, argument.Name+": "+argument.Type.String()+value(argument.DefaultValue))
		}
		sort.Strings(arguments)
		members[field.Name] = "(" + strings.Join(arguments, ", ") + ") " + shape
	}
	for _, value := range definition.EnumValues {
		members[value.Name] = "value"
	}
	for _, name := range definition.Types {
		members[name] = "member"
	}
	return members
}

func value(value *ast.Value) string {
	if value == nil {
		return ""
	}
	return " = " + value.String()
}
