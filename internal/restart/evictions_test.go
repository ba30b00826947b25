// Copyright The Tidekeeper Authors.
// SPDX-License-Identifier: Apache-2.0

package restart

import (
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"testing"
	"time"

	policyv1 "k8s.io/api/policy/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
	"k8s.io/client-go/rest"
	clocktesting "k8s.io/utils/clock/testing"
	"sigs.k8s.io/controller-runtime/pkg/client"

	tidekeeperv1 "tidekeeper.dev/tidekeeper/api/v1"
	"tidekeeper.dev/tidekeeper/internal/restart/evict"
)

// evictionServer is an API server that accepts evictions, and has a single ScheduledRestart with
// the given resourceVersion.
type evictionServer struct {
	version   string
	evictions []policyv1.Eviction
}

func (s *evictionServer) ServeHTTP(w http.ResponseWriter, request *http.Request) {
	w.Header().Set("Content-Type", runtime.ContentTypeJSON)
	switch request.Method + " " + request.URL.Path {
	case "GET /apis/tidekeeper.dev/v1/namespaces/shop/scheduledrestarts/web":
		fmt.Fprintf(w, `{"kind":"PartialObjectMetadata","apiVersion":"meta.k8s.io/v1","metadata":{"namespace":"shop","name":"web","uid":"sr-1","resourceVersion":%q}}`, s.version)
	case "POST /api/v1/namespaces/shop/pods/web-0/eviction":
		body, err := io.ReadAll(request.Body)
		eviction := policyv1.Eviction{}
		if err != nil || json.Unmarshal(body, &eviction) != nil {
			w.WriteHeader(http.StatusBadRequest)
			return
		}
		s.evictions = append(s.evictions, eviction)
		w.WriteHeader(http.StatusCreated)
		fmt.Fprint(w, `{"kind":"Status","apiVersion":"v1","status":"Success"}`)
	default:
		w.WriteHeader(http.StatusNotFound)
	}
}

// TestWhatIsEvicted checks that a pod is evicted by its UID, and only if the ScheduledRestart still
// has the resourceVersion on which the decision was based, since a user or another leader may have
// ended the restart.
func TestWhatIsEvicted(t *testing.T) {
	now := time.Date(2026, 6, 10, 3, 0, 0, 0, time.UTC)
	scheme := runtime.NewScheme()
	for _, add := range []func(*runtime.Scheme) error{clientgoscheme.AddToScheme, tidekeeperv1.AddToScheme} {
		if err := add(scheme); err != nil {
			t.Fatal(err)
		}
	}
	mapper := meta.NewDefaultRESTMapper(nil)
	for kind := range scheme.AllKnownTypes() {
		mapper.Add(kind, meta.RESTScopeNamespace)
	}
	for _, tt := range []struct {
		name, version    string
		written, evicted bool
	}{
		{name: "as it was decided", version: "7", evicted: true},
		{name: "changed since", version: "8"},
		{name: "just written, which has shown its version", version: "8", written: true, evicted: true},
	} {
		t.Run(tt.name, func(t *testing.T) {
			answers := &evictionServer{version: tt.version}
			server := httptest.NewServer(answers)
			defer server.Close()
			c, err := client.New(&rest.Config{Host: server.URL, ContentConfig: rest.ContentConfig{ContentType: runtime.ContentTypeJSON}}, client.Options{Scheme: scheme, Mapper: mapper})
			if err != nil {
				t.Fatal(err)
			}
			e := &evictor{
				client: c, apiReader: c, clock: clocktesting.NewFakePassiveClock(now), attempts: &evictionAttempts{newMemories()},
				metrics: newEvictionMetrics(func() float64 { return 0 }),
			}
			restart := &tidekeeperv1.ScheduledRestart{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "web", UID: "sr-1", ResourceVersion: "7"}}
			restart.Status.Active = &tidekeeperv1.ActiveRestart{ScheduledTime: metav1.Time{Time: now}}
			err = e.evict(t.Context(), client.ObjectKeyFromObject(restart), restart, []evict.Pod{{Name: "web-0", UID: "pod-1"}}, tt.written)
			if !tt.evicted {
				if !apierrors.IsConflict(err) || len(answers.evictions) > 0 {
					t.Errorf("%d pods were evicted (%v), want a conflict", len(answers.evictions), err)
				}
				return
			}
			if err != nil || len(answers.evictions) != 1 {
				t.Fatalf("%d pods were evicted (%v), want one", len(answers.evictions), err)
			}
			options := answers.evictions[0].DeleteOptions
			if options == nil || options.Preconditions == nil || options.Preconditions.UID == nil || *options.Preconditions.UID != "pod-1" {
				t.Errorf("the options of the eviction are %v, want the UID of the pod as a precondition", options)
			}
		})
	}
}
