// Copyright The Tidekeeper Authors.
// SPDX-License-Identifier: Apache-2.0

package judge

import (
	"errors"
	"fmt"
	"maps"
	"slices"
	"testing"

	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/discovery"

	"tidekeeper.dev/tidekeeper/sandbox/internal/explore/faults"
	"tidekeeper.dev/tidekeeper/sandbox/internal/explore/observe"
	"tidekeeper.dev/tidekeeper/sandbox/internal/explore/test/objects"
	"tidekeeper.dev/tidekeeper/sandbox/internal/explore/workload"
	"tidekeeper.dev/tidekeeper/sandbox/internal/state"
)

func TestDifferences(t *testing.T) {
	const first = "metadata: {name: web, namespace: shop, uid: 0d1e2f30-0000-4000-8000-000000000001, resourceVersion: '7', generation: 2}\n" +
		"spec: {replicas: 3, started: 2026-01-01T10:00:00Z}\nstatus: {conditions: [{type: Ready, status: 'True'}, {type: Paused, status: 'False'}], observed: 10.0.0.7, random: x1}"
	const second = "metadata: {name: web, namespace: shop, uid: 0d1e2f30-0000-4000-8000-000000000002, resourceVersion: '8', generation: 5}\n" +
		"spec: {replicas: 3, started: 2026-01-02T11:00:00.5Z}\nstatus: {conditions: [{type: Paused, status: 'False'}, {type: Ready, status: 'True'}], observed: 10.0.0.9, random: y2}"
	const pod = "metadata: {name: web-abcde, generateName: web-, namespace: shop}\nspec: {nodeName: node-1, image: a}"
	a := observe.Names{}
	of := func(versions ...observe.Version) observe.State { return a.State(versions, nil) }
	want := of(objects.Version(t, "apps", first), objects.Version(t, "pods", pod))
	mask := state.NewMask()
	mask.Learn(state.Compare(want, of(objects.Version(t, "apps", second), objects.Version(t, "pods", "metadata: {name: web-vwxyz, generateName: web-, namespace: shop}\nspec: {nodeName: node-2, image: a}")), nil, state.Rules{}), "")
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
		{
			name: "what another client wrote, and the operator handed on", pods: []string{pod},
			app: "metadata: {name: web, namespace: shop, annotations: {sandbox.tidekeeper.dev/touched: x}}\n" +
				"spec: {replicas: 3, started: 2026-01-02T11:00:00Z, template: {metadata: {annotations: {sandbox.tidekeeper.dev/touched: x}}}}\n" +
				"status: {conditions: [{type: Ready, status: 'True'}, {type: Paused, status: 'False'}], observed: 10.0.0.9}",
		},
		{
			name: "an item that should not be there", pods: []string{pod},
			app: "metadata: {name: web, namespace: shop}\nspec: {replicas: 3, started: 2026-01-02T11:00:00Z}\n" +
				"status: {conditions: [{type: Ready, status: 'True'}, {type: Paused, status: 'False'}, {type: Failed, status: 'True'}], observed: 10.0.0.9}",
			lines: []string{"apps shop/web: status.conditions[Failed] is there, and should not be"},
		},
		{
			name: "an empty map in the status", pods: []string{pod},
			app: "metadata: {name: web, namespace: shop, labels: {}}\nspec: {replicas: 3, started: 2026-01-02T11:00:00Z}\n" +
				"status: {canary: {}, conditions: [{type: Ready, status: 'True'}, {type: Paused, status: 'False'}], observed: 10.0.0.9}",
		},
		{
			name: "an empty map in the spec", pods: []string{pod},
			app: "metadata: {name: web, namespace: shop}\nspec: {selector: {}, replicas: 3, started: 2026-01-02T11:00:00Z}\n" +
				"status: {conditions: [{type: Ready, status: 'True'}, {type: Paused, status: 'False'}], observed: 10.0.0.9}",
			lines: []string{"apps shop/web: spec.selector is {}, not missing"},
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
			var versions []observe.Version
			if tc.app != "" {
				versions = append(versions, objects.Version(t, "apps", tc.app))
			}
			for _, pod := range tc.pods {
				versions = append(versions, objects.Version(t, "pods", pod))
			}
			if lines := Diff(want, of(versions...), mask); !slices.Equal(lines, tc.lines) {
				t.Errorf("got %q, want %q", lines, tc.lines)
			}
		})
	}
	if lines := Diff(want, want, mask); len(lines) > 0 {
		t.Errorf("a state differs from itself: %q", lines)
	}
}

