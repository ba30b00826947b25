// Copyright The Tidekeeper Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"fmt"
	"reflect"
	"strings"

	"tidekeeper.dev/tidekeeper/internal/controller"
	"tidekeeper.dev/tidekeeper/internal/manager"
)

// controllersPage returns the page that documents the controllers and their rights.
func controllersPage(controllers []controller.Definition) string {
	var b strings.Builder
	b.WriteString("# Controllers\n\n" + notice)
	b.WriteString("What `--controllers` selects, and what each controller is allowed to do. The rights of a\n" +
		"controller are in the ClusterRole `tidekeeper-` and its name.\n")
	for _, c := range controllers {
		fmt.Fprintf(&b, "\n## %s\n\n%s\n", c.Name, c.Purpose)
		scope, started := "It is about the whole cluster", "on by default"
		if c.Namespaced {
			scope = "`--namespaces` limits it to some namespaces"
		}
		if c.OffByDefault {
			started = "off by default"
		}
		fmt.Fprintf(&b, "It is %s. %s.\n", started, scope)
		b.WriteString(rightsTable(c.Rules))
		for _, borrowed := range c.Borrows {
			kind := reflect.TypeOf(borrowed.Object).Elem().Name()
			fmt.Fprintf(&b, "\nWhere another controller watches %ss, this one reads them too, by the rights of the other. %s\n",
				kind, borrowed.Reason)
		}
		for _, w := range c.OptionalWatches {
			fmt.Fprintf(&b, "\n### Optional watch: %s\n\nWith `--%s=%s`. %s The rights are in the ClusterRole `tidekeeper-%s`.\n%s",
				w.Name, manager.FlagOptionalWatches, w.Name, w.Purpose, w.Role(), rightsTable(w.Rules))
		}
	}
	b.WriteString("\n## Every controller\n\nThe ClusterRole `tidekeeper-events`.\n" + rightsTable(manager.EventRules()))
	b.WriteString("\n## Leader election\n\nThe Role `tidekeeper`, in the namespace of the manager.\n" + rightsTable(manager.LeaseRules()))
	return b.String()
}

func rightsTable(rules []controller.Rule) string {
	var b strings.Builder
	b.WriteString("\n| API group | resources | verbs | why |\n|---|---|---|---|\n")
	for _, r := range rules {
		resources := strings.Join(r.Resources, ", ")
		if len(r.Names) > 0 {
			resources += " named " + strings.Join(r.Names, ", ")
		}
		fmt.Fprintf(&b, "| %s | %s | %s | %s |\n", r.Group, resources, strings.Join(r.Verbs, ", "), cell(r.Reason))
	}
	return b.String()
}
