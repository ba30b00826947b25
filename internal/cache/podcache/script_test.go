// Copyright The Tidekeeper Authors.
// SPDX-License-Identifier: Apache-2.0

package podcache

import (
	"context"
	"encoding/binary"
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"net/url"
	"slices"
	"strconv"
	"sync"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/prometheus/client_golang/prometheus"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	kruntime "k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/kubernetes/scheme"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/cache"

	"tidekeeper.dev/tidekeeper/internal/test/waitfor"
)

// handle responds to a request with the given query parameters.
type handle func(w http.ResponseWriter, query url.Values)

// script is an API server with prepared responses. It responds to each list or watch request with
// the next element of lists or watches, and repeats the last element. A watch stays open after its
// response, unless the response has the header Ends.
type script struct {
	lists, watches []handle

	mu sync.Mutex
	// asked records each request. A list request is recorded as its continue token and, if it is
	// not pageSize, its limit; a watch request is recorded as its resourceVersion.
	asked []string
}

func (s *script) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	query := r.URL.Query()
	if accept := r.Header.Get("Accept"); accept != kruntime.ContentTypeProtobuf {
		http.Error(w, "accepts "+accept, http.StatusInternalServerError)
		return
	}
	s.next(query)(w, query)
	if query.Get("watch") != "" && w.Header().Get(ends) == "" {
		w.(http.Flusher).Flush()
		<-r.Context().Done()
	}
}

func (s *script) next(query url.Values) handle {
	s.mu.Lock()
	defer s.mu.Unlock()
	from := &s.lists
	if query.Get("watch") != "" {
		from = &s.watches
		s.asked = append(s.asked, "watch "+query.Get("resourceVersion"))
	} else {
		asked := "list " + query.Get("continue")
		if limit := query.Get("limit"); limit != "" && limit != strconv.Itoa(pageSize) {
			asked += " " + limit
		}
		s.asked = append(s.asked, asked)
	}
	answer := (*from)[0]
	if len(*from) > 1 {
		*from = (*from)[1:]
	}
	return answer
}

func (s *script) requests() []string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return slices.Clone(s.asked)
}

// body returns a handle that responds with the given bytes.
func body(raw ...[]byte) handle {
	return func(w http.ResponseWriter, _ url.Values) { _, _ = w.Write(slices.Concat(raw...)) }
}

// ends is the response header by which a handle requests that the watch end after the response.
const ends = "Ends"

// ended returns a handle that responds to a watch request with the given bytes, then ends the
// watch.
func ended(raw ...[]byte) handle {
	return func(w http.ResponseWriter, query url.Values) {
		w.Header().Set(ends, "true")
		body(raw...)(w, query)
	}
}

// cut returns a handle that sends the given bytes, then aborts the connection.
func cut(raw ...[]byte) handle {
	return func(w http.ResponseWriter, query url.Values) {
		body(raw...)(w, query)
		w.(http.Flusher).Flush()
		panic(http.ErrAbortHandler)
	}
}

// refuse returns a handle that responds with the given API error.
func refuse(err *apierrors.StatusError) handle {
	return func(w http.ResponseWriter, _ url.Values) {
		w.Header().Set("Content-Type", "application/json")
		w.Header().Set(ends, "true")
		w.WriteHeader(int(err.ErrStatus.Code))
		status := err.ErrStatus
		status.TypeMeta = metav1.TypeMeta{APIVersion: "v1", Kind: "Status"}
		_ = json.NewEncoder(w).Encode(status)
	}
}

// frame returns a watch event in the API server's wire format.
func frame(t testing.TB, what watch.EventType, kind string, object interface{ Marshal() ([]byte, error) }) []byte {
	t.Helper()
	event := &metav1.WatchEvent{Type: string(what), Object: kruntime.RawExtension{Raw: inEnvelope(kind, marshal(t, object))}}
	message := marshal(t, event)
	return append(binary.BigEndian.AppendUint32(nil, uint32(len(message))), message...)
}

// versioned returns a pod with the given name and resourceVersion.
func versioned(name, version string) *corev1.Pod {
	pod := podNamed(name, "a")
	pod.ResourceVersion = version
	return pod
}

// scripted is an informer that reads from a script. typedAsks receives the requests that
// client-go's lister serves after a fallback.
type scripted struct {
	*script
	pods      cache.SharedIndexInformer
	registry  *prometheus.Registry
	listed    []int64
	typedAsks chan string
}

