// Copyright The Tidekeeper Authors.
// SPDX-License-Identifier: Apache-2.0

package scale

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"runtime/debug"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	tidekeeperv1 "tidekeeper.dev/tidekeeper/api/v1"
	"tidekeeper.dev/tidekeeper/test/framework"
	"tidekeeper.dev/tidekeeper/test/seed"
)

// start starts the manager and waits until it is ready.
func (r *run) start(t *testing.T, args ...string) {
	t.Helper()
	r.manager = r.LaunchManager(t, slices.Concat([]string{"--log-level=info"}, oneNamespace, args)...)
	framework.EventuallyWithin(t, r.patience, "the manager is ready", r.manager.Ready)
}

// startUp measures the time from the manager's start until the pool's status is correct, compared
// with a client that only lists the same objects.
func (r *run) startUp(t *testing.T) {
	t.Helper()
	var ours, bare []time.Duration
	for range r.rounds {
		bare = append(bare, r.bareList(t))
		if r.manager != nil && r.manager.Running() {
			r.manager.Stop(t)
		}
		// An additional pod makes the stored status outdated.
		r.addPod(t)
		begin := time.Now()
		r.manager = r.LaunchManager(t, "--log-level=info", "--pprof-bind-address="+r.pprof)
		r.awaitLevel(t)
		ours = append(ours, time.Since(begin))
	}
	r.report.add(figure{
		Key: "startup", What: "start-up, from the start of the process to the first correct status", Value: median(ours), Unit: "s",
		Limit: median(bare), LimitIs: "a bare typed list of the same objects", Within: 1, Pairs: pairsOf(ours, bare),
	})
}

// bareList lists the objects that the manager watches, without pagination, and returns the
// duration.
func (r *run) bareList(t *testing.T) time.Duration {
	t.Helper()
	bare, err := client.New(r.ManagerConfig(t, "bare/1"), client.Options{Scheme: r.Scheme()})
	if err != nil {
		t.Fatal(err)
	}
	begin := time.Now()
	for _, list := range []client.ObjectList{&tidekeeperv1.NodePoolList{}, &corev1.NodeList{}, &corev1.PodList{}} {
		// Resource version 0 reads from the API server's watch cache, like an informer.
		if err := bare.List(t.Context(), list, &client.ListOptions{Raw: &metav1.ListOptions{ResourceVersion: "0"}}); err != nil {
			t.Fatal(err)
		}
	}
	took := time.Since(begin)
	// Return the memory of the lists, which may be several GiB, to the operating system.
	debug.FreeOSMemory()
	return took
}

// awaitLevel waits until the pool's status includes all pods and their requests.
func (r *run) awaitLevel(t *testing.T) {
	t.Helper()
	pool := framework.Pool(poolName)
	framework.EventuallyWithin(t, r.patience, "the pool counts all pods", func() error {
		r.Refresh(t, pool)
		pods, cpu := pool.Status.Requested[corev1.ResourcePods], pool.Status.Requested[corev1.ResourceCPU]
		if pods.Value() != int64(len(r.there)) || cpu.MilliValue() != r.requested {
			return fmt.Errorf("it counts %s pods that request %s, but there are %d that request %dm", &pods, &cpu, len(r.there), r.requested)
		}
		return nil
	})
}

// atRestElected is [run.atRest] with leader election and an installation's retry period.
// Renewing the lease costs one write every 750 ms.
func (r *run) atRestElected(t *testing.T, files map[string][]byte) {
	t.Helper()
	r.manager.Stop(t)
	r.start(t, append([]string{"--pprof-bind-address=" + r.pprof}, elect...)...)
	r.awaitLevel(t)
	leases := r.AuditLeases(t, "tidekeeper/")
	began := time.Now()
	r.atRest(t, "rest-elected", "at rest with leader election", files)
	var writes float64
	for _, request := range leases.Requests(t) {
		if request.Resource == "leases" && request.Writes() {
			writes++
		}
	}
	r.report.add(figure{
		Key: "rest-elected-lease", What: "… writes of the lease a minute", Value: 60 * writes / time.Since(began).Seconds(), Most: new(90.0),
	})
}

