// Copyright The Tidekeeper Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"fmt"
	"regexp"
	"strings"

	"tidekeeper.dev/tidekeeper/internal/controller"
)

// chartControllers returns the list of controllers that the chart's templates read.
func chartControllers(controllers []controller.Definition) string {
	var b strings.Builder
	b.WriteString(yamlNotice)
	for _, c := range controllers {
		fmt.Fprintf(&b, "- name: %s\n  offByDefault: %t\n  namespaced: %t\n", c.Name, c.OffByDefault, c.Namespaced)
	}
	return b.String()
}

// controllersEnum is the list of what the value controllers may have in the chart's schema.
var controllersEnum = regexp.MustCompile(`("controllers": \{\s+"type": "array",\s+"minItems": 1,\s+"items": \{\s+"enum": \[)[^\]]*\]`)

// chartSchema returns the schema of the chart's values with the names of the controllers.
func chartSchema(schema string, controllers []controller.Definition) (string, error) {
	if len(controllersEnum.FindAllString(schema, -1)) != 1 {
		return "", fmt.Errorf("the enum of the value controllers is not in the chart's schema where it was")
	}
	entries := []string{`"*"`}
	for _, prefix := range []string{"", "-"} {
		for _, c := range controllers {
			entries = append(entries, `"`+prefix+c.Name+`"`)
		}
	}
	const indent = "\n          "
	return controllersEnum.ReplaceAllString(schema, "${1}"+indent+strings.Join(entries, ","+indent)+"\n        ]"), nil
}
