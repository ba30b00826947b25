// Copyright The Tidekeeper Authors.
// SPDX-License-Identifier: Apache-2.0

package dashboard

import (
	"net/url"
	"slices"
	"strings"
	"time"

	"tidekeeper.dev/tidekeeper/internal/view"
)

// address is the query of a page's address. namespace is the namespace that the site is limited to, "" for
// all.
type address struct {
	query     url.Values
	namespace string
}

// get returns the value of a parameter, "" if it is missing.
func (a address) get(name string) string { return a.query.Get(name) }

// with returns the page's own address with another value of a parameter; the value "" removes the parameter.
func (a address) with(name, value string) string {
	query := url.Values{}
	for key, values := range a.query {
		query[key] = values
	}
	query.Del(name)
	if value != "" {
		query.Set(name, value)
	}
	return "?" + query.Encode()
}

// shows reports whether objects of a namespace are shown: the namespace must be the site's, and match the
// filter of the page.
func (a address) shows(namespace string) bool {
	only := a.get("namespace")
	return (a.namespace == "" || namespace == a.namespace) && (only == "" || namespace == only)
}

// matches reports whether a text contains the filter, ignoring case.
func (a address) matches(text string) bool {
	return view.Matches(a.get("q"), text)
}

// namespaceFlags returns the flags of a command for the namespaces of the page.
func (a address) namespaceFlags() []string {
	namespace := a.namespace
	if only := a.get("namespace"); only != "" {
		namespace = only
	}
	if namespace == "" {
		return []string{"-A"}
	}
	return []string{"-n", namespace}
}

// listOf is the command of a list, with the filter of the page.
func (a address) listOf(command ...string) []string {
	command = append(command, a.namespaceFlags()...)
	if name := a.get("q"); name != "" {
		command = append(command, "--name", name)
	}
	return command
}

// ahead is the period into the future that a page shows.
type ahead struct {
	text string
	time.Duration
}

// words is the length for a sentence.
func (a ahead) words() string { return strings.NewReplacer("h", " h", "d", " days").Replace(a.text) }

var aheads = []ahead{{"24h", 24 * time.Hour}, {"48h", 48 * time.Hour}, {"7d", 7 * 24 * time.Hour}}

// ahead returns the period into the future that the address selects.
func (a address) ahead() ahead {
	i := max(0, slices.IndexFunc(aheads, func(of ahead) bool { return of.text == a.get("for") }))
	return aheads[i]
}

// sorts returns the links that sort pools.
func (a address) sorts(chosen string) []choice {
	var list []choice
	for _, by := range []string{"fullest", "name", "status", "cpu", "memory", "pods"} {
		list = append(list, choice{by, a.with("sort", by), by == chosen})
	}
	return list
}
