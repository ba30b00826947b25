// Copyright The Tidekeeper Authors.
// SPDX-License-Identifier: Apache-2.0

package dashboard

import (
	"net/url"
	"strings"

	"tidekeeper.dev/tidekeeper/internal/term"
)

// links builds addresses and commands for a cluster. context is the context of the cluster, or empty on a
// site of a single cluster.
type links struct{ context string }

// page returns the address of a page, with an optional fragment.
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

// query returns a query with the context added.
func (l links) query(query url.Values) url.Values {
	named := url.Values{"context": {l.context}}
	for key, values := range query {
		if key != "context" {
			named[key] = values
		}
	}
	return named
}

// command returns a command of the plugin as shell text.
func (l links) command(args []string) string {
	words := append([]string{"kubectl", "tide"}, args...)
	if l.context != "" {
		words = append(words, "--context", l.context)
	}
	return Command(words)
}

// Command joins words to a shell command, and quotes words with special characters.
func Command(words []string) string {
	quoted := make([]string, len(words))
	for i, word := range words {
		if word == "" || strings.ContainsAny(word, " \t\n'\"\\$`&;|<>()*?[]{}#~!") {
			word = "'" + strings.ReplaceAll(word, "'", `'\''`) + "'"
		}
		quoted[i] = word
	}
	return term.Printable(strings.Join(quoted, " "))
}
