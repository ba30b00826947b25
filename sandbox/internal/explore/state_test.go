// Copyright The Tidekeeper Authors.
// SPDX-License-Identifier: Apache-2.0

package explore

import (
	"slices"
	"testing"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/watch"
	"sigs.k8s.io/yaml"
)

// version makes a version of an object from YAML.
func version(t *testing.T, resource, text string) Version {
	t.Helper()
	o := &unstructured.Unstructured{Object: map[string]any{}}
	data, err := yaml.YAMLToJSON([]byte("kind: Any\n" + text))
	if err == nil {
		err = o.UnmarshalJSON(data)
	}
	if err != nil {
		t.Fatal(err)
	}
	return Version{Type: watch.Added, Resource: resource, Object: o}
}

func TestDifferences(t *testing.T) {
	const first = "metadata: {name: web, namespace: shop, uid: 0d1e2f30-0000-4000-8000-000000000001, resourceVersion: '7', generation: 2}\n" +
		"spec: {replicas: 3, started: 2026-01-01T10:00:00Z}\nstatus: {conditions: [{type: Ready, status: 'True'}, {type: Paused, status: 'False'}], observed: 10.0.0.7, random: x1}"
	const second = "metadata: {name: web, namespace: shop, uid: 0d1e2f30-0000-4000-8000-000000000002, resourceVersion: '8', generation: 5}\n" +
		"spec: {replicas: 3, started: 2026-01-02T11:00:00.5Z}\nstatus: {conditions: [{type: Paused, status: 'False'}, {type: Ready, status: 'True'}], observed: 10.0.0.9, random: y2}"
	const pod = "metadata: {name: web-abcde, generateName: web-, namespace: shop}\nspec: {nodeName: node-1, image: a}"
	a := anonymizer{}
	state := func(versions ...Version) State { return a.state(versions, nil) }
	want := state(version(t, "apps", first), version(t, "pods", pod))
	mask := newMask()
	mask.learn(want, state(version(t, "apps", second), version(t, "pods", "metadata: {name: web-vwxyz, generateName: web-, namespace: shop}\nspec: {nodeName: node-2, image: a}")))
	for _, tc := range []struct {
		name  string
		app   string
		pods  []string
		lines []string
	}{
		{name: "what differs between undisturbed runs does not count", app: second, pods: []string{pod}},
		{
			name: "a value that differs", app: "metadata: {name: web, namespace: shop}\nspec: {replicas: 2, started: 2026-01-02T11:00:00Z}\nstatus: {conditions: [{type: Ready, status: 'False'}, {type: Paused, status: 'False'}], observed: 10.0.0.9}",
			pods:  []string{pod},
			lines: []string{"apps shop/web: spec.replicas is 2, not 3", "apps shop/web: status.conditions[Ready].status is False, not True"},
		},
		{name: "an object that is missing", pods: []string{pod}, lines: []string{"apps shop/web: it is missing"}},
		{
			name: "one too many", app: first, pods: []string{pod, "metadata: {name: web-zzzzz, generateName: web-, namespace: shop}\nspec: {image: a}"},
			lines: []string{"pods shop/web-*: there are 2, not 1"},
		},
		{
			name: "being deleted", app: first, pods: []string{"metadata: {name: web-abcde, generateName: web-, namespace: shop, deletionTimestamp: 2026-01-01T10:00:00Z}\nspec: {image: a}"},
			lines: []string{"pods shop/web-*: metadata.deletionTimestamp is set, not missing"},
		},
	} {
		t.Run(tc.name, func(t *testing.T) {
			var versions []Version
			if tc.app != "" {
				versions = append(versions, version(t, "apps", tc.app))
			}
			for _, pod := range tc.pods {
				versions = append(versions, version(t, "pods", pod))
			}
			if lines := mask.diff(want, state(versions...)); !slices.Equal(lines, tc.lines) {
				t.Errorf("got %q, want %q", lines, tc.lines)
			}
		})
	}
	if lines := mask.diff(want, want); len(lines) > 0 {
		t.Errorf("a state differs from itself: %q", lines)
	}
}

func TestLocksAreLeftOut(t *testing.T) {
	lock := version(t, "configmaps", "metadata: {name: leader, namespace: shop}")
	if s := (anonymizer{}).state([]Version{lock}, map[string]bool{"configmaps shop/leader": true}); len(s) != 0 {
		t.Errorf("the state has %v", s)
	}
}

// What was generated from a name that differs from run to run belongs to its owner.
func TestGeneratedNames(t *testing.T) {
	pod := func(prefix, owner string) Version {
		return version(t, "pods", "metadata: {name: "+prefix+"x, namespace: shop, generateName: "+prefix+", ownerReferences: [{kind: ReplicaSet, name: "+owner+", controller: true}]}")
	}
	a := anonymizer{stable: map[string]bool{"pods shop/web-*": true, "replicasets.apps shop/web": true}}
	for _, tc := range []struct {
		pod  Version
		want string
	}{
		{pod: pod("web-", "web"), want: "pods shop/web-*"},
		{pod: pod("api-5d8f-", "api-5d8f"), want: "pods shop/* of ReplicaSet *"},
		{pod: pod("web-2-", "web"), want: "pods shop/* of ReplicaSet web"},
	} {
		if got := a.key(&tc.pod); got != tc.want {
			t.Errorf("got %q, want %q", got, tc.want)
		}
	}
}

func TestUnjudged(t *testing.T) {
	a := anonymizer{unjudged: []Unjudged{{Resource: "restarts", Path: "status.history[].seconds"}}}
	const text = "metadata: {name: a}\nstatus: {history: [{name: x, seconds: 3}], seconds: 4}"
	v, other := version(t, "restarts.example.com", text), version(t, "pods", "metadata: {name: a}\nspec: {seconds: 3}")
	if f := a.fields(&v); f["status.history[x].seconds"] != "" || f["status.history[x].name"] != "x" || f["status.seconds"] != "4" {
		t.Errorf("got %v", f)
	}
	if f := a.fields(&other); f["spec.seconds"] != "3" {
		t.Errorf("got %v", f)
	}
}

// The reports of a node's kubelet are no change, unlike a label or a taint.
func TestHeartbeat(t *testing.T) {
	const before = "metadata: {name: a, resourceVersion: '1', labels: {x: y}}\nspec: {taints: [{key: a}]}\nstatus: {ready: 1}"
	for _, tc := range []struct {
		name, now string
		want      bool
	}{
		{name: "a report", now: "metadata: {name: a, resourceVersion: '2', labels: {x: y}}\nspec: {taints: [{key: a}]}\nstatus: {ready: 2}", want: true},
		{name: "a label", now: "metadata: {name: a, resourceVersion: '2', labels: {x: z}}\nspec: {taints: [{key: a}]}\nstatus: {ready: 1}"},
		{name: "a taint", now: "metadata: {name: a, resourceVersion: '2', labels: {x: y}}\nspec: {taints: [{key: b}]}\nstatus: {ready: 1}"},
	} {
		t.Run(tc.name, func(t *testing.T) {
			old, v := version(t, "nodes", before), version(t, "nodes", tc.now)
			v.Type, v.Old = watch.Modified, old.Object
			if v.heartbeat() != tc.want {
				t.Errorf("got %t", !tc.want)
			}
		})
	}
}
