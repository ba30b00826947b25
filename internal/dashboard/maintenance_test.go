// Copyright The Tidekeeper Authors.
// SPDX-License-Identifier: Apache-2.0

package dashboard

import (
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"

	tidekeeperv1 "tidekeeper.dev/tidekeeper/api/v1"
)

// aMaintenance returns a NodeMaintenance of five nodes. Its nodes n1 to n4 are in the given phases:
// node n1 for one minute, n2 for two minutes, and so on.
func aMaintenance(name string, phases ...tidekeeperv1.NodePhase) tidekeeperv1.NodeMaintenance {
	m := tidekeeperv1.NodeMaintenance{ObjectMeta: metav1.ObjectMeta{Name: name, UID: types.UID("uid-of-" + name)}}
	m.Spec.Until = tidekeeperv1.UntilRebooted
	next := metav1.NewTime(noon.Add(24 * time.Hour))
	m.Status = tidekeeperv1.NodeMaintenanceStatus{
		ObservedGeneration: 1, Selected: 5, NextRoundTime: &next, Nodes: map[string]tidekeeperv1.NodeProgress{},
		Conditions: []metav1.Condition{{Type: tidekeeperv1.ConditionReady, Status: metav1.ConditionTrue, Reason: "Draining", Message: "waits for <b>two</b> nodes"}},
	}
	for i, phase := range phases {
		p := tidekeeperv1.NodeProgress{Phase: phase, Since: metav1.NewTime(noon.Add(-time.Duration(i+1) * time.Minute))}
		switch phase {
		case tidekeeperv1.NodeDone:
			m.Status.Done++
		case tidekeeperv1.NodeFailed:
			m.Status.Failed++
			p.Reason, p.Message = "DrainTimeout", "not empty by 2026-11-22T11:00:00Z"
		default:
			m.Status.Running++
		}
		m.Status.Nodes["n"+string(rune('1'+i))] = p
	}
	return m
}

func shownAt(t *testing.T, s *Site, path string) string {
	t.Helper()
	e, _ := pageOf(t, s, path)
	return e.HTML
}

// TestOverviewShowsMaintenances checks that the overview shows the progress of each maintenance, with
// the nodes that have failed or are being maintained, and that the headline counts failed nodes.
func TestOverviewShowsMaintenances(t *testing.T) {
	site := func(items []tidekeeperv1.NodeMaintenance, err error) *Site {
		var f fakeKind
		return siteWith(t, nil, f.kind(kindMaintenances, &tidekeeperv1.NodeMaintenance{}, &tidekeeperv1.NodeMaintenanceList{Items: items}, err))
	}
	const section = `id="h-maint"`

	unobserved := aMaintenance("new")
	unobserved.Status = tidekeeperv1.NodeMaintenanceStatus{}
	shown := shownAt(t, site([]tidekeeperv1.NodeMaintenance{
		aMaintenance("reboot", tidekeeperv1.NodeDone, tidekeeperv1.NodeFailed, tidekeeperv1.NodeDrained, tidekeeperv1.NodeDraining), unobserved,
	}, nil), "/")
	for _, want := range []string{
		section, "maintenance of 1 node failed", `data-label="Done">1/5<`, `data-label="Running">2<`, "waits for &lt;b&gt;two&lt;/b&gt; nodes",
		"DrainTimeout", "today 11:00", "tomorrow 12:00 (in 24h)", "<bdi>n2</bdi>", "<bdi>n3</bdi>", "<bdi>n4</bdi>", "kubectl tide maintenance",
		`data-label="Done">–<`, `data-label="Running">–<`, `data-label="Failed">–<`, // values of a NodeMaintenance that no manager has observed
	} {
		if !strings.Contains(shown, want) {
			t.Errorf("the overview does not have %q:\n%s", want, shown)
		}
	}
	if strings.Contains(shown, "<bdi>n1</bdi>") || strings.Contains(shown, "and 1 more") || strings.Index(shown, "<bdi>n2</bdi>") > strings.Index(shown, "<bdi>n3</bdi>") {
		t.Errorf("a node that is done is shown, or the failed node is not the first:\n%s", shown)
	}
	many := aMaintenance("many", tidekeeperv1.NodeDrained, tidekeeperv1.NodeDrained, tidekeeperv1.NodeDrained, tidekeeperv1.NodeDrained, tidekeeperv1.NodeDrained)
	if shown := shownAt(t, site([]tidekeeperv1.NodeMaintenance{many}, nil), "/"); !strings.Contains(shown, "and 2 more") {
		t.Errorf("five nodes are being maintained, and the overview does not say that it shows three:\n%s", shown)
	}
	for name, none := range map[string]*Site{
		"there are none": site(nil, nil), "the cluster does not serve the kind": siteWith(t, nil, unservedKind()),
	} {
		if shown := shownAt(t, none, "/"); strings.Contains(shown, section) {
			t.Errorf("%s: the overview has the section:\n%s", name, shown)
		}
	}
	if shown := shownAt(t, site(nil, forbidden()), "/"); !strings.Contains(shown, section) || !strings.Contains(shown, "Not known: not allowed to list nodemaintenances.") {
		t.Errorf("without the right to list them, the overview does not say that they are not known:\n%s", shown)
	}
}

