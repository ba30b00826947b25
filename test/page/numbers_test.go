// Copyright The Tidekeeper Authors.
// SPDX-License-Identifier: Apache-2.0

package page

import (
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"testing"

	"github.com/google/go-cmp/cmp"

	"tidekeeper.dev/tidekeeper/test/framework"
)

// kubectlTide runs the plugin and returns its output. It accepts exit codes that only report
// findings.
func kubectlTide(t *testing.T, args ...string) string {
	t.Helper()
	binary, err := framework.Binary("TIDE_BIN", "kubectl-tide")
	if err != nil {
		t.Fatal(err)
	}
	command := exec.Command(binary, args...)
	command.Env = append(os.Environ(), "KUBECONFIG="+cluster.Kubeconfig, "TZ=UTC")
	out, err := command.Output()
	if exit := (*exec.ExitError)(nil); err != nil && (!errors.As(err, &exit) || exit.ExitCode() != 2) {
		t.Fatalf("kubectl tide %v: %v\n%s", args, err, out)
	}
	return string(out)
}

// get requests the given path of the page's data with the token for programs, and decodes the
// response.
func (d *dashboard) get(t *testing.T, path string, into any) {
	t.Helper()
	if err := json.Unmarshal([]byte(d.body(t, path)), into); err != nil {
		t.Fatal(err)
	}
}

// sameNumbers compares the numbers on the pages with the output of the equivalent commands.
func sameNumbers(t *testing.T, d *dashboard) {
	without := func(m map[string]any, names ...string) map[string]any {
		for _, name := range names {
			delete(m, name)
		}
		return m
	}
	for _, pool := range []string{"worker", "gpu"} {
		framework.Eventually(t, "the page has the numbers of pools describe", func() error {
			var page, command map[string]any
			d.get(t, "/pools/"+pool+".json", &page)
			if err := json.Unmarshal([]byte(kubectlTide(t, "pools", "describe", pool, "-o", "json")), &command); err != nil {
				return err
			}
			if diff := cmp.Diff(without(command, "events"), without(page, "events")); diff != "" {
				return fmt.Errorf("(-command +page):\n%s", diff)
			}
			return nil
		})
	}
	for query, flags := range map[string][]string{
		"cpu=1&memory=2Gi":           {"--cpu", "1", "--memory", "2Gi"},
		"like=shop/deployment/train": {"--like", "deployment/train", "-n", "shop"},
	} {
		framework.Eventually(t, "the page has the numbers of pools fit for "+query, func() error {
			var page, command []any
			d.get(t, "/capacity.json?"+query, &page)
			if err := json.Unmarshal([]byte(kubectlTide(t, append([]string{"pools", "fit", "-o", "json"}, flags...)...)), &command); err != nil {
				return err
			}
			if diff := cmp.Diff(command, page); diff != "" || len(page) != 2 {
				return fmt.Errorf("(-command +page):\n%s", diff)
			}
			return nil
		})
	}
	framework.Eventually(t, "the page has the ticks of restarts forecast", func() error {
		var page, command map[string]any
		d.get(t, "/restarts.json", &page)
		if err := json.Unmarshal([]byte(kubectlTide(t, "restarts", "forecast", "-A", "-o", "json")), &command); err != nil {
			return err
		}
		for _, part := range []string{"minutes", "started", "notStarted", "summary"} {
			if diff := cmp.Diff(command[part], page[part]); diff != "" || page[part] == nil {
				return fmt.Errorf("%s (-command +page):\n%s", part, diff)
			}
		}
		return nil
	})
}
