// Copyright The Tidekeeper Authors.
// SPDX-License-Identifier: Apache-2.0

package dashboard

import (
	"net/url"
	"slices"
	"strings"

	"tidekeeper.dev/tidekeeper/internal/term"
)

// links make the addresses and commands of a cluster. context names the cluster in them; it is empty
// on a site of a single cluster.
type links struct{ context string }

// page returns the address of a page, perhaps with a fragment.
func (l links) page(path string) string {
	if l.context == "" {
		return path
	}
	path, fragment, found := strings.Cut(path, "#")
	path += "?context=" + url.QueryEscape(l.context)
	if found {
		path += "#" + fragment
	}
	return path
}

// pool returns the address of a pool.
func (l links) pool(name string) string { return l.page("/pools/" + url.PathEscape(name)) }

// query returns a query with the name of the cluster.
func (l links) query(query url.Values) url.Values {
	named := url.Values{"context": {l.context}}
	for key, values := range query {
		if key != "context" {
			named[key] = values
		}
	}
	return named
}

// command returns a command as a person types it.
func (l links) command(args []string) string {
	words := []string{"kubectl", "tide"}
	if l.context != "" {
		args = append(slices.Clone(args), "--context", l.context)
	}
	for _, arg := range args {
		if arg == "" || strings.ContainsAny(arg, " \t\n'\"\\$`&;|<>()*?[]{}#~!") {
			arg = "'" + strings.ReplaceAll(arg, "'", `'\''`) + "'"
		}
		words = append(words, arg)
	}
	return term.Printable(strings.Join(words, " "))
}
