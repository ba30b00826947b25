// Copyright The Tidekeeper Authors.
// SPDX-License-Identifier: Apache-2.0

package testbed

import (
	"errors"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"testing"
	"time"

	"tidekeeper.dev/tidekeeper/sandbox/internal/explore/lab"
	"tidekeeper.dev/tidekeeper/sandbox/internal/explore/workload"
	"tidekeeper.dev/tidekeeper/sandbox/internal/results"
)

// TestInputs checks that results depend on the operator, the manifests, the input, and everything
// that affects the verdict.
func TestInputs(t *testing.T) {
	dir := t.TempDir()
	crd, helper, script := filepath.Join(dir, "crd.yaml"), filepath.Join(dir, "helper"), filepath.Join(dir, "script")
	contents := func(limits Limits, subject, fail, manifest, program, command string) map[string]string {
		t.Helper()
		if err := errors.Join(os.WriteFile(crd, []byte(manifest), 0o600), os.WriteFile(helper, []byte(program), 0o700), os.WriteFile(script, []byte(command), 0o700)); err != nil {
			t.Fatal(err)
		}
		m := &Maker{Setup: lab.Setup{Workload: &workload.Workload{Install: []string{crd}, Programs: []string{helper + " --serve"}, Steps: []workload.Step{{Run: script + " --fast"}}}, Command: []string{"true"}}}
		if fail != "" {
			m.FailOnLog = regexp.MustCompile(fail)
		}
		about, err := results.NewAbout(m.Inputs([]string{"shop.yaml"}, subject, limits))
		if err != nil || !slices.Equal(about.Command, m.Command) || !slices.Equal(about.Of, []string{"shop.yaml"}) {
			t.Fatalf("%+v, %v", about, err)
		}
		return about.Contents
	}
	limits := Limits{Quiet: time.Second, Settle: time.Minute, Patience: time.Second}
	before := contents(limits, "shop", "", "a", "a", "a")
	for name, now := range map[string]map[string]string{
		"nothing":      contents(limits, "shop", "", "a", "a", "a"),
		"the subject":  contents(limits, "market", "", "a", "a", "a"),
		"a limit":      contents(Limits{Quiet: time.Second, Settle: time.Minute}, "shop", "", "a", "a", "a"),
		"a log line":   contents(limits, "shop", "ERROR", "a", "a", "a"),
		"the manifest": contents(limits, "shop", "", "b", "a", "a"),
		"a program":    contents(limits, "shop", "", "a", "b", "a"),
		"a script":     contents(limits, "shop", "", "a", "a", "b"),
	} {
		changed := 0
		for part := range before {
			if now[part] != before[part] {
				changed++
			}
		}
		if want := map[bool]int{true: 0, false: 1}[name == "nothing"]; changed != want {
			t.Errorf("%s: %d parts differ, want %d", name, changed, want)
		}
	}
}

// TestEnd checks that End calls the registered functions in reverse order.
func TestEnd(t *testing.T) {
	var ended []int
	bed := &Testbed{}
	for i := range 3 {
		bed.atEnd(func() { ended = append(ended, i) })
	}
	bed.End()
	if !slices.Equal(ended, []int{2, 1, 0}) {
		t.Errorf("ended in the order %v", ended)
	}
}

// TestScratch checks that the temporary directory is created only once, and is removed by Close.
func TestScratch(t *testing.T) {
	m := &Maker{Dir: t.TempDir()}
	first, err := m.Scratch()
	if err != nil {
		t.Fatal(err)
	}
	if again, err := m.Scratch(); err != nil || again != first {
		t.Errorf("%s, and then %s, %v", first, again, err)
	}
	m.Close()
	if _, err := os.Stat(first); !os.IsNotExist(err) {
		t.Errorf("after the end: %v", err)
	}
}