// elect lists the flags for leader election. The retry period, which sets the rate of the lease's
// writes and the duration of a failover after a clean stop, is the default, as in an installation. The
// lease is longer, so that a leader does not lose it because the machine is busy.
var elect = []string{
	"--leader-elect", "--leader-elect-resource-namespace=tidekeeper-system",
	"--leader-elect-lease-duration=1h", "--leader-elect-renew-deadline=50m",
}

// atRest counts the idle manager's requests and CPU time.
func (r *run) atRest(t *testing.T, key, what string, files map[string][]byte) {
	t.Helper()
	r.awaitSilent(t)
	r.awaitIdle(t)
	ctx, cancel := context.WithCancel(t.Context())
	// Kubelets report their nodes' status at this rate when nothing has changed; the sandbox renews
	// their leases. With few nodes the reports are more frequent, so that some occur while the
	// manager is observed.
	go r.reports(ctx, t, 1, min(5*time.Minute/time.Duration(r.nodes), r.rest/10))
	defer cancel()
	profile := r.profileCPU(r.rest)
	audit := r.Audit(t, "tidekeeper/")
	start, before := time.Now(), framework.CPUTime(t, r.manager.Pid())
	time.Sleep(r.rest) // sleep: the idle manager is observed during this time
	used := (framework.CPUTime(t, r.manager.Pid()) - before).Seconds() / time.Since(start).Seconds()
	files[r.report.Scale+"-"+key+"-cpu.pprof"] = <-profile
	var reads, writes float64
	for _, request := range audit.Requests(t) {
		switch {
		case request.Verb == "watch":
			// The API server ends watches from time to time, and the manager reopens them.
			continue
		case request.Writes():
			writes++
		default:
			reads++
		}
		t.Errorf("%s: request of the idle manager: %s", what, request)
	}
	r.report.add(figure{Key: key + "-writes", What: what + ": writes", Value: writes, Most: new(0.0)})
	r.report.add(figure{Key: key + "-reads", What: "… reads", Value: reads, Most: new(0.0)})
	r.report.add(figure{Key: key + "-cpu", What: "… CPU", Value: 100 * used, Unit: "% of a core", Most: new(0.5)})
}

// awaitSilent waits until the manager has sent no request for a while. It sends requests in the
// first seconds after its start.
func (r *run) awaitSilent(t *testing.T) {
	t.Helper()
	audit, since := r.Audit(t, "tidekeeper/"), time.Now()
	framework.EventuallyWithin(t, r.patience, fmt.Sprintf("the manager has sent nothing for %s", r.silence), func() error {
		for _, request := range audit.Requests(t) {
			if request.Verb != "watch" {
				since = request.Answered
			}
		}
		if silent := time.Since(since); silent < r.silence {
			return fmt.Errorf("for %s", silent)
		}
		return nil
	})
}

// reports writes the status of one node after the other, like kubelets, until the context ends. It
// begins with the node numbered `first` and pauses for `every` between writes.
func (r *run) reports(ctx context.Context, t *testing.T, first int, every time.Duration) {
	tick := time.NewTicker(every)
	defer tick.Stop()
	for i := first % r.nodes; ; i = (i + 1) % r.nodes {
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
		}
		node := framework.Node(seed.NodeName(i))
		body := map[string]any{"status": map[string]any{"conditions": []any{map[string]any{
			"type": corev1.NodeReady, "status": corev1.ConditionTrue, "lastHeartbeatTime": metav1.Now(),
		}}}}
		if err := r.Status().Patch(ctx, node, strategicPatch(t, body)); err != nil && ctx.Err() == nil {
			t.Errorf("report the status of node %s: %v", node.Name, err)
			return
		}
	}
}

// furnish adds image lists to the nodes' status, as kubelets report them. They are most of a node's
// size.
func (r *run) furnish(t *testing.T) {
	t.Helper()
	forEach(t, 16, r.nodes, func(i int) error {
		var images []any
		for image := range 50 {
			name := fmt.Sprintf("registry.example.com/shop/image-%03d", (i+image*7)%400)
			images = append(images, map[string]any{
				"names":     []string{fmt.Sprintf("%s@sha256:%064x", name, i*1000+image), name + ":v1.27.3"},
				"sizeBytes": 50_000_000 + 1_000*image,
			})
		}
		return r.Status().Patch(t.Context(), framework.Node(seed.NodeName(i)), strategicPatch(t, map[string]any{"status": map[string]any{"images": images}}))
	})
}

