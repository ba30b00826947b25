// Copyright The Tidekeeper Authors.
// SPDX-License-Identifier: Apache-2.0

package dashboard

import (
	"net/url"
	"strings"

	"tidekeeper.dev/tidekeeper/internal/term"
)

// links builds URLs and commands for a cluster. context is the cluster's context, or "" if the
// dashboard shows a single cluster.
type links struct{ context string }

// page returns the URL of the page at the given path, with the cluster's context as a query
// parameter. path may end with a fragment.
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

// pool returns the URL of a pool's page.
func (l links) pool(name string) string { return l.page("/pools/" + url.PathEscape(name)) }

// query returns a copy of a URL query with the cluster's context added.
func (l links) query(query url.Values) url.Values {
	named := url.Values{"context": {l.context}}
	for key, values := range query {
		if key != "context" {
			named[key] = values
		}
	}
	return named
}

// command formats a kubectl tide command for a shell, and adds the flag --context if the dashboard
// shows several clusters.
func (l links) command(args []string) string {
	words := append([]string{"kubectl", "tide"}, args...)
	if l.context != "" {
		words = append(words, "--context", l.context)
	}
	return Command(words)
}

// Command joins words into a shell command. It quotes words with special characters.
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
