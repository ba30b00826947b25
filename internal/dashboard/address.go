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

// address is the query of a dashboard page's URL. namespace is the only namespace that the
// dashboard shows, or "" for all namespaces.
type address struct {
	query     url.Values
	namespace string
}

// get returns the value of a query parameter, or "" if it is missing.
func (a address) get(name string) string { return a.query.Get(name) }

// with returns a URL, relative to the page, that differs from the page's URL in a single query
// parameter. An empty value removes the parameter.
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

// shows reports whether the page shows objects in the given namespace. Both the dashboard and the
// URL's query may limit the page to a single namespace.
func (a address) shows(namespace string) bool {
	only := a.get("namespace")
	return (a.namespace == "" || namespace == a.namespace) && (only == "" || namespace == only)
}

// matches reports whether a string contains the page's filter string, ignoring case.
func (a address) matches(text string) bool {
	return view.Matches(a.get("q"), text)
}

// namespaceFlags returns the kubectl tide flags that select the page's namespaces.
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

// listOf adds flags for the page's namespaces and filter to a kubectl tide command that prints a
// list.
func (a address) listOf(command ...string) []string {
	command = append(command, a.namespaceFlags()...)
	if name := a.get("q"); name != "" {
		command = append(command, "--name", name)
	}
	return command
}

// ahead is the period into the future that a page's forecast covers.
type ahead struct {
	text string
	time.Duration
}

// words formats the period for a sentence, such as "7 days".
func (a ahead) words() string { return strings.NewReplacer("h", " h", "d", " days").Replace(a.text) }

var aheads = []ahead{{"24h", 24 * time.Hour}, {"48h", 48 * time.Hour}, {"7d", 7 * 24 * time.Hour}}

// ahead returns the period into the future that the query parameter "for" selects. The default is
// the first element of aheads.
func (a address) ahead() ahead {
	i := max(0, slices.IndexFunc(aheads, func(of ahead) bool { return of.text == a.get("for") }))
	return aheads[i]
}

// sorts returns a link for each sort order of the table of pools. chosen is the current order.
func (a address) sorts(chosen string) []choice {
	var list []choice
	for _, by := range []string{"fullest", "name", "status", "cpu", "memory", "pods"} {
		list = append(list, choice{by, a.with("sort", by), by == chosen})
	}
	return list
}
