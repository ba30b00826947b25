// Copyright The Tidekeeper Authors.
// SPDX-License-Identifier: Apache-2.0

package manager

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"net/url"
	"os"
	"runtime"
	"slices"
	"strconv"
	"testing"
	"text/tabwriter"
	"time"

	"github.com/go-logr/logr"
	"github.com/prometheus/client_golang/prometheus"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	apiruntime "k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/serializer/protobuf"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/rest"
	toolscache "k8s.io/client-go/tools/cache"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/apiutil"
	"sigs.k8s.io/controller-runtime/pkg/log"

	"tidekeeper.dev/tidekeeper/internal/cache/podcache"
)

// TestPodCache measures the memory per pod of three caches: client-go's cache, the manager's cache,
// and the manager's cache with pods of which no two are alike. make bench-podcache prints the
// results for 150,000 pods. As a test it uses few pods, and checks only the ratios of the memory,
// which do not depend on timing.
//
// The manager's cache has its production options and indexes, and reads pods over HTTP as protobuf,
// in the same way as from an API server.
func TestPodCache(t *testing.T) {
	counts := map[string]int{"small": 600, "medium": 30_000, "full": 150_000}
	size := cmp.Or(os.Getenv("SIZE"), "small")
	count, known := counts[size]
	if !known {
		t.Fatalf("SIZE=%s: must be small, medium or full", size)
	}
	if size != "small" {
		log.SetLogger(logr.Discard()) // the reflector would log that the first list takes too long
	}
	chosen := chosenBy(t, "*", "")
	alike, different := population{count, true}, population{count, false}
	// The measurements run one after the other, because the first takes most of the available
	// memory.
	sent := measureCache(t, alike, chosen, cache.Options{})
	kept := measureCache(t, alike, chosen, cacheOptions(chosen.watches))
	whole := cacheOptions(chosen.watches)
	whole.NewInformer = nil
	slim := measureCache(t, alike, chosen, whole)
	worst := measureCache(t, different, chosen, cacheOptions(chosen.watches))

	out := tabwriter.NewWriter(os.Stdout, 0, 0, 3, ' ', 0)
	fmt.Fprintf(out, "\n%d PODS\tBYTES PER POD\tIN ALL\tSHARE\n", count)
	for _, row := range []struct {
		name  string
		bytes int64
	}{
		{"client-go's cache, as they are sent", sent.heap},
		{"the manager's cache", kept.heap},
		{"the manager's cache, were it of pods and not of records", slim.heap},
		{"the manager's cache, no two pods alike", worst.heap},
		{"limit: as they are sent, on the wire", sent.wire},
		{"limit: what the manager keeps, on the wire", sent.keptWire},
	} {
		fmt.Fprintf(out, "%s\t%d\t%.1f MiB\t%.1f %%\n", row.name, row.bytes/int64(count), float64(row.bytes)/(1<<20), 100*float64(row.bytes)/float64(sent.heap))
	}
	if err := out.Flush(); err != nil {
		t.Fatal(err)
	}
	for _, limit := range []struct {
		what  string
		bytes int64
		ratio int64
	}{{"a pod", kept.heap, 20}, {"a pod like no other", worst.heap, 4}} {
		if limit.bytes*limit.ratio > sent.heap {
			t.Errorf("%s takes %d bytes in the manager's cache, and %d as it is sent: want 1/%d at most", limit.what, limit.bytes/int64(count), sent.heap/int64(count), limit.ratio)
		}
	}
}

// cost holds sizes in bytes. heap is the memory of a cache of pods, wire is the pods' size as
// protobuf, and keptWire is their size as protobuf after the manager's transform.
type cost struct{ heap, wire, keptWire int64 }

// add adds the protobuf sizes of a pod that the server has sent.
func (c *cost) add(t *testing.T, pod *corev1.Pod) {
	kept, err := transformPod(pod)
	if err != nil {
		t.Error(err)
		return
	}
	c.wire += int64(pod.Size())
	c.keptWire += int64(kept.(*corev1.Pod).Size())
}

// measureCache fills a cache that has the given options and the controllers' indexes, and returns
// its cost. It then drops the cache.
func measureCache(t *testing.T, pods population, chosen *selection, options cache.Options) cost {
	t.Helper()
	var err error
	if options.Scheme, err = newScheme(); err != nil {
		t.Fatal(err)
	}
	options.Mapper = mapperOf(t, options.Scheme)
	var sum cost
	server := httptest.NewServer(servePods(t, pods, options.Scheme, &sum))
	defer server.Close()
	before := heap()

	ctx := t.Context()
	options.HTTPClient = server.Client()
	cfg := &rest.Config{Host: server.URL}
	create := cache.New
	if len(options.ByObject) > 0 && options.NewInformer != nil {
		create = newCache(chosen.watches, cache.New, podcache.Content{}, &podcache.Workloads{}, prometheus.NewRegistry())
	}
	store, err := create(cfg, options)
	if err != nil {
		t.Fatal(err)
	}
	informer, err := store.GetInformer(ctx, &corev1.Pod{}, cache.BlockUntilSynced(false))
	if err != nil {
		t.Fatal(err)
	}
	for _, index := range chosen.indexes {
		if err := index.AddTo(ctx, podIndexer{store}); err != nil {
			t.Fatal(err)
		}
	}
	defer startCache(t, store)()
	deadline, stop := context.WithTimeout(ctx, 20*time.Minute)
	defer stop()
	if !toolscache.WaitForCacheSync(deadline.Done(), informer.HasSynced) {
		t.Fatal("the cache is not filled")
	}
	sum.heap = heap() - before
	if got := len(informer.(toolscache.SharedIndexInformer).GetStore().ListKeys()); got != pods.count {
		t.Fatalf("the cache holds %d pods, want %d", got, pods.count)
	}
	runtime.KeepAlive(store)
	return sum
}

