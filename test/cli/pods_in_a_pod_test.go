// Copyright The Tidekeeper Authors.
// SPDX-License-Identifier: Apache-2.0

package cli

import (
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/tools/clientcmd"

	"tidekeeper.dev/tidekeeper/test/framework"
)

// inAPod is a script that runs a command with a service account's files at their usual path. It
// uses its own mount namespace, in which another file system is mounted at /var/run.
const inAPod = `set -e
run=$(readlink -f /var/run)
mount -t tmpfs none "$run"
mkdir -p "$run/secrets/kubernetes.io/serviceaccount"
cp "$1"/* "$run/secrets/kubernetes.io/serviceaccount"
shift
exec "$@"`

// podOf returns a function that makes a command run as in a pod of the given service account:
// without a kubeconfig, but with a pod's environment variables and files.
func podOf(t *testing.T, namespace, account string) func(command) command {
	t.Helper()
	if out, err := exec.Command("unshare", "-rm", "mount", "-t", "tmpfs", "tmpfs", "/tmp").CombinedOutput(); err != nil {
		t.Skipf("this machine allows no mount namespaces: %v\n%s", err, out)
	}
	config, err := clientcmd.LoadFromFile(cluster.AccountKubeconfig(t, namespace, account))
	if err != nil {
		t.Fatal(err)
	}
	authority := cluster.Config.CAData
	if len(authority) == 0 {
		if authority, err = os.ReadFile(cluster.Config.CAFile); err != nil {
			t.Fatal(err)
		}
	}
	dir := t.TempDir()
	for name, text := range map[string]string{"token": config.AuthInfos[account].Token, "ca.crt": string(authority), "namespace": namespace} {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	server, err := url.Parse(cluster.Config.Host)
	if err != nil {
		t.Fatal(err)
	}
	return func(c command) command {
		c.within = []string{"unshare", "-rm", "sh", "-c", inAPod, "pod", dir}
		c.env = append(c.env, "KUBECONFIG=", "KUBERNETES_SERVICE_HOST="+server.Hostname(), "KUBERNETES_SERVICE_PORT="+server.Port())
		return c
	}
}

// TestPodsInAPod checks that in a pod the plugin needs no kubeconfig, but uses the pod's service
// account and namespace.
func TestPodsInAPod(t *testing.T) {
	aNamespace(t, "in-a-pod")
	cluster.Apply(t, &corev1.ServiceAccount{ObjectMeta: metav1.ObjectMeta{Name: "reader", Namespace: "in-a-pod"}})
	cluster.Apply(t, &rbacv1.RoleBinding{
		ObjectMeta: metav1.ObjectMeta{Name: "reader", Namespace: "in-a-pod"},
		RoleRef:    rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: "view"},
		Subjects:   []rbacv1.Subject{{Kind: rbacv1.ServiceAccountKind, Name: "reader", Namespace: "in-a-pod"}},
	})
	pod := podOf(t, "in-a-pod", "reader")
	forbidden := result{code: 5, stderr: "error: pods is forbidden: User \"system:serviceaccount:in-a-pod:reader\" cannot list resource \"pods\" in API group \"\" in the namespace \"default\": see kubectl tide check, and SECURITY.md for the roles\n"}
	framework.Eventually(t, "the account may read its namespace, and no other", func() error {
		if err := diff(forbidden, pod(command{args: []string{"pods", "watch", "-n", "default"}}).run(t)); err != nil {
			return err
		}
		return diff(result{stderr: "There are no pods in the namespace in-a-pod.\n"}, pod(command{args: []string{"pods", "slow"}}).run(t))
	})

	w := follow(t, pod(command{args: []string{"pods", "watch", "-o", "json"}}))
	w.stderr.await(t, 1, `^No such pods yet: waiting for them\.`)
	cluster.Apply(t, nowhere("in-a-pod"))
	lines := w.stdout.await(t, 1, `"name":"PodScheduled"`)
	if steps := stepsOf(t, lines)["nowhere"]; len(steps) != 3 || !strings.HasPrefix(steps[0].String(), "Created") {
		t.Errorf("it prints\n%s", strings.Join(lines, "\n"))
	}
	if code := w.interrupt(t); code != 130 {
		t.Errorf("after Ctrl-C, the exit code is %d", code)
	}
}