// TestHistoryThatWasSkipped checks that missing traces of intermediate states are ignored, whereas
// missing ReplicaSets with pods are not.
func TestHistoryThatWasSkipped(t *testing.T) {
	deployment := func(revision string) observe.Version {
		return objects.Version(t, "deployments.apps", "metadata: {name: web, annotations: {deployment.kubernetes.io/revision: '"+revision+"', note: n}}")
	}
	replicaSet := func(name, replicas string) observe.Version {
		return objects.Version(t, "replicasets.apps", "metadata: {name: "+name+", ownerReferences: [{kind: Deployment, name: web, controller: true}]}\nspec: {replicas: "+replicas+"}")
	}
	revision := func(name string) observe.Version {
		return objects.Version(t, "controllerrevisions.apps", "metadata: {name: "+name+"}\nrevision: 2")
	}
	bare := objects.Version(t, "replicasets.apps", "metadata: {name: bare}\nspec: {replicas: 0}")
	claim := objects.Version(t, "persistentvolumeclaims", "metadata: {name: data}")
	app := func(conditions string) observe.Version {
		return objects.Version(t, "apps.example.com", "metadata: {name: app}\nstatus: {conditions: ["+conditions+"]}")
	}
	const ready, paused = "{type: Ready, status: 'True'}", "{type: Paused, status: 'False', reason: x}"
	want := []observe.Version{deployment("3"), replicaSet("web-1", "0"), replicaSet("web-2", "0"), replicaSet("web-3", "2"), revision("web-a"), revision("web-b"), bare, app(ready + ", " + paused), claim}
	for _, tc := range []struct {
		name  string
		got   []observe.Version
		lines []string
	}{
		{"one revision less, and a condition that was never true", []observe.Version{deployment("2"), replicaSet("web-1", "0"), replicaSet("web-3", "2"), revision("web-b"), bare, app(ready)}, nil},
		{"a condition that is true", []observe.Version{deployment("3"), replicaSet("web-3", "2"), bare, app(paused)}, []string{
			"apps.example.com /app: status.conditions[Ready] is missing",
		}},
		{"no pods", []observe.Version{deployment("2"), replicaSet("web-1", "0"), revision("web-b"), bare, app(ready)}, []string{"replicasets.apps /web-3: it is missing"}},
		{"of no owner", []observe.Version{deployment("3"), replicaSet("web-3", "2"), app(ready)}, []string{"replicasets.apps /bare: it is missing"}},
		{"pods of another template", []observe.Version{deployment("3"), replicaSet("web-2", "1"), replicaSet("web-3", "2"), bare, app(ready)}, []string{"replicasets.apps /web-2: it is there, and should not be"}},
	} {
		t.Run(tc.name, func(t *testing.T) {
			compare := func(f *faults.Fault) []string {
				want, got := comparableStates(f, (observe.Names{}).State(want, nil), (observe.Names{}).State(tc.got, nil))
				return Diff(want, got, nil)
			}
			if lines := compare(&faults.Fault{Kind: "DropEvents"}); !slices.Equal(lines, tc.lines) {
				t.Errorf("got %q, want %q", lines, tc.lines)
			}
			if lines := compare(&faults.Fault{Kind: "CrashAfter"}); len(lines) <= len(tc.lines) {
				t.Errorf("after a crash, got only %q", lines)
			}
		})
	}
}

// TestDigestsOfWhatAnotherAnnotated checks that digests in annotations are ignored only if another
// client has annotated objects.
func TestDigestsOfWhatAnotherAnnotated(t *testing.T) {
	of := func(digest, note string) observe.State {
		return (observe.Names{}).State([]observe.Version{objects.Version(t, "statefulsets.apps", "metadata: {name: p, annotations: {input-hash: '"+digest+"', note: "+note+"}}")}, nil)
	}
	want := of("12688783091238735336", "a")
	for _, tc := range []struct {
		kind  faults.Kind
		got   observe.State
		lines int
	}{
		{"Overtake", of("16955502299180339674", "a"), 0},
		{"Overtake", of("16955502299180339674", "b"), 1},
		{"CrashAfter", of("16955502299180339674", "a"), 1},
	} {
		want, got := comparableStates(&faults.Fault{Kind: tc.kind}, want, tc.got)
		if lines := Diff(want, got, nil); len(lines) != tc.lines {
			t.Errorf("%s: got %q, want %d", tc.kind, lines, tc.lines)
		}
	}
}

