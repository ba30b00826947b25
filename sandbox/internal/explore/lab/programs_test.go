// Copyright The Tidekeeper Authors.
// SPDX-License-Identifier: Apache-2.0

package lab

import (
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"tidekeeper.dev/tidekeeper/sandbox/client"
	"tidekeeper.dev/tidekeeper/sandbox/internal/cluster"
	"tidekeeper.dev/tidekeeper/sandbox/internal/explore/observe"
)

// programsOf starts programs that are stopped at the end of the test. No operator runs.
func programsOf(t *testing.T, dir string, commands ...string) *Programs {
	t.Helper()
	var programs []Program
	for _, command := range commands {
		programs = append(programs, Program{Command: command})
	}
	p, err := StartPrograms(&Sandbox{dir: cluster.Dir(dir), lab: &Lab{}}, programs)
	t.Cleanup(p.End)
	if err != nil {
		t.Fatal(err)
	}
	return p
}

// soon polls the function `is` until it returns true. `what` describes the condition in the error
// message.
func soon(t *testing.T, what string, is func() bool) {
	t.Helper()
	if err := client.Wait(t.Context(), 2*time.Minute, what, func() error {
		if !is() {
			return errors.New("it is not")
		}
		return nil
	}); err != nil {
		t.Fatal(err)
	}
}

// TestProgramsEndWithTheRun checks that a program receives the administrator's KUBECONFIG, and that
// End also kills its child processes.
func TestProgramsEndWithTheRun(t *testing.T) {
	dir := t.TempDir()
	file := filepath.Join(dir, "out")
	p := programsOf(t, dir, `sleep 600 & echo $! $KUBECONFIG > `+file+`; wait`)
	var words []string
	soon(t, "started", func() bool {
		text, _ := os.ReadFile(filepath.Clean(file))
		words = strings.Fields(string(text))
		return len(words) == 2
	})
	if want := cluster.Dir(dir).Kubeconfig(); words[1] != want {
		t.Errorf("its KUBECONFIG is %q, want %q", words[1], want)
	}
	if err := p.Ended(); err != nil {
		t.Error(err)
	}
	child, err := strconv.Atoi(words[0])
	if err != nil {
		t.Fatal(err)
	}
	p.End()
	soon(t, "over", func() bool {
		// The killed process may remain as a zombie.
		state, err := os.ReadFile(filepath.Join("/proc", words[0], "stat"))
		return syscall.Kill(child, 0) != nil || err == nil && strings.Contains(string(state), ") Z ")
	})
}

func TestProgramsThatEndAreToldOf(t *testing.T) {
	p := programsOf(t, t.TempDir(), "sleep 600", "echo no such flag; exit 3")
	soon(t, "over", func() bool { return p.Ended() != nil })
	err := p.Ended().Error()
	for _, want := range []string{`the program "echo no such flag; exit 3" exited (exit status 3)`, "    no such flag\n"} {
		if !strings.Contains(err, want) {
			t.Errorf("%q is not in\n%s", want, err)
		}
	}
}

// TestProgramsAreLogged checks that the ends and starts of a program are logged under its name, and
// those of a program without a log are not.
func TestProgramsAreLogged(t *testing.T) {
	log := &observe.ProcessLog{}
	began := time.Now()
	p, err := StartPrograms(&Sandbox{lab: &Lab{}}, []Program{{Command: "sleep 600"}, {Command: "sleep 600", Log: log, LogName: "bakery"}})
	t.Cleanup(p.End)
	if err != nil {
		t.Fatal(err)
	}
	for i := range 2 {
		if err := p.Restart(i); err != nil {
			t.Fatal(err)
		}
	}
	var got []string
	for _, e := range log.Since(began) {
		got = append(got, e.Of+" "+string(e.What))
	}
	if want := []string{"bakery started", "bakery killed", "bakery started"}; !slices.Equal(got, want) {
		t.Errorf("logged %q, want %q", got, want)
	}
}
