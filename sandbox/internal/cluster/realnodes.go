// Copyright The Tidekeeper Authors.
// SPDX-License-Identifier: Apache-2.0

package cluster

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/client-go/kubernetes"

	"tidekeeper.dev/tidekeeper/sandbox/internal/component"
	"tidekeeper.dev/tidekeeper/sandbox/internal/node"
	"tidekeeper.dev/tidekeeper/sandbox/internal/realnode"
	"tidekeeper.dev/tidekeeper/sandbox/internal/supervisor"
)

// NodeSockets returns the paths of the real nodes' sockets.
func (s Status) NodeSockets() []string {
	var list []string
	for i := range s.RealNodes {
		list = append(list, s.DataDir.sockets().node(i+1))
	}
	return list
}

// checkRealNodes returns an error if this machine cannot run real nodes.
func (o Options) checkRealNodes() error {
	if o.RealNodes == 0 {
		return nil
	}
	return realnode.Check(string(o.Dir))
}

// removeCgroups removes the cgroups that a sandbox's real nodes have left behind.
func removeCgroups(dir Dir) error { return realnode.RemoveCgroup(realnode.CgroupOf(string(dir))) }

// startRealNodes starts the real nodes, and returns once they are ready.
func (c *cluster) startRealNodes(ctx context.Context, client kubernetes.Interface) error {
	if err := removeStrayNodes(ctx, client, c.RealNodes); err != nil || c.RealNodes == 0 {
		return err
	}
	programs, err := realnode.Programs()
	if err != nil {
		return err
	}
	if _, err := realnode.StoreImage(c.Dir.Images(), realnode.PauseImage, filepath.Join(programs, "pause")); err != nil {
		return err
	}
	if err := realnode.DelegateCgroups(); err != nil {
		return err
	}
	started := time.Now()
	for i := range c.RealNodes {
		if err := c.startRealNode(i+1, programs); err != nil {
			return fmt.Errorf("node %s: %w", realnode.Name(i+1), err)
		}
	}
	return waitRealNodes(ctx, client, c.RealNodes, started)
}

// removeStrayNodes removes the Node objects that an earlier run with more real nodes has left
// behind. The parameter "most" is the current number of real nodes.
func removeStrayNodes(ctx context.Context, client kubernetes.Interface, most int) error {
	list, err := client.CoreV1().Nodes().List(ctx, metav1.ListOptions{LabelSelector: node.RealLabel})
	if err != nil {
		return err
	}
	for i := range list.Items {
		if !slices.Contains(realNames(most), list.Items[i].Name) {
			if err := client.CoreV1().Nodes().Delete(ctx, list.Items[i].Name, metav1.DeleteOptions{}); err != nil {
				return err
			}
		}
	}
	return nil
}

func realNames(count int) []string {
	var names []string
	for i := range count {
		names = append(names, realnode.Name(i+1))
	}
	return names
}

func (c *cluster) startRealNode(number int, programs string) error {
	d, name := c.Dir, realnode.Name(number)
	dir, socket := d.path("nodes", name), d.sockets().node(number)
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return err
	}
	if parent := filepath.Dir(socket); parent != dir {
		if err := makePrivate(parent); err != nil {
			return err
		}
	}
	spec := realnode.Spec{
		Name: name, Number: number, Dir: dir, Programs: programs, Images: d.Images(), Logs: d.Logs(),
		Cgroup:      filepath.Join(realnode.CgroupOf(string(d)), name),
		HostNetwork: fmt.Sprintf("/proc/%d/ns/net", os.Getpid()),
		APIServer:   c.settings.hostPort(), Service: serviceIP, DNS: dnsIP, Socket: socket,
	}
	if err := d.credentials().writeNode(spec); err != nil {
		return err
	}
	if err := spec.Write(); err != nil {
		return err
	}
	return c.launch(supervisor.Spec{
		Name: name, Program: component.RealNode, Args: []string{filepath.Join(dir, realnode.SpecFile)}, Namespaces: realnode.Namespaces,
	})
}

// waitRealNodes waits until the given number of real nodes is ready. Only reports by kubelets since
// the given time count, because an earlier run may have left Node objects that are marked as ready.
func waitRealNodes(ctx context.Context, client kubernetes.Interface, count int, since time.Time) error {
	since = since.Truncate(time.Second) // API timestamps have a resolution of one second.
	return wait.PollUntilContextCancel(ctx, 100*time.Millisecond, true, func(ctx context.Context) (bool, error) {
		list, err := client.CoreV1().Nodes().List(ctx, metav1.ListOptions{LabelSelector: node.RealLabel})
		return err == nil && readySince(list.Items, since) >= count, nil
	})
}

// readySince returns the number of nodes on which pods can be scheduled and whose kubelets have
// reported since the given time.
func readySince(nodes []corev1.Node, since time.Time) int {
	ready := 0
	for i := range nodes {
		if n := &nodes[i]; node.Schedulable(n) && !node.Heartbeat(n).Before(since) {
			ready++
		}
	}
	return ready
}

// simulated returns how many of the given nodes are simulated.
func simulated(nodes []corev1.Node) int {
	count := 0
	for i := range nodes {
		if _, marked := nodes[i].Labels[node.RealLabel]; !marked {
			count++
		}
	}
	return count
}
