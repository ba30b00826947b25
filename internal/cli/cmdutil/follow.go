// Copyright The Tidekeeper Authors.
// SPDX-License-Identifier: Apache-2.0

package cmdutil

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/tools/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"

	tidekeeperv1 "tidekeeper.dev/tidekeeper/api/v1"
	"tidekeeper.dev/tidekeeper/internal/kube/informers"
	"tidekeeper.dev/tidekeeper/internal/kube/reconnect"
	"tidekeeper.dev/tidekeeper/internal/term"
)

// Follower implements the flag -w of commands that print a table of objects. After the table, it
// prints a line whenever a displayed field of an object changes.
type Follower struct {
	Console   Console
	Now       func() time.Time
	Kind      string
	Namespace string // "" for all namespaces
	// List contains the objects in the printed table. It is nil if the objects could not be read.
	// Empty returns an empty list of the same kind.
	List  client.ObjectList
	Empty func() client.ObjectList
	// Options selects the objects to follow.
	Options client.ListOptions
	// Context is the kubeconfig context of the followed cluster. It is "" unless several clusters
	// are followed.
	Context string
	// Table returns a table whose only row shows the given object. Layout contains the column
	// widths of the table that was printed first.
	Table  func(o client.Object, now time.Time) *term.Table
	Layout *term.Layout
}

// Follow prints changes until ctx is done or the user loses the permission to read the objects. It
// resumes a watch that ended. If a watch cannot be resumed, it lists the objects again, so that it
// misses no change or deletion. Like kubectl's watches, it ends after --request-timeout.
func (e *Env) Follow(ctx context.Context, f *Follower) error {
	f.Console, f.Now = e.Console, e.Now
	return f.follow(ctx, &e.Kubeconfig)
}

// follow prints the changes of objects in one cluster.
func (f *Follower) follow(ctx context.Context, k *Kubeconfig) error {
	config, err := k.Config()
	if err != nil {
		return err
	}
	config, timeout := WithoutTimeout(config)
	c, err := ClientFor(config)
	if err != nil {
		return err
	}
	ctx, cancel := WatchContext(ctx, timeout)
	defer cancel()
	return WatchEnded(f.run(ctx, c))
}

// errTimeout is the cancellation cause of a watch that ended because of --request-timeout.
var errTimeout = errors.New("--request-timeout has passed")

// WatchContext returns a context that is canceled after the given timeout; 0 means no timeout.
func WatchContext(ctx context.Context, timeout time.Duration) (context.Context, context.CancelFunc) {
	if timeout <= 0 {
		return context.WithCancel(ctx)
	}
	return context.WithTimeoutCause(ctx, timeout, errTimeout)
}

// WatchEnded returns err, the reason why a watch ended, or nil if --request-timeout ended the
// watch.
func WatchEnded(err error) error {
	if errors.Is(err, errTimeout) {
		return nil
	}
	return err
}

func (f *Follower) run(ctx context.Context, c client.WithWatch) error {
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	lines := &changeLines{Follower: f, began: f.Now(), shown: map[string]string{}, cancel: cancel}
	if f.List != nil {
		if err := lines.remember(f.List); err != nil {
			return err
		}
	}
	informer := cache.NewSharedIndexInformer(f.source(c, cancel), exampleOf(f.Kind), 0, nil)
	if _, err := informer.AddEventHandler(informers.Handler[client.Object]{
		Add:    func(o client.Object, _ bool) { lines.changed(o) },
		Update: func(_, o client.Object) { lines.changed(o) },
		Delete: func(o client.Object, _ bool) { lines.deleted(o) },
	}); err != nil {
		return err
	}
	var running sync.WaitGroup
	running.Go(func() { informer.RunWithContext(ctx) })
	<-ctx.Done()
	running.Wait()
	return context.Cause(ctx)
}

// exampleOf returns an empty object of the given kind, which an informer needs.
func exampleOf(kind string) runtime.Object {
	o, err := Scheme.New(tidekeeperv1.SchemeGroupVersion.WithKind(kind))
	if err != nil {
		panic("our own kinds are in the scheme: " + err.Error())
	}
	return o
}

