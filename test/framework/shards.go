// Copyright The Tidekeeper Authors.
// SPDX-License-Identifier: Apache-2.0

package framework

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"io"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"tidekeeper.dev/tidekeeper/sandbox/client/child"
)

// Suite runs a package's tests in several parallel processes (shards), each with its own sandbox.
// This saves time because the tests mostly wait.
type Suite struct {
	// Shards is the number of parallel processes.
	Shards int
	// Seconds maps the names of slow tests to their durations. All other tests count as
	// usualSeconds.
	Seconds map[string]int
	// Inside lists the manager's rights that do not appear as requests in the audit log; see
	// [CompareRights].
	Inside []Right
}

// usualSeconds is the assumed duration of tests that are not in [Suite.Seconds].
const usualSeconds = 5

// rightsFile is the environment variable that names the file to which a shard writes the rights
// that its managers used.
const rightsFile = "TIDEKEEPER_SHARD_RIGHTS"

// Main is [Main] for a suite. If all tests of the package run on new sandboxes, it splits the tests
// into shards, and afterwards compares the managers' requests in all sandboxes with their rights. A
// subset of the tests does not use every right, so the comparison is skipped, also if it is [late].
func (s Suite) Main(m interface{ Run() int }, cluster *Cluster, args ...string) int {
	flag.Parse()
	switch {
	case flag.Lookup("test.list").Value.String() != "":
		return m.Run()
	case os.Getenv(rightsFile) != "":
		return Main(shard{m, cluster}, cluster, args...)
	case os.Getenv("TIDEKEEPER_SANDBOX") != "" || !everything():
		return Main(m, cluster, args...)
	}
	if err := s.run(); err != nil {
		fmt.Fprintf(os.Stderr, "--- FAIL: %v\n", err)
		return 1
	}
	return 0
}

// everything reports whether all tests of the package run, because no flag of go test selects a
// subset.
func everything() bool {
	for _, name := range []string{"test.run", "test.skip", "test.short"} {
		if f := flag.Lookup(name); f.Value.String() != f.DefValue {
			return false
		}
	}
	return true
}

// shard is the test run in one process of a suite.
type shard struct {
	tests   interface{ Run() int }
	cluster *Cluster
}

// Run runs the tests, and writes the rights that their managers used to the file that rightsFile
// names.
func (s shard) Run() int {
	if code := s.tests.Run(); code != 0 {
		return code
	}
	used, err := s.cluster.usedRights(context.Background())
	if err == nil {
		var text []byte
		if text, err = json.Marshal(used); err == nil {
			err = os.WriteFile(os.Getenv(rightsFile), text, 0o600)
		}
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	return 0
}

// run runs the shards in parallel, each when it has its turn. The first shard prints its output
// directly. The output of each other shard is printed once all earlier shards have finished, so that
// the outputs do not mix.
func (s Suite) run() error {
	names, err := testNames()
	if err != nil {
		return err
	}
	dir, err := os.MkdirTemp("", "shards-")
	if err != nil {
		return err
	}
	defer os.RemoveAll(dir)
	ended := make([]chan error, s.Shards)
	outputs := make([]bytes.Buffer, s.Shards)
	for i, tests := range split(names, s.Shards, s.Seconds) {
		command := exec.Command(os.Args[0], append(slices.Clone(os.Args[1:]), "-test.run=^("+strings.Join(tests, "|")+")$")...)
		command.Env = append(os.Environ(), rightsFile+"="+filepath.Join(dir, fmt.Sprint(i)))
		var out io.Writer = os.Stdout
		done := func() {}
		if i > 0 {
			out = &outputs[i]
			done = turn()
		}
		command.Stdout, command.Stderr = out, out
		if err := child.Start(command); err != nil {
			return err
		}
		ended[i] = make(chan error, 1)
		go func() {
			ended[i] <- command.Wait()
			done()
		}()
	}
	var all usedRights
	var failed error
	for i := range ended {
		err := <-ended[i]
		_, _ = os.Stdout.Write(outputs[i].Bytes())
		if err != nil {
			failed = errors.Join(failed, fmt.Errorf("shard %d of %d: %w", i+1, s.Shards, err))
			continue
		}
		text, err := os.ReadFile(filepath.Join(dir, fmt.Sprint(i)))
		if err != nil {
			return err
		}
		used := usedRights{}
		if err := json.Unmarshal(text, &used); err != nil {
			return err
		}
		all = usedRights{used.Granted, append(all.Asked, used.Asked...)}
	}
	if failed != nil {
		return failed
	}
	if late(time.Now()) {
		return nil // Some tests may have been skipped, too.
	}
	return all.check(s.Inside)
}

// turn waits until another shard may begin, which make test decides by how busy the processors are: see
// turns.go in hack/suites. It returns a function to call when the shard has ended. Without make test it
// returns at once.
func turn() func() {
	conn, err := net.Dial("unix", os.Getenv("TIDEKEEPER_TURNS"))
	if err != nil {
		return func() {}
	}
	if _, err := fmt.Fprintln(conn, "15s"); err == nil {
		_, _ = conn.Read(make([]byte, 1)) // It ends with the turn, or with make test.
	}
	return func() { _ = conn.Close() }
}

// testNames returns the names of the package's tests in execution order.
func testNames() ([]string, error) {
	out, err := exec.Command(os.Args[0], "-test.list=^Test").Output()
	if err != nil {
		return nil, fmt.Errorf("list the tests: %w", err)
	}
	return strings.Fields(string(out)), nil
}

// split assigns the tests to shards. It starts with the longest test, and assigns each test to the
// shard with the smallest total duration so far.
func split(names []string, shards int, seconds map[string]int) [][]string {
	length := func(name string) int { return cmp.Or(seconds[name], usualSeconds) }
	sorted := slices.Clone(names)
	slices.SortStableFunc(sorted, func(a, b string) int { return length(b) - length(a) })
	parts, load := make([][]string, shards), make([]int, shards)
	for _, name := range sorted {
		least := slices.Index(load, slices.Min(load))
		parts[least] = append(parts[least], name)
		load[least] += length(name)
	}
	return parts
}
