// Copyright The Tidekeeper Authors.
// SPDX-License-Identifier: Apache-2.0

package dashboard

import (
	"errors"
	"strings"
	"time"
)

// Names by which the pages refer to watched kinds. Except for KindOwnPods, each is the resource
// name of the kind, as used in access reviews.
const (
	kindPools = "nodepools"
	kindNodes = "nodes"
	kindPods  = "pods"
	// KindOwnPods stands for the pods of the namespace to which the user limited the dashboard.
	// Pages that need no other pods watch it instead of kindPods, because the user may not be
	// allowed to list the pods of all namespaces.
	KindOwnPods  = "pods of the namespace"
	kindRestarts = "scheduledrestarts"
	// A Freeze can select namespaces by label, so pages with freezes also need namespaces.
	kindFreezes    = "freezes"
	kindNamespaces = "namespaces"
	// kindMaintenances names the kind NodeMaintenance.
	kindMaintenances = "nodemaintenances"
)

// page is the content of a page as data for an HTML template, and as JSON data.
type page struct {
	title    string
	template string
	data     any // data for the HTML template
	json     any // JSON data, equal to the JSON output of the equivalent command
	command  []string
	// unknown explains why the JSON data is unknown. It is nil if json is valid.
	unknown error
	// work is the time spent on building the page, excluding waiting for other pages or the API
	// server.
	work time.Duration
}

// builder builds the pages whose paths match a route.
type builder struct {
	// kinds lists the kinds that the page needs. Without the first of them, its main kind, the page
	// would show little, so it waits longer for that kind than for the others.
	kinds []string
	// own is set if the page only needs pods of the namespace to which the dashboard is limited.
	own bool
	// room is set if the page shows the cluster's free capacity.
	room bool
	page func(*request) (*page, error)
	// ahead returns the period into the future that the page's forecast covers. The field is nil if
	// the page has no forecast.
	ahead func(*request) time.Duration
}

// haste configures the trade-off between the age of a page's data and the time until the page is
// shown.
type haste struct {
	// recent is set if the page of a large cluster may show values that were computed up to
	// recentAge ago.
	recent bool
	// patience is the maximum time to wait for the first list of a watched kind. rest is the maximum
	// time to wait for the lists of the other kinds once the list of the page's main kind has
	// arrived.
	patience, rest time.Duration
}

var (
	// patient configures JSON responses to programs, which need complete data in a single response.
	patient = haste{patience: firstRead, rest: firstRead}
	// opened configures a page that has just been opened. The page's stream later sends current
	// data.
	opened = haste{recent: true, patience: firstShown, rest: restShown}
	// followed configures the stream of a page, which sends the page again after changes.
	followed = haste{patience: firstShown, rest: restShown}
)

// errNotFound is the error for a page about a nonexistent object.
var errNotFound = errors.New("there is no such object")

// route returns the builder of the page at a path. argument is the object name at the end of the
// path, or "". found is false if there is no such page.
func route(path string) (b builder, argument string, found bool) {
	switch path {
	case "/":
		return builder{overviewKinds, false, true, overviewPage, func(*request) time.Duration { return overviewAhead }}, "", true
	case "/capacity":
		return builder{capacityKinds, false, true, capacityPage, nil}, "", true
	case "/restarts":
		return builder{restartsKinds, true, false, restartsPage, func(r *request) time.Duration { return r.address.ahead().Duration }}, "", true
	case "/pods":
		return builder{podsKinds, true, false, podsPage, nil}, "", true
	}
	name, isPool := strings.CutPrefix(path, "/pools/")
	if isPool && name != "" && !strings.Contains(name, "/") {
		return builder{poolKinds, false, true, poolPage, nil}, name, true
	}
	return builder{}, "", false
}
