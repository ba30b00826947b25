// Copyright The Tidekeeper Authors.
// SPDX-License-Identifier: Apache-2.0

package kubelet

import (
	"context"
	"fmt"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	coordinationv1 "k8s.io/api/coordination/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/kubernetes/fake"
	coordinationclient "k8s.io/client-go/kubernetes/typed/coordination/v1"
)

func TestLeasesAreRenewedInTimeAndSpread(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const nodes = 1000
		client := fake.NewClientset()
		l := newLeases(client)
		for i := range nodes {
			l.keep(&corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: fmt.Sprint(i), UID: types.UID(fmt.Sprint(i))}})
		}
		renewed := map[string]int{}
		most := 0
		start := time.Now()
		for time.Since(start) < 2*renewEvery+renewEvery/2 {
			due := l.due(time.Now())
			most = max(most, len(due))
			for _, entry := range due {
				renewed[entry.node.Name]++
				l.renewed(entry, time.Now(), nil)
			}
			time.Sleep(pace) // sleep: passes in the fake time of synctest
		}
		for i := range nodes {
			if n := renewed[fmt.Sprint(i)]; n < 2 {
				t.Fatalf("the lease of node %d was renewed %d times in %s", i, n, time.Since(start))
			}
		}
		if most > nodes/50 {
			t.Errorf("%d leases were renewed at once", most)
		}
	})
}

// slowServer simulates an API server that takes 40 ms for each write of a lease, and never responds
// to writes for nodes whose names end in 777.
type slowServer struct {
	kubernetes.Interface
	coordination slowCoordination
}

type slowCoordination struct {
	coordinationclient.CoordinationV1Interface
	leases slowLeases
}

type slowLeases struct {
	coordinationclient.LeaseInterface
	written func(name string)
}

func (s slowServer) CoordinationV1() coordinationclient.CoordinationV1Interface {
	return s.coordination
}

func (s slowCoordination) Leases(string) coordinationclient.LeaseInterface { return s.leases }

func (s slowLeases) Create(ctx context.Context, l *coordinationv1.Lease, _ metav1.CreateOptions) (*coordinationv1.Lease, error) {
	if strings.HasSuffix(l.Name, "777") {
		<-ctx.Done()
		return nil, ctx.Err()
	}
	time.Sleep(40 * time.Millisecond) // sleep: the duration of a write, in the fake time of synctest
	s.written(l.Name)
	return l, nil
}

func (s slowLeases) Update(ctx context.Context, l *coordinationv1.Lease, _ metav1.UpdateOptions) (*coordinationv1.Lease, error) {
	return s.Create(ctx, l, metav1.CreateOptions{})
}

// TestLeasesOfASlowAPIServer checks that the leases of 5,000 nodes are renewed in time even if each
// write takes 40 ms and the writes for some nodes hang.
func TestLeasesOfASlowAPIServer(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const nodes, patience = 5000, 50 * time.Second
		var mu sync.Mutex
		renewed := map[string]time.Time{}
		longest := time.Duration(0)
		l := newLeases(slowServer{coordination: slowCoordination{leases: slowLeases{written: func(name string) {
			mu.Lock()
			defer mu.Unlock()
			if before, ok := renewed[name]; ok {
				longest = max(longest, time.Since(before))
			}
			renewed[name] = time.Now()
		}}}})
		for i := range nodes {
			l.keep(&corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: fmt.Sprint(i), UID: types.UID(fmt.Sprint(i))}})
		}
		ctx, stop := context.WithCancel(t.Context())
		go l.run(ctx)
		time.Sleep(4 * renewEvery) // sleep: passes in the fake time of synctest
		stop()
		synctest.Wait()
		if want := nodes - nodes/1000; len(renewed) != want {
			t.Errorf("%d leases were renewed, want %d", len(renewed), want)
		}
		for name, at := range renewed {
			longest = max(longest, time.Since(at))
			if longest >= patience {
				t.Fatalf("the lease of node %s was not renewed for %s", name, longest)
			}
		}
	})
}

func TestLongestOverdueFirst(t *testing.T) {
	l := newLeases(fake.NewClientset())
	for i := range 1000 {
		name := fmt.Sprint(i)
		l.keep(&corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: name, UID: types.UID(name)}})
		l.leases[name].due = time.Unix(int64(i), 0)
	}
	for i, entry := range l.due(time.Unix(2000, 0)) {
		if want := fmt.Sprint(i); entry.node.Name != want {
			t.Fatalf("node %s is renewed as number %d, want node %s", entry.node.Name, i, want)
		}
	}
}

func TestLeaseIsTakenOver(t *testing.T) {
	n := &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: "n", UID: "u"}}
	client := fake.NewClientset(newLease(n, metav1.NewMicroTime(time.Unix(1, 0))))
	l := newLeases(client)
	l.keep(n)
	if err := l.renew(t.Context(), l.leases["n"]); err != nil {
		t.Fatal(err)
	}
	if got := l.leases["n"].known.Spec.RenewTime; time.Since(got.Time) > time.Minute {
		t.Errorf("renewed at %s", got)
	}
}
