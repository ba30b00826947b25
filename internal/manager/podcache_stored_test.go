// Copyright The Tidekeeper Authors.
// SPDX-License-Identifier: Apache-2.0

package manager

import (
	"context"
	"errors"
	"net/http"
	"net/http/httptest"
	"strconv"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	"github.com/prometheus/client_golang/prometheus"
	"google.golang.org/protobuf/encoding/protowire"
	"k8s.io/apimachinery/pkg/api/equality"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	apiruntime "k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/rest"
	toolscache "k8s.io/client-go/tools/cache"
	"k8s.io/utils/clock"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"tidekeeper.dev/tidekeeper/internal/cache/podcache"
)

// stored is an API server that sends objects of a kind. It also holds the objects that a cache
// should store for them.
type stored struct {
	kind      string
	object    client.Object
	transform toolscache.TransformFunc
	sent      [][]byte
	want      []client.Object
}

// first returns a server with only the first n objects.
func (s *stored) first(n int) *stored {
	few := *s
	few.sent, few.want = s.sent[:n], s.want[:n]
	return &few
}

// expectDecoded checks that a cache with the given content stores the expected objects, both with
// and without verification, and that verification finds no differences.
func (s *stored) expectDecoded(t *testing.T, content podcache.Content) {
	t.Helper()
	if diff := s.difference(t, content, prometheus.NewRegistry()); diff != "" {
		t.Fatalf("what the cache has (-want +got):\n%s", diff)
	}
	if got := s.differences(t, content); got > 0 {
		t.Errorf("%d objects differ from client-go's", got)
	}
}

// fewObjects is the number of objects that expectNoticed tries first. Nearly every field is set in
// some of them.
const fewObjects = 60

// expectNoticed checks that verification finds differences in a cache whose given content is wrong.
func (s *stored) expectNoticed(t *testing.T, content podcache.Content) {
	t.Helper()
	if s.first(min(fewObjects, len(s.sent))).differences(t, content) == 0 && s.differences(t, content) == 0 {
		t.Errorf("none of %d objects differs from client-go's", len(s.sent))
	}
}

// differences returns the number of objects in which verification finds a difference, for a cache
// with the given content. It also checks that the cache stores the expected objects despite any
// differences.
func (s *stored) differences(t *testing.T, content podcache.Content) int {
	t.Helper()
	content.Verify = clock.RealClock{}
	registry := prometheus.NewRegistry()
	if diff := s.difference(t, content, registry); diff != "" {
		t.Errorf("what the cache has when client-go decodes, too (-want +got):\n%s", diff)
	}
	if got := counted(t, registry, "tidekeeper_cache_decoding_verified_total"); got != len(s.sent) {
		t.Errorf("%d objects were verified, want %d", got, len(s.sent))
	}
	return counted(t, registry, "tidekeeper_cache_decoding_differences_total")
}

// counted returns the sum of a counter's values over all labels.
func counted(t *testing.T, registry prometheus.Gatherer, name string) (sum int) {
	t.Helper()
	families, err := registry.Gather()
	if err != nil {
		t.Fatal(err)
	}
	for _, family := range families {
		for _, metric := range family.GetMetric() {
			if family.GetName() == name {
				sum += int(metric.GetCounter().GetValue())
			}
		}
	}
	return sum
}

// difference describes the first stored object that differs from the expected object. It returns ""
// if there is none.
func (s *stored) difference(t *testing.T, content podcache.Content, registry prometheus.Registerer) string {
	t.Helper()
	scheme, err := newScheme()
	if err != nil {
		t.Fatal(err)
	}
	server := httptest.NewServer(s)
	defer server.Close()
	newInformer, err := podcache.New(
		podcache.Connection{Config: &rest.Config{Host: server.URL}, Client: server.Client(), Scheme: scheme}, content, registry)
	if err != nil {
		t.Fatal(err)
	}
	informer := newInformer(noTypedList(), s.object, 0, toolscache.Indexers{})
	if err := informer.SetTransform(s.transform); err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	stopped := make(chan struct{})
	go func() { informer.RunWithContext(ctx); close(stopped) }()
	defer func() { cancel(); <-stopped }()
	if !toolscache.WaitForCacheSync(ctx.Done(), informer.HasSynced) {
		t.Fatal("the cache is not filled")
	}
	for _, want := range s.want {
		got, exists, err := informer.GetStore().Get(want)
		if err != nil {
			t.Fatal(err)
		}
		if !exists {
			return "no " + want.GetName()
		}
		if !equality.Semantic.DeepEqual(want, got) {
			return cmp.Diff(want, got, cmpopts.EquateEmpty()) + "."
		}
	}
	return ""
}

// ServeHTTP responds to list requests with pages of objects, and to watch requests without events.
func (s *stored) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	if r.URL.Query().Get("watch") != "" {
		w.(http.Flusher).Flush()
		<-r.Context().Done()
		return
	}
	first, _ := strconv.Atoi(r.URL.Query().Get("continue"))
	limit, err := strconv.Atoi(r.URL.Query().Get("limit"))
	if err != nil {
		http.Error(w, "not asked for a page", http.StatusBadRequest)
		return
	}
	about := metav1.ListMeta{ResourceVersion: "7"}
	last := min(first+limit, len(s.sent))
	if last < len(s.sent) {
		about.Continue = strconv.Itoa(last)
	}
	meta, err := about.Marshal()
	list := protowire.AppendBytes(protowire.AppendTag(nil, 1, protowire.BytesType), meta)
	for _, raw := range s.sent[first:last] {
		list = protowire.AppendBytes(protowire.AppendTag(list, 2, protowire.BytesType), raw)
	}
	answer := apiruntime.Unknown{TypeMeta: apiruntime.TypeMeta{APIVersion: "v1", Kind: s.kind + "List"}, Raw: list}
	body, encodeErr := answer.Marshal()
	if err := errors.Join(err, encodeErr); err != nil {
		http.Error(w, err.Error(), http.StatusInternalServerError)
		return
	}
	_, _ = w.Write(append([]byte("k8s\x00"), body...))
}
