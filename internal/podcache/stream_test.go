// Copyright The Tidekeeper Authors.
// SPDX-License-Identifier: Apache-2.0

package podcache

import (
	"bytes"
	"context"
	"encoding/binary"
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

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
)

// handle answers a request whose parameters are query.
type handle func(w http.ResponseWriter, query url.Values)

// script is an API server that answers each list and each watch by the next handle, and the last
// one again and again. A watch that has answered stays open.
type script struct {
	lists, watches []handle

	mu sync.Mutex
	// asked are the requests in short, such as list 500 or watch 7.
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
		s.asked = append(s.asked, "list "+query.Get("continue"))
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

// body answers with bytes.
func body(raw ...[]byte) handle {
	return func(w http.ResponseWriter, _ url.Values) { _, _ = w.Write(slices.Concat(raw...)) }
}

// ends is the header of a watch that ends with its answer.
const ends = "Ends"

// ended answers a watch with bytes, and ends it.
func ended(raw ...[]byte) handle {
	return func(w http.ResponseWriter, query url.Values) {
		w.Header().Set(ends, "true")
		body(raw...)(w, query)
	}
}

// cut answers with bytes, and closes the connection.
func cut(raw ...[]byte) handle {
	return func(w http.ResponseWriter, query url.Values) {
		body(raw...)(w, query)
		w.(http.Flusher).Flush()
		panic(http.ErrAbortHandler)
	}
}

// refuse answers with an error of the API server.
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

// frame returns an event as it is sent.
func frame(t testing.TB, what watch.EventType, kind string, object interface{ Marshal() ([]byte, error) }) []byte {
	t.Helper()
	event := &metav1.WatchEvent{Type: string(what), Object: kruntime.RawExtension{Raw: inEnvelope(kind, marshal(t, object))}}
	message := marshal(t, event)
	return append(binary.BigEndian.AppendUint32(nil, uint32(len(message))), message...)
}

// versioned returns a pod of a version.
func versioned(name, version string) *corev1.Pod {
	pod := podNamed(name, "a")
	pod.ResourceVersion = version
	return pod
}

// scripted is an informer of pods behind a script, with what is read if it falls back.
type scripted struct {
	*script
	pods      cache.SharedIndexInformer
	registry  *prometheus.Registry
	listed    []int64
	typedAsks chan string
}

// run starts an informer of pods, or of nodes, that asks the script. What client-go would decode
// is one pod named typed.
func run(t *testing.T, s *script, object kruntime.Object) *scripted {
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
	newInformer, err := New(
		Connection{Config: &rest.Config{Host: server.URL}, Client: server.Client(), Scheme: scheme.Scheme},
		Content{Pods: testContent(), Nodes: []string{"metadata.name", "metadata.resourceVersion", "metadata.labels"}, Listing: func(n int64) { out.listed = append(out.listed, n) }},
		out.registry)
	if err != nil {
		t.Fatal(err)
	}
	out.pods = newInformer(typed, object, 0, cache.Indexers{})
	if _, ofPods := object.(*corev1.Pod); ofPods {
		if err := out.pods.SetTransform(slim); err != nil {
			t.Fatal(err)
		}
	}
	start(t, out.pods)
	return out
}

// newTestWire returns a wire of pods that asks the script.
func newTestWire(t *testing.T, s *script) *wire {
	t.Helper()
	server := httptest.NewServer(s)
	t.Cleanup(server.Close)
	w, err := newWire(Connection{Config: &rest.Config{Host: server.URL}, Client: server.Client(), Scheme: scheme.Scheme}, "pods", "Pod", newFallbacks())
	if err != nil {
		t.Fatal(err)
	}
	w.newDecoder = func() decoder {
		d, _ := newTestDecoder(t)
		return d
	}
	return w
}

// expect waits until the informer has these objects, by name and version.
func (s *scripted) expect(t *testing.T, want ...string) {
	t.Helper()
	var got []string
	for deadline := time.Now().Add(20 * time.Second); ; time.Sleep(time.Millisecond) {
		got = []string{}
		for _, object := range s.pods.GetStore().List() {
			about := object.(metav1.Object)
			got = append(got, about.GetName()+" "+about.GetResourceVersion())
		}
		slices.Sort(got)
		if s.pods.HasSynced() && slices.Equal(got, want) {
			return
		}
		if time.Now().After(deadline) {
			t.Fatalf("the store has %q, want %q; asked for %q", got, want, s.requests())
		}
	}
}

// expectVersion waits until the informer continues from a version.
func (s *scripted) expectVersion(t *testing.T, want string) {
	t.Helper()
	for deadline := time.Now().Add(20 * time.Second); s.pods.LastSyncResourceVersion() != want; time.Sleep(time.Millisecond) {
		if time.Now().After(deadline) {
			t.Fatalf("the informer is at %s, want %s", s.pods.LastSyncResourceVersion(), want)
		}
	}
}

// expectFallbacks expects the metric to say how often client-go had to decode pods.
func (s *scripted) expectFallbacks(t *testing.T, want float64) {
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
	if diff := cmp.Diff(map[string]float64{"tidekeeper_cache_fallbacks_total of Node": 0, "tidekeeper_cache_fallbacks_total of Pod": want}, got); diff != "" {
		t.Errorf("metrics (-want +got):\n%s", diff)
	}
}

var quiet = body()

// Pages and events become records; the informer continues from the version of a bookmark.
func TestPagesAndEvents(t *testing.T) {
	big := versioned("big", "12")
	big.Annotations = map[string]string{"a": strings.Repeat("a", 1<<20)}
	about := metav1.ListMeta{ResourceVersion: "7", Continue: "more", RemainingItemCount: new(int64(1))}
	s := run(t, &script{
		lists: []handle{
			body(podPage(t, about, versioned("a", "1"), versioned("b", "2"))),
			body(podPage(t, metav1.ListMeta{ResourceVersion: "7"}, versioned("c", "3"))),
		},
		watches: []handle{body(
			frame(t, watch.Added, "Pod", versioned("d", "10")), frame(t, watch.Modified, "Pod", versioned("a", "11")),
			frame(t, watch.Added, "Pod", big), frame(t, watch.Deleted, "Pod", versioned("b", "13")),
			frame(t, watch.Bookmark, "Pod", &corev1.Pod{ObjectMeta: metav1.ObjectMeta{ResourceVersion: "20"}}),
		)},
	}, &corev1.Pod{})
	s.expect(t, "a 11", "big 12", "c 3", "d 10")
	s.expectVersion(t, "20")
	s.expectFallbacks(t, 0)
	if diff := cmp.Diff([]string{"list ", "list more", "watch 7"}, s.requests()); diff != "" {
		t.Errorf("requests (-want +got):\n%s", diff)
	}
	if diff := cmp.Diff([]int64{pageSize + 1}, s.listed); diff != "" {
		t.Errorf("announced pods (-want +got):\n%s", diff)
	}
}

// A watch that ends is opened again where it ended, however it ends.
func TestWatchThatEnds(t *testing.T) {
	list := body(podPage(t, metav1.ListMeta{ResourceVersion: "7"}, versioned("a", "1")))
	added := frame(t, watch.Added, "Pod", versioned("b", "10"))
	again := body(frame(t, watch.Added, "Pod", versioned("c", "11")))
	for _, tt := range []struct {
		name string
		sent handle
	}{
		{"in order", ended(added)},
		{"cut", cut(added)},
		{"half a frame", cut(added, added[:len(added)/2])},
		{"half a length", cut(added, added[:2])},
	} {
		t.Run(tt.name, func(t *testing.T) {
			s := run(t, &script{lists: []handle{list}, watches: []handle{tt.sent, again}}, &corev1.Pod{})
			s.expect(t, "a 1", "b 10", "c 11")
			s.expectFallbacks(t, 0)
			if diff := cmp.Diff([]string{"list ", "watch 7", "watch 10"}, s.requests()); diff != "" {
				t.Errorf("requests (-want +got):\n%s", diff)
			}
		})
	}
}

// After an error, the informer lists again, as with client-go's watch.
func TestErrorsOfTheServer(t *testing.T) {
	gone := apierrors.NewResourceExpired("too old")
	page := func(version string, names ...string) handle {
		var pods []*corev1.Pod
		for _, name := range names {
			pods = append(pods, versioned(name, version))
		}
		return body(podPage(t, metav1.ListMeta{ResourceVersion: version}, pods...))
	}
	more := body(podPage(t, metav1.ListMeta{ResourceVersion: "7", Continue: "more"}, versioned("a", "1")))
	huge := binary.BigEndian.AppendUint32(nil, maxObject+1)
	for _, tt := range []struct {
		name           string
		lists, watches []handle
		want           []string
	}{
		{"410 for a watch", []handle{page("7", "a"), page("9", "b")}, []handle{refuse(gone), quiet}, []string{"list ", "watch 7", "list ", "watch 9"}},
		{"410 in a watch", []handle{page("7", "a"), page("9", "b")}, []handle{body(frame(t, watch.Error, "Status", &gone.ErrStatus)), quiet}, []string{"list ", "watch 7", "list ", "watch 9"}},
		{"a huge event", []handle{page("7", "a"), page("9", "b")}, []handle{body(huge), quiet}, []string{"list ", "watch 7", "list ", "watch 9"}},
		{"500 for a list", []handle{refuse(apierrors.NewInternalError(context.Canceled)), page("9", "b")}, []handle{quiet}, []string{"list ", "list ", "watch 9"}},
		{"half a list", []handle{cut([]byte("k8s")), page("9", "b")}, []handle{quiet}, []string{"list ", "list ", "watch 9"}},
		// The list is streamed, and the watch then begins where it ended.
		{"410 for a page", []handle{more, refuse(gone)}, []handle{body(
			frame(t, watch.Added, "Pod", versioned("b", "9")),
			frame(t, watch.Bookmark, "Pod", &corev1.Pod{ObjectMeta: metav1.ObjectMeta{ResourceVersion: "9", Annotations: map[string]string{metav1.InitialEventsAnnotationKey: "true"}}}),
		), quiet}, []string{"list ", "list more", "watch ", "watch 9"}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			s := run(t, &script{lists: tt.lists, watches: tt.watches}, &corev1.Pod{})
			s.expect(t, "b 9")
			for deadline := time.Now().Add(20 * time.Second); len(s.requests()) < len(tt.want) && time.Now().Before(deadline); {
				time.Sleep(time.Millisecond)
			}
			if diff := cmp.Diff(tt.want, s.requests()); diff != "" {
				t.Errorf("requests (-want +got):\n%s", diff)
			}
			s.expectFallbacks(t, 0)
		})
	}
}

