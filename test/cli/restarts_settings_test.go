// Copyright The Tidekeeper Authors.
// SPDX-License-Identifier: Apache-2.0

package cli

import (
	"fmt"
	"regexp"
	"testing"
	"time"

	coordinationv1 "k8s.io/api/coordination/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"tidekeeper.dev/tidekeeper/test/framework"
)

// After a downgrade the labels with the settings of the manager before stay on the lease: the older
// manager, as any client of client-go, writes the spec and leaves labels that it does not know. Its
// settings are assumed then, and not taken to be those.
func TestSettingsOfAnOlderManager(t *testing.T) {
	const (
		one     = `Budget +open +other restarts use 0 of 1 slots, and 0 of the 1 that this namespace may have\n`
		assumed = `Budget +open +other restarts use 0 of 20 slots, and 0 of the 10 that this namespace may have \(assumed: --max-concurrent-restarts 20, --restart-namespace-share 50\)\n`
	)
	elected := append(cluster.ElectUntilReleased(t), oneSlot...)
	cluster.AddNodes(t, "downgrade", 1)
	m := cluster.StartManager(t, elected...)
	w := aTruthWorld(t, "downgrade", time.Now().Add(12*time.Hour), 3600, nil, nil)
	w.says(t, "gates web", 0, one)
	m.Stop(t)
	w.says(t, "gates web", 0, assumed)

	lease := &coordinationv1.Lease{ObjectMeta: metav1.ObjectMeta{Namespace: framework.ManagerNamespace, Name: "tidekeeper"}}
	cluster.Refresh(t, lease)
	holds := func(identity string) {
		now := metav1.NowMicro()
		cluster.Change(t, lease, func() {
			lease.Spec.HolderIdentity, lease.Spec.LeaseDurationSeconds = &identity, new(int32(3600))
			lease.Spec.AcquireTime, lease.Spec.RenewTime = &now, &now
		})
	}
	holds("older_5f0c8e0a-5a4b-4a65-8f7a-2f2f1f0c9a11")
	if lease.Labels["settings.tidekeeper.dev/max-concurrent-restarts"] != "1" {
		t.Fatalf("the lease has the labels %v", lease.Labels)
	}
	w.says(t, "gates web", 0, assumed)
	w.says(t, "forecast", 0, `Assumed: .*--max-concurrent-restarts`)

	cluster.StartManager(t, elected...)
	cluster.ExpireLease(t)
	framework.Eventually(t, "the newer manager leads again, and its settings are known", func() error {
		r := command{args: []string{"restarts", "gates", "web", "-n", w.namespace}}.run(t)
		if !regexp.MustCompile(one).MatchString(r.stdout) {
			return fmt.Errorf("%s%s", r.stdout, r.stderr)
		}
		return nil
	})
}