// run starts an informer of Pods or Nodes that reads from a script. After a fallback, client-go's
// lister returns a single pod named "typed".
func run(t *testing.T, s *script, object kruntime.Object) *scripted {
	t.Helper()
	content := Content{Pods: testContent(), Nodes: []string{"metadata.name", "metadata.resourceVersion", "metadata.labels"}}
	if _, ofPods := object.(*corev1.Pod); ofPods {
		return runContent(t, s, object, content, slim)
	}
	return runContent(t, s, object, content, func(object any) (any, error) { return object, nil })
}

// runContent starts an informer in the same way as run, but with the given content and transform.
func runContent(t *testing.T, s *script, object kruntime.Object, content Content, transform cache.TransformFunc) *scripted {
	t.Helper()
	server := httptest.NewServer(s)
	t.Cleanup(server.Close)
	out := &scripted{script: s, registry: prometheus.NewRegistry(), typedAsks: make(chan string, 100)}
	typed := &cache.ListWatch{
		ListWithContextFunc: func(context.Context, metav1.ListOptions) (kruntime.Object, error) {
			out.typedAsks <- "list"
			return &corev1.PodList{ListMeta: metav1.ListMeta{ResourceVersion: "70"}, Items: []corev1.Pod{*versioned("typed", "70")}}, nil
		},
		WatchFuncWithContext: func(_ context.Context, options metav1.ListOptions) (watch.Interface, error) {
			out.typedAsks <- "watch " + options.ResourceVersion
			events := watch.NewFakeWithChanSize(2, false)
			events.Add(versioned("watched", "71"))
			events.Action(watch.Bookmark, versioned("", "72"))
			return events, nil
		},
	}
	content.Listing = func(n int64) { out.listed = append(out.listed, n) }
	newInformer, err := New(Connection{Config: &rest.Config{Host: server.URL}, Client: server.Client(), Scheme: scheme.Scheme}, content, out.registry)
	if err != nil {
		t.Fatal(err)
	}
	out.pods = newInformer(typed, object, 0, cache.Indexers{})
	if err := out.pods.SetTransform(transform); err != nil {
		t.Fatal(err)
	}
	start(t, out.pods)
	return out
}

// newTestSource returns a source of pods that reads from a script.
func newTestSource(t *testing.T, s *script) *source {
	t.Helper()
	server := httptest.NewServer(s)
	t.Cleanup(server.Close)
	w, err := newSource(Connection{Config: &rest.Config{Host: server.URL}, Client: server.Client(), Scheme: scheme.Scheme}, "pods", "Pod", newMetrics())
	if err != nil {
		t.Fatal(err)
	}
	w.newDecoder = func() decoder {
		d, _ := newTestDecoder(t)
		return d
	}
	return w
}

// expect waits until the informer's store contains exactly the given objects, each written as its
// name and resourceVersion.
func (s *scripted) expect(t *testing.T, want ...string) {
	t.Helper()
	waitfor.Nil(t, fmt.Sprintf("the store has %q", want), func() error {
		got := []string{}
		for _, object := range s.pods.GetStore().List() {
			about := object.(metav1.Object)
			got = append(got, about.GetName()+" "+about.GetResourceVersion())
		}
		slices.Sort(got)
		if s.pods.HasSynced() && slices.Equal(got, want) {
			return nil
		}
		return fmt.Errorf("it has %q; asked for %q", got, s.requests())
	})
}

// expectVersion waits until the informer has received the given resourceVersion.
func (s *scripted) expectVersion(t *testing.T, want string) {
	t.Helper()
	waitfor.Nil(t, "the informer is at "+want, func() error {
		if at := s.pods.LastSyncResourceVersion(); at != want {
			return fmt.Errorf("it is at %s", at)
		}
		return nil
	})
}

// expectFallbacks checks the value that the metric of fallbacks to client-go has for pods.
func (s *scripted) expectFallbacks(t *testing.T, want float64) {
	t.Helper()
	s.expectMetrics(t, map[string]float64{"tidekeeper_cache_fallbacks_total of Node": 0, "tidekeeper_cache_fallbacks_total of Pod": want})
}

// expectMetrics checks that the registry contains exactly the given metrics.
func (s *scripted) expectMetrics(t *testing.T, want map[string]float64) {
	t.Helper()
	families, err := s.registry.Gather()
	if err != nil {
		t.Fatal(err)
	}
	got := map[string]float64{}
	for _, family := range families {
		for _, metric := range family.GetMetric() {
			got[family.GetName()+" of "+metric.GetLabel()[0].GetValue()] = metric.GetCounter().GetValue()
		}
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("metrics (-want +got):\n%s", diff)
	}
}

var quiet = body()
