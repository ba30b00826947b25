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

// snapshot has the objects of some kinds at one time.
type snapshot struct {
	now time.Time
	// versions has the versions of the kinds: equal versions mean that no object has changed.
	versions map[string]int64
	objects  map[string][]any
	// unserved has the optional kinds that the cluster does not serve.
	unserved map[string]bool
	// problems explains, by kind, why its objects are missing.
	problems map[string]string
	// checks has, by kind, the command that checks for missing rights.
	checks map[string]string
	// lost explains why the API server is unreachable, since lostAt; "" if it is reachable.
	lost   string
	lostAt time.Time

	// restartList and byNamespace are computed at the first use.
	restartList []*tidekeeperv1.ScheduledRestart
	byNamespace map[string][]period.Period
}

// read returns the objects of the kinds. It waits for the first list of each kind for a limited time, and
// only once: if the list is late, the kind has a problem in this snapshot, and its objects appear in a later
// snapshot.
func (w *World) read(ctx context.Context, names []string) *snapshot {
	feeds := w.use(names)
	ctx, cancel := context.WithTimeout(ctx, firstRead)
	defer cancel()
	for _, f := range w.awaited(feeds) {
		select {
		case <-f.synced:
		case <-f.failed:
		case <-ctx.Done():
		}
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	s := &snapshot{now: w.now(), versions: map[string]int64{}, objects: map[string][]any{}, problems: map[string]string{}, checks: map[string]string{}, unserved: map[string]bool{}}
	for i, name := range names {
		f := feeds[i]
		f.waited = f.waited || errors.Is(ctx.Err(), context.DeadlineExceeded)
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
			s.problems[name] = cmp.Or(f.unreached, "the API server has not sent the "+name+" yet")
			continue
		}
		s.objects[name] = f.store.List()
		if f.lost != "" && (s.lost == "" || f.lostAt.Before(s.lostAt)) {
			s.lost, s.lostAt = f.lost, f.lostAt
		}
	}
	return s
}

// awaited returns the feeds whose first list the page must wait for.
func (w *World) awaited(feeds []*feed) []*feed {
	w.mu.Lock()
	defer w.mu.Unlock()
	return slices.DeleteFunc(slices.Clone(feeds), func(f *feed) bool { return f.waited })
}

func isClosed(c <-chan struct{}) bool {
	select {
	case <-c:
		return true
	default:
		return false
	}
}

// listOf returns the objects of a kind, by namespace and name; nil if they cannot be read.
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
	slices.SortFunc(list, func(a, b T) int {
		return cmp.Or(cmp.Compare(a.GetNamespace(), b.GetNamespace()), cmp.Compare(a.GetName(), b.GetName()))
	})
	return list
}

// problem returns the first problem of the kinds, "" if there is none.
func (s *snapshot) problem(kinds ...string) string {
	for _, kind := range kinds {
		if p := s.problems[kind]; p != "" {
			return p
		}
	}
	return ""
}

// problemsOf returns a sentence for each kind with a problem, without duplicates.
func (s *snapshot) problemsOf(kinds ...string) []string {
	var list []string
	seen := map[string]bool{}
	for _, kind := range kinds {
		// The labels of namespaces only matter for the selectors of freezes.
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

// version returns a text that changes when an object of the kinds changes.
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

// pods returns the pods of all namespaces where the page needs them, else of the site's namespace.
func (s *snapshot) pods() []*corev1.Pod { return listOf[*corev1.Pod](s, kindPods) }

// restarts returns the ScheduledRestarts of all namespaces.
func (s *snapshot) restarts() []*tidekeeperv1.ScheduledRestart {
	if s.restartList == nil {
		s.restartList = listOf[*tidekeeperv1.ScheduledRestart](s, kindRestarts)
	}
	return s.restartList
}

// freezes returns the periods of the freezes that apply to each namespace. Without the right to read
// namespaces, it omits freezes that select namespaces by label.
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

// limitsPodAge reports whether a ScheduledRestart limits the age of pods.
func (s *snapshot) limitsPodAge() bool {
	return slices.ContainsFunc(s.restarts(), func(o *tidekeeperv1.ScheduledRestart) bool { return o.Spec.MaxPodAgeSeconds > 0 })
}
