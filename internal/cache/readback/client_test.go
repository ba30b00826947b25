// Copyright The Tidekeeper Authors.
// SPDX-License-Identifier: Apache-2.0

package readback

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"testing"
	"testing/synctest"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	corev1 "k8s.io/api/core/v1"
	nodev1 "k8s.io/api/node/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	corev1ac "k8s.io/client-go/applyconfigurations/core/v1"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"
)

// world is an API server together with a cache that is updated only by calls of follow.
type world struct {
	*Client
	server client.WithWatch
	cache  map[string]*corev1.ConfigMap
	// gets counts reads from the cache. lists counts reads from the API server.
	gets, lists int
	// onGet, if not nil, is called before each read of the cache.
	onGet func()
}

func newWorld(t *testing.T, there ...client.Object) *world {
	t.Helper()
	w := &world{cache: map[string]*corev1.ConfigMap{}}
	w.server = fake.NewClientBuilder().WithScheme(clientgoscheme.Scheme).WithObjects(there...).
		WithIndex(&corev1.ConfigMap{}, metav1.ObjectNameField, func(o client.Object) []string { return []string{o.GetName()} }).Build()
	inner := interceptor.NewClient(w.server, interceptor.Funcs{
		Get: func(_ context.Context, _ client.WithWatch, name client.ObjectKey, object client.Object, _ ...client.GetOption) error {
			w.gets++
			if w.onGet != nil {
				w.onGet()
			}
			found, ok := w.cache[name.Name]
			if !ok {
				return apierrors.NewNotFound(corev1.Resource("configmaps"), name.Name)
			}
			found.DeepCopyInto(object.(*corev1.ConfigMap))
			return nil
		},
	})
	live := interceptor.NewClient(w.server, interceptor.Funcs{
		List: func(ctx context.Context, c client.WithWatch, list client.ObjectList, opts ...client.ListOption) error {
			w.lists++
			return c.List(ctx, list, opts...)
		},
		Get: func(context.Context, client.WithWatch, client.ObjectKey, client.Object, ...client.GetOption) error {
			return errors.New("there is no right to get")
		},
	})
	c, err := New(inner, live, prometheus.NewRegistry())
	if err != nil {
		t.Fatal(err)
	}
	w.Client = c
	w.follow(t)
	return w
}

// follow copies the API server's state to the cache.
func (w *world) follow(t *testing.T) {
	t.Helper()
	list := &corev1.ConfigMapList{}
	if err := w.server.List(t.Context(), list); err != nil {
		t.Fatal(err)
	}
	clear(w.cache)
	for i := range list.Items {
		w.cache[list.Items[i].Name] = &list.Items[i]
	}
}

// read reads the ConfigMap shop/web through the client in the same way as a reconciler.
func (w *world) read(t *testing.T) (*corev1.ConfigMap, error) {
	t.Helper()
	object := &corev1.ConfigMap{}
	err := w.Get(t.Context(), client.ObjectKey{Namespace: "shop", Name: "web"}, object)
	return object, err
}

// expect reads the ConfigMap shop/web. It checks the ConfigMap's value ("" means that it does not
// exist) and the number of requests that the read sends to the API server.
func (w *world) expect(t *testing.T, what, value string, live int) {
	t.Helper()
	before := w.lists
	object, err := w.read(t)
	switch {
	case value == "" && !apierrors.IsNotFound(err):
		t.Errorf("%s: %v %v, want that it is gone", what, object.Data, err)
	case value != "" && err != nil:
		t.Errorf("%s: %v", what, err)
	case value != "" && object.Data["key"] != value:
		t.Errorf("%s: it is %q, want %q", what, object.Data["key"], value)
	}
	if got := w.lists - before; got != live {
		t.Errorf("%s: the API server was asked %d times, want %d", what, got, live)
	}
}

func configMap(value string) *corev1.ConfigMap {
	return &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "web", UID: "first"}, Data: map[string]string{"key": value}}
}

func (w *world) change(t *testing.T, value string) {
	t.Helper()
	object := configMap("")
	if err := w.Patch(t.Context(), object, client.RawPatch("application/merge-patch+json", []byte(`{"data":{"key":"`+value+`"}}`))); err != nil {
		t.Fatal(err)
	}
}

func TestReadsItsWrites(t *testing.T) { synctest.Test(t, readsItsWrites) }

func readsItsWrites(t *testing.T) {
	w := newWorld(t, configMap("1"))
	w.expect(t, "before", "1", 0)
	w.change(t, "2")
	start := time.Now()
	w.expect(t, "behind", "2", 1)
	if waited := time.Since(start); waited != maxWait {
		t.Errorf("the cache was given %s, want %s", waited, maxWait)
	}
	start = time.Now()
	w.expect(t, "behind for long", "2", 1)
	if waited := time.Since(start); waited > 0 {
		t.Errorf("the cache was waited for once more, for %s", waited)
	}
	w.follow(t)
	w.expect(t, "caught up", "2", 0)
	if len(w.writes.last) != 0 {
		t.Errorf("it is remembered: %v", w.writes.last)
	}

	// The cache shows the write while the client is waiting for it.
	w.change(t, "3")
	w.gets = 0
	w.onGet = func() {
		if w.gets == 3 {
			w.follow(t)
		}
	}
	w.expect(t, "a moment behind", "3", 0)
}

func TestReadsItsDeletions(t *testing.T) { synctest.Test(t, readsItsDeletions) }

