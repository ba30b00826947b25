// Copyright The Tidekeeper Authors.
// SPDX-License-Identifier: Apache-2.0

package optin

import (
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/validation"
	"pgregory.net/rapid"

	tidekeeperv1 "tidekeeper.dev/tidekeeper/api/v1"
	"tidekeeper.dev/tidekeeper/internal/workload"
)

func TestNamesFor(t *testing.T) {
	if diff := cmp.Diff([]string{"web", "web-statefulset", "web-6140d2fd6e-statefulset"}, namesFor(workload.StatefulSet, "web")); diff != "" {
		t.Errorf("names (-want +got):\n%s", diff)
	}
	rapid.Check(t, func(t *rapid.T) {
		name := rapid.StringMatching(`[a-z0-9]([-a-z0-9]{0,60}[a-z0-9])?(\.[a-z0-9]([-a-z0-9]{0,60}[a-z0-9])?){0,3}`).Draw(t, "name")
		name = strings.TrimRight(name[:min(len(name), 253)], "-.")
		kind := rapid.SampledFrom(workload.Kinds).Draw(t, "kind")
		names := namesFor(kind, name)
		for _, n := range names {
			if problems := validation.IsDNS1123Subdomain(n); len(problems) > 0 {
				t.Fatalf("%q: %v", n, problems)
			}
		}
		if names[0] != name || len(slices.Compact(slices.Sorted(slices.Values(names)))) != len(names) {
			t.Fatalf("names %q", names)
		}
		if len(names) == 3 && !slices.Contains(workloadNames(kind, names[1]), name) {
			t.Fatalf("%q does not lead back to %q", names[1], name)
		}
		for _, other := range workload.Kinds {
			if other != kind && slices.ContainsFunc(namesFor(other, name)[1:], func(n string) bool { return slices.Contains(names, n) }) {
				t.Fatalf("%s and %s with the name %q share more than that name", kind.Kind, other.Kind, name)
			}
		}
	})
}

// named returns the ScheduledRestart built by m with the given name and creation time; `age` is the
// creation time in Unix seconds.
func named(m *RestartMaker, name string, age int64) *tidekeeperv1.ScheduledRestart {
	o := m.Obj()
	o.Name, o.CreationTimestamp = name, metav1.Unix(age, 0)
	return o
}

// TestFind checks which of the possible names find chooses, depending on the existing
// ScheduledRestarts with these names.
func TestFind(t *testing.T) {
	made := func() *RestartMaker { return Made(`{"suspend":true}`) }
	others := func() *RestartMaker {
		return made().Owner("apps/v1", "StatefulSet", "web", "web-2").Target("StatefulSet", "web")
	}
	hashed := namesFor(workload.Deployment, "web")[2]
	for _, tt := range []struct {
		name     string
		existing []*tidekeeperv1.ScheduledRestart
		want     string
		origin   origin
		second   string
	}{
		{name: "nothing", want: "web", origin: absent},
		{name: "its own", existing: []*tidekeeperv1.ScheduledRestart{made().Obj()}, want: "web", origin: ours},
		{name: "another's", existing: []*tidekeeperv1.ScheduledRestart{others().Obj()}, want: "web-deployment", origin: absent},
		{name: "another's, and then its own", existing: []*tidekeeperv1.ScheduledRestart{others().Obj(), named(made(), "web-deployment", 1)}, want: "web-deployment", origin: ours},
		{name: "its own, when the name is free again", existing: []*tidekeeperv1.ScheduledRestart{nil, named(made(), "web-deployment", 1)}, want: "web-deployment", origin: ours},
		{
			name:     "others' both",
			existing: []*tidekeeperv1.ScheduledRestart{others().Obj(), named(MakeRestart().Target("Deployment", "web-deployment"), "web-deployment", 1)},
			want:     hashed, origin: absent,
		},
		{
			name: "others' all",
			existing: []*tidekeeperv1.ScheduledRestart{
				others().Obj(), named(MakeRestart().Target("Deployment", "x"), "web-deployment", 1), named(MakeRestart().Target("Deployment", "x"), hashed, 1),
			},
			want: hashed, origin: foreign,
		},
		{name: "a person's, for this workload", existing: []*tidekeeperv1.ScheduledRestart{nil, named(MakeRestart(), "web-deployment", 1)}, want: "web-deployment", origin: foreign},
		{name: "one that is being deleted", existing: []*tidekeeperv1.ScheduledRestart{nil, named(made().Deleted(), "web-deployment", 1)}, want: "web-deployment", origin: dying},
		{name: "one that was left behind", existing: []*tidekeeperv1.ScheduledRestart{others().Obj(), named(made().NoOwner(), "web-deployment", 1)}, want: "web-deployment", origin: orphan},
		{
			name: "two of its own", existing: []*tidekeeperv1.ScheduledRestart{named(made(), "web", 1), named(made(), "web-deployment", 2)},
			want: "web", origin: ours, second: "web-deployment",
		},
		{
			name: "two of its own, the other one older", existing: []*tidekeeperv1.ScheduledRestart{named(made(), "web", 2), named(made(), "web-deployment", 1)},
			want: "web-deployment", origin: ours, second: "web",
		},
	} {
		t.Run(tt.name, func(t *testing.T) {
			p := find(workload.Deployment, web(in("true")), tt.existing)
			second := ""
			if p.second != nil {
				second = p.second.Name
			}
			if p.name != tt.want || p.origin != tt.origin || second != tt.second {
				t.Errorf("got %s of origin %d and second %q; want %s of origin %d and second %q", p.name, p.origin, second, tt.want, tt.origin, tt.second)
			}
		})
	}
}

