// Copyright The Tidekeeper Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bytes"
	"encoding/json"
	"fmt"
	"regexp"
	"strings"

	"github.com/spf13/pflag"
	"k8s.io/apimachinery/pkg/util/sets"

	"tidekeeper.dev/tidekeeper/internal/controller"
	"tidekeeper.dev/tidekeeper/internal/manager"
)

// chartControllers returns the content of the file that lists the controllers for the chart's
// templates.
func chartControllers(controllers []controller.Definition) string {
	var b strings.Builder
	b.WriteString(yamlNotice)
	for _, c := range controllers {
		fmt.Fprintf(&b, "- name: %s\n  offByDefault: %t\n  namespaced: %t\n", c.Name, c.OffByDefault, c.Namespaced)
		if len(c.OptionalWatches) > 0 {
			b.WriteString("  optionalWatches:\n")
		}
		for _, w := range c.OptionalWatches {
			fmt.Fprintf(&b, "  - {name: %s, role: %s}\n", w.Name, w.Role())
		}
	}
	return b.String()
}

// enums matches, in the chart's schema, the lists of allowed elements of the values "controllers"
// and "optionalWatches".
var enums = map[string]*regexp.Regexp{
	"controllers":     regexp.MustCompile(`("controllers": \{\s+"type": "array",\s+"minItems": 1,\s+"items": \{\s+"enum": \[)[^\]]*\]`),
	"optionalWatches": regexp.MustCompile(`("optionalWatches": \{\s+"type": "array",\s+"items": \{\s+"enum": \[)[^\]]*\]`),
}

// settings matches the schema of the value "settings" in the chart's schema.
var settings = regexp.MustCompile(`(?s)\n    "settings": \{.*?\n    \}`)

// keptByChart is the set of flags that the chart itself sets, either from other values or from the
// Deployment's mounts.
var keptByChart = sets.New(
	"controllers", "optional-watches", "namespaces", "kubeconfig", "leader-elect", "leader-elect-resource-namespace",
	"metrics-bind-address", "metrics-cert-dir", "metrics-cert-name", "metrics-key-name",
	"health-probe-bind-address", "graceful-shutdown-timeout",
)

// settingsSchema returns the schema of the chart value "settings". It allows only the manager's
// flags except keptByChart, so that a misspelled flag is rejected before anything is installed.
func settingsSchema(flags *pflag.FlagSet) (string, error) {
	properties := map[string]any{}
	flags.VisitAll(func(f *pflag.Flag) {
		if !keptByChart.Has(f.Name) {
			properties[f.Name] = settingSchema(f.Value.Type())
		}
	})
	var b bytes.Buffer
	e := json.NewEncoder(&b)
	e.SetEscapeHTML(false)
	e.SetIndent("    ", "  ")
	err := e.Encode(map[string]any{"type": "object", "additionalProperties": false, "properties": properties})
	return strings.TrimSpace(b.String()), err
}

// settingSchema returns the schema of a flag's value. of is the flag's pflag type.
func settingSchema(of string) map[string]any {
	switch of {
	case "bool":
		return map[string]any{"type": "boolean"}
	case "int", "int32", "int64":
		return map[string]any{"type": "integer"}
	case "float64":
		return map[string]any{"type": "number"}
	case "duration":
		return map[string]any{"type": "string", "pattern": "^([0-9]+([.][0-9]+)?(ns|us|ms|s|m|h))+$"}
	default:
		return map[string]any{"type": []string{"string", "integer", "boolean"}}
	}
}

// flagsOfManager returns all flags of the manager.
func flagsOfManager() *pflag.FlagSet {
	all := pflag.NewFlagSet("all", pflag.ContinueOnError)
	groups := manager.NewOptions().Flags()
	for _, name := range groups.Order {
		all.AddFlagSet(groups.FlagSets[name])
	}
	return all
}

// chartSchema returns the given schema of the chart's values, updated with the names of the
// controllers and the manager's flags.
func chartSchema(schema string, controllers []controller.Definition, flags *pflag.FlagSet) (string, error) {
	if len(settings.FindAllString(schema, -1)) != 1 {
		return "", fmt.Errorf("the value settings is not in the chart's schema where it was")
	}
	allowed, err := settingsSchema(flags)
	if err != nil {
		return "", fmt.Errorf("write the schema of the value settings: %w", err)
	}
	schema = settings.ReplaceAllLiteralString(schema, "\n    \"settings\": "+allowed)
	allowedIn := map[string][]string{"controllers": {`"*"`}}
	for _, prefix := range []string{"", "-"} {
		for _, c := range controllers {
			allowedIn["controllers"] = append(allowedIn["controllers"], `"`+prefix+c.Name+`"`)
		}
	}
	for _, c := range controllers {
		for _, w := range c.OptionalWatches {
			allowedIn["optionalWatches"] = append(allowedIn["optionalWatches"], `"`+w.Name+`"`)
		}
	}
	const indent = "\n          "
	for value, enum := range enums {
		if len(enum.FindAllString(schema, -1)) != 1 {
			return "", fmt.Errorf("the enum of the value %s is not in the chart's schema where it was", value)
		}
		schema = enum.ReplaceAllString(schema, "${1}"+indent+strings.Join(allowedIn[value], ","+indent)+"\n        ]")
	}
	return schema, nil
}
