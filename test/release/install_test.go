// Copyright The Tidekeeper Authors.
// SPDX-License-Identifier: Apache-2.0

package release

import (
	"errors"
	"fmt"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"

	"tidekeeper.dev/tidekeeper/test/framework"
)

// pool is the manifest of the pool that the test applies.
const pool = `apiVersion: tidekeeper.dev/v1
kind: NodePool
metadata: {name: worker}
spec:
  labels: {example.com/pool: worker}
  selector: {matchLabels: {kubernetes.io/os: linux}}
`

// world is a control plane, the manager and the plugin, all from the release archives.
type world struct{ dir, data, sandbox, tidekeeper, plugin string }

// command returns a command that uses kubectl and the plugin from the release archives.
func (w *world) command(t *testing.T, name string, args ...string) *exec.Cmd {
	t.Helper()
	cmd := exec.CommandContext(t.Context(), name, args...)
	cmd.Dir = w.dir
	cmd.Env = append(os.Environ(), "SANDBOX_DATA_DIR="+w.data, "KUBECONFIG="+filepath.Join(w.data, "admin.kubeconfig"), "HOME="+w.dir)
	return cmd
}

func (w *world) must(t *testing.T, name string, args ...string) string {
	t.Helper()
	out, err := w.command(t, name, args...).CombinedOutput()
	if err != nil {
		t.Fatalf("%s %s: %v\n%s", filepath.Base(name), strings.Join(args, " "), err, out)
	}
	return string(out)
}

func (w *world) kubectl(t *testing.T, args ...string) string {
	t.Helper()
	return w.must(t, w.sandbox, append([]string{"kubectl"}, args...)...)
}

// passing lists the kinds whose objects are created and deleted without a user's action.
var passing = []string{"events", "events.events.k8s.io", "leases.coordination.k8s.io", "endpoints", "endpointslices.discovery.k8s.io", "componentstatuses"}

// objects returns the names of all objects except those of the kinds in `passing`.
func (w *world) objects(t *testing.T) map[string]bool {
	t.Helper()
	kinds := slices.DeleteFunc(strings.Fields(w.kubectl(t, "api-resources", "--verbs=list", "--output=name")), func(kind string) bool { return slices.Contains(passing, kind) })
	found := map[string]bool{}
	for name := range strings.FieldsSeq(w.kubectl(t, "get", strings.Join(kinds, ","), "--all-namespaces", "--output=jsonpath={range .items[*]}{.kind}/{.metadata.namespace}/{.metadata.name}{\"\\n\"}{end}")) {
		found[name] = true
	}
	return found
}

// eventuallyPopulated waits until the control plane has added to each namespace of a new cluster what
// every namespace has: the service account default, and the ConfigMap with the CA certificates.
func (w *world) eventuallyPopulated(t *testing.T) {
	t.Helper()
	framework.Eventually(t, "each namespace is populated", func() error {
		found := w.objects(t)
		for name := range found {
			namespace, ok := strings.CutPrefix(name, "Namespace//")
			if ok && (!found["ServiceAccount/"+namespace+"/default"] || !found["ConfigMap/"+namespace+"/kube-root-ca.crt"]) {
				return fmt.Errorf("%s is not", namespace)
			}
		}
		return nil
	})
}

