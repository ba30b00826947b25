// Copyright The Tidekeeper Authors.
// SPDX-License-Identifier: Apache-2.0

package state

import (
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/util/sets"

	tidekeeperv1 "tidekeeper.dev/tidekeeper/api/v1"
	"tidekeeper.dev/tidekeeper/internal/nodepool/setting"
	"tidekeeper.dev/tidekeeper/internal/nodepool/test/objects"
)

// TestOrphansAreTakenOff checks the treatment of a setting whose recorded pool no longer manages
// it: the setting is removed if the pool managed it in the past, and kept if no pool ever managed
// it.
func TestOrphansAreTakenOff(t *testing.T) {
	theirs := setting.LabelKey("theirs")
	for _, tc := range []struct {
		name    string
		then    func(f *Cluster)
		on      *objects.NodeBuilder
		removed []setting.Key
	}{
		{
			"the pool was deleted",
			func(f *Cluster) { f.DeletePool("p") },
			objects.Node("n").LabelOf("p", "ours", "1"), []setting.Key{setting.LabelKey("ours")},
		},
		{
			"the key is removed from the spec",
			func(f *Cluster) { f.SetPool(objects.Pool("p").Obj()) },
			objects.Node("n").LabelOf("p", "ours", "1"), []setting.Key{setting.LabelKey("ours")},
		},
		{
			"the pool was created again, and asks for other settings",
			func(f *Cluster) {
				again := objects.Pool("p").Labels("other", "1").Obj()
				again.UID = "another"
				f.SetPool(again)
			},
			objects.Node("n").LabelOf("p", "ours", "1"), []setting.Key{setting.LabelKey("ours")},
		},
		{
			"another client has written another value since",
			func(f *Cluster) { f.DeletePool("p") },
			objects.Node("n").LabelOf("p", "ours", "1").Label("ours", "2"), nil,
		},
		{
			"a forged record, of a setting that is not the pool's",
			func(f *Cluster) { f.DeletePool("p") },
			objects.Node("n").Label(theirs.Name, "1").Owned("p", theirs, "1"), nil,
		},
		{
			"a forged record, of a pool that never existed",
			func(f *Cluster) { f.DeletePool("p") },
			objects.Node("n").Label("ours", "1").Owned("ghost", setting.LabelKey("ours"), "1"), nil,
		},
	} {
		t.Run(tc.name, func(t *testing.T) {
			f := NewCluster()
			f.SetPool(objects.Pool("p").Labels("ours", "1").Obj())
			tc.then(f)
			node := tc.on.Obj()
			f.SetNode(node)
			plan, end := f.BeginWrite(node)
			end()
			var removed []setting.Key
			for s := range plan.Remove {
				removed = append(removed, s)
			}
			if diff := cmp.Diff(tc.removed, removed, cmp.AllowUnexported(setting.Key{}), cmpopts.EquateEmpty()); diff != "" {
				t.Errorf("removed (-want +got):\n%s", diff)
			}
			if len(removed) > 0 && len(plan.Orphaned) == 0 {
				t.Error("the removal is not to be verified")
			}
		})
	}
}

func TestRetiredIsBounded(t *testing.T) {
	var r formerKeys
	for i := range 3 * maxFormerKeys {
		r.add(fmt.Sprint("pool-", i%1000), setting.LabelKey(fmt.Sprint(i)))
	}
	known := 0
	for _, keys := range r.keys {
		known += len(keys)
	}
	if known != maxFormerKeys || len(r.order) != maxFormerKeys {
		t.Errorf("%d keys are remembered in an order of %d; want %d", known, len(r.order), maxFormerKeys)
	}
	last := setting.LabelKey(fmt.Sprint(3*maxFormerKeys - 1))
	if !r.forPool(fmt.Sprint("pool-", (3*maxFormerKeys-1)%1000)).Has(last) {
		t.Error("the last one is not remembered")
	}
}

// TestForgedRecordDoesNotHoldADeletion checks that the deletion of a pool does not wait forever for
// a node whose ownership annotation another client keeps forging or making unreadable.
func TestForgedRecordDoesNotHoldADeletion(t *testing.T) {
	for _, forged := range []string{`{"p":{"labels":{"ours":"1"}}}`, "garbage"} {
		f := NewCluster()
		f.SetPool(objects.Pool("p").MatchLabels("in", "1").Labels("ours", "1").Deleted().Obj())
		forge := func() *corev1.Node {
			node := objects.Node("n").Label("in", "1").Label("ours", "1").Annotation(tidekeeperv1.OwnershipAnnotation, forged).Obj()
			f.SetNode(node)
			return node
		}
		forge()
		for writes := 0; ; writes++ {
			if v, _ := f.Pool("p"); v.OwnedNodes == 0 {
				if writes == 0 {
					t.Errorf("%s: the pool does not wait for the node at all", forged)
				}
				break
			}
			if writes > 20 {
				t.Fatalf("%s: after %d writes the pool still waits for the node", forged, writes)
			}
			node := forge()
			plan, end := f.BeginWrite(node)
			if plan.Empty() {
				t.Fatalf("%s: nothing to clean, but the pool waits for the node", forged)
			}
			f.RecordWrite("n", &plan)
			end()
			forge()
		}
	}
}

// TestRecordsOfNoPoolsQueueNothing checks that a pool named in an ownership annotation is not
// queued if it does not exist.
func TestRecordsOfNoPoolsQueueNothing(t *testing.T) {
	f := NewCluster()
	f.SetPool(objects.Pool("p").Labels("ours", "1").Obj())
	node := objects.Node("n")
	for i := range 8_000 {
		node.Owned(fmt.Sprint("ghost-", i), setting.LabelKey("x"), "1")
		if i == 10 {
			break
		}
	}
	if dirty := f.SetNode(node.Obj()); len(dirty.Pools) > 0 {
		t.Errorf("dirty pools: %v", sets.List(dirty.Pools))
	}
}

// TestRefusedNodes checks the handling of a node for which the API server rejects a pool's
// settings. The node must be reported until a write succeeds, and must lose its permission to get a
// NoExecute taint.
func TestRefusedNodes(t *testing.T) {
	f := NewCluster()
	f.SetPool(objects.Pool("p").Labels("ours", "1").Taint("out", "", corev1.TaintEffectNoExecute).Obj())
	node := objects.Node("n").Role("p").Obj()
	f.SetNode(node)
	f.AllowEvictions("p", []string{"n"}, nil, objects.PatchTime)
	plan, end := f.BeginWrite(node)
	f.RecordFailure("n", plan.Affected, errors.New("no: "+strings.Repeat("x", 5_000)), true)
	end()
	v, _ := f.Pool("p")
	if v.Refused != 1 || v.RefusedNode != "n" || !strings.HasPrefix(v.RefusedReason, "no: ") || len(v.RefusedReason) > maxReasonLength {
		t.Errorf("%d nodes are refused: %s, %s", v.Refused, v.RefusedNode, v.RefusedReason)
	}
	turns := f.graph.pools["p"].turns
	if _, allowed := turns.allowed["n"]; allowed || !turns.failing.Has("n") {
		t.Error("the node still has its turn")
	}
	plan, end = f.BeginWrite(node)
	f.RecordWrite("n", &plan)
	end()
	if v, _ := f.Pool("p"); v.Refused != 0 {
		t.Errorf("after the write it is still refused: %s", v.RefusedReason)
	}
}
