// Copyright The Tidekeeper Authors.
// SPDX-License-Identifier: Apache-2.0

package restart

import (
	"fmt"
	"runtime"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	toolscache "k8s.io/client-go/tools/cache"

	"tidekeeper.dev/tidekeeper/internal/workload/podconfig"
)

func configRecord(t testing.TB, namespace, name, value string, modified time.Time) *podconfig.Record {
	t.Helper()
	c := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: name, ResourceVersion: fmt.Sprint(modified.Unix())}, Data: map[string]string{"a": value, "b": "2"}}
	c.ManagedFields = []metav1.ManagedFieldsEntry{{Time: &metav1.Time{Time: modified}}}
	r, err := podconfig.RecordOf(c)
	if err != nil {
		t.Fatal(err)
	}
	return r
}

func TestConfigs(t *testing.T) {
	noon := time.Date(2026, time.June, 10, 12, 0, 0, 0, time.UTC)
	var told []types.NamespacedName
	c := newConfigs(newMemories(), 0, func(keys []types.NamespacedName) { told = append(told, keys...) })
	web, api := types.NamespacedName{Namespace: "shop", Name: "web"}, types.NamespacedName{Namespace: "shop", Name: "api"}
	c.set(configRecord(t, "shop", "one", "1", noon))
	c.set(configRecord(t, "shop", "two", "1", noon))

	now := noon.Add(time.Hour)
	content := func(now time.Time) (hash string, since time.Time) {
		known := c.content(web, "c/one c/two/a", false, knownContent{}, now)
		return known.Hash, known.Changed
	}
	first, since := content(now)
	if !since.Equal(noon) {
		t.Errorf("before it was known, it changed at %s", since)
	}
	c.content(api, "c/two", false, knownContent{}, now)
	expect := func(what string, want ...types.NamespacedName) {
		t.Helper()
		if diff := cmp.Diff(want, told); diff != "" {
			t.Errorf("%s (-want +told):\n%s", what, diff)
		}
		told = nil
	}
	expect("at first")
	c.set(configRecord(t, "shop", "one", "1", now))
	expect("other fields are modified")
	if hash, since := content(now); hash != first || !since.Equal(noon) {
		t.Errorf("what was modified is no content: %s since %s", hash, since)
	}
	c.set(configRecord(t, "elsewhere", "one", "2", now))
	expect("in another namespace")
	c.set(configRecord(t, "shop", "one", "2", now))
	expect("the content changes", web)
	second, since := content(now.Add(time.Second))
	if second == first || !since.Equal(now) {
		t.Errorf("it changed at %s", since)
	}
	c.set(configRecord(t, "shop", "one", "1", now.Add(time.Minute)))
	expect("it is taken back", web)
	if hash, _ := content(now.Add(time.Minute)); hash != first {
		t.Errorf("%s, want again %s", hash, first)
	}
	c.remove(podconfig.ID{Kind: podconfig.ConfigMap, Namespace: "shop", Name: "one"})
	expect("it is deleted", web)
	if _, since := content(now.Add(time.Hour)); !since.Equal(now.Add(time.Hour)) {
		t.Errorf("it was deleted at %s", since)
	}

	// managedFields record no time for an edit that removes a key.
	later := now.Add(2 * time.Hour)
	c.set(configRecord(t, "shop", "one", "3", now))
	content(later)
	c.set(configRecord(t, "shop", "one", "4", now))
	if _, since := content(later.Add(time.Second)); !since.Equal(later.Add(time.Second)) {
		t.Errorf("it changed without a time, at %s", since)
	}
	told = nil

	c.content(web, "c/other", false, knownContent{}, now)
	c.set(configRecord(t, "shop", "two", "5", now))
	expect("it is used by one only", api)
	c.forget(api)
	c.set(configRecord(t, "shop", "two", "6", now))
	expect("it is not used any more")
	c.forget(web)
	if len(c.users) != 0 || len(c.memories.all) != 0 {
		t.Errorf("users are left: %v %v", c.users, c.memories.all)
	}
}