func TestLocksAreLeftOut(t *testing.T) {
	lock := objects.Version(t, "configmaps", "metadata: {name: leader, namespace: shop}")
	if s := (observe.Names{}).State([]observe.Version{lock}, map[string]bool{"configmaps shop/leader": true}); len(s) != 0 {
		t.Errorf("the state has %v", s)
	}
}

// TestGeneratedNames checks that objects with generated names that differ from run to run share a
// key, which contains their owner's name.
func TestGeneratedNames(t *testing.T) {
	pod := func(prefix, owner string) observe.Version {
		return objects.Version(t, "pods", "metadata: {name: "+prefix+"x, namespace: shop, generateName: "+prefix+", ownerReferences: [{kind: ReplicaSet, name: "+owner+", controller: true}]}")
	}
	a := observe.Names{Stable: map[string]bool{"pods shop/web-*": true, "replicasets.apps shop/web": true}}
	for _, tc := range []struct {
		pod  observe.Version
		want string
	}{
		{pod: pod("web-", "web"), want: "pods shop/web-*"},
		{pod: pod("api-5d8f-", "api-5d8f"), want: "pods shop/* of ReplicaSet *"},
		{pod: pod("web-2-", "web"), want: "pods shop/* of ReplicaSet web"},
	} {
		if got := a.Key(&tc.pod); got != tc.want {
			t.Errorf("got %q, want %q", got, tc.want)
		}
	}
}

func TestUnjudged(t *testing.T) {
	a := observe.Names{Unjudged: []workload.Unjudged{{Resource: "restarts", Path: "status.history[].seconds"}}}
	const text = "metadata: {name: a}\nstatus: {history: [{name: x, seconds: 3}], seconds: 4}"
	v, other := objects.Version(t, "restarts.example.com", text), objects.Version(t, "pods", "metadata: {name: a}\nspec: {seconds: 3}")
	if f := a.Fields(&v); f["status.history[x].seconds"] != "" || f["status.history[x].name"] != "x" || f["status.seconds"] != "4" {
		t.Errorf("got %v", f)
	}
	if f := a.Fields(&other); f["spec.seconds"] != "3" {
		t.Errorf("got %v", f)
	}
}

// TestSystemNamespaces checks that control plane objects are excluded only if they existed before
// the run. Objects that other clients create or change in system namespaces are compared.
func TestSystemNamespaces(t *testing.T) {
	const by = "metadata: {name: a, namespace: kube-system, managedFields: [{manager: kube-apiserver, operation: Update}%s]}"
	own := objects.Version(t, "configmaps", fmt.Sprintf(by, ""))
	own.Prepared = true
	written := objects.Version(t, "configmaps", fmt.Sprintf(by, ", {manager: shop, operation: Update}"))
	written.Prepared = true
	for _, tc := range []struct {
		name string
		v    observe.Version
		want bool
	}{
		{name: "its own", v: own, want: true},
		{name: "what the operator has changed", v: written},
		{name: "what was made later", v: objects.Version(t, "pods", "metadata: {name: web-x, namespace: kube-system, managedFields: [{manager: kube-controller-manager}]}")},
		{name: "endpoints of a Service", v: objects.Version(t, "endpoints", "metadata: {name: web, namespace: shop, managedFields: [{manager: kube-controller-manager}]}"), want: true},
		{name: "endpoints of the operator", v: objects.Version(t, "endpoints", "metadata: {name: web, namespace: shop, managedFields: [{manager: shop}]}")},
	} {
		if got := observe.LeftOut(&tc.v, nil); got != tc.want {
			t.Errorf("%s: left out: %t", tc.name, got)
		}
	}
}

