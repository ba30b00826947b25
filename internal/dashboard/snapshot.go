// Copyright The Tidekeeper Authors.
// SPDX-License-Identifier: Apache-2.0

package dashboard

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	tidekeeperv1 "tidekeeper.dev/tidekeeper/api/v1"
	"tidekeeper.dev/tidekeeper/internal/freeze/period"
)

// snapshot holds all objects of the kinds that a page needs, as of the same time.
type snapshot struct {
	now time.Time
	// asOf is the time of the oldest value that the page shows. It is zero if all values are as of
	// the time in the field now.
	asOf time.Time
	// versions maps each kind to a number that changes whenever an object of the kind changes.
	versions map[string]int64
	// objects maps each kind to its objects, sorted by namespace and name. Snapshots of the same
	// version share the lists.
	objects map[string][]metav1.Object
	// unserved is the set of optional kinds that the cluster does not serve.
	unserved map[string]bool
	// late is set if the page is shown although the list of a kind has not arrived yet.
	late bool
	// problems maps kinds to the reason why their objects could not be read.
	problems map[string]string
	// checks maps kinds to the command with which the user can check the permission to list them.
	checks map[string]string
	// lost explains why the API server is unreachable, which it has been since lostAt. It is "" if
	// the API server is reachable.
	lost   string
	lostAt time.Time

	// restartList and byNamespace cache the results of the methods restarts and freezes. They are
	// computed on first use.
	restartList []*tidekeeperv1.ScheduledRestart
	byNamespace map[string][]period.Period
}

// largeCluster is the number of objects that a page must read for its cluster to be considered
// large.
const largeCluster = 5_000

// large reports whether the snapshot contains at least largeCluster objects. Computing a page from
// that many objects takes a noticeable time.
func (s *snapshot) large() bool {
	n := 0
	for _, list := range s.objects {
		n += len(list)
	}
	return n >= largeCluster
}

// olderThan records that the page shows values as of the given time.
func (s *snapshot) olderThan(at time.Time) {
	if s.asOf.IsZero() || at.Before(s.asOf) {
		s.asOf = at
	}
}

// age returns the time of the oldest value that the page shows.
func (s *snapshot) age() time.Time {
	if s.asOf.IsZero() {
		return s.now
	}
	return s.asOf
}

// read returns the objects of the given kinds, of which the first is the main kind of the page. It
// waits for the first list of each kind, but only as long as h permits. If a list has not arrived
// by then, the snapshot reports a problem with the kind, and later calls with the same patience do
// not wait for it.
func (w *World) read(ctx context.Context, names []string, h haste) *snapshot {
	feeds := w.use(names)
	gaveUp := w.await(ctx, feeds, h)
	w.mu.Lock()
	defer w.mu.Unlock()
	s := &snapshot{now: w.now(), versions: map[string]int64{}, objects: map[string][]metav1.Object{}, problems: map[string]string{}, checks: map[string]string{}, unserved: map[string]bool{}}
	for i, name := range names {
		f := feeds[i]
		if gaveUp {
			f.waited = max(f.waited, h.patience)
		}
		s.versions[name] = f.version
		switch {
		case f.unserved:
			s.unserved[name] = true
			continue
		case f.refused != "":
			s.problems[name] = f.refused
			if f.forbidden {
				s.checks[name] = w.kinds[name].Check
			}
			continue
		case !isClosed(f.synced):
			s.late = true
			s.problems[name] = cmp.Or(f.unreached, "the API server has not sent the "+name+" yet")
			continue
		}
		s.objects[name] = f.list()
		if f.lost != "" && (s.lost == "" || f.lostAt.Before(s.lostAt)) {
			s.lost, s.lostAt = f.lost, f.lostAt
		}
	}
	return s
}

// await waits for the first list of each feed, but only as long as h permits. The first feed is that
// of the page's main kind. It reports whether a time limit has ended the wait.
func (w *World) await(ctx context.Context, feeds []*feed, h haste) (gaveUp bool) {
	awaited := w.awaited(feeds, h.patience)
	ctx, cancel := context.WithTimeout(ctx, h.patience)
	defer cancel()
	if len(awaited) > 0 && awaited[0] == feeds[0] {
		awaited[0].await(ctx)
		awaited = awaited[1:]
	}
	ctx, cancelRest := context.WithTimeout(ctx, h.rest)
	defer cancelRest()
	for _, f := range awaited {
		f.await(ctx)
	}
	return errors.Is(ctx.Err(), context.DeadlineExceeded)
}