// TestConfigChangedWhileAway checks the time that a newly started manager assigns to a change that
// happened while no manager was running. If the change left no time in managedFields because it
// only removed keys, the manager must use the current time.
func TestConfigChangedWhileAway(t *testing.T) {
	noon := time.Date(2026, time.June, 10, 12, 0, 0, 0, time.UTC)
	web, now := types.NamespacedName{Namespace: "shop", Name: "web"}, noon.Add(time.Hour)
	first := newConfigs(newMemories(), 0, func([]types.NamespacedName) {})
	first.set(configRecord(t, "shop", "one", "1", noon))
	hash := first.content(web, "c/one", false, knownContent{}, now).Hash
	for _, tt := range []struct {
		name     string
		started  knownContent
		modified time.Time
		want     time.Time
	}{
		{"edited after it was known", knownContent{hash, noon.Add(time.Minute)}, noon.Add(2 * time.Minute), noon.Add(2 * time.Minute)},
		{"not modified since it was known", knownContent{hash, noon.Add(time.Minute)}, noon, now},
		{"modified in the same second", knownContent{hash, noon}, noon, now},
		{"by a manager that kept no time", knownContent{hash, time.Time{}}, noon, noon},
		{"other kinds count now", knownContent{"s" + hash[1:], noon.Add(time.Minute)}, noon, noon},
		{"never known", knownContent{}, noon, noon},
	} {
		c := newConfigs(newMemories(), 0, func([]types.NamespacedName) {})
		c.set(configRecord(t, "shop", "one", "2", tt.modified))
		for _, later := range []time.Duration{0, time.Minute} {
			if got := c.content(web, "c/one", false, tt.started, now.Add(later)).Changed; !got.Equal(tt.want) {
				t.Errorf("%s, %s later: it changed at %s, want %s", tt.name, later, got, tt.want)
			}
		}
	}
	same := newConfigs(newMemories(), 0, func([]types.NamespacedName) {})
	same.set(configRecord(t, "shop", "one", "1", noon))
	if got := same.content(web, "c/one", false, knownContent{hash, now}, now).Changed; !got.Equal(noon) {
		t.Errorf("the same content changed at %s", got)
	}
}

// TestConfigSource checks that the reported source is the object whose used keys changed last, with
// its writers, even if other keys or objects are written later. It also checks the reported start
// of the burst of changes.
func TestConfigSource(t *testing.T) {
	noon := time.Date(2026, time.June, 10, 12, 0, 0, 0, time.UTC)
	c := newConfigs(newMemories(), 10*time.Second, func([]types.NamespacedName) {})
	web := types.NamespacedName{Namespace: "shop", Name: "web"}
	write := func(name, value, unused, writer string, after time.Duration) {
		at := noon.Add(after)
		o := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: name, ResourceVersion: fmt.Sprint(at.Unix())}, Data: map[string]string{"a": value, "b": unused}}
		o.ManagedFields = []metav1.ManagedFieldsEntry{{Manager: writer, Time: &metav1.Time{Time: at}, FieldsV1: metav1.NewFieldsV1(`{"f:data":{"f:a":{}}}`)}}
		r, err := podconfig.RecordOf(o)
		if err != nil {
			t.Fatal(err)
		}
		c.set(r)
	}
	write("one", "1", "1", "helm", 0)
	write("two", "1", "1", "kubectl", time.Minute)
	for _, step := range []struct {
		name, value, unused, writer string
		after                       time.Duration
		source                      string
		restless                    time.Duration
	}{
		{"three", "1", "1", "other", 2 * time.Minute, "ConfigMap two changed last, and is written by kubectl", time.Minute},
		{"one", "2", "1", "helm", 3 * time.Minute, "ConfigMap one changed last, and is written by helm", 3 * time.Minute},
		{"two", "1", "2", "kubectl", 3*time.Minute + time.Second, "ConfigMap one changed last, and is written by helm", 3 * time.Minute},
		{"one", "3", "1", "argocd", 3*time.Minute + 5*time.Second, "ConfigMap one changed last, and is written by argocd and helm", 3 * time.Minute},
		{"one", "4", "1", "argocd", 3*time.Minute + 14*time.Second, "ConfigMap one changed last, and is written by argocd and helm", 3 * time.Minute},
		{"one", "5", "1", "helm", 4 * time.Minute, "ConfigMap one changed last, and is written by argocd and helm", 4 * time.Minute},
		{"two", "2", "2", "kubectl", 5 * time.Minute, "ConfigMap two changed last, and is written by kubectl", 5 * time.Minute},
	} {
		write(step.name, step.value, step.unused, step.writer, step.after)
		got := c.content(web, "c/one/a c/two/a", false, knownContent{}, noon.Add(step.after))
		if got.Source.String() != step.source || !got.Restless.Equal(noon.Add(step.restless)) {
			t.Errorf("after %s: %s, since %s", step.after, got.Source, got.Restless)
		}
	}
	c.remove(podconfig.ID{Kind: podconfig.ConfigMap, Namespace: "shop", Name: "one"})
	if got := c.content(web, "c/one/a c/two/a", false, knownContent{}, noon.Add(time.Hour)).Source; got.Object() != "ConfigMap one" || got.Writer() != "" {
		t.Errorf("after it was deleted: %s", got)
	}
}

