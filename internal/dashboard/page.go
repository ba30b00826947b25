// Copyright The Tidekeeper Authors.
// SPDX-License-Identifier: Apache-2.0

package dashboard

import (
	"context"
	"errors"
	"net/url"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"

	tidekeeperv1 "tidekeeper.dev/tidekeeper/api/v1"
	"tidekeeper.dev/tidekeeper/internal/freeze/period"
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

// request is a request for a page.
type request struct {
	ctx      context.Context
	site     *Site
	argument string // the last part of the path, such as the name of a pool
	query    url.Values
	snapshot *snapshot
	models   *models
	// amongOthers says that the page is about several clusters, of which this is one.
	amongOthers bool
	// What is asked for often is sorted and selected once.
	restartList []*tidekeeperv1.ScheduledRestart
	periods     map[string][]period.Period
	// played is the forecast, on a page that has one.
	played shownForecast
}

// page is what is shown.
type page struct {
	title    string
	template string
	data     any // for the template
	json     any // for programs: what the twin in the terminal prints
	command  []string
}

// builder builds the pages of one path.
type builder struct {
	kinds []string
	// own says that of the pods only those of the namespace are needed.
	own  bool
	page func(*request) (*page, error)
	// ahead is how far the forecast looks of a page that has one.
	ahead func(*request) time.Duration
}

// errNotFound is the error for an object that does not exist.
var errNotFound = errors.New("there is no such object")

// route returns what builds the page of a path, and the name in the path.
func route(path string) (b builder, argument string, found bool) {
	switch path {
	case "/":
		return builder{overviewKinds, false, overviewPage, func(*request) time.Duration { return overviewAhead }}, "", true
	case "/capacity":
		return builder{capacityKinds, false, capacityPage, nil}, "", true
	case "/restarts":
		return builder{restartsKinds, true, restartsPage, func(r *request) time.Duration { return r.ahead().Duration }}, "", true
	case "/pods":
		return builder{podsKinds, true, podsPage, nil}, "", true
	}
	name, isPool := strings.CutPrefix(path, "/pools/")
	if isPool && name != "" && !strings.Contains(name, "/") {
		return builder{capacityKinds, false, poolPage, nil}, name, true
	}
	return builder{}, "", false
}

func (r *request) now() time.Time { return r.snapshot.now }

func (r *request) pools() []*tidekeeperv1.NodePool {
	return listOf[*tidekeeperv1.NodePool](r.snapshot, kindPools)
}

func (r *request) nodes() []*corev1.Node { return listOf[*corev1.Node](r.snapshot, kindNodes) }

// pods returns the pods: of all namespaces where the page needs them, else those that are shown.
func (r *request) pods() []*corev1.Pod { return listOf[*corev1.Pod](r.snapshot, kindPods) }

// restarts returns the ScheduledRestarts of all namespaces.
func (r *request) restarts() []*tidekeeperv1.ScheduledRestart {
	if r.restartList == nil {
		r.restartList = listOf[*tidekeeperv1.ScheduledRestart](r.snapshot, kindRestarts)
	}
	return r.restartList
}

// isShown reports whether objects of a namespace are shown: those of the one that was chosen for
// the run, and of the page's own filter.
func (r *request) isShown(namespace string) bool {
	only := r.query.Get("namespace")
	return (r.site.about.Namespace == "" || namespace == r.site.about.Namespace) && (only == "" || namespace == only)
}

// with returns the page's own address with another value of one parameter; "" removes it.
func (r *request) with(name, value string) string {
	query := url.Values{}
	for key, values := range r.query {
		query[key] = values
	}
	query.Del(name)
	if value != "" {
		query.Set(name, value)
	}
	return "?" + query.Encode()
}

// problems are the sentences about the kinds that cannot be shown, each once.
func (r *request) problems(kinds ...string) []string {
	var list []string
	seen := map[string]bool{}
	for _, kind := range kinds {
		// The labels of namespaces only say what freezes are about.
		if kind == kindNamespaces && len(r.snapshot.objects[kindFreezes]) == 0 {
			continue
		}
		if p := r.snapshot.problem(kind); p != "" && !seen[p] {
			seen[p] = true
			list = append(list, p)
		}
	}
	return list
}

// namespaceFlags are the flags of a twin that is about namespaces.
func (r *request) namespaceFlags() []string {
	namespace := r.site.about.Namespace
	if only := r.query.Get("namespace"); only != "" {
		namespace = only
	}
	if namespace == "" {
		return []string{"-A"}
	}
	return []string{"-n", namespace}
}