// TestStatusOfKubelets checks that status fields are compared only if clients other than kubelets
// have written them.
func TestStatusOfKubelets(t *testing.T) {
	v := objects.Version(t, "nodes", `metadata:
  name: a
  managedFields:
  - {manager: kubelets, subresource: status, fieldsV1: {"f:status": {"f:capacity": {}, "f:conditions": {'k:{"type":"Ready"}': {"f:type": {}, "f:status": {}}}}}}
  - {manager: shop, subresource: status, fieldsV1: {"f:status": {"f:phase": {}, "f:conditions": {'k:{"type":"Drained"}': {".": {}, "f:type": {}, "f:status": {}}}}}}
status: {capacity: {cpu: 4}, phase: Gone, conditions: [{type: Ready, status: 'True'}, {type: Drained, status: 'True'}]}`)
	want := observe.Fields{"kind": "Any", "status.phase": "Gone", "status.conditions[Drained].type": "Drained", "status.conditions[Drained].status": "True"}
	if got := (observe.Names{}).Fields(&v); !maps.Equal(got, want) {
		t.Errorf("got %v, want %v", got, want)
	}
}

// TestObservedGenerations checks that observed generations are compared by whether they are
// current, not by number.
func TestObservedGenerations(t *testing.T) {
	of := func(generation, seen int) observe.Fields {
		v := objects.Version(t, "shops", fmt.Sprintf("metadata: {name: a, generation: %d}\nstatus: {observedGeneration: %d, conditions: [{type: Open, observedGeneration: %d}]}", generation, seen, seen))
		return (observe.Names{}).Fields(&v)
	}
	if one, other := of(2, 2), of(7, 7); !maps.Equal(one, other) {
		t.Errorf("%v differs from %v", one, other)
	}
	if paths := of(2, 2).Differ(of(2, 1)); len(paths) != 2 {
		t.Errorf("only %v differs", paths)
	}
}

// TestEndpointSlices checks that the order of endpoints and their nodes are ignored.
func TestEndpointSlices(t *testing.T) {
	of := func(endpoints string) observe.Fields {
		v := objects.Version(t, "endpointslices.discovery.k8s.io", "metadata: {name: web-x, generateName: web-}\nendpoints: ["+endpoints+"]")
		return (observe.Names{}).Fields(&v)
	}
	const ready, other, not = "{addresses: [10.0.0.1], conditions: {ready: true}, nodeName: a, targetRef: {kind: Pod, name: x}}",
		"{addresses: [10.0.0.2], conditions: {ready: true}, nodeName: b, targetRef: {kind: Pod, name: y}}", "{addresses: [10.0.0.3], conditions: {ready: false}, nodeName: a, targetRef: {kind: Pod, name: z}}"
	if paths := of(ready + "," + not).Differ(of(not + "," + other)); len(paths) > 0 {
		t.Errorf("%v differs", paths)
	}
	if paths := of(ready + "," + not).Differ(of(ready + "," + other)); len(paths) == 0 {
		t.Error("one that is not ready is like one that is")
	}
}

func TestUnservedGroups(t *testing.T) {
	metrics := schema.GroupVersion{Group: "external.metrics.k8s.io", Version: "v1beta1"}
	failed := fmt.Errorf("discovery: %w", &discovery.ErrGroupDiscoveryFailed{Groups: map[schema.GroupVersion]error{metrics: errors.New("stale")}})
	if groups, err := observe.UnservedGroups(failed); err != nil || !slices.Equal(groups, []string{metrics.String()}) {
		t.Errorf("got %v, %v", groups, err)
	}
	refused := errors.New("connection refused")
	if _, err := observe.UnservedGroups(refused); !errors.Is(err, refused) {
		t.Errorf("got %v", err)
	}
	if groups, err := observe.UnservedGroups(nil); len(groups) > 0 || err != nil {
		t.Errorf("got %v, %v", groups, err)
	}
}

// TestHeartbeat checks that a kubelet's status updates are heartbeats, unlike changes of labels or
// taints.
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
			old, v := objects.Version(t, "nodes", before), objects.Version(t, "nodes", tc.now)
			v.Type, v.Old = watch.Modified, old.Object
			if v.Heartbeat() != tc.want {
				t.Errorf("got %t", !tc.want)
			}
		})
	}
}

// Diff returns a line for each difference between the desired and the actual state.
func Diff(want, got observe.State, mask *state.Mask) []string {
	return state.Lines(state.Compare(want, got, mask, state.Rules{}))
}
