// Copyright The Tidekeeper Authors.
// SPDX-License-Identifier: Apache-2.0

package test

import (
	"fmt"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/tools/clientcmd"

	"tidekeeper.dev/tidekeeper/sandbox/client"
)

const stranger = "error: another client, curl, has written configmaps default/stranger"

// TestExploreStranger checks that explore neither judges a run nor reports a finding if an unknown
// client writes an object that is in no fault-free run.
func TestExploreStranger(t *testing.T) {
	t.Parallel()
	count := filepath.Join(t.TempDir(), "count")
	workload := workloadFile(t, fmt.Sprintf(`
nodes: 0
steps:
- run: kubectl create configmap bread --from-literal=item=bread && kubectl label configmap bread shop=order
- run: echo >>%[1]s; if [ $(wc -l <%[1]s) -gt 2 ]; then kubectl create configmap stranger --from-literal=a=b --field-manager=curl; fi
`, count))
	r := play(t, "explore", "--workload", workload, "--dir", t.TempDir(), "--quiet", "1500ms", "--patience", "5s", "--jobs", "1", "--only", "Restart at step 1", "--", shop(t))
	if r.code != 1 || !strings.Contains(r.stderr, stranger) || !strings.Contains(r.stdout, "Found: 0.") {
		t.Errorf("exit code %d\n%s%s", r.code, r.stdout, r.stderr)
	}
}

// TestFuzzStranger checks that fuzz reports no finding if an unknown client writes an object during
// a run.
func TestFuzzStranger(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	takeTurn(t)
	fuzz, err := client.Start(exec.Command(binary, "fuzz", "--install", "testdata/stall-crd.yaml", "--object", "testdata/stall.yaml", "--dir", dir,
		"--nodes", "0", "--quiet", "1s", "--jobs", "1", "--only", "spec.message: with a suffix", "--", stall(t)))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = fuzz.Kill() })
	writes := 0
	waitFor(t, 5*time.Minute, func() string {
		if strings.Contains(fuzz.Output(), "Learnt: ") && !strings.Contains(fuzz.Output(), stranger) {
			kubeconfigs, _ := filepath.Glob(filepath.Join(dir, "sandbox-lab-*", "*", "kubeconfig"))
			for _, kubeconfig := range kubeconfigs {
				writes++
				writeAsStranger(t, kubeconfig, writes)
			}
		}
		select {
		case <-fuzz.Done():
			return ""
		default:
			return fmt.Sprintf("it plays still, after %d writes:\n%s", writes, fuzz.Output())
		}
	})
	if out := fuzz.Output(); !strings.Contains(out, stranger) || !strings.Contains(out, "Found: 0.") {
		t.Errorf("after %d writes:\n%s", writes, out)
	}
}

// writeAsStranger creates an object in a sandbox as an unknown client, or changes the object if it
// already exists.
func writeAsStranger(t *testing.T, kubeconfig string, n int) {
	t.Helper()
	config, err := clientcmd.BuildConfigFromFlags("", kubeconfig)
	if err != nil {
		return
	}
	all, err := kubernetes.NewForConfig(config)
	if err != nil {
		t.Fatal(err)
	}
	maps, object := all.CoreV1().ConfigMaps("default"), &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Name: "stranger"}, Data: map[string]string{"n": fmt.Sprint(n)}}
	if _, err := maps.Create(t.Context(), object, metav1.CreateOptions{FieldManager: "curl"}); apierrors.IsAlreadyExists(err) {
		_, _ = maps.Update(t.Context(), object, metav1.UpdateOptions{FieldManager: "curl"})
	}
}
