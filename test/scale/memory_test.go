// Copyright The Tidekeeper Authors.
// SPDX-License-Identifier: Apache-2.0

package scale

import (
	"fmt"
	"io"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strconv"
	"testing"
	"time"

	"tidekeeper.dev/tidekeeper/test/framework"
)

// Stack frames in pprof profiles that identify the purpose of an allocation.
const (
	sumsFrames  = `internal/nodepool|internal/pods/podtimeline`
	cacheFrames = `client-go/tools/cache|controller-runtime/pkg/cache|internal/cache/podcache|apimachinery/pkg/runtime/serializer|manager\.transform`
)

// memory measures the memory of a manager that has been idle for a while, in total and by purpose.
func (r *run) memory(t *testing.T, stored int, files map[string][]byte) {
	t.Helper()
	resident, most := framework.ResidentMiB(t, r.manager.Pid())
	heap, err := r.fetch("/debug/pprof/heap?gc=1")
	if err != nil {
		t.Fatal(err)
	}
	files[r.report.Scale+"-heap.pprof"] = heap
	path := filepath.Join(t.TempDir(), "heap.pprof")
	if err := os.WriteFile(path, heap, 0o600); err != nil {
		t.Fatal(err)
	}
	sums, all := heapMiB(t, path, "-focus="+sumsFrames), heapMiB(t, path)
	cache := heapMiB(t, path, "-focus="+cacheFrames, "-ignore="+sumsFrames)

	r.report.add(figure{
		Key: "memory", What: fmt.Sprintf("memory, %d nodes and %d pods, resident", r.nodes, r.pods), Value: resident, Unit: "MiB",
		Limit: float64(stored) / (1 << 20), LimitIs: "the pods as they are stored", Most: new(180.0),
	})
	r.report.add(figure{Key: "memory-cache", What: "… of it the cache", Value: cache, Unit: "MiB"})
	r.report.add(figure{Key: "memory-sums", What: "… of it the sums", Value: sums, Unit: "MiB"})
	r.report.add(figure{Key: "memory-rest", What: "… of it the rest: program, garbage, free pages", Value: resident - cache - sums, Unit: "MiB"})
	r.report.add(figure{Key: "memory-live", What: "… live heap, all", Value: all, Unit: "MiB"})
	r.report.add(figure{Key: "memory-most", What: "… resident at most, since the start", Value: most, Unit: "MiB", Most: new(240.0)})
}

// heapMiB returns the size of the part of a heap profile that the given pprof options select.
func heapMiB(t *testing.T, profile string, options ...string) float64 {
	t.Helper()
	args := append([]string{"tool", "pprof", "-sample_index=inuse_space", "-unit=kb", "-nodecount=1000000", "-nodefraction=0", "-top"}, options...)
	command := exec.CommandContext(t.Context(), "go", append(args, profile)...)
	command.Dir = framework.Root()
	out, err := command.CombinedOutput()
	found := regexp.MustCompile(`accounting for ([0-9.]+)(?:kB)?,`).FindSubmatch(out)
	if err != nil || found == nil {
		t.Fatalf("go %v: %v\n%s", args, err, out)
	}
	kib, err := strconv.ParseFloat(string(found[1]), 64)
	if err != nil {
		t.Fatal(err)
	}
	return kib / 1024
}

// profileCPU starts a CPU profile of the manager, and returns a channel that delivers it.
func (r *run) profileCPU(length time.Duration) <-chan []byte {
	profile := make(chan []byte, 1)
	go func() {
		// The error is ignored because the figures are valid without a profile.
		got, _ := r.fetch(fmt.Sprintf("/debug/pprof/profile?seconds=%d", int(length.Seconds())))
		profile <- got
	}()
	return profile
}

func (r *run) fetch(path string) ([]byte, error) {
	response, err := http.Get("http://" + r.pprof + path)
	if err != nil {
		return nil, err
	}
	defer response.Body.Close()
	return io.ReadAll(response.Body)
}
