// Copyright The Tidekeeper Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"encoding/json"
	"fmt"
	"maps"
	"os"
	"slices"
	"strings"

	"sigs.k8s.io/yaml"
)

// definition holds the parts of a CRD that the generated page shows.
type definition struct {
	Spec struct {
		Group string
		Scope string
		Names struct {
			Kind, Plural string
			ShortNames   []string
		}
		Versions []struct {
			Name                     string
			AdditionalPrinterColumns []struct {
				Name, JSONPath, Description string
				Priority                    int
			}
			Schema struct{ OpenAPIV3Schema schema }
		}
	}
}

// schema holds the parts of a field's schema that the generated page shows.
type schema struct {
	Type, Format, Description, Pattern string
	Default                            any
	Enum                               []any
	Minimum, Maximum                   *float64
	MinLength, MaxLength, MaxItems     *int64
	MaxProperties                      *int64
	Required                           []string
	Properties                         map[string]schema
	Items, AdditionalProperties        *schema
	IntOrString                        bool                       `json:"x-kubernetes-int-or-string"`
	Rules                              []struct{ Message string } `json:"x-kubernetes-validations"`
}

// api returns the page that documents the kinds in the given CRD files.
func api(files []string) (string, error) {
	var b strings.Builder
	b.WriteString("# API\n\n" + notice)
	b.WriteString("What the API server checks is said with each field. A list field is written with `[]`, a map with\n`{}`.\n")
	for _, file := range files {
		text, err := os.ReadFile(file)
		if err != nil {
			return "", err
		}
		var crd definition
		if err := yaml.Unmarshal(text, &crd); err != nil {
			return "", fmt.Errorf("%s: %w", file, err)
		}
		for _, version := range crd.Spec.Versions {
			names := crd.Spec.Names
			fmt.Fprintf(&b, "\n## %s\n\n`%s/%s`, %s; `%s`", names.Kind, crd.Spec.Group, version.Name, map[string]string{"Cluster": "cluster-scoped", "Namespaced": "namespaced"}[crd.Spec.Scope], names.Plural)
			for _, short := range names.ShortNames {
				fmt.Fprintf(&b, " or `%s`", short)
			}
			root := version.Schema.OpenAPIV3Schema
			fmt.Fprintf(&b, ".\n\n%s\n", root.text())
			for _, part := range []string{"spec", "status"} {
				fmt.Fprintf(&b, "\n| %s | type | default | |\n|---|---|---|---|\n", part)
				root.Properties[part].rows(&b, "")
			}
			b.WriteString("\n| column of `kubectl get` | field | |\n|---|---|---|\n")
			for _, c := range version.AdditionalPrinterColumns {
				name := c.Name
				if c.Priority > 0 {
					name += " (`-o wide`)"
				}
				fmt.Fprintf(&b, "| %s | %s | %s |\n", cell(name), code(c.JSONPath), cell(c.Description))
			}
		}
	}
	return b.String(), nil
}

// rows writes a table row for each property of an object field. Each row is followed by the rows of
// its own properties.
func (s schema) rows(b *strings.Builder, path string) {
	for _, name := range slices.Sorted(maps.Keys(s.Properties)) {
		p := s.Properties[name]
		field := path + name
		inner := &p
		for {
			if inner.Items != nil {
				field, inner = field+"[]", inner.Items
			} else if inner.AdditionalProperties != nil {
				field, inner = field+"{}", inner.AdditionalProperties
			} else {
				break
			}
		}
		text := p.text()
		if inner != &p {
			// The list's description covers the items, but not their bounds.
			text = strings.TrimSpace(text + " " + inner.bounds())
		}
		if slices.Contains(s.Required, name) {
			text += " Required."
		}
		fmt.Fprintf(b, "| `%s` | %s | %s | %s |\n", field, inner.typeName(), value(p.Default), text)
		if name == "conditions" {
			continue // Kubernetes' own
		}
		inner.rows(b, field+".")
	}
}

func (s schema) typeName() string {
	switch {
	case s.IntOrString:
		return "quantity"
	case s.Format == "date-time":
		return "time"
	case s.Format != "":
		return s.Format
	default:
		return s.Type
	}
}

// text returns a field's description, followed by its bounds.
func (s schema) text() string { return strings.TrimSpace(cell(s.Description) + " " + s.bounds()) }

// bounds returns sentences that describe the API server's checks of a field. It omits bounds that
// the field's description mentions.
func (s schema) bounds() string {
	var parts []string
	described := func(bound string) bool {
		text := strings.ToLower(cell(s.Description)) + " "
		return strings.Contains(text, bound+" ") || strings.Contains(text, bound+".")
	}
	add := func(format string, args ...any) { parts = append(parts, fmt.Sprintf(format, args...)) }
	if len(s.Enum) > 0 {
		var values []string
		for _, v := range s.Enum {
			values = append(values, value(v))
		}
		add("One of %s.", strings.Join(values, ", "))
	}
	switch {
	case s.Minimum != nil && s.Maximum != nil && described(fmt.Sprintf("from %.0f to %.0f", *s.Minimum, *s.Maximum)):
	case s.Minimum != nil && s.Maximum != nil:
		add("From %.0f to %.0f.", *s.Minimum, *s.Maximum)
	case s.Minimum != nil:
		add("At least %.0f.", *s.Minimum)
	}
	for _, limit := range []struct {
		at   *int64
		what string
	}{{s.MaxLength, "characters"}, {s.MaxItems, "items"}, {s.MaxProperties, "entries"}} {
		if limit.at != nil && !described(fmt.Sprintf("at most %d", *limit.at)) {
			add("At most %d %s.", *limit.at, limit.what)
		}
	}
	if s.Pattern != "" && !s.IntOrString {
		add("Matches %s.", code(s.Pattern))
	}
	for _, rule := range s.Rules {
		add("Checked: %s.", cell(rule.Message))
	}
	return strings.Join(parts, " ")
}

// value formats a value as inline code, in the form in which it would appear in a manifest.
func value(v any) string {
	if v == nil {
		return ""
	}
	text, err := json.Marshal(v)
	if err != nil {
		return ""
	}
	return "`" + strings.Trim(string(text), `"`) + "`"
}
