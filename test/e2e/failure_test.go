// Copyright The Tidekeeper Authors.
// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"errors"
	"os"
	"os/exec"
	"strings"
	"testing"
	"time"

	"tidekeeper.dev/tidekeeper/test/framework"
)

// failOnPurpose is the environment variable that makes TestAFailureExplainsItself fail.
const failOnPurpose = "FAIL_ON_PURPOSE"

// TestAFailureExplainsItself checks that a failed test prints the condition that it waited for, the
// objects that it applied with their events, and the end of its manager's log.
func TestAFailureExplainsItself(t *testing.T) {
	if os.Getenv(failOnPurpose) != "" {
		cluster.StartManager(t, "--leader-elect=false")
		p := pool("explained")
		cluster.Apply(t, p)
		framework.EventuallyWithin(t, time.Second, "the pool has a member", func() error { return errors.New("it has none") })
	}
	command := exec.CommandContext(t.Context(), os.Args[0], "-test.run=^TestAFailureExplainsItself$", "-test.v")
	command.Env = append(os.Environ(), failOnPurpose+"=1", "TIDEKEEPER_SANDBOX="+cluster.Dir)
	out, err := command.CombinedOutput()
	if exit := (*exec.ExitError)(nil); !errors.As(err, &exit) {
		t.Fatalf("%v\n%s", err, out)
	}
	for _, want := range []string{
		"not within 1s: the pool has a member: it has none",
		"NodePool /explained as it was last:\n", "example.com/explained: \"10\"",
		"the log of the manager", "--- FAIL: TestAFailureExplainsItself",
	} {
		if !strings.Contains(string(out), want) {
			t.Errorf("the failure does not say %q:\n%s", want, out)
		}
	}
}