func readsItsDeletions(t *testing.T) {
	w := newWorld(t, configMap("1"))
	object, err := w.read(t)
	if err != nil {
		t.Fatal(err)
	}
	if err := w.Delete(t.Context(), object); err != nil {
		t.Fatal(err)
	}
	w.expect(t, "the cache has it", "", 1)
	w.expect(t, "the cache has it still", "", 1)
	// Another client creates a new object with the same name.
	again := configMap("2")
	again.UID = "second"
	if err := w.server.Create(t.Context(), again); err != nil {
		t.Fatal(err)
	}
	w.expect(t, "the cache has the old one", "2", 1)
	w.follow(t)
	w.expect(t, "the cache has the new one", "2", 0)
	if len(w.writes.last) != 0 {
		t.Errorf("it is remembered: %v", w.writes.last)
	}
}

func TestReadsWhatItMade(t *testing.T) { synctest.Test(t, readsWhatItMade) }

func readsWhatItMade(t *testing.T) {
	w := newWorld(t)
	w.expect(t, "before", "", 0)
	if err := w.Create(t.Context(), configMap("1")); err != nil {
		t.Fatal(err)
	}
	w.expect(t, "made", "1", 1)
	w.expect(t, "made, still behind", "1", 1)
	w.follow(t)
	w.expect(t, "caught up", "1", 0)

	w = newWorld(t)
	if err := w.Apply(t.Context(), corev1ac.ConfigMap("web", "shop").WithData(map[string]string{"key": "1"}), client.FieldOwner("x")); err != nil {
		t.Fatal(err)
	}
	w.expect(t, "applied", "1", 1)
	w.follow(t)
	w.expect(t, "caught up", "1", 0)
}

// TestLastFinalizer checks reads after the last finalizer has been removed: they neither wait nor
// send a request to the API server.
func TestLastFinalizer(t *testing.T) { synctest.Test(t, lastFinalizer) }

func lastFinalizer(t *testing.T) {
	held := configMap("1")
	held.Finalizers = []string{"example.com/held"}
	w := newWorld(t, held)
	if err := w.server.Delete(t.Context(), configMap("")); err != nil {
		t.Fatal(err)
	}
	w.follow(t)
	object, err := w.read(t)
	if err != nil {
		t.Fatal(err)
	}
	before := object.DeepCopy()
	object.Finalizers = nil
	if err := w.Patch(t.Context(), object, client.MergeFrom(before)); err != nil {
		t.Fatal(err)
	}
	clear(w.cache)
	start := time.Now()
	if _, err := w.read(t); !apierrors.IsNotFound(err) {
		t.Errorf("it is there: %v", err)
	}
	if waited := time.Since(start); waited > 0 {
		t.Errorf("it was waited for, for %s", waited)
	}
}

// TestDeletedByOthers checks reads of an object that another client deleted or replaced immediately
// after this client had written it.
func TestDeletedByOthers(t *testing.T) { synctest.Test(t, deletedByOthers) }

func deletedByOthers(t *testing.T) {
	w := newWorld(t, configMap("1"))
	w.change(t, "2")
	if err := w.server.Delete(t.Context(), configMap("")); err != nil {
		t.Fatal(err)
	}
	clear(w.cache)
	start := time.Now()
	w.expect(t, "gone", "", 1)
	if waited := time.Since(start); waited > 0 {
		t.Errorf("it was waited for, for %s", waited)
	}
	w.expect(t, "gone, and known to be", "", 0)

	// Another client replaces the object that this client has just created.
	if err := w.Create(t.Context(), configMap("3")); err != nil {
		t.Fatal(err)
	}
	if err := w.server.Delete(t.Context(), configMap("")); err != nil {
		t.Fatal(err)
	}
	theirs := configMap("4")
	theirs.UID = "theirs"
	if err := w.server.Create(t.Context(), theirs); err != nil {
		t.Fatal(err)
	}
	w.follow(t)
	w.expect(t, "replaced", "4", 1)
	w.expect(t, "replaced, and known to be", "4", 0)
}

// TestWaitEndsWithItsContext checks that the wait for the cache ends when the caller's context is
// cancelled.
func TestWaitEndsWithItsContext(t *testing.T) { synctest.Test(t, waitEndsWithItsContext) }

func waitEndsWithItsContext(t *testing.T) {
	w := newWorld(t, configMap("1"))
	w.change(t, "2")
	ctx, cancel := context.WithTimeout(t.Context(), 20*time.Millisecond)
	defer cancel()
	err := w.Get(ctx, client.ObjectKey{Namespace: "shop", Name: "web"}, &corev1.ConfigMap{})
	if !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("it ends with %v", err)
	}
}

// TestMemory checks that the client eventually forgets a write to an object that is never read
// again.
func TestMemory(t *testing.T) {
	now := time.Unix(1_000_000, 0)
	w := newWrites(clockAt{&now})
	for i := range 20 * minSweep {
		now = now.Add(time.Second)
		k := key{nodev1.SchemeGroupVersion.WithKind("RuntimeClass"), client.ObjectKey{Name: fmt.Sprint(i)}}
		w.add(k, write{uid: "x", version: int64(i)})
	}
	if got := len(w.last); got > 3*minSweep {
		t.Errorf("%d writes are kept", got)
	}
	for k := range maps.Clone(w.last) {
		now = now.Add(keepFor)
		if _, behind := w.missing(k, nil); behind {
			t.Error("what was written long ago is waited for")
		}
		break
	}
}

type clockAt struct{ now *time.Time }

func (c clockAt) Now() time.Time                  { return *c.now }
func (c clockAt) Since(t time.Time) time.Duration { return c.now.Sub(t) }
