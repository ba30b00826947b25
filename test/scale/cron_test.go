// Copyright The Tidekeeper Authors.
// SPDX-License-Identifier: Apache-2.0

package scale

import (
	"bufio"
	"fmt"
	"io"
	"os/exec"
	"strings"
	"testing"
	"time"

	"sigs.k8s.io/controller-runtime/pkg/client"

	"tidekeeper.dev/tidekeeper/test/framework"
)

// baseline is a running program for comparison with Tidekeeper. Its source code is in
// test/scale/baseline.
type baseline struct {
	*exec.Cmd
	stdin  io.Writer
	stdout *bufio.Reader
	stderr *strings.Builder
}

// kill kills the baseline program. It ignores the error of Wait, which reports the kill.
func (b baseline) kill() { _ = b.Process.Kill(); _ = b.Wait() }

// startBaseline starts a baseline program with an administrator's rights, exempt from API priority
// and fairness, and waits until its first line of output begins with `says`.
func startBaseline(t *testing.T, c *framework.Cluster, path, says string, args ...string) baseline {
	t.Helper()
	command := exec.CommandContext(t.Context(), path, append([]string{"--kubeconfig", c.Kubeconfig}, args...)...)
	stdin, err := command.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	stdout, err := command.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	stderr := &strings.Builder{}
	command.Stderr = stderr
	if err := command.Start(); err != nil {
		t.Fatal(err)
	}
	b := baseline{command, stdin, bufio.NewReader(stdout), stderr}
	line, err := b.stdout.ReadString('\n')
	if err != nil || !strings.HasPrefix(line, says) {
		b.kill()
		t.Fatalf("the baseline does not start: %q, %v", line, err)
	}
	return b
}

// seen returns the number of events that a baseline program has seen. It fails the test if the
// program has exited, because a program that no longer watches needs little CPU.
func (b baseline) seen(t *testing.T) (events int) {
	t.Helper()
	// If this write fails, the read below fails too.
	_, _ = io.WriteString(b.stdin, "\n")
	line, err := b.stdout.ReadString('\n')
	if err != nil {
		_ = b.Wait()
		t.Fatalf("the baseline has ended: %s", b.stderr)
	}
	if _, err := fmt.Sscanf(line, "seen: %d", &events); err != nil {
		t.Fatalf("the baseline printed %q: %v", line, err)
	}
	return events
}

// annotate sets the baseline's annotation on each Deployment that is due for a restart, and returns
// the common due time.
func (b *bench) annotate(t *testing.T) time.Time {
	t.Helper()
	return b.arm(t, time.Second, func(at time.Time) string {
		return fmt.Sprintf(`{"metadata":{"annotations":{"baseline.example.com/due-at":%q}}}`, at.Format(time.RFC3339))
	}, func(name string) client.Object { return deploymentOf(name) })
}

// measureBaseline is [bench.measure] for the baseline program.
func (b *bench) measureBaseline(t *testing.T, path string, rounds int, args ...string) outcome {
	t.Helper()
	all := outcome{writes: map[string]int{}}
	for range rounds {
		b.awaitQuiet(t)
		at := b.annotate(t)
		cron := startBaseline(t, b.Cluster, path, "timers:", args...)
		// The audit begins after the baseline's initial list, which is not part of the restarts.
		all.add(t, at, b.followBaseline(t, at, b.Audit(t, "baseline/")))
		cron.kill()
	}
	return all
}

// followBaseline is [bench.follow] for the baseline program, without assertions. It returns when
// all Deployments are patched, or when none has been patched for some seconds.
func (b *bench) followBaseline(t *testing.T, at time.Time, audit *framework.Audit) []framework.Request {
	t.Helper()
	time.Sleep(time.Until(at.Add(2 * time.Second))) // sleep: until the patches should have been sent, because reading the log takes CPU time
	var requests []framework.Request
	for last := time.Now(); len(requests) < b.due && time.Since(last) < 3*time.Second; {
		time.Sleep(50 * time.Millisecond) // sleep: the baseline may patch no Deployment, so there is no condition to wait for
		if more := audit.Requests(t); len(more) > 0 {
			requests, last = append(requests, more...), time.Now()
		}
	}
	return requests
}

// crashBaseline is [bench.crash] for the baseline program.
func (b *bench) crashBaseline(t *testing.T, path string) outcome {
	t.Helper()
	b.awaitQuiet(t)
	at := b.annotate(t)
	cron := startBaseline(t, b.Cluster, path, "timers:")
	time.Sleep(time.Until(at.Add(-time.Second))) // sleep: until just before the tick
	cron.kill()
	time.Sleep(time.Until(at.Add(time.Second))) // sleep: until the tick has passed
	cron = startBaseline(t, b.Cluster, path, "timers:")
	defer cron.kill()
	o := outcome{writes: map[string]int{}}
	o.add(t, at, b.followBaseline(t, at, b.Audit(t, "baseline/")))
	return o
}
