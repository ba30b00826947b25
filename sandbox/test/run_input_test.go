// Copyright The Tidekeeper Authors.
// SPDX-License-Identifier: Apache-2.0

package test

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
)

// TestRunWrongInput checks that each input error is reported in a single line, and that a failed
// `sandbox run` leaves nothing behind.
func TestRunWrongInput(t *testing.T) {
	needsRun(t)
	s := sharedSandbox(t)
	empty := t.TempDir()
	twoDeployments := filepath.Join(empty, "two.yaml")
	if err := os.WriteFile(twoDeployments, []byte(operatorManifest+"---"+operatorManifest), 0o600); err != nil {
		t.Fatal(err)
	}
	namespace := newNamespace(t, s)
	incomplete, _, _ := strings.Cut(operatorManifest, "---")
	apply(t, s, namespace, incomplete)
	tests := map[string]struct {
		args []string
		want string
	}{
		"no program":          {[]string{}, "requires a program"},
		"no such program":     {[]string{"--", "./operator-that-is-not-there"}, "there is no program ./operator-that-is-not-there: build it first"},
		"no program in PATH":  {[]string{"--", "operator-that-is-not-there"}, "there is no program operator-that-is-not-there"},
		"not a program":       {[]string{"--", twoDeployments}, "cannot be run: permission denied"},
		"no such account":     {[]string{"--service-account=default/missing", "--", "true"}, "there is no ServiceAccount missing in the namespace default"},
		"account of no space": {[]string{"--service-account=operator", "--", "true"}, `--service-account "operator": want NAMESPACE/NAME`},
		"two accounts":        {[]string{"--service-account=a/b", "--from=deployment/a/b", "--", "true"}, "leave one of them out"},
		"no such Deployment":  {[]string{"--from=deployment/default/missing", "--", "true"}, "there is no such Deployment"},
		"no namespace":        {[]string{"--from=deployment/missing", "--", "true"}, "want deployment/NAMESPACE/NAME"},
		"no such file":        {[]string{"--from=missing.yaml", "--", "true"}, "--from missing.yaml: want deployment/NAMESPACE/NAME or the file of a manifest: no such file"},
		"two Deployments":     {[]string{"--from=" + twoDeployments, "--", "true"}, "want one Deployment in it, and there are 2"},
		"missing ConfigMap":   {[]string{"--from=deployment/" + namespace + "/operator", "--", "true"}, "there is no ConfigMap colors in the namespace " + namespace},
		"bad port":            {[]string{"--webhook-port=70000", "--", "true"}, "want a port"},
		"bad Service":         {[]string{"--webhooks=webhook", "--", "true"}, `--webhooks "webhook": want NAMESPACE/NAME`},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) { wantError(t, s.run(t, append([]string{"run"}, tc.args...)...), tc.want) })
	}
	t.Run("no sandbox", func(t *testing.T) {
		wantError(t, command(t, "run", "--data-dir", empty, "--", "true"), "no sandbox runs in "+empty)
	})
	t.Run("not in namespaces", func(t *testing.T) {
		own, err := os.Readlink("/proc/self/ns/mnt")
		if err != nil {
			t.Fatal(err)
		}
		for _, value := range []string{own, "yes"} {
			t.Setenv("SANDBOX_RUN_OUTSIDE", value)
			wantError(t, s.run(t, "run", "--", "true"), "SANDBOX_RUN_OUTSIDE is set, and not by 'sandbox run'")
		}
	})
	t.Run("no namespaces", func(t *testing.T) {
		cmd := exec.Command("sh", append([]string{"-c", `echo 0 > /proc/sys/user/max_mnt_namespaces && exec "$@"`, "sh", binary}, s.withDir([]string{"run", "--", "true"})...)...)
		// Each user namespace has its own limit on mount namespaces, so the test can change the
		// limit in a new user namespace.
		cmd.SysProcAttr = &syscall.SysProcAttr{
			Cloneflags:  syscall.CLONE_NEWUSER,
			UidMappings: []syscall.SysProcIDMap{{ContainerID: 0, HostID: os.Getuid(), Size: 1}},
			GidMappings: []syscall.SysProcIDMap{{ContainerID: 0, HostID: os.Getgid(), Size: 1}},
		}
		needsNamespaces(t, cmd.SysProcAttr)
		var stderr strings.Builder
		cmd.Stderr = &stderr
		_ = cmd.Run()
		wantError(t, result{stderr: stderr.String(), code: cmd.ProcessState.ExitCode()},
			"this machine does not permit a mount namespace (no space left on device): run it as root, or allow user namespaces, which 'sysctl user.max_mnt_namespaces' forbids here")
	})
	wantNothingLeft(t, s.client(t), "default")
	wantNothingLeft(t, s.client(t), namespace, "operator")
}