var notAcceptable = &apierrors.StatusError{ErrStatus: metav1.Status{Status: metav1.StatusFailure, Code: http.StatusNotAcceptable, Reason: metav1.StatusReasonNotAcceptable}}

// What is not the expected protobuf is left to client-go, from then on.
func TestFallback(t *testing.T) {
	jsonList := []byte(`{"kind":"PodList","apiVersion":"v1","metadata":{"resourceVersion":"7"},"items":[]}`)
	compressed := kruntime.Unknown{TypeMeta: kruntime.TypeMeta{APIVersion: "v1", Kind: "PodList"}, Raw: []byte{}, ContentEncoding: "gzip"}
	for name, list := range map[string]handle{
		"406":                    refuse(notAcceptable),
		"JSON":                   body(jsonList),
		"nothing":                body(),
		"encoded otherwise":      body(prefix, marshal(t, &compressed)),
		"another kind":           body(inEnvelope("NodeList", nil)),
		"a damaged list":         body(inEnvelope("PodList", []byte{0xff, 0xff})),
		"a damaged pod":          body(inEnvelope("PodList", []byte{0x12, 2, 0xff, 0xff})),
		"an item of 16 MiB":      body(inEnvelope("PodList", append([]byte{0x12}, binary.AppendUvarint(nil, maxObject+1)...))),
		"a list that is not one": body(prefix, []byte{0x08, 1}),
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := run(t, &script{lists: []handle{list}, watches: []handle{quiet}}, &corev1.Pod{})
			s.expect(t, "typed 70", "watched 71")
			s.expectVersion(t, "72")
			s.expectFallbacks(t, 1)
			if diff := cmp.Diff([]string{"list "}, s.requests()); diff != "" {
				t.Errorf("requests (-want +got):\n%s", diff)
			}
		})
	}
}