// TestChangedAt checks that an implausible time of a change is replaced with the time at which the
// change was observed.
func TestChangedAt(t *testing.T) {
	now := time.Date(2026, time.June, 10, 12, 0, 0, 0, time.UTC)
	for modified, want := range map[time.Time]time.Time{
		{}: now, now.Add(-time.Hour): now.Add(-time.Hour), now.Add(time.Minute): now.Add(time.Minute), now.Add(time.Hour): now,
	} {
		if got := changedAt(podconfig.Content{Modified: modified}, now); !got.Equal(want) {
			t.Errorf("modified at %s: changed at %s, want %s", modified, got, want)
		}
	}
}

const (
	manyConfigMaps = 20_000
	// mostConfigMemory is the maximum number of bytes for all ConfigMaps of TestConfigMemory.
	mostConfigMemory = 10 << 20
)

// TestConfigMemory checks that 20,000 ConfigMaps take at most 10 MiB of memory, in an informer's
// store and in configs together.
func TestConfigMemory(t *testing.T) {
	heap := func() uint64 {
		runtime.GC()
		runtime.GC()
		var stats runtime.MemStats
		runtime.ReadMemStats(&stats)
		return stats.HeapAlloc
	}
	before := heap()
	c := newConfigs(newMemories(), 0, func([]types.NamespacedName) {})
	store := toolscache.NewIndexer(toolscache.DeletionHandlingMetaNamespaceKeyFunc, toolscache.Indexers{toolscache.NamespaceIndex: toolscache.MetaNamespaceIndexFunc})
	for i := range manyConfigMaps {
		object := &corev1.ConfigMap{
			ObjectMeta: metav1.ObjectMeta{Namespace: fmt.Sprintf("namespace-%d", i%200), Name: fmt.Sprintf("configuration-of-application-%d", i), ResourceVersion: fmt.Sprint(1_000_000 + i)},
			Data:       map[string]string{},
		}
		for key := range 3 {
			object.Data[fmt.Sprintf("application-%d.yaml", key)] = strings.Repeat(fmt.Sprint(i), 60)
		}
		r, err := podconfig.RecordOf(object)
		if err != nil {
			t.Fatal(err)
		}
		if err := store.Add(r); err != nil {
			t.Fatal(err)
		}
		c.set(r)
	}
	used := heap() - before
	t.Logf("%d ConfigMaps take %.1f MiB, %d bytes each", manyConfigMaps, float64(used)/(1<<20), used/manyConfigMaps)
	if used > mostConfigMemory {
		t.Errorf("that is more than %d MiB", mostConfigMemory>>20)
	}
	runtime.KeepAlive(store)
	runtime.KeepAlive(c)
}

// BenchmarkConfigEvent measures the handling of an event for a ConfigMap that a single
// ScheduledRestart depends on. The time must not grow with the number of other ScheduledRestarts.
func BenchmarkConfigEvent(b *testing.B) {
	for _, others := range []int{100, 10_000} {
		b.Run(fmt.Sprint(others), func(b *testing.B) {
			c := newConfigs(newMemories(), 0, func([]types.NamespacedName) {})
			for i := range others {
				name := fmt.Sprint("other-", i)
				c.set(configRecord(b, "shop", name, "1", time.Unix(1, 0)))
				c.content(types.NamespacedName{Namespace: "shop", Name: name}, "c/"+name, false, knownContent{}, time.Unix(1, 0))
			}
			key := types.NamespacedName{Namespace: "shop", Name: "web"}
			records := []*podconfig.Record{configRecord(b, "shop", "web", "1", time.Unix(1, 0)), configRecord(b, "shop", "web", "2", time.Unix(2, 0))}
			for i := 0; b.Loop(); i++ {
				c.set(records[i%2])
				c.content(key, "c/web", false, knownContent{}, time.Unix(3, 0))
			}
		})
	}
}