// await waits for the feed's first list, or an error instead.
func (f *feed) await(ctx context.Context) {
	select {
	case <-f.synced:
	case <-f.failed:
	case <-ctx.Done():
	}
}

// awaited returns the feeds whose first list the page must wait for. It omits feeds for which an
// earlier page has already waited at least as long as patience.
func (w *World) awaited(feeds []*feed, patience time.Duration) []*feed {
	w.mu.Lock()
	defer w.mu.Unlock()
	return slices.DeleteFunc(slices.Clone(feeds), func(f *feed) bool { return f.waited >= patience })
}

func isClosed(c <-chan struct{}) bool {
	select {
	case <-c:
		return true
	default:
		return false
	}
}

// listOf returns the objects of a kind, sorted by namespace and name. It returns nil if they could
// not be read.
func listOf[T metav1.Object](s *snapshot, kind string) []T {
	if s.problems[kind] != "" {
		return nil
	}
	list := make([]T, 0, len(s.objects[kind]))
	for _, o := range s.objects[kind] {
		if t, ok := o.(T); ok {
			list = append(list, t)
		}
	}
	return list
}

// problem returns the reason why the objects of one of the kinds could not be read. It returns ""
// if all could be read.
func (s *snapshot) problem(kinds ...string) string {
	for _, kind := range kinds {
		if p := s.problems[kind]; p != "" {
			return p
		}
	}
	return ""
}

// problemsOf describes, for each of the given kinds, why its objects could not be read. It omits
// duplicates.
func (s *snapshot) problemsOf(kinds ...string) []string {
	var list []string
	seen := map[string]bool{}
	for _, kind := range kinds {
		// The labels of namespaces only matter for the namespace selectors of freezes.
		if kind == kindNamespaces && len(s.objects[kindFreezes]) == 0 {
			continue
		}
		if p := s.problem(kind); p != "" && !seen[p] {
			seen[p] = true
			list = append(list, p+s.check(kind))
		}
	}
	return list
}

// version returns a string that changes whenever the objects or the problem of one of the kinds
// change.
func (s *snapshot) version(kinds ...string) string {
	key := ""
	for _, kind := range kinds {
		key += fmt.Sprint(s.versions[kind], s.problems[kind], ";")
	}
	return key
}

func (s *snapshot) pools() []*tidekeeperv1.NodePool {
	return listOf[*tidekeeperv1.NodePool](s, kindPools)
}

func (s *snapshot) nodes() []*corev1.Node { return listOf[*corev1.Node](s, kindNodes) }

// pods returns the pods of all namespaces. If the dashboard is limited to a namespace and the page
// needs no other pods, it returns only the pods in this namespace.
func (s *snapshot) pods() []*corev1.Pod { return listOf[*corev1.Pod](s, kindPods) }

// restarts returns the ScheduledRestarts of all namespaces, or only those in the namespace to which
// the dashboard is limited.
func (s *snapshot) restarts() []*tidekeeperv1.ScheduledRestart {
	if s.restartList == nil {
		s.restartList = listOf[*tidekeeperv1.ScheduledRestart](s, kindRestarts)
	}
	return s.restartList
}

// freezes maps each namespace to the periods of the Freezes that apply to it. It omits Freezes that
// select namespaces by label if the user is not allowed to list namespaces.
func (s *snapshot) freezes() map[string][]period.Period {
	if s.byNamespace != nil {
		return s.byNamespace
	}
	var list []tidekeeperv1.Freeze
	for _, f := range listOf[*tidekeeperv1.Freeze](s, kindFreezes) {
		list = append(list, *f)
	}
	if len(list) == 0 {
		return nil
	}
	namespaces := map[string]map[string]string{}
	for _, restart := range s.restarts() {
		namespaces[restart.Namespace] = map[string]string{corev1.LabelMetadataName: restart.Namespace}
	}
	for _, n := range listOf[*corev1.Namespace](s, kindNamespaces) {
		namespaces[n.Name] = n.Labels
	}
	periods := map[string][]period.Period{}
	for name, labels := range namespaces {
		if in := period.In(list, labels, s.now); len(in) > 0 {
			periods[name] = in
		}
	}
	s.byNamespace = periods
	return periods
}

// limitsPodAge reports whether any ScheduledRestart limits the age of its workload's pods.
func (s *snapshot) limitsPodAge() bool {
	return slices.ContainsFunc(s.restarts(), func(o *tidekeeperv1.ScheduledRestart) bool { return o.Spec.MaxPodAgeSeconds > 0 })
}