// So is a watch, which ends then.
func TestFallbackOfAWatch(t *testing.T) {
	jsonEvent := []byte(`{"type":"ADDED","object":{"kind":"Pod","apiVersion":"v1"}}`)
	asJSON := marshal(t, &metav1.WatchEvent{Type: "ADDED", Object: kruntime.RawExtension{Raw: []byte(`{"kind":"Pod"}`)}})
	for name, events := range map[string][]byte{
		"an event with JSON":     append(binary.BigEndian.AppendUint32(nil, uint32(len(asJSON))), asJSON...),
		"JSON after a length":    append(binary.BigEndian.AppendUint32(nil, uint32(len(jsonEvent))), jsonEvent...),
		"an event of a node":     frame(t, watch.Added, "Node", &corev1.Node{}),
		"an unknown event":       frame(t, "CHANGED", "Pod", &corev1.Pod{}),
		"an error with a table":  frame(t, watch.Error, "Table", &corev1.Pod{}),
		"a damaged pod":          frame(t, watch.Added, "Pod", damaged{}),
		"a damaged bookmark":     frame(t, watch.Bookmark, "Pod", damaged{}),
		"an error that is worse": frame(t, watch.Error, "Status", damaged{}),
	} {
		t.Run(name, func(t *testing.T) {
			w := newTestWire(t, &script{watches: []handle{body(events)}})
			pods, err := w.watch(t.Context(), metav1.ListOptions{})
			if err != nil {
				t.Fatal(err)
			}
			for e := range pods.ResultChan() {
				t.Errorf("got %v", e)
			}
			if w.understands(t.Context(), nil) {
				t.Error("the next watch is not left to client-go")
			}
		})
	}
	t.Run("406", func(t *testing.T) {
		s := run(t, &script{
			lists:   []handle{body(podPage(t, metav1.ListMeta{ResourceVersion: "7"}, versioned("a", "1")))},
			watches: []handle{refuse(notAcceptable)},
		}, &corev1.Pod{})
		s.expect(t, "a 1", "watched 71")
		s.expectVersion(t, "72")
		s.expectFallbacks(t, 1)
	})
}