// source returns the ListerWatcher for the informer. The first list consists of the objects in the
// printed table, so it needs no request. The ListerWatcher calls cancel with the error of a request
// if it would be pointless to retry the request.
func (f *Follower) source(c client.WithWatch, cancel context.CancelCauseFunc) cache.ListerWatcher {
	var shown atomic.Bool
	options := func(raw metav1.ListOptions) *client.ListOptions {
		o := f.Options
		o.Limit, o.Continue, o.Raw = raw.Limit, raw.Continue, &raw
		return &o
	}
	source := &cache.ListWatch{
		ListWithContextFunc: func(ctx context.Context, raw metav1.ListOptions) (runtime.Object, error) {
			if f.List != nil && !shown.Swap(true) {
				return f.List, nil
			}
			list := f.Empty()
			err := c.List(ctx, list, options(raw))
			return list, err
		},
		WatchFuncWithContext: func(ctx context.Context, raw metav1.ListOptions) (watch.Interface, error) {
			return c.Watch(ctx, f.Empty(), options(raw))
		},
	}
	connection := &reconnect.Connection{
		Source: source,
		OnLost: func(err error) {
			_, message := ExplainError(AboutKind(err, f.Kind, f.Namespace, ""))
			f.Console.Note(message + "; trying again")
		},
		OnRegained: func() { f.Console.Note("connected again") },
		Stop:       func(err error) { cancel(AboutKind(err, f.Kind, f.Namespace, "")) },
	}
	return plainListWatch{connection.ListerWatcher()}
}

// plainListWatch makes the reflector send a list request before it watches, instead of streaming
// the list.
type plainListWatch struct{ *cache.ListWatch }

// IsWatchListSemanticsUnSupported disables streaming lists in client-go's reflector.
func (plainListWatch) IsWatchListSemanticsUnSupported() bool { return true }

// changeLines prints a line for each object whose table row changes. The informer calls the methods
// changed and deleted from a single goroutine, so the fields need no lock.
type changeLines struct {
	*Follower
	began  time.Time
	shown  map[string]string
	cancel context.CancelCauseFunc
}

// remember stores the rows of the printed table, for comparison with later versions of the objects.
func (l *changeLines) remember(list client.ObjectList) error {
	return meta.EachListItem(list, func(item runtime.Object) error {
		o := item.(client.Object)
		row, err := l.row(o, l.began)
		l.shown[nameIn(o, l.Namespace)] = row
		return err
	})
}

func (l *changeLines) row(o client.Object, now time.Time) (string, error) {
	t := l.Table(o, now)
	t.NoHeader = true
	var text strings.Builder
	err := t.WriteLayout(&text, l.Console.Screen, t.Layout(l.Console.Screen, l.Layout))
	return text.String(), err
}

func (l *changeLines) changed(object client.Object) {
	name := nameIn(object, l.Namespace)
	// Format both versions of the object as of the same time, so that the growing age does not
	// count as a change.
	same, err := l.row(object, l.began)
	if err == nil && l.shown[name] == same {
		return
	}
	l.shown[name] = same
	row, err2 := l.row(object, l.Now())
	_, err3 := fmt.Fprint(l.Console.Out, row)
	l.end(errors.Join(err, err2, err3))
}

func (l *changeLines) deleted(object client.Object) {
	name := nameIn(object, l.Namespace)
	delete(l.shown, name)
	if l.Context != "" {
		name = l.Context + ": " + name
	}
	_, err := fmt.Fprintf(l.Console.Out, "%s was deleted\n", term.Printable(name))
	l.end(err)
}

// end stops following the objects if err is not nil, for example because stdout is closed.
func (l *changeLines) end(err error) {
	if err != nil {
		l.cancel(err)
	}
}

// nameIn returns the object's name. It adds the object's namespace as a prefix unless the table
// covers only this namespace. namespace is "" if the table covers all namespaces.
func nameIn(o client.Object, namespace string) string {
	if o.GetNamespace() == "" || o.GetNamespace() == namespace {
		return o.GetName()
	}
	return o.GetNamespace() + "/" + o.GetName()
}
