// Copyright The Tidekeeper Authors.
// SPDX-License-Identifier: Apache-2.0

package dashboard

import (
	"cmp"
	"context"
	"errors"
	"slices"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// snapshot is what was read of some kinds, at one moment.
type snapshot struct {
	now time.Time
	// versions are those of the kinds: equal ones mean that nothing has changed.
	versions map[string]int64
	objects  map[string][]any
	// unserved are the kinds that the cluster does not serve, and need not.
	unserved map[string]bool
	// problems say why a kind is not there, by kind.
	problems map[string]string
	// lost says why the API server cannot be reached, "" if it can; lostAt is since when.
	lost   string
	lostAt time.Time
}

// read returns the objects of the kinds. It waits for the first list of each, but not for
// long, and only once: a kind that is not there by then has a problem, and a later page has it,
// once it is there.
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
	s := &snapshot{now: w.now(), versions: map[string]int64{}, objects: map[string][]any{}, problems: map[string]string{}, unserved: map[string]bool{}}
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

// awaited returns the feeds whose first list a page waits for.
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

// problem returns why one of the kinds cannot be shown, "" if all can.
func (s *snapshot) problem(kinds ...string) string {
	for _, kind := range kinds {
		if p := s.problems[kind]; p != "" {
			return p
		}
	}
	return ""
}