// damaged is an object whose bytes are no message.
type damaged struct{}

func (damaged) Marshal() ([]byte, error) { return []byte{0xff}, nil }

// Nodes are read the same way.
func TestNodes(t *testing.T) {
	node := func(version string) *corev1.Node {
		return &corev1.Node{
			ObjectMeta: metav1.ObjectMeta{Name: "n", ResourceVersion: version, Labels: map[string]string{"a": version}},
			Status:     corev1.NodeStatus{Images: []corev1.ContainerImage{{SizeBytes: 1}}},
		}
	}
	list := &corev1.NodeList{ListMeta: metav1.ListMeta{ResourceVersion: "7"}, Items: []corev1.Node{*node("1")}}
	s := run(t, &script{
		lists: []handle{body(inEnvelope("NodeList", marshal(t, list)))},
		watches: []handle{body(
			frame(t, watch.Modified, "Node", node("8")),
			frame(t, watch.Bookmark, "Node", &corev1.Node{ObjectMeta: metav1.ObjectMeta{ResourceVersion: "9"}}),
		)},
	}, &corev1.Node{})
	s.expect(t, "n 8")
	s.expectVersion(t, "9")
	got, _, _ := s.pods.GetStore().GetByKey("n")
	want := node("8")
	want.Status.Images = nil
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("the node (-want +got):\n%s", diff)
	}
}

// A page is asked for as soon as the one before it says how the list continues.
func TestPagesAreAskedForAhead(t *testing.T) {
	asked := make(chan struct{})
	first := podPage(t, metav1.ListMeta{ResourceVersion: "7", Continue: "more"}, typicalPod(1))
	s := run(t, &script{
		lists: []handle{
			func(w http.ResponseWriter, _ url.Values) {
				_, _ = w.Write(first[:200])
				w.(http.Flusher).Flush()
				select {
				case <-asked:
				case <-time.After(20 * time.Second):
					t.Error("the second page is not asked for before the first has ended")
				}
				_, _ = w.Write(first[200:])
			},
			func(w http.ResponseWriter, query url.Values) {
				close(asked)
				body(podPage(t, metav1.ListMeta{ResourceVersion: "7"}, versioned("b", "2")))(w, query)
			},
		},
		watches: []handle{quiet},
	}, &corev1.Pod{})
	s.expect(t, "b 2", typicalPod(1).Name+" "+strconv.Itoa(1_000_001))
}

// A watch that is stopped ends, also while nothing comes, and while nobody takes its events.
func TestStoppedWatch(t *testing.T) {
	var events []byte
	for i := range 4 * eventsAhead {
		events = append(events, frame(t, watch.Added, "Pod", versioned("a", strconv.Itoa(i)))...)
	}
	for name, sent := range map[string]handle{"quiet": quiet, "busy": body(events)} {
		t.Run(name, func(t *testing.T) {
			w := newTestWire(t, &script{watches: []handle{sent}})
			pods, err := w.watch(t.Context(), metav1.ListOptions{})
			if err != nil {
				t.Fatal(err)
			}
			pods.Stop()
			for range pods.ResultChan() { // It is closed.
			}
		})
	}
}

// Half of a page is an error of the connection, and not another format.
func TestCutPage(t *testing.T) {
	whole := podPage(t, metav1.ListMeta{ResourceVersion: "7", Continue: "more"}, typicalPod(1), typicalPod(2))
	count := func(page []byte) (items int, err error) {
		err = readPage(bytes.NewReader(page), "v1", "PodList", func(*metav1.ListMeta) {}, func([]byte) error { items++; return nil })
		return items, err
	}
	if items, err := count(whole); err != nil || items != 2 {
		t.Errorf("%d items, %v", items, err)
	}
	for length := len(prefix); length < len(whole)-4; length += 7 {
		if _, err := count(whole[:length]); err == nil {
			t.Fatalf("%d bytes of %d are taken for a page", length, len(whole))
		}
	}
}