// TestEachKindIsServed checks workloads of all kinds that have the same name. Each must have
// exactly one ScheduledRestart while it is opted in, regardless of the order in which the workloads
// opt in and out, and of the names that users take.
func TestEachKindIsServed(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		world := map[string]*tidekeeperv1.ScheduledRestart{}
		workloads := map[*workload.Kind]*metav1.ObjectMeta{}
		for _, kind := range workload.Kinds {
			o := web(nil)
			o.UID = types.UID("the " + kind.Kind)
			workloads[kind] = o
		}
		reconcile := func(kind *workload.Kind) {
			for range 5 {
				var existing []*tidekeeperv1.ScheduledRestart
				for _, name := range namesFor(kind, "web") {
					existing = append(existing, world[name])
				}
				d := decide(kind, workloads[kind], existing...)
				switch d.action {
				case create:
					if world[d.name] != nil {
						t.Fatalf("%s is overwritten", d.name)
					}
					o := MakeRestart().Record(`{"suspend":true}`).Owner(kind.APIVersion(), kind.Kind, "web", workloads[kind].UID).TargetRef(kind.Ref("web")).Suspend(true).Obj()
					o.Name, o.CreationTimestamp = d.name, metav1.Time{Time: time.Unix(int64(len(world)), 0)}
					world[d.name] = o
				case remove:
					delete(world, d.name)
				case update:
					t.Fatalf("%s: an update: %s", kind.Kind, d.note)
				case complain:
					t.Fatalf("%s: %s", kind.Kind, d.note)
				default:
					return
				}
			}
			t.Fatalf("%s: still not done after 5 reconciles", kind.Kind)
		}
		for range rapid.IntRange(1, 12).Draw(t, "steps") {
			kind := rapid.SampledFrom(workload.Kinds).Draw(t, "kind")
			switch rapid.SampledFrom([]string{"in", "out", "person"}).Draw(t, "step") {
			case "in":
				workloads[kind].Annotations = in("true")
			case "out":
				workloads[kind].Annotations = nil
			case "person":
				if name := rapid.SampledFrom(namesFor(kind, "web")[:2]).Draw(t, "name"); world[name] == nil {
					o := MakeRestart().Target("Deployment", "a-persons").Obj()
					o.Name = name
					world[name] = o
				}
			}
			before := map[string]bool{}
			for name := range world {
				before[name] = true
			}
			for _, k := range rapid.Permutation(workload.Kinds).Draw(t, "order") {
				reconcile(k)
			}
			for _, k := range workload.Kinds {
				count := 0
				for _, o := range world {
					if metav1.IsControlledBy(o, workloads[k]) {
						count++
					}
				}
				if want := len(workloads[k].Annotations); count != want {
					t.Fatalf("%s has %d, want %d", k, count, want)
				}
			}
		}
	})
}
