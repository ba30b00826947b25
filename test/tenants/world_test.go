// Copyright The Tidekeeper Authors.
// SPDX-License-Identifier: Apache-2.0

package tenants

import (
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	tidekeeperv1 "tidekeeper.dev/tidekeeper/api/v1"
	"tidekeeper.dev/tidekeeper/test/framework"
	"tidekeeper.dev/tidekeeper/test/seed"
)

// world is the number of objects in the cluster that do not belong to tenants: a pool's nodes,
// their pods, and schedules that tick once a day.
type world struct{ nodes, pods, schedules int }

// worlds maps the values of SIZE to cluster sizes; "full" is the largest size that Kubernetes
// supports.
var worlds = map[string]world{
	"small":  {nodes: 100, pods: 3_000, schedules: 200},
	"medium": {nodes: 1_000, pods: 30_000, schedules: 2_000},
	"full":   {nodes: 5_000, pods: 150_000, schedules: 10_000},
}

// worldPool is the name of the pool that contains the nodes of a [world].
const worldPool = "worker"

// build creates the cluster's nodes, pods and schedules before the manager starts.
func (w world) build(t *testing.T) {
	t.Helper()
	const atOnce = 500
	for have := 0; have < w.nodes; have += atOnce {
		cluster.Sandbox(t, "nodes", "add", "--name-prefix=node", "--pool="+worldPool, fmt.Sprint("--count=", min(atOnce, w.nodes-have)))
	}
	for _, component := range seed.Onlookers {
		cluster.Component(t, "kill", component)
	}
	etcd := seed.Open(t, &cluster)
	etcd.WritePods(t, w.pods, w.nodes, time.Now(), thin)
	var deployments []*appsv1.Deployment
	for i := range w.schedules {
		namespace := w.scheduleNamespace(i)
		if i%schedulesOfNamespace == 0 {
			cluster.Apply(t, &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: namespace}})
		}
		deployments = append(deployments, workload(namespace, w.scheduleName(i), 0, nil).(*appsv1.Deployment))
	}
	etcd.WriteDeployments(t, deployments, time.Now())
	for _, component := range seed.Onlookers {
		cluster.Component(t, "start", component)
	}
	w.schedule(t)
	pool := framework.Pool(worldPool)
	pool.Spec.Labels = map[string]tidekeeperv1.LabelValue{"example.com/world": "true"}
	cluster.Apply(t, pool)
	t.Logf("there are %d nodes, %d pods and %d schedules", w.nodes, w.pods, w.schedules)
}

func (w world) scheduleName(i int) string { return fmt.Sprintf("daily-%05d", i) }

// schedulesOfNamespace is the number of schedules per namespace. It is low because each sync of the
// Deployment controller reads all pods and ReplicaSets in the Deployment's namespace.
const schedulesOfNamespace = 200

func (w world) scheduleNamespace(i int) string {
	return fmt.Sprintf("world-%02d", i/schedulesOfNamespace)
}

// schedule creates ScheduledRestarts that tick once a day.
func (w world) schedule(t *testing.T) {
	t.Helper()
	tick := time.Now().Add(12 * time.Hour).UTC()
	indexes := make(chan int)
	var workers sync.WaitGroup
	for range 16 {
		workers.Go(func() {
			for i := range indexes {
				r := restart(w.scheduleNamespace(i), w.scheduleName(i), func(r *tidekeeperv1.ScheduledRestart) {
					r.Spec.Schedule = tidekeeperv1.CronExpression(fmt.Sprintf("%d %d * * *", tick.Minute(), tick.Hour()))
				})
				if err := cluster.Create(t.Context(), r); err != nil {
					t.Error(err)
				}
			}
		})
	}
	for i := range w.schedules {
		indexes <- i
	}
	close(indexes)
	workers.Wait()
}

// settle waits until the manager has seen all objects of the cluster.
func (w world) settle(t *testing.T) {
	t.Helper()
	framework.EventuallyWithin(t, 4*patience, "the nodes of the world have their label", func() error {
		pool := framework.Pool(worldPool)
		cluster.Refresh(t, pool)
		return framework.ReadyIs(pool.Status.Conditions, pool.Generation, "Healthy")
	})
	framework.EventuallyWithin(t, 4*patience, "the schedules of the world are known", func() error {
		last := restart(w.scheduleNamespace(w.schedules-1), w.scheduleName(w.schedules-1), nil)
		cluster.Refresh(t, last)
		if meta.FindStatusCondition(last.Status.Conditions, tidekeeperv1.ConditionReady) == nil {
			return errNotYet
		}
		return nil
	})
}

