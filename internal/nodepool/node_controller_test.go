// Copyright The Tidekeeper Authors.
// SPDX-License-Identifier: Apache-2.0

package nodepool

import (
	"context"
	"errors"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/prometheus/client_golang/prometheus"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
	clocktesting "k8s.io/utils/clock/testing"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	"tidekeeper.dev/tidekeeper/internal/freeze/period"
	"tidekeeper.dev/tidekeeper/internal/nodepool/state"
	"tidekeeper.dev/tidekeeper/internal/nodepool/test/objects"
)

// TestOvertakenOrRefused checks that a rejected JSON patch is followed by a merge patch with the
// resourceVersion, whose result shows whether the node has changed or the content is invalid.
func TestOvertakenOrRefused(t *testing.T) {
	var (
		invalid  error = &apierrors.StatusError{ErrStatus: metav1.Status{Status: metav1.StatusFailure, Code: 422, Reason: metav1.StatusReasonInvalid}}
		conflict       = apierrors.NewConflict(corev1.Resource("nodes"), "n", errors.New("modified"))
	)
	type answers map[types.PatchType]error
	for _, tc := range []struct {
		name string
		// tries holds the API server's responses to the patches of each reconcile. newer is the set
		// of reconciles before which the cache receives a newer version of the node.
		tries []answers
		newer map[int]bool
		// want lists the types of the expected patches. conflicts is the expected number of
		// conflicts counted in the metrics.
		want      []types.PatchType
		conflicts float64
		// refused is true if the last patch is expected to be counted as rejected.
		refused bool
	}{
		{
			name: "accepted", tries: []answers{{}},
			want: []types.PatchType{types.JSONPatchType},
		},
		{
			name: "refused for its content", tries: []answers{{types.JSONPatchType: invalid, types.MergePatchType: invalid}},
			want: []types.PatchType{types.JSONPatchType, types.MergePatchType}, refused: true,
		},
		{
			name: "overtaken, twice shown as before, and then as it is",
			tries: []answers{
				{types.JSONPatchType: invalid, types.MergePatchType: conflict},
				{types.JSONPatchType: invalid, types.MergePatchType: conflict},
				{types.JSONPatchType: invalid, types.MergePatchType: conflict},
				{},
			},
			newer: map[int]bool{3: true},
			want: []types.PatchType{
				types.JSONPatchType, types.MergePatchType, types.MergePatchType, types.MergePatchType, types.JSONPatchType,
			},
			conflicts: 3,
		},
		{
			name: "a conflict without a newer version", tries: []answers{{types.JSONPatchType: conflict}, {}},
			want: []types.PatchType{types.JSONPatchType, types.MergePatchType}, conflicts: 1,
		},
		{
			name: "a test that fails although nothing has changed", tries: []answers{{types.JSONPatchType: invalid}},
			want: []types.PatchType{types.JSONPatchType, types.MergePatchType},
		},
	} {
		t.Run(tc.name, func(t *testing.T) {
			var sent []types.PatchType
			var answer answers
			node := objects.Node("n").Role("a").Obj()
			server := interceptor.NewClient(fake.NewClientBuilder().WithScheme(clientgoscheme.Scheme).WithObjects(node).Build(), interceptor.Funcs{
				Patch: func(_ context.Context, _ client.WithWatch, _ client.Object, patch client.Patch, _ ...client.PatchOption) error {
					sent = append(sent, patch.Type())
					return answer[patch.Type()]
				},
			})
			cluster := state.NewCluster()
			registry := prometheus.NewRegistry()
			m, err := newMetrics(registry, cluster)
			if err != nil {
				t.Fatal(err)
			}
			r := &nodeReconciler{client: server, cluster: cluster, feed: &eventFeed{cluster: cluster}, metrics: m, clock: clocktesting.NewFakePassiveClock(objects.PatchTime)}
			cluster.SetPool(objects.Pool("a").Labels("of", "a").Obj())
			cluster.SetNode(node)
			for i, a := range tc.tries {
				answer = a
				if tc.newer[i] {
					if err := server.Get(t.Context(), client.ObjectKeyFromObject(node), node); err != nil {
						t.Fatal(err)
					}
					node.Annotations = map[string]string{"newer": "1"}
					if err := server.Update(t.Context(), node); err != nil {
						t.Fatal(err)
					}
				}
				_, err = r.Reconcile(t.Context(), requestFor("n"))
			}
			if diff := cmp.Diff(tc.want, sent); diff != "" {
				t.Errorf("patches (-want +got):\n%s", diff)
			}
			if got := isRefused(err); got != tc.refused {
				t.Errorf("the last error is %v", err)
			}
			if got := conflictsOf(t, registry); got != tc.conflicts {
				t.Errorf("%v conflicts, want %v", got, tc.conflicts)
			}
			v, _ := cluster.Pool("a")
			if (v.Refused > 0) != tc.refused {
				t.Errorf("the pool counts %d nodes as refused", v.Refused)
			}
		})
	}
}

