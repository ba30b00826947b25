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

// The times of a [World].
const (
	// idleLimit is how long a kind is watched after the last page that needed it.
	idleLimit = 50 * time.Second
	// refusedLimit is how long a refusal is taken for granted, before the API server is asked again.
	refusedLimit = 30 * time.Second
	// firstRead is how long a page waits for the first list of a kind.
	firstRead = 8 * time.Second
)

// Kind is a kind of objects that pages need.
type Kind struct {
	// Name is the plural that rights name, such as nodes.
	Name string
	// Object is an empty object of the kind.
	Object runtime.Object
	// Source lists and watches the objects.
	Source cache.ListerWatcher
	// Keep drops the fields of an object that no page shows, before it is kept. It is nil for nothing.
	Keep cache.TransformFunc
	// Optional says that the cluster need not serve the kind.
	Optional bool
	// Explain puts an error of the API server into words.
	Explain func(error) string
	// Check is the command that shows whether the user may list the objects.
	Check string
}

// World is the objects that pages read from the cluster: a watch for each kind, started when a page needs
// it and ended when no page has for a while.
type World struct {
	kinds map[string]Kind
	now   func() time.Time

	mu    sync.Mutex
	feeds map[string]*feed
	// viewers is how many open pages need a kind.
	viewers map[string]int
	// version counts the changes, and changed is closed at the next change.
	version int64
	changed chan struct{}
	// onChange is called with each change; nil for nothing.
	onChange func()
}

// feed is the watch of a kind. Its fields are guarded by the mutex of the world.
type feed struct {
	stop context.CancelFunc
	// done is closed when its goroutines have ended.
	done     chan struct{}
	store    cache.Store
	lastUsed time.Time
	// version is that of the world at the last change of an object.
	version int64
	// synced is closed with the first list, or the refusal, and failed with the first error before
	// that. unreached is that error, and waited says that a page has waited for the list long enough.
	synced, failed chan struct{}
	unreached      string
	waited         bool
	// unserved says that the cluster does not serve the kind, which is no problem.
	unserved bool
	// refused says why the kind cannot be read, since when; forbidden, that the user may not.
	refused   string
	forbidden bool
	since     time.Time
	// lost says why the API server cannot be reached, and lostAt since when.
	lost   string
	lostAt time.Time
}

// NewWorld returns a world of these kinds. Nothing is read before a page needs it.
func NewWorld(kinds []Kind, now func() time.Time) *World {
	w := &World{kinds: map[string]Kind{}, now: now, feeds: map[string]*feed{}, viewers: map[string]int{}, changed: make(chan struct{})}
	for _, kind := range kinds {
		w.kinds[kind.Name] = kind
	}
	return w
}

// use returns the feeds of the kinds, and starts the feeds that do not run.
func (w *World) use(names []string) []*feed {
	w.mu.Lock()
	defer w.mu.Unlock()
	now := w.now()
	// While the API server cannot be reached, its last answer counts.
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

// hold keeps the watches of the kinds until it is released, however long a page takes to be built
// and sent. It starts none.
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

// EndIdle ends the watches that no page has needed for a while, and returns how many go on.
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

// Run ends idle watches until the context ends, and then all of them.
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

// change notes a change of a feed. The mutex must be held.
func (w *World) change(f *feed) {
	w.version++
	f.version = w.version
	w.wakePages()
}

// tell has pages built again although no object has changed.
func (w *World) tell() {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.version++
	w.wakePages()
}

// wakePages says that there is a later version. The mutex must be held.
func (w *World) wakePages() {
	close(w.changed)
	w.changed = make(chan struct{})
	if w.onChange != nil {
		w.onChange()
	}
}

// changes returns the version, and a channel that is closed when there is a later version.
func (w *World) changes() (version int64, later <-chan struct{}) {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.version, w.changed
}