// awaitPods waits until a restart's pods are older than a second, because a request in the second
// of their creation does not apply to them.
func awaitPods(t *testing.T, r *tidekeeperv1.ScheduledRestart) {
	t.Helper()
	framework.EventuallyWithin(t, patience, "there are pods of "+r.Name, func() error {
		pods := &corev1.PodList{}
		if err := cluster.List(t.Context(), pods, client.InNamespace(r.Namespace)); err != nil {
			return err
		}
		if len(pods.Items) == 0 || time.Since(pods.Items[0].CreationTimestamp.Time) < 2*time.Second {
			return errNotYet
		}
		return nil
	})
}

// thin removes fields from a pod that the manager does not keep, so that the control plane fits
// into the machine's memory next to the manager.
func thin(pod *corev1.Pod) {
	pod.ManagedFields, pod.Spec.Volumes = nil, nil
	for i := range pod.Spec.Containers {
		c := &pod.Spec.Containers[i]
		c.Env, c.VolumeMounts, c.ReadinessProbe = nil, nil, nil
	}
	for i := range pod.Status.ContainerStatuses {
		s := &pod.Status.ContainerStatuses[i]
		s.AllocatedResources, s.Resources = nil, nil
	}
}

// memoryControl is the mount point of the cgroup v1 memory controller, which limits the memory of
// groups of processes.
const memoryControl = "/sys/fs/cgroup/memory"

// limit is the memory limit of a manager.
type limit struct {
	mib int
	// group is the path of the manager's cgroup; command is the path of a script that starts the
	// manager in this cgroup.
	group, command string
}

// limitMemory returns a script that starts a manager whose memory is limited to LIMIT MiB, like a
// container's. The limit includes the page cache of the manager's files, and the kernel kills the
// manager if it exceeds the limit.
func limitMemory(t *testing.T) limit {
	t.Helper()
	l := limit{mib: 512, group: filepath.Join(memoryControl, fmt.Sprint("tidekeeper-bench-", os.Getpid())), command: filepath.Join(t.TempDir(), "manager")}
	if text := os.Getenv("LIMIT"); text != "" {
		var err error
		if l.mib, err = strconv.Atoi(text); err != nil || l.mib <= 0 {
			t.Fatalf("LIMIT=%s: must be a number of MiB", text)
		}
	}
	if err := os.Mkdir(l.group, 0o755); err != nil {
		t.Fatalf("a manager whose memory is limited needs root, and the first version of cgroups: %v", err)
	}
	t.Cleanup(func() {
		// The kernel needs a short time to release the cgroup after its last process has exited.
		framework.Eventually(t, "the control group is gone", func() error { return os.Remove(l.group) })
	})
	if err := os.WriteFile(filepath.Join(l.group, "memory.limit_in_bytes"), []byte(strconv.Itoa(l.mib<<20)), 0o600); err != nil {
		t.Fatal(err)
	}
	binary, err := framework.Binary("TIDEKEEPER_BIN", "tidekeeper")
	if err != nil {
		t.Fatal(err)
	}
	// This process's GOGC makes the other processes collect garbage more often; the manager must
	// run without it.
	script := fmt.Sprintf("#!/bin/sh\necho $$ > %s/cgroup.procs || exit 1\nunset GOGC\nexec %s \"$@\"\n", l.group, binary)
	if err := os.WriteFile(l.command, []byte(script), 0o700); err != nil {
		t.Fatal(err)
	}
	return l
}

// charged returns the peak memory charged to the cgroup, in MiB.
func (l limit) charged(t *testing.T) int {
	t.Helper()
	bytes, err := strconv.Atoi(strings.TrimSpace(l.read(t, "memory.max_usage_in_bytes")))
	if err != nil {
		t.Fatal(err)
	}
	return bytes >> 20
}

// kills returns the number of processes that the kernel has killed because of the memory limit.
func (l limit) kills(t *testing.T) int {
	t.Helper()
	for line := range strings.Lines(l.read(t, "memory.oom_control")) {
		if n, ok := strings.CutPrefix(strings.TrimSpace(line), "oom_kill "); ok {
			kills, err := strconv.Atoi(n)
			if err != nil {
				t.Fatal(err)
			}
			return kills
		}
	}
	t.Fatal("the kernel does not count the processes that it kills")
	return 0
}

func (l limit) read(t *testing.T, file string) string {
	t.Helper()
	text, err := os.ReadFile(filepath.Join(l.group, file))
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}
