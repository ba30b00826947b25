// Copyright The Tidekeeper Authors.
// SPDX-License-Identifier: Apache-2.0

package cli

import (
	"bytes"
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/spf13/cobra"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"tidekeeper.dev/tidekeeper/sandbox/internal/explore"
	"tidekeeper.dev/tidekeeper/sandbox/internal/explore/judge"
	"tidekeeper.dev/tidekeeper/sandbox/internal/explore/workload"
	"tidekeeper.dev/tidekeeper/sandbox/internal/results"
)

// TestReplayFlags checks that a replay uses the flags with which the finding was made, unless the
// user sets them, and the defaults for a finding without flags.
func TestReplayFlags(t *testing.T) {
	type values struct {
		quiet, settle, patience, hold time.Duration
		fail                          string
	}
	seconds := func(n int) metav1.Duration { return metav1.Duration{Duration: time.Duration(n) * time.Second} }
	found := results.Flags{Quiet: seconds(1), Settle: seconds(20), Patience: seconds(3), Hold: seconds(4), FailOnLog: "ERROR"}
	defaults := values{5 * time.Second, 2 * time.Minute, 30 * time.Second, 330 * time.Second, ""}
	for _, tc := range []struct {
		name, given string
		found       results.Flags
		want        values
	}{
		{"as found", "", found, values{time.Second, 20 * time.Second, 3 * time.Second, 4 * time.Second, "ERROR"}},
		{"some are given", "--patience=1m --fail-on-log=", found, values{time.Second, 20 * time.Second, time.Minute, 4 * time.Second, ""}},
		{"all are given", "--quiet=2s --settle=3s --patience=4s --hold=5s --fail-on-log=WARN", found, values{2 * time.Second, 3 * time.Second, 4 * time.Second, 5 * time.Second, "WARN"}},
		{"the finding has none", "", results.Flags{}, defaults},
	} {
		var f exploreFlags
		cmd := &cobra.Command{}
		addJudging(cmd, &f)
		if err := cmd.ParseFlags(strings.Fields(tc.given)); err != nil {
			t.Fatal(err)
		}
		f = f.asFound(cmd.Flags(), tc.found)
		if got := (values{f.quiet, f.settle, f.patience, f.hold, f.failOnLog}); got != tc.want {
			t.Errorf("%s: %+v, want %+v", tc.name, got, tc.want)
		}
	}
}

// TestReplaySaysWhatItFound checks that a replay has exit code 2 for any problem, and reports if
// the problem differs from the finding.
func TestReplaySaysWhatItFound(t *testing.T) {
	again := &explore.Finding{Workload: &workload.Workload{}, Problems: []judge.Problem{{Oracle: judge.Broken, Lines: []string{"two leaders"}}}}
	for _, same := range []bool{true, false} {
		var out bytes.Buffer
		cmd := &cobra.Command{}
		cmd.SetOut(&out)
		if err := tellAgain(cmd, explore.Tool, again, same, "explore/finding-1.yaml"); !errors.Is(err, errFound) {
			t.Errorf("exit code: %v", err)
		}
		if !strings.Contains(out.String(), "two leaders") || strings.Contains(out.String(), "This is another problem than that in explore/finding-1.yaml.\n") == same {
			t.Errorf("the same: %t\n%s", same, &out)
		}
	}
}
