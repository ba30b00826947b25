// Copyright The Tidekeeper Authors.
// SPDX-License-Identifier: Apache-2.0

package dashboard

import (
	"errors"
	"strings"
	"time"
)

// Names of the kinds that pages need, as in rights.
const (
	kindPools = "nodepools"
	kindNodes = "nodes"
	kindPods  = "pods"
	// KindOwnPods is the kind of the pods of the site's namespace: some pages need no others, and the user
	// may not be allowed to list others.
	KindOwnPods  = "pods of the namespace"
	kindRestarts = "scheduledrestarts"
	// Freezes may select namespaces by label, so pages with freezes need namespaces.
	kindFreezes    = "freezes"
	kindNamespaces = "namespaces"
)

// page is the content of a page.
type page struct {
	title    string
	template string
	data     any // data for the template
	json     any // JSON data, the same as the output of the equivalent command
	command  []string
	// unknown explains why there is no JSON data; nil if there is.
	unknown error
	// work is how long it took to build the page, without waiting for others or for the API server.
	work time.Duration
}

// builder builds the pages of a path.
type builder struct {
	kinds []string
	// own is set if the page only needs the pods of the site's namespace.
	own  bool
	page func(*request) (*page, error)
	// ahead returns the period of the page's forecast; nil if the page has no forecast.
	ahead func(*request) time.Duration
}

// errNotFound is the error for an object that does not exist.
var errNotFound = errors.New("there is no such object")

// route returns the builder for a path, and the name at the end of the path.
func route(path string) (b builder, argument string, found bool) {
	switch path {
	case "/":
		return builder{overviewKinds, false, overviewPage, func(*request) time.Duration { return overviewAhead }}, "", true
	case "/capacity":
		return builder{capacityKinds, false, capacityPage, nil}, "", true
	case "/restarts":
		return builder{restartsKinds, true, restartsPage, func(r *request) time.Duration { return r.address.ahead().Duration }}, "", true
	case "/pods":
		return builder{podsKinds, true, podsPage, nil}, "", true
	}
	name, isPool := strings.CutPrefix(path, "/pools/")
	if isPool && name != "" && !strings.Contains(name, "/") {
		return builder{capacityKinds, false, poolPage, nil}, name, true
	}
	return builder{}, "", false
}
