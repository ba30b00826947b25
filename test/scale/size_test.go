// Copyright The Tidekeeper Authors.
// SPDX-License-Identifier: Apache-2.0

package scale

import (
	"testing"
	"time"

	"tidekeeper.dev/tidekeeper/test/seed"
)

// clusterSize counts the objects in a cluster.
type clusterSize struct {
	nodes, pods, schedules int
}

// populate creates the pods and their owners. Meanwhile only the API server watches the pods,
// because three more watching components would slow this down.
func (r *run) populate(t *testing.T) (bytes int) {
	t.Helper()
	for _, component := range seed.Onlookers {
		r.Component(t, "kill", component)
	}
	bytes = r.etcd.WritePods(t, r.pods, r.nodes, time.Now())
	for i := range r.pods {
		r.there[i] = true
		r.requested += seed.RequestOf(i)
	}
	r.Component(t, "start", kubelets)
	if !r.scarce {
		r.Component(t, "start", controllerManager)
		r.Component(t, "start", scheduler)
	}
	return bytes
}

const (
	controllerManager = "kube-controller-manager"
	scheduler         = "kube-scheduler"
	kubelets          = "kubelets"
)