// podIndexer adds only the indexes on pods, because the test server serves no other kind.
type podIndexer struct{ client.FieldIndexer }

func (p podIndexer) IndexField(ctx context.Context, kind client.Object, field string, extract client.IndexerFunc) error {
	if _, ok := kind.(*corev1.Pod); !ok {
		return nil
	}
	return p.FieldIndexer.IndexField(ctx, kind, field, extract)
}

// clusterScoped lists the watched kinds that are not namespaced.
var clusterScoped = []string{"Namespace", "Node", "RuntimeClass", "Freeze", "NodeMaintenance", "NodePool"}

// mapperOf returns a RESTMapper for the kinds that the manager watches.
func mapperOf(t *testing.T, scheme *apiruntime.Scheme) meta.RESTMapper {
	t.Helper()
	mapper := meta.NewDefaultRESTMapper(nil)
	for _, kind := range newSelection(controllers(), nil).watches {
		gvk, err := apiutil.GVKForObject(kind.object, scheme)
		if err != nil {
			t.Fatal(err)
		}
		scope := meta.RESTScopeNamespace
		if slices.Contains(clusterScoped, gvk.Kind) {
			scope = meta.RESTScopeRoot
		}
		mapper.Add(gvk, scope)
	}
	return mapper
}

// servePods returns the handler of an API server that serves the given pods, either as list pages
// or as watch events that end with a bookmark. The sizes of the sent pods are added to sum.
func servePods(t *testing.T, pods population, scheme *apiruntime.Scheme, sum *cost) http.HandlerFunc {
	encoder := protobuf.NewSerializer(scheme, scheme)
	return func(w http.ResponseWriter, r *http.Request) {
		query := r.URL.Query()
		switch {
		case r.URL.Path != "/api/v1/pods":
			http.Error(w, "only pods are served", http.StatusNotFound)
			return
		case query.Get("watch") == "":
			servePage(t, pods, scheme, sum, w, query)
			return
		}
		w.Header().Set("Content-Type", "application/vnd.kubernetes.protobuf;stream=watch")
		frames := protobuf.LengthDelimitedFramer.NewFrameWriter(w)
		send := func(what watch.EventType, pod *corev1.Pod) bool {
			raw, err := apiruntime.Encode(encoder, pod)
			if err != nil {
				t.Error(err)
				return false
			}
			event := metav1.WatchEvent{Type: string(what), Object: apiruntime.RawExtension{Raw: raw}}
			message, err := event.Marshal()
			if err == nil {
				_, err = frames.Write(message)
			}
			if err != nil {
				t.Error(err)
			}
			return err == nil
		}
		if query.Get("sendInitialEvents") == "" {
			w.(http.Flusher).Flush()
			<-r.Context().Done() // no events follow
			return
		}
		for i := range pods.count {
			pod := pods.pod(i)
			if !send(watch.Added, pod) {
				return
			}
			sum.add(t, pod)
		}
		end := &corev1.Pod{TypeMeta: podType, ObjectMeta: metav1.ObjectMeta{
			ResourceVersion: "200000000", Annotations: map[string]string{metav1.InitialEventsAnnotationKey: "true"},
		}}
		if send(watch.Bookmark, end) {
			w.(http.Flusher).Flush()
			<-r.Context().Done()
		}
	}
}

// servePage responds to a list request with the page selected by the query parameters.
func servePage(t *testing.T, pods population, scheme *apiruntime.Scheme, sum *cost, w http.ResponseWriter, query url.Values) {
	first, err := strconv.Atoi(cmp.Or(query.Get("continue"), "0"))
	limit, limitErr := strconv.Atoi(query.Get("limit"))
	if err := errors.Join(err, limitErr); err != nil {
		t.Errorf("not asked for a page: %v", err)
		http.Error(w, err.Error(), http.StatusBadRequest)
		return
	}
	page := &corev1.PodList{TypeMeta: metav1.TypeMeta{APIVersion: "v1", Kind: "PodList"}, ListMeta: metav1.ListMeta{ResourceVersion: "200000000"}}
	for i := first; i < min(first+limit, pods.count); i++ {
		pod := pods.pod(i)
		page.Items = append(page.Items, *pod)
		sum.add(t, pod)
	}
	if first+limit < pods.count {
		page.Continue = strconv.Itoa(first + limit)
	}
	w.Header().Set("Content-Type", apiruntime.ContentTypeProtobuf)
	if err := protobuf.NewSerializer(scheme, scheme).Encode(page, w); err != nil {
		t.Error(err)
	}
}

// heap returns the memory in use after a garbage collection, in bytes.
func heap() int64 {
	runtime.GC()
	runtime.GC() // the second collection frees objects with finalizers
	var stats runtime.MemStats
	runtime.ReadMemStats(&stats)
	return int64(stats.HeapAlloc)
}
