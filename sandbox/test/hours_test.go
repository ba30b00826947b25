// Copyright The Tidekeeper Authors.
// SPDX-License-Identifier: Apache-2.0

package test

import (
	"bufio"
	"cmp"
	"fmt"
	"io"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"testing"
	"time"
)

// usage is the machine usage of explore: the resident memory in MiB of its own process and of its
// descendants, the number of descendants, the number of its open files, and the size of its
// directories in MiB.
type usage struct {
	own, below, processes, files, disk int
}

func (u usage) String() string {
	return fmt.Sprintf("%d MiB of memory and %d open files in explore, %d MiB in %d processes below it, %d MiB on disk", u.own, u.files, u.below, u.processes, u.disk)
}

// most returns the maximum of u and v in each field.
func (u usage) most(v usage) usage {
	return usage{max(u.own, v.own), max(u.below, v.below), max(u.processes, v.processes), max(u.files, v.files), max(u.disk, v.disk)}
}

// TestExploreForHours checks that explore's resource usage does not grow: it must be no higher
// after FAULTS faults than after a fifth of them. The duration of a fault may vary with its kind,
// but not grow without bound. The operator has no mistakes. 500 faults take about twenty minutes.
func TestExploreForHours(t *testing.T) {
	faults, err := strconv.Atoi(cmp.Or(os.Getenv("FAULTS"), "0"))
	if err != nil || faults < 0 {
		t.Fatalf("FAULTS=%s is not a number of faults", os.Getenv("FAULTS"))
	}
	if faults == 0 {
		t.Skip("a benchmark: make bench-hours")
	}
	dir, temporary := t.TempDir(), t.TempDir()
	cmd := exec.CommandContext(t.Context(), binary, "explore", "--workload", workloadFile(t, manyOrders), "--quiet", "1500ms", "--dir", dir, "--for", "3h", "--", shop(t), "--elect")
	cmd.Env = append(os.Environ(), "TMPDIR="+temporary)
	cmd.Cancel = func() error { return cmd.Process.Signal(os.Interrupt) }
	cmd.WaitDelay = time.Minute
	out, err := cmd.StderrPipe()
	if err != nil {
		t.Fatal(err)
	}
	var report strings.Builder
	cmd.Stdout = &report
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	began := time.Now()
	// Each window covers a fifth of the faults. The first window is not compared, because caches
	// are still filling up.
	var windows [5]usage
	var seconds [5]float64
	played := 0
	for lines := bufio.NewScanner(out); lines.Scan() && played < faults; {
		line := playedLine.FindStringSubmatch(lines.Text())
		if line == nil {
			t.Log(lines.Text())
			continue
		}
		took, err := strconv.ParseFloat(line[1], 64)
		if err != nil {
			t.Fatalf("%s: %v", lines.Text(), err)
		}
		played++
		window := min(5*(played-1)/faults, 4)
		windows[window] = windows[window].most(usageOf(t, cmd.Process.Pid, dir, temporary))
		seconds[window] += took
		if 5*played%faults < 5 {
			t.Logf("after %d faults and %s: at most %s, %.1f s for a fault", played, time.Since(began).Round(time.Second), windows[window], 5*seconds[window]/float64(faults))
		}
	}
	if played < faults {
		err := cmd.Wait()
		t.Fatalf("explore ended after %d of %d faults: %v\n%s", played, faults, err, report.String())
	}
	_ = cmd.Process.Signal(os.Interrupt)
	_, _ = io.Copy(io.Discard, out)
	_ = cmd.Wait() // The error is the exit code of an interrupted explore.
	if seconds[4] > 4*seconds[1] {
		t.Errorf("the second fifth of %d faults took %.0f s, the last %.0f s", faults, seconds[1], seconds[4])
	}
	first, end := windows[1], windows[4]
	for _, c := range []struct {
		name               string
		first, end, margin int
	}{
		{"MiB of memory in explore", first.own, end.own, 32},
		{"MiB of memory below it", first.below, end.below, 128},
		{"processes", first.processes, end.processes, 2},
		{"open files", first.files, end.files, 16},
		{"MiB on disk", first.disk, end.disk, 64},
	} {
		if c.end > c.first+c.first/4+c.margin {
			t.Errorf("%s: %d in the second fifth of %d faults, %d in the last", c.name, c.first, faults, c.end)
		}
	}
}

// manyOrders is a workload with more than 500 faults.
var manyOrders = func() string {
	workload := "nodes: 0\nsteps:\n"
	for step := range 2 {
		workload += fmt.Sprintf("- name: orders of round %d are made\n  apply: |\n", step)
		for i := range 8 {
			workload += fmt.Sprintf(`    ---
    apiVersion: v1
    kind: ConfigMap
    metadata: {name: bread-%d-%d, namespace: default, labels: {shop: order}}
    data: {item: bread, state: new}
`, step, i)
		}
	}
	return workload
}()

// playedLine matches the line that explore prints after each fault, with the duration of the run in
// seconds.
var playedLine = regexp.MustCompile(`^\[\d+ of \d+, .* \((\d+\.\d) s\): `)

// usageOf measures explore, its descendant processes, and its directories.
func usageOf(t *testing.T, pid int, dirs ...string) usage {
	t.Helper()
	var u usage
	entries, err := os.ReadDir("/proc")
	if err != nil {
		t.Fatal(err)
	}
	below := map[int][]int{}
	for _, e := range entries {
		child, err := strconv.Atoi(e.Name())
		if err != nil {
			continue
		}
		parent, _ := strconv.Atoi(fieldOf(child, "PPid"))
		below[parent] = append(below[parent], child)
	}
	u.own = memoryOf(pid)
	for queue := below[pid]; len(queue) > 0; queue = queue[1:] {
		u.below += memoryOf(queue[0])
		u.processes++
		queue = append(queue, below[queue[0]]...)
	}
	if files, err := os.ReadDir(fmt.Sprintf("/proc/%d/fd", pid)); err == nil {
		u.files = len(files)
	}
	bytes := int64(0)
	for _, dir := range dirs {
		// Ignore errors, because files come and go while explore runs.
		_ = filepath.WalkDir(dir, func(_ string, e fs.DirEntry, err error) error {
			if err == nil && !e.IsDir() {
				if info, err := e.Info(); err == nil {
					bytes += info.Size()
				}
			}
			return nil
		})
	}
	u.disk = int(bytes >> 20)
	return u
}

// memoryOf returns the resident memory of a process in MiB, or 0 if the process has terminated.
func memoryOf(pid int) int {
	kib, _ := strconv.Atoi(strings.TrimSuffix(fieldOf(pid, "VmRSS"), " kB"))
	return kib >> 10
}

// fieldOf returns a field of /proc/PID/status, or "" if the process has terminated.
func fieldOf(pid int, name string) string {
	status, _ := os.ReadFile(fmt.Sprintf("/proc/%d/status", pid))
	for line := range strings.Lines(string(status)) {
		if value, ok := strings.CutPrefix(line, name+":"); ok {
			return strings.TrimSpace(value)
		}
	}
	return ""
}