// unservedKind returns the kind NodeMaintenance of a cluster that does not serve it.
func unservedKind() Kind {
	var f fakeKind
	kind := f.kind(kindMaintenances, &tidekeeperv1.NodeMaintenance{}, &tidekeeperv1.NodeMaintenanceList{}, apierrors.NewNotFound(schema.GroupResource{}, ""))
	kind.Optional = true
	return kind
}

// TestNodePanelShowsMaintenance checks that a node in maintenance is marked in the table and on the
// map, and that its panel shows the progress of the maintenance, or why it is unknown.
func TestNodePanelShowsMaintenance(t *testing.T) {
	annotated := func(uid, name string) *corev1.Node {
		node := &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: "n1", Annotations: map[string]string{}}, Spec: corev1.NodeSpec{Unschedulable: true}}
		node.Status.Conditions = []corev1.NodeCondition{{Type: corev1.NodeReady, Status: corev1.ConditionTrue}}
		if uid != "" {
			node.Annotations[tidekeeperv1.CordonedForMaintenanceAnnotation] = uid
		}
		if name != "" {
			node.Annotations[tidekeeperv1.DrainedForMaintenanceAnnotation] = name
		}
		return node
	}
	reboot := aMaintenance("reboot", tidekeeperv1.NodeDrained)
	for name, tc := range map[string]struct {
		node    *corev1.Node
		objects []tidekeeperv1.NodeMaintenance
		err     error
		state   string
		says    []string
	}{
		"drained":             {annotated(string(reboot.UID), "reboot"), []tidekeeperv1.NodeMaintenance{reboot}, nil, inMaintenance, []string{"<bdi>reboot</bdi>", "Drained", "60s ago", "reboot the machine, or: kubectl tide maintenance done n1"}},
		"being drained":       {annotated(string(reboot.UID), ""), []tidekeeperv1.NodeMaintenance{reboot}, nil, inMaintenance, []string{"<bdi>reboot</bdi>"}},
		"not allowed":         {annotated(string(reboot.UID), "reboot"), nil, forbidden(), inMaintenance, []string{"<bdi>reboot</bdi>", "its progress is not known: not allowed to list nodemaintenances"}},
		"of a deleted object": {annotated("gone", "gone"), []tidekeeperv1.NodeMaintenance{reboot}, nil, inMaintenance, []string{"there is no such NodeMaintenance"}},
		"only cordoned":       {annotated("", ""), []tidekeeperv1.NodeMaintenance{reboot}, nil, "cordoned", nil},
	} {
		t.Run(name, func(t *testing.T) {
			var f fakeKind
			s := poolSiteWith(t, tc.node, f.kind(kindMaintenances, &tidekeeperv1.NodeMaintenance{}, &tidekeeperv1.NodeMaintenanceList{Items: tc.objects}, tc.err))
			shown := shownAt(t, s, "/pools/worker?node=n1")
			_, panel, found := strings.Cut(shown, `<p class="line" id="maintenance">`)
			if found != (tc.says != nil) {
				t.Errorf("the panel has the line about maintenance: %v", found)
			}
			panel, _, _ = strings.Cut(panel, "</p>")
			for _, want := range tc.says {
				if !strings.Contains(panel, want) {
					t.Errorf("the panel does not say %q: %s", want, panel)
				}
			}
			if !strings.Contains(shown, ", "+tc.state+`"`) {
				t.Errorf("the map does not say %q:\n%s", tc.state, shown)
			}
		})
	}
}
