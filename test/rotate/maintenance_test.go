// Copyright The Tidekeeper Authors.
// SPDX-License-Identifier: Apache-2.0

package rotate

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	tidekeeperv1 "tidekeeper.dev/tidekeeper/api/v1"
	"tidekeeper.dev/tidekeeper/test/framework"
)

// withMaintenance lists flags for managers that run the controller of NodeMaintenances.
var withMaintenance = []string{"--controllers=*,node-maintenance"}

// crew is a set of managers that rotate the nodes.
type crew interface {
	// disturb is called at short intervals, and makes trouble for the managers when it is time.
	disturb(*testing.T)
	// end stops the managers.
	end(*testing.T)
}

// maintain returns a way that rotates all nodes by a NodeMaintenance, one at a time, pool by pool.
func maintain(start func(*testing.T, *world) crew) func(*testing.T, *world, *film) {
	return func(t *testing.T, w *world, f *film) {
		managers := start(t, w)
		m := &tidekeeperv1.NodeMaintenance{ObjectMeta: metav1.ObjectMeta{Name: "rotation"}}
		m.Spec.Nodes.Pools = pools
		must(t, w.Create(t.Context(), m))
		patience := 2*framework.Patience + time.Duration(w.nodes)*time.Minute
		framework.EventuallyWithin(t, patience, "all nodes are maintained", func() error {
			managers.disturb(t)
			for _, node := range f.drained() {
				w.finish(t, node)
			}
			w.Refresh(t, m)
			if done := int(m.Status.Done + m.Status.Failed); done != w.nodes {
				return errors.Join(f.failed(), fmt.Errorf("%d of %d nodes are done, and %d have failed: %v", m.Status.Done, w.nodes, m.Status.Failed, m.Status.Nodes))
			}
			return nil
		})
		if m.Status.Failed > 0 {
			t.Errorf("%d nodes have failed: %v", m.Status.Failed, m.Status.Nodes)
		}
		managers.end(t)
	}
}

// finish says that the maintenance of a drained node is done.
func (w *world) finish(t *testing.T, node string) {
	t.Helper()
	patch := fmt.Appendf(nil, `{"metadata":{"annotations":{%q:null}}}`, tidekeeperv1.DrainedForMaintenanceAnnotation)
	must(t, w.Patch(t.Context(), framework.Node(node), client.RawPatch(types.MergePatchType, patch)))
}

// calm is one manager, which is left alone.
type calm struct{ *framework.Manager }

func startCalm(t *testing.T, w *world) crew {
	return calm{w.StartManager(t, withMaintenance...)}
}

func (calm) disturb(*testing.T) {}

func (c calm) end(t *testing.T) {
	c.AssertSound(t)
	c.Stop(t)
}

// killed is a leader with a standby. Whichever leads is killed again and again, and another manager
// is started.
type killed struct {
	w        *world
	managers []*framework.Manager
	next     time.Time
	kills    int
}

// shortLeases lists flags for managers of which the standby leads soon after the leader was killed.
var shortLeases = []string{
	"--leader-elect", "--leader-elect-resource-namespace=" + framework.ManagerNamespace,
	"--leader-elect-lease-duration=2s", "--leader-elect-renew-deadline=1500ms", "--leader-elect-retry-period=200ms",
}

func startKilled(t *testing.T, w *world) crew {
	k := &killed{w: w, next: time.Now().Add(w.trouble)}
	for range 2 {
		k.start(t)
	}
	return k
}

func (k *killed) start(t *testing.T) {
	t.Helper()
	k.managers = append(k.managers, k.w.LaunchManager(t, append(shortLeases, withMaintenance...)...))
}

func (k *killed) disturb(t *testing.T) {
	t.Helper()
	for i, manager := range k.managers {
		// A manager ends by itself if the machine is so busy that it could not renew its lease.
		if !manager.Running() {
			k.managers = append(k.managers[:i:i], k.managers[i+1:]...)
			k.start(t)
			return
		}
	}
	if time.Now().Before(k.next) {
		return
	}
	for _, manager := range k.managers {
		if metrics, err := manager.TryMetrics(); err == nil && metrics.Sum("leader_election_master_status") == 1 {
			manager.Kill(t)
			k.kills++
			k.next = time.Now().Add(k.w.trouble)
		}
	}
}

func (k *killed) end(t *testing.T) {
	t.Helper()
	if k.kills == 0 {
		t.Error("no leader was killed")
	}
	t.Logf("the leader was killed %d times", k.kills)
	for _, manager := range k.managers {
		if !manager.Running() {
			continue
		}
		// A leader may lose its short lease at the same time.
		if err := manager.Process.Stop(context.WithoutCancel(t.Context())); err != nil && !strings.Contains(manager.Log(), "leader election lost") {
			t.Errorf("stop a manager: %v", err)
		}
	}
}

// lossy is a manager whose watches lose events, and list all objects again from time to time.
type lossy struct {
	calm
	w     *world
	proxy *framework.Proxy
	next  time.Time
	cuts  int
	// expired lists the rules that refuse to open watches again.
	expired []string
}

// loss is a scenario in which every tenth event of a watch is lost.
const loss = `rules:
- {name: loss, events: {types: [ADDED, MODIFIED, DELETED]}, count: {every: 10}, fault: {kind: DropEvent}}`

func startLossy(t *testing.T, w *world) crew {
	proxy := w.StartProxy(t, loss)
	manager := w.StartManager(t, append([]string{"--kubeconfig", proxy.Kubeconfig}, withMaintenance...)...)
	return &lossy{calm: calm{manager}, w: w, proxy: proxy, next: time.Now().Add(w.trouble)}
}

func (l *lossy) disturb(t *testing.T) {
	t.Helper()
	if time.Now().Before(l.next) {
		return
	}
	l.next = time.Now().Add(l.w.trouble)
	// A manager learns what it has missed from a list, for which client-go has no reason until a
	// watch cannot go on where it ended. All watches are cut, and the first attempt to open each of
	// them again is refused.
	for _, rule := range l.expired {
		l.proxy.Remove(t, rule)
	}
	l.expired = nil
	open := map[string]int{}
	for _, watch := range l.proxy.Watches(t) {
		open[watch.Resource]++
	}
	for resource, watches := range open {
		rule := "expired-" + resource
		l.proxy.Add(t, fmt.Sprintf("rules: [{name: %q, match: {verbs: [watch], resources: [%q]}, count: {times: %d}, fault: {kind: Error, code: 410, reason: Expired}}]",
			rule, resource, watches))
		l.expired = append(l.expired, rule)
	}
	l.proxy.Cut(t, "")
	l.cuts++
}

func (l *lossy) end(t *testing.T) {
	t.Helper()
	lost := l.proxy.Fired(t, "loss")
	if lost == 0 {
		t.Error("no event was lost")
	}
	t.Logf("%d events were lost, all objects were listed again %d times", lost, l.cuts)
	l.calm.end(t)
}
