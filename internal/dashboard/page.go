// Copyright The Tidekeeper Authors.
// SPDX-License-Identifier: Apache-2.0

package dashboard

import (
	"errors"
	"strings"
	"time"
)

// The kinds that pages need, by their names in rights.
const (
	kindPools = "nodepools"
	kindNodes = "nodes"
	kindPods  = "pods"
	// KindOwnPods: with a namespace, some pages need only its pods: users may not be allowed to list others.
	KindOwnPods  = "pods of the namespace"
	kindRestarts = "scheduledrestarts"
	// A freeze may be about the namespaces with some labels.
	kindFreezes    = "freezes"
	kindNamespaces = "namespaces"
)

// page is the content of a page.
type page struct {
	title    string
	template string
	data     any // for the template
	json     any // for programs: the output of the same command
	command  []string
	// unknown says why there is no json; nil if there is.
	unknown error
	// work is how long it took to build the page, without waiting for others or for the API server.
	work time.Duration
}

// builder builds the pages of a path.
type builder struct {
	kinds []string
	// own reports that only the pods of the namespace are needed.
	own  bool
	page func(*request) (*page, error)
	// ahead is how far the forecast of the page looks; nil without a forecast.
	ahead func(*request) time.Duration
}

// errNotFound is the error for an object that does not exist.
var errNotFound = errors.New("there is no such object")

// route returns the builder of the page of a path, and the name in the path.
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
