// Copyright The Tidekeeper Authors.
// SPDX-License-Identifier: Apache-2.0

package node

import (
	"regexp"
	"testing"

	"tidekeeper.dev/tidekeeper/test/framework"
)

// used matches the line that kubectl top prints for a pod, or for a node, which also has
// percentages.
var used = regexp.MustCompile(`^\S+ [0-9]+m( [0-9]+%)? [1-9][0-9]*Mi( [0-9]+%)?$`)

// TestTop checks that kubectl top shows the container usage that the kubelet of a real node
// measures.
func TestTop(t *testing.T) {
	// metrics-server runs as a process on this machine, and its Pod is on the simulated node.
	n := &node{framework.StartReal(t, "--nodes=1")}
	n.kubectl(t, "cordon", nodeName)
	n.InstallMetricsServer(t)
	n.RunMetricsServer(t)
	n.kubectl(t, "-n", "kube-system", "wait", framework.LongTimeout, "--for=condition=Available", "deployment/metrics-server")
	n.kubectl(t, "uncordon", nodeName)
	n.Sandbox(t, "nodes", "load-image", "app:1", framework.Build(t, "./test/node/app"))
	d := web("app", 1, 0)
	d.Spec.Template.Spec.NodeName = nodeName
	n.deploy(t, d)
	n.EventuallyTop(t, "the real node", used.MatchString, "nodes", nodeName)
	n.EventuallyTop(t, "a pod of the real node", used.MatchString, "pods", "-l", "app=app")
}
