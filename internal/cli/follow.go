// Copyright The Tidekeeper Authors.
// SPDX-License-Identifier: Apache-2.0

package cli

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/tools/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"

	tidekeeperv1 "tidekeeper.dev/tidekeeper/api/v1"
)

// follower goes on where a table ends, with a line for each object that changes
// what the table shows of it.
type follower struct {
	app       *app
	kind      string
	namespace string // "": all
	// list is what the table has shown, and empty makes a list of its kind.
	list  client.ObjectList
	empty func() client.ObjectList
	// options choose what is followed.
	options client.ListOptions
	// table makes the table of one object, and widths are those of the columns.
	table  func(o client.Object, now time.Time) *table
	widths []int
}

// follow prints until the context ends, or what is followed may no longer be
// read. A watch that ends goes on where it was; after a longer gap everything is
// read anew, so that no change and no deletion is missed.
func (f *follower) follow(ctx context.Context, c client.WithWatch) error {
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	lines := &changeLines{follower: f, began: f.app.now(), shown: map[string]string{}, cancel: cancel}
	if err := lines.remember(f.list); err != nil {
		return err
	}
	informer := cache.NewSharedIndexInformer(f.source(c, cancel), exampleOf(f.kind), 0, nil)
	if _, err := informer.AddEventHandler(cache.ResourceEventHandlerFuncs{
		AddFunc:    lines.changed,
		UpdateFunc: func(_, o any) { lines.changed(o) },
		DeleteFunc: lines.deleted,
	}); err != nil {
		return err
	}
	var running sync.WaitGroup
	running.Go(func() { informer.RunWithContext(ctx) })
	<-ctx.Done()
	running.Wait()
	return context.Cause(ctx)
}

// exampleOf is an object of a kind, for an informer.
func exampleOf(kind string) runtime.Object {
	o, err := scheme.New(tidekeeperv1.SchemeGroupVersion.WithKind(kind))
	if err != nil {
		panic("our own kinds are in the scheme: " + err.Error())
	}
	return o
}

// source is what the informer lists and watches. It begins with the list that
// was shown.
func (f *follower) source(c client.WithWatch, cancel context.CancelCauseFunc) cache.ListerWatcher {
	var shown atomic.Bool
	var lost atomic.Bool
	// What cannot get better ends it; all else is told of once, and tried again.
	heed := func(ctx context.Context, err error) error {
		switch {
		case err == nil:
			lost.Store(false)
		case ctx.Err() != nil, apierrors.IsResourceExpired(err), apierrors.IsGone(err):
		case apierrors.IsForbidden(err), apierrors.IsUnauthorized(err), apierrors.IsNotFound(err):
			cancel(aboutKind(err, f.kind, f.namespace, ""))
		case !lost.Swap(true):
			_, message := explainError(err)
			fmt.Fprintln(f.app.errOut, oneLine(message)+"; trying again")
		}
		return err
	}
	options := func(raw metav1.ListOptions) *client.ListOptions {
		o := f.options
		o.Limit, o.Continue, o.Raw = raw.Limit, raw.Continue, &raw
		return &o
	}
	return plainListWatch{&cache.ListWatch{
		ListWithContextFunc: func(ctx context.Context, raw metav1.ListOptions) (runtime.Object, error) {
			if !shown.Swap(true) {
				return f.list, nil
			}
			list := f.empty()
			err := c.List(ctx, list, options(raw))
			return list, heed(ctx, err)
		},
		WatchFuncWithContext: func(ctx context.Context, raw metav1.ListOptions) (watch.Interface, error) {
			w, err := c.Watch(ctx, f.empty(), options(raw))
			return w, heed(ctx, err)
		},
	}}
}

// plainListWatch lists and watches, and does not get the list as a watch.
type plainListWatch struct{ *cache.ListWatch }

// IsWatchListSemanticsUnSupported is how client-go asks.
func (plainListWatch) IsWatchListSemanticsUnSupported() bool { return true }

// changeLines prints what changes. The informer calls it from one goroutine.
type changeLines struct {
	*follower
	began  time.Time
	shown  map[string]string
	cancel context.CancelCauseFunc
}

// remember takes what a table has shown.
func (l *changeLines) remember(list client.ObjectList) error {
	return meta.EachListItem(list, func(item runtime.Object) error {
		o := item.(client.Object)
		row, err := l.row(o, l.began)
		l.shown[nameIn(o, l.namespace)] = row
		return err
	})
}

func (l *changeLines) row(o client.Object, now time.Time) (string, error) {
	t := l.table(o, now)
	t.widths, t.bare = l.widths, true
	var text strings.Builder
	err := t.writeTo(&text, l.app.screen)
	return text.String(), err
}

func (l *changeLines) changed(o any) {
	object := o.(client.Object)
	name := nameIn(object, l.namespace)
	// That it grows older is no change.
	same, err := l.row(object, l.began)
	if err == nil && l.shown[name] == same {
		return
	}
	l.shown[name] = same
	row, err2 := l.row(object, l.app.now())
	_, err3 := fmt.Fprint(l.app.out, row)
	l.end(errors.Join(err, err2, err3))
}

func (l *changeLines) deleted(o any) {
	// After a gap all that is known is the last state seen.
	if gap, ok := o.(cache.DeletedFinalStateUnknown); ok {
		o = gap.Obj
	}
	name := nameIn(o.(client.Object), l.namespace)
	delete(l.shown, name)
	_, err := fmt.Fprintf(l.app.out, "%s was deleted\n", printable(name))
	l.end(err)
}

// end ends it all, if nobody reads any more.
func (l *changeLines) end(err error) {
	if err != nil {
		l.cancel(err)
	}
}

// nameIn names an object as a table of a namespace does.
func nameIn(o client.Object, namespace string) string {
	if o.GetNamespace() == "" || o.GetNamespace() == namespace {
		return o.GetName()
	}
	return o.GetNamespace() + "/" + o.GetName()
}