// conflictsOf returns the number of conflicts that the metrics have counted.
func conflictsOf(t *testing.T, registry prometheus.Gatherer) float64 {
	t.Helper()
	families, err := registry.Gather()
	if err != nil {
		t.Fatal(err)
	}
	for _, family := range families {
		for _, metric := range family.GetMetric() {
			if family.GetName() == "tidekeeper_nodepool_node_writes_total" && metric.GetLabel()[0].GetValue() == resultConflict {
				return metric.GetCounter().GetValue()
			}
		}
	}
	return 0
}

// TestFrozenSinceItsTurn checks that a NoExecute taint is not added during a freeze, even if the
// pool was permitted to taint the node before the freeze began. The pool's other settings must
// still be written.
func TestFrozenSinceItsTurn(t *testing.T) {
	node := objects.Node("n").Role("a").Obj()
	var sent []string
	server := interceptor.NewClient(fake.NewClientBuilder().WithScheme(clientgoscheme.Scheme).WithObjects(node).Build(), interceptor.Funcs{
		Patch: func(_ context.Context, _ client.WithWatch, object client.Object, patch client.Patch, _ ...client.PatchOption) error {
			data, err := patch.Data(object)
			sent = append(sent, string(data))
			return err
		},
	})
	cluster := state.NewCluster()
	m, err := newMetrics(prometheus.NewRegistry(), cluster)
	if err != nil {
		t.Fatal(err)
	}
	var held *period.Period
	asked := 0
	r := &nodeReconciler{
		client: server, cluster: cluster, feed: &eventFeed{cluster: cluster}, metrics: m, clock: clocktesting.NewFakePassiveClock(objects.PatchTime),
		frozen: func(context.Context) (*period.Period, error) { asked++; return held, nil },
	}
	cluster.SetPool(objects.Pool("a").Labels("of", "a").Taint("gone", "", corev1.TaintEffectNoExecute).Obj())
	cluster.SetNode(node)
	reconcile := func(tainted, labelled bool) {
		t.Helper()
		sent = nil
		if _, err := r.Reconcile(t.Context(), requestFor("n")); err != nil {
			t.Error(err)
		}
		all := strings.Join(sent, "")
		if strings.Contains(all, `"effect":"NoExecute"`) != tainted || strings.Contains(all, "/metadata/labels/of") != labelled {
			t.Errorf("sent %s, want a taint: %t, a label: %t", all, tainted, labelled)
		}
	}
	cluster.AllowEvictions("a", []string{"n"}, nil, objects.PatchTime)
	held = &period.Period{Name: "sale"}
	reconcile(false, false)
	reconcile(false, true)
	if asked != 1 {
		t.Errorf("asked %d times, want once: nothing is evicted the second time", asked)
	}
	held = nil
	cluster.AllowEvictions("a", []string{"n"}, nil, objects.PatchTime)
	reconcile(true, true)
}