// TestFolderIsEnough installs Tidekeeper with the packaged chart and with install.yaml. The
// archive's manager must reconcile a pool, the archive's plugin must show it, and an uninstall must
// leave nothing behind. No file comes from the source tree.
func TestFolderIsEnough(t *testing.T) {
	t.Parallel()
	w := &world{dir: t.TempDir(), data: filepath.Join(t.TempDir(), "data")}
	for program, path := range map[string]*string{"sandbox": &w.sandbox, "tidekeeper": &w.tidekeeper, "kubectl-tide": &w.plugin} {
		*path = filepath.Join(unpack(t, program), program)
	}
	w.must(t, w.sandbox, "up", "--detach", "--nodes=2", fmt.Sprintf("--owner=%d", os.Getpid()), "--kubeconfig="+filepath.Join(w.dir, "kubeconfig"))
	t.Cleanup(func() {
		cmd := exec.Command(w.sandbox, "down", "--data-dir="+w.data)
		if out, err := cmd.CombinedOutput(); err != nil {
			t.Errorf("sandbox down: %v\n%s", err, out)
		}
	})
	w.eventuallyPopulated(t)
	kubeconfig := "--kubeconfig=" + filepath.Join(w.dir, "kubeconfig")
	for _, way := range []struct {
		name    string
		install func(*testing.T)
		remove  func(*testing.T)
	}{
		{
			"install.yaml",
			func(t *testing.T) { w.kubectl(t, "apply", "--filename="+in(t, "install.yaml")) },
			func(t *testing.T) { w.kubectl(t, "delete", "--filename="+in(t, "install.yaml")) },
		},
		{
			"chart",
			func(t *testing.T) {
				w.must(t, os.Getenv("HELM_BIN"), "install", "tidekeeper", in(t, "tidekeeper-0.1.0.tgz"), "--namespace=tidekeeper-system", "--create-namespace", kubeconfig)
			},
			func(t *testing.T) {
				w.must(t, os.Getenv("HELM_BIN"), "uninstall", "tidekeeper", "--namespace=tidekeeper-system", "--wait", kubeconfig)
				w.kubectl(t, "delete", "namespace", "tidekeeper-system")
			},
		},
	} {
		t.Run(way.name, func(t *testing.T) {
			before := w.objects(t)
			way.install(t)
			w.use(t, kubeconfig)
			way.remove(t)
			framework.Eventually(t, "all objects of the installation are gone", func() error {
				after := w.objects(t)
				maps.DeleteFunc(after, func(name string, _ bool) bool { return before[name] })
				if len(after) > 0 {
					return fmt.Errorf("left behind: %s", strings.Join(slices.Sorted(maps.Keys(after)), ", "))
				}
				return nil
			})
		})
	}
}

// use runs the manager with the service account and the arguments of its Deployment, and creates a
// pool.
func (w *world) use(t *testing.T, kubeconfig string) {
	t.Helper()
	manager := w.command(t, w.sandbox, "run", "--from=deployment/tidekeeper-system/tidekeeper", "--", w.tidekeeper)
	var said strings.Builder
	manager.Stdout, manager.Stderr = &said, &said
	if err := manager.Start(); err != nil {
		t.Fatal(err)
	}
	ended := make(chan error, 1)
	go func() { ended <- manager.Wait() }()
	file := filepath.Join(w.dir, "pool.yaml")
	if err := os.WriteFile(file, []byte(pool), 0o600); err != nil {
		t.Fatal(err)
	}
	framework.Eventually(t, "a pool is created, once its kind is served", func() error {
		out, err := w.command(t, w.sandbox, "kubectl", "apply", "--filename="+file).CombinedOutput()
		if err != nil {
			err = fmt.Errorf("%w: %s", err, out)
		}
		return err
	})
	labeled := func(want int) func() error {
		return func() error {
			if got := strings.Fields(w.kubectl(t, "get", "nodes", "--selector=example.com/pool=worker", "--output=name")); len(got) != want {
				return fmt.Errorf("%d nodes have the label of the pool, want %d", len(got), want)
			}
			return nil
		}
	}
	framework.Eventually(t, "the nodes have the label of the pool", labeled(2))
	framework.Eventually(t, "the plugin shows the pool", func() error {
		out, err := w.command(t, w.plugin, "pools", kubeconfig).CombinedOutput()
		if err != nil || !strings.Contains(string(out), "2/2") {
			return errors.Join(err, errors.New(string(out)))
		}
		return nil
	})
	t.Run("the plugin for arm64", func(t *testing.T) {
		qemu, dir := emulator(t), unpackFor(t, "kubectl-tide", "arm64")
		for _, command := range [][]string{{"check"}, {"pools"}} {
			out, err := w.command(t, qemu, append([]string{filepath.Join(dir, "kubectl-tide"), kubeconfig}, command...)...).CombinedOutput()
			if err != nil || !strings.Contains(string(out), "worker") && command[0] == "pools" {
				t.Errorf("%q: %v\n%s", command, err, out)
			}
		}
	})
	w.kubectl(t, "delete", "nodepools", "--all")
	framework.Eventually(t, "the nodes are clean", labeled(0))
	if err := manager.Process.Signal(syscall.SIGTERM); err != nil {
		t.Fatal(err)
	}
	if err := <-ended; err != nil {
		t.Errorf("the manager ended with %v:\n%s", err, said.String())
	}
}
