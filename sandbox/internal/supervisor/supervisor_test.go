// Copyright The Tidekeeper Authors.
// SPDX-License-Identifier: Apache-2.0

package supervisor

import (
	"errors"
	"fmt"
	"os"
	"os/signal"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"tidekeeper.dev/tidekeeper/sandbox/client"
)

// TestMain makes the test binary act as one of the supervised programs if argv[0] is that program's
// name.
func TestMain(m *testing.M) {
	switch os.Args[0] {
	case "sleeper":
		fmt.Println("sleeping")
		time.Sleep(time.Hour) // sleep: the program runs until it is terminated
	case "stubborn":
		signal.Ignore(syscall.SIGTERM)
		fmt.Println("not going")
		time.Sleep(time.Hour) // sleep: the program runs until it is killed
	case "failing":
		fmt.Println("something is wrong")
		os.Exit(3)
	}
	os.Exit(m.Run())
}

func spec(t *testing.T, name string) Spec {
	s := Spec{Name: name, Log: filepath.Join(t.TempDir(), "log"), StopTimeout: 2 * time.Minute}
	if name == "stubborn" {
		s.StopTimeout = 100 * time.Millisecond
	}
	return s
}

func started(t *testing.T, name string) *Supervisor {
	t.Helper()
	s := New()
	t.Cleanup(func() { s.Stop() })
	sp := spec(t, name)
	if err := s.Start(sp); err != nil {
		t.Fatal(err)
	}
	// Wait for a line in the log, because the new process may not have executed the program yet.
	if err := client.Wait(t.Context(), 2*time.Minute, name+" has started", func() error {
		if len(Tail(sp.Log, 1)) == 0 {
			return errors.New("its log is empty")
		}
		return nil
	}); err != nil {
		t.Fatal(err)
	}
	return s
}

func TestStates(t *testing.T) {
	s := started(t, "sleeper")
	steps := []struct {
		name string
		do   func(string) error
		want State
	}{
		{"pause", s.Pause, Paused}, {"resume", s.Resume, Running}, {"kill", s.Kill, Killed}, {"start", s.Restart, Running},
	}
	for _, step := range steps {
		if err := step.do("sleeper"); err != nil {
			t.Fatalf("%s: %v", step.name, err)
		}
		if got := s.Status()[0].State; got != step.want {
			t.Errorf("after %s it is %s, want %s", step.name, got, step.want)
		}
		if err := step.do("sleeper"); err == nil || err.Error() != "sleeper is "+string(step.want) {
			t.Errorf("%s twice: %v", step.name, err)
		}
	}
	if got := s.Status()[0].Restarts; got != 1 {
		t.Errorf("it was started again %d times, want 1", got)
	}
	if err := s.Kill("missing"); err == nil {
		t.Error("a process that does not exist was killed")
	}
	s.Stop()
	if got := s.Status()[0]; got.State != Stopped || got.PID != 0 || got.Exit != "SIGTERM" {
		t.Errorf("after it was stopped: %+v", got)
	}
}

func TestCrashIsReportedWithTheEndOfTheLog(t *testing.T) {
	s := New()
	exits := make(chan Exit, 1)
	s.OnExit = func(e Exit) { exits <- e }
	if err := s.Start(spec(t, "failing")); err != nil {
		t.Fatal(err)
	}
	e := <-exits
	if e.State != Crashed || e.Exit != "exit code 3" || strings.Join(e.Tail, "") != "something is wrong" {
		t.Errorf("reported: %+v", e)
	}
}

// TestPauseWaits checks that all threads of a process have stopped when Pause returns.
func TestPauseWaits(t *testing.T) {
	s := started(t, "sleeper")
	defer s.Stop()
	for range 50 {
		if err := s.Pause("sleeper"); err != nil {
			t.Fatal(err)
		}
		threads, err := filepath.Glob(fmt.Sprintf("/proc/%d/task/*/stat", s.Status()[0].PID))
		if err != nil || len(threads) < 2 {
			t.Fatalf("it has the threads %q, %v", threads, err)
		}
		for _, file := range threads {
			if stat, err := os.ReadFile(filepath.Clean(file)); err != nil || !strings.Contains(string(stat), ") T ") {
				t.Fatalf("a thread has not stopped: %s, %v", stat, err)
			}
		}
		if err := s.Resume("sleeper"); err != nil {
			t.Fatal(err)
		}
	}
}

func TestStubbornAndPausedProcessesEnd(t *testing.T) {
	s := started(t, "stubborn")
	s.Stop()
	if got := s.Status()[0]; got.Exit != "SIGKILL" {
		t.Errorf("the stubborn one: %+v", got)
	}
	s = started(t, "sleeper")
	if err := s.Pause("sleeper"); err != nil {
		t.Fatal(err)
	}
	s.Stop("sleeper")
	if got := s.Status()[0]; got.Exit != "SIGTERM" {
		t.Errorf("the paused one: %+v", got)
	}
}

func TestTail(t *testing.T) {
	file := filepath.Join(t.TempDir(), "log")
	if got := Tail(file, 3); got != nil {
		t.Errorf("of no file: %q", got)
	}
	if err := os.WriteFile(file, []byte(strings.Repeat("x", 100<<10)+"\none\n\ntwo\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	if got := strings.Join(Tail(file, 3), ","); got != "one,two" {
		t.Errorf("got %q", got)
	}
}

// TestRestartedOnce checks that only one of several concurrent restarts of a process succeeds, and
// that no restart succeeds after Stop.
func TestRestartedOnce(t *testing.T) {
	s := started(t, "sleeper")
	for range 20 {
		if err := s.Kill("sleeper"); err != nil {
			t.Fatal(err)
		}
		var wg sync.WaitGroup
		var done atomic.Int32
		for range 4 {
			wg.Go(func() {
				if s.Restart("sleeper") == nil {
					done.Add(1)
				}
			})
		}
		wg.Wait()
		if done.Load() != 1 {
			t.Fatalf("it was started %d times, want once", done.Load())
		}
	}
	s.Stop()
	if err := s.Restart("sleeper"); err == nil || s.Status()[0].PID != 0 {
		t.Errorf("after all were stopped it was started: %v, %+v", err, s.Status()[0])
	}
}
