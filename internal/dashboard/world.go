// Copyright The Tidekeeper Authors.
// SPDX-License-Identifier: Apache-2.0

package dashboard

import (
	"context"
	"sync"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/tools/cache"
)

// Time limits for watches and lists.
const (
	// idleLimit is the time after which a watch ends if no page needs it.
	idleLimit = 50 * time.Second
	// refusedLimit is the time after which a kind is requested again if the API server refused the
	// request or does not serve the kind.
	refusedLimit = 30 * time.Second
	// firstRead is the maximum time that a JSON request of a program waits for the first list of a
	// kind.
	firstRead = 8 * time.Second
	// firstShown is the maximum time that a page waits for the first list of a kind. After that, the
	// page shows the kinds that have been read, and names the others.
	firstShown = 2 * time.Second
	// restShown is the maximum time that a page waits for its other kinds once it has the main kind.
	restShown = 500 * time.Millisecond
)

// Kind defines a kind of objects that a [World] watches.
type Kind struct {
	// Name is the resource name, such as nodes.
	Name string
	// Object is an empty object of the kind.
	Object runtime.Object
	// Source lists and watches the objects.
	Source cache.ListerWatcher
	// Keep drops the fields that no page shows, before an object is stored. If it is nil, all
	// fields are kept.
	Keep cache.TransformFunc
	// Optional is set if some clusters do not serve the kind. A NotFound error is then not reported
	// as a problem.
	Optional bool
	// Explain converts an error of the API server into a message for users.
	Explain func(error) string
	// Check is the command with which the user can check the permission to list the objects.
	Check string
}

// World holds the watched objects of a cluster. The watch of a kind starts when a page first needs
// the kind, and ends when no page has needed it for idleLimit.
type World struct {
	kinds map[string]Kind
	now   func() time.Time

	mu    sync.Mutex
	feeds map[string]*feed
	// viewers maps each kind to the number of pages that are being built or streamed and need the
	// kind.
	viewers map[string]int
	// version counts the changes of objects and feeds so far. changed is closed when the next
	// change occurs.
	version int64
	changed chan struct{}
	// onChange is called at each change, while mu is held. It may be nil.
	onChange func()
}

// feed is the watch of a kind, with the watched objects. The World's mutex guards the fields of a
// feed.
type feed struct {
	stop context.CancelFunc
	// done is closed when the feed's goroutines have exited.
	done     chan struct{}
	store    cache.Store
	lastUsed time.Time
	// version is the World's version at the last change of one of the kind's objects or of the
	// feed's state.
	version int64
	// sorted lists the objects, sorted by namespace and name. It is nil if the list must be built
	// from the store. Otherwise, touched lists the objects that changed since the list was built.
	sorted  []metav1.Object
	touched []touched
	// synced is closed once the first list has arrived or was refused. failed is closed at the
	// first error before that, and unreached is the message of the latest such error. waited is the
	// longest time that a page has waited without getting the first list.
	synced, failed chan struct{}
	unreached      string
	waited         time.Duration
	// unserved is set if the kind is optional and the cluster does not serve it.
	unserved bool
	// refused explains why the API server refused to list the kind, or is "". since is the time of
	// the refusal. forbidden is set if the user lacks the permission.
	refused   string
	forbidden bool
	since     time.Time
	// lost explains why the API server is unreachable, which it has been since lostAt. lost is ""
	// if the API server is reachable.
	lost   string
	lostAt time.Time
}

// NewWorld returns a World for the given kinds. It sends no requests until a page needs a kind.
func NewWorld(kinds []Kind, now func() time.Time) *World {
	w := &World{kinds: map[string]Kind{}, now: now, feeds: map[string]*feed{}, viewers: map[string]int{}, changed: make(chan struct{})}
	for _, kind := range kinds {
		w.kinds[kind.Name] = kind
	}
	return w
}

// use returns the feeds of the given kinds. It starts feeds that are not running.
func (w *World) use(names []string) []*feed {
	w.mu.Lock()
	defer w.mu.Unlock()
	now := w.now()
	// While the API server is unreachable, do not repeat a request that it refused before: a
	// connection error would replace the reason of the refusal.
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

// hold prevents the running watches of the kinds from ending until release is called, even if
// building and sending a page takes long. It does not start watches.
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

// EndIdle ends each watch that no page has needed for idleLimit. It returns the number of remaining
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

// Run ends idle watches until ctx is done, and then ends the remaining watches.
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

// change records a change of a feed's objects or state, and wakes the pages that wait for changes.
// The caller must hold w.mu.
func (w *World) change(f *feed) {
	w.version++
	f.version = w.version
	w.wakePages()
}

// tell causes all open pages to be built again although no object has changed, for example because
// a new forecast is available.
func (w *World) tell() {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.version++
	w.wakePages()
}

// wakePages wakes the pages that wait for a change. The caller must have incremented w.version, and
// must hold w.mu.
func (w *World) wakePages() {
	close(w.changed)
	w.changed = make(chan struct{})
	if w.onChange != nil {
		w.onChange()
	}
}

// changes returns the number of changes of objects and feeds so far, and a channel that is closed
// at the next change.
func (w *World) changes() (version int64, later <-chan struct{}) {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.version, w.changed
}