// awaitIdle waits until the manager and the control plane use almost no CPU time, or on a slow
// machine until the CPU time that they use no longer falls.
func (r *run) awaitIdle(t *testing.T) {
	t.Helper()
	const window = 2 * time.Second
	pids := r.processes(t)
	if r.manager != nil && r.manager.Running() {
		pids = append(pids, r.manager.Pid())
	}
	used := func() []time.Duration {
		all := make([]time.Duration, len(pids))
		for i, pid := range pids {
			all[i] = framework.CPUTime(t, pid)
		}
		return all
	}
	// The nodes' lease renewals always cost some CPU time, on a slow machine several times as much.
	// Work uses all processors.
	most, steady := 0.3+float64(r.nodes)/5_000, 0.75*float64(runtime.NumCPU())
	var windows []float64
	framework.EventuallyWithin(t, r.patience, "the control plane is idle", func() error {
		before := used()
		time.Sleep(window) // sleep: the CPU time is measured during this time
		sum, parts := 0.0, []string{}
		for i, now := range used() {
			cores := (now - before[i]).Seconds() / window.Seconds()
			sum += cores
			if cores >= 0.01 {
				parts = append(parts, fmt.Sprintf("%s %.2f", command(pids[i]), cores))
			}
		}
		if windows = append(windows, sum); sum > most && !isSteady(windows, steady) {
			return fmt.Errorf("it uses %.2f cores, more than %.2f: %s", sum, most, strings.Join(parts, ", "))
		}
		return nil
	})
}

// isSteady reports whether the last ten of the measured values are at most the given limit, and do
// not fall.
func isSteady(values []float64, limit float64) bool {
	const count = 10
	if len(values) < count {
		return false
	}
	values = values[len(values)-count:]
	mean := func(values []float64) (sum float64) {
		for _, v := range values {
			sum += v / float64(len(values))
		}
		return sum
	}
	return slices.Max(values) <= limit && mean(values[count/2:]) >= 0.8*mean(values[:count/2])
}

func TestIsSteady(t *testing.T) {
	for _, c := range []struct {
		name   string
		values []float64
		want   bool
	}{
		{"too few values", []float64{1, 1, 1}, false},
		{"a constant", []float64{9, 9, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1}, true},
		{"it falls", []float64{2, 1.9, 1.8, 1.7, 1.6, 1.5, 1.4, 1.3, 1.2, 1.1}, false},
		{"once above the limit", []float64{1, 1, 1, 1, 1, 1, 1, 3, 1, 1}, false},
		{"it varies", []float64{1, 1.5, 1, 1.4, 1, 1.2, 1.1, 1.5, 1, 1.3}, true},
	} {
		if got := isSteady(c.values, 2); got != c.want {
			t.Errorf("%s: got %t", c.name, got)
		}
	}
}

// command returns the name of a process's program, or its ID if the process has ended.
func command(pid int) string {
	name, err := os.ReadFile(fmt.Sprintf("/proc/%d/comm", pid))
	if err != nil {
		return strconv.Itoa(pid)
	}
	return strings.TrimSpace(string(name))
}

// processes returns the process IDs of the control plane's components, which are child processes of
// the sandbox.
func (r *run) processes(t *testing.T) []int {
	t.Helper()
	lock, err := os.ReadFile(filepath.Join(r.Dir, "lock"))
	if err != nil {
		t.Fatal(err)
	}
	parent := strings.TrimSpace(string(lock))
	entries, err := os.ReadDir("/proc")
	if err != nil {
		t.Fatal(err)
	}
	var pids []int
	for _, entry := range entries {
		pid, err := strconv.Atoi(entry.Name())
		if err != nil {
			continue
		}
		// Skip processes that exit meanwhile.
		if stat, err := os.ReadFile(filepath.Join("/proc", entry.Name(), "stat")); err == nil {
			_, rest, _ := strings.Cut(string(stat), ") ")
			if strings.Fields(rest)[1] == parent {
				pids = append(pids, pid)
			}
		}
	}
	return pids
}
