// Copyright The Tidekeeper Authors.
// SPDX-License-Identifier: Apache-2.0

package restart

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"

	tidekeeperv1 "tidekeeper.dev/tidekeeper/api/v1"
	"tidekeeper.dev/tidekeeper/internal/cache/sharedread"
	"tidekeeper.dev/tidekeeper/internal/workload"
	"tidekeeper.dev/tidekeeper/internal/workload/podconfig"
)

// configServer is a reader that returns ConfigMaps with the given value, or an error, and counts
// the reads.
type configServer struct {
	client.Reader
	reads atomic.Int32
	value atomic.Value
}

func (s *configServer) Get(_ context.Context, key client.ObjectKey, object client.Object, _ ...client.GetOption) error {
	s.reads.Add(1)
	switch value := s.value.Load().(type) {
	case error:
		return value
	case string:
		*object.(*corev1.ConfigMap) = corev1.ConfigMap{Data: map[string]string{"a": value}}
		object.SetNamespace(key.Namespace)
		object.SetName(key.Name)
		object.SetResourceVersion("1")
	}
	return nil
}

// TestConfigIsReadOnceForAll checks that the API server is asked only once for each of 100
// ConfigMaps that 60 workloads use.
func TestConfigIsReadOnceForAll(t *testing.T) {
	const workloads, objects = 60, 100
	noon := time.Date(2026, time.June, 10, 12, 0, 0, 0, time.UTC)
	server := &configServer{}
	server.value.Store("1")
	r := &configReader{configs: newConfigs(newMemories(), 0, nil), apiReader: server}
	var uses []string
	for i := range objects {
		uses = append(uses, fmt.Sprintf("c/c%d", i))
	}
	target := &workload.State{Kind: "Deployment", Name: "web", Config: strings.Join(uses, " ")}
	restart := &tidekeeperv1.ScheduledRestart{}
	restart.Namespace, restart.Spec.OnConfigChange = "shop", tidekeeperv1.ConfigMapsOnly
	// ask returns the hash of the content that all workloads read at the given time. The workloads
	// must agree.
	ask := func(at time.Time) string {
		t.Helper()
		var hashes [workloads]string
		var all sync.WaitGroup
		for w := range workloads {
			all.Go(func() {
				c, err := r.live(t.Context(), restart, target, nil, at)
				if err != nil {
					t.Error(err)
					return
				}
				hashes[w] = c.Hash
			})
		}
		all.Wait()
		for _, hash := range hashes {
			if hash == "" || hash != hashes[0] {
				t.Errorf("one sees %q, another %q", hashes[0], hash)
			}
		}
		return hashes[0]
	}
	expect := func(what string, reads int32) {
		t.Helper()
		if got := server.reads.Swap(0); got != reads {
			t.Errorf("%s: %d reads, want %d", what, got, reads)
		}
	}
	first := ask(noon)
	expect("at first", objects)

	server.value.Store("2")
	if ask(noon.Add(sharedread.For-time.Millisecond)) != first {
		t.Error("within a second, something else was read")
	}
	expect("within a second", 0)

	// The watch reported a change of one ConfigMap.
	r.reads.Forget(podconfig.ID{Kind: podconfig.ConfigMap, Namespace: "shop", Name: "c7"})
	changed := ask(noon)
	if changed == first {
		t.Error("what the cache shows is newer than what was read")
	}
	expect("an edit of one", 1)
	if last := ask(noon.Add(time.Minute)); last == first || last == changed {
		t.Error("after a minute, what was read is not new")
	}
	expect("after a minute", objects)
	if kept := r.reads.Len(); kept != objects {
		t.Errorf("%d reads are kept, want %d", kept, objects)
	}
}

// TestConfigThatCannotBeRead checks that later reads do not share an error, but do share the result
// that a ConfigMap does not exist.
func TestConfigThatCannotBeRead(t *testing.T) {
	noon := time.Date(2026, time.June, 10, 12, 0, 0, 0, time.UTC)
	server := &configServer{}
	r := &configReader{configs: newConfigs(newMemories(), 0, nil), apiReader: server}
	target := &workload.State{Kind: "Deployment", Name: "web", Config: "c/one"}
	restart := &tidekeeperv1.ScheduledRestart{}
	restart.Namespace, restart.Spec.OnConfigChange = "shop", tidekeeperv1.ConfigMapsOnly

	server.value.Store(errors.New("refused"))
	for range 2 {
		if _, err := r.live(t.Context(), restart, target, nil, noon); err == nil || !strings.Contains(err.Error(), "refused") {
			t.Errorf("the error is %v", err)
		}
	}
	if reads := server.reads.Swap(0); reads != 2 {
		t.Errorf("%d reads that failed, want 2", reads)
	}

	server = &configServer{}
	server.value.Store(error(apierrors.NewNotFound(schema.GroupResource{Resource: "configmaps"}, "one")))
	r.apiReader = server
	for range 2 {
		if c, err := r.live(t.Context(), restart, target, nil, noon); err != nil || c.Hash == "" {
			t.Errorf("one that does not exist: %+v, %v", c, err)
		}
	}
	if reads := server.reads.Load(); reads != 1 {
		t.Errorf("%d reads of one that does not exist, want 1", reads)
	}
}
