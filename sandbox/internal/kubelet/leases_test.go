// Copyright The Tidekeeper Authors.
// SPDX-License-Identifier: Apache-2.0

package kubelet

import (
	"fmt"
	"testing"
	"testing/synctest"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/kubernetes/fake"
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
			}
			time.Sleep(pace)
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
