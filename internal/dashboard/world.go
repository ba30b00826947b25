// Copyright The Tidekeeper Authors.
// SPDX-License-Identifier: Apache-2.0

package dashboard

import (
	"context"
	"sync"
	"time"

	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/tools/cache"
)

// Time limits of a [World].
const (
	// idleLimit is the time for which a watch continues after the last page that needed it.
	idleLimit = 50 * time.Second
	// refusedLimit is the time until a refused kind is requested again.
	refusedLimit = 30 * time.Second
	// firstRead is the time that a page waits for the first list of a kind.
	firstRead = 8 * time.Second
)

// Kind is a kind of objects that pages need.
type Kind struct {
	// Name is the resource name, such as nodes.
	Name string
	// Object is an empty object of the kind.
	Object runtime.Object
	// Source lists and watches the objects.
	Source cache.ListerWatcher
	// Keep drops the fields that no page shows before an object is stored; nil drops none.
	Keep cache.TransformFunc
	// Optional is set if the cluster need not serve the kind.
	Optional bool
	// Explain describes an error of the API server for users.
	Explain func(error) string
	// Check is the command that shows whether the user may list the objects.
	Check string
}

// World has the watched objects of a cluster. The watch of a kind starts when a page first needs the kind,
// and ends when no page has needed it for some time.
type World struct {
	kinds map[string]Kind
	now   func() time.Time

	mu    sync.Mutex
	feeds map[string]*feed
	// viewers counts the open pages that need each kind.
	viewers map[string]int
	// version counts changes, and changed is closed at the next change.
	version int64
	changed chan struct{}
	// onChange, if not nil, is called at each change.
	onChange func()
}

// feed is the watch of a kind. The mutex of the world guards its fields.
type feed struct {
	stop context.CancelFunc
	// done is closed when its goroutines have ended.
	done     chan struct{}
	store    cache.Store
	lastUsed time.Time
	// version is the version of the world at the last change of an object of the kind.
	version int64
	// synced is closed after the first list or refusal, and failed at the first error before that. unreached
	// is that error. waited is set if a page has already waited for the list as long as allowed.
	synced, failed chan struct{}
	unreached      string
	waited         bool
	// unserved is set if the cluster does not serve the optional kind.
	unserved bool
	// refused explains why the kind cannot be read, and since when; forbidden is set if the user lacks a
	// right.
	refused   string
	forbidden bool
	since     time.Time
	// lost explains why the API server is unreachable, since lostAt.
	lost   string
	lostAt time.Time
}

// NewWorld returns a world of these kinds. It sends no request before a page needs a kind.
func NewWorld(kinds []Kind, now func() time.Time) *World {
	w := &World{kinds: map[string]Kind{}, now: now, feeds: map[string]*feed{}, viewers: map[string]int{}, changed: make(chan struct{})}
	for _, kind := range kinds {
		w.kinds[kind.Name] = kind
	}
	return w
}

// use returns the feeds of the kinds, and starts them if necessary.
func (w *World) use(names []string) []*feed {
	w.mu.Lock()
	defer w.mu.Unlock()
	now := w.now()
	// While the API server is unreachable, its last answer counts.
	lost := false
	for _, f := range w.feeds {
		lost = lost || f.lost != ""
	}
	list := make([]*feed, len(names))
	for i, name := range names {
		f := w.feeds[name]
		if f != nil && !lost && (f.refused != "" || f.unserved) && now.Sub(f.since) > refusedLimit {
			f.stop()
			f = nil
		}
		if f == nil {
			f = w.start(w.kinds[name])
			w.feeds[name] = f
		}
		f.lastUsed = now
		list[i] = f
	}
	return list
}

// hold keeps the running watches of the kinds running until release is called, however long it takes to build
// and send a page. It starts no watch.
func (w *World) hold(names []string) (release func()) {
	count := func(n int) {
		w.mu.Lock()
		defer w.mu.Unlock()
		for _, name := range names {
			w.viewers[name] += n
			if f := w.feeds[name]; f != nil {
				f.lastUsed = w.now()
			}
		}
	}
	count(1)
	return sync.OnceFunc(func() { count(-1) })
}

// EndIdle ends the watches that no page has needed for some time, and returns the number of remaining
// watches.
func (w *World) EndIdle() int {
	w.mu.Lock()
	defer w.mu.Unlock()
	for name, f := range w.feeds {
		if w.viewers[name] == 0 && w.now().Sub(f.lastUsed) >= idleLimit {
			f.stop()
			delete(w.feeds, name)
		}
	}
	return len(w.feeds)
}

// Run ends idle watches until the context ends, and then ends all watches.
func (w *World) Run(ctx context.Context) {
	ticker := time.NewTicker(time.Second)
	defer ticker.Stop()
	for {
		select {
		case <-ctx.Done():
			w.stopAll()
			return
		case <-ticker.C:
			w.EndIdle()
		}
	}
}

func (w *World) stopAll() {
	w.mu.Lock()
	var all []*feed
	for name, f := range w.feeds {
		f.stop()
		all = append(all, f)
		delete(w.feeds, name)
	}
	w.mu.Unlock()
	for _, f := range all {
		<-f.done
	}
}

// change records a change of a feed. The caller must hold the mutex.
func (w *World) change(f *feed) {
	w.version++
	f.version = w.version
	w.wakePages()
}

// tell makes pages rebuild although no object has changed.
func (w *World) tell() {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.version++
	w.wakePages()
}

// wakePages increments the version and wakes waiting pages. The caller must hold the mutex.
func (w *World) wakePages() {
	close(w.changed)
	w.changed = make(chan struct{})
	if w.onChange != nil {
		w.onChange()
	}
}

// changes returns the version, and a channel that is closed when the version changes.
func (w *World) changes() (version int64, later <-chan struct{}) {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.version, w.changed
}
