// Copyright The Tidekeeper Authors.
// SPDX-License-Identifier: Apache-2.0

package informers

import (
	"context"
	"errors"
	"fmt"
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/tools/cache"
	"sigs.k8s.io/controller-runtime/pkg/cache/cacheapi"
)

func pod(name string) *corev1.Pod { return &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Name: name}} }

func TestHandler(t *testing.T) {
	var calls []string
	record := func(format string, args ...any) { calls = append(calls, fmt.Sprintf(format, args...)) }
	var handler cache.ResourceEventHandler = Handler[*corev1.Pod]{
		Add:    func(p *corev1.Pod, initial bool) { record("add %s %t", p.Name, initial) },
		Update: func(old, p *corev1.Pod) { record("update %s %s", old.Name, p.Name) },
		Delete: func(p *corev1.Pod, missed bool) { record("delete %s %t", p.Name, missed) },
	}
	handler.OnAdd(pod("a"), true)
	handler.OnAdd(pod("b"), false)
	handler.OnUpdate(pod("a"), pod("a2"))
	handler.OnDelete(pod("a"))
	handler.OnDelete(cache.DeletedFinalStateUnknown{Key: "b", Obj: pod("b")})
	want := []string{"add a true", "add b false", "update a a2", "delete a false", "delete b true"}
	if diff := cmp.Diff(want, calls); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}

	// A handler whose functions are all nil must ignore all events.
	handler = Handler[*corev1.Pod]{}
	handler.OnAdd(pod("a"), true)
	handler.OnUpdate(pod("a"), pod("a"))
	handler.OnDelete(pod("a"))
}

// fakeInformers provides an informer for pods, and records the handlers added to it.
type fakeInformers struct {
	cacheapi.Informers
	cacheapi.Informer
	added cache.ResourceEventHandler
	err   error
}

func (f *fakeInformers) GetInformer(_ context.Context, kind cacheapi.Object, options ...cacheapi.InformerGetOption) (cacheapi.Informer, error) {
	var o cacheapi.InformerGetOptions
	for _, set := range options {
		set(&o)
	}
	if _, ok := kind.(*corev1.Pod); !ok || o.BlockUntilSynced == nil || *o.BlockUntilSynced {
		return nil, fmt.Errorf("asked for %T with %+v", kind, o)
	}
	return f, f.err
}

func (f *fakeInformers) AddEventHandler(handler cache.ResourceEventHandler) (cache.ResourceEventHandlerRegistration, error) {
	f.added = handler
	return nil, nil
}

func TestFollow(t *testing.T) {
	var added string
	f := &fakeInformers{}
	if _, err := Follow(t.Context(), f, Handler[*corev1.Pod]{Add: func(p *corev1.Pod, _ bool) { added = p.Name }}); err != nil {
		t.Fatal(err)
	}
	f.added.OnAdd(pod("a"), false)
	if added != "a" {
		t.Errorf("the handler got %q", added)
	}

	f.err = errors.New("no such kind")
	if _, err := Follow(t.Context(), f, Handler[*corev1.Pod]{}); !errors.Is(err, f.err) {
		t.Errorf("error %v", err)
	}
}
